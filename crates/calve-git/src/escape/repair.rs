//! Carrying out what was found to be done.

use std::io;

use crate::escape::report::{Action, Finding, Found, Step};
use crate::escape::trees::Trees;
use crate::escape::writing;

/// Carries out a finding's steps. One that fails makes it a report.
pub(super) fn repair(trees: &Trees, mut found: Found) -> Finding {
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
                let why = io::Error::from(errno);
                let hint = format!("`{}` could not be changed: {why}", calve_core::Shown(step.path()));
                found.action = Action::Reported;
                found.hint = format!("{hint}; free what holds it, then run `calve worktree check --fix`");
                break;
            }
        }
    }
    found.finding()
}
