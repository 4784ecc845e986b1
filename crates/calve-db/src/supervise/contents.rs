//! Looking at what the databases of a server hold.

use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::Supervisor;
use crate::engine::DatabaseObject;
use crate::error::Result;

impl Supervisor<'_> {
    /// Asks what the databases hold, for as long as the starter waits for it.
    pub(super) fn contents(&self, talk: &UnixStream) -> Result<Vec<DatabaseObject>> {
        let (engine, address) = (self.engine, &self.address);
        std::thread::scope(|scope| {
            let asked = scope.spawn(move || engine.contents(address));
            while !asked.is_finished() {
                let mut fds = [PollFd::new(talk, PollFlags::empty())];
                let limit = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                if matches!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1..)) {
                    // It hung up. The query ends with the server.
                    self.launched.server.kill();
                    break;
                }
            }
            asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
