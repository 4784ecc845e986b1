//! The memory of a server: of all its processes together, with what they share counted once (proc(5), `Pss`).

use std::path::PathBuf;

/// Returns the memory of a process and of its children as it is now. `None` where the system does not tell.
pub(super) fn bytes(pid: u32) -> Option<u64> {
    let own = of_process(pid)?;
    Some(own + children(pid).into_iter().filter_map(bytes).sum::<u64>())
}

fn of_process(pid: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let threads = fs_err::read_dir(tasks).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs_err::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn children_count_too() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = of_process(std::process::id()).unwrap();
        let found = children(std::process::id());
        let all = bytes(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(all > own / 2, "{own} {all}");
    }
}
