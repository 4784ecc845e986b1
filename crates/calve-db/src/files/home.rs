//! Places of all files: templates and servers below CALVE_HOME, sockets below a short path.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use rustix::process::geteuid;

use crate::error::{Error, Remedy, Result};
use crate::files::private::{self, CLOSED};
use crate::files::runtime;

/// The longest path of a Unix socket: `sun_path` without its last zero byte.
const LONGEST_SOCKET_PATH: usize = if cfg!(target_vendor = "apple") { 103 } else { 107 };
/// PostgreSQL's socket has the longest name.
const LONGEST_SOCKET_NAME: usize = ".s.PGSQL.65535".len();

pub(crate) const POOL_SUFFIX: &str = ".json";

#[derive(Debug, Clone)]
pub struct Home {
    pub(crate) root: PathBuf,
    pub(crate) templates: PathBuf,
    pub(crate) servers: PathBuf,
    pub(crate) services: PathBuf,
    /// Has a file for each template with a pool of standbys.
    pub(crate) pools: PathBuf,
    pub(crate) logs: PathBuf,
    /// Has a directory of sockets for each server.
    pub(crate) runtime: PathBuf,
}

impl Home {
    /// Takes an absolute path that need not exist, and the place for this user's short-lived files (`XDG_RUNTIME_DIR`).
    pub fn new(calve_home: &Path, runtime: Option<&Path>) -> Self {
        let user = geteuid();
        let of_root = || ["/run", "/var/run"].map(Path::new).into_iter().find(|path| path.is_dir());
        let runtime = match runtime {
            // Root's servers run as another user, who may not enter root's own directory.
            _ if user.is_root() => of_root().map_or_else(|| "/tmp/calve-0".into(), |run| run.join("calve")),
            Some(runtime) if fits(&runtime.join("calve")) && runtime.is_dir() => runtime.join("calve"),
            _ => PathBuf::from(format!("/tmp/calve-{}", user.as_raw())),
        };
        let root = calve_home.join("db");
        let [templates, servers, services, pools, logs] =
            ["templates", "servers", "services", "pools", "logs"].map(|name| root.join(name));
        Self { root, templates, servers, services, pools, logs, runtime }
    }

    pub(crate) fn pool(&self, template: &str) -> PathBuf {
        self.pools.join(format!("{template}{POOL_SUFFIX}"))
    }

    /// Creates the directories, and closes existing ones to others.
    pub(crate) fn prepare(&self) -> Result<()> {
        if self.root.to_str().is_none() || self.runtime.to_str().is_none() {
            return Err(not_utf8(&self.root));
        }
        // The user of root's servers must get through to their directories, but need not list them.
        let passable = if geteuid().is_root() { 0o711 } else { CLOSED };
        let mut above = std::fs::DirBuilder::new();
        above.recursive(true).mode(passable);
        above.create(&self.root).map_err(|source| unusable(&self.root, &source))?;
        for (directory, mode) in [
            (&self.root, passable),
            (&self.servers, passable),
            (&self.services, passable),
            (&self.templates, CLOSED),
            (&self.logs, CLOSED),
            (&self.pools, CLOSED),
        ] {
            private::make_directory(directory, mode).map_err(|error| match error {
                Error::Io { path, source, .. } => unusable(&path, &source),
                other => other,
            })?;
        }
        self.prepare_runtime(passable)
    }

    /// Creates the directory of sockets. Others can do so in `/tmp`, so an existing one must be this user's own.
    fn prepare_runtime(&self, mode: u32) -> Result<()> {
        let path = &self.runtime;
        private::make_directory(path, mode).map_err(|error| match error {
            Error::Io { source, .. } => {
                let is_of_root = path.starts_with("/run") || path.starts_with("/var/run");
                let remedy = if is_of_root { Remedy::MakeRuntimeRoots } else { Remedy::ChooseRuntime };
                Error::failed(format!("cannot keep sockets in `{}`: {source}", ShownPath(path)), remedy)
            }
            other => other,
        })?;
        if !fits(path) {
            let longest = longest_socket(path);
            let (path, bytes) = (ShownPath(&longest), longest.as_os_str().len());
            let text =
                format!("the socket path `{path}` is {bytes} bytes long; the system allows {LONGEST_SOCKET_PATH}");
            return Err(Error::failed(text, Remedy::ChooseRuntime));
        }
        Ok(())
    }
}

fn unusable(path: &Path, source: &io::Error) -> Error {
    let is_full = source.kind() == io::ErrorKind::StorageFull;
    let remedy = if is_full { Remedy::FreeSpace(path.to_path_buf()) } else { Remedy::ChooseHome };
    Error::failed(format!("cannot keep templates and servers in `{}`: {source}", ShownPath(path)), remedy)
}

pub(crate) fn not_utf8(path: &Path) -> Error {
    Error::usage(format!("`{}` is not UTF-8", ShownPath(path)), Remedy::ReadHelp)
}

fn fits(runtime: &Path) -> bool {
    longest_socket(runtime).as_os_str().len() <= LONGEST_SOCKET_PATH
}

fn longest_socket(runtime: &Path) -> PathBuf {
    runtime::sockets(&runtime.join("00000000")).join("x".repeat(LONGEST_SOCKET_NAME))
}
