//! Where everything is kept: templates and servers below CALVE_HOME, sockets in a short place.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::process::geteuid;

use crate::error::{Error, Result};

/// The longest path that a Unix socket can have: `sun_path` without its last zero byte.
const LONGEST_SOCKET_PATH: usize = if cfg!(target_vendor = "apple") { 103 } else { 107 };
/// PostgreSQL's name for its socket is the longest.
const LONGEST_SOCKET_NAME: usize = ".s.PGSQL.65535".len();

/// The directories that are used.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
    runtime: PathBuf,
}

impl Home {
    /// `calve_home`: an absolute path; it need not exist. `runtime`: where short-lived files of this user belong
    /// (`XDG_RUNTIME_DIR`), if there is such a place.
    pub fn new(calve_home: &Path, runtime: Option<&Path>) -> Self {
        let user = geteuid();
        let runtime = match runtime {
            // Root's servers run as somebody else, who may not enter root's own directory.
            _ if user.is_root() => ["/run", "/var/run"]
                .map(Path::new)
                .into_iter()
                .find(|path| path.is_dir())
                .map_or_else(|| PathBuf::from("/tmp/calve-0"), |run| run.join("calve")),
            Some(runtime) if fits(&runtime.join("calve")) && runtime.is_dir() => runtime.join("calve"),
            _ => PathBuf::from(format!("/tmp/calve-{}", user.as_raw())),
        };
        Self { root: calve_home.join("db"), runtime }
    }

    pub(crate) fn templates(&self) -> PathBuf {
        self.root.join("templates")
    }

    pub(crate) fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Where the sockets of all servers are, each in a directory of its own.
    pub(crate) fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// Whether anything was ever made here.
    pub(crate) fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// Makes the directories.
    pub(crate) fn prepare(&self) -> Result<()> {
        if self.root.to_str().is_none() || self.runtime.to_str().is_none() {
            return Err(Error::Usage(format!("`{}` is not UTF-8", calve_core::Shown(&self.root))));
        }
        // The user that root's servers run as must get through, but need not see what is there.
        let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
        for directory in [self.templates(), self.servers(), self.logs()] {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(mode);
            builder.create(&directory).map_err(|error| Error::io("create directory", &directory, error))?;
        }
        self.prepare_runtime(mode)
    }

    /// In `/tmp` others can make things too: what is there is used only if it is this user's own.
    fn prepare_runtime(&self, mode: u32) -> Result<()> {
        let path = &self.runtime;
        match std::fs::DirBuilder::new().mode(mode).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::Sockets { path: path.clone(), source: error }),
        }
        let found = fs::symlink_metadata(path).map_err(|error| Error::io("look at", path, error))?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() {
            let source = std::io::Error::other("it is there, and not a directory of this user's");
            return Err(Error::Sockets { path: path.clone(), source });
        }
        if found.mode() & 0o777 != mode {
            let wanted = std::fs::Permissions::from_mode(mode);
            // In a user namespace what nobody owns looks like a directory of the user 65534, also to that user.
            fs::set_permissions(path, wanted).map_err(|source| Error::Sockets { path: path.clone(), source })?;
        }
        if !fits(path) {
            let longest = path.join("00000000").join("x".repeat(LONGEST_SOCKET_NAME));
            let bytes = longest.as_os_str().len();
            return Err(Error::SocketPath { path: longest, bytes, most: LONGEST_SOCKET_PATH });
        }
        Ok(())
    }
}

fn fits(runtime: &Path) -> bool {
    runtime.as_os_str().len() + "/00000000/".len() + LONGEST_SOCKET_NAME <= LONGEST_SOCKET_PATH
}
