//! `reflink`: every file made on its own, its extents shared (FICLONE on btrfs, XFS, bcachefs, overlay).

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome};
use crate::options::internal::InlinedBytes;
use crate::tree::fill::Files;
use crate::tree::fill::contents::Contents;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) struct Reflink;

impl Method for Reflink {
    fn strategy(&self) -> Strategy {
        Strategy::Reflink
    }

    fn accepts(&self, facts: &Facts, _: &Criteria) -> Result<(), RefusalReason> {
        facts.reflink.clone()
    }

    fn meets(&self) -> &'static [Requirement] {
        &[Requirement::Cow, Requirement::Stable]
    }

    fn can_be_plain(&self) -> bool {
        true
    }

    fn looks_at_entries(&self) -> bool {
        true
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        let strict = job.options.requires(Requirement::Cow);
        let tell_inlined = job.facts.may_inline && job.options.internal.inlined == InlinedBytes::Counted;
        let contents = Contents::Reflink { tell_inlined };
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
