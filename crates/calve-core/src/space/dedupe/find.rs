//! Finds files with equal contents: by size, by the same path in two trees, by hash.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use super::cache::KnownContent;
use super::catalog::Opener;
use super::content::{Content, Reader};
use super::finder::{Finder, class};
use super::groups::FileGroups;
use super::parallel::for_each;
use super::report::DedupeMode;
use super::share::{CHANGED, INLINE, address_of, extents_of};
use crate::space::walk::reason;
use crate::sys::SpaceRules;
use crate::vocabulary::reason::LeftReason;

/// Larger files are told apart by their beginnings first.
const SMALL: u64 = 64 * 1024;
/// btrfs keeps nothing longer in its metadata.
const LONGEST_INLINE: u64 = 4096;

/// Returns whether contents are a placeholder of a group, which has to be hashed. A hash has the lowest bit set.
fn is_placeholder(known: &KnownContent) -> bool {
    known.is_known() && known.content[0] & 1 == 0 && known.address != INLINE
}

/// Files that share all their extents are read once.
type ContentByExtents = HashMap<(u16, u64, Vec<(u64, u64)>), Content>;

struct HashWorker<'a> {
    opener: Opener<'a>,
    reader: Reader,
    found: Vec<(u32, KnownContent)>,
}

impl Finder<'_> {
    pub(super) fn find_and_share(&mut self) {
        let classes = self.classes();
        let mut leaders = HashMap::new();
        let mut to_hash = Vec::new();
        for class in &classes {
            self.plan(class.clone(), &mut leaders, &mut to_hash);
        }
        self.hash(to_hash);
        let groups = self.groups(&classes, &leaders);
        self.share(groups);
        let differing = std::mem::take(&mut self.sharing().differing);
        if !differing.is_empty() {
            self.second_round(&classes, differing);
        }
    }

    /// Returns the ranges of two or more items of one size.
    fn classes(&self) -> Vec<std::ops::Range<usize>> {
        let mut end = 0;
        let classes = self.catalog.items.chunk_by(|a, b| class(a) == class(b)).map(|alike| {
            end += alike.len();
            end - alike.len()..end
        });
        classes.filter(|class| class.len() > 1).collect()
    }

    /// Decides which items of a class are hashed, and which are assumed equal to the same path in another tree.
    fn plan(&mut self, class: std::ops::Range<usize>, leaders: &mut HashMap<u32, u32>, to_hash: &mut Vec<u32>) {
        let first = self.known[class.start];
        if first.is_known() && self.known[class.clone()].iter().all(|known| known.content == first.content) {
            return;
        }
        let dry = self.options.mode == DedupeMode::DryRun;
        let mut alone = Vec::new();
        let mut begin = class.start;
        let mut hashed = false;
        for team in self.catalog.items[class.clone()].chunk_by(|a, b| a.path_hash == b.path_hash) {
            let range = begin..begin + team.len();
            begin = range.end;
            for index in range.clone() {
                if is_placeholder(&self.known[index]) {
                    self.known[index].content = Content::default();
                }
            }
            let leader = range.clone().find(|&index| self.known[index].is_known()).unwrap_or(range.start);
            hashed |= self.known[leader].is_known();
            for index in range {
                if self.known[index].is_known() {
                    continue;
                }
                if index == leader || dry {
                    alone.push(index as u32);
                } else {
                    leaders.insert(index as u32, leader as u32);
                }
            }
        }
        // One path alone: nothing to compare it with.
        if alone.len() > 1 || hashed {
            to_hash.append(&mut alone);
        }
    }

    fn hash(&mut self, mut wanted: Vec<u32>) {
        let catalog = self.catalog;
        wanted.sort_unstable_by_key(|&index| catalog.items[index as usize].directory);
        let (large, mut whole): (Vec<u32>, Vec<u32>) =
            wanted.into_iter().partition(|&index| catalog.items[index as usize].size > SMALL);
        let beginnings = self.read(&large, true);
        let mut counts: HashMap<((u16, u64), Content), u32> = HashMap::new();
        for (index, known) in &beginnings {
            *counts.entry((class(&catalog.items[*index as usize]), known.content)).or_default() += 1;
        }
        // Beginnings are not cached, so the files of a class with a known hash must be hashed as a whole.
        let mut with_hash: HashMap<(u16, u64), bool> = HashMap::new();
        for (item, known) in catalog.items.iter().zip(&self.known).filter(|(item, _)| item.size > SMALL) {
            *with_hash.entry(class(item)).or_default() |= known.is_known();
        }
        whole.extend(beginnings.iter().filter_map(|(index, known)| {
            let class = class(&catalog.items[*index as usize]);
            let needed = counts[&(class, known.content)] > 1 || with_hash.get(&class) == Some(&true);
            needed.then_some(*index)
        }));
        for (index, known) in self.read(&whole, false) {
            self.known[index as usize] = known;
        }
    }

    fn read(&self, wanted: &[u32], beginning: bool) -> Vec<(u32, KnownContent)> {
        let seen: Mutex<ContentByExtents> = Mutex::default();
        let state = || HashWorker {
            opener: Opener::new(self.catalog, self.roots, self.threads),
            reader: Reader::new(),
            found: Vec::new(),
        };
        let work = |worker: &mut HashWorker<'_>, at: usize| {
            let index = wanted[at];
            let item = &self.catalog.items[index as usize];
            let file = match worker.opener.open(item) {
                Ok(Some(file)) => file,
                Ok(None) => return self.sharing().leave(index, CHANGED),
                Err(errno) => return self.sharing().leave(index, LeftReason::Skipped(reason(errno))),
            };
            let btrfs = self.volumes[usize::from(item.device)].rules == SpaceRules::Btrfs;
            let mut lies = None;
            if !beginning
                && (btrfs && item.size <= LONGEST_INLINE || item.size > SMALL)
                && let Ok(extents) = extents_of(file.as_fd())
            {
                if address_of(&extents) == INLINE {
                    // Not a hash, and unique: it will be in no group.
                    let mut content = Content::default();
                    content[8..].copy_from_slice(&item.inode.to_le_bytes());
                    content[1] = 1;
                    return worker.found.push((index, KnownContent { content, address: INLINE }));
                }
                if item.size > SMALL && extents.iter().all(|extent| extent.shared && extent.has_address) {
                    let places: Vec<_> = extents.iter().map(|extent| (extent.logical, extent.physical)).collect();
                    lies = Some((item.file_system, item.size, places)).filter(|_| !extents.is_empty());
                }
            }
            let seen = || seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(content) = lies.as_ref().and_then(|lies| seen().get(lies).copied()) {
                return worker.found.push((index, KnownContent { content, address: 0 }));
            }
            let content = match beginning {
                true => worker.reader.beginning(file.as_fd()).map(Some),
                false => worker.reader.whole(file.as_fd(), item.size, || self.stopped()),
            };
            match content {
                Ok(Some(content)) => {
                    worker.found.push((index, KnownContent { content, address: 0 }));
                    if !beginning {
                        self.sharing().report.hashed.files += 1;
                        self.sharing().report.hashed.bytes += item.size;
                        self.options.progress.add(0, item.size);
                    }
                    if let Some(lies) = lies {
                        seen().insert(lies, content);
                    }
                }
                Ok(None) => self.sharing().leave(index, CHANGED),
                Err(_) if self.stopped() => {}
                Err(errno) => self.sharing().leave(index, LeftReason::Skipped(reason(errno))),
            }
        };
        let workers = for_each(self.threads, wanted.len(), || self.stopped(), state, work);
        workers.into_iter().flat_map(|worker| worker.found).collect()
    }

    fn groups(&self, classes: &[std::ops::Range<usize>], leaders: &HashMap<u32, u32>) -> FileGroups {
        let mut groups = FileGroups::default();
        let mut class_members: Vec<(Content, u32, (bool, bool), u32)> = Vec::new();
        for class in classes {
            class_members.clear();
            for index in class.clone() {
                let leader = leaders.get(&(index as u32)).map_or(index, |leader| *leader as usize);
                // An unhashed item only matches files of its own path.
                let alone = if self.known[leader].is_known() { u32::MAX } else { leader as u32 };
                // Files to share with come first, whatever their paths, and of the rest those of other users.
                let may_change = (self.may_change(index as u32), self.catalog.items[index].is_own);
                class_members.push((self.known[leader].content, alone, may_change, index as u32));
            }
            class_members.sort_unstable();
            for group in class_members.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                if group.len() > 1 {
                    groups.push(group.iter().map(|(.., index)| *index));
                }
            }
        }
        groups
    }

    /// Hashes the files that differ from the same path in another tree, and groups them again.
    fn second_round(&mut self, classes: &[std::ops::Range<usize>], mut differing: Vec<u32>) {
        differing.sort_unstable();
        let mut again = Vec::new();
        let mut to_hash = Vec::new();
        for range in classes {
            let first = differing.partition_point(|&index| (index as usize) < range.start);
            if differing.get(first).is_none_or(|&index| index as usize >= range.end) {
                continue;
            }
            for index in range.clone() {
                if !self.known[index].is_known() || is_placeholder(&self.known[index]) {
                    self.known[index].content = Content::default();
                    to_hash.push(index as u32);
                }
            }
            self.sharing().sets.remove(&class(&self.catalog.items[range.start]));
            again.push(range.clone());
        }
        let addresses: Vec<_> = to_hash.iter().map(|&index| (index, self.known[index as usize].address)).collect();
        self.hash(to_hash);
        for (index, address) in addresses {
            if self.known[index as usize].address == 0 {
                self.known[index as usize].address = address;
            }
        }
        let groups = self.groups(&again, &HashMap::new());
        self.share(groups);
        // They differ in spite of equal hashes, so they changed in between.
        let differing = std::mem::take(&mut self.sharing().differing);
        differing.into_iter().for_each(|index| self.sharing().leave(index, CHANGED));
    }
}
