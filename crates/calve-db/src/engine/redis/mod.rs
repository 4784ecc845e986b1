//! Redis 7.0 and later, and Valkey: one protocol, one kind of data directory, two programs.
//!
//! The data is in the server's memory. Each server loads the template's dump of it (`dump.rdb`). Kept data is also in
//! append-only files, so that no confirmed write is lost.

mod dump;
mod session;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::CancelToken;

use self::session::Session;
use super::{Engine, Instance, Purpose, Refusal, Version, numbers};
use crate::engine::address::{Address, environment, in_query};
use crate::error::{Error, Remedy, Result, unless_cancelled};
use crate::files::runtime;

pub(super) struct Redis {
    name: &'static str,
    program: &'static str,
    /// The beginning of the output of `--version`.
    banner: &'static str,
    oldest: (u32, u32),
    supported: &'static str,
    usual_places: &'static [&'static str],
}

pub(super) const REDIS: Redis = Redis {
    name: "redis",
    program: "redis-server",
    banner: "Redis server v=",
    oldest: (7, 0),
    supported: "Redis 7.0 and later",
    usual_places: &["/usr/bin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/opt/redis/bin"],
};

pub(super) const VALKEY: Redis = Redis {
    name: "valkey",
    program: "valkey-server",
    // Some print the name in capitals.
    banner: "Valkey server v=",
    oldest: (7, 2),
    supported: "Valkey 7.2 and later",
    usual_places: &["/usr/bin", "/usr/local/bin", "/usr/local/valkey/bin", "/opt/homebrew/opt/valkey/bin"],
};

const SOCKET: &str = "redis.sock";
/// Variables with a client's password, which a server without one refuses.
const PASSWORDS: [&str; 2] = ["REDISCLI_AUTH", "VALKEYCLI_AUTH"];
const STANDARD_PORT: u16 = 6379;
/// The user of clients that name none.
const USER: &str = "default";
/// Databases have numbers. This one always exists.
const DATABASE: &str = "0";
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait for a write of all memory to a disk.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(600);
/// An empty server's memory.
const OWN_BYTES: u64 = 16 << 20;

/// The server dumps only on request: otherwise each `FLUSHALL` would. A failed dump does not keep clients from writing.
const FIXED: &str = "\
dbfilename dump.rdb
save \"\"
stop-writes-on-bgsave-error no
supervised systemd
daemonize no
set-proc-title no
always-show-logo no
logfile \"\"
unixsocketperm 700
";

