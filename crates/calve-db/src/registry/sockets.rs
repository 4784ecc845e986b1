//! The file in a slot that names its directory of sockets, so that it can be found without a record, and on the next line the slot itself.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::{EndReason, Result};
use crate::files::home::Home;
use crate::files::private;

pub(crate) const SOCKETS: &str = "sockets";

#[derive(Default)]
pub(crate) struct SocketsNote {
    directory: PathBuf,
    slot: PathBuf,
}

impl SocketsNote {
    pub(crate) fn write(slot: &Path, directory: &Path) -> Result<()> {
        let noted = [directory, slot].map(Path::to_string_lossy).join("\n");
        private::replace(&slot.join(SOCKETS), noted.as_bytes())
    }

    /// Reads that of a slot; an empty one if it is missing.
    pub(crate) fn read(slot: &Path) -> Self {
        let noted = fs::read_to_string(slot.join(SOCKETS)).unwrap_or_default();
        let (directory, slot) = noted.split_once('\n').unwrap_or((&noted, ""));
        Self { directory: directory.into(), slot: slot.into() }
    }

    /// Returns the directory, if it is a name in this user's own, whatever the file says.
    pub(crate) fn directory(self, home: &Home) -> Option<PathBuf> {
        (self.directory.parent() == Some(&*home.runtime)).then_some(self.directory)
    }

    /// Returns why a server has ended without a word in a slot with this note. `None`: the slot is in a copied home, and the one that it is a
    /// copy of is still there: what runs, or has ended, belongs to that.
    pub(crate) fn end_reason(&self, home: &Home, slot: &Path) -> Option<EndReason> {
        let identity = |path: &Path| rustix::fs::stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let is_there = identity(&self.slot) == identity(slot);
        if self.slot.as_os_str().is_empty() || self.slot.starts_with(&home.root) || is_there {
            return Some(EndReason::SupervisorKilled);
        }
        // The slot of another home in its place has other sockets.
        (Self::read(&self.slot).directory != self.directory).then_some(EndReason::HomeMoved)
    }
}
