//! MariaDB 10.6 and later.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{ACCOUNT, DATABASE, TEMPORARY, USER, base, data_option, files, option};
use crate::engine::{Engine, Instance, Purpose, Version, mysql_family, numbers};
use crate::error::{Error, Result};

pub(crate) struct Mariadb;

/// The file that InnoDB logs into. Another size than the server's is changed when it starts, so it is the same everywhere.
const LOG_SIZE: &str = "--innodb-log-file-size=32M";

/// The data are not worth a wait for the disk. What is committed is written at once, without that wait: it outlives a server that crashes or
/// is killed.
const FAST: &[&str] = &["--innodb-flush-log-at-trx-commit=2", "--skip-innodb-doublewrite", "--debug-no-sync"];

/// Data that is kept is worth it.
const DURABLE: &[&str] = &["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite"];

/// Native AIO is off because `io_setup` fails, after retrying for seconds, with many servers. The last ones keep the server from contacting
/// other machines.
const FIXED: &[&str] = &[
    LOG_SIZE,
    "--innodb-flush-method=fsync",
    "--skip-innodb-use-native-aio",
    "--innodb-buffer-pool-size=64M",
    "--skip-innodb-buffer-pool-dump-at-shutdown",
    "--skip-innodb-buffer-pool-load-at-startup",
    "--skip-performance-schema",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=8M",
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

    fn init(&self, program: &Path, data: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>> {
        let base = base(program);
        let places: Vec<PathBuf> =
            ["bin", "scripts", "sbin"].map(|place| base.join(place).join("mariadb-install-db")).to_vec();
        let Some(script) = places.iter().find(|place| is_there(place)) else {
            return Err(Error::NoProgram { program: "mariadb-install-db".into(), places });
        };
        let words =
            ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-name-resolve", LOG_SIZE, TEMPORARY];
        let mut command = vec![script.into()];
        command.extend(words.map(OsString::from));
        command.extend([option("--basedir", base), data_option(data)?]);
        Ok(Some(command))
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let flushing = if instance.purpose == Purpose::Keep { DURABLE } else { FAST };
        mysql_family::arguments(instance, &[FIXED, flushing].concat(), &first_statements(instance))
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        log.contains("Starting crash recovery") || log.contains("Starting a crash recovery")
    }

    fn examine(&self, data: &Path, version: &Version) -> Result<()> {
        files::examine_mariadb(data, version)
    }

    fn memory_bytes(&self, _: &Path) -> u64 {
        // The buffer pool, and what it takes without.
        192 << 20
    }

    mysql_family::shared! {}
}

/// Returns the statements that the server begins with. The password is of letters and digits, and needs no quoting.
fn first_statements(instance: &Instance) -> String {
    let mut sql = String::new();
    if instance.purpose == Purpose::TakeOver {
        sql.push_str("CREATE USER IF NOT EXISTS root@localhost;\n");
        sql.push_str("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING '';\n");
        sql.push_str("GRANT ALL PRIVILEGES ON *.* TO root@localhost WITH GRANT OPTION;\n");
        sql.push_str("CREATE DATABASE IF NOT EXISTS test;\n");
    }
    if let Some(password) = &instance.address.password {
        sql.push_str(&format!("CREATE OR REPLACE USER {ACCOUNT} IDENTIFIED BY '{password}';\n"));
        sql.push_str(&format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION;\n"));
    }
    sql
}
