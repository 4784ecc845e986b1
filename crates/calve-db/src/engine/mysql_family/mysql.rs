//! The command lines of MySQL 8.0 and later.

use std::ffi::OsString;
use std::path::Path;

use super::count::Counters;
use crate::engine::Purpose;

/// A server resizes a redo log of another size when it starts, so the size is the same everywhere.
pub(super) const LOG_SIZE: &str = "--loose-innodb-redo-log-capacity=32M";
/// The same before 8.0.30, for each of two files.
pub(super) const OLD_LOG_SIZE: &str = "--loose-innodb-log-file-size=16M";

/// No waits for the disk, not even in initialisation. Commits are written at once, and survive a killed server.
const FAST: &[&str] =
    &["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF"];

const DURABLE: &[&str] =
    &["--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=fsync", "--innodb-doublewrite=ON"];

/// For initialisation too.
const SETUP: &[&str] = &[LOG_SIZE, OLD_LOG_SIZE, "--loose-mysqlx=OFF", "--secure-file-priv=NULL"];

/// Persisted globals are off: `SET PERSIST` would override the command line. The last ones keep the server from
/// contacting other machines. The names of replication differ between versions.
const FIXED: &[&str] = &[
    // Reports a recovery, which is a note.
    "--log-error-verbosity=3",
    "--persisted-globals-load=OFF",
    "--loose-skip-slave-start",
    "--loose-skip-replica-start",
    "--loose-group-replication-start-on-boot=OFF",
    // Reading `information_schema` would write what it found to a cache in the data.
    "--loose-information-schema-stats-expiry=0",
];

/// A template has its certificates and keys, so that none of its servers makes them.
const KEYS_ARE_THERE: &[&str] = &["--auto-generate-certs=OFF", "--caching-sha2-password-auto-generate-rsa-keys=OFF"];

/// Definitions are rows of the system's tables. Handler calls are no measure: queries make some for temporary tables.
pub(super) const COUNTERS: Counters = Counters {
    status: "performance_schema.global_status",
    names: "'Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted', \
            'Innodb_system_rows_inserted', 'Innodb_system_rows_updated', 'Innodb_system_rows_deleted'",
};

pub(super) fn init(program: &Path, storage: &[&str]) -> Vec<OsString> {
    let mut command = vec![program.into(), "--no-defaults".into(), "--initialize-insecure".into()];
    command.extend([storage, SETUP, FAST].concat().into_iter().map(OsString::from));
    command
}

pub(super) fn options(purpose: Purpose) -> Vec<&'static str> {
    let keys = if purpose.is_on_a_template() { KEYS_ARE_THERE } else { &[] };
    let flushing = if purpose == Purpose::Keep { DURABLE } else { FAST };
    [SETUP, flushing, FIXED, keys].concat()
}
