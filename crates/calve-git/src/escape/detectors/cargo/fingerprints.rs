//! Cargo's fingerprints: `.fingerprint/PACKAGE-HASH` has a file per unit, by which Cargo decides whether it is fresh.

use std::fs::File;

use rustix::fs::FileType;

use crate::directory::open_directory;
use crate::escape::entry::names_of;

pub(super) struct Fingerprints {
    directory: File,
    folders: Vec<Vec<u8>>,
}

impl Fingerprints {
    pub(super) fn read(profile: &File) -> Option<Self> {
        let directory = open_directory(profile, c".fingerprint").ok()?;
        let folders = names_of(&directory, FileType::Directory).collect();
        Some(Self { directory, folders })
    }

    /// Returns the folders of the units named `stem` (a crate or package, mostly with a hash), each with its files.
    pub(super) fn units_of(&self, stem: &[u8]) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let (name, hash) = split(stem);
        let is_same = |folder: &&Vec<u8>| hash.is_some() && split(folder).1 == hash;
        let mut named: Vec<&Vec<u8>> = self.folders.iter().filter(is_same).collect();
        if named.is_empty() {
            // Some libraries have no hash in their file's name: all units of the package count.
            named = self.folders.iter().filter(|folder| same_name(split(folder).0, name)).collect();
        }
        named.into_iter().map(|folder| (folder.clone(), self.files(folder))).collect()
    }

    /// Lists the hashes of a unit's ingredients, without the files beside them: JSON of messages, dep-info, a time.
    fn files(&self, folder: &[u8]) -> Vec<Vec<u8>> {
        let Ok(directory) = open_directory(&self.directory, folder) else { return Vec::new() };
        let is_other = |name: &[u8]| {
            let begins = |word: &[u8]| name.starts_with(word);
            name.ends_with(b".json") || begins(b"dep-") || begins(b"output-") || name == b"invoked.timestamp"
        };
        names_of(&directory, FileType::RegularFile).filter(|name| !is_other(name)).collect()
    }
}

/// Splits "serde_json-0123456789abcdef" into the name and the hash, if there is one.
fn split(stem: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(at) = stem.iter().rposition(|&byte| byte == b'-') else { return (stem, None) };
    let hash = &stem[at + 1..];
    if hash.len() == 16 && hash.iter().all(u8::is_ascii_hexdigit) { (&stem[..at], Some(hash)) } else { (stem, None) }
}

/// Returns whether a unit has a package's name: underscores may replace hyphens, and libraries begin with "lib".
fn same_name(package: &[u8], unit: &[u8]) -> bool {
    let plain = |name: &[u8]| -> Vec<u8> { name.iter().map(|&byte| if byte == b'-' { b'_' } else { byte }).collect() };
    let (unit, package) = (plain(unit), plain(package));
    package == unit || unit.strip_prefix(b"lib") == Some(&*package)
}
