//! What all clients stand on: the place, the configuration of git on both sides, the host, and the accounts.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use calve_core::Cancel;

use super::clients::{Clients, environment};
use super::daemon::Daemon;
use super::host::ledger::{Charge, Operation};
use super::host::{Host, HostOptions, KEY_HEADER};
use super::link::Link;
use super::pack_objects;
use crate::error::{BenchError, FailureKind};
use crate::machine::children_seconds;

pub(super) struct Ground<'a> {
    place: PathBuf,
    pub(super) clients: Clients<'a>,
    host: Host,
    daemon: Option<Daemon>,
    pub(super) cancel: &'a Cancel,
    numbers: AtomicU64,
    operations: AtomicU64,
    charged: Mutex<Charge>,
    pushes: Mutex<Charge>,
}

/// What the ground is to be like.
pub(super) struct Layout {
    pub(super) protocol: u8,
    pub(super) link: Option<Link>,
    pub(super) with_daemon: bool,
}

/// Where git looks for the configuration of the bench.
pub(super) fn home(place: &Path) -> PathBuf {
    place.join("home")
}

impl<'a> Ground<'a> {
    /// In a place where `furnish` was called.
    pub(super) fn prepare(
        place: &Path,
        layout: &Layout,
        clients: Clients<'a>,
        cancel: &'a Cancel,
    ) -> Result<Self, BenchError> {
        let home = home(place);
        let key = random_key()?;
        let stand_in = home.join(pack_objects::NAME);
        fs_err::os::unix::fs::symlink(std::env::current_exe()?, &stand_in)?;
        fs_err::write(home.join(".gitconfig"), configuration(&key, layout.protocol, &stand_in))?;
        let root = place.join("served");
        let program = backend(&clients, place)?;
        let environment = environment(&home);
        let host = Host::start(HostOptions {
            program,
            root: root.clone(),
            environment: environment.clone(),
            reports: place.join("reports"),
            key,
            link: layout.link,
        });
        let no_port = |error| {
            BenchError::stated(
                FailureKind::Failed,
                format!("no port on 127.0.0.1: {error}"),
                "see `ip address` for the loopback",
            )
        };
        let host = host.map_err(no_port)?;
        let daemon = layout.with_daemon.then(|| Daemon::start(&root, environment, place.join("reports/daemon")));
        Ok(Self {
            place: place.to_path_buf(),
            clients,
            host,
            daemon: daemon.transpose().map_err(no_port)?,
            cancel,
            numbers: AtomicU64::new(0),
            operations: AtomicU64::new(1),
            charged: Mutex::default(),
            pushes: Mutex::default(),
        })
    }

    /// A path that is not there yet.
    pub(super) fn new_path(&self, what: &str) -> PathBuf {
        self.place.join(format!("{what}-{}", self.numbers.fetch_add(1, Ordering::Relaxed)))
    }

    /// Below the root of the host.
    pub(super) fn new_served(&self) -> (PathBuf, String) {
        let name = format!("{}.git", self.numbers.fetch_add(1, Ordering::Relaxed));
        (self.place.join("served").join(&name), name)
    }

    pub(super) fn url(&self, name: &str, from_daemon: bool) -> String {
        match &self.daemon {
            Some(daemon) if from_daemon => daemon.url(name),
            _ => self.host.url(name),
        }
    }

    pub(super) fn next_operation(&self) -> Operation {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// What an operation that has ended cost the server.
    pub(super) fn take(&self, operation: Operation, from_daemon: bool, has_failed: bool) -> Charge {
        let charge = match &self.daemon {
            Some(daemon) if from_daemon => daemon.take(has_failed),
            _ => self.host.ledger().take(operation),
        };
        self.charged.lock().unwrap_or_else(PoisonError::into_inner).add(&charge);
        charge
    }

    /// The same of pushes, which nobody asked the cost of.
    pub(super) fn take_pushes(&self, operation: Operation) {
        let charge = self.host.ledger().take(operation);
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner).add(&charge);
    }

    /// Before the first operation.
    pub(super) fn open_accounts(&self) -> Opened {
        Opened { children_seconds: children_seconds(), clients_seconds: self.clients.seconds() }
    }

    pub(super) fn close_accounts(&self, opened: &Opened) -> Accounts {
        let of = |charge: &Mutex<Charge>| *charge.lock().unwrap_or_else(PoisonError::into_inner);
        let (charged, pushes, rest) = (of(&self.charged), of(&self.pushes), self.host.ledger().rest());
        let clients = self.clients.seconds() - opened.clients_seconds;
        let own = (charged.own + pushes.own + rest.own).as_secs_f64();
        let all = opened.children_seconds.and_then(|before| Some(children_seconds()? - before));
        Accounts {
            charged_seconds: charged.cpu.as_secs_f64(),
            pushes_seconds: pushes.cpu.as_secs_f64(),
            nobodys_seconds: rest.cpu.as_secs_f64(),
            own_seconds: own,
            host_seconds: all.map(|all| all - clients - own),
        }
    }
}

pub(super) struct Opened {
    children_seconds: Option<f64>,
    clients_seconds: f64,
}

/// Whether everything that the server did was charged to somebody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounts {
    pub(crate) charged_seconds: f64,
    pub(crate) pushes_seconds: f64,
    /// Of requests without a number.
    pub(crate) nobodys_seconds: f64,
    /// What telling `git pack-objects` apart took, which is nobody's cost.
    pub(crate) own_seconds: f64,
    /// What the kernel says of all children together, less what the clients' programs took: found in another way than the charges.
    /// `None` where the kernel does not tell.
    pub(crate) host_seconds: Option<f64>,
}

impl Accounts {
    /// In percent of the host's total.
    pub(crate) fn difference_percent(&self) -> Option<f64> {
        let host = self.host_seconds?;
        let charged = self.charged_seconds + self.pushes_seconds;
        (host > 0.0).then(|| (charged - host) / host * 100.0)
    }
}

/// Makes the folders.
pub(super) fn furnish(place: &Path) -> Result<(), BenchError> {
    for name in ["home", "served", "reports", "scratch", "templates"] {
        fs_err::create_dir(place.join(name))?;
    }
    Ok(())
}

/// For both sides, with nothing of the user's.
fn configuration(key: &str, protocol: u8, stand_in: &Path) -> String {
    let hook = pack_objects::quoted(stand_in).replace('\\', r"\\").replace('"', "\\\"");
    format!(
        "[user]\n\tname = Calve\n\temail = calve@localhost\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n\
         [protocol]\n\tversion = {protocol}\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n\
         [http]\n\treceivepack = true\n\tproxy = \"\"\n\textraHeader = \"{KEY_HEADER}: {key}\"\n\
         [uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n\tpackObjectsHook = \"{hook}\"\n\
         [safe]\n\tdirectory = *\n"
    )
}

/// So that only the bench's own clients are served.
fn random_key() -> Result<String, BenchError> {
    let mut bytes = [0_u8; 16];
    // Every Unix has it; not all have a call for it.
    fs_err::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `git http-backend`, without the `git` in front of it, as web servers are told to run it.
fn backend(clients: &Clients<'_>, place: &Path) -> Result<PathBuf, BenchError> {
    let printed = clients.output(clients.git(place, None).arg("--exec-path"), "asking git for its programs")?;
    let program = PathBuf::from(String::from_utf8_lossy(&printed).trim()).join("git-http-backend");
    if program.is_file() {
        return Ok(program);
    }
    let text = format!("`{}` is missing", program.display());
    Err(BenchError::stated(
        FailureKind::Failed,
        text,
        "install the whole of git: the bench serves repositories with it",
    ))
}
