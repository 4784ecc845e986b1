//! A real HTTP host on loopback that runs `git http-backend`, with the faults that a host can have.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::must::must;

/// What is wrong with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HostFault {
    /// Nothing.
    #[default]
    None,
    /// It closes the connection after so many bytes of one answer.
    DiesAfter(usize),
    /// It closes the connection instead of answering the POST request of this number, counted from 1.
    DiesAtPost(usize),
    /// It takes a POST request and never answers.
    Stalls,
    /// It serves only who sends this name and password.
    Demands(String, String),
}

/// A host that serves every repository below a directory, until it is dropped.
#[derive(Debug)]
pub struct GitHost {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    fault: HostFault,
    ending: AtomicBool,
    requests: Mutex<Vec<String>>,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

impl GitHost {
    /// Serves what is below `root`, for reading.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self::with(root, HostFault::None)
    }

    /// The same, with a fault.
    pub fn with(root: impl AsRef<Path>, fault: HostFault) -> Self {
        let root = root.as_ref().to_path_buf();
        let listener = must(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)), "listen for", &root);
        let address = must(listener.local_addr(), "listen for", &root);
        let shared = Arc::new(Shared {
            root,
            fault,
            ending: AtomicBool::new(false),
            requests: Mutex::default(),
            serving: Mutex::default(),
        });
        let theirs = Arc::clone(&shared);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.ending.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), each) = (stream, Arc::clone(&theirs)) else { continue };
                let handle = thread::spawn(move || {
                    // A client that has gone away is no fault of the host's.
                    let _ = each.serve(stream);
                });
                locked(&theirs.serving).push(handle);
            }
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// `http://127.0.0.1:PORT/NAME`.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// `http://USER@127.0.0.1:PORT/NAME`.
    pub fn url_as(&self, user: &str, name: &str) -> String {
        format!("http://{user}@{}/{name}", self.address)
    }

    /// The requests so far, as "METHOD PATH".
    pub fn requests(&self) -> Vec<String> {
        locked(&self.shared.requests).clone()
    }
}

impl Drop for GitHost {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let serving = std::mem::take(&mut *locked(&self.shared.serving));
        for handle in serving {
            let _ = handle.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request, read to its end.
#[derive(Default)]
struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Shared {
    /// Answers one request, and closes the connection.
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let Some(request) = read_request(&stream)? else { return Ok(()) };
        let posts = {
            let mut requests = locked(&self.requests);
            requests.push(format!("{} {}", request.method, request.path));
            requests.iter().filter(|request| request.starts_with("POST ")).count()
        };
        let mut stream = stream;
        match &self.fault {
            HostFault::Stalls if request.method == "POST" => {
                while !self.ending.load(Ordering::SeqCst) && !is_closed(&stream) {
                    thread::sleep(Duration::from_millis(10));
                }
                return Ok(());
            }
            HostFault::DiesAtPost(number) if request.method == "POST" && posts == *number => return Ok(()),
            HostFault::Demands(user, password) if request.header("authorization") != Some(&basic(user, password)) => {
                let head =
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\n";
                return stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
            }
            _ => {}
        }
        let mut backend = Backend(self.backend(&request).spawn()?);
        let (input, output) = (backend.0.stdin.take(), backend.0.stdout.take());
        let body = request.body;
        let feeding = thread::spawn(move || input.map(|mut input| input.write_all(&body)));
        let answered = output.map_or(Ok(()), |output| self.answer(&mut stream, BufReader::new(output)));
        drop(backend);
        let _ = feeding.join();
        let _ = stream.shutdown(Shutdown::Both);
        answered
    }

    fn backend(&self, request: &Request) -> Command {
        let mut command = Command::new("git");
        command.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        command
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", decoded(&request.path))
            .env("QUERY_STRING", &request.query)
            .env("REQUEST_METHOD", &request.method)
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
            .env("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default());
        if let Some(protocol) = request.header("git-protocol") {
            command.env("GIT_PROTOCOL", protocol).env("HTTP_GIT_PROTOCOL", protocol);
        }
        command
    }

    /// From CGI to HTTP.
    fn answer(&self, stream: &mut TcpStream, mut output: impl BufRead) -> std::io::Result<()> {
        let (mut status, mut head) = ("200 OK".to_owned(), String::new());
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            match line.strip_prefix("Status: ") {
                Some(told) => status = told.trim_end().to_owned(),
                None => head.push_str(&format!("{}\r\n", line.trim_end())),
            }
        }
        stream.write_all(format!("HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n").as_bytes())?;
        let most = if let HostFault::DiesAfter(bytes) = self.fault { bytes } else { usize::MAX };
        let mut sent = 0;
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = output.read(&mut buffer)?;
            let allowed = count.min(most - sent);
            stream.write_all(&buffer[..allowed])?;
            sent += allowed;
            if count == 0 || allowed < count {
                return Ok(());
            }
        }
    }
}

