//! The command lines of MySQL 8.0 and later.

use std::ffi::OsString;
use std::path::Path;

use crate::engine::Purpose;

/// Settings that shape the data directory. Another size of the redo log than the server's is changed when it starts, so it is the same everywhere.
pub(super) const LOG_SIZE: &str = "--loose-innodb-redo-log-capacity=32M";
/// The same before 8.0.30, for each of the two files.
pub(super) const OLD_LOG_SIZE: &str = "--loose-innodb-log-file-size=16M";

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

/// Returns what the command that fills a data directory begins with.
pub(super) fn init(program: &Path) -> Vec<OsString> {
    let mut command = vec![program.into(), "--no-defaults".into(), "--initialize-insecure".into()];
    command.extend(STORAGE.iter().chain(FAST).map(OsString::from));
    command
}

pub(super) fn options(purpose: Purpose) -> Vec<&'static str> {
    let keys = if purpose.is_on_a_template() { KEYS_ARE_THERE } else { &[] };
    let flushing = if purpose == Purpose::Keep { DURABLE } else { FAST };
    [STORAGE, flushing, FIXED, keys].concat()
}
