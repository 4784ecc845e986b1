//! Removes from a spare the entries that a selection leaves out. The record has every name, so no directory is listed.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use super::check::{EntryChange, SpareDifferences};
use super::order::Subtrees;
use super::record::{Block, blocks};
use crate::options::Decision;
use crate::tree::exclude::Exclusions;

/// Adds the entries that `exclude` leaves out to the differences. Returns `None` if the record's `body` is damaged.
pub(super) fn select(body: &[u8], exclude: &Exclusions, differences: &mut SpareDifferences) -> Option<()> {
    let mut gone = Subtrees::default();
    for block in blocks(body)? {
        if !gone.has(block.path) {
            directory(&block, exclude, differences, &mut gone);
        }
    }
    // The check asks about new names everywhere, but the report has nothing below entries that are left out.
    differences.left.retain(|(path, _)| !gone.are_above(path));
    Some(())
}

fn directory(block: &Block<'_>, exclude: &Exclusions, differences: &mut SpareDifferences, gone: &mut Subtrees) {
    // One buffer for the paths of all entries.
    let mut path = block.path.as_os_str().as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    let above = path.len();
    let mut out: Vec<&CStr> = Vec::new();
    let touched = differences.directories.get(block.path);
    let decide = exclude.inside(block.path);
    for entry in block.entries() {
        let is_directory = entry.known.is_none();
        let now = touched.map_or(EntryChange::Same, |touched| touched.change_of(entry.name));
        path.truncate(above);
        path.extend_from_slice(entry.name.to_bytes());
        let path = Path::new(OsStr::from_bytes(&path));
        if is_directory && now != EntryChange::Same {
            gone.insert(path);
        }
        let decision = match now {
            EntryChange::Gone => Decision::Take,
            EntryChange::Other(kind) => decide(path, kind == FileType::Directory),
            EntryChange::Same => decide(path, is_directory),
        };
        if decision != Decision::Take {
            out.push(entry.name);
            if is_directory {
                gone.insert(path);
            }
        }
        if let Decision::LeaveBecause(reason) = decision {
            differences.left.push((path.to_path_buf(), reason));
        }
    }
    if !out.is_empty() {
        let touched = differences.directories.entry(block.path.to_path_buf()).or_default();
        touched.made.retain(|(_, name)| !out.contains(&name.as_c_str()));
        touched.gone.extend(out.into_iter().map(CStr::to_owned));
    }
}
