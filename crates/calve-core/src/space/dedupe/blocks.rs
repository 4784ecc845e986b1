//! Equal ranges inside different files: by the hashes of their aligned blocks.

use std::os::fd::{AsFd, OwnedFd};

use super::DedupeMode;
use super::apply::Sharing;
use super::catalog::Opener;
use super::content::{read_at, shortened};
use super::find::Finder;
use super::share::{CHANGED, common_bytes, extents_of, refusal};
use super::turns::{Turns, for_each};
use crate::sys::{self, Extent};

/// Smaller blocks find more, and cost more extents.
const BLOCK: u64 = 64 * 1024;

/// A block of a file: its file system, its hash, the item, its number.
type Block = (u16, u64, u32, u32);

/// A range of one file that may hold what a range of another does, in blocks.
struct Match {
    src: u32,
    src_block: u32,
    dst: u32,
    dst_block: u32,
    blocks: u32,
}

pub(super) fn share_blocks(finder: &Finder<'_>, sharing: &mut Sharing) {
    let matches = matches(finder, sharing);
    if finder.options.mode == DedupeMode::DryRun {
        sharing.ranges += matches.len() as u64;
        sharing.range_bytes += matches.iter().map(|one| u64::from(one.blocks) * BLOCK).sum::<u64>();
        return;
    }
    // One after the other: ranges of one file must not be shared by two threads at a time.
    let (mut sources, mut targets) =
        (Opener::new(finder.catalog, finder.roots), Opener::new(finder.catalog, finder.roots));
    let mut open: Option<((u32, u32), OwnedFd, OwnedFd)> = None;
    for one in &matches {
        if finder.stopped() {
            return;
        }
        if open.as_ref().is_none_or(|(pair, ..)| *pair != (one.src, one.dst)) {
            let item = |index: u32| &finder.catalog.items[index as usize];
            open = match (sources.open(item(one.src)), targets.open(item(one.dst))) {
                (Ok(Some(src)), Ok(Some(dst))) => Some(((one.src, one.dst), src, dst)),
                _ => {
                    sharing.leave(vec![(one.dst, CHANGED)]);
                    None
                }
            };
        }
        let Some((_, src, dst)) = &open else { continue };
        match share_range(finder, src, dst, one) {
            Ok(0) => {}
            Ok(bytes) => {
                sharing.ranges += 1;
                sharing.range_bytes += bytes;
            }
            Err(errno) => sharing.leave(vec![(one.dst, refusal(errno, src.as_fd(), dst.as_fd()))]),
        }
    }
}

/// Shares a range, and returns the bytes that lie at a common address now and did not before.
fn share_range(finder: &Finder<'_>, src: &OwnedFd, dst: &OwnedFd, one: &Match) -> sys::Result<u64> {
    let (from, to) = (u64::from(one.src_block) * BLOCK, u64::from(one.dst_block) * BLOCK);
    let length = u64::from(one.blocks) * BLOCK;
    let common = || -> sys::Result<u64> {
        let (a, b) = (cut(&extents_of(src.as_fd())?, from, length), cut(&extents_of(dst.as_fd())?, to, length));
        Ok(common_bytes(&a, &b))
    };
    let before = common()?;
    if before == length {
        return Ok(0);
    }
    let device = finder.catalog.items[one.dst as usize].device;
    let most = finder.volumes[usize::from(device)].most_bytes_per_dedupe.unwrap_or(BLOCK);
    let mut done = 0;
    while done < length && !finder.stopped() {
        let part = (length - done).min(most);
        if !sys::dedupe_range(src.as_fd(), from + done, part, dst.as_fd(), to + done)? {
            break;
        }
        done += part;
    }
    Ok(common()?.saturating_sub(before))
}

/// Returns the parts of extents inside a range, with positions from its beginning.
fn cut(extents: &[Extent], from: u64, length: u64) -> Vec<Extent> {
    let inside = extents.iter().filter_map(|extent| {
        let begin = extent.logical.max(from);
        let end = (extent.logical + extent.length).min(from + length);
        let skipped = if extent.encoded { 0 } else { begin - extent.logical };
        (begin < end).then(|| Extent {
            logical: begin - from,
            length: end - begin,
            physical: extent.physical + skipped,
            ..*extent
        })
    });
    inside.collect()
}

fn matches(finder: &Finder<'_>, sharing: &mut Sharing) -> Vec<Match> {
    let items = &finder.catalog.items;
    // One of several files with the same contents is enough.
    let mut seen = std::collections::HashSet::new();
    let wanted: Vec<u32> = (0..items.len() as u32)
        .filter(|&index| items[index as usize].size >= BLOCK)
        .filter(|&index| {
            let known = &finder.known[index as usize];
            !known.is_known() || seen.insert((items[index as usize].size, known.content))
        })
        .collect();
    let state = || (Opener::new(finder.catalog, finder.roots), vec![0; BLOCK as usize], Vec::new(), 0u64);
    let work = |worker: &mut (Opener<'_>, Vec<u8>, Vec<Block>, u64), at: usize| {
        let (opener, buffer, blocks, bytes) = worker;
        let item = &items[wanted[at] as usize];
        let Ok(Some(file)) = opener.open(item) else { return };
        let mut position = 0;
        while position + BLOCK <= item.size && !finder.stopped() {
            match sys::seek_data(file.as_fd(), position) {
                Ok(data) if data >= position + BLOCK => {
                    position = data / BLOCK * BLOCK;
                    continue;
                }
                Err(rustix::io::Errno::NXIO) => break,
                _ => {}
            }
            if read_at(file.as_fd(), buffer, position) != Ok(buffer.len()) {
                break;
            }
            // Zeros take space only where somebody wrote them, and so many would share one extent that the file system is slow.
            if buffer.iter().any(|&byte| byte != 0) {
                let hash = shortened(&blake3::hash(buffer));
                let number = u64::from_le_bytes(hash[..8].try_into().unwrap_or_default());
                blocks.push((item.file_system, number, wanted[at], (position / BLOCK) as u32));
                *bytes += BLOCK;
            }
            position += BLOCK;
        }
    };
    let mut blocks: Vec<Block> = Vec::new();
    let close = |worker: &mut (Opener<'_>, Vec<u8>, Vec<Block>, u64)| worker.0.close();
    let stopped = || finder.stopped();
    let turns = Turns::in_order(wanted.len());
    for (_, _, found, bytes) in for_each(finder.threads, finder.roots, &turns, stopped, state, work, close) {
        blocks.extend(found);
        sharing.hashed.1 += bytes;
    }
    blocks.sort_unstable();
    let against = finder.options.against.len();
    let root = |index: u32| usize::from(items[index as usize].root);
    let mut pairs: Vec<(u32, u32, u32, u32)> = Vec::new();
    for same in blocks.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let Some(source) = same.iter().find(|block| against == 0 || root(block.2) < against) else { continue };
        for other in same.iter().filter(|other| other.2 != source.2 && root(other.2) >= against) {
            pairs.push((other.2, source.2, other.3, source.3));
        }
    }
    pairs.sort_unstable();
    let mut matches: Vec<Match> = Vec::new();
    for (dst, src, dst_block, src_block) in pairs {
        match matches.last_mut() {
            Some(last)
                if (last.dst, last.src) == (dst, src)
                    && last.dst_block + last.blocks == dst_block
                    && last.src_block + last.blocks == src_block =>
            {
                last.blocks += 1;
            }
            _ => matches.push(Match { src, src_block, dst, dst_block, blocks: 1 }),
        }
    }
    matches
}
