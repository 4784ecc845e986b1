//! A server's runtime directory. Its path is short, and all of it but one directory belongs to the server's starter.
//!
//! The server's account, so anyone who can run a program by SQL, can write only to the directory of sockets. Calve
//! never writes to, changes owners of or mounts on anything there.

use std::path::{Path, PathBuf};

use calve_core::RemovalWait;

use crate::error::{AtPath as _, Result};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::private;
use crate::files::trash;

/// The directory of sockets, owned by the server's account. Its name is short because a socket's path must be.
pub(crate) const SOCKETS: &str = "s";
/// The directory of sockets that only Calve knows, with as short a name.
const UNSEEN: &str = "u";
/// Configuration for clients, and for the server, which may read it.
pub(crate) const SETTINGS: &str = "settings";
/// Where the server reports readiness.
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
    rustix::fs::mkdir(path, rustix::fs::Mode::RWXU).at("create directory", path)?;
    private::share(&Directory::open(path)?, account, path)
}

/// Recreates the directories of sockets and settings, whatever an earlier launch left. Returns the one of settings.
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

/// Creates a directory for sockets that clients must not reach before [`show`].
pub(crate) fn make_unseen(path: &Path, account: Account) -> Result<PathBuf> {
    private::make_in(&Directory::open(path)?, UNSEEN)?.give_itself(account)?;
    Ok(path.join(UNSEEN))
}

/// Moves the directory of a socket out of the clients' sight. Returns the socket's new path.
pub(crate) fn hide(socket: &Path) -> Result<PathBuf> {
    let sockets = socket.parent().unwrap_or(socket);
    let unseen = sockets.with_file_name(UNSEEN);
    trash::remove(&unseen, RemovalWait::No)?;
    private::rename(sockets, &unseen)?;
    Ok(unseen.join(socket.file_name().unwrap_or_default()))
}

/// Moves the unseen sockets to the path that clients know.
pub(crate) fn show(path: &Path) -> Result<()> {
    let sockets = sockets(path);
    private::exchange(&path.join(UNSEEN), &sockets, || trash::remove(&sockets, RemovalWait::No))
}
