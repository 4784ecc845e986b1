//! `copy`: every file made on its own, its bytes read and written. Always works; what the others are checked against.

use std::os::fd::BorrowedFd;
use std::path::Path;

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome};
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::Bytes;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::contents::{Contents, size};
use crate::tree::fill::{Files, Fill, Paths, Scope, fill, room};
use crate::tree::source::Source;
use crate::tree::stable;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) struct Copy;

impl Method for Copy {
    fn strategy(&self) -> Strategy {
        Strategy::Copy
    }

    fn accepts(&self, _: &Facts, _: &Criteria) -> Result<(), RefusalReason> {
        Ok(())
    }

    fn meets(&self) -> &'static [Requirement] {
        &[Requirement::Stable]
    }

    fn can_be_plain(&self) -> bool {
        true
    }

    fn looks_at_entries(&self) -> bool {
        true
    }

    fn check_room(
        &self,
        source: &Source,
        parent: BorrowedFd<'_>,
        dst: &Path,
        exclude: &Exclusions,
        options: &CloneOptions,
    ) -> Result<(), Error> {
        if source.single().is_some() {
            let stat = source.stat();
            let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            return room::check_bytes(size(stat).min(allocated), parent, dst);
        }
        room::check(source.directory(), parent, source.path(), dst, exclude, &options.cancel)
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        self.check_room(job.source, job.staging.parent(), job.dst_path, job.exclude, job.options)?;
        // Elsewhere the call shares extents where it can, which would not be what this strategy says of itself.
        let contents = if job.facts.copies_on_server { Contents::CopyOnServer } else { Contents::Copy };
        per_file(job, Files::Clone(contents), false)
    }
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
    let (scope, paths) = match job.source.single() {
        Some((name, kind)) => (Scope::Single(name.to_owned(), kind), Paths::Same),
        None => (Scope::Tree, Paths::Below),
    };
    let tally = fill(
        &Fill {
            src_root: job.source.directory(),
            dst_root,
            src_path: job.source.path(),
            paths,
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