impl Engine for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Differs from the one for SQL: a program may use both.
    fn url_variable(&self) -> &'static str {
        "REDIS_URL"
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["redis", "valkey"]
    }

    fn program(&self) -> &'static str {
        self.program
    }

    fn is_known_by_name(&self) -> bool {
        // One file is `redis-server`, `redis-check-rdb`, `redis-check-aof` and, in some packages, `redis-cli`.
        true
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        self.usual_places.iter().map(PathBuf::from).collect()
    }

    fn version(&self, printed: &str) -> Option<Version> {
        let (major, minor) = numbers(printed.split_once(" v=")?.1)?;
        Some(Version { major, minor, text: printed.trim().to_owned() })
    }

    fn unsupported(&self, version: &Version) -> Option<&'static str> {
        let is_own = version.text.get(..self.banner.len()).is_some_and(|text| text.eq_ignore_ascii_case(self.banner));
        let fits = is_own && (version.major, version.minor) >= self.oldest;
        (!fits).then_some(self.supported)
    }

    fn takes(&self, maker: &Version, server: &Version) -> bool {
        (maker.major, maker.minor) <= (server.major, server.minor)
    }

    fn recipe(&self) -> String {
        "empty".into()
    }

    fn init(&self, _: &Path, _: &Path, _: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>> {
        // A server without a dump begins empty.
        Ok(None)
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let Instance { address, purpose, .. } = instance;
        let mut text = String::from(FIXED);
        let mut set = |name: &str, value: &str| text.push_str(&format!("{name} {value}\n"));
        set("dir", &quoted(&instance.data));
        set("unixsocket", &quoted(&address.socket));
        match address.tcp_port {
            Some(port) => {
                set("bind", "127.0.0.1");
                set("port", &port.to_string());
            }
            None => set("port", "0"),
        }
        if let Some(password) = &address.password {
            // Alphanumeric, so it needs no quotes.
            set("requirepass", password);
        }
        let loads_append_only_files = match purpose {
            // Templates have none, but a copy of a service has.
            Purpose::Keep | Purpose::Serve | Purpose::Build => dump::has_append_only_files(&instance.data_here)?,
            Purpose::TakeOver => dump::source(&instance.data_here)?.is_append_only,
        };
        set("appendonly", if loads_append_only_files { "yes" } else { "no" });
        set("appendfsync", if *purpose == Purpose::Keep { "always" } else { "no" });
        let configuration = instance.configure("redis.conf", &text)?;
        Ok(vec![instance.program.path.clone().into(), configuration.into()])
    }

    fn probe(&self, address: &Address, patience: Duration) -> std::result::Result<(), Refusal> {
        Session::open(address, patience)?.ask(&["PING"]).map(drop)
    }

    fn connections(&self, address: &Address, _: &[u8], asked: u64) -> Result<u64> {
        let mut session = Session::open(address, PATIENCE).map_err(failed)?;
        let all = session.info("stats", "total_connections_received").map_err(failed)?;
        // Includes this connection.
        Ok(all.parse::<u64>().unwrap_or(0).saturating_sub(asked + 1))
    }

    fn finish_start(&self, instance: &Instance, cancel: &CancelToken) -> Result<Vec<String>> {
        let mut session = Session::open(&instance.address, PATIENCE_TO_WRITE).map_err(failed)?;
        let is_on = session.info("persistence", "aof_enabled").map_err(failed)? == "1";
        match instance.purpose {
            Purpose::Keep if !is_on => {
                // Turned on at startup, it would ignore the dump.
                session.ask(&["CONFIG", "SET", "appendonly", "yes"]).map_err(failed)?;
                until_rewritten(&instance.address, cancel)?;
                Ok(Vec::new())
            }
            Purpose::TakeOver => {
                let source = dump::source(&instance.data_here)?;
                session.ask(&["CONFIG", "SET", "appendonly", "no"]).map_err(failed)?;
                session.ask(&["SAVE"]).map_err(failed)?;
                dump::remove_append_only_files(&instance.data_here)?;
                Ok(source.notice.map(str::to_owned).into_iter().collect())
            }
            Purpose::Keep | Purpose::Serve | Purpose::Build => Ok(Vec::new()),
        }
    }

    fn ask_to_end(&self, address: &Address, purpose: Purpose, data: &Path) -> Result<bool> {
        // A signal would not report a failed write. Clients may have turned the append-only files on or off.
        let cancel = &CancelToken::default();
        let mut session = Session::open(address, PATIENCE_TO_WRITE).map_err(failed)?;
        if purpose != Purpose::Keep {
            // The dump gets everything. A server on it must not find incomplete append-only files.
            session.ask(&["CONFIG", "SET", "appendonly", "no"]).map_err(failed)?;
            dump::remove_append_only_files(data)?;
            session.end(&["SHUTDOWN", "SAVE"]).map_err(failed)?;
            return Ok(true);
        }
        // The next server loads the append-only files, whatever the dump has. The server replaces them as a whole, by
        // renaming their list: a kill leaves either those from before they were turned off, or complete ones. A new
        // dump would need their removal, and a kill between the two would leave them to be loaded.
        if session.info("persistence", "aof_enabled").map_err(failed)? != "1" {
            session.ask(&["CONFIG", "SET", "appendonly", "yes"]).map_err(failed)?;
            if let Err(error) = until_rewritten(address, cancel) {
                // Back to the client's setting.
                let _ = session.ask(&["CONFIG", "SET", "appendonly", "no"]);
                return Err(error);
            }
        } else if session.info("persistence", "aof_last_bgrewrite_status").map_err(failed)? != "ok" {
            // The first rewrite may have failed. The server would end without the files, unless it is just retrying.
            let _ = session.ask(&["BGREWRITEAOF"]);
            until_rewritten(address, cancel)?;
        }
        match session.end(&["SHUTDOWN"]) {
            // It refuses to end before they are complete.
            Err(Refusal::Said(_)) => {
                until_rewritten(address, cancel)?;
                session.end(&["SHUTDOWN"]).map_err(failed)?;
            }
            ended => ended.map_err(failed)?,
        }
        Ok(true)
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        // The log reports that the append-only files lack their end.
        log.contains("aof-load-truncated is enabled")
    }

    fn written(&self, data: &Path, server: Option<&Address>) -> Option<String> {
        // While the files are turned off or being replaced, they lack clients' writes.
        if let Some(server) = server {
            let answer = Session::open(server, PATIENCE).ok()?.ask(&["INFO", "persistence"]).ok()?;
            let complete = ["aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
            if !complete.iter().all(|wanted| answer.lines().any(|line| line == *wanted)) {
                return None;
            }
        }
        dump::append_only_lengths(data).ok()?
    }

    fn examine(&self, data: &Path, version: &Version) -> Result<()> {
        dump::examine(data, self.name(), version)
    }

    fn neutralise(&self, data: &Path) -> Result<Vec<String>> {
        dump::neutralise(data)
    }

    fn scrub(&self, data: &Path) -> Result<()> {
        dump::scrub(data)
    }

    fn memory_bytes(&self, data: &Path) -> u64 {
        // All of the data, and a half more while it is written to.
        OWN_BYTES + dump::memory_bytes(data).map_or(0, |bytes| bytes / 2 * 3)
    }

    fn address(&self, directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address {
        let socket = runtime::sockets(directory).join(SOCKET);
        let path = socket.to_string_lossy().into_owned();
        // Its socket needs the password, as TCP does. Without the name, `redis-cli` 7 logs in as a user without one.
        let secret = password.map_or(String::new(), |password| format!("{USER}:{password}@"));
        let url = format!("unix://{secret}{}", in_query(&path));
        let mut variables = vec![(self.url_variable(), url.clone()), ("REDIS_SOCKET", path.clone())];
        variables.extend(password.iter().flat_map(|password| PASSWORDS.map(|name| (name, (*password).to_owned()))));
        let foreign: &[&str] = if password.is_some() { &[] } else { &PASSWORDS };
        Address {
            url,
            tcp_url: tcp.map(|port| format!("redis://{secret}127.0.0.1:{port}/{DATABASE}")),
            dsn: path.clone(),
            host: path,
            port: tcp.unwrap_or(STANDARD_PORT),
            socket,
            user: USER.into(),
            password: password.map(Into::into),
            database: DATABASE.into(),
            tcp_port: tcp,
            environment: environment(variables, foreign),
        }
    }
}

fn failed(refusal: Refusal) -> Error {
    let Refusal::Said(said) = refusal else { return Error::server_failed("does not answer") };
    if ["NOAUTH", "NOPERM", "WRONGPASS"].iter().any(|code| said.starts_with(code)) {
        return Error::failed(format!("the server refused a command: {said}"), Remedy::RestoreAccess);
    }
    Error::server_failed(format!("refused a command: {said}"))
}

/// Waits until the append-only files are complete: a server killed before that would restart on older data.
fn until_rewritten(address: &Address, cancel: &CancelToken) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE_TO_WRITE {
        unless_cancelled(cancel)?;
        // A session reads a limited amount, in a limited time, so each look has its own.
        let answer = Session::open(address, PATIENCE).and_then(|mut session| session.ask(&["INFO", "persistence"]));
        let answer = answer.map_err(failed)?;
        let tells = |line: &str| answer.lines().any(|answered| answered == line);
        // A client's dump comes first.
        if !tells("aof_rewrite_in_progress:1") && !tells("rdb_bgsave_in_progress:1") {
            // The server would retry for ever.
            if !tells("aof_last_bgrewrite_status:ok") {
                return Err(Error::server_failed("could not write its append-only files"));
            }
            if !tells("aof_rewrite_scheduled:1") {
                return Ok(());
            }
        }
        std::thread::sleep(Duration::from_millis(2).max(started.elapsed() / 16));
    }
    Err(Error::server_failed(format!("did not write its append-only files within {} s", PATIENCE_TO_WRITE.as_secs())))
}

fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' '..=b'~' if !b"\"\\".contains(byte) => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        let version = |engine: &Redis, printed: &str| {
            engine.version(printed).map(|version| (version.major, version.minor, engine.unsupported(&version)))
        };
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n";
        let valkey = "Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1\n";
        assert_eq!(version(&REDIS, redis), Some((7, 0, None)));
        assert_eq!(version(&VALKEY, valkey), Some((8, 1, None)));
        assert_eq!(version(&REDIS, valkey), Some((8, 1, Some("Redis 7.0 and later"))));
        assert_eq!(version(&VALKEY, redis), Some((7, 0, Some("Valkey 7.2 and later"))));
        assert_eq!(version(&REDIS, "Redis server v=6.2.14 sha="), Some((6, 2, Some("Redis 7.0 and later"))));
        assert_eq!(version(&REDIS, "none"), None);
    }

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(quoted(Path::new("/a b/\"\\ü\n")), "\"/a b/\\x22\\x5c\\xc3\\xbc\\x0a\"");
    }
}
