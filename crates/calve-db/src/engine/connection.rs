//! A connection to a server that this process has started.
//!
//! The socket is in a directory of the server's account, which can put a link to another server's socket there. So a connection checks
//! who is at the other end, and a peer that keeps silent or never stops sending cannot block Calve for longer than the time limit.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::address::Address;
use crate::sys;

/// How much a server may answer: Calve asks for a few names.
const LONGEST_ANSWER: usize = 1 << 20;

static FIRST_PROCESSES: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// Returns, by the socket of its server, the first process of each server that this process has started without being its ancestor. Connections to
/// that process or a descendant of it are permitted.
pub(crate) fn first_processes() -> MutexGuard<'static, BTreeMap<PathBuf, u32>> {
    FIRST_PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Connection {
    stream: UnixStream,
    until: Instant,
    left_bytes: usize,
}

impl Connection {
    /// Returns `None` when nothing listens there, or another server.
    pub(crate) fn open(server: &Address, patience: Duration) -> Option<Self> {
        let stream = sys::connect(&server.socket).ok()?;
        // A container of Docker's is no descendant of this process.
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
