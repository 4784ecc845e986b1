//! Sharing within groups of files, in parallel, and the account of what came of it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::cache::KnownContent;
use super::catalog::{Item, Opener};
use super::content::Content;
use super::finder::Finder;
use super::pieces::{FileGroups, GroupPiece, pieces};
use super::report::{DedupeMode, DedupeReport, HashedFiles, LeftFiles, SharedFiles};
use super::share::{
    CHANGED, INLINE, ShareOutcome, address_of, common_bytes, disk_bytes, extents_of, may_share, refusal, share,
};
use super::source::put_sources_first;
use super::turns::for_each;
use crate::space::walk::reason;
use crate::sys::{self, Extent};
use crate::vocabulary::reason::LeftReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Fate {
    #[default]
    Nothing,
    Shared,
    Already,
}

#[derive(Default)]
pub(super) struct Sharing {
    fates: Vec<Fate>,
    left: BTreeMap<LeftReason, (u64, u32)>,
    differing: Vec<u32>,
    pub(super) hashed: (u64, u64),
    groups: u64,
    bytes: u64,
}

impl Sharing {
    pub(super) fn new(items: usize) -> Self {
        Self { fates: vec![Fate::Nothing; items], ..Self::default() }
    }

    pub(super) fn shared_files(&self) -> u64 {
        self.count(Fate::Shared)
    }

    fn count(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|&&one| one == fate).count() as u64
    }

    pub(super) fn leave(&mut self, files: Vec<(u32, LeftReason)>) {
        for (index, reason) in files {
            self.left.entry(reason).or_insert((0, index)).0 += 1;
        }
    }

    pub(super) fn take_differing(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.differing)
    }

    /// Shares within each group, and caches the hashes of its members.
    pub(super) fn run(&mut self, finder: &mut Finder<'_>, mut groups: FileGroups) {
        put_sources_first(finder, &mut groups);
        let (pieces, turns) = pieces(finder, groups);
        let state = || ShareWorker::new(finder);
        let work = |worker: &mut ShareWorker<'_>, at: usize| {
            let (piece, files) = pieces.get(at);
            worker.piece(piece, files);
        };
        let workers = for_each(finder.threads, &turns, || finder.stopped(), state, work);
        drop((pieces, turns));
        let mut notes = Vec::with_capacity(workers.len());
        for worker in workers {
            for (index, fate) in worker.fates {
                let old = &mut self.fates[index as usize];
                *old = if *old == Fate::Shared { Fate::Shared } else { fate };
            }
            self.leave(worker.left);
            self.differing.extend(worker.differing);
            self.groups += worker.groups;
            self.bytes += worker.bytes;
            notes.push(worker.notes);
        }
        for Note { index, source, address } in notes.into_iter().flatten() {
            let known = finder.known[source as usize];
            let content =
                if known.is_known() { known.content } else { placeholder(&finder.catalog.items[source as usize]) };
            finder.known[index as usize] = KnownContent { content, address };
        }
    }

    pub(super) fn tell(mut self, finder: &Finder<'_>, report: &mut DedupeReport) {
        let inline = (0..).zip(&finder.known).filter(|(_, known)| known.address == INLINE);
        self.leave(inline.map(|(index, _)| (index, LeftReason::Inline)).collect());
        let (files, bytes) = self.hashed;
        report.hashed = HashedFiles { files, bytes };
        report.groups = self.groups;
        report.shared = SharedFiles { files: self.shared_files(), bytes: self.bytes };
        report.already_files = self.count(Fate::Already);
        let path = |index: u32| finder.catalog.path(&finder.catalog.items[index as usize], finder.roots);
        let left = self.left.into_iter();
        report.left_alone.extend(left.map(|(reason, (files, first))| LeftFiles {
            reason,
            files,
            first_path: path(first),
        }));
        report.left_alone.sort_unstable_by_key(|left| left.reason.text());
    }
}

/// A file that holds the contents of `source`, and where it lies.
struct Note {
    index: u32,
    source: u32,
    address: u64,
}

struct ShareWorker<'a> {
    finder: &'a Finder<'a>,
    sources: Opener<'a>,
    opener: Opener<'a>,
    notes: Vec<Note>,
    fates: Vec<(u32, Fate)>,
    left: Vec<(u32, LeftReason)>,
    differing: Vec<u32>,
    groups: u64,
    bytes: u64,
}

impl<'a> ShareWorker<'a> {
    fn new(finder: &'a Finder<'a>) -> Self {
        Self {
            finder,
            sources: Opener::new(finder.catalog, finder.roots, finder.threads),
            opener: Opener::new(finder.catalog, finder.roots, finder.threads),
            notes: Vec::new(),
            fates: Vec::new(),
            left: Vec::new(),
            differing: Vec::new(),
            groups: 0,
            bytes: 0,
        }
    }

    fn known(&self, index: u32) -> KnownContent {
        self.finder.known[index as usize]
    }

    /// Shares within a piece: `group` are its files, the source first.
    fn piece(&mut self, piece: &GroupPiece, group: Vec<u32>) {
        let finder = self.finder;
        let new = group.len() - usize::from(!piece.is_first);
        finder.options.progress.add(new as u64, 0);
        let first = self.known(group[0]);
        let settled = |known: KnownContent| known.is_known() && known.address != 0 && known.address == first.address;
        if group.iter().all(|&index| settled(self.known(index))) {
            if first.address != INLINE {
                self.groups += u64::from(piece.is_first);
                self.fates.extend(group[1..].iter().map(|&index| (index, Fate::Already)));
            }
            return;
        }
        // btrfs shares a file only with one that is alike in NOCOW: the others of a set are shared with each other.
        let mut rest = group;
        let mut is_first = piece.is_first;
        while let Some(refused) = self.share_with_first(piece, rest, is_first) {
            is_first = false;
            let has_source = |against: &[u32]| against.iter().any(|&index| !self.finder.may_change(index));
            if refused.len() < 2 || !self.finder.options.against.is_empty() && !has_source(&refused) {
                for index in refused {
                    if self.finder.may_change(index) {
                        self.leave(index, LeftReason::OneIsNocow);
                    }
                }
                return;
            }
            rest = refused;
        }
    }

