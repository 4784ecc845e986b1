//! Lists a directory without a walk: from the record of its spare, and from the watcher, which knows the changes since.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FileType;

use super::set::Spares;
use crate::claim::ask::ask;
use crate::claim::check::{CheckRequest, EntryChange, check};
use crate::claim::hand_over::{directories, fitness};
use crate::claim::names::RecordedTree;
use crate::claim::order::Subtrees;
use crate::claim::record::{Block, RecordedState, blocks};
use crate::claim::store::{Home, Shape, SpareSource};
use crate::error::Error;
use crate::options::SpareUse;
use crate::progress::CancelToken;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::tree::walk::EntryKind;

/// The known facts of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedEntry {
    /// Unchanged. Its own entries are reported separately.
    Directory,
    /// Unchanged.
    Other(RecordedState),
    /// Added, removed or possibly changed. Descendants are not listed.
    Unsure,
}

impl Spares {
    /// Returns the listing of the directory `src` if it has a spare and a watcher runs. `None` where only a walk can
    /// tell. Nothing is known of entries that match `made_without`: the spare lacks them.
    pub fn watched_listing(
        &self,
        src: &Path,
        made_without: &[String],
        cancel: &CancelToken,
    ) -> Result<Option<RecordedTree>, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(None) };
        let source = Source::open(src)?;
        let Ok(real) = src.canonicalize() else { return Ok(None) };
        // A watcher gets no events of mounts.
        if !sys::mounts_below(source.directory()).is_ok_and(|mounts| mounts.is_empty()) {
            return Ok(None);
        }
        let shape = Shape::of_root(made_without);
        let sets = home.sets(Some(&SpareSource::Directory(real)))?;
        for set in sets.into_iter().filter(|set| set.definition.shape == shape) {
            for found in set.spares()? {
                let Some(record) = found.record()?.filter(|one| fitness(&found, &one.head, &source).is_ok()) else {
                    continue;
                };
                let Some(changed) = ask(&self.home, &found.id(&set)) else { continue };
                let Some(body) = record.body(None) else { continue };
                let exclude = Exclusions::new(made_without)?;
                let only = directories(changed);
                let work = CheckRequest {
                    source: &source,
                    exclude: &exclude,
                    only: Some(&only),
                    threads: if only.len() < 64 { 1 } else { thread_count(None) },
                    cancel,
                };
                if let Ok(differences) = check(&work, &body.bytes, record.head.entries) {
                    return Ok(Some(RecordedTree { body, touched: differences.directories }));
                }
            }
        }
        Ok(None)
    }
}

impl SpareUse {
    /// Saves the claim of a listed spare from reading its record again.
    pub fn with_record_of(&mut self, listing: &RecordedTree) {
        self.record = Some(Arc::clone(&listing.body));
    }
}

impl RecordedTree {
    /// Calls `entry` for every entry of the directories that `wants` accepts, and `unsure` for those that may have
    /// gained or lost entries without a trace. Returns false if the record is damaged.
    pub fn list(
        &self,
        mut wants: impl FnMut(&Path) -> bool,
        mut entry: impl FnMut(&Path, &CStr, EntryKind, ListedEntry),
        mut unsure: impl FnMut(&Path),
    ) -> bool {
        let Some(blocks) = blocks(&self.body.bytes) else { return false };
        let mut left = Subtrees::default();
        for block in &blocks {
            if left.has(block.path) || !wants(block.path) {
                continue;
            }
            if block.recent {
                unsure(block.path);
            }
            self.directory(block, &mut entry, &mut left);
        }
        true
    }

    fn directory(
        &self,
        block: &Block<'_>,
        entry: &mut impl FnMut(&Path, &CStr, EntryKind, ListedEntry),
        left: &mut Subtrees,
    ) {
        let touched = self.touched.get(block.path);
        for found in block.entries() {
            let kind = found.kind();
            let is_touched = touched.is_some_and(|touched| touched.change_of(found.name) != EntryChange::Same);
            let known = match found.known {
                _ if is_touched => ListedEntry::Unsure,
                None => ListedEntry::Directory,
                // A change within the clock tick of the recording would not show.
                Some((_, true)) => ListedEntry::Unsure,
                Some((identity, false)) => ListedEntry::Other(identity),
            };
            if is_touched && kind == FileType::Directory {
                left.insert(&block.path.join(sys::path(found.name)));
            }
            entry(block.path, found.name, kind.into(), known);
        }
        for (kind, name) in touched.into_iter().flat_map(|touched| &touched.made) {
            entry(block.path, name, (*kind).into(), ListedEntry::Unsure);
        }
    }
}
