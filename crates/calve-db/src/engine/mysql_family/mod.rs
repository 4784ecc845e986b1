//! The common part of MariaDB and MySQL: the protocol's greeting, the address, the client's configuration.
//!
//! Neither tells whether something was written ([`Engine::written`](super::Engine::written)): the position in InnoDB's log is moved further by
//! a shutdown or a purge than by some writes, and not at all by others. docs/environments.md has the measurements.

mod files;
mod mariadb;
mod mysql;
mod option_files;
mod wire;

use std::ffi::OsString;
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::time::Duration;

pub(super) use mariadb::Mariadb;
pub(super) use mysql::Mysql;
pub use wire::Session;

use super::{Instance, Probe, URL_VARIABLE};
use crate::engine::address::{Address, environment, in_query};
use crate::engine::connection::Connection;
use crate::error::operation::Operation;
use crate::error::{Error, Result};
use crate::files::runtime;

const USER: &str = "root";
/// The user of TCP, as a name of SQL.
const ACCOUNT: &str = "root@'127.0.0.1'";
/// A database that `mariadb-install-db` makes, and `mysqld --initialize` does not.
const DATABASE: &str = "test";
const SOCKET: &str = "mysql.sock";
const STANDARD_PORT: u16 = 3306;
/// A greeting, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_GREETING: u64 = 4096;

/// The longest path of a data directory. The servers cut paths at 512 bytes (FN_REFLEN), and add names to that of the directory.
const LONGEST_DATA_PATH: usize = 460;

/// The variables that the clients and libraries of MariaDB and MySQL read and Calve does not set.
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

/// Expands to the methods of [`super::Engine`] that are the same for both.
macro_rules! shared {
    () => {
        fn probe(
            &self,
            address: &crate::engine::address::Address,
            patience: std::time::Duration,
        ) -> crate::engine::Probe {
            mysql_family::probe(address, patience)
        }
        fn warm(&self, address: &crate::engine::address::Address, patience: std::time::Duration) {
            mysql_family::warm(address, patience);
        }
        fn connections(&self, address: &crate::engine::address::Address, _: &[u8], asked: u64) -> Result<u64> {
            mysql_family::connections(address, asked)
        }
        fn without_effect(&self, address: &crate::engine::address::Address) -> Vec<String> {
            mysql_family::events(address)
        }
        fn neutralise(&self, data: &Path) -> Result<Vec<String>> {
            files::neutralise(data)
        }
        fn scrub(&self, data: &Path) -> Result<()> {
            files::scrub(data)
        }
        fn check_option_files(&self, home: Option<&Path>) -> Result<()> {
            mysql_family::option_files::check(home)
        }
        fn address(
            &self,
            directory: &Path,
            tcp: Option<u16>,
            password: Option<&str>,
        ) -> crate::engine::address::Address {
            mysql_family::address(directory, tcp, password)
        }
    };
}
use shared;

/// From the data directory, in which the server works. The option is a list of paths, which colons separate, and a whole path may have one.
const TEMPORARY: &str = "--tmpdir=../tmp";

/// Returns the server's command line, with the options that depend on the instance after `fixed`. `statements`: what the server runs before
/// it lets anybody in, one statement a line.
fn arguments(instance: &Instance, fixed: &[&str], statements: &str) -> Result<Vec<OsString>> {
    let address = &instance.address;
    let mut command = vec![instance.program.clone().into(), "--no-defaults".into()];
    command.extend(fixed.iter().map(OsString::from));
    command.push(option("--basedir", base(&instance.program)));
    command.push(data_option(&instance.data)?);
    command.push(TEMPORARY.into());
    command.push(option("--socket", &instance.sockets.join(SOCKET)));
    command.push(option("--pid-file", &instance.sockets.join("server.pid")));
    match address.tcp_port {
        Some(port) => command.extend(["--bind-address=127.0.0.1".into(), format!("--port={port}").into()]),
        None => command.push("--skip-networking".into()),
    }
    if !instance.purpose.is_on_a_template() {
        // All of it is written, and nothing is left to be cleaned up by each server anew.
        command.push("--innodb-fast-shutdown=0".into());
    }
    // Those that clients know are beside it, wherever this server puts its own at first.
    let socket = instance.settings.path().with_file_name(runtime::SOCKETS).join(SOCKET);
    let client = format!(
        "[client]\nsocket={}\nhost=localhost\nport={}\nuser={}\npassword=\n[mysql]\ndatabase={DATABASE}\n",
        quoted(&socket.to_string_lossy()),
        address.port,
        address.user
    );
    instance.configure("my.cnf", &client)?;
    if !statements.is_empty() {
        command.push(option("--init-file", &instance.configure("init.sql", statements)?));
    }
    Ok(command)
}

/// Quotes a value of an option file, in which `#` begins a comment. What has one kind of quotes takes the other.
fn quoted(value: &str) -> String {
    let quote = if value.contains('"') { '\'' } else { '"' };
    format!("{quote}{}{quote}", value.replace('\\', "\\\\"))
}

/// Returns the option that names the data directory. Fails if the server would cut its path.
fn data_option(data: &Path) -> Result<OsString> {
    match data.as_os_str().len() {
        bytes if bytes > LONGEST_DATA_PATH => {
            Err(Error::DataPath { path: data.to_path_buf(), bytes, most: LONGEST_DATA_PATH })
        }
        _ => Ok(option("--datadir", data)),
    }
}

/// Asks for the greeting, which any server gives.
fn probe(address: &Address, patience: Duration) -> Probe {
    let Some(mut connection) = Connection::open(address, patience) else { return Probe::NotYet };
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

/// Logs in and runs a query.
fn warm(address: &Address, patience: Duration) {
    let Some(connection) = Connection::open(address, patience) else { return };
    if let Ok(mut session) = Session::connect(connection, USER) {
        let _ = session.first_row("SELECT 1");
    }
}

/// Warns that events do not run. This client logs in without a password, so it does not warn where root has one.
fn events(address: &Address) -> Vec<String> {
    let count = Connection::open(address, PATIENCE).and_then(|connection| {
        let mut session = Session::connect(connection, USER).ok()?;
        session.first_row("SELECT COUNT(*) FROM information_schema.events").ok()?
    });
    match count.as_deref() {
        None | Some("0") => Vec::new(),
        Some("1") => vec!["the event scheduler is off: 1 event does not run".into()],
        Some(count) => vec![format!("the event scheduler is off: {count} events do not run")],
    }
}

fn connections(address: &Address, asked: u64) -> Result<u64> {
    let failed = |error| Error::io(Operation::AskForGreeting, &address.socket, error);
    let connection = Connection::open(address, PATIENCE);
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

fn address(directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address {
    let socket = runtime::sockets(directory).join(SOCKET);
    let path = socket.to_string_lossy().into_owned();
    let port = tcp.unwrap_or(STANDARD_PORT);
    let secret = password.map_or(String::new(), |password| format!(":{password}"));
    let url = format!("mysql://{USER}@localhost/{DATABASE}?socket={}", in_query(&path));
    // The clients' own configuration, which on Debian names a socket, overrides MYSQL_UNIX_PORT, but not the file in MYSQL_HOME. A login path
    // would override everything: the file that is named cannot exist.
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

/// Returns the installation that a server program belongs to: the directory above `bin`, `sbin` or `libexec`.
fn base(program: &Path) -> &Path {
    program.ancestors().nth(2).unwrap_or(program)
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(path);
    option
}
