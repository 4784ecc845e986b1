//! The files that may hold the same, in the order in which they are compared.

use std::sync::Arc;

use super::cache::KnownContent;
use super::catalog::{Catalog, Item};
use super::report::DedupeOptions;
use crate::space::volumes::Volume;
use crate::tree::source::Source;

pub(super) struct Finder<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) roots: &'a [Source],
    pub(super) volumes: &'a [Arc<Volume>],
    pub(super) options: &'a DedupeOptions,
    pub(super) threads: usize,
    pub(super) known: Vec<KnownContent>,
}

/// Returns what only files that may hold the same have in common.
pub(super) fn class(item: &Item) -> (u16, u64) {
    (item.file_system, item.size)
}

impl Finder<'_> {
    /// Sorts the items so that those that may be alike are together, each inode once, with their cached hashes.
    pub(super) fn order(catalog: &mut Catalog, known: impl Fn(&Item) -> Option<KnownContent>) -> Vec<KnownContent> {
        let items = &mut catalog.items;
        items.sort_unstable_by_key(|item| (class(item), item.device, item.inode, item.root));
        items.dedup_by_key(|item| (item.device, item.inode));
        items.sort_unstable_by_key(|item| (class(item), item.path_hash, item.root));
        items.iter().map(|item| known(item).unwrap_or_default()).collect()
    }

    pub(super) fn stopped(&self) -> bool {
        self.options.cancel.is_cancelled()
    }

    /// Returns whether a file's extents may be replaced, which is never so in the trees to share with.
    pub(super) fn may_change(&self, index: u32) -> bool {
        usize::from(self.catalog.items[index as usize].root) >= self.options.against.len()
    }
}
