//! A staged tree that was made ahead of time.

use super::StagedTree;
use crate::claim::check::SpareDifferences;
use crate::claim::hand_over::{NoSpare, Spare, claim};
use crate::claim::update::{renew, update};
use crate::clone::finish::check_made;
use crate::error::{Error, IoContext};
use crate::remove::delete::Deletion;
use crate::staging::RootKind;
use crate::strategy::criteria::RefusalReason;
use crate::strategy::facts::Facts;
use crate::strategy::method::{ClonePart, Outcome, StrategyRun};
use crate::tree::fill::Fill;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::{Requirement, Strategy};

impl StagedTree<'_> {
    /// Makes the root a spare of the source, if there is one, and brings it up to date.
    pub(super) fn spare(&mut self, part: &ClonePart<'_>) -> Result<Result<StrategyRun, NoSpare>, Error> {
        if self.root_kind == RootKind::Inheriting || self.staging.root().is_some() {
            return Ok(Err(NoSpare { refused: None, wanted: false }));
        }
        let (spare, wanted) = match claim(part, &mut self.staging)? {
            Ok(spare @ Spare { wanted, .. }) => (spare, wanted),
            Err(without) => return Ok(Err(without)),
        };
        match self.bring_up_to_date(part, spare) {
            Ok(run) => {
                check_made(part, self.root()?, None)?;
                Ok(Ok(run))
            }
            Err(error @ Error::Interrupted) => Err(error),
            // A clone reports all that it meets too.
            Err(error) => {
                self.staging.empty(&Deletion::from_options(part.options))?;
                let reason = RefusalReason::new(format!("bringing it up to date failed: {error}"));
                Ok(Err(NoSpare { refused: Some(reason), wanted }))
            }
        }
    }

    fn bring_up_to_date(&mut self, part: &ClonePart<'_>, spare: Spare) -> Result<StrategyRun, Error> {
        let Spare { report, mut differences, whole, names, wanted } = spare;
        let left = std::mem::take(&mut differences.left);
        // A root that differs gets everything from the source again.
        let whole = (!differences.directories.contains_key(std::path::Path::new(""))).then_some(whole);
        if !differences.directories.is_empty() {
            self.update(part, differences, whole.is_none())?;
        }
        self.names = names;
        left.into_iter().for_each(|(path, reason)| part.notes.skipped(path, reason));
        Ok(StrategyRun {
            strategy: Strategy::Spare,
            refused: Vec::new(),
            spare: Some(report),
            spares_wanted: wanted,
            outcome: Outcome { whole, ..Outcome::default() },
        })
    }

    fn update(
        &mut self,
        part: &ClonePart<'_>,
        differences: SpareDifferences,
        is_root_renewed: bool,
    ) -> Result<(), Error> {
        let mut facts = Facts::between(part.source, self.destination.parent());
        let created = facts.try_in(part.source, &self.staging)?;
        let root = self.root()?;
        if is_root_renewed {
            renew(root, created).io(Operation::SetStagedMode, part.dst)?;
        }
        let ClonePart { source, exclude, dst, notes, options, .. } = *part;
        let (from, to) = ((source.directory(), source.path()), (root, dst));
        let work = Fill {
            strict: options.requires(Requirement::Cow),
            keeps_nocow: facts.may_inline,
            ..Fill::new(from, to, facts.contents(), exclude, created, (notes, options))
        };
        update(&work, differences)
    }
}
