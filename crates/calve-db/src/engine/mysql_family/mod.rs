//! MariaDB and MySQL: one protocol, two programs.

mod count;
mod files;
mod mariadb;
mod mysql;
mod option_files;
mod wire;

use std::ffi::OsString;
use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use wire::Session;
use wire::{PATIENCE, USER};

use count::Counters;

use super::{Engine, Instance, Purpose, Refusal, URL_VARIABLE, Version, numbers, setting};
use calve_core::internal::ShownPath;

use crate::engine::address::{Address, environment, in_query};
use crate::engine::connection::Connection;
use crate::error::{Error, Remedy, Result};
use crate::files::runtime;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MysqlFamily {
    Mariadb,
    Mysql,
}

/// The TCP user, as an SQL name.
const ACCOUNT: &str = "root@'127.0.0.1'";
/// A database that `mariadb-install-db` makes, and `mysqld --initialize` does not.
const DATABASE: &str = "test";
const SOCKET: &str = "mysql.sock";
const STANDARD_PORT: u16 = 3306;
const LONGEST_GREETING: u64 = 4096;

/// Servers cut paths at 512 bytes (FN_REFLEN), and append names to the data directory's.
const LONGEST_DATA_PATH: usize = 460;

/// Variables that the clients and libraries of MariaDB and MySQL read and Calve does not set.
const FOREIGN: &[&str] = &[
    "MYSQL_PWD",
    "MYSQL_GROUP_SUFFIX",
    "MARIADB_GROUP_SUFFIX",
    "MARIADB_HOME",
    "MYSQL_DEBUG",
    "MYSQL_PLUGIN_DIR",
    "MARIADB_PLUGIN_DIR",
    "MARIADB_TLS_DISABLE_PEER_VERIFICATION",
    "LIBMYSQL_PLUGINS",
    "LIBMYSQL_PLUGIN_DIR",
    "LIBMYSQL_ENABLE_CLEARTEXT_PLUGIN",
];

/// Relative to the data directory: the option is a colon-separated list, and an absolute path may have a colon.
const TEMPORARY: &str = "--tmpdir=../tmp";

/// For MySQL's initialisation too. Native AIO is off: with many servers `io_setup` fails, after retrying for seconds.
const STORAGE: &[&str] = &[
    "--skip-innodb-use-native-aio",
    "--innodb-buffer-pool-size=64M",
    "--skip-innodb-buffer-pool-dump-at-shutdown",
    "--skip-log-bin",
];

const FIXED: &[&str] = &[
    "--skip-innodb-buffer-pool-load-at-startup",
    "--skip-performance-schema",
    "--key-buffer-size=1M",
    "--skip-name-resolve",
    "--event-scheduler=OFF",
];

/// Quotes a value of an option file, where `#` begins a comment. A value with one kind of quotes gets the other.
fn quoted(value: &str) -> String {
    let quote = if value.contains('"') { '\'' } else { '"' };
    format!("{quote}{}{quote}", value.replace('\\', "\\\\"))
}

/// Fails if the server would cut the data directory's path.
fn data_option(data: &Path) -> Result<OsString> {
    let (path, bytes) = (ShownPath(data), data.as_os_str().len());
    if bytes > LONGEST_DATA_PATH {
        let text = format!(
            "the path of the data directory `{path}` is {bytes} bytes long; the server allows {LONGEST_DATA_PATH}"
        );
        return Err(Error::failed(text, Remedy::ShortenHome));
    }
    Ok(setting("--datadir", data))
}

/// Returns the installation of a server program: the directory above `bin`, `sbin` or `libexec`.
fn base(program: &Path) -> &Path {
    program.ancestors().nth(2).unwrap_or(program)
}

impl MysqlFamily {
    fn either<T>(self, mariadb: T, mysql: T) -> T {
        match self {
            Self::Mariadb => mariadb,
            Self::Mysql => mysql,
        }
    }

