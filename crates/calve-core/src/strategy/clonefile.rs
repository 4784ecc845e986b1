//! `clonefile`: macOS, one call for the whole tree; with excluded entries the largest subtrees without any.

use super::{Failure, Job, Method, Outcome, Reason, Wish};
use crate::options::Strategy;
use crate::probe::Facts;
use crate::sys;

pub(super) struct Clonefile;

impl Method for Clonefile {
    fn strategy(&self) -> Strategy {
        Strategy::Clonefile
    }

    fn accepts(&self, facts: &Facts, wish: &Wish) -> Result<(), Reason> {
        facts.clonefile.clone()?;
        if wish.excludes {
            return Err(Reason::new("entries are excluded, so the tree cannot be cloned in one call"));
        }
        Ok(())
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        let cloned = sys::clone_directory(job.source.directory(), job.staging.parent(), job.staging.name());
        cloned.map_err(|errno| Failure::Refused(Reason::new(std::io::Error::from(errno).to_string())))?;
        job.staging.adopt_directory()?;
        Ok(Outcome { entries: None, bytes: None, sealed: true })
    }
}
