//! The watcher's socket, and the lock that makes it the only one.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FlockOperation};
use rustix::io::Errno;

use crate::claim::ask::{KnownChanges, SOCKET, encode, socket_path};
use crate::claim::store::Home;
use crate::error::{Error, IoContext};
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::vocabulary::operation::Operation;

/// Receives questions. Only this user can enter the store, so only this user can ask.
pub(super) struct QuestionSocket {
    listener: UnixListener,
    path: PathBuf,
    _lock: HeldLock,
}

impl QuestionSocket {
    /// Returns `None` if another process has the watcher's lock.
    pub(super) fn open(home: &Home) -> Result<Option<Self>, Error> {
        let Some(lock) = home.take("watch.lock", FlockOperation::NonBlockingLockExclusive)? else { return Ok(None) };
        // Left by a killed watcher.
        let path = home.path().join(SOCKET);
        let removed = rustix::fs::unlinkat(&home.directory, SOCKET, AtFlags::empty());
        sys::unless_missing(removed).io(Operation::Remove, &path)?;
        let listening = UnixListener::bind(socket_path(home.path(), home.directory.as_fd()))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = listening.io(Operation::Listen, &path)?;
        Ok(Some(Self { listener, path, _lock: lock }))
    }

    /// Waits for a question or an event in a source. Returns also whether there was an event.
    pub(super) fn wait(
        &self,
        queues: Vec<BorrowedFd<'_>>,
        longest: Duration,
    ) -> Result<(Option<Question>, bool), Error> {
        let failed = |source| Error::Io { operation: Operation::Listen, path: self.path.clone(), source };
        let mut waiting = vec![PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN)];
        waiting.extend(queues.into_iter().map(|queue| PollFd::from_borrowed_fd(queue, PollFlags::IN)));
        let longest = Timespec::try_from(longest).ok();
        match poll(&mut waiting, longest.as_ref()) {
            Ok(_) => {}
            // Perhaps the signal that ends it.
            Err(Errno::INTR) => return Ok((None, false)),
            Err(errno) => return Err(failed(errno.into())),
        }
        let happened = waiting.iter().skip(1).any(|one| !one.revents().is_empty());
        match self.listener.accept() {
            Ok((stream, _)) => Ok((Question::read(stream), happened)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::ConnectionAborted | ErrorKind::Interrupted => Ok((None, happened)),
                _ => Err(failed(error)),
            },
        }
    }
}

impl Drop for QuestionSocket {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.path);
    }
}

pub(super) struct Question {
    stream: UnixStream,
    pub(super) spare: String,
}

impl Question {
    /// Returns `None` if no valid question comes in time.
    fn read(stream: UnixStream) -> Option<Self> {
        const PATIENCE: Duration = Duration::from_millis(500);
        const LONGEST: u64 = 256;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut text = Vec::new();
        BufReader::new((&stream).take(LONGEST)).read_until(b'\n', &mut text).ok()?;
        let spare = String::from_utf8(text.strip_suffix(b"\n")?.to_vec()).ok()?;
        Some(Self { stream, spare })
    }

    /// Ignores a failure: the process that asked may be gone.
    pub(super) fn answer(mut self, changes: &KnownChanges) {
        let _ = self.stream.write_all(&encode(changes));
    }
}
