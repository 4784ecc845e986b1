//! MySQL 8.0 and later.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{ACCOUNT, DATABASE, TEMPORARY, USER, base, data_option, files, option};
use crate::engine::{Engine, Instance, Purpose, Version, mysql_family, numbers};
use crate::error::Result;

pub(crate) struct Mysql;

/// Settings that shape the data directory. Another size of the redo log than the server's is changed when it starts, so it is the same everywhere.
const LOG_SIZE: &str = "--loose-innodb-redo-log-capacity=32M";
/// The same before 8.0.30, for each of the two files.
const OLD_LOG_SIZE: &str = "--loose-innodb-log-file-size=16M";

/// The data are not worth a wait for the disk, nor is filling the data directory. What is committed is written at once, without that wait: it
/// outlives a server that crashes or is killed.
const FAST: &[&str] =
    &["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF"];

/// Data that is kept is worth it.
const DURABLE: &[&str] =
    &["--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=fsync", "--innodb-doublewrite=ON"];

/// Settings for filling the data directory too. Native AIO is off because `io_setup` fails, after retrying for seconds, with many servers.
const STORAGE: &[&str] = &[
    LOG_SIZE,
    OLD_LOG_SIZE,
    "--skip-innodb-use-native-aio",
    "--innodb-buffer-pool-size=64M",
    "--skip-innodb-buffer-pool-dump-at-shutdown",
    "--skip-log-bin",
    "--loose-mysqlx=OFF",
    "--secure-file-priv=NULL",
];

/// `SET PERSIST` overrides the command line unless that is off. The last ones keep the server from contacting other machines; the names of
/// replication differ between versions.
const FIXED: &[&str] = &[
    "--skip-innodb-buffer-pool-load-at-startup",
    "--skip-performance-schema",
    "--key-buffer-size=1M",
    // A recovery is reported as a note.
    "--log-error-verbosity=3",
    "--persisted-globals-load=OFF",
    "--skip-name-resolve",
    "--loose-skip-slave-start",
    "--loose-skip-replica-start",
    "--loose-group-replication-start-on-boot=OFF",
    "--event-scheduler=OFF",
];

/// Certificates and keys are made with a template, and not by each of its servers.
const KEYS_ARE_THERE: &[&str] = &["--auto-generate-certs=OFF", "--caching-sha2-password-auto-generate-rsa-keys=OFF"];

impl Engine for Mysql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["mysql"]
    }

    fn program(&self) -> &'static str {
        "mysqld"
    }

    /// Refuses data of a later release of the server's own series too.
    fn takes(&self, maker: &Version, server: &Version) -> bool {
        (maker.major, maker.minor) == (server.major, server.minor) && maker.patch() <= server.patch()
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        let places =
            ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/opt/homebrew/opt/mysql/bin"];
        places.map(PathBuf::from).to_vec()
    }

    fn version(&self, printed: &str) -> Option<Version> {
        let (major, minor) = numbers(printed.split_once("Ver ")?.1)?;
        Some(Version { major, minor, text: printed.trim().to_owned() })
    }

    fn unsupported(&self, version: &Version) -> Option<&'static str> {
        // MariaDB's packages have a `mysqld` too.
        let fits = !version.text.contains("MariaDB") && version.major >= 8;
        (!fits).then_some("MySQL 8.0 and later")
    }

    /// Returns false for 8.0: early releases crash if the notify socket is gone when they end.
    fn may_notify(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| (version.major, version.minor) != (8, 0))
    }

    fn recipe(&self) -> String {
        format!("{LOG_SIZE} {OLD_LOG_SIZE} {USER} {DATABASE}")
    }

    fn init(&self, program: &Path, data: &Path, _: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>> {
        let mut command = vec![program.into(), "--no-defaults".into(), "--initialize-insecure".into()];
        command.extend(STORAGE.iter().chain(FAST).map(OsString::from));
        command.extend([TEMPORARY.into(), option("--basedir", base(program)), data_option(data)?]);
        Ok(Some(command))
    }

    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>> {
        let keys = if instance.purpose.is_on_a_template() { KEYS_ARE_THERE } else { &[] };
        let flushing = if instance.purpose == Purpose::Keep { DURABLE } else { FAST };
        mysql_family::arguments(instance, &[STORAGE, flushing, FIXED, keys].concat(), &first_statements(instance))
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool {
        log.contains("Database was not shutdown normally")
    }

    fn examine(&self, data: &Path, version: &Version) -> Result<()> {
        files::examine_mysql(data, version)
    }

    fn memory_bytes(&self, _: &Path) -> u64 {
        // The buffer pool, and what it takes without.
        384 << 20
    }

    mysql_family::shared! {}
}

/// Returns the statements that the server begins with. The password is of letters and digits, and needs no quoting.
fn first_statements(instance: &Instance) -> String {
    let mut sql = String::new();
    if instance.purpose == Purpose::TakeOver {
        sql.push_str("CREATE USER IF NOT EXISTS root@localhost;\n");
        sql.push_str("ALTER USER root@localhost IDENTIFIED WITH caching_sha2_password BY '' ACCOUNT UNLOCK;\n");
        sql.push_str("GRANT ALL PRIVILEGES ON *.* TO root@localhost WITH GRANT OPTION;\n");
    }
    if !instance.purpose.is_on_a_template() {
        sql.push_str(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"));
    }
    if let Some(password) = &instance.address.password {
        sql.push_str(&format!("DROP USER IF EXISTS {ACCOUNT};\n"));
        sql.push_str(&format!("CREATE USER {ACCOUNT} IDENTIFIED BY '{password}';\n"));
        sql.push_str(&format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION;\n"));
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_later_release_is_not_taken() {
        let version = |text: &str| {
            Mysql.version(&format!("mysqld  Ver {text} for Linux on x86_64 (MySQL Community Server - GPL)")).unwrap()
        };
        for (maker, server, takes) in [
            ("8.4.6", "8.4.6", true),
            ("8.4.6", "8.4.10", true),
            ("8.4.10", "8.4.6", false),
            ("8.0.40", "8.4.6", false),
        ] {
            assert_eq!(Mysql.takes(&version(maker), &version(server)), takes, "{maker} {server}");
        }
    }
}
