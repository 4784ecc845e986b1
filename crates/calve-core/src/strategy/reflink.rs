//! `reflink`: every file made on its own, its extents shared (FICLONE on btrfs, XFS, bcachefs, overlay).

use super::{Failure, Job, Method, Outcome, Reason, Wish};
use crate::options::{Inlined, Requirement, Strategy};
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
        let cheaper = job.options.copy_up_to_bytes.unwrap_or(job.facts.copy_is_cheaper_up_to_bytes);
        let copy_up_to_bytes = if strict { 0 } else { cheaper };
        let tell_inlined = job.facts.may_inline && job.options.inlined == Inlined::Counted;
        let contents = Contents::Reflink { copy_up_to_bytes, tell_inlined };
        let mut outcome = super::copy::per_file(job, Files::Clone(contents), strict)?;
        if let Some(bytes) = &mut outcome.bytes
            && job.facts.may_inline
            && !tell_inlined
        {
            bytes.inlined = None;
        }
        Ok(outcome)
    }
}
