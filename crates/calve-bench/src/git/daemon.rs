//! git's own server, to compare the host with: each connection is given to a `git daemon --inetd`, as inetd does.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process_group};

use super::host::ledger::Charge;
use super::pack_objects;

/// One connection at a time. Dropping it ends it.
pub(super) struct Daemon {
    address: SocketAddr,
    shared: Arc<DaemonState>,
    acceptor: Option<JoinHandle<()>>,
}

struct DaemonState {
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
    report: PathBuf,
    stopping: AtomicBool,
    running: Mutex<Option<(Pid, TcpStream)>>,
    charge: Mutex<Charge>,
}

impl Daemon {
    pub(super) fn start(root: &Path, environment: Vec<(OsString, OsString)>, report: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(DaemonState {
            root: root.to_path_buf(),
            environment,
            report,
            stopping: AtomicBool::new(false),
            running: Mutex::new(None),
            charge: Mutex::default(),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Ok((socket, _)) = listener.accept() {
                    if shared.stopping.load(Ordering::SeqCst) {
                        return;
                    }
                    // A client whose connection breaks says so.
                    let _ = shared.serve(socket);
                }
            }
        });
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    pub(super) fn url(&self, name: &str) -> String {
        format!("git://{}/{name}", self.address)
    }

    /// Returns the requests that were served since this was last asked. The client may have ended a moment before the server did, or, if it has failed,
    /// before it asked for anything.
    pub(super) fn take(&self, has_client_failed: bool) -> Charge {
        loop {
            let running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
            let mut charge = self.shared.charge.lock().unwrap_or_else(PoisonError::into_inner);
            if running.is_none() && (charge.requests > 0 || has_client_failed) {
                return std::mem::take(&mut charge);
            }
            drop((running, charge));
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some((group, socket)) = &*self.shared.running.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = kill_process_group(*group, Signal::KILL);
            let _ = socket.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl DaemonState {
    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let kept = socket.try_clone()?;
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(pack_objects::REPORT, &self.report);
        let mut base = OsString::from("--base-path=");
        base.push(&self.root);
        command.args(["daemon", "--inetd", "--export-all"]).arg(base).process_group(0);
        command.stdin(OwnedFd::from(socket.try_clone()?)).stdout(OwnedFd::from(socket)).stderr(Stdio::null());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn()?;
        *running = Some((Pid::from_child(&child), kept));
        drop(running);
        // It holds the socket too, and the client waits for its end.
        drop(command);
        let mut charge = Charge { requests: 1, ..Charge::default() };
        let waited = pack_objects::wait_and_charge(&mut child, &self.report, &mut charge);
        self.charge.lock().unwrap_or_else(PoisonError::into_inner).add(&charge);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        waited
    }
}
