use std::io;

use crate::escape::report::{Explanation, Finding, PendingFinding, Step};
use crate::escape::trees::Trees;
use crate::escape::writing;

/// Carries out a finding's steps. One that fails makes it a report.
pub(super) fn repair(trees: &Trees, mut found: PendingFinding) -> Finding {
    for step in std::mem::take(&mut found.steps) {
        let done = match &step {
            Step::Relink { path, target } => writing::relink(trees.root(), path, target),
            Step::Write { path, bytes, time } => writing::write(trees.root(), path, bytes, *time),
            Step::Remove { path } => writing::remove(trees.root(), path),
        };
        match done {
            Ok(()) => {}
            // Something else has removed it meanwhile, be it another finding's repair.
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => {
                let (path, reason) = (step.path().clone(), io::Error::from(errno).to_string());
                found.only_reported(Explanation::Unchangeable { path, reason });
                break;
            }
        }
    }
    found.finding()
}
