//! A server's first process: a child of this one, or in a container whose runtime is the child.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Container;
use crate::error::{Error, Result};
use crate::sys::{ProcessEnd, Server, wait_for_any};

/// Runtimes exit with this plus the number of the signal that ended the container's first process.
const BY_SIGNAL: i32 = 128;
/// How long a runtime may take to notice that its container is gone.
const NOTICES_IN: Duration = Duration::from_secs(10);

pub(crate) struct ServerProcess {
    server: Server,
    container: Option<Container>,
    /// Why its container could not be removed.
    left: Option<Error>,
}

impl ServerProcess {
    pub(crate) fn new(server: Server, container: Option<Container>) -> Self {
        Self { server, container, left: None }
    }

    /// Returns the pid of the server's first process, or of the container's runtime.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.server.process.end()
    }

    pub(crate) fn ask_to_end(&self, signal: Signal) -> Result<()> {
        match &self.container {
            None => self.server.process.signal(signal),
            Some(container) => container.signal(signal)?,
        }
        Ok(())
    }

    pub(crate) fn kill(&mut self) {
        let Some(container) = &self.container else { return self.server.process.signal(Signal::KILL) };
        // The runtime ends with its container. Before that exists, the runtime is killed first.
        if !matches!(container.remove(), Ok(true)) || !self.ends_within(NOTICES_IN) {
            self.server.process.signal(Signal::KILL);
            self.ends_within(NOTICES_IN);
            self.left = container.remove_late().err();
        }
    }

    /// Fails if its container could not be removed after a kill.
    pub(crate) fn check_removed(&mut self) -> Result<()> {
        self.left.take().map_or(Ok(()), Err)
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let Some(end) = self.server.process.end() else { return false };
        let started = Instant::now();
        loop {
            let left = limit.saturating_sub(started.elapsed());
            let has_ended = wait_for_any([end], left)[0];
            if has_ended || left.is_zero() {
                return has_ended;
            }
        }
    }

    pub(crate) fn ended(&mut self) -> Option<ProcessEnd> {
        self.server.ended().map(|ended| self.of_container(ended))
    }

    pub(crate) fn wait(&mut self) -> Option<ProcessEnd> {
        self.server.wait().map(|ended| self.of_container(ended))
    }

    fn of_container(&mut self, ended: ProcessEnd) -> ProcessEnd {
        match (&self.container, ended) {
            (Some(_), ProcessEnd::Exit(code)) if code > BY_SIGNAL => ProcessEnd::Signal(code - BY_SIGNAL),
            (Some(container), ProcessEnd::Signal(_)) => {
                // A killed runtime leaves its container.
                match container.remove() {
                    Ok(true) => (self.container, self.left) = (None, None),
                    // Nothing was left, unless an earlier removal failed.
                    Ok(false) => self.container = self.container.take().filter(|_| self.left.is_some()),
                    Err(error) => self.left = Some(error),
                }
                ended
            }
            _ => ended,
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.container.is_some() && self.ended().is_none() {
            self.kill();
            let _ = self.wait();
        }
    }
}
