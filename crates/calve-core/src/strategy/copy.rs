//! `copy`: every file made on its own, its bytes read and written. Always works; what the others are checked against.

use super::facts::Facts;
use super::{Criteria, Failure, Job, Method, Outcome, RefusalReason};
use crate::choice::{Requirement, Strategy};
use crate::error::Error;
use crate::report::Bytes;
use crate::tree::fill::contents::Contents;
use crate::tree::fill::contents::size;
use crate::tree::fill::room;
use crate::tree::fill::{Files, Fill, Paths, Scope, fill};
use crate::tree::stable;

pub(super) struct Copy;

impl Method for Copy {
    fn strategy(&self) -> Strategy {
        Strategy::Copy
    }

    fn accepts(&self, _: &Facts, _: &Criteria) -> Result<(), RefusalReason> {
        Ok(())
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        check_room(job)?;
        // Elsewhere the call shares extents where it can, which would not be what this strategy says of itself.
        let contents = if job.facts.copies_on_server { Contents::CopyOnServer } else { Contents::Copy };
        per_file(job, Files::Clone(contents), false)
    }
}

fn check_room(job: &Job<'_, '_>) -> Result<(), Error> {
    let (source, parent) = (job.source, job.staging.parent());
    if source.single().is_some() {
        let stat = source.stat();
        let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        return room::check_bytes(size(stat).min(allocated), parent, job.dst_path);
    }
    room::check(source.directory(), parent, source.path(), job.dst_path, job.exclude, &job.options.cancel)
}

/// Runs a per-file strategy. Such strategies differ only in how they make contents.
pub(super) fn per_file(job: &mut Job<'_, '_>, files: Files<'_>, strict: bool) -> Result<Outcome, Failure> {
    let Some(dst_root) = job.below.or(job.staging.root()) else {
        return Err(Failure::Refused(RefusalReason::new("no staged directory")));
    };
    let started = match job.options.requires(Requirement::Stable) {
        true => Some(stable::begin(job.source, dst_root, job.options.mounts)?),
        false => None,
    };
    let scope = match job.source.single() {
        Some((name, kind)) => Scope::Single(name.to_owned(), kind),
        None => Scope::Tree,
    };
    let tally = fill(
        &Fill {
            src_root: job.source.directory(),
            dst_root,
            src_path: job.source.path(),
            paths: match scope {
                Scope::Tree | Scope::Parts(_) => Paths::Below,
                Scope::Single(..) => Paths::Same,
            },
            dst_path: job.dst_path,
            files,
            strict,
            exclude: job.exclude,
            is_upper: false,
            created: job.created,
            keeps_nocow: job.facts.may_inline,
            threads: job.threads,
            notes: job.notes,
            options: job.options,
        },
        scope,
    )?;
    let bytes = Bytes { inlined: Some(tally.inlined_bytes), ..tally.bytes };
    Ok(Outcome { entries: Some(tally.entries), bytes: Some(bytes), whole: None, started })
}
