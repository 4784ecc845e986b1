//! Chooses the file in each group whose extents the others will share: it decides the saved space and the read speed.

use std::collections::HashMap;
use std::os::fd::AsFd;

use super::catalog::Opener;
use super::finder::Finder;
use super::groups::FileGroups;
use super::parallel::for_each;
use crate::sys;

/// btrfs compresses at most this many bytes at once, so several compressed extents in a row are no fragmentation.
const LONGEST_COMPRESSED: u64 = 128 * 1024;
/// Smallest block size of the supported file systems. Files that fit into one block all have equally good layouts.
const BLOCK: u64 = 4096;

/// The layout of a file on disk: its numbers of fragments and of uncompressed bytes. A smaller value is better.
type Layout = (u64, u64);

struct Chooser<'a> {
    opener: Opener<'a>,
    /// Pairs of a group and the index of its best member.
    best: Vec<(usize, usize)>,
}

/// Puts the file to share with first in each group: of those that most others already share, the best layout.
pub(super) fn put_sources_first(finder: &Finder<'_>, groups: &mut FileGroups) {
    let state = || Chooser { opener: Opener::new(finder.catalog, finder.roots, finder.threads), best: Vec::new() };
    let work = |chooser: &mut Chooser<'_>, group: usize| {
        let candidates = candidates(finder, groups.members(group));
        if let Some(best) = best(finder, &mut chooser.opener, candidates) {
            chooser.best.push((group, best));
        }
    };
    for chooser in for_each(finder.threads, groups.len(), || finder.stopped(), state, work) {
        for (group, best) in chooser.best {
            groups.members_mut(group).swap(0, best);
        }
    }
}

/// Returns the possible sources, which come first in the group: with `--against`, only the files of its trees, else files of other users,
/// which this one may perhaps not change.
fn candidates<'a>(finder: &Finder<'_>, group: &'a [u32]) -> &'a [u32] {
    let is_own = |index: u32| finder.catalog.items[index as usize].is_own;
    match finder.options.against.len() {
        0 if is_own(group[0]) => group,
        0 => &group[..group.partition_point(|&index| !is_own(index))],
        _ => &group[..group.partition_point(|&index| !finder.may_change(index))],
    }
}

fn best(finder: &Finder<'_>, opener: &mut Opener<'_>, candidates: &[u32]) -> Option<usize> {
    let address = |index: u32| finder.known[index as usize].address;
    let first = address(*candidates.first()?);
    if candidates.len() == 1 || first != 0 && candidates.iter().all(|&index| address(index) == first) {
        return None;
    }
    let mut sharing: HashMap<u64, usize> = HashMap::new();
    for address in candidates.iter().map(|&index| address(index)).filter(|&address| address != 0) {
        *sharing.entry(address).or_default() += 1;
    }
    let sharing_with = |index: u32| sharing.get(&address(index)).copied().unwrap_or(0);
    let most = sharing.values().copied().max().unwrap_or(0);
    (0..candidates.len())
        .filter(|&at| sharing_with(candidates[at]) == most)
        .min_by_key(|&at| layout(finder, opener, candidates[at]))
}

/// Returns the layout of a file. Unreadable files sort last.
fn layout(finder: &Finder<'_>, opener: &mut Opener<'_>, index: u32) -> (bool, Layout) {
    let item = &finder.catalog.items[index as usize];
    if item.size <= BLOCK {
        return (false, Layout::default());
    }
    let (mut fragments, mut plain, mut end) = (0, 0, None);
    let read = opener.open(item).ok().flatten().map(|file| {
        sys::extents(file.as_fd(), |extent| {
            let goes_on =
                end == Some((extent.logical, extent.physical)) || extent.encoded && extent.length >= LONGEST_COMPRESSED;
            fragments += u64::from(!goes_on);
            plain += if extent.encoded || !extent.has_address { 0 } else { extent.length };
            end = Some((extent.logical + extent.length, extent.physical + extent.length));
            true
        })
    });
    (!matches!(read, Some(Ok(_))), (fragments.max(1), plain))
}
