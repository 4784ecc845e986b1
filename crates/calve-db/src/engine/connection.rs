//! A connection to a server that this process has started.
//!
//! The server's account owns the socket's directory, and can put a link to another server's socket there. So a
//! connection checks its peer, and one that stays silent or never stops sending blocks Calve no longer than the limit.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::address::Address;
use crate::sys;

/// The limit of an answer: Calve asks for a few names.
const LONGEST_ANSWER: usize = 1 << 20;

static FIRST_PROCESSES: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// Returns the first processes, by socket, of servers that this process started without being their ancestor.
pub(super) fn first_processes() -> MutexGuard<'static, BTreeMap<PathBuf, u32>> {
    FIRST_PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn forget_first_process(server: &Address) {
    first_processes().remove(&server.socket);
}

pub(crate) struct Connection {
    stream: UnixStream,
    until: Instant,
    left_bytes: usize,
}

impl Connection {
    /// Returns `None` if no server listens there, or a foreign one.
    pub(crate) fn open(server: &Address, patience: Duration) -> Option<Self> {
        let stream = sys::connect(&server.socket).ok()?;
        // Docker's containers are no descendants of this process.
        let ours = [Some(std::process::id()), first_processes().get(&server.socket).copied()];
        sys::descends(&stream, &ours.into_iter().flatten().collect::<Vec<u32>>()).then(|| Self::over(stream, patience))
    }

    pub(crate) fn over(stream: UnixStream, patience: Duration) -> Self {
        Self { stream, until: Instant::now() + patience, left_bytes: LONGEST_ANSWER }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        self.stream.set_read_timeout(left)?;
        let length = self.stream.read(buffer)?;
        self.left_bytes = self.left_bytes.checked_sub(length).ok_or(io::ErrorKind::InvalidData)?;
        Ok(length)
    }
}

impl Write for Connection {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        self.stream.set_write_timeout(left)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
