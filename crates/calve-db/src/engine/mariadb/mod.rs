//! MariaDB 10.6 and later.

mod examine;

use std::ffi::OsString;
use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::{Engine, Instance, Probe, Purpose, Version, numbers};
use crate::engine::connection::Connection;
use crate::error::{Error, Result};
use crate::server::runtime;
use crate::server::{Address, in_query};

pub(super) struct Mariadb;

const USER: &str = "root";
/// What `mariadb-install-db` makes.
const DATABASE: &str = "test";
const STANDARD_PORT: u16 = 3306;
/// A greeting, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_GREETING: u64 = 4096;
/// The file that InnoDB logs into. Another size than the server's is changed when it starts, so it is the same everywhere.
const LOG_SIZE: &str = "--innodb-log-file-size=32M";

/// From the data directory, in which the server works. The option is a list of paths, which colons separate, and a whole path may have one.
const TEMPORARY: &str = "--tmpdir=../tmp";

/// The data are not worth a wait for the disk. Native AIO is off because `io_setup` fails, after retrying for seconds, with
/// many servers. The last ones keep the server from contacting other machines.
const FIXED: &[&str] = &[
    LOG_SIZE,
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=fsync",
    "--skip-innodb-doublewrite",
    "--skip-innodb-use-native-aio",
    "--innodb-buffer-pool-size=64M",
    "--skip-innodb-buffer-pool-dump-at-shutdown",
    "--skip-innodb-buffer-pool-load-at-startup",
    "--skip-performance-schema",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=8M",
    "--debug-no-sync",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--skip-slave-start",
    "--event-scheduler=OFF",
];

