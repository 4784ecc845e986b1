//! Starts the server: a fork that can make a PID namespace, and a child that the kernel ends with its parent.
//!
//! `Command` cannot do this: a change of user clears the tie to the parent (PR_SET_PDEATHSIG), which must come after
//! it; and a parent can set the namespace of its later children only once, where each reset needs a new one.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::null;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::process::ProcessHandle;
use crate::sys::{Launch, ProcessEnd};

pub(crate) struct Server {
    pub(crate) process: ProcessHandle,
    ended: Option<ProcessEnd>,
}

/// Starts a server. Fails only if the start does: later errors are in its log.
pub(crate) fn spawn(launch: &Launch<'_>) -> io::Result<Server> {
    let (reader, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Not `NotFound`, which means a missing program.
    let nothing = fs_err::File::open("/dev/null").map_err(io::Error::other)?;
    let command = launch.command.iter().map(|word| c_text(word)).collect::<io::Result<Vec<_>>>()?;
    let variable = |(name, value): &(OsString, OsString)| c_text(&[&**name, value].join(OsStr::new("=")));
    let variables = launch.environment.iter().map(variable).collect::<io::Result<Vec<_>>>()?;
    let directory = c_text(launch.directory.as_os_str())?;
    let (arguments, environment) = (pointers(&command), pointers(&variables));
    let flags = libc::SIGCHLD | libc::CLONE_PIDFD | if launch.own_processes { libc::CLONE_NEWPID } else { 0 };
    let mut descriptor: c_int = -1;
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything, and goes on here. The third argument is
    // where the parent gets the descriptor (CLONE_PIDFD); the others are not used with these flags. All that the child
    // calls before execve is safe after a fork of a process with threads: it only makes system calls.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, c_long::from(flags), 0 as c_long, &raw mut descriptor, 0 as c_long, 0 as c_long)
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let (reader, said) = (reader.as_raw_fd(), tell.as_raw_fd());
            let errno = become_server(launch, nothing.as_fd(), &arguments, &environment, &directory, reader, said);
            let _ = rustix::io::write(&tell, &errno.to_ne_bytes());
            // SAFETY: ends this process at once, running nothing of the parent's.
            unsafe { libc::_exit(127) }
        }
        pid => {
            // SAFETY: the kernel has made this descriptor for this call, and nothing else has it.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            let process = ProcessHandle { descriptor, pid: u32::try_from(pid).unwrap_or_default() };
            let mut server = Server { process, ended: None };
            drop(tell);
            let mut errno = [0; 4];
            // Reads nothing once execve has closed the other end.
            match crate::sys::retry(|| rustix::io::read(&reader, &mut errno)) {
                Ok(4) => {
                    let _ = server.wait();
                    Err(io::Error::from_raw_os_error(c_int::from_ne_bytes(errno)))
                }
                _ => Ok(server),
            }
        }
    }
}

fn c_text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
}

/// Runs in the child. Returns only when something fails, with the error number.
fn become_server(
    launch: &Launch<'_>,
    input: BorrowedFd<'_>,
    arguments: &[*const c_char],
    environment: &[*const c_char],
    directory: &CStr,
    reader: RawFd,
    tell: RawFd,
) -> c_int {
    let check = |result: c_int| if result < 0 { Err(last_errno()) } else { Ok(()) };
    let run = || -> Result<(), c_int> {
        // SAFETY: system calls on numbers and on pointers that stay valid until execve: to the child's copies of strings that
        // end in a zero byte, and of lists that end in a null pointer. The raw calls for the user change this process,
        // which has one thread, and do not involve the C library's bookkeeping of threads.
        unsafe {
            check(libc::close(reader))?;
            // Not a new session: a sweep looks for members of the supervisor's.
            check(libc::setpgid(0, 0))?;
            for (from, to) in [(input, 0), (launch.log, 1), (launch.log, 2)] {
                check(libc::dup2(BorrowedFd::as_raw_fd(&from), to))?;
            }
            check(libc::chdir(directory.as_ptr()))?;
            if let Some((user, group)) = launch.account {
                raw(libc::SYS_setgroups, [0, 0, 0])?;
                raw(libc::SYS_setresgid, [group.into(); 3])?;
                raw(libc::SYS_setresuid, [user.into(); 3])?;
            }
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The only sign of a parent that ended before that call.
            let mut parent = libc::pollfd { fd: tell, events: 0, revents: 0 };
            if libc::poll(&raw mut parent, 1, 0) > 0 && parent.revents & libc::POLLERR != 0 {
                return Err(libc::ECANCELED);
            }
            // Rust ignores it, and programs inherit that.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execve(arguments[0], arguments.as_ptr(), environment.as_ptr());
        }
        Err(last_errno())
    };
    run().err().unwrap_or_default()
}

/// Makes a system call, and returns the error number if it fails.
///
/// # Safety
/// The arguments must be what the system call expects.
unsafe fn raw(call: c_long, [a, b, c]: [c_long; 3]) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    if unsafe { libc::syscall(call, a, b, c) } < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid
    }

    pub(crate) fn ended(&mut self) -> Option<ProcessEnd> {
        self.collect(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    pub(crate) fn wait(&mut self) -> Option<ProcessEnd> {
        self.collect(WaitIdOptions::EXITED)
    }

    fn collect(&mut self, options: WaitIdOptions) -> Option<ProcessEnd> {
        if self.ended.is_none() {
            let id = || WaitId::PidFd(self.process.descriptor.as_fd());
            let status = crate::sys::retry(|| rustix::process::waitid(id(), options));
            self.ended = match status {
                Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ProcessEnd::Exit(code),
                    (None, signal) => ProcessEnd::Signal(signal.unwrap_or_default()),
                }),
                // It was collected before, so its end is unknown.
                Err(Errno::CHILD) => Some(ProcessEnd::Signal(0)),
                _ => None,
            };
        }
        self.ended
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

/// Reaps an inherited child, which would stay a zombie.
pub(crate) fn collect_orphan(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
