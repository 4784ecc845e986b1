//! Applies the changes of a command in its private copy to the tree.
//!
//! New entries are made first, under a hidden name in the tree and in each nested subvolume, because nothing moves out
//! of one. Then entries move: new ones in, replaced and deleted ones to the hidden place. If a move fails, those before
//! it are taken back.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::changes::{Change, Layer};
use super::entries::{Directories, entry};
use super::seal::{HELD, PlaceRoot, Seal, unless_anothers, with_writable};
use super::xattrs::{with_changes, xattrs};
use crate::error::{Error, IoContext, PrivateError};
use crate::options::{CloneOptions, Decision, Selection};
use crate::progress::CancelToken;
use crate::remove::sweep::sweep_hidden;
use crate::staging::{RootKind, Staging, rename_to_first_free};
use crate::strategy::facts::created_in;
use crate::sys::{self, XattrTarget};
use crate::tree::exclude::Exclusions;
use crate::tree::fill::contents::ContentsMethod;
use crate::tree::fill::{Fill, FillPart, fill};
use crate::tree::held_times::times;
use crate::tree::location::{DIRECTORY, Location, identity, make_below};
use crate::tree::lock::Purpose;
use crate::tree::node::{Names, above, full_path, node_of};
use crate::tree::notes::Notes;
use crate::tree::stable::Since;
use crate::tree::walk::EntryKind;
use crate::vocabulary::operation::Operation;

pub(super) struct ApplyRequest<'a> {
    /// The tree's name in errors.
    pub(super) tree: &'a Path,
    /// Its present path: a clone gets its name only when it is complete.
    pub(super) real_path: &'a Path,
    pub(super) lower: BorrowedFd<'a>,
    pub(super) upper: Layer<'a>,
    /// Entries of the tree that changed since are not replaced. `None`: no other process has the tree.
    pub(super) since: Option<Since>,
    /// Entries of the copy that changed since are not taken. `None`: all are.
    pub(super) shown: Option<Since>,
    pub(super) cancel: &'a CancelToken,
}

struct Move {
    path: PathBuf,
    /// The tree's entry when it was checked. `None`: the name is free.
    old: Option<Stat>,
    has_new: bool,
    /// Index into the plan's places.
    place: usize,
}

struct ApplyPlan {
    /// The roots of the subvolumes in which entries move, the tree's own first.
    places: Vec<PathBuf>,
    moves: Vec<Move>,
    /// The entries to take from the upper directory.
    taken: Arc<HashSet<PathBuf>>,
    /// Directories that get another mode, owner or extended attributes.
    sealed: Vec<PathBuf>,
    /// Directories that get the copy's times: those that nothing else has changed.
    timed: BTreeSet<PathBuf>,
}

/// The hidden place in one of the plan's places.
struct Stage<'p> {
    staging: Staging<'p>,
    new: OwnedFd,
    old: OwnedFd,
}

