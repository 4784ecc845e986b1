//! Requests to a supervisor from processes other than its starter.

use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::error::{AtPath as _, Error, Result};
use crate::files::private;
use crate::server::messages::{Answer, Request, send};
use crate::sys;

/// Longer than any request.
const LONGEST: usize = 512;
/// The most callers that are still silent.
const MOST_CALLERS: usize = 64;

/// Receives requests. A slow or silent client keeps no server from ending.
pub(crate) struct Requests {
    socket: UnixListener,
    callers: Vec<Caller>,
}

struct Caller {
    stream: UnixStream,
    said: Vec<u8>,
}

impl Requests {
    pub(crate) fn listen(path: &Path) -> Result<Self> {
        let socket = UnixListener::bind(path).at("listen at", path)?;
        private::hide_socket(path)?;
        socket.set_nonblocking(true).at("listen at", path)?;
        Ok(Self { socket, callers: Vec::new() })
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.socket.as_fd()).chain(self.callers.iter().map(|caller| caller.stream.as_fd()))
    }

    /// Answers callers that waited to change a server which was stopped first. Others see the connection close.
    pub(crate) fn refuse_changes(&mut self, server: &str) {
        while let Some((_, mut from)) = self.next_of(Request::changes_data) {
            let _ = send(&mut from, &Answer::failed(Error::StoppedMeanwhile(server.to_owned())));
        }
    }

    /// Returns the next wanted request of this user or root, and the stream for the answer.
    pub(crate) fn next_of(&mut self, is_wanted: impl Fn(&Request) -> bool) -> Option<(Request, UnixStream)> {
        while let Ok((stream, _)) = self.socket.accept() {
            self.callers.extend(Caller::new(stream));
        }
        let superfluous = self.callers.len().saturating_sub(MOST_CALLERS);
        self.callers.drain(..superfluous);
        let mut at = 0;
        while let Some(caller) = self.callers.get_mut(at) {
            match caller.hear() {
                Ok(Some(request)) if is_wanted(&request) => {
                    let stream = self.callers.remove(at).stream;
                    if stream.set_nonblocking(false).is_ok() {
                        return Some((request, stream));
                    }
                }
                Ok(_) => at += 1,
                Err(_) => drop(self.callers.remove(at)),
            }
        }
        None
    }
}

impl Caller {
    fn new(stream: UnixStream) -> Option<Self> {
        let peer = sys::peer_uid(&stream).ok()?;
        if peer != 0 && peer != rustix::process::geteuid().as_raw() {
            return None;
        }
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, said: Vec::new() })
    }

    /// Returns a complete request. `None`: not yet. Fails if none can come.
    fn hear(&mut self) -> io::Result<Option<Request>> {
        // An earlier round may have read the request, and not wanted it.
        if !self.said.contains(&b'\n') {
            let mut more = [0; LONGEST];
            match self.stream.read(&mut more) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.said.extend_from_slice(&more[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        match self.said.iter().position(|byte| *byte == b'\n') {
            Some(end) => Ok(Some(serde_json::from_slice(&self.said[..end])?)),
            None if self.said.len() > LONGEST => Err(ErrorKind::InvalidData.into()),
            None => Ok(None),
        }
    }
}

pub(super) fn is_closed(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn fuzz_requests() {
        let seeds: Vec<Vec<u8>> = [Request::Stop, Request::Reset(None), Request::Reset(Some("m".into()))]
            .iter()
            .map(|request| serde_json::to_vec(request).unwrap())
            .collect();
        let seeds: Vec<Vec<u8>> = seeds.into_iter().map(|seed| [seed, b"\n".to_vec()].concat()).collect();
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        calve_testkit::fuzz(&seeds, |input| {
            use std::io::Write as _;
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let Some(mut caller) = Caller::new(ours) else { panic!("of this user") };
            theirs.write_all(&input[..input.len().min(4096)]).unwrap();
            drop(theirs);
            while matches!(caller.hear(), Ok(None)) {
                assert!(caller.said.len() <= 2 * LONGEST);
            }
        });
    }
}
