//! References from a copied tree into its source: found, and repaired, dropped or reported.
//!
//! One walk reads the copy's names. It opens an entry, read-only, only if its name or place makes it a candidate. Then
//! the findings are put right one by one, relative to open directories and following no symlink. A changed file is a
//! new one renamed into place, so that nothing is written through a link that the donor shares.

mod detectors;
mod entry;
mod former;
mod options;
mod report;
mod trees;
mod worktrees;
mod writing;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::internal::{Descent, EntryKind, Folder, ScanReport, Visitor, scan_tree};
use rustix::io::Errno;

use crate::error::Result;
use crate::git::Git;
use crate::paths::path_of;
use detectors::{DETECTORS, dist_info};
use entry::{EntryName, WalkEntry};
use report::Step;
use trees::Trees;

pub use options::{AuditOptions, Fix, FormerPathRule};
pub use report::{Action, AuditReport, Explanation, Finding, ReferenceKind};
pub use worktrees::{Worktrees, worktrees_of};

/// Finds references from the tree `new` into `old`, which it is a copy of, and into `options.others`. These need not
/// exist any more, and are never written. [`Fix::Yes`] repairs or drops references where possible. In tracked files
/// they are only reported: a repair would be a change to commit. [`FormerPathRule::Sought`] adds a former path.
pub fn audit(new: &Path, old: &Path, options: &AuditOptions) -> Result<AuditReport> {
    let begin = Instant::now();
    let mut trees = Trees::new(new, old, options)?;
    let mut scanned = scan(new, &trees, options)?;
    let former: BTreeSet<_> = scanned.visitors.iter().flat_map(|auditor| auditor.former.clone()).collect();
    if !former.is_empty() {
        let mut options = options.clone();
        options.others.extend(former);
        trees = Trees::new(new, old, &options)?;
        scanned = scan(new, &trees, &options)?;
    }
    let ScanReport { visitors, entries, skipped } = scanned;
    let (mut findings, mut records) = (Vec::new(), Vec::new());
    for auditor in visitors {
        findings.extend(auditor.found);
        records.extend(auditor.records);
    }
    findings.sort_by(|a: &Finding, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    report_tracked(&mut findings, new, options)?;
    findings.extend(dist_info::records(&trees, &findings, records));
    let fixed = options.fix == Fix::Yes;
    if fixed {
        findings.iter_mut().for_each(|found| repair(&trees, found));
    }
    Ok(AuditReport { path: new.into(), findings, fixed, entries, skipped, elapsed: begin.elapsed() })
}

fn scan<'t>(new: &Path, trees: &'t Trees, options: &AuditOptions) -> Result<ScanReport<Auditor<'t>>> {
    let moved = options.moved;
    let auditor = || Auditor { trees, moved, found: Vec::new(), records: Vec::new(), former: Vec::new() };
    Ok(scan_tree(new, &options.scan, auditor)?)
}

struct Auditor<'a> {
    trees: &'a Trees,
    moved: FormerPathRule,
    /// Former paths of the tree, as its contents state them.
    former: Vec<PathBuf>,
    found: Vec<Finding>,
    records: Vec<PathBuf>,
}

impl Visitor for Auditor<'_> {
    fn wants(&self, folder: &Path, name: &CStr, kind: EntryKind) -> bool {
        let entry = EntryName::new(folder, name, kind);
        let is_left = || entry.is_directory() && (entry.name() == b".git" || self.trees.is_another(&entry));
        DETECTORS.iter().any(|(wants, _)| wants(&entry)) || dist_info::is_record(&entry) || is_left()
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent {
        let entry = WalkEntry::new(folder, name, kind);
        let before = self.found.len();
        if self.moved == FormerPathRule::Sought && entry.is_file() {
            self.former.extend(former::root(&entry, &self.trees.new));
        }
        for (wants, look) in DETECTORS {
            if wants(&entry) {
                look(&entry, self.trees, &mut self.found);
                if self.found[before..].iter().any(|found| found.takes_away(&entry)) {
                    return Descent::No;
                }
            }
        }
        match kind {
            EntryKind::File if dist_info::is_record(&entry) => self.records.push(entry.path()),
            // A repository's own files name nothing that its worktree runs on. Another worktree has its own audit.
            EntryKind::Directory if entry.name() == b".git" || self.trees.is_another(&entry) => return Descent::No,
            _ => {}
        }
        Descent::Yes
    }
}

/// Carries out a finding's steps. If one fails, the finding is only reported.
fn repair(trees: &Trees, found: &mut Finding) {
    for step in std::mem::take(&mut found.steps) {
        let done = match &step {
            Step::Relink { path, target } => writing::relink(trees.root(), path, target),
            Step::Write { path, bytes, keeps_time } => writing::write(trees.root(), path, bytes, *keeps_time),
            Step::Remove { path } => writing::remove(trees.root(), path),
        };
        match done {
            // Removed meanwhile, perhaps by another finding's repair.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                let (path, reason) = (step.path().clone(), errno.to_string());
                found.only_reported(Explanation::Unchangeable { path, reason });
                break;
            }
        }
    }
}

/// Only reports findings in tracked files: they are the project's own, and not for a repair to change.
fn report_tracked(found: &mut [Finding], new: &Path, options: &AuditOptions) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let tracked = match &options.tracked {
        Some(tracked) => Cow::Borrowed(tracked),
        None => Cow::Owned(tracked(new)?),
    };
    for found in found.iter_mut() {
        if tracked.contains(&found.path) && found.action != Action::Reported {
            found.only_reported(Explanation::Tracked);
        }
        found.steps.retain(|step| !tracked.contains(step.path()));
    }
    Ok(())
}

fn tracked(new: &Path) -> Result<HashSet<PathBuf>> {
    if new.join(".git").symlink_metadata().is_err() {
        return Ok(HashSet::new());
    }
    let listed = Git::at(new).run(&["ls-files", "-z", "--recurse-submodules"])?;
    let names = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(path_of).collect())
}
