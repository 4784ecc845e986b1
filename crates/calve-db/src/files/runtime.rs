//! A server's runtime directory. It has a short path, and everything in it but one directory belongs to the user who starts the server.
//!
//! The server's account, and so anyone who can run a program as it by SQL, can write only to the directory of the sockets. Calve never
//! writes to, changes owners of or mounts on anything there.

use std::path::{Path, PathBuf};

use calve_core::RemovalWait;

use crate::error::{AtPath as _, Operation, Result};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::private;
use crate::files::trash;

/// The directory of the sockets, which belongs to the server's account. Its name is short because a socket's path must be.
pub(crate) const SOCKETS: &str = "s";
/// The directory of sockets that only Calve knows. Its name is as short.
const UNSEEN: &str = "u";
/// Configuration, for the server and for clients. The server may read it.
pub(crate) const SETTINGS: &str = "settings";
/// Where the server reports that it is ready.
pub(crate) const NOTICES: &str = "notify";
/// Where the server's files are mounted if it cannot reach them otherwise.
pub(crate) const FILES: &str = "files";
const CONTROL: &str = "control";

pub(crate) fn control(directory: &Path) -> PathBuf {
    directory.join(CONTROL)
}

pub(crate) fn sockets(directory: &Path) -> PathBuf {
    directory.join(SOCKETS)
}

pub(crate) fn make(path: &Path, account: Account) -> Result<()> {
    rustix::fs::mkdir(path, rustix::fs::Mode::RWXU).at(Operation::CreateDirectory, path)?;
    private::share(&Directory::open(path)?, account, path)
}

/// Recreates the directories for sockets and settings, whatever an earlier launch has left. Returns the one for settings.
pub(crate) fn renew(path: &Path, account: Account) -> Result<Directory> {
    let directory = Directory::open(path)?;
    for name in [SOCKETS, SETTINGS] {
        trash::remove(&path.join(name), RemovalWait::No)?;
    }
    directory.remove_file(NOTICES)?;
    private::make_in(&directory, SOCKETS)?.give_itself(account)?;
    let settings = private::make_in(&directory, SETTINGS)?;
    private::share(&settings, account, &settings.path)?;
    Ok(settings)
}

/// Creates a directory for sockets that clients are not to reach before [`show`]. Returns its path.
pub(crate) fn make_unseen(path: &Path, account: Account) -> Result<PathBuf> {
    private::make_in(&Directory::open(path)?, UNSEEN)?.give_itself(account)?;
    Ok(path.join(UNSEEN))
}

/// Gives the sockets that only Calve knew the path that clients know.
pub(crate) fn show(path: &Path) -> Result<()> {
    let sockets = sockets(path);
    private::exchange(&path.join(UNSEEN), &sockets, || trash::remove(&sockets, RemovalWait::No))
}
