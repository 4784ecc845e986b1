//! Turns the sums into the report: the space shared with each tree, and the space that deleting frees.

use std::sync::{Arc, PoisonError};

use super::inodes::Inodes;
use super::ledger::Use;
use super::measure::Range;
use super::report::Usage;
use super::sweep::sweep;
use super::tally::{SharedTally, Sum, Tally};
use crate::error::{Error, IoContext};
use crate::report::Warning;
use crate::space::volumes::{Volume, Volumes};
use crate::sys::{self, DiskExtents, InodeSpace, SpaceRules};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;

pub(super) fn verdict(
    tally: Tally,
    shared: &SharedTally<'_>,
    volumes: &Volumes,
    nested: &[bool],
    all_seen: bool,
) -> Result<(Vec<Usage>, Usage, Vec<Warning>), Error> {
    let roots = nested.len();
    let mut scopes = scopes(&tally, nested);
    let inodes: Vec<Inodes> = scopes.iter_mut().map(|scope| std::mem::take(&mut scope.inodes)).collect();
    let volumes = volumes.all();
    let exact: Vec<bool> = (0..volumes.len() as u32).map(|number| is_exact(&volumes, number)).collect();
    let mut ledger = shared.ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sorted = ledger.sorted()?;
    let mut extents: Vec<Option<ExtentLookup<'_>>> = volumes
        .iter()
        .zip(&exact)
        .map(|(volume, exact)| exact.then(|| ExtentLookup::new(volume, &volumes, roots + 1)))
        .collect();
    let look_up = |one: &Use| match extents.get_mut(one.file_system as usize) {
        Some(Some(by_extent)) => by_extent.look_up(one, &inodes),
        _ => Ok(()),
    };
    sweep(&mut sorted, roots + 1, look_up, |piece| {
        let in_all: u32 = (0..=roots).filter(|&root| root == roots || !nested[root]).map(|r| piece.uses[r]).sum();
        let exact = exact.get(piece.file_system as usize) == Some(&true);
        for (index, scope) in scopes.iter_mut().enumerate() {
            let here = if index == roots { in_all } else { piece.uses[index] };
            if here == 0 {
                continue;
            }
            if here > 1 {
                scope.usage.shared_within += piece.bytes;
            }
            if exact {
                continue;
            }
            if all_seen && has_other_users(here, in_all, piece.family) {
                scope.usage.shared_outside_min += piece.bytes;
            } else {
                scope.account(piece.file_system).data.max += piece.bytes;
            }
            scope.usage.shared_outside_max += piece.bytes;
        }
    })?;
    for (file_system, by_extent) in (0..).zip(extents) {
        let Some(by_extent) = by_extent else { continue };
        for (scope, (frees, outside)) in scopes.iter_mut().zip(by_extent.frees.iter().zip(&by_extent.outside)) {
            scope.account(file_system).data = Range::exactly(*frees);
            scope.usage.shared_outside_min += outside;
            scope.usage.shared_outside_max += outside;
        }
    }
    let mut usages: Vec<Usage> =
        scopes.into_iter().zip(&inodes).map(|(scope, inodes)| conclude(scope, inodes, &volumes)).collect();
    let total = usages.pop().unwrap_or_default();
    Ok((usages, total, warnings(&volumes)))
}

/// Returns whether a piece certainly has other users: `here` in a path, `in_all` in all, `family` in total or 0.
fn has_other_users(here: u32, in_all: u32, family: u32) -> bool {
    in_all > here || if family == 0 { here == 1 } else { here < family }
}

/// Returns one sum for each path, and last the total.
fn scopes(tally: &Tally, nested: &[bool]) -> Vec<Sum> {
    let roots = nested.len();
    let mut all = tally.sums[roots].clone();
    let mut scopes = Vec::with_capacity(roots + 1);
    for (root, nested) in nested.iter().enumerate() {
        if !nested {
            all.merge(&tally.sums[root]);
        }
        let mut scope = tally.sums[root].clone();
        scope.merge(&tally.alone[root]);
        scopes.push(scope);
    }
    scopes.push(all);
    scopes
}

/// Returns whether the extent tree tells all users of extents: not where snapshots share parts of the files' own trees.
fn is_exact(volumes: &[Arc<Volume>], file_system: u32) -> bool {
    let mut members = volumes.iter().filter(|volume| volume.file_system == file_system).peekable();
    members.peek().is_some() && members.all(|volume| volume.subvolume.is_some())
}

struct ExtentLookup<'a> {
    extents: DiskExtents<'a>,
    volume: &'a Volume,
    /// Subvolumes and their devices.
    subvolumes: Vec<(u64, u32)>,
    /// All lower addresses are done.
    done: u64,
    frees: Vec<u64>,
    outside: Vec<u64>,
}

impl<'a> ExtentLookup<'a> {
    fn new(volume: &'a Arc<Volume>, volumes: &'a [Arc<Volume>], scopes: usize) -> Self {
        let kin = volumes.iter().filter(|other| other.file_system == volume.file_system);
        Self {
            extents: DiskExtents::new(volume.directory()),
            volume,
            subvolumes: kin.filter_map(|kin| kin.subvolume.map(|number| (number, kin.device))).collect(),
            done: 0,
            frees: vec![0; scopes],
            outside: vec![0; scopes],
        }
    }

