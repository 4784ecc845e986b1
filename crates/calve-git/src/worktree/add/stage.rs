use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::{ScanOptions, StagedTree};
use calve_core::report::SkippedEntry;
use calve_core::{CloneOptions, CloneReport, Selection, UnreadableEntry};

use crate::environment::remove_own_env_files;
use crate::error::Result;
use crate::escape::{self, AuditOptions, AuditReport, Fix};
use crate::paths::path_of;
use crate::worktree::add::ignored::left_behind::{self, take_notes};
use crate::worktree::add::options::AddWarning;
use crate::worktree::add::report::AddedFiles;
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::selector::{rules_below, rules_elsewhere, selection};
use crate::worktree::add::shown::{is_worktree, shown};
use crate::worktree::add::spares;
use crate::worktree::add::survey::Survey;
use crate::worktree::registration::Registration;
use crate::worktree::tracked::TrackedCounts;

/// Fills the staged tree of a new worktree, and repairs references that lead out of it.
pub(crate) fn fill(staged: &mut StagedTree<'_>, entry: &Registration<'_>, mut survey: Survey) -> Result<AddedFiles> {
    let request = entry.request;
    let mut files = clone_files(staged, request, &mut survey)?;
    // Worktrees of other repositories: the files beside such a `.git` file are that worktree.
    for pointer in survey.plan.pointers() {
        if is_worktree(&request.donor.join(&pointer))
            && let Some(directory) = pointer.parent()
            && staged.remove(directory)? > 0
        {
            let left = SkippedEntry { path: directory.to_path_buf(), reason: left_behind::NESTED_WORKTREE };
            files.untracked.left.push(left);
        }
    }
    // A spare has them, and a program could use the donor's database through them.
    remove_own_env_files(&staged.path(), &files.untracked.env_files)?;
    let carried = files.untracked.carried.iter().map(|root| root.as_os_str().as_encoded_bytes());
    let below = carried.flat_map(|root| survey.tracked.at_or_below(root));
    // The commit tracks these although they are ignored.
    let tracked_below: HashSet<PathBuf> = below.map(|path| path_of(path)).collect();
    let git = entry.git(&staged.path());
    let commit = (&*request.target.oid, request.is_sparse);
    let threads = request.options.clone.threads;
    files.tracked = survey.tracked.check_out(&git, &entry.index(), commit, &request.repository, threads)?;
    files.warnings.extend(files.tracked.said.clone().map(AddWarning::Git));
    if survey.may_show {
        for path in shown(&git)? {
            staged.remove(&path)?;
            files.untracked.left.push(SkippedEntry { path, reason: left_behind::NOT_IGNORED });
        }
    }
    files.untracked.finish();
    if !files.untracked.carried.is_empty() {
        files.audit = audit(staged, request, files.untracked.carried.clone(), tracked_below)?;
    }
    Ok(files)
}

fn clone_files(staged: &mut StagedTree<'_>, request: &AddRequest, survey: &mut Survey) -> Result<AddedFiles> {
    let AddRequest { donor, options, .. } = request;
    let mut untracked = survey.carried(donor);
    let mut clone = options.clone.clone();
    clone.spares = survey.spare.take();
    clone.select = Some(selection(&survey.plan));
    clone.unreadable = UnreadableEntry::Skip;
    let mut report = staged.clone_root(donor, &clone)?;
    clone.spares = None;
    report.changed = take_notes(&mut report, Path::new(""), &mut untracked.left);
    let foreign = untracked.dependencies.iter().filter(|dependency| dependency.from != *donor);
    let foreign: Vec<_> = foreign.map(|one| (one.from.join(&one.path), one.path.clone())).collect();
    let mut files = AddedFiles {
        clone: report,
        tracked: TrackedCounts::default(),
        untracked,
        spares: Vec::new(),
        uncommitted: survey.uncommitted,
        audit: AuditReport::default(),
        warnings: std::mem::take(&mut survey.warnings),
    };
    for (src, at) in &foreign {
        clone_part(staged, src, at, rules_elsewhere(&survey.plan, at), &clone, &mut files)?;
    }
    files.warnings.extend(files.clone.warnings.iter().cloned().map(AddWarning::Engine));
    for root in &survey.spare_roots {
        let src = donor.join(root);
        if let Some(mut spare) = spares::claim(staged, &src, root, &survey.plan, &options.clone) {
            files.clone.changed.extend(take_notes(&mut spare, root, &mut files.untracked.left));
            files.clone.spares_wanted |= spare.spares_wanted;
            files.spares.push(CloneReport { dst: root.clone(), ..spare });
        } else {
            clone_part(staged, &src, root, rules_below(&survey.plan, root), &clone, &mut files)?;
            files.clone.spares_wanted = true;
        }
    }
    Ok(files)
}

fn clone_part(
    staged: &mut StagedTree<'_>,
    src: &Path,
    at: &Path,
    select: Selection,
    options: &CloneOptions,
    files: &mut AddedFiles,
) -> Result<()> {
    let mut clone = options.clone();
    clone.select = Some(select);
    let mut part = staged.clone_below(src, at, &clone)?;
    files.clone.changed.extend(take_notes(&mut part, at, &mut files.untracked.left));
    files.warnings.extend(part.warnings.into_iter().map(AddWarning::Engine));
    Ok(())
}

/// Repairs references that lead out of the copy, before anyone can see it.
fn audit(
    staged: &mut StagedTree<'_>,
    request: &AddRequest,
    carried: Vec<PathBuf>,
    tracked_below: HashSet<PathBuf>,
) -> Result<AuditReport> {
    let names = staged.take_names().map(|mut names| {
        // git may have written them.
        tracked_below.iter().for_each(|path| names.made(path));
        Arc::new(names)
    });
    let mut audit = audit_options(request, carried);
    audit.scan.names = names;
    audit.will_be = Some(request.path.clone());
    audit.tracked = Some(tracked_below);
    escape::audit(&staged.path(), &request.donor, &audit)
}

pub(crate) fn audit_options(request: &AddRequest, below: Vec<PathBuf>) -> AuditOptions {
    let clone = &request.options.clone;
    let others = request.repository.worktrees.iter().filter(|one| !one.is_bare && one.path != request.path);
    AuditOptions {
        fix: Fix::Yes,
        scan: ScanOptions { below, names: None, threads: clone.threads, cancel: clone.cancel.clone() },
        others: others.map(|one| one.path.clone()).collect(),
        ..AuditOptions::default()
    }
}
