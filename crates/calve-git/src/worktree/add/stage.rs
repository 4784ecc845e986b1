use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use calve_core::internal::{ScanOptions, StagedTree};
use calve_core::report::SkippedEntry;
use calve_core::{CloneOptions, CloneReport, Selection, UnreadableEntry};

use crate::environment::remove_own_env_files;
use crate::error::Result;
use crate::escape::{self, AuditOptions, AuditReport, Fix};
use crate::paths::path_of;
use crate::worktree::add::ignored::left_behind::{self, take_notes};
use crate::worktree::add::options::AddWarning;
use crate::worktree::add::report::{AddDetails, AddReport};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::selector::{rules_below, rules_elsewhere, selection};
use crate::worktree::add::shown::{is_worktree, shown};
use crate::worktree::add::spares;
use crate::worktree::add::survey::Survey;
use crate::worktree::registration::Registration;
use crate::worktree::tracked::TrackedCounts;

/// Fills the staged tree of a new worktree, and repairs references that lead out of it.
pub(crate) fn fill(staged: &mut StagedTree<'_>, entry: &Registration<'_>, mut survey: Survey) -> Result<AddReport> {
    let request = entry.request;
    let mut added = clone_files(staged, request, &mut survey)?;
    let AddReport { tracked, untracked, details, .. } = &mut added;
    // Worktrees of other repositories: the files beside such a `.git` file are that worktree.
    for pointer in survey.plan.pointers() {
        if is_worktree(&request.donor.join(&pointer))
            && let Some(directory) = pointer.parent()
            && staged.remove(directory)? > 0
        {
            let left = SkippedEntry { path: directory.to_path_buf(), reason: left_behind::NESTED_WORKTREE };
            untracked.left.push(left);
        }
    }
    // A spare has them, and a program could use the donor's database through them.
    remove_own_env_files(&staged.path(), &untracked.env_files)?;
    let carried = untracked.carried.iter().map(|root| root.as_os_str().as_encoded_bytes());
    let below = carried.flat_map(|root| survey.tracked.at_or_below(root));
    // The commit tracks these although they are ignored.
    let tracked_below: HashSet<PathBuf> = below.map(|path| path_of(path)).collect();
    let git = entry.git(&staged.path());
    let commit = (&*request.target.oid, request.is_sparse);
    let threads = request.options.clone.threads;
    *tracked = survey.tracked.check_out(&git, &entry.index(), commit, &request.repository, threads)?;
    details.warnings.extend(tracked.said.clone().map(AddWarning::Git));
    if survey.may_show {
        for path in shown(&git)? {
            staged.remove(&path)?;
            untracked.left.push(SkippedEntry { path, reason: left_behind::NOT_IGNORED });
        }
    }
    untracked.finish();
    if !untracked.carried.is_empty() {
        details.audit = audit(staged, request, untracked.carried.clone(), tracked_below)?;
    }
    Ok(added)
}

fn clone_files(staged: &mut StagedTree<'_>, request: &AddRequest, survey: &mut Survey) -> Result<AddReport> {
    let AddRequest { donor, options, config, provenance, .. } = request;
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
    let mut details = AddDetails {
        clone: report,
        spares: Vec::new(),
        uncommitted: survey.uncommitted,
        audit: AuditReport::default(),
        warnings: std::mem::take(&mut survey.warnings),
        spares_request: config.spares.filter(|wanted| wanted.count > 0 && !provenance.is_untrusted()),
        post_checkout: None,
        trash_waits: false,
        elapsed: Duration::ZERO,
    };
    let left = &mut untracked.left;
    for (src, at) in &foreign {
        clone_part(staged, src, at, rules_elsewhere(&survey.plan, at), &clone, left, &mut details)?;
    }
    details.warnings.extend(details.clone.warnings.iter().cloned().map(AddWarning::Engine));
    for root in &survey.spare_roots {
        let src = donor.join(root);
        if let Some(mut spare) = spares::claim(staged, &src, root, &survey.plan, &options.clone) {
            details.clone.changed.extend(take_notes(&mut spare, root, left));
            details.clone.spares_wanted |= spare.spares_wanted;
            details.spares.push(CloneReport { dst: root.clone(), ..spare });
        } else {
            clone_part(staged, &src, root, rules_below(&survey.plan, root), &clone, left, &mut details)?;
            details.clone.spares_wanted = true;
        }
    }
    let (worktree, tracked) = (request.new_worktree(), TrackedCounts::default());
    Ok(AddReport { worktree, tracked, untracked, details })
}

fn clone_part(
    staged: &mut StagedTree<'_>,
    src: &Path,
    at: &Path,
    select: Selection,
    options: &CloneOptions,
    left: &mut Vec<SkippedEntry>,
    details: &mut AddDetails,
) -> Result<()> {
    let mut clone = options.clone();
    clone.select = Some(select);
    let mut part = staged.clone_below(src, at, &clone)?;
    details.clone.changed.extend(take_notes(&mut part, at, left));
    details.warnings.extend(part.warnings.into_iter().map(AddWarning::Engine));
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