    fn look_up(&mut self, one: &Use, scopes: &[Inodes]) -> Result<(), Error> {
        let end = if one.encoded { one.start + 1 } else { one.end };
        let mut address = one.start.max(self.done);
        while address < end {
            let Some(extent) = self.extents.at(address).io(Operation::ReadExtents, &self.volume.path)? else {
                return Ok(());
            };
            if extent.start >= end {
                return Ok(());
            }
            let inside = |inodes: &Inodes, user: &sys::ExtentUser| {
                let device = self.subvolumes.iter().find(|(number, _)| *number == user.subvolume);
                device.is_some_and(|(_, device)| inodes.contains(*device, user.inode))
            };
            for (index, scope) in scopes.iter().enumerate() {
                let users = || extent.users.iter();
                if extent.all_known && users().all(|user| inside(scope, user)) {
                    self.frees[index] += extent.bytes;
                } else if users().any(|user| inside(scope, user)) {
                    self.outside[index] += extent.bytes;
                }
            }
            address = extent.end();
            self.done = address;
        }
        Ok(())
    }
}

fn conclude(sum: Sum, inodes: &Inodes, volumes: &[Arc<Volume>]) -> Usage {
    let mut usage = sum.usage;
    let mut all = Range::default();
    sum.by_file_system.values().for_each(|sum| all.add(sum.data));
    usage.frees_data = (all.min == all.max).then_some(all.min);
    all.add(sum.other);
    for volume in volumes {
        match volume.rules {
            SpaceRules::Xfs => {
                // Inodes are allocated, and freed, in chunks of 64.
                let (whole, parts) = inodes.groups(volume.device);
                let mut inodes = xfs_inodes(whole, parts, sys::xfs_inodes(volume.directory()));
                if sys::mount_options(volume.directory()).split(',').any(|option| option == "ikeep") {
                    inodes.min = 0;
                }
                all.add(inodes);
            }
            SpaceRules::Btrfs if volume.file_system == volume.device => {
                // Each leaf is at least a third full, or it would have been merged with the next. Leaves with other
                // users stay. One more may go from each tree: those of files, extents, checksums and free space.
                let copies = sys::btrfs_metadata_copies(volume.directory()).unwrap_or(4);
                let leaf = sys::btrfs_node_bytes(volume.directory()).unwrap_or(65536);
                let items = sum.by_file_system.get(&volume.file_system).map_or(0, |sum| sum.items);
                let trees = 3 + volumes.iter().filter(|other| other.file_system == volume.file_system).count() as u64;
                let leaves = if items > 0 { trees * leaf } else { 0 };
                all.add(Range { min: 0, max: (3 * items + leaves) * copies });
            }
            _ => {}
        }
    }
    (usage.frees_min, usage.frees_max) = (all.min, all.max);
    usage.frees = (all.min == all.max).then_some(all.min);
    usage
}

/// Returns the space of `whole` full chunks of 64 inodes and `parts` partial ones, with the index of the chunks.
fn xfs_inodes(whole: u64, parts: u64, space: Option<InodeSpace>) -> Range {
    // The largest values of any XFS, if it does not tell.
    let largest = InodeSpace { inode_bytes: 2048, block_bytes: 65536, groups: 1, allocated: u64::MAX, aligned: false };
    let space = space.unwrap_or(largest);
    let chunk = 64 * space.inode_bytes;
    let chunks = whole + parts;
    // The index is a tree of 16-byte records after a 56-byte header. Its blocks except the roots are at least half
    // full. A block goes only with a record in it, so no more go than chunks. Those above may go with it.
    let least_records = (space.block_bytes.saturating_sub(56) / 32).max(1);
    let leaves = chunks.min(space.allocated / 64 / least_records + 2 * space.groups);
    let above = leaves.min(leaves / least_records + 2 * space.groups);
    let min = if space.aligned { whole * chunk } else { 0 };
    Range { min, max: chunks * chunk + (leaves + above) * space.block_bytes }
}

fn warnings(volumes: &[Arc<Volume>]) -> Vec<Warning> {
    let unknown = volumes.iter().find(|volume| volume.rules == SpaceRules::Unknown);
    let warning = unknown.map(|volume| Warning {
        code: WarningCode::SharingUnknown,
        path: Some(volume.path.clone()),
        message: format!(
            "{} does not tell what files share, so some figures are bounds",
            sys::file_system_name(volume.directory())
        ),
    });
    warning.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_else_uses_a_piece_is_said_only_where_it_is_certain() {
        assert!(has_other_users(1, 1, 0), "shared, and only once in the set");
        assert!(!has_other_users(2, 2, 0), "perhaps with each other only");
        assert!(has_other_users(1, 2, 0) && has_other_users(2, 3, 0), "another path uses it");
        assert!(has_other_users(1, 1, 2) && has_other_users(2, 2, 3), "a clone is elsewhere");
        assert!(!has_other_users(2, 2, 2), "all clones are here");
        assert!(!has_other_users(1, 1, 1), "a clone that was written to: what it still shares nobody tells");
        assert!(has_other_users(1, 2, 2));
    }
}
