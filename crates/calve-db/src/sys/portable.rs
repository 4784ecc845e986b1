//! macOS: no namespaces, and processes by number.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::sys::{Launch, ProcessEnd, SEGMENT_HEAD, Segment};

/// The isolation that could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "only Linux has namespaces")]
pub(crate) enum Isolation {
    Full,
    None(Errno),
}

/// Isolates nothing: there are no namespaces.
pub(crate) fn isolate(_needed: &[&Path]) -> Result<Isolation, Errno> {
    Ok(Isolation::None(Errno::NOSYS))
}

/// Does nothing: no call is known to lower the priority of a thread here.
pub(crate) fn lower_priority() {}

/// Fails: there are no private mounts.
pub(crate) fn bind(_what: &Path, _at: &Path) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Does nothing: there are no private mounts.
pub(crate) fn unbind(_at: &Path) {}

/// Asks for everything to be written to the disk.
pub(crate) fn sync_file_system(_path: &Path) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// Does nothing: only Linux hands orphans to an ancestor of choice.
pub(crate) fn adopt_orphans() {}

/// Returns this user: the directory that a socket is in protects it.
pub(crate) fn peer_uid(_socket: impl AsFd) -> io::Result<u32> {
    Ok(rustix::process::geteuid().as_raw())
}

/// Returns the process that listens at the other end of a socket; `None` if that cannot be told.
pub(crate) fn listener(_socket: &UnixStream) -> Option<u32> {
    None
}

/// Connects to a socket.
pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket)
}

/// Returns `true`: nothing here tells the process at the other end.
pub(crate) fn descends(_socket: &UnixStream, _from: &[u32]) -> bool {
    true
}

/// A process, by its number.
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

/// Does nothing: nothing here tells which processes have a file open.
pub(crate) fn kill_users(_path: &Path) {}

/// Kills a process, but not its children: nothing here tells which they are.
pub(crate) fn end_tree(root: &ProcessHandle) {
    root.signal(Signal::KILL);
}

/// Processes that do not run: there are none.
pub(crate) struct FrozenProcesses;

/// Fails: nothing here tells which processes are the server's.
pub(crate) fn freeze() -> io::Result<FrozenProcesses> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns 0 for a process that exists: nothing here tells when it started.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    ProcessHandle::open(pid, None).map(|_| 0)
}

/// Returns none: nothing here tells which they are.
pub(crate) fn children(_pid: u32) -> Vec<u32> {
    Vec::new()
}

/// Returns none: nothing here tells which they are.
pub(crate) fn members(_session: u32, _began: u64) -> Vec<ProcessHandle> {
    Vec::new()
}

/// Returns none: nothing here tells the arguments of processes.
pub(crate) fn with_argument(_program: &str, _argument: &str) -> Vec<ProcessHandle> {
    Vec::new()
}

/// Returns an empty word: there are no process namespaces.
pub(crate) fn process_namespace() -> String {
    String::new()
}

/// Returns an empty word: nothing here tells one run of the machine from another.
pub(crate) fn boot() -> String {
    String::new()
}

/// Returns none: nothing here tells which segments there are.
pub(crate) fn segments() -> Vec<Segment> {
    Vec::new()
}

/// Does nothing: servers here end in order, and remove their memory themselves.
pub(crate) fn remove_segment(_segment: &Segment) {}

/// Returns `None`: nothing here reads segments.
pub(crate) fn read_segment(_segment: &Segment) -> Option<[u8; SEGMENT_HEAD]> {
    None
}

/// Does nothing: servers here end in order, and remove their memory themselves.
pub(crate) fn remove_shared(_segment: &Segment, _name: &str) {}

/// Does nothing: this process inherits no orphans here.
pub(crate) fn collect_orphan(_pid: u32) {}

/// A server's first process.
pub(crate) struct Server {
    child: Child,
}

pub(crate) fn spawn(launch: &Launch<'_>) -> io::Result<Server> {
    let text = |bytes: &std::ffi::CString| OsStr::from_bytes(bytes.as_bytes()).to_owned();
    let Some((program, arguments)) = launch.command.split_first() else { return Err(Errno::INVAL.into()) };
    let mut command = Command::new(text(program));
    command.args(arguments.iter().map(text)).current_dir(text(&launch.directory));
    command.env_clear();
    for variable in &launch.environment {
        let bytes = variable.as_bytes();
        let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { continue };
        command.env(OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
    }
    command.stdin(Stdio::from(launch.input.try_clone_to_owned()?));
    command.stdout(Stdio::from(launch.log.try_clone_to_owned()?));
    command.stderr(Stdio::from(launch.log.try_clone_to_owned()?));
    if let Some((user, group)) = launch.account {
        command.uid(user).gid(group);
    }
    command.process_group(0);
    Ok(Server { child: command.spawn()? })
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
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
            self.signal(Signal::KILL);
            let _ = self.wait();
        }
    }
}

/// Returns `None`: nothing here tells what other processes work in.
pub(crate) fn works_in(_directory: &std::path::Path, _programs: &[&str]) -> Option<i32> {
    None
}

/// Returns `None`: nothing here tells which process has a lock.
pub(crate) fn lock_holder(_file: std::os::fd::BorrowedFd<'_>) -> Option<i32> {
    None
}

/// Opens a TCP socket that programs do not inherit.
pub(crate) fn stream_socket() -> rustix::io::Result<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let made = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&made, rustix::io::FdFlags::CLOEXEC)?;
    Ok(made)
}

/// Returns `None`: there are no such names here.
pub(crate) fn hold_name(_: &str) -> rustix::io::Result<Option<std::os::fd::OwnedFd>> {
    Ok(None)
}

pub(crate) fn memory_bytes(_process: u32) -> Option<u64> {
    None
}

pub(crate) fn tree(process: u32) -> Vec<u32> {
    vec![process]
}
