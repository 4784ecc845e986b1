//! `copy`: every file is made on its own, its bytes read and written. Always works; the others are checked against it.

use super::criteria::RefusalReason;
use super::method::{Failure, Job, Method, Outcome};
use crate::report::Bytes;
use crate::tree::fill::contents::ContentsMethod;
use crate::tree::fill::{Files, Fill, fill, room};
use crate::tree::stable;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Copy,
    accepts: |_, _| Ok(()),
    meets: &[Requirement::Stable],
    is_used_only_when_named: false,
    makes_each_file: true,
    is_one_call: |_| false,
    run,
};

fn run(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    room::check(job.part.source, job.staging.parent(), job.part.dst, job.part.exclude, &job.part.options.cancel)?;
    // Elsewhere the call shares extents where it can, against this strategy's name.
    let contents = if job.facts.copies_on_server { ContentsMethod::CopyOnServer } else { ContentsMethod::Copy };
    per_file(job, Files::Clone(contents), false)
}

/// Runs a per-file strategy. Such strategies differ only in how they make contents.
pub(super) fn per_file(job: &mut Job<'_, '_>, files: Files<'_>, strict: bool) -> Result<Outcome, Failure> {
    let Some(dst_root) = job.part.below.or(job.staging.root()) else {
        return Err(Failure::Refused(RefusalReason::new("no staged directory")));
    };
    let started = match job.part.options.requires(Requirement::Stable) {
        true => Some(stable::begin(job.part.source, job.part.options.mounts)?),
        false => None,
    };
    let (from, to) = ((job.part.source.directory(), job.part.source.path()), (dst_root, job.part.dst));
    let work = Fill {
        single: job.part.source.single(),
        files,
        strict,
        keeps_nocow: job.facts.may_inline,
        threads: job.threads,
        ..Fill::new(from, to, ContentsMethod::Copy, job.part.exclude, job.created, (job.part.notes, job.part.options))
    };
    let tally = fill(&work, None)?;
    let bytes = Bytes { inlined: Some(tally.inlined_bytes), ..tally.bytes };
    Ok(Outcome { entries: Some(tally.entries), bytes: Some(bytes), whole: None, started })
}
