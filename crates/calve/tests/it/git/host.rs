//! An HTTP host that runs `git http-backend` for each request, one on each connection, with the faults that a host can have.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calve_testkit::git;

/// Faults of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HostFault {
    #[default]
    None,
    /// It closes the connection after so many bytes of one answer.
    DiesAfter(u64),
    /// It closes the connection in the answer to the POST request of this number, counted from 1. (Clients repeat what has no answer.)
    DiesAtPost(usize),
    /// It takes a POST request and never answers.
    Stalls,
    /// It serves only who sends this name and password.
    Demands(String, String),
    /// It answers with this status.
    Says(&'static str),
}

/// A host that serves every repository below a directory, until it is dropped.
pub(crate) struct GitHost {
    port: u16,
    state: Arc<State>,
}

struct State {
    root: PathBuf,
    fault: HostFault,
    requests: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// The host's reaction to a request.
enum Treatment {
    /// Has git answer it with at most so many bytes.
    Serve(u64),
    Refuse,
    Say(&'static str),
    Stall,
}

impl GitHost {
    pub(crate) fn with(root: impl AsRef<Path>, fault: HostFault) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (root, requests, is_over) = (root.as_ref().to_path_buf(), Mutex::default(), AtomicBool::new(false));
        let state = Arc::new(State { root, fault, requests, is_over });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for socket in listener.incoming().take_while(|_| !shared.is_over.load(Ordering::SeqCst)) {
                let (Ok(socket), shared) = (socket, Arc::clone(&shared)) else { continue };
                // A connection that breaks concerns its client alone, which says so.
                thread::spawn(move || drop(shared.answer(&socket)));
            }
        });
        Self { port, state }
    }

    /// `http://127.0.0.1:PORT/NAME`.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// `http://USER@127.0.0.1:PORT/NAME`.
    pub(crate) fn url_as(&self, user: &str, name: &str) -> String {
        self.url(name).replacen("http://", &format!("http://{user}@"), 1)
    }

    /// The requests so far, as "METHOD PATH".
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }
}

impl Drop for GitHost {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl State {
    fn answer(&self, mut socket: &TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(socket);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let Some((method, target)) = lines.first().and_then(|line| line.rsplit_once(' ')?.0.split_once(' ')) else {
            return Ok(());
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let fields = lines[1..].iter().filter_map(|line| line.split_once(':'));
        let headers: HashMap<String, &str> =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect();
        let posts = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(format!("{method} {path}"));
            requests.iter().filter(|request| request.starts_with("POST ")).count()
        };
        let most = match self.treat(method, posts, headers.get("authorization").copied()) {
            Treatment::Serve(most) => most,
            Treatment::Refuse => {
                return socket.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
            Treatment::Say(status) => {
                return write!(socket, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
            Treatment::Stall => return io::copy(&mut from, &mut io::sink()).map(drop),
        };
        if headers.contains_key("expect") {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if headers.contains_key("transfer-encoding") {
            chunks(&mut from)?
        } else {
            let length = headers.get("content-length").map_or(0, |digits| digits.parse().unwrap());
            let mut body = vec![0; length];
            from.read_exact(&mut body)?;
            body
        };
        let answer = self.run(method, path, query, &headers, &body)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let (head, contents) = answer.split_at(end);
        let status =
            String::from_utf8_lossy(head).lines().find_map(|line| Some(line.strip_prefix("Status: ")?.to_owned()));
        let (status, length) = (status.unwrap_or_else(|| "200 OK".into()), contents.len());
        write!(socket, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n")?;
        socket.write_all(head)?;
        socket.write_all(&contents[..contents.len().min(usize::try_from(most).unwrap_or(usize::MAX))])
    }

    fn treat(&self, method: &str, posts: usize, authorization: Option<&str>) -> Treatment {
        let is_post = method == "POST";
        match &self.fault {
            HostFault::DiesAfter(bytes) => Treatment::Serve(*bytes),
            HostFault::DiesAtPost(number) if is_post && posts == *number => Treatment::Serve(0),
            HostFault::Stalls if is_post => Treatment::Stall,
            HostFault::Says(status) => Treatment::Say(status),
            HostFault::Demands(user, password) => {
                let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
                if authorization == Some(&expected) { Treatment::Serve(u64::MAX) } else { Treatment::Refuse }
            }
            _ => Treatment::Serve(u64::MAX),
        }
    }

    fn run(
        &self,
        method: &str,
        path: &str,
        query: &str,
        headers: &HashMap<String, &str>,
        body: &[u8],
    ) -> io::Result<Vec<u8>> {
        let mut command = Command::new(Path::new(&git("/", ["--exec-path"])).join("git-http-backend"));
        let own = std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("GIT_"));
        command.env_clear().envs(own).env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("REQUEST_METHOD", method).env("PATH_INFO", decoded(path)).env("QUERY_STRING", query);
        command
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("REMOTE_USER", "calve")
            .env("CONTENT_LENGTH", body.len().to_string());
        for (header, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ] {
            command.envs(headers.get(header).map(|value| (variable, value)));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // Its answer says what it does not want to read.
            scope.spawn(move || drop(stdin.write_all(body)));
            child.wait_with_output().map(|output| output.stdout)
        })
    }
}

/// Decodes %XX.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        from.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let begin = body.len();
        body.resize(begin + size, 0);
        from.read_exact(&mut body[begin..])?;
        from.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}
