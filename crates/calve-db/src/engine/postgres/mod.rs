//! PostgreSQL 13 to 18.

mod examine;
mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_core::CancelToken;
use rustix::process::Signal;

use self::wire::NAME;
pub use self::wire::Session;
use super::{Engine, Instance, Purpose, Refusal, URL_VARIABLE, Version, numbers, setting};
use crate::engine::address::{Address, environment, in_query};
use crate::engine::connection::Connection;
use crate::error::{Error, Result, UnusableData};
use crate::files::runtime;

pub(super) struct Postgres;

const USER: &str = "postgres";
const DATABASE: &str = "postgres";
const STANDARD_PORT: u16 = 5432;
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait for samples of all tables of a database.
const PATIENCE_TO_ANALYSE: Duration = Duration::from_secs(60);

/// Settings that hold whatever a template says: the command line overrides `ALTER SYSTEM`. Other dynamic shared memory
/// leaves files in /dev/shm after a kill. The rest prevents contact with other machines.
const FIXED: &[&str] = &[
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_logical_replication_workers=0",
    "archive_mode=off",
    "restore_command=",
    "primary_conninfo=",
    "dynamic_shared_memory_type=mmap",
    "logging_collector=off",
    "log_destination=stderr",
    "ssl=off",
    "external_pid_file=",
];

/// The data is not worth a wait. With fsync, a recovery opens every file for writing: an overlay copies all of them.
const FAST: &[&str] = &["fsync=off"];

/// Settings for kept data, whatever a template says.
const DURABLE: &[&str] = &["fsync=on", "full_page_writes=on"];

/// A recovery first syncs all files. To open each takes a second per thousand. This is one call, known since PostgreSQL
/// 14, and Linux reports its write errors since 5.8 (syncfs(2)). A template can change it by `ALTER SYSTEM`.
const SYNCED_AT_ONCE: &str = "recovery_init_sync_method = syncfs\n";

/// Makes a server under construction log who connects, in known words, whatever `ALTER SYSTEM` says.
const TELLING: &[&str] = &["log_connections=on", "log_min_messages=warning", "lc_messages=C"];
/// `PGShmemMagic`.
const MEMORY_MAGIC: u32 = 679_834_894;
const CONNECTED: &[u8] = b"connection authorized: ";

/// Refusals of servers that lack initdb's objects for the user `postgres`, the object, and the command that makes it.
const LACKING: &[(&str, &str, &str)] = &[
    ("role \"postgres\" does not exist", "superuser `postgres`", "createuser --superuser postgres"),
    ("role \"postgres\" is not permitted to log in", "superuser `postgres` who may log in", MAKE_SUPERUSER),
    ("permission denied for table pg_subscription", "superuser `postgres`", MAKE_SUPERUSER),
    ("database \"postgres\" does not exist", "database `postgres`", "createdb postgres"),
];
/// Gives none while an earlier transaction is open: its commit would not change the number.
const NEXT_TRANSACTION: &str = "SELECT txid_snapshot_xmax(now) FROM txid_current_snapshot() AS now \
                                WHERE txid_snapshot_xmin(now) = txid_snapshot_xmax(now)";
const MAKE_SUPERUSER: &str = "psql -c 'ALTER ROLE postgres SUPERUSER LOGIN'";

/// Settings for servers whose data goes with them. A template can change them by `ALTER SYSTEM`. `synchronous_commit`
/// stays on: without `fsync` it waits for no disk, and commits survive a killed server, as after a mark that fails.
const FAST_SETTINGS: &str = "full_page_writes = off\n";

/// Settings for small servers. A template can change them by `ALTER SYSTEM`.
const SETTINGS: &str = "\
shared_buffers = 32MB
max_wal_size = 256MB
huge_pages = off
jit = off
update_process_title = off
";

