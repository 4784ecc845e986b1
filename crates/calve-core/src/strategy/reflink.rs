//! `reflink`: every file made on its own, its extents shared (FICLONE on btrfs, XFS, bcachefs, overlay).

use super::method::{Failure, Job, Method, Outcome};
use crate::options::internal::InlinedBytes;
use crate::tree::fill::Files;
use crate::tree::fill::contents::ContentsMethod;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Reflink,
    accepts: |facts, _| facts.reflink.clone(),
    meets: &[Requirement::Cow, Requirement::Stable],
    is_used_only_when_named: false,
    makes_each_file: true,
    is_one_call: |_| false,
    run,
};

fn run(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    let strict = job.part.options.requires(Requirement::Cow);
    let tell_inlined = job.facts.may_inline && job.part.options.internal.inlined == InlinedBytes::Counted;
    let contents = ContentsMethod::Reflink { tell_inlined };
    let mut outcome = super::copy::per_file(job, Files::Clone(contents), strict)?;
    if let Some(bytes) = &mut outcome.bytes
        && job.facts.may_inline
        && !tell_inlined
    {
        bytes.inlined = None;
    }
    Ok(outcome)
}
