//! Other processes: whether they live, and whether they are those that they were.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

/// A process that is held by its descriptor: its number cannot come to mean another one.
pub(crate) struct ProcessHandle {
    pub(super) descriptor: OwnedFd,
    pub(super) pid: u32,
}

impl ProcessHandle {
    /// Opens a process by its number. `None` when there is no such process, or when it did not start at `started`.
    pub(crate) fn open(pid: u32, started: Option<u64>) -> Option<Self> {
        Self::open_if(pid, |pid| start_time(pid).is_some_and(|now| started.is_none_or(|then| then == now)))
    }

    /// Opens a process for which this holds when it is open: facts about the number then hold for the process.
    fn open_if(pid: u32, is_wanted: impl Fn(u32) -> bool) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let descriptor = rustix::process::pidfd_open(number, PidfdFlags::empty()).ok()?;
        is_wanted(pid).then_some(Self { descriptor, pid })
    }

    /// Becomes readable when the process ends.
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

/// A process that has been killed and gives back what it had (PF_EXITING in the kernel's sched.h).
const EXITING: u64 = 4;

/// Returns when a process started, in the kernel's ticks since boot. `None` when it is gone, or about to be.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Kinship::find(pid).filter(|process| process.flags & EXITING == 0).map(|process| process.started)
}

/// The relations of a process, until it has ended: also while it gives back what it had.
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
        // The second field is the program's name in brackets, in which anything may be.
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
        let (parent, session) = (number(4)?.try_into().ok()?, number(6)?.try_into().ok()?);
        Some(Self { parent, session, flags: number(9)?, started: number(22)? })
    }
}

/// Returns the process that started another one, or that adopted it.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    Kinship::find(pid).map(|kinship| kinship.parent)
}

/// Returns the processes of the session that the process `session` began, which started at `began`. Its number is not used again while one
/// of them is there.
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

/// Finds the processes of a program, by its file's name, that have this argument.
pub(crate) fn with_argument(program: &str, argument: &str) -> Vec<ProcessHandle> {
    let is_one = |pid: u32| {
        let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let name = words.next().and_then(|path| path.rsplit(|byte| *byte == b'/').next());
        name == Some(program.as_bytes()) && words.any(|word| word == argument.as_bytes())
    };
    matching(is_one).collect()
}

/// Opens all processes for which this holds, also those that have been killed and give back what they had.
fn matching(is_one: impl Fn(u32) -> bool) -> impl Iterator<Item = ProcessHandle> {
    all().filter_map(move |pid| if is_one(pid) { ProcessHandle::open_if(pid, &is_one) } else { None })
}

fn all() -> impl Iterator<Item = u32> {
    let processes = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills the processes that have a file open, but for those of this program.
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

/// Finds the process of one of these programs whose working directory this is, of those that can be seen from here.
pub(crate) fn works_in(directory: &Path, programs: &[&str]) -> Option<i32> {
    let wanted = rustix::fs::stat(directory).ok()?;
    let is_one = |pid: &u32| {
        let name = fs_err::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        programs.contains(&name.trim_end())
            // The directory that it works in, also where that has another path for it, as in a container.
            && rustix::fs::stat(format!("/proc/{pid}/cwd"))
                .is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino))
    };
    all().find(is_one).and_then(|pid| i32::try_from(pid).ok())
}

/// Kills a process and its descendants. They are stopped first, so that none of them starts another one meanwhile, and none loses its
/// parent before it is found.
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

/// Returns a word for the process namespace in which this process's numbers mean something.
pub(crate) fn process_namespace() -> String {
    fs_err::read_link("/proc/self/ns/pid").unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the children that the first thread of a process has started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Returns a word for this run of the machine.
pub(crate) fn boot() -> String {
    fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the process that has a record lock on a file (fcntl(2)), or 0 if it cannot be seen from here.
pub(crate) fn lock_holder(file: BorrowedFd<'_>) -> Option<i32> {
    let wanted = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
    let found = rustix::process::fcntl_getlk(file, &wanted).ok()??;
    Some(found.pid.map_or(0, |pid| pid.as_raw_nonzero().get()))
}

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
