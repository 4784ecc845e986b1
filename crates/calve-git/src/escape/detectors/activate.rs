//! The scripts that switch a virtual environment on.

use crate::escape::detectors::Detector;
use crate::escape::entry::Entry;
use crate::escape::report::{Found, Kind};
use crate::escape::trees::{Language, Trees, UNWRITABLE};

pub(super) struct Activate;

/// Those of venv, virtualenv, uv and conda.
const NAMES: &[&[u8]] = &[
    b"activate",
    b"activate.bat",
    b"activate.csh",
    b"activate.fish",
    b"activate.nu",
    b"activate.ps1",
    b"Activate.ps1",
    b"activate.xsh",
    b"activate_this.py",
    b"deactivate.nu",
];

impl Detector for Activate {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        entry.is_file() && is_script_folder(entry) && NAMES.contains(&entry.name())
    }

    fn look(&self, entry: &Entry<'_>, trees: &Trees, found: &mut Vec<Found>) {
        let Some(named) = entry.text().and_then(|text| trees.named(&text, Language::Shell)) else { return };
        let (kind, path) = (Kind::Activate, entry.path());
        found.push(match named.moved {
            Some(bytes) => {
                Found::rewritten(kind, path, named.names, bytes, "it switches this worktree's environment on")
            }
            None => Found::reported(kind, path, named.names, UNWRITABLE),
        });
    }
}

pub(super) fn is_script_folder(entry: &Entry<'_>) -> bool {
    matches!(entry.folder_name(), b"bin" | b".bin" | b"Scripts" | b"sbin")
}

pub(super) fn is_activate(entry: &Entry<'_>) -> bool {
    NAMES.contains(&entry.name())
}
