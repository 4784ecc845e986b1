//! Other processes: finding them, and telling them from later ones with the same pid.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

/// A process held by its descriptor, so that its pid cannot come to mean another one.
pub(crate) struct ProcessHandle {
    pub(super) descriptor: OwnedFd,
    pub(super) pid: u32,
}

impl ProcessHandle {
    /// Opens a process by its pid. `None`: it does not exist, or did not start at `started`.
    pub(crate) fn open(pid: u32, started: Option<u64>) -> Option<Self> {
        Self::open_if(pid, |pid| start_time(pid).is_some_and(|now| started.is_none_or(|then| then == now)))
    }

    /// Tests `is_wanted` with the process open: facts about the pid then hold for the process.
    fn open_if(pid: u32, is_wanted: impl Fn(u32) -> bool) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let descriptor = rustix::process::pidfd_open(number, PidfdFlags::empty()).ok()?;
        is_wanted(pid).then_some(Self { descriptor, pid })
    }

    /// Returns a descriptor that becomes readable when the process ends.
    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = rustix::process::pidfd_send_signal(&self.descriptor, signal);
    }

    pub(crate) fn lives(&self) -> bool {
        !crate::sys::wait_for_any([self.descriptor.as_fd()], Duration::ZERO)[0]
    }
}

/// The flag of an exiting process (PF_EXITING in the kernel's sched.h).
const EXITING: u64 = 4;

/// Returns a process's start, in the kernel's ticks since boot. `None`: it is gone, or exiting.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Kinship::find(pid).filter(|process| process.flags & EXITING == 0).map(|process| process.started)
}

/// The relations of a process until it has ended, even while it exits.
struct Kinship {
    parent: u32,
    session: u32,
    flags: u64,
    started: u64,
}

impl Kinship {
    /// Reads fields 4, 6, 9 and 22 of proc_pid_stat(5).
    fn find(pid: u32) -> Option<Self> {
        let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field, the program's name in brackets, may contain anything.
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
        let (parent, session) = (number(4)?.try_into().ok()?, number(6)?.try_into().ok()?);
        Some(Self { parent, session, flags: number(9)?, started: number(22)? })
    }
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    Kinship::find(pid).map(|kinship| kinship.parent)
}

/// Returns the members of the session whose leader started at `began`. Its pid is not reused while one of them lives.
pub(crate) fn members(session: u32, began: u64) -> Vec<ProcessHandle> {
    if Kinship::find(session).is_some_and(|leader| leader.started != began) {
        return Vec::new();
    }
    let is_member = |pid: u32| {
        let found = Kinship::find(pid).filter(|_| pid != std::process::id());
        found.is_some_and(|found| found.session == session && found.started >= began)
    };
    matching(is_member).collect()
}

/// Finds processes by their program's file name and one argument.
pub(crate) fn with_argument(program: &str, argument: &str) -> Vec<ProcessHandle> {
    let is_one = |pid: u32| {
        let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let name = words.next().and_then(|path| path.rsplit(|byte| *byte == b'/').next());
        name == Some(program.as_bytes()) && words.any(|word| word == argument.as_bytes())
    };
    matching(is_one).collect()
}

/// Opens all processes that match, even exiting ones.
fn matching(is_one: impl Fn(u32) -> bool) -> impl Iterator<Item = ProcessHandle> {
    all().filter_map(move |pid| if is_one(pid) { ProcessHandle::open_if(pid, &is_one) } else { None })
}

fn all() -> impl Iterator<Item = u32> {
    let processes = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills the processes that have a file open, except those of this program.
pub(crate) fn kill_users(path: &Path) {
    let program = |pid: &str| fs_err::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let has_open = |pid: u32| {
        let files = fs_err::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs_err::read_link(file.path()).is_ok_and(|open| open == path))
    };
    let users = matching(|pid| has_open(pid) && program(&pid.to_string()) != own);
    users.for_each(|process| process.signal(Signal::KILL));
}

/// Finds a visible process of one of these programs by its working directory.
pub(crate) fn works_in(directory: &Path, programs: &[&str]) -> Option<i32> {
    let wanted = rustix::fs::stat(directory).ok()?;
    let is_one = |pid: &u32| {
        let name = fs_err::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        programs.contains(&name.trim_end())
            // By identity: the directory may have another path there, as in a container.
            && rustix::fs::stat(format!("/proc/{pid}/cwd"))
                .is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino))
    };
    all().find(is_one).and_then(|pid| i32::try_from(pid).ok())
}

/// Kills a process and its descendants. Stops them first, so that none starts another, or loses its parent unseen.
pub(crate) fn end_tree(root: &ProcessHandle) {
    root.signal(Signal::STOP);
    let mut family: Vec<ProcessHandle> = Vec::new();
    let mut rounds_without = 0;
    while rounds_without < 2 && root.lives() {
        let is_in = |family: &[ProcessHandle], pid| pid == root.pid || family.iter().any(|found| found.pid == pid);
        let before = family.len();
        for pid in all().filter(|pid| !is_in(&family, *pid)).collect::<Vec<_>>() {
            let is_child = || parent(pid).is_some_and(|parent| is_in(&family, parent));
            if is_child()
                && let Some(child) = ProcessHandle::open(pid, None)
                && is_child()
            {
                child.signal(Signal::STOP);
                family.push(child);
            }
        }
        rounds_without = if family.len() == before { rounds_without + 1 } else { 0 };
    }
    family.iter().chain([root]).for_each(|process| process.signal(Signal::KILL));
}

pub(crate) fn process_namespace() -> String {
    fs_err::read_link("/proc/self/ns/pid").unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the children that the first thread of a process has started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

pub(crate) fn boot() -> String {
    fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the process with a record lock on a file (fcntl(2)). 0: it cannot be seen from here.
pub(crate) fn lock_holder(file: BorrowedFd<'_>) -> Option<i32> {
    let wanted = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
    let found = rustix::process::fcntl_getlk(file, &wanted).ok()??;
    Some(found.pid.map_or(0, |pid| pid.as_raw_nonzero().get()))
}

pub(crate) fn descendants() -> Vec<u32> {
    tree(std::process::id()).split_off(1)
}

/// Returns a process's physical memory, with its share of shared pages (proc_pid_smaps(5)).
pub(crate) fn memory_bytes(process: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

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
