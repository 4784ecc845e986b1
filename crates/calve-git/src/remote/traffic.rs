//! Counts an operation's traffic by git's own traces, in private files that are deleted afterwards.

use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use memchr::memmem;
use serde::Serialize;
use tempfile::TempDir;

use crate::remote::url::Transport;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    // HTTP requests, or else commands of git's protocol. Unknown before its version 2.
    /// The number of requests to the server. Null if it is unknown.
    pub requests: Option<u64>,
    // As they came, without headers and the list of branches. Unknown for a fetch of few objects (below
    // `fetch.unpackLimit`, 100): git unpacks those as they come, and does not count them. Nor does it count the files of a host without git.
    /// The objects received, in bytes. Null if it is unknown.
    pub bytes_received: Option<u64>,
}

/// A private directory for traces, deleted on drop.
#[derive(Debug)]
pub(crate) struct Traces {
    directory: TempDir,
    kind: Transport,
}

const CURL: &str = "trace-curl";
const PACKETS: &str = "trace-packets";
const EVENTS: &str = "trace-events";

impl Traces {
    /// Makes the directory in `above`, which must be readable for this user alone or on a disk that others cannot read.
    pub(crate) fn new(above: &Path, kind: Transport) -> std::io::Result<Traces> {
        let mut directory = tempfile::Builder::new();
        let directory =
            directory.prefix("calve-trace-").permissions(Permissions::from_mode(0o700)).tempdir_in(above)?;
        Ok(Traces { directory, kind })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes git and its child processes trace the requests they send and receive: no data, and credentials redacted.
    pub(crate) fn apply(&self, command: &mut Command) {
        match self.kind {
            Transport::Http => {
                command.env("GIT_TRACE_CURL", self.file(CURL));
                command.env("GIT_TRACE_CURL_NO_DATA", "1").env("GIT_TRACE_REDACT", "1");
            }
            Transport::Local => {}
            Transport::Ssh | Transport::Git | Transport::File => {
                command.env("GIT_TRACE_PACKET", self.file(PACKETS));
            }
        }
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.file(EVENTS)
    }

    pub(crate) fn requests(&self) -> Option<u64> {
        let read = |name: &str| fs_err::read(self.file(name)).unwrap_or_default();
        match self.kind {
            Transport::Local => Some(0),
            Transport::Http => Some(http_requests(&read(CURL))),
            _ => protocol_commands(&read(PACKETS)),
        }
    }

    /// Returns the bytes of packs that git counted as received, if it was to show its progress.
    pub(crate) fn received(&self) -> Option<u64> {
        received(&fs_err::read(self.events()).unwrap_or_default()).filter(|_| !self.is_dumb())
    }

    /// Returns whether a host without git gave single files, which git does not count.
    pub(crate) fn is_dumb(&self) -> bool {
        // git asks for the host's HEAD in no other protocol.
        self.kind == Transport::Http
            && memmem::find(&fs_err::read(self.file(CURL)).unwrap_or_default(), b"/HEAD HTTP/").is_some()
    }
}

/// Counts lines such as `=> Send header: POST /a.git/git-upload-pack HTTP/1.1`.
fn http_requests(trace: &[u8]) -> u64 {
    let lines = trace.split(|byte| *byte == b'\n');
    let starts = lines.filter(|line| {
        let Some(at) = memmem::find(line, b"=> Send header: ") else { return false };
        let header = &line[at + 16..];
        header.starts_with(b"GET ") || header.starts_with(b"POST ")
    });
    starts.count() as u64
}

/// Counts lines such as `packet:        clone> command=fetch`, but not those of a server on this machine. `None` if the
/// protocol's version 2 was not used.
fn protocol_commands(trace: &[u8]) -> Option<u64> {
    let lines = trace.split(|byte| *byte == b'\n').filter(|line| memmem::find(line, b"upload-pack").is_none());
    let (mut second, mut commands) = (false, 0);
    for line in lines {
        second |= memmem::find(line, b"< version 2").is_some();
        commands += u64::from(memmem::find(line, b"> command=").is_some());
    }
    second.then_some(commands)
}

/// Adds up `total_bytes` in "Receiving objects". `None` if objects were unpacked, or a number cannot be read.
fn received(events: &[u8]) -> Option<u64> {
    let mut sum = 0;
    for line in events.split(|byte| *byte == b'\n') {
        if memmem::find(line, b"\"unpack-objects\"").is_some() {
            return None;
        }
        if memmem::find(line, b"\"total_bytes\"").is_some() {
            let at = memmem::find(line, b"\"value\":\"")? + 9;
            let digits = line[at..].split(|byte| *byte == b'"').next()?;
            let bytes: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            sum = u64::checked_add(sum, bytes)?;
        }
    }
    Some(sum)
}

/// Adds up the sizes of a repository's packs: in a new one, the bytes received.
pub(crate) fn packed_bytes(repository: &Path) -> u64 {
    let Ok(entries) = fs_err::read_dir(repository.join(".git/objects/pack")) else { return 0 };
    let packs = entries.flatten().filter(|entry| entry.file_name().as_bytes().ends_with(b".pack"));
    packs.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_counted() {
        let curl = b"1 http.c:1 => Send header: GET /a/info/refs?service=git-upload-pack HTTP/1.1\n\
            1 http.c:1 => Send header: Host: x\n1 http.c:1 <= Recv header: HTTP/1.1 200 OK\n\
            1 http.c:1 => Send header: POST /a/git-upload-pack HTTP/1.1\n";
        assert_eq!(http_requests(curl), 2);
        let packets = b"1 packet:  upload-pack< command=fetch\n1 packet:        clone< version 2\n\
            1 packet:        clone> command=ls-refs\n1 packet:        clone> command=fetch\n";
        assert_eq!(protocol_commands(packets), Some(2));
        assert_eq!(protocol_commands(b"1 packet:        clone< 0123 HEAD\n"), None);
        let events = b"{\"key\":\"total_objects\",\"value\":\"5\"}\n{\"key\":\"total_bytes\",\"value\":\"522\"}\n";
        assert_eq!((received(events), received(b"")), (Some(522), Some(0)));
        assert_eq!(received(b"{\"argv\":[\"git\",\"unpack-objects\"]}\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_traces() {
        let curl = b"1 http.c:1 => Send header: GET /a/info/refs?service=git-upload-pack HTTP/1.1\n1 http.c:1 => Send header: Host: x\n";
        let packets = b"1 packet:  upload-pack< command=fetch\n1 packet:        clone< version 2\n1 packet: clone> command=fetch\n";
        let events = b"{\"key\":\"total_objects\",\"value\":\"5\"}\n{\"key\":\"total_bytes\",\"value\":\"522\"}\n";
        calve_testkit::fuzz(&[curl, packets, events], |input| {
            http_requests(input);
            protocol_commands(input);
            received(input);
        });
    }

    #[test]
    fn a_sum_beyond_all_bounds_is_unknown() {
        let event = format!("{{\"key\":\"total_bytes\",\"value\":\"{}\"}}\n", u64::MAX);
        assert_eq!(received(event.repeat(2).as_bytes()), None);
    }
}
