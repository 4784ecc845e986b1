//! `reflink`: every file made on its own, its extents shared (FICLONE on btrfs, XFS, bcachefs, overlay).

use super::{Failure, Job, Method, Outcome, Reason, Wish};
use crate::options::{Requirement, Strategy};
use crate::probe::Facts;
use crate::tree::contents::Contents;
use crate::tree::fill::Files;

pub(super) struct Reflink;

impl Method for Reflink {
    fn strategy(&self) -> Strategy {
        Strategy::Reflink
    }

    fn accepts(&self, facts: &Facts, _: &Wish) -> Result<(), Reason> {
        facts.reflink.clone()
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        // Copying a small file may be cheaper than sharing it, but is not what was asked for then.
        let strict = job.options.requires(Requirement::Cow);
        let copy_up_to_bytes = if strict { 0 } else { job.facts.copy_is_cheaper_up_to_bytes };
        let contents = Contents::Reflink { copy_up_to_bytes, may_inline: job.facts.may_inline };
        super::copy::per_file(job, Files::Clone(contents), strict)
    }
}