/// A backend that does not outlive its request.
struct Backend(Child);

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_closed(stream: &TcpStream) -> bool {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    matches!(stream.peek(&mut [0]), Ok(0))
}

/// `None` when the connection was closed without one.
fn read_request(stream: &TcpStream) -> std::io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request { method: method.into(), path: path.into(), query: query.into(), ..Request::default() };
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => request.headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    if request.header("expect").is_some() {
        (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = request.header("content-length").and_then(|digits| digits.parse().ok());
    request.body = match (request.header("transfer-encoding"), length) {
        (Some("chunked"), _) => read_chunks(&mut reader)?,
        (_, Some(length)) => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            body
        }
        _ => Vec::new(),
    };
    Ok(Some(request))
}

fn read_chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..length]);
    }
}

/// %XX as bytes.
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

/// The `Authorization` header of a name and a password.
fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("Basic ");
    for group in format!("{user}:{password}").as_bytes().chunks(3) {
        let number = group.iter().chain([0; 2].iter()).take(3).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        for index in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A repository to serve, made by `git` itself: `commits` commits on `main`, each changing one of three files.
///
/// Filters are allowed; `git config uploadpack.allowFilter false` in it takes that away.
pub fn git_repository(directory: impl AsRef<Path>, commits: usize) {
    let directory = directory.as_ref();
    let name: &OsStr = directory.as_os_str();
    git(Path::new("/"), [OsStr::new("init"), "-q".as_ref(), "--bare".as_ref(), name]);
    git(directory, ["symbolic-ref", "HEAD", "refs/heads/main"]);
    for setting in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        git(directory, ["config", setting, "true"]);
    }
    git(directory, ["config", "gc.auto", "0"]);
    let mut stream = String::new();
    for number in 1..=commits {
        let file = ["readme", "src/main", "docs/guide"][number % 3];
        // Different enough not to become one delta after the other.
        let content: String =
            (0..200).map(|line| format!("{} of {number}\n", (line * number * 7919) % 10_007)).collect();
        let when = 1_500_000_000 + number;
        stream.push_str(&format!("commit refs/heads/main\ncommitter Ann <ann@example.org> {when} +0000\n"));
        stream.push_str(&format!("data <<end\ncommit {number}\nend\nM 644 inline {file}\ndata {}\n", content.len()));
        stream.push_str(&content);
        stream.push('\n');
    }
    let mut import = git_command(directory);
    let spawned = import.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn();
    let mut child = must(spawned, "import into", directory);
    if let Some(mut stdin) = child.stdin.take() {
        must(stdin.write_all(stream.as_bytes()), "import into", directory);
    }
    assert!(must(child.wait(), "import into", directory).success(), "git fast-import failed");
}

/// What `git` prints, run in `directory`; panics when it fails.
#[track_caller]
pub fn git<S: AsRef<OsStr>>(directory: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
    let mut command = git_command(&directory);
    command.args(arguments);
    let output = must(command.output(), "run git in", directory.as_ref());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// `git`, to be run in `directory`, untouched by what the user and the machine have configured, and by a git whose hook runs the tests.
pub fn git_command(directory: impl AsRef<Path>) -> Command {
    let mut command = Command::new("git");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_encoded() {
        assert_eq!(basic("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic("a", "bc"), "Basic YTpiYw==");
        assert_eq!(basic("a", "b"), "Basic YTpi");
    }
}
