//! The surroundings of all clients: the directory, the configuration of git on both sides, the host, and the accounts.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use calve_core::CancelToken;
use calve_receipt::bench::Accounting;

use super::clients::{Clients, environment};
use super::host::ledger::{Charge, OperationNumber};
use super::host::{Host, HostOptions, KEY_HEADER, Treatment};
use super::pack_objects;
use crate::error::{BenchError, FailureKind};
use crate::machine::children_seconds;
use crate::remedy::Remedy;

pub(super) struct Testbed<'a> {
    directory: PathBuf,
    pub(super) clients: Clients<'a>,
    host: Host,
    pub(super) cancel: &'a CancelToken,
    numbers: AtomicU64,
    operations: AtomicU64,
    charged: Mutex<Charge>,
    pushes: Mutex<Charge>,
}

/// The version of git's protocol.
pub(super) const PROTOCOL: u8 = 2;

/// Returns where git looks for the configuration of the bench.
pub(super) fn home(directory: &Path) -> PathBuf {
    directory.join("home")
}

impl<'a> Testbed<'a> {
    /// Prepares a testbed in a directory where `furnish` was called.
    pub(super) fn prepare(directory: &Path, clients: Clients<'a>, cancel: &'a CancelToken) -> Result<Self, BenchError> {
        let home = home(directory);
        let key = random_key()?;
        let stand_in = home.join(pack_objects::NAME);
        fs_err::os::unix::fs::symlink(std::env::current_exe()?, &stand_in)?;
        fs_err::write(home.join(".gitconfig"), configuration(&key, &stand_in))?;
        let program = backend(&clients, directory)?;
        let host = Host::start(HostOptions {
            program,
            root: directory.join("served"),
            environment: environment(&home),
            reports: directory.join("reports"),
            decide: Box::new(move |head| match head.header(&KEY_HEADER.to_ascii_lowercase()) {
                Some(given) if given == key => Treatment::Serve,
                _ => Treatment::Refuse("403 Forbidden\r\n"),
            }),
        });
        let no_port = |error| {
            BenchError::stated(
                FailureKind::Failed,
                format!("cannot serve on 127.0.0.1: {error}"),
                Remedy::BringLoopbackUp,
            )
        };
        let host = host.map_err(no_port)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            clients,
            host,
            cancel,
            numbers: AtomicU64::new(0),
            operations: AtomicU64::new(1),
            charged: Mutex::default(),
            pushes: Mutex::default(),
        })
    }

    /// Returns a path that is not there yet.
    pub(super) fn new_path(&self, what: &str) -> PathBuf {
        self.directory.join(format!("{what}-{}", self.numbers.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns a path below the root of the host that is not there yet, and its name.
    pub(super) fn new_served(&self) -> (PathBuf, String) {
        let name = format!("{}.git", self.numbers.fetch_add(1, Ordering::Relaxed));
        (self.directory.join("served").join(&name), name)
    }

    pub(super) fn url(&self, name: &str) -> String {
        self.host.url(name)
    }

    pub(super) fn next_operation(&self) -> OperationNumber {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the server's cost of an operation that has ended.
    pub(super) fn take(&self, operation: OperationNumber) -> Charge {
        let charge = self.host.ledger().take(operation);
        self.charged.lock().unwrap_or_else(PoisonError::into_inner).add(&charge);
        charge
    }

    /// Adds up the server's cost of pushes, which nobody asked the cost of.
    pub(super) fn take_pushes(&self, operation: OperationNumber) {
        let charge = self.host.ledger().take(operation);
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner).add(&charge);
    }

    /// Opens the books, before the first operation.
    pub(super) fn open_accounts(&self) -> OpeningBalance {
        OpeningBalance { children_seconds: children_seconds(), clients_seconds: self.clients.seconds() }
    }

    /// Compares what was charged with what the kernel says of all children together, less what the clients' programs took: found in
    /// another way than the charges.
    pub(super) fn close_accounts(&self, opening: &OpeningBalance) -> Accounting {
        let of = |charge: &Mutex<Charge>| *charge.lock().unwrap_or_else(PoisonError::into_inner);
        let (charged, pushes, rest) = (of(&self.charged), of(&self.pushes), self.host.ledger().rest());
        let clients = self.clients.seconds() - opening.clients_seconds;
        let own = (charged.own + pushes.own + rest.own).as_secs_f64();
        let all = opening.children_seconds.and_then(|before| Some(children_seconds()? - before));
        let ms = |cpu: std::time::Duration| cpu.as_secs_f64() * 1000.0;
        let host_cpu_ms = all.map(|all| (all - clients - own) * 1000.0);
        let difference = |host: f64| (host > 0.0).then(|| (ms(charged.cpu + pushes.cpu) - host) / host * 100.0);
        Accounting {
            host_cpu_ms,
            charged_cpu_ms: ms(charged.cpu),
            pushes_cpu_ms: ms(pushes.cpu),
            not_charged_cpu_ms: ms(rest.cpu),
            bench_cpu_ms: own * 1000.0,
            difference_percent: host_cpu_ms.and_then(difference),
        }
    }
}

/// The cost before the accounts were opened.
pub(super) struct OpeningBalance {
    children_seconds: Option<f64>,
    clients_seconds: f64,
}

/// Makes the folders.
pub(super) fn furnish(directory: &Path) -> Result<(), BenchError> {
    for name in ["home", "served", "reports", "scratch", "templates"] {
        fs_err::create_dir(directory.join(name))?;
    }
    Ok(())
}

/// Returns git's configuration for both sides, with nothing of the user's.
fn configuration(key: &str, stand_in: &Path) -> String {
    let hook = pack_objects::quoted(stand_in).replace('\\', r"\\").replace('"', "\\\"");
    format!(
        "[user]\n\tname = Calve\n\temail = calve@localhost\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n\
         [protocol]\n\tversion = {PROTOCOL}\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n\
         [http]\n\treceivepack = true\n\tproxy = \"\"\n\textraHeader = \"{KEY_HEADER}: {key}\"\n\
         [uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n\tpackObjectsHook = \"{hook}\"\n\
         [safe]\n\tdirectory = *\n"
    )
}

/// Returns a key by which only the bench's own clients are served.
fn random_key() -> Result<String, BenchError> {
    let mut bytes = [0_u8; 16];
    // Every Unix has it; not all have a call for it.
    fs_err::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Finds `git http-backend`, without the `git` in front of it, as web servers are told to run it.
fn backend(clients: &Clients<'_>, directory: &Path) -> Result<PathBuf, BenchError> {
    let printed = clients.output(clients.git(directory, None).arg("--exec-path"), "asking git for its programs")?;
    let program = PathBuf::from(String::from_utf8_lossy(&printed).trim()).join("git-http-backend");
    if program.is_file() {
        return Ok(program);
    }
    let text = format!("`{}` is missing", program.display());
    Err(BenchError::stated(FailureKind::Failed, text, Remedy::InstallAllOfGit))
}
