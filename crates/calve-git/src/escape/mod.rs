//! References from a copied tree back into the tree that it was copied from: found, and repaired, dropped or reported.
//!
//! One walk goes through the names of the copy. Only what its name or place makes a candidate is opened, read-only; then what was
//! found is put right, one entry after the other. Everything is relative to open directories and follows no symlink. A file is
//! changed by writing a new one and renaming it, so that nothing is ever written through a link that the donor shares.

mod detectors;
mod entry;
mod repair;
mod report;
mod tracked;
mod trees;
mod worktrees;
mod writing;

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::{Descend, EntryKind, Folder, ScanOptions, Visitor, scan_tree};

use crate::error::Result;
use detectors::{DETECTORS, dist_info};
use entry::Entry;
use report::Found;
use trees::Trees;

pub use report::{Action, AuditOptions, AuditReport, Explanation, Finding, Fix, Kind};
pub use worktrees::{Worktrees, worktrees_of};

/// Looks for references from the tree `new` into the tree `old`, of which it is a copy, and into `options.others`.
///
/// With [`Fix::Yes`] they are repaired or dropped where that is possible. What git tracks is only ever reported: a repair would
/// be a change to commit. `old` and the others need not exist any more, and are never written.
pub fn audit(new: &Path, old: &Path, options: &AuditOptions) -> Result<AuditReport> {
    let begin = Instant::now();
    let trees = Trees::new(new, old, options)?;
    let mut scan = ScanOptions::default();
    scan.below.clone_from(&options.below);
    scan.threads = options.threads;
    scan.cancel = options.cancel.clone();
    let scanned = scan_tree(new, &scan, || Auditor { trees: &trees, found: Vec::new(), records: Vec::new() })?;
    let mut found = Vec::new();
    let mut records = Vec::new();
    for auditor in scanned.visitors {
        found.extend(auditor.found);
        records.extend(auditor.records);
    }
    found.sort_by(|a: &Found, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    tracked::only_report(&mut found, new, options)?;
    found.extend(dist_info::records(&trees, &found, records));
    let fixed = options.fix == Fix::Yes;
    let findings = found.into_iter().map(|found| if fixed { repair::repair(&trees, found) } else { found.finding() });
    Ok(AuditReport {
        findings: findings.collect(),
        fixed,
        entries: scanned.entries,
        skipped: scanned.skipped,
        elapsed: begin.elapsed(),
    })
}

/// One worker's part of the walk.
struct Auditor<'a> {
    trees: &'a Trees,
    found: Vec<Found>,
    /// The lists of installed files that it came across.
    records: Vec<PathBuf>,
}

impl Visitor for Auditor<'_> {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descend {
        let entry = Entry::new(folder, name, kind);
        let before = self.found.len();
        for detector in DETECTORS {
            if detector.wants(&entry) {
                detector.look(&entry, self.trees, &mut self.found);
                if self.found[before..].iter().any(|found| found.takes_away(&entry)) {
                    return Descend::No;
                }
            }
        }
        match kind {
            EntryKind::File if dist_info::is_record(&entry) => self.records.push(entry.path()),
            // A repository's own files name nothing that its worktree runs on. Another worktree has an audit of its own.
            EntryKind::Directory if entry.name() == b".git" || self.trees.is_another(&entry) => return Descend::No,
            _ => {}
        }
        Descend::Yes
    }
}
