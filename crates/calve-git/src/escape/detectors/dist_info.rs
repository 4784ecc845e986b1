//! The list of an installed Python package's files, with their hashes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::directory::read;
use crate::escape::entry::{EntryName, TEXT_BYTES};
use crate::escape::report::{Explanation, Finding, ReferenceKind, Step};
use crate::escape::trees::{Language, Trees};
use crate::escape::writing::open_parent;
use crate::paths::{path_of, plain};

pub(crate) fn is_record(entry: &EntryName<'_>) -> bool {
    entry.name() == b"RECORD" && entry.folder_name.ends_with(b".dist-info")
}

/// Finds lists with another tree's paths or outdated hashes, which are optional (PyPA: "Recording installed projects").
pub(crate) fn records(trees: &Trees, found: &[Finding], records: Vec<PathBuf>) -> Vec<Finding> {
    let writes = found.iter().flat_map(|found| &found.steps).filter(|step| matches!(step, Step::Write { .. }));
    let changed: HashSet<&Path> = writes.map(|step| step.path().as_path()).collect();
    let mut lists: Vec<Finding> = records.into_iter().filter_map(|path| record(trees, &changed, path)).collect();
    lists.sort_by(|a, b| a.path.cmp(&b.path));
    lists
}

fn record(trees: &Trees, changed: &HashSet<&Path>, path: PathBuf) -> Option<Finding> {
    let (parent, name) = open_parent(trees.root(), &path).ok()?;
    let text = read(&parent, name, TEXT_BYTES)?;
    let named = trees.named(&text, Language::Lines);
    if changed.is_empty() && named.is_none() {
        return None;
    }
    let (names, text) = match named {
        None => (None, text),
        Some(named) => (Some(named.names), named.moved?),
    };
    let site = path.parent()?.parent()?;
    let mut lines = Vec::with_capacity(text.len());
    let mut rehashed = None;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match changed_file(line, site).filter(|file| changed.contains(file.as_path())) {
            Some(file) if !line.trim_ascii_end().ends_with(b",,") => {
                let end = line.iter().position(|&byte| byte == b',').unwrap_or(line.len());
                lines.extend_from_slice(&line[..end]);
                lines.extend_from_slice(b",,\n");
                rehashed = Some(file);
            }
            _ => lines.extend_from_slice(line),
        }
    }
    let explanation = match (&names, &rehashed) {
        (Some(_), _) => Explanation::NamesThisTree(ReferenceKind::DistInfo),
        (None, Some(_)) => Explanation::HashesRemoved,
        (None, None) => return None,
    };
    let names = names.or(rehashed)?;
    Some(Finding { explanation, ..Finding::rewritten(ReferenceKind::DistInfo, path, names, lines) })
}

/// Returns the file of a line, below the new tree. Quoted names, which have commas or quotes, are none of ours.
fn changed_file(line: &[u8], site: &Path) -> Option<PathBuf> {
    let end = line.iter().position(|&byte| byte == b',')?;
    // Joined to `/`, so that `..` does not lead above the tree.
    let whole = plain(&Path::new("/").join(site).join(path_of(&line[..end])));
    whole.strip_prefix("/").ok().map(Path::to_path_buf)
}
