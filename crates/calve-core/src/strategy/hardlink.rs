//! `hardlink`: every file is the source's own inode under a second name. **The trees are not independent**: a write in place on
//! either side shows on the other. Only when named.

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome};
use crate::tree::fill::Files;
use crate::vocabulary::strategy::{Requirement, Strategy};

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

    fn meets(&self) -> &'static [Requirement] {
        &[]
    }

    fn is_used_only_when_named(&self) -> bool {
        true
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        job.notes.not_independent();
        super::copy::per_file(job, Files::Hardlink, false)
    }
}
