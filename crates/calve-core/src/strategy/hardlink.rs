//! `hardlink`: every file is the source's own inode under a second name. **The trees are not independent**: a write in
//! place on either side shows on the other. Only when named.

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome};
use crate::tree::fill::Files;
use crate::vocabulary::reason::WarningCode;
use crate::vocabulary::strategy::Strategy;

pub const NOT_INDEPENDENT: &str =
    "hard links: source and clone are the same files, so a write in place on either side changes both";

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Hardlink,
    accepts,
    meets: &[],
    is_used_only_when_named: true,
    makes_each_file: false,
    is_one_call: |_| false,
    run,
};

fn accepts(facts: &Facts, criteria: &Criteria<'_>) -> Result<(), RefusalReason> {
    if criteria.options.internal.frozen.is_some() {
        return Err(RefusalReason::new("a write to the clone would change the template"));
    }
    facts.hardlink.clone()
}

fn run(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    job.part.notes.warn(WarningCode::NotIndependent, None, NOT_INDEPENDENT.into());
    super::copy::per_file(job, Files::Hardlink, false)
}
