//! `hardlink`: every file is the source's own inode under a second name. **The trees are not independent**: a write in place on
//! either side shows on the other. Only when named.

use super::facts::Facts;
use super::{Criteria, Failure, Job, Method, Outcome, RefusalReason};
use crate::choice::Strategy;
use crate::tree::fill::Files;

pub(super) struct Hardlink;

impl Method for Hardlink {
    fn strategy(&self) -> Strategy {
        Strategy::Hardlink
    }

    fn accepts(&self, facts: &Facts, criteria: &Criteria) -> Result<(), RefusalReason> {
        if criteria.is_frozen {
            return Err(RefusalReason::new("a write to the clone would change the template"));
        }
        facts.hardlink.clone()
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        job.notes.not_independent();
        super::copy::per_file(job, Files::Hardlink, false)
    }
}
