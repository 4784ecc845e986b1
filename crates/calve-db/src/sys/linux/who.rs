//! Facts in /proc about processes and those that they have started.

use super::process::children;

/// Returns this process's children, theirs, and so on.
pub(crate) fn descendants() -> Vec<u32> {
    tree(std::process::id()).split_off(1)
}

/// Returns the bytes of physical memory of a process, with its part of what it shares with others (proc_pid_smaps(5)).
pub(crate) fn memory_bytes(process: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns a process and those that it, and these in turn, have started.
pub(crate) fn tree(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let more = children(*pid);
        found.extend(more);
        next += 1;
    }
    found
}
