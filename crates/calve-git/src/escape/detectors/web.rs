//! Caches of webpack, Next.js, Vite and others that are keyed by absolute paths.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::directory::{open_directory, read};
use crate::escape::entry::{EntryName, WalkEntry, names};
use crate::escape::report::{Explanation, Finding, ReferenceKind};
use crate::escape::trees::Trees;

const SEARCHED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.is_directory() && is_cache(entry)
        || entry.is_file() && matches!(entry.name(), b".eslintcache" | b".stylelintcache")
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
        // Packed, so it cannot be searched; keyed by absolute paths, so it is of no use here.
        if !names(&directory).is_empty() {
            let old = trees.old_path().unwrap_or(&trees.new).join(&path);
            found.push(Finding::dropped(kind, path, old, Explanation::MadeAgain));
        }
        return;
    }
    let mut left = SEARCHED_BYTES;
    let names = first_named_below(trees, &directory, &mut left);
    found.extend(names.map(|names| Finding::dropped(kind, path, names, Explanation::MadeAgain)));
}

fn is_cache(entry: &EntryName<'_>) -> bool {
    let (folder, name) = (entry.folder_name, entry.name());
    match name {
        b".parcel-cache" => true,
        b".vite" | b".vite-temp" => folder == b"node_modules",
        b"cache" if folder == b".angular" => true,
        // `.next/cache`, `.next/dev/cache`, `node_modules/.cache`: each of their entries separately.
        _ if !matches!(folder, b"cache" | b".cache") => false,
        _ => [".next/cache", ".next/dev/cache", "node_modules/.cache"].iter().any(|end| entry.folder.ends_with(end)),
    }
}

/// Searches files until `left` bytes were read.
fn first_named_below(trees: &Trees, directory: &File, left: &mut u64) -> Option<PathBuf> {
    names(directory).into_iter().find_map(|(name, kind)| match kind {
        _ if *left == 0 => None,
        FileType::Directory => first_named_below(trees, &open_directory(directory, name).ok()?, left),
        FileType::RegularFile => {
            let bytes = read(directory, name, *left)?;
            *left -= bytes.len() as u64;
            trees.first_named(&bytes)
        }
        _ => None,
    })
}
