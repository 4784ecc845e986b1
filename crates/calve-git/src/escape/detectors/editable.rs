//! Finders of editable installs: Python modules that import a package from its source.

use std::path::PathBuf;

use crate::directory::open_directory;
use crate::escape::detectors::texts::is_site;
use crate::escape::entry::{EntryName, WalkEntry, names};
use crate::escape::report::{Finding, ReferenceKind, Step};
use crate::escape::trees::{Language, Trees};
use crate::paths::path_of;

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    // setuptools, scikit-build-core and meson-python have the word in the names of their modules.
    let is_finder = |name: &[u8]| name.ends_with(b".py") && memchr::memmem::find(name, b"editable").is_some();
    entry.is_file() && is_site(entry) && is_finder(entry.name())
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let Some(named) = entry.text().and_then(|text| trees.named(&text, Language::Quoted)) else { return };
    let mut finder = Finding::text(ReferenceKind::Editable, entry.path(), named);
    if let [Step::Write { keeps_time, .. }] = finder.steps.as_mut_slice() {
        // Python trusts a compiled file while its source has the same size and time.
        *keeps_time = false;
        finder.steps.extend(compiled(entry).into_iter().map(|path| Step::Remove { path }));
    }
    found.push(finder);
}

fn compiled(entry: &WalkEntry<'_>) -> Vec<PathBuf> {
    let Ok(cache) = open_directory(entry.directory, c"__pycache__") else { return Vec::new() };
    let stem = &entry.name()[..entry.name().len() - b"py".len()];
    let folder = entry.folder.join("__pycache__");
    let names = names(&cache).into_iter().filter(|(name, _)| name.starts_with(stem));
    names.map(|(name, _)| folder.join(path_of(&name))).collect()
}