    fn counters(self) -> &'static Counters {
        self.either(&mariadb::COUNTERS, &mysql::COUNTERS)
    }

    /// Returns the statements that run before the first login, one a line. The alphanumeric password needs no quotes.
    fn first_statements(self, instance: &Instance) -> String {
        let is_taken_over = instance.purpose == Purpose::TakeOver;
        let mut sql = String::new();
        if is_taken_over {
            let login =
                self.either("VIA mysql_native_password USING ''", "WITH caching_sha2_password BY '' ACCOUNT UNLOCK");
            sql.push_str("CREATE USER IF NOT EXISTS root@localhost;\n");
            sql.push_str(&format!("ALTER USER root@localhost IDENTIFIED {login};\n"));
            sql.push_str("GRANT ALL PRIVILEGES ON *.* TO root@localhost WITH GRANT OPTION;\n");
        }
        if self.either(is_taken_over, !instance.purpose.is_on_a_template()) {
            sql.push_str(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"));
        }
        if let Some(password) = &instance.address.password {
            let make = self.either("CREATE OR REPLACE USER", "DROP USER IF EXISTS root@'127.0.0.1';\nCREATE USER");
            sql.push_str(&format!("{make} {ACCOUNT} IDENTIFIED BY '{password}';\n"));
            sql.push_str(&format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION;\n"));
        }
        sql
    }
}

impl Engine for MysqlFamily {
    fn name(&self) -> &'static str {
        self.either("mariadb", "mysql")
    }

    fn accounts(&self) -> &'static [&'static str] {
        self.either(&["mysql", "mariadb"], &["mysql"])
    }

    fn program(&self) -> &'static str {
        self.either("mariadbd", "mysqld")
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        let brew = format!("/opt/homebrew/opt/{}/bin", self.name());
        ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", &brew].map(PathBuf::from).to_vec()
    }

    /// MySQL also refuses data of a later release in the server's own series.
    fn takes(&self, maker: &Version, server: &Version) -> bool {
        let is_earlier = self.either(true, maker.patch() <= server.patch());
        (maker.major, maker.minor) == (server.major, server.minor) && is_earlier
    }

    fn version(&self, printed: &str) -> Option<Version> {
        let text = printed.split_once("Ver ")?.1;
        let (major, minor) = numbers(text)?;
        let is_other = self.either(!text.contains("MariaDB"), false);
        let text = if is_other { "MySQL, not MariaDB" } else { printed.trim() };
        Some(Version { major, minor, text: text.to_owned() })
    }

    fn unsupported(&self, version: &Version) -> Option<&'static str> {
        let number = (version.major, version.minor);
        // MariaDB's packages also have a `mysqld`.
        let fits = match self {
            Self::Mariadb => version.text.contains("-MariaDB") && number >= (10, 6),
            Self::Mysql => !version.text.contains("MariaDB") && number >= (8, 0),
        };
        (!fits).then_some(self.either("MariaDB 10.6 and later", "MySQL 8.0 and later"))
    }

    /// Returns false for MySQL 8.0: early releases crash if the notify socket is gone when they end.
    fn may_notify(&self, version: &str) -> bool {
        let is_later = |version: Version| (version.major, version.minor) != (8, 0);
        *self == Self::Mariadb || self.version(version).is_some_and(is_later)
    }

    fn recipe(&self) -> String {
        match self {
            Self::Mariadb => format!("{} {USER} normal {DATABASE}", mariadb::LOG_SIZE),
            Self::Mysql => format!("{} {} {USER} {DATABASE}", mysql::LOG_SIZE, mysql::OLD_LOG_SIZE),
        }
    }

    fn init(&self, program: &Path, data: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>> {
        let base = base(program);
        let mut command = match self {
            Self::Mariadb => mariadb::init(base, is_there)?,
            Self::Mysql => mysql::init(program, STORAGE),
        };
        command.extend([TEMPORARY.into(), setting("--basedir", base), data_option(data)?]);
        Ok(Some(command))
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let (address, purpose) = (&instance.address, instance.purpose);
        let options = self.either(mariadb::options(purpose), mysql::options(purpose));
        let mut command = vec![instance.program.path.clone().into(), "--no-defaults".into()];
        command.extend([STORAGE, FIXED, &options].concat().into_iter().map(OsString::from));
        command.push(setting("--basedir", base(&instance.program.path)));
        command.push(data_option(&instance.data)?);
        command.push(TEMPORARY.into());
        command.push(setting("--socket", &address.socket));
        command.push(setting("--pid-file", address.directory().join("server.pid")));
        match address.tcp_port {
            Some(port) => command.extend(["--bind-address=127.0.0.1".into(), format!("--port={port}").into()]),
            None => command.push("--skip-networking".into()),
        }
        if !purpose.is_on_a_template() {
            // Writes everything, and leaves no cleanup for each server on the template to repeat.
            command.push("--innodb-fast-shutdown=0".into());
        }
        // Clients know the sockets beside it, wherever this server puts its own at first.
        let socket = instance.settings.path.with_file_name(runtime::SOCKETS).join(SOCKET);
        let client = format!(
            "[client]\nsocket={}\nhost=localhost\nport={}\nuser={}\npassword=\n[mysql]\ndatabase={DATABASE}\n",
            quoted(&socket.to_string_lossy()),
            address.port,
            address.user
        );
        instance.configure("my.cnf", &client)?;
        let statements = self.first_statements(instance);
        if !statements.is_empty() {
            command.push(setting("--init-file", instance.configure("init.sql", &statements)?));
        }
        Ok(command)
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        match self {
            Self::Mariadb => log.contains("Starting crash recovery") || log.contains("Starting a crash recovery"),
            Self::Mysql => log.contains("Database was not shutdown normally"),
        }
    }

    fn written(&self, data: &Path, server: Option<&Address>) -> Option<String> {
        Some(format!("{} {}", count::current(self.counters(), data, server)?, files::fingerprint(data).ok()?))
    }

    fn counts(&self) -> bool {
        true
    }

    fn begin_count(&self, data: &Path, server: &Address) -> Result<()> {
        count::begin(self.counters(), data, server)
    }

    fn end_count(&self, data: &Path, server: &Address) {
        // An unknown count is taken for a change.
        let _ = count::end(self.counters(), data, server);
    }

    fn examine(&self, data: &Path, version: &Version) -> Result<()> {
        match self {
            Self::Mariadb => files::examine_mariadb(data, version),
            Self::Mysql => files::examine_mysql(data, version),
        }
    }

    fn neutralise(&self, data: &Path) -> Result<Vec<String>> {
        files::neutralise(data)
    }

    fn scrub(&self, data: &Path) -> Result<()> {
        files::scrub(data)
    }

    fn memory_bytes(&self, _: &Path) -> u64 {
        // The buffer pool, and the server's other memory.
        self.either(192, 384) << 20
    }

    fn check_option_files(&self, home: Option<&Path>) -> Result<()> {
        option_files::check(home)
    }

    /// Reads the greeting, which every server sends.
    fn probe(&self, address: &Address, patience: Duration) -> std::result::Result<(), Refusal> {
        let mut connection = Connection::open(address, patience).ok_or(Refusal::NotYet)?;
        let mut head = [0; 5];
        match (connection.read_exact(&mut head), head[4]) {
            // Protocol version 10: the greeting.
            (Ok(()), 10) => Ok(()),
            (Ok(()), 255) => {
                let mut said = [0; 512];
                let length = connection.read(&mut said).unwrap_or(0);
                let said = said[..length].get(2..).unwrap_or_default();
                Err(Refusal::Said(String::from_utf8_lossy(said).into_owned()))
            }
            _ => Err(Refusal::NotYet),
        }
    }

    fn warm(&self, address: &Address, patience: Duration) {
        let Some(connection) = Connection::open(address, patience) else { return };
        if let Ok(mut session) = Session::connect(connection, USER) {
            let _ = session.first_row("SELECT 1");
        }
    }

    /// Warns of events that do not run. Gives no warning where root has a password: this client logs in without one.
    fn without_effect(&self, address: &Address) -> Vec<String> {
        let count = wire::open(address)
            .and_then(|mut session| session.first_row("SELECT COUNT(*) FROM information_schema.events").ok()?);
        match count.as_deref() {
            None | Some("0") => Vec::new(),
            Some("1") => vec!["the event scheduler is off: 1 event does not run".into()],
            Some(count) => vec![format!("the event scheduler is off: {count} events do not run")],
        }
    }

    fn connections(&self, address: &Address, _: &[u8], asked: u64) -> Result<u64> {
        let failed = |error| Error::io("ask for a greeting on", &address.socket, error);
        let connection = Connection::open(address, PATIENCE);
        let connection = connection.ok_or_else(|| failed(std::io::ErrorKind::ConnectionRefused.into()))?;
        // The greeting: length and sequence number (4 bytes), protocol version, server version (up to a zero byte), and
        // the connection's number, which each connection raises.
        let mut greeting = std::io::BufReader::new(connection.take(LONGEST_GREETING));
        let (mut version, mut number) = (Vec::new(), [0; 4]);
        greeting.read_exact(&mut [0; 5]).map_err(failed)?;
        greeting.read_until(0, &mut version).map_err(failed)?;
        greeting.read_exact(&mut number).map_err(failed)?;
        Ok(u64::from(u32::from_le_bytes(number)).saturating_sub(asked))
    }

    fn address(&self, directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address {
        let socket = runtime::sockets(directory).join(SOCKET);
        let path = socket.to_string_lossy().into_owned();
        let port = tcp.unwrap_or(STANDARD_PORT);
        let secret = password.map_or(String::new(), |password| format!(":{password}"));
        let url = format!("mysql://{USER}@localhost/{DATABASE}?socket={}", in_query(&path));
        // The clients' own configuration (Debian's names a socket) overrides MYSQL_UNIX_PORT, but not the file in
        // MYSQL_HOME. A login path would override everything, so its file is one that cannot exist.
        let variables = [
            (URL_VARIABLE, url.clone()),
            ("MYSQL_UNIX_PORT", path.clone()),
            ("MYSQL_HOST", "localhost".into()),
            ("MYSQL_TCP_PORT", port.to_string()),
            ("MYSQL_HOME", directory.join(runtime::SETTINGS).to_string_lossy().into_owned()),
            ("MYSQL_TEST_LOGIN_FILE", "/dev/null/none".into()),
        ];
        Address {
            url,
            tcp_url: tcp.map(|port| format!("mysql://{USER}{secret}@127.0.0.1:{port}/{DATABASE}")),
            dsn: format!("{USER}@unix({path})/{DATABASE}"),
            host: "localhost".into(),
            port,
            socket,
            user: USER.into(),
            password: password.map(Into::into),
            database: DATABASE.into(),
            tcp_port: tcp,
            environment: environment(variables, FOREIGN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_later_release_is_not_taken() {
        let version = |text: &str| {
            MysqlFamily::Mysql
                .version(&format!("mysqld  Ver {text} for Linux on x86_64 (MySQL Community Server - GPL)"))
                .unwrap()
        };
        for (maker, server, takes) in [
            ("8.4.6", "8.4.6", true),
            ("8.4.6", "8.4.10", true),
            ("8.4.10", "8.4.6", false),
            ("8.0.40", "8.4.6", false),
        ] {
            assert_eq!(MysqlFamily::Mysql.takes(&version(maker), &version(server)), takes, "{maker} {server}");
        }
    }
}
