//! Shares extents within groups of files, in parallel.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::cache::KnownContent;
use super::catalog::{Item, Opener};
use super::content::Content;
use super::finder::{Fate, Finder, Note};
use super::groups::FileGroups;
use super::parallel::for_each;
use super::report::DedupeMode;
use super::share::{
    CHANGED, INLINE, ShareOutcome, address_of, common_bytes, disk_bytes, extents_of, may_share, refusal, share,
};
use super::source::put_sources_first;
use crate::space::walk::reason;
use crate::sys::{self, Extent};
use crate::vocabulary::reason::LeftReason;

impl Finder<'_> {
    pub(super) fn share(&mut self, mut groups: FileGroups) {
        put_sources_first(self, &mut groups);
        let finder = &*self;
        let order = groups.in_order(finder);
        let opener = || Opener::new(finder.catalog, finder.roots, finder.threads);
        let state = || ShareWorker { finder, sources: opener(), opener: opener() };
        let work = |worker: &mut ShareWorker<'_>, at: usize| worker.group(groups.members(order[at] as usize));
        for_each(finder.threads, order.len(), || finder.stopped(), state, work);
        drop((groups, order));
        let notes = std::mem::take(&mut self.sharing().notes);
        for Note { index, source, address } in notes {
            let known = self.known[source as usize];
            let content =
                if known.is_known() { known.content } else { placeholder(&self.catalog.items[source as usize]) };
            self.known[index as usize] = KnownContent { content, address };
        }
    }
}

struct ShareWorker<'a> {
    finder: &'a Finder<'a>,
    sources: Opener<'a>,
    opener: Opener<'a>,
}

impl ShareWorker<'_> {
    fn known(&self, index: u32) -> KnownContent {
        self.finder.known[index as usize]
    }

    /// `group` begins with the source.
    fn group(&mut self, group: &[u32]) {
        let finder = self.finder;
        finder.options.progress.add(group.len() as u64, 0);
        let first = self.known(group[0]);
        let settled = |known: KnownContent| known.is_known() && known.address != 0 && known.address == first.address;
        if group.iter().all(|&index| settled(self.known(index))) {
            if first.address != INLINE {
                finder.count_set(group[0]);
                let mut sharing = finder.sharing();
                group[1..].iter().for_each(|&index| sharing.decide(index, Fate::Already));
            }
            return;
        }
        // btrfs shares only files that agree in NOCOW. Those that differ from the source are shared with each other.
        let mut rest = group.to_vec();
        let mut is_first = true;
        while let Some(refused) = self.share_with_first(rest, is_first) {
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

    /// Shares the first file that opens with the others. Returns those that differ in NOCOW, unchangeable ones first.
    fn share_with_first(&mut self, files: Vec<u32>, is_first: bool) -> Option<Vec<u32>> {
        let finder = self.finder;
        let mut order = files.into_iter();
        let (source, file, extents) = order
            .find_map(|index| self.open_source(index).inspect_err(|why| finder.sharing().leave(index, *why)).ok())?;
        if address_of(&extents) == INLINE {
            for index in std::iter::once(source).chain(order) {
                self.note(index, source, INLINE);
            }
            return None;
        }
        if is_first {
            finder.count_set(source);
        }
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
                finder.sharing().decide(index, Fate::Already);
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

    /// Shares a file, or counts it as left alone. Returns false if only one of the two files is NOCOW.
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
                finder.sharing().report.shared.bytes += bytes;
                finder.sharing().decide(index, Fate::Shared);
                self.note(index, source, address);
            }
            Ok(ShareOutcome::Already(INLINE)) => self.note(index, source, INLINE),
            Ok(ShareOutcome::Already(address)) => {
                finder.sharing().decide(index, Fate::Already);
                self.note(index, source, address);
            }
            Ok(ShareOutcome::Differs) => finder.sharing().differing.push(index),
            Err(Errno::INVAL) if differs_in_nocow() => return false,
            Err(errno) => return self.leave(index, refusal(errno, file.as_fd(), opened.as_fd())),
        }
        true
    }

    fn leave(&self, index: u32, reason: LeftReason) -> bool {
        self.finder.sharing().leave(index, reason);
        true
    }

    fn would_share(&self, item: &Item, extents: &[Extent], file: &OwnedFd, index: u32) {
        match extents_of(file.as_fd()) {
            Ok(found) if address_of(&found) == INLINE => self.note(index, index, INLINE),
            Ok(found) => {
                let on_disk = disk_bytes(&found);
                let contents = if on_disk == 0 { item.size } else { on_disk.min(item.size) };
                let bytes = contents.saturating_sub(common_bytes(extents, &found));
                let mut sharing = self.finder.sharing();
                sharing.report.shared.bytes += bytes;
                sharing.decide(index, if bytes == 0 { Fate::Already } else { Fate::Shared });
            }
            Err(errno) => self.finder.sharing().leave(index, LeftReason::Skipped(reason(errno))),
        }
    }

    fn note(&self, index: u32, source: u32, address: u64) {
        self.finder.sharing().notes.push(Note { index, source, address });
    }
}

/// Returns a stand-in for the unhashed contents of a group. Unlike a hash, it has the lowest bit clear.
fn placeholder(source: &Item) -> Content {
    let mut content = Content::default();
    content[1] = 2;
    content[2..4].copy_from_slice(&source.device.to_le_bytes());
    content[8..].copy_from_slice(&source.inode.to_le_bytes());
    content
}
