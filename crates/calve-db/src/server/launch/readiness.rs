//! Waiting for a server to answer: it tells by itself (sd_notify(3)), or is asked every millisecond.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::engine::address::Address;
use crate::engine::container::ServerProcess;
use crate::engine::{Engine, Probe};
use crate::error::operation::Operation;
use crate::error::{Error, Result};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::private;
use crate::files::runtime::NOTICES;
use crate::sys;

const PROBE_EVERY: Duration = Duration::from_millis(1);
/// An answer takes a millisecond where nothing else is to be done.
const ANSWERS_IN: Duration = Duration::from_millis(100);
/// A server that is known to tell is asked too, should it not have told by then.
const TRUST_FOR: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(120);

/// Where a server tells that it is ready.
#[derive(Debug)]
pub(crate) struct Notices {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Notices {
    /// Listens in the `directory` of a server, which was renewed (`runtime::renew`) and belongs to this user.
    pub(crate) fn listen(directory: &Path, account: Account) -> Result<Self> {
        let path = directory.join(NOTICES);
        let socket = UnixDatagram::bind(&path).map_err(|error| Error::io(Operation::Listen, &path, error))?;
        socket.set_nonblocking(true).map_err(|error| Error::io(Operation::Listen, &path, error))?;
        private::hide_socket(&path)?;
        Directory::open(directory)?.give(NOTICES, account)?;
        Ok(Self { socket, path })
    }

    /// Returns the socket's path, for the server's environment.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn say_ready(&self) -> bool {
        let mut message = [0; 512];
        let mut ready = false;
        while let Ok(length) = self.socket.recv(&mut message) {
            ready |= message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1");
        }
        ready
    }
}

pub(crate) struct ReadinessWait<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) address: &'a Address,
    pub(crate) notices: &'a Notices,
    /// Whether this program is known to tell.
    pub(crate) notifies: bool,
    /// Readable, or closed, when the server is not wanted any more.
    pub(crate) starter: Option<BorrowedFd<'a>>,
    pub(crate) cancel: &'a calve_core::CancelToken,
    /// Called while it is waited.
    pub(crate) meanwhile: &'a dyn Fn(),
}

/// Waits until the server answers. Says whether it told so by itself.
pub(crate) fn wait(server: &mut ServerProcess, waiting: &ReadinessWait<'_>) -> Result<bool> {
    let started = Instant::now();
    let failed = |how: String| Err(Error::server_failed(how));
    loop {
        (waiting.meanwhile)();
        if waiting.notices.say_ready() {
            return Ok(true);
        }
        if let Some(ended) = server.ended() {
            return failed(format!("ended before it was ready ({})", ended));
        }
        if !waiting.notifies || started.elapsed() > TRUST_FOR {
            // A machine that is busy takes its time, and asking anew each time makes it busier.
            let patience = ANSWERS_IN.max(started.elapsed() / 10);
            match waiting.engine.probe(waiting.address, patience) {
                Probe::Ready => return Ok(waiting.notices.say_ready()),
                Probe::Refused(said) => return failed(format!("refuses to be used: {said}")),
                Probe::NotYet => {}
            }
        }
        if started.elapsed() > PATIENCE {
            return failed(format!("was not ready after {} s", PATIENCE.as_secs()));
        }
        if waiting.cancel.is_cancelled() || pause(server, waiting) {
            return Err(Error::Interrupted);
        }
    }
}

/// Waits until something happens, at most a millisecond, or 50 if the server tells when it is ready. Returns whether the starter has gone.
fn pause(server: &ServerProcess, waiting: &ReadinessWait<'_>) -> bool {
    let limit = if waiting.notifies { PROBE_EVERY * 50 } else { PROBE_EVERY };
    let others = server.end().into_iter().chain([waiting.notices.socket.as_fd()]);
    let ready = sys::wait_for_any(waiting.starter.into_iter().chain(others), limit);
    waiting.starter.is_some() && ready[0]
}