impl Engine for Mariadb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["mysql", "mariadb"]
    }

    fn program(&self) -> &'static str {
        "mariadbd"
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        let places =
            ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/opt/homebrew/opt/mariadb/bin"];
        places.map(PathBuf::from).to_vec()
    }

    fn version(&self, printed: &str) -> Option<Version> {
        let text = printed.split_once("Ver ")?.1;
        let (major, minor) = numbers(text)?;
        let text = if text.contains("MariaDB") { printed } else { "MySQL, not MariaDB" };
        Some(Version { major, minor, text: text.trim().to_owned() })
    }

    fn unsupported(&self, version: &Version) -> Option<&'static str> {
        let fits = version.text.contains("-MariaDB") && (version.major, version.minor) >= (10, 6);
        (!fits).then_some("MariaDB 10.6 and later")
    }

    fn recipe(&self) -> String {
        format!("{LOG_SIZE} {USER} normal {DATABASE}")
    }

    fn init(&self, program: &Path, data: &Path) -> Result<Vec<OsString>> {
        let base = base(program);
        let places: Vec<PathBuf> =
            ["bin", "scripts", "sbin"].map(|place| base.join(place).join("mariadb-install-db")).to_vec();
        let Some(script) = places.iter().find(|place| place.is_file()) else {
            return Err(Error::NoProgram { program: "mariadb-install-db".into(), places });
        };
        let words =
            ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-name-resolve", LOG_SIZE, TEMPORARY];
        let mut command = vec![script.into()];
        command.extend(words.map(OsString::from));
        command.extend([option("--basedir", base), option("--datadir", data)]);
        Ok(command)
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let address = &instance.address;
        let mut command = vec![instance.program.clone().into(), "--no-defaults".into()];
        command.extend(FIXED.iter().map(OsString::from));
        command.push(option("--basedir", base(&instance.program)));
        command.push(option("--datadir", &instance.data));
        command.push(TEMPORARY.into());
        command.push(option("--socket", &address.socket));
        command.push(option("--pid-file", &instance.sockets.join("mariadbd.pid")));
        match address.tcp_port {
            Some(port) => command.extend(["--bind-address=127.0.0.1".into(), format!("--port={port}").into()]),
            None => command.push("--skip-networking".into()),
        }
        if instance.purpose != Purpose::Serve {
            // All of it is written, and nothing is left to be cleaned up by each server anew.
            command.push("--innodb-fast-shutdown=0".into());
        }
        let client = format!(
            "[client]\nsocket={}\nhost=localhost\nport={}\nuser={USER}\npassword=\n[mysql]\ndatabase={DATABASE}\n",
            address.socket.display(),
            address.port
        );
        instance.configure("my.cnf", &client)?;
        if let Some(sql) = first_statements(instance) {
            command.push(option("--init-file", &instance.configure("init.sql", &sql)?));
        }
        Ok(command)
    }

    fn probe(&self, address: &Address, patience: Duration) -> Probe {
        let Some(mut connection) = Connection::open(&address.socket, patience) else { return Probe::NotYet };
        let mut head = [0; 5];
        match (connection.read_exact(&mut head), head[4]) {
            // Protocol version 10: the greeting.
            (Ok(()), 10) => Probe::Ready,
            (Ok(()), 255) => {
                let mut said = [0; 512];
                let length = connection.read(&mut said).unwrap_or(0);
                Probe::Refused(String::from_utf8_lossy(said[..length].get(2..).unwrap_or_default()).into_owned())
            }
            _ => Probe::NotYet,
        }
    }

    fn connections(&self, address: &Address, _: &[u8], asked: u64) -> Result<u64> {
        let failed = |error| Error::io("ask for a greeting on", &address.socket, error);
        let connection = Connection::open(&address.socket, PATIENCE);
        let connection = connection.ok_or_else(|| failed(std::io::ErrorKind::ConnectionRefused.into()))?;
        // The greeting: its length and number (4 bytes), the protocol's version, the server's (up to a zero byte), and the number
        // of the connection, which each one raises.
        let mut greeting = std::io::BufReader::new(connection.take(LONGEST_GREETING));
        let (mut version, mut number) = (Vec::new(), [0; 4]);
        greeting.read_exact(&mut [0; 5]).map_err(failed)?;
        greeting.read_until(0, &mut version).map_err(failed)?;
        greeting.read_exact(&mut number).map_err(failed)?;
        Ok(u64::from(u32::from_le_bytes(number)).saturating_sub(asked))
    }

    fn settle(&self, _: &Instance) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        log.contains("Starting crash recovery") || log.contains("Starting a crash recovery")
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

    fn memory_bytes(&self) -> u64 {
        // The buffer pool, and what it takes without.
        192 << 20
    }

    fn memory_keys(&self, _: u64) -> Vec<i32> {
        Vec::new()
    }

    fn noted_memory(&self, _: &[u8]) -> Option<String> {
        None
    }

    fn address(&self, directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address {
        let socket = runtime::sockets(directory).join("mysql.sock");
        let path = socket.to_string_lossy().into_owned();
        let port = tcp.unwrap_or(STANDARD_PORT);
        let secret = password.map_or(String::new(), |password| format!(":{password}"));
        // The clients' own configuration, which on Debian names a socket, overrides MYSQL_UNIX_PORT, but not the file in MYSQL_HOME.
        let variables = [
            ("MYSQL_UNIX_PORT", path.clone()),
            ("MYSQL_HOST", "localhost".into()),
            ("MYSQL_TCP_PORT", port.to_string()),
            ("MYSQL_HOME", directory.join(runtime::SETTINGS).to_string_lossy().into_owned()),
        ];
        Address {
            url: format!("mysql://{USER}@localhost/{DATABASE}?socket={}", in_query(&path)),
            tcp_url: tcp.map(|port| format!("mysql://{USER}{secret}@127.0.0.1:{port}/{DATABASE}")),
            dsn: format!("{USER}@unix({path})/{DATABASE}"),
            host: "localhost".into(),
            port,
            socket,
            user: USER.into(),
            password: password.map(Into::into),
            database: DATABASE.into(),
            tcp_port: tcp,
            variables: variables.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        }
    }
}

/// The installation that a server program belongs to: the directory above `bin`, `sbin` or `libexec`.
fn base(program: &Path) -> &Path {
    program.ancestors().nth(2).unwrap_or(program)
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(path);
    option
}

/// What the server runs before it lets anybody in: one statement a line. The password is of letters and digits.
fn first_statements(instance: &Instance) -> Option<String> {
    let mut sql = String::new();
    if instance.purpose == Purpose::TakeOver {
        sql.push_str("CREATE USER IF NOT EXISTS root@localhost;\n");
        sql.push_str("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING '';\n");
        sql.push_str("GRANT ALL PRIVILEGES ON *.* TO root@localhost WITH GRANT OPTION;\n");
        sql.push_str("CREATE DATABASE IF NOT EXISTS test;\n");
    }
    if let Some(password) = &instance.address.password {
        sql.push_str(&format!("CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY '{password}';\n"));
        sql.push_str("GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n");
    }
    (!sql.is_empty()).then_some(sql)
}