const INIT: &[&str] = &["--auth=trust", "--encoding=UTF8", "--no-sync"];
/// UTF-8 sorted by code point: the same on every machine.
const LOCALE: &str = if cfg!(target_vendor = "apple") { "--locale=C" } else { "--locale=C.UTF-8" };

/// Variables that libpq reads (its manual, "Environment Variables", versions 13 to 18) and Calve does not set.
const FOREIGN: &[&str] = &[
    "PGHOSTADDR",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGREQUIREAUTH",
    "PGCHANNELBINDING",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PGOPTIONS",
    "PGAPPNAME",
    "PGSSLMODE",
    "PGREQUIRESSL",
    "PGSSLNEGOTIATION",
    "PGSSLCOMPRESSION",
    "PGSSLCERT",
    "PGSSLKEY",
    "PGSSLCERTMODE",
    "PGSSLROOTCERT",
    "PGSSLCRL",
    "PGSSLCRLDIR",
    "PGSSLSNI",
    "PGSSLKEYLOGFILE",
    "PGREQUIREPEER",
    "PGSSLMINPROTOCOLVERSION",
    "PGSSLMAXPROTOCOLVERSION",
    "PGMINPROTOCOLVERSION",
    "PGMAXPROTOCOLVERSION",
    "PGGSSENCMODE",
    "PGKRBSRVNAME",
    "PGREALM",
    "PGGSSLIB",
    "PGGSSDELEGATION",
    "PGCONNECT_TIMEOUT",
    "PGCLIENTENCODING",
    "PGTARGETSESSIONATTRS",
    "PGLOADBALANCEHOSTS",
    "PGDATESTYLE",
    "PGTZ",
    "PGGEQO",
    "PGTTY",
    "PGLOCALEDIR",
];

fn session(server: &Address) -> Result<Session<Connection>> {
    Session::open(server, DATABASE, PATIENCE).map_err(|refusal| match refusal {
        Refusal::NotYet => refused("it does not answer".into()),
        Refusal::Said(said) => refused(said),
    })
}

/// Gathers the planner's statistics. A failure is no fault of the template: autovacuum tries again.
fn analyse(server: &Address) {
    let names = session(server)
        .and_then(|mut session| session.query("SELECT datname FROM pg_database WHERE datallowconn").map_err(refused));
    for name in names.into_iter().flatten() {
        if let Ok(mut session) = Session::open(server, &name, PATIENCE_TO_ANALYSE) {
            // A session that the command left may hold locks until the server ends.
            let _ = session.query("SET lock_timeout = '1s'").and_then(|_| session.query("ANALYZE"));
        }
    }
}

