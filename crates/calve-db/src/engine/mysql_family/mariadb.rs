//! The command lines of MariaDB 10.6 and later.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::count::Counters;
use crate::engine::Purpose;
use crate::error::{Error, Result};

/// A server resizes an InnoDB log of another size when it starts, so the size is the same everywhere.
pub(super) const LOG_SIZE: &str = "--innodb-log-file-size=32M";

/// No waits for the disk. Commits are still written at once, and survive a crash or kill of the server.
const FAST: &[&str] = &["--innodb-flush-log-at-trx-commit=2", "--skip-innodb-doublewrite", "--debug-no-sync"];

const DURABLE: &[&str] = &["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite"];

/// The last one keeps the server from contacting other machines.
const FIXED: &[&str] =
    &[LOG_SIZE, "--innodb-flush-method=fsync", "--aria-pagecache-buffer-size=8M", "--skip-slave-start"];

/// Temporary tables that queries need have counters of their own.
pub(super) const COUNTERS: Counters = Counters {
    status: "information_schema.GLOBAL_STATUS",
    names: "'HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE'",
};

/// Returns the first words of the command that fills a data directory. `base`: the installation.
pub(super) fn init(base: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Vec<OsString>> {
    let places: Vec<PathBuf> =
        ["bin", "scripts", "sbin"].map(|place| base.join(place).join("mariadb-install-db")).to_vec();
    let Some(script) = places.iter().find(|place| is_there(place)) else {
        return Err(Error::NoProgram { program: "mariadb-install-db".into(), places });
    };
    let words = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-name-resolve", LOG_SIZE];
    Ok([OsString::from(script)].into_iter().chain(words.map(OsString::from)).collect())
}

pub(super) fn options(purpose: Purpose) -> Vec<&'static str> {
    [FIXED, if purpose == Purpose::Keep { DURABLE } else { FAST }].concat()
}
