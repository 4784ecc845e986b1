//! One request answered by `git http-backend`, and what that cost.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::ledger::Charge;
use super::request::{Body, Extent, Head};
use super::stream::send;
use crate::git::pack_objects;

/// The program of the host, and its place.
pub(super) struct Backend {
    /// `git-http-backend` itself, as web servers are told to run it.
    pub(super) program: PathBuf,
    /// The repositories are in here.
    pub(super) root: PathBuf,
    /// The whole environment, but for what the request adds.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where `pack_objects` reports to.
    pub(super) reports: PathBuf,
}

/// A child that is killed with all that it started, unless it was waited for.
struct BackendProcess(Option<Child>);

impl Drop for BackendProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

/// As much as a pipe holds: it can be written without anybody reading.
const PIPE: usize = 64 << 10;

impl Backend {
    /// Answers with at most so many bytes, but for the end of the answer, which is due when the charge has been noted. `started` is told
    /// the process group, so that it can be ended from elsewhere.
    pub(super) fn answer(
        &self,
        head: &Head,
        body: &mut Body<'_>,
        out: &TcpStream,
        number: u64,
        most_bytes: u64,
        started: &dyn Fn(Pid),
    ) -> (Charge, io::Result<()>) {
        let report = self.reports.join(number.to_string());
        let mut charge = Charge { requests: 1, ..Charge::default() };
        let mut command = self.command(head, body, &report);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return (charge, Err(error)),
        };
        started(Pid::from_child(&child));
        let mut running = BackendProcess(Some(child));
        let piped = relay(&mut running, body, out, most_bytes, &mut charge);
        let Some(child) = running.0.as_mut() else { return (charge, piped) };
        if piped.is_err() {
            // Nobody reads any more what it still has to say.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        }
        let waited = pack_objects::wait_and_charge(child, &report, &mut charge);
        running.0 = None;
        (charge, piped.and(waited))
    }

    /// Returns the command with the variables of RFC 3875, as far as `git http-backend` reads them.
    fn command(&self, head: &Head, body: &Body<'_>, report: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", &head.method)
            .env("PATH_INFO", decoded(&head.path))
            .env("QUERY_STRING", &head.query)
            .env("SERVER_PROTOCOL", "HTTP/1.1")
            .env("REMOTE_ADDR", "127.0.0.1")
            // Pushes want somebody who was let in.
            .env("REMOTE_USER", "calve")
            .env(pack_objects::REPORT, report);
        for (header, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "HTTP_GIT_PROTOCOL"),
        ] {
            if let Some(value) = head.header(header) {
                command.env(variable, value);
            }
        }
        if let Some(value) = head.header("git-protocol") {
            command.env("GIT_PROTOCOL", value);
        }
        if let Extent::Length(length) = body.extent {
            command.env("CONTENT_LENGTH", length.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        command
    }
}

/// Relays the body to the child, and the child's answer to the client.
fn relay(
    running: &mut BackendProcess,
    body: &mut Body<'_>,
    out: &TcpStream,
    most_bytes: u64,
    charge: &mut Charge,
) -> io::Result<()> {
    let Some(child) = running.0.as_mut() else { return Ok(()) };
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
    let mut first = Vec::new();
    body.take(PIPE as u64).read_to_end(&mut first)?;
    if first.len() < PIPE {
        // Its answer says what it does not want to read.
        let _ = stdin.write_all(&first);
        drop(stdin);
        return respond(stdout, out, most_bytes, charge);
    }
    thread::scope(|scope| {
        let feeder = scope.spawn(move || feed(stdin, &first, body));
        let answered = respond(stdout, out, most_bytes, charge);
        let fed = feeder.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        answered.and(fed)
    })
}

fn feed(mut stdin: ChildStdin, first: &[u8], body: &mut Body<'_>) -> io::Result<()> {
    let written = stdin.write_all(first).and_then(|()| io::copy(body, &mut stdin).map(|_| ()));
    match written {
        // It has said why in its answer. The rest must be read, or the client would not hear it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => io::copy(body, &mut io::sink()).map(|_| ()),
        written => written,
    }
}

/// Sends everything in chunks, so that the connection can go on, and without the last chunk.
fn respond(mut stdout: ChildStdout, out: &TcpStream, mut left: u64, charge: &mut Charge) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    let mut filled = 0;
    let (mut head, mut from) = loop {
        let length = stdout.read(&mut buffer[filled..])?;
        filled += length;
        if let Some(end) = end_of_head(&buffer[..filled]) {
            break (response_head(&buffer[..end]), end);
        }
        if length == 0 || filled == buffer.len() {
            return Err(io::Error::other("git http-backend did not answer"));
        }
    };
    loop {
        let allowed = left.min((filled - from) as u64);
        left -= allowed;
        let bytes = &buffer[from..from + allowed as usize];
        let size = format!("{:x}\r\n", bytes.len());
        let mut parts: Vec<&[u8]> = vec![&head];
        if !bytes.is_empty() {
            parts.extend([size.as_bytes(), bytes, b"\r\n"]);
        }
        charge.bytes_out += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        send(out, &parts)?;
        if from + bytes.len() < filled {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        head.clear();
        (from, filled) = (0, read_uninterrupted(&mut stdout, &mut buffer)?);
        if filled == 0 {
            return Ok(());
        }
    }
}

fn read_uninterrupted(from: &mut ChildStdout, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let find = |end: &[u8]| bytes.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    find(b"\r\n\r\n")
}

/// Converts the first output of a CGI program to the head of an answer.
fn response_head(cgi: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(cgi);
    let fields = || text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim()));
    let status = fields().find(|(name, _)| name.eq_ignore_ascii_case("status")).map_or("200 OK", |(_, status)| status);
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in fields() {
        if !["status", "content-length"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("Transfer-Encoding: chunked\r\n\r\n");
    head.into_bytes()
}

/// Decodes %XX.
fn decoded(path: &str) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    OsString::from_vec(bytes)
}

/// The end of an answer.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The longest that a client may keep a connection without saying anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
