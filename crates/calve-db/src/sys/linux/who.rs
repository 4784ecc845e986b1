//! Facts in /proc about a process that has a file open (proc_pid_fdinfo(5)).

use std::path::{Path, PathBuf};

use super::super::ProcessThread;
use super::process::children;

/// Describes a thread and its process. `None` when it is gone.
pub(crate) fn who(thread: u32) -> Option<ProcessThread> {
    let process = number(&status(thread)?, "Tgid:")?;
    Some(ProcessThread {
        process,
        name: name(process)?,
        thread: Some(thread),
        thread_name: word(&format!("/proc/{process}/task/{thread}/comm")),
    })
}

/// Describes the process as a whole: the thread is known only where there is no other.
pub(crate) fn process(process: u32) -> Option<ProcessThread> {
    let is_alone = number(&status(process)?, "Threads:")? == 1;
    let thread = is_alone.then_some(process);
    Some(ProcessThread { process, name: name(process)?, thread, thread_name: thread.and_then(|_| name(process)) })
}

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

/// Returns the files that a process has open, of those that are wanted, each with the flags of open(2).
pub(crate) fn open_files(process: u32, wanted: &dyn Fn(&Path) -> bool) -> Vec<(PathBuf, i32)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
        let Ok(path) = fs_err::read_link(entry.path()) else { continue };
        if !wanted(&path) {
            continue;
        }
        let information = Path::new("/proc").join(process.to_string()).join("fdinfo").join(entry.file_name());
        found.extend(flags_of(&information).map(|flags| (path, flags)));
    }
    found
}

/// Returns the flags with which a process has opened one of `paths`, for writing if it has opened it several times.
pub(crate) fn open_flags(process: u32, paths: &[PathBuf]) -> Option<i32> {
    let files = open_files(process, &|path| paths.iter().any(|wanted| wanted == path));
    files.into_iter().map(|(_, flags)| flags).max_by_key(|flags| is_for_writing(*flags))
}

pub(crate) fn is_for_writing(flags: i32) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY
}

/// Names flags as open(2) does. It leaves out flags without a name there, such as those that the kernel adds.
pub(crate) fn flag_names(flags: i32) -> String {
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => "O_RDONLY",
        libc::O_WRONLY => "O_WRONLY",
        _ => "O_RDWR",
    };
    let names = [
        (libc::O_SYNC, "O_SYNC"),
        (libc::O_CREAT, "O_CREAT"),
        (libc::O_TRUNC, "O_TRUNC"),
        (libc::O_APPEND, "O_APPEND"),
        (libc::O_NONBLOCK, "O_NONBLOCK"),
        (libc::O_DIRECT, "O_DIRECT"),
        (libc::O_NOATIME, "O_NOATIME"),
        (libc::O_NOFOLLOW, "O_NOFOLLOW"),
        (libc::O_CLOEXEC, "O_CLOEXEC"),
    ];
    let set = names.iter().filter(|(bits, _)| flags & bits == *bits).map(|(_, name)| *name);
    std::iter::once(access).chain(set).collect::<Vec<_>>().join("|")
}

fn flags_of(information: &Path) -> Option<i32> {
    let text = fs_err::read_to_string(information).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(line.trim(), 8).ok()
}

/// Returns the name of a process, or its command line where that begins with the name: PostgreSQL's processes write there what they do.
fn name(process: u32) -> Option<String> {
    let name = word(&format!("/proc/{process}/comm"))?;
    let line = fs_err::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
    Some(if line.starts_with(&format!("{name}: ")) { line } else { name })
}

fn word(path: &str) -> Option<String> {
    Some(fs_err::read_to_string(path).ok()?.trim().to_owned())
}

fn status(pid: u32) -> Option<String> {
    fs_err::read_to_string(format!("/proc/{pid}/status")).ok()
}

fn number(status: &str, field: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named_as_open_has_them() {
        assert_eq!(flag_names(libc::O_RDWR | libc::O_CLOEXEC), "O_RDWR|O_CLOEXEC");
        assert_eq!(flag_names(libc::O_WRONLY | libc::O_SYNC), "O_WRONLY|O_SYNC");
        assert_eq!(flag_names(0), "O_RDONLY");
    }

    #[test]
    fn this_process_has_opened_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = fs_err::canonicalize(folder.path()).unwrap().join("file");
        let paths = [path.clone()];
        let own = std::process::id();
        assert_eq!(open_flags(own, &paths), None);
        let _file = fs_err::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let flags = open_flags(own, &paths).unwrap();
        assert!(is_for_writing(flags) && flag_names(flags).starts_with("O_WRONLY|"), "{flags:o}");
        let _read = fs_err::File::open(&path).unwrap();
        assert_eq!(open_flags(own, &paths), Some(flags));
        assert_eq!(who(own).unwrap().process, own);
    }
}
