//! Caches of webpack, Next.js, Vite and others that are keyed by absolute paths.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::FileType;

use crate::directory::{open_directory, read};
use crate::escape::entry::{EntryName, WalkEntry, names};
use crate::escape::report::{Explanation, Finding, ReferenceKind};
use crate::escape::trees::Trees;
use crate::paths::path_of;

/// So much of a cache is searched.
const SEARCHED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    let name = entry.name();
    if entry.is_directory() {
        return is_cache(entry);
    }
    entry.is_file() && matches!(name, b".eslintcache" | b".stylelintcache")
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let (kind, path) = (ReferenceKind::WebCache, entry.path());
    if entry.is_file() {
        let names = entry.text().and_then(|text| trees.first_named(&text));
        found.extend(names.map(|names| Finding::dropped(kind, path, names, Explanation::MadeAgain)));
        return;
    }
    let Ok(directory) = open_directory(entry.directory, entry.name()) else { return };
    if matches!(entry.name(), b"webpack" | b"turbopack") {
        // Packed, so that it cannot be searched; and every key is an absolute path, so that it is of no use here.
        if !names(&directory).is_empty() {
            let old = trees.old_path().unwrap_or(&trees.new).join(&path);
            found.push(Finding::dropped(kind, path, old, Explanation::MadeAgain));
        }
        return;
    }
    let mut search = Search { trees, left: SEARCHED_BYTES, named: None };
    search.directory(&directory);
    if let Some(named) = search.named {
        found.push(Finding::dropped(kind, path, named, Explanation::MadeAgain));
    }
}

fn is_cache(entry: &EntryName<'_>) -> bool {
    let (folder, name) = (entry.folder_name, entry.name());
    match name {
        b".parcel-cache" => true,
        b".vite" | b".vite-temp" => folder == b"node_modules",
        b"cache" if folder == b".angular" => true,
        // `.next/cache`, `.next/dev/cache`, `node_modules/.cache`: each of their entries by itself.
        _ => match folder {
            b"cache" => entry.folder_above() == b".next" || entry.folder.ends_with(".next/dev/cache"),
            b".cache" => entry.folder_above() == b"node_modules",
            _ => false,
        },
    }
}

struct Search<'a> {
    trees: &'a Trees,
    left: u64,
    named: Option<std::path::PathBuf>,
}

impl Search<'_> {
    fn directory(&mut self, directory: &File) {
        for (name, kind) in names(directory) {
            if self.named.is_some() || self.left == 0 {
                return;
            }
            let name = path_of(&name);
            match kind {
                FileType::Directory => {
                    if let Ok(below) = open_directory(directory, &name) {
                        self.directory(&below);
                    }
                }
                FileType::RegularFile => {
                    if let Some(bytes) = read(directory.as_fd(), &name, self.left) {
                        self.left -= bytes.len() as u64;
                        self.named = self.trees.first_named(&bytes);
                    }
                }
                _ => {}
            }
        }
    }
}