fn refused(said: String) -> Error {
    Error::server_failed(format!("refused a query: {said}"))
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn program(&self) -> &'static str {
        "postgres"
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        let mut places = Vec::new();
        for version in (13..=18).rev() {
            places.push(format!("/usr/lib/postgresql/{version}/bin").into());
            places.push(format!("/usr/pgsql-{version}/bin").into());
            places.push(format!("/opt/homebrew/opt/postgresql@{version}/bin").into());
        }
        places.push("/usr/local/pgsql/bin".into());
        places
    }

    fn version(&self, printed: &str) -> Option<Version> {
        let (major, minor) = numbers(printed.split_once("PostgreSQL)")?.1)?;
        Some(Version { major, minor, text: printed.trim().to_owned() })
    }

    fn unsupported(&self, version: &Version) -> Option<&'static str> {
        (!(13..=18).contains(&version.major)).then_some("PostgreSQL 13 to 18")
    }

    fn takes(&self, maker: &Version, server: &Version) -> bool {
        maker.major == server.major
    }

    fn recipe(&self) -> String {
        format!("{} {LOCALE} {USER}", INIT.join(" "))
    }

    fn init(&self, program: &Path, data: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>> {
        let initdb = program.with_file_name("initdb");
        if !is_there(&initdb) {
            return Err(Error::NoProgram { program: "initdb".into(), places: vec![initdb] });
        }
        let mut command: Vec<OsString> = vec![initdb.into(), "-D".into(), data.into(), "-U".into(), USER.into()];
        command.extend(INIT.iter().chain(&[LOCALE]).map(Into::into));
        Ok(Some(command))
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let kernel = rustix::system::uname();
        let is_synced_at_once = cfg!(target_os = "linux")
            && self.version(&instance.program.version).is_some_and(|version| version.major >= 14)
            && numbers(&kernel.release().to_string_lossy()).is_some_and(|release| release >= (5, 8));
        let (forced, more) = match instance.purpose {
            Purpose::Keep if is_synced_at_once => (DURABLE, SYNCED_AT_ONCE),
            Purpose::Keep => (DURABLE, ""),
            _ => (FAST, FAST_SETTINGS),
        };
        let config = instance.configure("postgresql.conf", &format!("{SETTINGS}{more}"))?;
        let users =
            instance.configure("pg_hba.conf", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")?;
        let names = instance.configure("pg_ident.conf", "")?;
        let mut command: Vec<OsString> =
            vec![instance.program.path.clone().into(), "-D".into(), instance.data.clone().into()];
        let listening = if instance.address.tcp_port.is_some() { "127.0.0.1" } else { "" };
        let own = [
            setting("config_file", config),
            setting("hba_file", users),
            setting("ident_file", names),
            setting("unix_socket_directories", instance.address.directory()),
            setting("port", instance.address.port.to_string()),
            setting("listen_addresses", listening),
        ];
        let telling = if instance.purpose.is_on_a_template() { &[] } else { TELLING };
        let settings = own.into_iter().chain(FIXED.iter().chain(forced).chain(telling).map(OsString::from));
        command.extend(settings.flat_map(|setting| ["-c".into(), setting]));
        Ok(command)
    }

    fn lacking(&self, said: &str) -> Option<UnusableData> {
        let (_, what, command) = LACKING.iter().find(|(words, ..)| said.contains(words))?;
        Some(UnusableData::Lacks { what: (*what).into(), command: (*command).into() })
    }

    fn probe(&self, address: &Address, patience: Duration) -> std::result::Result<(), Refusal> {
        Session::open(address, DATABASE, patience).map(drop)
    }

    fn connections(&self, _: &Address, log: &[u8], _: u64) -> Result<u64> {
        // The server logs a connection before it admits it.
        let own = format!("application_name={NAME}").into_bytes();
        let tells = |line: &&[u8]| !line.ends_with(&own) && line.windows(CONNECTED.len()).any(|part| part == CONNECTED);
        Ok(log.split(|byte| *byte == b'\n').filter(tells).count() as u64)
    }

    fn finish_start(&self, instance: &Instance, _: &CancelToken) -> Result<Vec<String>> {
        let password = instance.address.password.as_ref();
        if instance.purpose != Purpose::TakeOver && password.is_none() {
            return Ok(Vec::new());
        }
        let mut session = session(&instance.address)?;
        // The data may make transactions read-only by default.
        session.query("SET default_transaction_read_only = off").map_err(refused)?;
        let mut done = Vec::new();
        if instance.purpose == Purpose::TakeOver {
            let sql = "UPDATE pg_subscription SET subenabled = false WHERE subenabled RETURNING subname";
            let names = session.query(sql).map_err(refused)?;
            done.extend(names.into_iter().map(|name| format!("disabled the subscription `{name}`")));
        }
        if let Some(password) = password {
            // Alphanumeric, so it needs no quotes.
            session.query(&format!("ALTER ROLE {USER} PASSWORD '{password}'")).map_err(refused)?;
        }
        Ok(done)
    }

    fn stop_signal(&self) -> Signal {
        // "Fast": ends sessions, writes everything.
        Signal::INT
    }

    fn ask_to_end(&self, address: &Address, purpose: Purpose, _: &Path) -> Result<bool> {
        // Otherwise autovacuum does it in every clone a minute later, and that looks like a client's write.
        if !purpose.is_on_a_template() {
            analyse(address);
        }
        Ok(false)
    }

    fn bytes_to_end(&self) -> u64 {
        // All of `shared_buffers`, where blocks shared with other clones must be copied, and one WAL file.
        48 << 20
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        log.contains("automatic recovery in progress")
    }

    fn lost_in_recovery(&self, data: &Path) -> Result<Option<String>> {
        let lost = "the rows of UNLOGGED tables, which are kept only if the server is stopped first";
        Ok(examine::has_unlogged_rows(data)?.then(|| lost.into()))
    }

    fn written(&self, data: &Path, server: Option<&Address>) -> Option<String> {
        // Every write takes a transaction number. Settings of `ALTER SYSTEM` take none, but change a file.
        let next = match server {
            None => examine::next_transaction(data).ok()??,
            Some(address) => session(address).ok()?.query(NEXT_TRANSACTION).ok()?.pop()?.parse().ok()?,
        };
        Some(format!("{next} {}", examine::settings(data).ok()?))
    }

    fn write_back(&self, server: &Address) -> Result<()> {
        session(server)?.query("CHECKPOINT").map(drop).map_err(refused)
    }

    fn examine(&self, data: &Path, version: &Version) -> Result<()> {
        examine::examine(data, version)
    }

    fn neutralise(&self, data: &Path) -> Result<Vec<String>> {
        examine::neutralise(data)
    }

    fn scrub(&self, data: &Path) -> Result<()> {
        examine::scrub(data)
    }

    fn memory_bytes(&self, _: &Path) -> u64 {
        // `shared_buffers`, and ten processes.
        96 << 20
    }

    fn memory_keys(&self, inode: u64) -> Vec<i32> {
        // Servers take the first free key from the inode number on (sysv_shmem.c, PGSharedMemoryCreate).
        let first = (inode & u64::from(u32::MAX)) as u32;
        (0..64).map(|more| first.wrapping_add(more).cast_signed()).collect()
    }

    fn noted_memory(&self, head: &[u8]) -> Option<String> {
        // PGShmemHeader (pg_shmem.h): magic number and pid, 4 bytes each, two sizes, and the number in the name of the
        // DSM control segment (dsm_impl.c). Calve's servers use files instead, but initdb's do not.
        let magic = head.first_chunk().copied().map(u32::from_ne_bytes)?;
        let at = 8 + 2 * size_of::<usize>();
        let number = head.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)?;
        (magic == MEMORY_MAGIC && number != 0).then(|| format!("PostgreSQL.{number}"))
    }

    fn address(&self, directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address {
        let port = tcp.unwrap_or(STANDARD_PORT);
        let sockets = runtime::sockets(directory);
        let host = sockets.to_string_lossy().into_owned();
        let more = if port == STANDARD_PORT { String::new() } else { format!("&port={port}") };
        let secret = password.map_or(String::new(), |password| format!(":{password}"));
        let url = format!("postgresql://{USER}@/{DATABASE}?host={}{more}", in_query(&host));
        let variables = [
            (URL_VARIABLE, url.clone()),
            ("PGHOST", host.clone()),
            ("PGPORT", port.to_string()),
            ("PGUSER", USER.into()),
            ("PGDATABASE", DATABASE.into()),
        ];
        Address {
            url,
            tcp_url: tcp.map(|port| format!("postgresql://{USER}{secret}@127.0.0.1:{port}/{DATABASE}")),
            dsn: format!("host={host} port={port} user={USER} dbname={DATABASE}"),
            socket: sockets.join(format!(".s.PGSQL.{port}")),
            host,
            port,
            user: USER.into(),
            password: password.map(Into::into),
            database: DATABASE.into(),
            tcp_port: tcp,
            environment: environment(variables, FOREIGN),
        }
    }
}