    /// Shares the first of `files` that opens with the others. Returns those that differ from it in NOCOW, if any, the ones to share with first.
    fn share_with_first(&mut self, piece: &GroupPiece, files: Vec<u32>, is_first: bool) -> Option<Vec<u32>> {
        let finder = self.finder;
        let mut order = files.into_iter();
        let (source, file, extents) = order.find_map(|index| match self.open_source(index) {
            // A group in several pieces is reported once.
            Err(why) if piece.is_first || index != piece.source => {
                self.left.push((index, why));
                None
            }
            opened => opened.ok(),
        })?;
        if address_of(&extents) == INLINE {
            for index in std::iter::once(source).chain(order) {
                self.note(index, source, INLINE);
            }
            return None;
        }
        self.groups += u64::from(is_first);
        let source_address = address_of(&extents);
        self.note(source, source, source_address);
        let (mut unchangeable, mut refused) = (Vec::new(), Vec::new());
        for index in order {
            if finder.stopped() {
                return None;
            }
            if !self.finder.may_change(index) {
                unchangeable.push(index);
                continue;
            }
            let known = self.known(index);
            if known.is_known() && known.address != 0 && known.address == source_address {
                self.fates.push((index, Fate::Already));
                continue;
            }
            if !self.member(source, &file, &extents, index) {
                refused.push(index);
            }
        }
        (!refused.is_empty()).then(|| [unchangeable, refused].concat())
    }

    fn open_source(&mut self, index: u32) -> Result<(u32, OwnedFd, Vec<Extent>), LeftReason> {
        let opened = self.sources.open(&self.finder.catalog.items[index as usize]);
        match opened.and_then(|file| file.map(|file| Ok((extents_of(file.as_fd())?, file))).transpose()) {
            Ok(Some((extents, file))) => Ok((index, file, extents)),
            Ok(None) => Err(CHANGED),
            Err(errno) => Err(LeftReason::Skipped(reason(errno))),
        }
    }

    /// Shares a file, or leaves it alone and counts it. Returns false if it was refused because only one of the two has copy-on-write turned off.
    fn member(&mut self, source: u32, file: &OwnedFd, extents: &[Extent], index: u32) -> bool {
        let finder = self.finder;
        let item = &finder.catalog.items[index as usize];
        let opened = match self.opener.open(item) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.leave(index, CHANGED),
            Err(errno) => return self.leave(index, LeftReason::Skipped(reason(errno))),
        };
        let differs_in_nocow = || sys::differ_in_nocow(file.as_fd(), opened.as_fd());
        if finder.options.mode == DedupeMode::DryRun {
            if differs_in_nocow() {
                return false;
            }
            if let Err(errno) = may_share(file.as_fd(), opened.as_fd()) {
                return self.leave(index, refusal(errno, file.as_fd(), opened.as_fd()));
            }
            self.would_share(item, extents, &opened, index);
            return true;
        }
        let volume = &finder.volumes[usize::from(item.device)];
        let most = volume.most_bytes_per_dedupe.unwrap_or(1 << 20);
        match share(file.as_fd(), extents, opened.as_fd(), item.size, most, || finder.stopped()) {
            Ok(ShareOutcome::Now(bytes, address)) => {
                self.bytes += bytes;
                self.fates.push((index, Fate::Shared));
                self.note(index, source, address);
            }
            Ok(ShareOutcome::Already(INLINE)) => self.note(index, source, INLINE),
            Ok(ShareOutcome::Already(address)) => {
                self.fates.push((index, Fate::Already));
                self.note(index, source, address);
            }
            Ok(ShareOutcome::Differs) => self.differing.push(index),
            Err(Errno::INVAL) if differs_in_nocow() => return false,
            Err(errno) => return self.leave(index, refusal(errno, file.as_fd(), opened.as_fd())),
        }
        true
    }

    fn leave(&mut self, index: u32, reason: LeftReason) -> bool {
        self.left.push((index, reason));
        true
    }

    fn would_share(&mut self, item: &Item, extents: &[Extent], file: &OwnedFd, index: u32) {
        match extents_of(file.as_fd()) {
            Ok(found) if address_of(&found) == INLINE => self.note(index, index, INLINE),
            Ok(found) => {
                let on_disk = disk_bytes(&found);
                let bytes = if on_disk == 0 { item.size } else { on_disk - common_bytes(extents, &found).min(on_disk) };
                self.bytes += bytes;
                self.fates.push((index, if bytes == 0 { Fate::Already } else { Fate::Shared }));
            }
            Err(errno) => self.left.push((index, LeftReason::Skipped(reason(errno)))),
        }
    }

    fn note(&mut self, index: u32, source: u32, address: u64) {
        self.notes.push(Note { index, source, address });
    }
}

/// Stands for contents that were never hashed: those of one group. A hash has the lowest bit set.
fn placeholder(source: &Item) -> Content {
    let mut content = Content::default();
    content[1] = 2;
    content[2..4].copy_from_slice(&source.device.to_le_bytes());
    content[8..].copy_from_slice(&source.inode.to_le_bytes());
    content
}
