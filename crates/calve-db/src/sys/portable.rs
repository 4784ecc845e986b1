//! macOS: no namespaces, and processes by number.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::sys::{Launch, ProcessEnd, SEGMENT_HEAD, Segment};

absent! {
    fn isolate(_needed: &[&Path]) -> Result<Option<LeftMounts>, Errno> = Ok(None);
    fn bind(_what: &Path, _at: &Path) -> Result<(), Errno> = Err(Errno::NOSYS);
    fn listener(_socket: &UnixStream) -> Option<u32> = None;
    fn read_segment(_segment: &Segment) -> Option<[u8; SEGMENT_HEAD]> = None;
    fn works_in(_directory: &Path, _programs: &[&str]) -> Option<i32> = None;
    fn lock_holder(_file: BorrowedFd<'_>) -> Option<i32> = None;
    fn memory_bytes(_process: u32) -> Option<u64> = None;
    fn descends(_socket: &UnixStream, _from: &[u32]) -> bool = true;
    fn freeze() -> io::Result<FrozenProcesses> = Err(io::ErrorKind::Unsupported.into());
    fn children(_pid: u32) -> Vec<u32> = Vec::new();
    fn members(_session: u32, _began: u64) -> Vec<ProcessHandle> = Vec::new();
    fn with_argument(_program: &str, _argument: &str) -> Vec<ProcessHandle> = Vec::new();
    fn segments() -> Vec<Segment> = Vec::new();
    fn process_namespace() -> String = String::new();
    fn boot() -> String = String::new();
    fn hold_name(_name: &str) -> rustix::io::Result<Option<OwnedFd>> = Ok(None);
    fn lower_priority();
    fn unbind(_at: &Path);
    // Nothing here tells which processes have a file open.
    fn kill_users(_path: &Path);
    // Only Linux hands orphans to an ancestor of choice.
    fn adopt_orphans();
    fn collect_orphan(_pid: u32);
    // Servers here are shut down cleanly, and remove their memory themselves.
    fn remove_segment(_segment: &Segment);
    fn remove_shared(_segment: &Segment, _name: &str);
}

pub(crate) struct LeftMounts;

impl LeftMounts {
    pub(crate) fn follow(&mut self) {}
}

pub(crate) fn sync_file_system(_path: &Path) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// Returns this user: the socket's directory protects it.
pub(crate) fn peer_uid(_socket: impl AsFd) -> io::Result<u32> {
    Ok(rustix::process::geteuid().as_raw())
}

pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket)
}

pub(crate) struct ProcessHandle(Pid);

impl ProcessHandle {
    pub(crate) fn open(pid: u32, _started: Option<u64>) -> Option<Self> {
        let watched = Self(Pid::from_raw(i32::try_from(pid).ok()?)?);
        watched.lives().then_some(watched)
    }

    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(self.0, signal);
    }

    pub(crate) fn lives(&self) -> bool {
        rustix::process::test_kill_process(self.0) != Err(Errno::SRCH)
    }
}

/// Kills a process, but not its children: nothing here tells which they are.
pub(crate) fn end_tree(root: &ProcessHandle) {
    root.signal(Signal::KILL);
}

pub(crate) struct FrozenProcesses;

/// Returns 0 for a process that exists: nothing here tells when it started.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    ProcessHandle::open(pid, None).map(|_| 0)
}

pub(crate) struct Server {
    pub(crate) process: ProcessHandle,
    child: Child,
}

pub(crate) fn spawn(launch: &Launch<'_>) -> io::Result<Server> {
    let Some((program, arguments)) = launch.command.split_first() else { return Err(Errno::INVAL.into()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(launch.directory);
    command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null());
    command.stdout(Stdio::from(launch.log.try_clone_to_owned()?));
    command.stderr(Stdio::from(launch.log.try_clone_to_owned()?));
    if let Some((user, group)) = launch.account {
        command.uid(user).gid(group);
    }
    command.process_group(0);
    let child = command.spawn()?;
    Ok(Server { process: ProcessHandle(Pid::from_child(&child)), child })
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended(&mut self) -> Option<ProcessEnd> {
        self.child.try_wait().ok().flatten().map(ended)
    }

    pub(crate) fn wait(&mut self) -> Option<ProcessEnd> {
        self.child.wait().ok().map(ended)
    }
}

fn ended(status: std::process::ExitStatus) -> ProcessEnd {
    match status.code() {
        Some(code) => ProcessEnd::Exit(code),
        None => ProcessEnd::Signal(status.signal().unwrap_or_default()),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.process.signal(Signal::KILL);
            let _ = self.wait();
        }
    }
}

pub(crate) fn stream_socket() -> rustix::io::Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let made = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&made, rustix::io::FdFlags::CLOEXEC)?;
    Ok(made)
}

pub(crate) fn tree(process: u32) -> Vec<u32> {
    vec![process]
}
