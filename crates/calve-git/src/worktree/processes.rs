//! Processes at work in a worktree, by proc(5). Without /proc, none are found.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use calve_core::internal::ShownPath;

use crate::environment::is_in_use;
use crate::error::{Error, Result};
use crate::paths::path_of;
use crate::remedy::Remedy;

/// Fails if a process that this user sees has its directory, root, program, an open file or writable mapping in `path`.
pub(super) fn check_idle(path: &Path) -> Result<()> {
    for process in all() {
        let directory = directory(process);
        if let Some(what) = inside(&directory, path).or_else(|| mapped(&directory, path)) {
            let (name, what) = (name(process), ShownPath(&what));
            let text = format!("the process {process} ({}) is inside: `{what}`", ShownPath(&name));
            return Err(Error::refused(text, Remedy::LeaveDirectory));
        }
    }
    Ok(())
}

/// A process of this user that would outlive its worktree.
#[derive(Debug)]
pub struct WorktreeProcess {
    pub pid: u32,
    /// The program's name, which may contain any characters.
    pub name: String,
    pub is_inside: bool,
    /// The worktree's ports that it listens on.
    pub ports: Vec<u16>,
    /// Means this process even if its number is reused.
    handle: OwnedFd,
}

/// Returns this user's processes that are inside the worktree at `path`, or listen on one of its ports. Leaves out this process, those that
/// started it, and others of this program: they remove the worktree too, or keep its services.
pub fn processes(path: &Path, ports: &[u16]) -> Vec<WorktreeProcess> {
    let sockets = listening(ports);
    let me = rustix::process::geteuid().as_raw();
    let starters = starters();
    let this = program(Path::new("/proc/self"));
    let is_own = |process: &u32| {
        !starters.contains(process) && fs_err::metadata(directory(*process)).is_ok_and(|found| found.uid() == me)
    };
    let look = |process: u32| {
        let is_inside = inside(&directory(process), path).is_some();
        let ports = if sockets.is_empty() { Vec::new() } else { listens(&directory(process), &sockets) };
        (is_inside || !ports.is_empty()).then_some((is_inside, ports))
    };
    let found = all().filter(is_own).filter_map(|pid| {
        look(pid)?;
        if this.is_some() && program(&directory(pid)) == this {
            return None;
        }
        let handle = pidfd::open(pid)?;
        // Looks again: until the handle was open, the number could have passed to another process.
        let (is_inside, ports) = look(pid)?;
        Some(WorktreeProcess { pid, name: name(pid), is_inside, ports, handle })
    });
    found.collect()
}

impl WorktreeProcess {
    /// Sends SIGTERM to all of them and waits for their end. Returns those that go on.
    pub fn end(mut these: Vec<WorktreeProcess>, at_most: Duration, cancel: &CancelToken) -> Vec<WorktreeProcess> {
        let give_up = Instant::now() + at_most;
        these.iter().for_each(|process| pidfd::terminate(&process.handle));
        loop {
            these.retain(|process| pidfd::lives(&process.handle));
            if these.is_empty() || Instant::now() > give_up || cancel.is_cancelled() {
                return these;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn directory(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// Returns device and inode of the file that a process runs.
fn program(process: &Path) -> Option<(u64, u64)> {
    fs_err::metadata(process.join("exe")).ok().map(|file| (file.dev(), file.ino()))
}

fn name(process: u32) -> String {
    let name = fs_err::read(directory(process).join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|process| *process != std::process::id())
}

/// Returns this process and those that started it, by proc_pid_stat(5), field 4.
fn starters() -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut process = std::process::id();
    while found.insert(process) {
        let text = fs_err::read(directory(process).join("stat")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        // The second field is the program's name in parentheses, which may contain any characters.
        let parent = text.rsplit(')').next().and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        process = parent.unwrap_or(process);
    }
    found
}

fn open_files(process: &Path) -> impl Iterator<Item = PathBuf> {
    let all = fs_err::read_dir(process.join("fd")).into_iter().flatten().flatten();
    all.filter_map(|entry| fs_err::read_link(entry.path()).ok())
}

/// Returns a file or directory that the process has at or below `path`.
fn inside(process: &Path, path: &Path) -> Option<PathBuf> {
    // A kernel thread runs no program, and has no files.
    let program = fs_err::read_link(process.join("exe")).ok()?;
    let links = ["cwd", "root"].map(|name| process.join(name));
    let links = links.into_iter().filter_map(|link| fs_err::read_link(link).ok());
    std::iter::once(program).chain(links).chain(open_files(process)).find(|target| target.starts_with(path))
}

/// Finds a file below `path` with a shared, writable mapping (proc_pid_maps(5)). Slow: only where data would be lost.
fn mapped(process: &Path, path: &Path) -> Option<PathBuf> {
    let maps = fs_err::read(process.join("maps")).ok()?;
    let files = maps.split(|&byte| byte == b'\n').filter_map(|line| {
        let permissions = line.split(|&byte| byte == b' ').nth(1)?;
        let file = line.iter().position(|&byte| byte == b'/')?;
        matches!(permissions, [_, b'w', _, b's']).then(|| path_of(&line[file..]))
    });
    files.into_iter().find(|file| file.starts_with(path))
}

/// Returns the sockets that listen on these ports, named as the links in `/proc/PID/fd` (proc_pid_net(5), "tcp").
fn listening(ports: &[u16]) -> BTreeMap<PathBuf, u16> {
    const LISTEN: &str = "0A";
    // The tables have all connections of the machine, which takes the kernel 10 ms.
    if !ports.iter().copied().any(is_in_use) {
        return BTreeMap::new();
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs_err::read_to_string(table).unwrap_or_default());
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
        let is_wanted = ports.contains(&port) && *fields.get(3)? == LISTEN;
        is_wanted.then_some((PathBuf::from(format!("socket:[{}]", fields.get(9)?)), port))
    };
    tables.iter().flat_map(|table| table.lines().filter_map(socket)).collect()
}

fn listens(process: &Path, sockets: &BTreeMap<PathBuf, u16>) -> Vec<u16> {
    let ports: BTreeSet<u16> = open_files(process).filter_map(|file| sockets.get(&file).copied()).collect();
    ports.into_iter().collect()
}

#[cfg(target_os = "linux")]
mod pidfd {
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    pub(super) fn open(process: u32) -> Option<OwnedFd> {
        pidfd_open(Pid::from_raw(process.try_into().ok()?)?, PidfdFlags::empty()).ok()
    }

    pub(super) fn terminate(process: &OwnedFd) {
        let _ = pidfd_send_signal(process, Signal::TERM);
    }

    pub(super) fn lives(process: &OwnedFd) -> bool {
        let mut ends = [PollFd::new(process, PollFlags::IN)];
        poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }
}

#[cfg(not(target_os = "linux"))]
mod pidfd {
    use std::os::fd::OwnedFd;

    pub(super) fn open(_: u32) -> Option<OwnedFd> {
        None
    }

    pub(super) fn terminate(_: &OwnedFd) {}

    pub(super) fn lives(_: &OwnedFd) -> bool {
        false
    }
}