impl ApplyRequest<'_> {
    /// Applies all changes or none. Slow work comes before the first move.
    pub(super) fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        let is_directory = |change: &Change| [change.before, change.after] == [Some(EntryKind::Directory); 2];
        let (timed, changes): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|change| !change.is_different && is_directory(change));
        let mut plan = self.plan(&changes)?;
        let timed = std::mem::take(&mut plan.timed).into_iter().chain(timed.into_iter().map(|change| change.path));
        let mut tree = Directories::new(self.lower);
        plan.timed = timed.filter(|path| tree.entry(path).is_ok_and(|stat| !self.is_new(&stat))).collect();
        if changes.is_empty() {
            return self.set_times(&plan.timed).map_err(|(path, errno)| self.no_times(&path, errno));
        }
        let locate = |place: &PathBuf| Location::of_destination(&self.real_path.join(place).join("change"));
        let locations = plan.places.iter().map(locate).collect::<Result<Vec<_>, _>>()?;
        let roots = plan.places.iter().map(|place| self.place_root(place, &plan.sealed));
        let roots = roots.collect::<sys::Result<Vec<_>>>().io(Operation::SetMode, self.tree)?;
        let set = |mode: fn(&PlaceRoot) -> RawMode| {
            let mut done = Ok(());
            for root in roots.iter().filter(|root| root.is_held()) {
                done = done.and(rustix::fs::fchmod(&root.directory, Mode::from_raw_mode(mode(root))));
            }
            done.io(Operation::SetMode, self.tree)
        };
        let hold = || set(|root| root.before | HELD);
        let applied = hold().and_then(|()| self.prepare(&plan, &locations)).and_then(|stages| {
            let applied = self.carry_out_all(&changes, &plan, &stages);
            // The hidden places are removed now.
            hold()?;
            applied
        });
        set(if applied.is_ok() { |root| root.after } else { |root| root.before })?;
        let seals = applied?;
        let ApplyPlan { places, timed, .. } = plan;
        let mut sealed = seals.iter().filter(|(path, _)| timed.contains(path));
        let set = sealed.try_for_each(|(path, seal)| seal.set_times().map_err(|errno| self.no_times(path, errno)));
        // The hidden places have given these new times.
        let places = places.into_iter().filter(|place| timed.contains(place)).collect();
        let set = set.and(self.set_times(&places).map_err(|(path, errno)| self.no_times(&path, errno)));
        // All changes are in the tree, but an error would say that none is.
        if self.since.is_some() { Ok(()) } else { set }
    }

    fn place_root(&self, path: &Path, sealed: &[PathBuf]) -> sys::Result<PlaceRoot> {
        let mode = |stat: &Stat| stat.st_mode as RawMode & 0o7777;
        let node = node_of(path);
        let directory = node.open(self.lower, OFlags::RDONLY)?;
        let before = mode(&rustix::fs::fstat(&directory)?);
        let copy = rustix::fs::fstat(node.open(self.upper.directory, sys::PATH_ONLY)?)?;
        let copy = self.upper.closed.as_left(|| path.to_path_buf(), copy);
        let is_changed = sealed.iter().any(|sealed| sealed == path)
            && (!path.as_os_str().is_empty() || self.upper.began.has_other_mode(&copy));
        Ok(PlaceRoot { directory, before, after: if is_changed { mode(&copy) } else { before } })
    }

    /// Makes all new entries under hidden names. `locations`: an entry of each place, for its directory.
    fn prepare<'p>(&self, plan: &ApplyPlan, locations: &'p [Location]) -> Result<Vec<Stage<'p>>, Error> {
        let prepare = |(place, location): (usize, &'p Location)| {
            sweep_hidden(location.parent(), self.tree, Purpose::Staging)?;
            let mut staging = Staging::reserve(location)?;
            staging.make_root(RootKind::Closed)?;
            self.stage(staging, plan.moves.iter().filter(|one| one.place == place), &plan.taken)
        };
        locations.iter().enumerate().map(prepare).collect()
    }

    /// Returns the root of the subvolume of the directory `path`: a nested one has another device number.
    fn place_of(&self, path: &Path) -> Result<PathBuf, Error> {
        let mut tree = Directories::new(self.lower);
        let mut device = |path: &Path| {
            let stat = tree.entry(path).io(Operation::Stat, full_path(self.tree, path));
            stat.map(|stat| stat.st_dev)
        };
        let (mut place, own) = (path, device(path)?);
        while let Some(above) = place.parent().filter(|_| !place.as_os_str().is_empty()) {
            if device(above)? != own {
                break;
            }
            place = above;
        }
        Ok(place.to_path_buf())
    }

    fn carry_out_all(
        &self,
        changes: &[Change],
        plan: &ApplyPlan,
        stages: &[Stage<'_>],
    ) -> Result<Vec<(PathBuf, Seal)>, Error> {
        // Time has passed since the plan. The places have got hidden ones since, so they would look changed.
        let (mut tree, mut copy) = (Directories::new(self.lower), Directories::new(self.upper.directory));
        for change in changes.iter().filter(|change| !plan.places.contains(&change.path)) {
            self.check(change, &mut tree)?;
        }
        changes.iter().try_for_each(|change| self.check_shown(change, &mut copy))?;
        self.cancel.check()?;
        let ApplyFailure { path, why, left } = match self.carry_out(plan, stages) {
            Ok(seals) => return Ok(seals),
            Err(failure) => failure,
        };
        let path = full_path(self.tree, &path);
        let Some((left, errno)) = left else {
            return Err(match why {
                Obstacle::Changed => PrivateError::ChangedMeanwhile(path),
                Obstacle::System(errno) => PrivateError::NotApplied { path, source: errno.into() },
            }
            .into());
        };
        let place = plan.moves.iter().find(|one| one.path == left).map_or(0, |one| one.place);
        let left = full_path(self.tree, &left);
        let rescued = stages.iter().map(|stage| rescue(&stage.staging)).collect::<sys::Result<Vec<_>>>();
        let rescued = rescued.io(Operation::ExchangeBack, &left)?;
        let kept = rescued.into_iter().nth(place).unwrap_or_default();
        Err(PrivateError::HalfApplied { path: left, source: errno.into(), kept }.into())
    }

    /// Fails if the tree has changed.
    fn plan(&self, changes: &[Change]) -> Result<ApplyPlan, Error> {
        let (mut taken, mut sealed, mut timed) = (HashSet::new(), Vec::new(), BTreeSet::new());
        let mut moves: Vec<Move> = Vec::new();
        let mut places = vec![PathBuf::new()];
        let (mut tree, mut checked) = (Directories::new(self.lower), None);
        for change in changes {
            if checked.replace(change.path.parent()) != Some(change.path.parent()) {
                self.check_above(change, &mut tree)?;
            }
            let old = self.check(change, &mut tree)?;
            // Asked only here: later the hidden place has given the root a new time, and a missing entry cannot go.
            if old.is_none() && change.after.is_some() && self.may_be_removed(&change.path)? {
                return Err(self.changed(change));
            }
            let is_inside = moves.last().is_some_and(|last| change.path.starts_with(&last.path));
            if (change.before, change.after) == (Some(EntryKind::Directory), Some(EntryKind::Directory)) {
                sealed.push(change.path.clone());
                timed.insert(change.path.clone());
                continue;
            }
            if change.after.is_some() {
                taken.insert(change.path.clone());
            }
            if !is_inside {
                let above = change.path.parent().unwrap_or(Path::new(""));
                let place = match moves.last().filter(|last| last.path.parent() == change.path.parent()) {
                    Some(last) => last.place,
                    None => {
                        let root = self.place_of(above)?;
                        places.iter().position(|place| *place == root).unwrap_or_else(|| {
                            places.push(root);
                            places.len() - 1
                        })
                    }
                };
                timed.insert(above.to_path_buf());
                moves.push(Move { path: change.path.clone(), old, has_new: change.after.is_some(), place });
            }
        }
        if !changes.is_empty() {
            timed.extend(places.iter().cloned());
        }
        Ok(ApplyPlan { places, moves, taken: Arc::new(taken), sealed, timed })
    }

    /// Returns the change's entry in the tree. Fails unless it is as it was when the command began.
    fn check(&self, change: &Change, tree: &mut Directories<'_>) -> Result<Option<Stat>, Error> {
        let stat =
            sys::unless_gone(tree.entry(&change.path)).io(Operation::Stat, full_path(self.tree, &change.path))?;
        // The changes do not list sockets of the tree.
        let listed = stat.as_ref().map(sys::kind).filter(|kind| *kind != FileType::Socket);
        let kind = listed.map(EntryKind::from);
        let has_changed = stat.as_ref().is_some_and(|stat| self.is_new(stat));
        if kind != change.before || has_changed { Err(self.changed(change)) } else { Ok(stat) }
    }

    /// Fails if a directory above the change's entry may be another one than when the command began: its entries would
    /// look unchanged. A rename gives that directory a new change time, and also the one that it is now in.
    fn check_above(&self, change: &Change, tree: &mut Directories<'_>) -> Result<(), Error> {
        let mut is_below_new = false;
        for directory in change.path.ancestors().skip(1) {
            let stat = sys::unless_gone(tree.entry(directory)).io(Operation::Stat, full_path(self.tree, directory))?;
            let is_new = stat.is_some_and(|stat| self.is_new(&stat));
            if is_new && is_below_new {
                return Err(self.changed(change));
            }
            is_below_new = is_new;
        }
        Ok(())
    }

    fn changed(&self, change: &Change) -> Error {
        self.cause(self.since, PrivateError::ChangedMeanwhile(full_path(self.tree, &change.path)))
    }

    /// Returns `change`, unless the clock was set back and may be the cause.
    fn cause(&self, since: Option<Since>, change: PrivateError) -> Error {
        match since {
            Some(since) if since.was_set_back() => PrivateError::ClockSetBack(self.tree.to_path_buf()).into(),
            _ => change.into(),
        }
    }

    /// Fails if the copy's entry may have changed since it was listed.
    fn check_shown(&self, change: &Change, copy: &mut Directories<'_>) -> Result<(), Error> {
        let (Some(shown), true) = (self.shown, change.after.is_some()) else { return Ok(()) };
        let path = full_path(self.tree, &change.path);
        match sys::unless_gone(copy.entry(&change.path)).io(Operation::Stat, &path)? {
            Some(stat) if !shown.may_have_changed(&stat) => Ok(()),
            _ => Err(self.cause(self.shown, PrivateError::ChangedSinceShown(path))),
        }
    }

    /// Returns whether another process may have removed an entry that the command changed: then its directory has
    /// changed, too. (The overlay also notes an origin for renamed files.) A missing directory is checked itself.
    fn may_be_removed(&self, path: &Path) -> Result<bool, Error> {
        let (Some((directory, name)), Some(since)) = (above(path), self.since) else { return Ok(false) };
        let failed = |errno| Error::io(Operation::Stat, full_path(self.tree, path), errno);
        let upper = node_of(directory).open(self.upper.directory, OFlags::RDONLY).map_err(failed)?;
        let mut value = Vec::new();
        // The other name may be an attribute of the user's.
        let is_root = sys::opaque_attribute().to_bytes().starts_with(b"trusted.");
        let origin = if is_root { c"trusted.overlay.origin" } else { c"user.overlay.origin" };
        if XattrTarget::Named(upper.as_fd(), &name).read(origin, &mut value).is_err() {
            return Ok(false);
        }
        let stat = sys::unless_gone(entry(self.lower, directory)).map_err(failed)?;
        Ok(stat.is_some_and(|stat| since.may_have_changed(&stat)))
    }

    fn is_new(&self, stat: &Stat) -> bool {
        self.since.is_some_and(|since| since.may_have_changed(stat))
    }

    /// Makes the new entries in the hidden place, in directories like those of the tree.
    fn stage<'m, 'p>(
        &self,
        staging: Staging<'p>,
        moves: impl Iterator<Item = &'m Move> + Clone,
        taken: &Arc<HashSet<PathBuf>>,
    ) -> Result<Stage<'p>, Error> {
        let failed = |errno| Error::io(Operation::CreateStaging, self.tree, errno);
        let root = staging.root().ok_or_else(|| failed(Errno::NOENT))?;
        let make = |name| {
            rustix::fs::mkdirat(root, name, Mode::RWXU)?;
            sys::open_at(root, name, DIRECTORY)
        };
        let (new, old) = (make(c"new").map_err(failed)?, make(c"old").map_err(failed)?);
        let stage = Stage { staging, new, old };
        let mut copy = Directories::new(self.upper.directory);
        let mut parts: BTreeMap<PathBuf, FillPart> = BTreeMap::new();
        for entry in moves.clone().filter(|entry| entry.has_new) {
            let Some((directory, name)) = above(&entry.path) else { continue };
            let read = |errno| Error::io(Operation::OpenDirectory, full_path(self.tree, directory), errno);
            if !parts.contains_key(directory) {
                make_below(stage.new.as_fd(), directory, Mode::RWXU).map_err(failed)?;
                let node = node_of(directory);
                let opened = node.open(self.upper.directory, OFlags::RDONLY).map_err(read)?;
                let stat = rustix::fs::fstat(&opened).map_err(read)?;
                parts.insert(directory.to_path_buf(), FillPart { node, stat, names: Names::default() });
            }
            let stat = copy.entry(&entry.path).map_err(read)?;
            if let Some(part) = parts.get_mut(directory) {
                part.names.push_back((sys::kind(stat), name));
            }
        }
        let made: Vec<_> = parts.keys().cloned().collect();
        self.fill(&stage, parts.into_values().collect(), taken)?;
        let is_here = |path: &Path| taken.contains(path) && moves.clone().any(|one| path.starts_with(&one.path));
        self.upper.closed.close(stage.new.as_fd(), is_here).map_err(failed)?;
        // The tree's modes might forbid moves out of these directories. Parents come first.
        for (directory, name) in made.iter().filter_map(|path| above(path)) {
            let above = node_of(directory).open(stage.new.as_fd(), sys::PATH_ONLY).map_err(failed)?;
            sys::set_mode_of_name(above.as_fd(), &name, Mode::RWXU).map_err(failed)?;
        }
        Ok(stage)
    }

    fn fill(&self, stage: &Stage<'_>, parts: Vec<FillPart>, taken: &Arc<HashSet<PathBuf>>) -> Result<(), Error> {
        let taken = Arc::clone(taken);
        // Placeholders of deleted entries are not taken.
        let select = Selection::new(move |path, _| match taken.contains(path) {
            true => Decision::Take,
            false => Decision::Leave,
        });
        let exclude = Exclusions::default().and_select(Some(select));
        let options = CloneOptions { cancel: self.cancel.clone(), ..CloneOptions::default() };
        let (upper, new) = ((self.upper.directory, self.tree), (stage.new.as_fd(), self.tree));
        let (contents, notes) = (ContentsMethod::Reflink { tell_inlined: false }, Notes::default());
        let work = Fill {
            is_upper: true,
            keeps_nocow: sys::magic(self.lower) == Ok(sys::BTRFS_MAGIC),
            ..Fill::new(upper, new, contents, &exclude, created_in(&stage.staging)?, (&notes, &options))
        };
        fill(&work, Some(parts)).map(|_| ())
    }

    /// Moves all entries, new ones first, and seals the directories. Takes everything back on failure.
    fn carry_out(&self, plan: &ApplyPlan, stages: &[Stage<'_>]) -> Result<Vec<(PathBuf, Seal)>, ApplyFailure> {
        let ApplyPlan { moves, sealed, timed, .. } = plan;
        let (new, gone): (Vec<_>, Vec<_>) = moves.iter().enumerate().partition(|(_, one)| one.has_new);
        let order: Vec<_> = new.into_iter().chain(gone).collect();
        let (mut done, mut seals) = (0, Vec::new());
        let mut make = || -> Result<(), (PathBuf, Obstacle)> {
            for (number, one) in &order {
                let stage = &stages[one.place];
                let moved = self.move_entry(stage, *number, one, MoveDirection::There);
                done += usize::from(moved.is_ok());
                let checked = moved.and_then(|()| self.check_moved(stage, *number, one));
                checked.map_err(|why| (one.path.clone(), why))?;
            }
            // Before the directories above them are closed.
            self.set_times(timed).map_err(|(path, errno)| (path, errno.into()))?;
            // Deepest first: the others may be closed then.
            for path in sealed.iter().rev() {
                let seal = self.seal(path).map_err(|errno| (path.clone(), errno.into()))?;
                seals.push((path.clone(), seal));
            }
            Ok(())
        };
        let Err((path, why)) = make() else { return Ok(seals) };
        let mut left = None;
        for (path, seal) in seals {
            if let Err(errno) = seal.take_back() {
                left = Some((path, errno));
            }
        }
        for (number, one) in order[..done].iter().rev() {
            if let Err(why) = self.move_entry(&stages[one.place], *number, one, MoveDirection::Back) {
                let errno = match why {
                    Obstacle::Changed => Errno::BUSY,
                    Obstacle::System(errno) => errno,
                };
                left = Some((one.path.clone(), errno));
            }
        }
        Err(ApplyFailure { path, why, left })
    }

    /// Gives directories the copy's times, except those of other users.
    fn set_times(&self, directories: &BTreeSet<PathBuf>) -> Result<(), (PathBuf, Errno)> {
        let mut copy = Directories::new(self.upper.directory);
        for path in directories {
            let set = copy.entry(path).map(|stat| times(&stat)).and_then(|times| match above(path) {
                None => rustix::fs::futimens(self.lower, &times),
                Some((directory, name)) => {
                    let directory = node_of(directory).open(self.lower, sys::PATH_ONLY)?;
                    rustix::fs::utimensat(directory, &*name, &times, AtFlags::SYMLINK_NOFOLLOW)
                }
            });
            sys::unless_gone(set.or_else(unless_anothers)).map_err(|errno| (path.clone(), errno))?;
        }
        Ok(())
    }

    fn no_times(&self, path: &Path, errno: Errno) -> Error {
        Error::io(Operation::SetTimes, full_path(self.tree, path), errno)
    }

    /// Gives the root the metadata that the command changed: attributes, access control lists, mode, owner and times.
    pub(super) fn give_root(&self) -> Result<(), Error> {
        let root = PathBuf::new();
        let seal = self.seal(&root).io(Operation::SetMode, self.tree)?;
        seal.set_times().map_err(|errno| self.no_times(&root, errno))
    }

    fn move_entry(&self, stage: &Stage<'_>, number: usize, one: &Move, way: MoveDirection) -> Result<(), Obstacle> {
        let Some((directory, name)) = above(&one.path) else { return Ok(()) };
        let here = node_of(directory).open(self.lower, sys::PATH_ONLY)?;
        let hidden_name = CString::new(number.to_string()).unwrap_or_default();
        let (hidden, hidden_name) = match one.has_new {
            true => (node_of(directory).open(stage.new.as_fd(), sys::PATH_ONLY)?, &name),
            false => (sys::open_at(&stage.old, c".", DIRECTORY)?, &hidden_name),
        };
        let (here, hidden) = ((here.as_fd(), &*name), (hidden.as_fd(), &**hidden_name));
        let comes_in = one.has_new == (way == MoveDirection::There);
        let moved = with_writable([here, hidden], || match one.has_new && one.old.is_some() {
            true => sys::rename_exchange(hidden.0, hidden.1, here.0, here.1),
            false if comes_in => sys::rename_no_replace(hidden.0, hidden.1, here.0, here.1),
            false => sys::rename_no_replace(here.0, here.1, hidden.0, hidden.1),
        });
        moved.map_err(|errno| match errno {
            Errno::EXIST | Errno::NOENT if way == MoveDirection::There => Obstacle::Changed,
            errno => Obstacle::System(errno),
        })
    }

    /// Fails unless the entry that was moved out is the one that was checked.
    fn check_moved(&self, stage: &Stage<'_>, number: usize, one: &Move) -> Result<(), Obstacle> {
        let Some(old) = &one.old else { return Ok(()) };
        let moved = match one.has_new {
            true => entry(stage.new.as_fd(), &one.path),
            false => entry(stage.old.as_fd(), Path::new(&number.to_string())),
        };
        let moved = moved?;
        let version = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        // An overlay copies a file before its first move, and gives one of several names another inode number.
        let has_names = !sys::is_directory(old) && old.st_nlink > 1;
        let is_copied = has_names && sys::magic(self.lower) == Ok(sys::OVERLAY_MAGIC);
        let is_one = (is_copied || identity(&moved) == identity(old)) && moved.st_mode == old.st_mode;
        // XFS gives a directory a new time for the new `..`.
        if is_one && (sys::is_directory(old) || version(&moved) == version(old)) {
            Ok(())
        } else {
            Err(Obstacle::Changed)
        }
    }

    /// Gives a directory of the tree the copy's owner, mode and extended attributes. Returns the old ones.
    fn seal(&self, path: &Path) -> sys::Result<Seal> {
        let node = node_of(path);
        let copy = node.open(self.upper.directory, OFlags::RDONLY)?;
        let wanted = self.upper.closed.as_left(|| path.to_path_buf(), rustix::fs::fstat(&copy)?);
        let directory = node.open(self.lower, OFlags::RDONLY)?;
        let (stat, before) = (rustix::fs::fstat(&directory)?, xattrs(XattrTarget::Open(directory.as_fd()))?);
        let seal = Seal { directory, stat, xattrs: before, times: times(&wanted) };
        let is_root = path.as_os_str().is_empty();
        // The root keeps the owner and mode that the command left alone: the copy may not have had the tree's.
        let began = self.upper.began;
        let owner = if is_root && !began.has_other_owner(&wanted) { &seal.stat } else { &wanted };
        let mode = if is_root && !began.has_other_mode(&wanted) { &seal.stat } else { &wanted };
        let sealed = xattrs(XattrTarget::Open(copy.as_fd())).and_then(|now| {
            let wanted = if is_root { with_changes(&seal.xattrs, &began.xattrs, now) } else { now };
            seal.set(owner, mode, &wanted)
        });
        if let Err(errno) = sealed {
            // The first failure is reported, and this one would have the same reason.
            let _ = seal.take_back();
            return Err(errno);
        }
        Ok(seal)
    }
}

/// Gives the hidden place a visible name, and returns that.
fn rescue(staging: &Staging<'_>) -> sys::Result<PathBuf> {
    let names = (1..1000).map(|number| staging.parent_path().join(format!("calve-run-{number}")));
    rename_to_first_free(staging.parent(), staging.name(), names)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoveDirection {
    There,
    Back,
}

enum Obstacle {
    /// Another process has changed it.
    Changed,
    System(Errno),
}

impl From<Errno> for Obstacle {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

struct ApplyFailure {
    path: PathBuf,
    why: Obstacle,
    /// The entry that could not be taken back, and the reason.
    left: Option<(PathBuf, Errno)>,
}
