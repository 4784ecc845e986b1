//! A small HTTP host on loopback that runs `git http-backend` for each request, and notes what that took.
//!
//! It is as large as git's smart protocol needs: HTTP/1.1 with connections that stay open, bodies with a length or in chunks (git
//! compresses them, and `git http-backend` undoes that), answers in chunks. Each connection has a thread, and there are not more than
//! `MOST_CONNECTIONS`. Its owner decides about each request: everybody on the machine can reach a port, so the bench has only those
//! answered that carry its key, and tests have it fail as hosts do.

mod cgi;
pub(super) mod ledger;
mod request;
mod stream;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process_group};

use self::cgi::{Backend, LAST_CHUNK, PATIENCE};
use self::ledger::{Charge, Ledger, OperationNumber};
pub use self::request::Head;
use self::request::{Body, CountingReader};
use self::stream::send;

/// At one time. Others wait to be accepted.
const MOST_CONNECTIONS: usize = 256;

/// The headers that the bench's own clients send.
pub(crate) const KEY_HEADER: &str = "X-Calve-Key";
pub(crate) const OPERATION_HEADER: &str = "X-Calve-Operation";

/// The options of a host.
pub struct HostOptions {
    /// `git-http-backend` itself, as web servers are told to run it.
    pub program: PathBuf,
    /// The directory that the repositories are in.
    pub root: PathBuf,
    /// The whole environment of that program, but for what a request adds.
    pub environment: Vec<(OsString, OsString)>,
    /// An existing directory for what `git pack-objects` took.
    pub reports: PathBuf,
    /// Decides about each request.
    pub decide: Box<dyn Fn(&Head) -> Treatment + Send + Sync>,
}

/// The host's reaction to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// Has git answer it.
    Serve,
    /// The same, and closes the connection after so many bytes of the answer's contents.
    Cut(u64),
    /// Answers with this status and these headers, each of which ends with CR LF, and closes the connection.
    Refuse(&'static str),
    Stall,
}

/// Dropping it ends it, with its connections and the processes that it started.
pub struct Host {
    address: SocketAddr,
    shared: Arc<HostState>,
    acceptor: Option<JoinHandle<()>>,
}

struct HostState {
    backend: Backend,
    decide: Box<dyn Fn(&Head) -> Treatment + Send + Sync>,
    ledger: Ledger,
    stopping: AtomicBool,
    requests: AtomicU64,
    open: Mutex<OpenConnections>,
    closed: Condvar,
}

/// The processes to end when the host ends.
#[derive(Default)]
struct OpenConnections {
    next: u64,
    sockets: HashMap<u64, TcpStream>,
    groups: HashMap<u64, Pid>,
}

impl Host {
    /// Serves on a port that is free.
    ///
    /// # Errors
    /// Fails when there is no such port, or nothing can reach it.
    pub fn start(options: HostOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        // A loopback that is down lets a program listen, and nobody connect: neither a client nor, at the end, this host.
        TcpStream::connect(address)?;
        let HostOptions { program, root, environment, reports, decide } = options;
        let shared = Arc::new(HostState {
            backend: Backend { program, root, environment, reports },
            decide,
            ledger: Ledger::default(),
            stopping: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            open: Mutex::default(),
            closed: Condvar::new(),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener)
        });
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Returns the URL of a repository in the root.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let mut open = self.shared.open();
        while !open.sockets.is_empty() {
            // A process that has ended meanwhile is fine.
            for socket in open.sockets.values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            for group in open.groups.values() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
            let wait = self.shared.closed.wait_timeout(open, std::time::Duration::from_millis(50));
            open = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl HostState {
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let mut open = self.open();
            while open.sockets.len() >= MOST_CONNECTIONS && !self.stopping.load(Ordering::SeqCst) {
                open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
            }
            drop(open);
            let accepted = listener.accept();
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            // A client that has gone already, or no descriptors for the moment.
            let Ok((socket, _)) = accepted else { continue };
            let Ok(kept) = socket.try_clone() else { continue };
            let mut open = self.open();
            let number = open.next;
            open.next += 1;
            open.sockets.insert(number, kept);
            drop(open);
            let shared = Arc::clone(self);
            let serving = thread::Builder::new().name("host".into()).spawn(move || {
                // A connection that breaks concerns its client alone, which says so.
                let _ = shared.serve(socket, number);
                shared.close(number);
            });
            if serving.is_err() {
                self.close(number);
            }
        }
    }

    fn close(&self, number: u64) {
        let mut open = self.open();
        if let Some(socket) = open.sockets.remove(&number) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        open.groups.remove(&number);
        self.closed.notify_all();
    }

    /// Serves all requests of one connection.
    fn serve(&self, socket: TcpStream, number: u64) -> io::Result<()> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut incoming = CountingReader::new(socket.try_clone()?);
        self.requests(&mut incoming, &socket, number)
    }

    fn requests(&self, incoming: &mut CountingReader, out: &TcpStream, number: u64) -> io::Result<()> {
        loop {
            incoming.bytes = 0;
            let Some(head) = Head::read(incoming)? else { return Ok(()) };
            let most_bytes = match (self.decide)(&head) {
                Treatment::Serve => u64::MAX,
                Treatment::Cut(bytes) => bytes,
                Treatment::Refuse(status) => {
                    let end = "Content-Length: 0\r\nConnection: close\r\n\r\n";
                    return send(out, &[b"HTTP/1.1 ", status.as_bytes(), end.as_bytes()]);
                }
                // Until the client has gone, or the host ends.
                Treatment::Stall => return io::copy(incoming, &mut io::sink()).map(drop),
            };
            let mut bytes_out = 0;
            if head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
                let going_on = b"HTTP/1.1 100 Continue\r\n\r\n";
                send(out, &[going_on])?;
                bytes_out += going_on.len() as u64;
            }
            let mut body = Body { extent: head.body()?, from: &mut *incoming };
            let request = self.requests.fetch_add(1, Ordering::Relaxed);
            let started = |group| {
                let mut open = self.open();
                open.groups.insert(number, group);
                // The host may have been ended between the start and this.
                if self.stopping.load(Ordering::SeqCst) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
            };
            let (mut charge, answered) = self.backend.answer(&head, &mut body, out, request, most_bytes, &started);
            self.open().groups.remove(&number);
            charge.bytes_in = incoming.bytes;
            charge.bytes_out += bytes_out + LAST_CHUNK.len() as u64;
            self.charge(&head, &charge);
            answered?;
            send(out, &[LAST_CHUNK])?;
            if !head.keeps_open {
                return Ok(());
            }
        }
    }

    /// Charges an operation. 0 is nobody's: what is charged there shows in the accounts as not charged.
    fn charge(&self, head: &Head, charge: &Charge) {
        let number = head.header(&OPERATION_HEADER.to_ascii_lowercase()).and_then(|digits| digits.parse().ok());
        self.ledger.charge(number.unwrap_or(0 as OperationNumber), charge);
    }
}
