//! Waits for a server to answer: it reports that itself (sd_notify(3)), or is probed every millisecond.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::request::LaunchRequest;
use crate::engine::Refusal;
use crate::engine::container::process::ServerProcess;
use crate::error::{AtPath as _, Error, Result};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::private;
use crate::files::runtime::NOTICES;

const PROBE_EVERY: Duration = Duration::from_millis(1);
/// The least wait for an answer, which takes a millisecond on an idle machine.
const ANSWERS_IN: Duration = Duration::from_millis(100);
/// A server that is known to report readiness is probed too, if it has not done so by then.
const TRUST_FOR: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Notices {
    socket: UnixDatagram,
    pub(super) path: PathBuf,
}

impl Notices {
    /// Listens in a server's runtime directory, which was renewed (`runtime::renew`) and is this user's.
    pub(crate) fn listen(directory: &Path, account: Account) -> Result<Self> {
        let path = directory.join(NOTICES);
        let socket = UnixDatagram::bind(&path).at("listen at", &path)?;
        socket.set_nonblocking(true).at("listen at", &path)?;
        private::hide_socket(&path)?;
        Directory::open(directory)?.give(NOTICES, account)?;
        Ok(Self { socket, path })
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

/// Calls `meanwhile` until the server answers. Returns whether it reported that itself. `tells`: it is known to.
pub(super) fn wait(
    server: &mut ServerProcess,
    wanted: &LaunchRequest<'_>,
    notices: &Notices,
    tells: bool,
    meanwhile: &dyn Fn(),
) -> Result<bool> {
    let started = Instant::now();
    let failed = |how: String| Err(Error::server_failed(how));
    loop {
        meanwhile();
        if notices.say_ready() {
            return Ok(true);
        }
        if let Some(ended) = server.ended() {
            return failed(format!("ended before it was ready ({ended})"));
        }
        if !tells || started.elapsed() > TRUST_FOR {
            // A busy machine takes its time, and repeated questions make it busier.
            let patience = ANSWERS_IN.max(started.elapsed() / 10);
            match wanted.engine.probe(wanted.address, patience) {
                Ok(()) => return Ok(notices.say_ready()),
                Err(Refusal::Said(said)) => return failed(format!("refuses to be used: {said}")),
                Err(Refusal::NotYet) => {}
            }
        }
        if started.elapsed() > PATIENCE {
            return failed(format!("was not ready after {} s", PATIENCE.as_secs()));
        }
        let limit = if tells { PROBE_EVERY * 50 } else { PROBE_EVERY };
        let others = server.end().into_iter().chain([notices.socket.as_fd()]);
        if wanted.is_left_within(limit, others) {
            return Err(Error::Interrupted);
        }
    }
}
