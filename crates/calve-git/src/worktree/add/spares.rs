//! Spares: of a whole worktree, or of ignored directories. One is handed over instead of cloning.
//!
//! A spare of a worktree is everything in it but `.git`. Handed over and brought up to date, it is what the donor is; then the rules that
//! choose the cloned files choose those that stay in it, git checks out files that differ in the commit, and it is registered as any other.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::{Descent, EntryKind, Folder, ScanOptions, StagedTree, Visitor, scan_tree};
use calve_core::options::SpareUse;
use calve_core::spares::{SpareOptions, Spares};
use calve_core::{Choice, CloneOptions, CloneReport, Strategy, clone_tree};

use crate::config::SparesRequest;
use crate::error::Result;
use crate::repository::Repository;
use crate::worktree::add::ignored::left_behind::{LeftBehindReason, LeftEntry};
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::add::notes::{is_worktree, take_notes};
use crate::worktree::add::report::AddedFiles;
use crate::worktree::add::request::{AddRequest, no_donor};
use crate::worktree::add::selector::{Selector, rules_below};
use crate::worktree::status::UntrackedEntry;

/// The entries that a spare of a worktree is made without.
const WITHOUT: &str = "/.git";

/// Returns the root of the worktree around `start`, the source of spares for new worktrees, and sets in `options` what these need.
pub fn of_worktree(start: &Path, options: &mut SpareOptions) -> Result<PathBuf> {
    let repository = Repository::open(start)?;
    let root = repository.here.clone().ok_or_else(|| no_donor(&repository))?;
    options.staged = true;
    options.like.exclude = vec![WITHOUT.to_owned()];
    Ok(root)
}

/// Returns how many spares of the donor its configuration asks for.
pub(crate) fn requested(request: &AddRequest) -> Option<SparesRequest> {
    request.config.spares.filter(|wanted| wanted.count > 0 && !request.provenance.is_untrusted())
}

/// Returns where spares of the whole donor are, if there are to be any.
pub(crate) fn of_donor(donor: &Path, options: &CloneOptions) -> Result<Option<SpareUse>> {
    let Some(using) = &options.spares else { return Ok(None) };
    let made_without = vec![WITHOUT.to_owned()];
    let wanted = Spares::at(&using.home).are_wanted(donor, &made_without)?;
    Ok(wanted.then(|| {
        let mut using = using.clone();
        using.made_without = made_without;
        using
    }))
}

/// Returns the roots of which there are spares, and which are nothing but ignored.
pub(crate) fn with_spares(
    donor: &Path,
    roots: &[UntrackedEntry],
    options: &CloneOptions,
    is_elsewhere: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>> {
    let Some(using) = &options.spares else { return Ok(Vec::new()) };
    // A snapshot has the directory too, and no spare can be moved into a subvolume.
    if calve_core::internal::is_subvolume(donor)? {
        return Ok(Vec::new());
    }
    let spares = Spares::at(&using.home);
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.is_directory) {
        if spares.are_wanted(&donor.join(&root.path), &[])? && !is_elsewhere(&root.path) {
            found.push(root.path.clone());
        }
    }
    Ok(found)
}

/// Puts a directory into the staged worktree: a spare if one is ready, and otherwise a clone.
pub(crate) fn place(
    staged: &mut StagedTree<'_>,
    from: &Path,
    root: &Path,
    plan: &Arc<Selector>,
    options: &CloneOptions,
    files: &mut AddedFiles,
) -> Result<()> {
    let left = &mut files.untracked.left;
    if let Some(mut report) = claim(&from.join(root), &staged.path().join(root), options) {
        leave_out(staged, from, root, &plan.rules, options, left)?;
        report.dst = root.to_path_buf();
        files.spares_wanted |= report.spares_wanted;
        files.spares.push(report);
        return Ok(());
    }
    let mut plain = options.clone();
    plain.select = Some(rules_below(plan, root));
    plain.spares = None;
    let mut part = staged.clone_below(&from.join(root), root, &plain)?;
    files.clone.changed.extend(take_notes(&mut part, root, left));
    files.spares_wanted = true;
    Ok(())
}

/// Takes a spare over. `None` if no spare can be used, for whatever reason: then the directory is cloned.
fn claim(src: &Path, dst: &Path, options: &CloneOptions) -> Option<CloneReport> {
    let mut only = options.clone();
    only.strategy = Choice::Only(Strategy::Spare);
    only.select = None;
    only.unreadable = calve_core::UnreadableEntry::default();
    clone_tree(src, dst, &only).ok()
}

/// Takes out of a spare, which has everything that its source has, what the rules leave where it is.
fn leave_out(
    staged: &StagedTree<'_>,
    donor: &Path,
    root: &Path,
    rules: &Rules,
    options: &CloneOptions,
    left: &mut Vec<LeftEntry>,
) -> Result<()> {
    let mut scan = ScanOptions::default();
    scan.below = vec![root.to_path_buf()];
    scan.threads = options.threads;
    scan.cancel = options.cancel.clone();
    let judge = || Judge { rules, left: Vec::new() };
    let judged = scan_tree(&staged.path(), &scan, judge)?;
    let found: Vec<LeftEntry> = judged.visitors.into_iter().flat_map(|judge| judge.left).collect();
    let mut gone: HashSet<PathBuf> = HashSet::new();
    for entry in found {
        let beside = entry.path.parent().filter(|_| entry.reason == LeftBehindReason::Pointer);
        let entry = match beside {
            // A `.git` file of a worktree: the files beside it are that worktree.
            Some(beside) if is_worktree(&donor.join(&entry.path)) => {
                LeftEntry { path: beside.to_path_buf(), reason: LeftBehindReason::NestedWorktree }
            }
            _ => entry,
        };
        if entry.path.ancestors().any(|above| gone.contains(above)) {
            continue;
        }
        staged.remove(&entry.path)?;
        gone.insert(entry.path.clone());
        left.push(entry);
    }
    Ok(())
}

struct Judge<'a> {
    rules: &'a Rules,
    left: Vec<LeftEntry>,
}

impl Visitor for Judge<'_> {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent {
        let path = folder.path().join(OsStr::from_bytes(name.to_bytes()));
        match self.rules.leave(&path, kind == EntryKind::Directory) {
            None => Descent::Yes,
            Some(reason) => {
                self.left.push(LeftEntry { path, reason });
                Descent::No
            }
        }
    }
}
