//! Variables and option files that lead the engines' own programs to another server than the given one.

use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::files::directory::Directory;

/// The variables that libpq reads (its manual, "Environment Variables", versions 13 to 18) and Calve does not set.
const LIBPQ: &[&str] = &[
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

/// The variables that the clients and libraries of MariaDB and MySQL read and Calve does not set.
const MYSQL: &[&str] = &[
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

/// The passwords that the clients of Redis and Valkey send, which a server without one refuses.
const REDIS: &[&str] = &["REDISCLI_AUTH", "VALKEYCLI_AUTH"];

/// The groups of options that MariaDB's and MySQL's own clients read.
const CLIENTS: &[&str] = &[
    "client",
    "client-server",
    "client-mariadb",
    "mariadb-client",
    "mysql",
    "mariadb",
    "mysqladmin",
    "mariadb-admin",
    "mysqldump",
    "mariadb-dump",
    "mysqlimport",
    "mariadb-import",
    "mysqlcheck",
    "mariadb-check",
    "mysqlshow",
    "mariadb-show",
    "mysqlslap",
    "mariadb-slap",
];
/// The options that choose a server.
const WHERE: &[&str] = &["host", "port", "socket", "protocol", "pipe"];
/// The option files of distributions and vendors.
const OF_THE_SYSTEM: &[&str] =
    &["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/local/etc/my.cnf", "/opt/homebrew/etc/my.cnf"];
const LARGEST_BYTES: u64 = 1 << 20;
/// The maximum depth of includes. Some files include themselves.
const DEEPEST: usize = 10;

/// Returns whether it is Redis or Valkey.
pub(crate) fn is_redis(address: &Address) -> bool {
    address.url.starts_with("unix:") || address.url.starts_with("redis:")
}

fn is_mysql(address: &Address) -> bool {
    address.url.starts_with("mysql:")
}

/// Returns the variables that must not be set beside [`Address::environment`].
pub(crate) fn foreign_variables(address: &Address) -> &'static [&'static str] {
    match address {
        address if is_mysql(address) => MYSQL,
        address if is_redis(address) && address.password.is_some() => &[],
        address if is_redis(address) => REDIS,
        _ => LIBPQ,
    }
}

/// Returns the variable that keeps MySQL's programs from reading a login path, which would override everything: it names a file that cannot
/// exist.
pub(crate) fn no_login_path(address: &Address) -> Option<(String, String)> {
    is_mysql(address).then(|| ("MYSQL_TEST_LOGIN_FILE".to_owned(), "/dev/null/none".to_owned()))
}

/// Refuses option files that would lead MariaDB's clients to another server whatever their environment says. `home` is the directory whose
/// `.my.cnf` they read.
pub fn check_option_files(address: &Address, home: Option<&Path>) -> Result<()> {
    if !is_mysql(address) {
        return Ok(());
    }
    // Calve's own file, which is read later than these, overrides all but the protocol.
    for path in OF_THE_SYSTEM {
        check_file(Path::new(path), &["protocol", "pipe"], 0)?;
    }
    home.map_or(Ok(()), |home| check_file(&home.join(".my.cnf"), WHERE, 0))
}

fn check_file(path: &Path, options: &[&str], depth: usize) -> Result<()> {
    // A file that these clients cannot read, they do not obey either. A user may keep the file elsewhere, and link it.
    let Ok(path) = fs_err::canonicalize(path) else { return Ok(()) };
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let Ok(Some(text)) = Directory::open(above).and_then(|above| above.read_to_string(name, LARGEST_BYTES)) else {
        return Ok(());
    };
    let mut is_for_clients = false;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_for_clients = CLIENTS.contains(&group.0.trim());
        } else if let Some(directive) = line.strip_prefix('!') {
            if depth < DEEPEST {
                included(directive).iter().try_for_each(|file| check_file(file, options, depth + 1))?;
            }
        } else if is_for_clients && let Some(option) = leads_elsewhere(line, options) {
            return Err(Error::OptionFile { path, option });
        }
    }
    Ok(())
}

/// Returns the files that an `!include` or `!includedir` names.
fn included(directive: &str) -> Vec<PathBuf> {
    if let Some(directory) = directive.strip_prefix("includedir") {
        let directory = Path::new(directory.trim());
        let entries = Directory::open(directory).and_then(|directory| directory.entries()).unwrap_or_default();
        let files = entries.into_iter().map(|entry| directory.join(entry.name));
        return files.filter(|file| file.extension().is_some_and(|end| end == "cnf")).collect();
    }
    directive.strip_prefix("include").map(|file| PathBuf::from(file.trim())).into_iter().collect()
}

/// Returns the option that a line sets, if it is one of `options` and leads elsewhere. Names may be shortened and have `_` for `-`.
fn leads_elsewhere(line: &str, options: &[&str]) -> Option<String> {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim().replace('_', "-").to_ascii_lowercase();
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let value = value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    let option = options.iter().find(|option| name.len() > 1 && option.starts_with(name))?;
    // Clients use the socket for `localhost` and by default; by TCP, `localhost` is this machine.
    let is_here = match *option {
        "host" => value.eq_ignore_ascii_case("localhost"),
        "protocol" => value.eq_ignore_ascii_case("socket"),
        _ => false,
    };
    (!is_here).then(|| (*option).to_owned())
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn files_that_name_another_server_are_found() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(".my.cnf");
        let found = |text: &str| {
            fs::write(&file, text).unwrap();
            match check_file(&file, WHERE, 0) {
                Err(Error::OptionFile { option, .. }) => Some(option),
                other => other.map(|()| None).unwrap(),
            }
        };
        for (text, option) in [
            ("[client]\nhost = prod\n", "host"),
            ("[mysql]\n# no\nsocket=/run/mysqld/mysqld.sock", "socket"),
            ("[mysqld]\nport=1\n[client]\nuser=me\n  port = 3307 # dev\n", "port"),
            ("[mariadb-client]\nprotocol=tcp", "protocol"),
            ("[client]\nloose_host=prod", "host"),
            ("[client]\nhos=prod", "host"),
        ] {
            assert_eq!(found(text).as_deref(), Some(option), "{text}");
        }
        for text in [
            "",
            "host=prod",
            "[client]\nuser=me\npassword=secret\n",
            "[mysqld]\nsocket=/x\nport=3306\n",
            "[clientprod]\nhost=prod\n",
            "[client]\nhost=localhost\n#host=prod\n",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        let more = place.path().join("more");
        fs::create_dir(&more).unwrap();
        fs::write(more.join("a.cnf"), "[client]\nsocket=/x\n").unwrap();
        assert_eq!(found(&format!("!includedir {}\n", more.display())).as_deref(), Some("socket"));
        assert_eq!(found(&format!("!include {}\n", more.join("a.cnf").display())).as_deref(), Some("socket"));
        // One that includes itself ends too.
        assert_eq!(found(&format!("!include {}\n", file.display())), None);
    }
}
