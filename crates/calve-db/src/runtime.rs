//! A server's directory for sockets: a short path, and all in it but one directory belongs to whoever starts the server.
//!
//! The server's own account, and so whoever may run a program as it by SQL, writes to the sockets' directory alone. Whatever that
//! has put there, nothing is written, given away or mounted there.

use std::path::{Path, PathBuf};

use calve_core::Wait;

use crate::account::Account;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::private::{self, CLOSED};
use crate::sweep;

/// The server's own: its sockets. The name is short because a socket's path must be.
pub(crate) const SOCKETS: &str = "s";
/// Configuration, for the server and for clients. The server may read it.
pub(crate) const SETTINGS: &str = "settings";
/// Where the server tells that it is ready.
pub(crate) const NOTICES: &str = "notify";
/// Where the files of the server are shown if it cannot reach them otherwise.
const FILES: &str = "files";
/// Where requests to the supervisor come in.
const CONTROL: &str = "control";

/// Where requests to the supervisor of a server come in.
pub(crate) fn control(directory: &Path) -> PathBuf {
    directory.join(CONTROL)
}

/// Where the server's sockets are.
pub(crate) fn sockets(directory: &Path) -> PathBuf {
    directory.join(SOCKETS)
}

/// Makes the directory for a new server.
pub(crate) fn make(path: &Path, account: Account) -> Result<()> {
    let made = rustix::fs::mkdir(path, rustix::fs::Mode::RWXU);
    made.map_err(|errno| Error::io("create directory", path, errno))?;
    let directory = Directory::open(path)?;
    private::share(&directory, account, path)
}

/// What a launch needs of it: sockets and settings made anew, whatever an earlier launch has left. The settings are returned.
pub(crate) fn renew(path: &Path, account: Account) -> Result<Directory> {
    let directory = Directory::open(path)?;
    for name in [SOCKETS, SETTINGS] {
        sweep::remove_tree(&path.join(name), Wait::No)?;
    }
    directory.remove_file(NOTICES)?;
    private::make_in(&directory, SOCKETS, CLOSED)?.give_itself(account)?;
    let settings = private::make_in(&directory, SETTINGS, CLOSED)?;
    private::share(&settings, account, settings.path())?;
    Ok(settings)
}

/// An empty directory at which the server's files can be shown.
pub(crate) fn make_files(path: &Path) -> Result<PathBuf> {
    let at = path.join(FILES);
    private::make_directory(&at, CLOSED)?;
    Ok(at)
}

/// Removes the directory. Without a wait what is in it is deleted later, with the trash beside it.
pub(crate) fn remove(path: &Path, wait: Wait) {
    // Where it was when all of the directory was the server's.
    let _ = fs_err::remove_file(path.with_extension("control"));
    let _ = sweep::remove_tree(path, wait);
}
