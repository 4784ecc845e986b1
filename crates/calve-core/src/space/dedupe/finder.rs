//! The files that may be equal, in the order of comparison, and the account of the results.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cache::KnownContent;
use super::catalog::{Catalog, Item};
use super::report::{DedupeOptions, DedupeReport, LeftFiles};
use super::share::INLINE;
use crate::space::volumes::Volume;
use crate::tree::source::Source;
use crate::vocabulary::reason::LeftReason;

pub(super) struct Finder<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) roots: &'a [Source],
    pub(super) volumes: &'a [Arc<Volume>],
    pub(super) options: &'a DedupeOptions,
    pub(super) threads: usize,
    pub(super) known: Vec<KnownContent>,
    pub(super) sharing: Mutex<Sharing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Fate {
    #[default]
    Nothing,
    Shared,
    Already,
}

/// A file with the contents of `source`, and its address.
pub(super) struct Note {
    pub(super) index: u32,
    pub(super) source: u32,
    pub(super) address: u64,
}

#[derive(Default)]
pub(super) struct Sharing {
    pub(super) report: DedupeReport,
    fates: Vec<Fate>,
    /// The number of sets by class.
    pub(super) sets: BTreeMap<(u16, u64), u64>,
    left: BTreeMap<LeftReason, (u64, u32)>,
    pub(super) differing: Vec<u32>,
    pub(super) notes: Vec<Note>,
}

impl Sharing {
    pub(super) fn new(items: usize, report: DedupeReport) -> Mutex<Self> {
        Mutex::new(Self { report, fates: vec![Fate::Nothing; items], ..Self::default() })
    }

    pub(super) fn count(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|&&one| one == fate).count() as u64
    }

    pub(super) fn decide(&mut self, index: u32, fate: Fate) {
        let old = &mut self.fates[index as usize];
        *old = if *old == Fate::Shared { Fate::Shared } else { fate };
    }

    pub(super) fn leave(&mut self, index: u32, reason: LeftReason) {
        self.left.entry(reason).or_insert((0, index)).0 += 1;
    }
}

/// Only files of one class can be equal and share extents.
pub(super) fn class(item: &Item) -> (u16, u64) {
    (item.file_system, item.size)
}

impl Finder<'_> {
    /// Sorts the items by class and path, each inode once, and returns their cached hashes.
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

    /// Returns whether a file's extents may be replaced: never in the trees to share with.
    pub(super) fn may_change(&self, index: u32) -> bool {
        usize::from(self.catalog.items[index as usize].root) >= self.options.against.len()
    }

    pub(super) fn sharing(&self) -> MutexGuard<'_, Sharing> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_set(&self, index: u32) {
        *self.sharing().sets.entry(class(&self.catalog.items[index as usize])).or_default() += 1;
    }

    pub(super) fn report(self) -> DedupeReport {
        let mut sharing = self.sharing.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (index, _) in (0..).zip(&self.known).filter(|(_, known)| known.address == INLINE) {
            sharing.leave(index, LeftReason::Inline);
        }
        let (shared, already) = (sharing.count(Fate::Shared), sharing.count(Fate::Already));
        let mut report = sharing.report;
        (report.shared.files, report.already_files) = (shared, already);
        report.groups = sharing.sets.values().sum();
        let path = |index: u32| self.catalog.path(&self.catalog.items[index as usize], self.roots);
        let left = sharing.left.into_iter();
        report.left_alone.extend(left.map(|(reason, (files, first))| LeftFiles {
            reason,
            files,
            first_path: path(first),
        }));
        report.left_alone.sort_by_cached_key(|left| left.reason.to_string());
        report
    }
}
