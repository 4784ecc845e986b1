//! What makes a Python package importable from where it is written: path files, the finders of editable installs, egg links.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::escape::detectors::Detector;
use crate::escape::entry::{Entry, names, open_directory};
use crate::escape::report::{Action, Found, Kind, Step, Time};
use crate::escape::trees::{Language, Trees, UNWRITABLE};

pub(super) struct Editable;

impl Detector for Editable {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        if !entry.is_file() || !matches!(entry.folder_name(), b"site-packages" | b"dist-packages") {
            return false;
        }
        let name = entry.name();
        name.ends_with(b".pth") || name.ends_with(b".egg-link") || is_finder(name)
    }

    fn look(&self, entry: &Entry<'_>, trees: &Trees, found: &mut Vec<Found>) {
        let finder = is_finder(entry.name());
        let language = if finder { Language::Quoted } else { Language::Lines };
        let Some(named) = entry.text().and_then(|text| trees.named(&text, language)) else { return };
        let (kind, path) = (Kind::Editable, entry.path());
        let Some(bytes) = named.moved else {
            found.push(Found::reported(kind, path, named.names, UNWRITABLE));
            return;
        };
        // Python takes a compiled file for current as long as size and time of its source are the same.
        let time = if finder { Time::Now } else { Time::Kept };
        let mut steps = vec![Step::Write { path: path.clone(), bytes, time }];
        if finder {
            steps.extend(compiled(entry).into_iter().map(|path| Step::Remove { path }));
        }
        let hint = "Python imports this worktree's package".into();
        found.push(Found { kind, path, names: named.names, action: Action::Repaired, hint, steps });
    }
}

/// Of setuptools, scikit-build-core, meson-python: modules with the word in their name.
fn is_finder(name: &[u8]) -> bool {
    name.ends_with(b".py") && memchr::memmem::find(name, b"editable").is_some()
}

/// The compiled files of a module.
fn compiled(entry: &Entry<'_>) -> Vec<PathBuf> {
    let Ok(cache) = open_directory(entry.directory(), c"__pycache__") else { return Vec::new() };
    let stem = &entry.name()[..entry.name().len() - b"py".len()];
    let folder = entry.folder().join("__pycache__");
    let names = names(&cache).into_iter().filter(|(name, _)| name.starts_with(stem));
    names.map(|(name, _)| folder.join(OsStr::from_bytes(&name))).collect()
}
