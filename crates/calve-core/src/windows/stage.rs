//! A tree that is made under a hidden name and then published.

use super::compare::{Comparison, compare};
use super::facts::{Facts, check_room};
use super::fill::{Files, Fill, fill};
use super::location::Location;
use super::source::Source;
use super::staging::Staging;
use crate::choice::{Requirement, Strategy};
use crate::choose::Criteria;
use crate::error::{Error, StatedRequirement};
use crate::options::{CloneOptions, CloneVerification, Durability};
use crate::report::{Bytes, ClonePlan, TrashedTree};
use crate::strategy_run::StrategyRun;
use crate::tree::exclude::Exclusions;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;

/// A tree under a hidden name beside its destination.
pub(crate) struct StagedTree<'p> {
    destination: &'p Location,
    staging: Staging<'p>,
    options: &'p CloneOptions,
    /// The entry of the root that is to be published, when it is not the root.
    inside: Option<std::ffi::OsString>,
}

impl<'p> StagedTree<'p> {
    /// Reserves a tree that will be one clone and nothing else.
    pub(crate) fn for_clone(destination: &'p Location, options: &'p CloneOptions) -> Result<Self, Error> {
        Ok(Self { destination, staging: Staging::make(destination)?, options, inside: None })
    }

    /// Makes the tree a clone of `source`, or puts the entry into it that `source` is.
    pub(crate) fn fill(
        &mut self,
        source: Source,
        exclude: Exclusions,
        notes: &Notes,
        options: &CloneOptions,
    ) -> Result<StrategyRun, Error> {
        if options.keep.plain().is_some() {
            let detail = Some("plain copies are not made on Windows".into());
            return Err(Error::RequirementRefused {
                requirement: StatedRequirement::Strategy(Strategy::Copy),
                refused: Vec::new(),
                detail,
            });
        }
        let mut facts = Facts::between(&source, self.destination)?;
        facts.try_in(&source, &self.staging)?;
        let (strategy, refused) = facts.choose(&Criteria::of(options))?;
        let files = match strategy {
            Strategy::Reflink => Files::Reflink { strict: options.requires(Requirement::Cow) },
            Strategy::Hardlink => {
                notes.not_independent();
                Files::Hardlink
            }
            Strategy::Copy | Strategy::Snapshot | Strategy::Clonefile | Strategy::Overlay | Strategy::Spare => {
                Files::Copy
            }
        };
        if strategy == Strategy::Copy {
            check_room(&source, self.destination, &facts)?;
        }
        let tally = fill(&Fill {
            src: source.directory(),
            dst: self.staging.path(),
            shown_src: source.given(),
            shown_dst: self.destination.given(),
            single: source.single(),
            files,
            sync: options.durability == Durability::Synced,
            exclude: &exclude,
            notes,
            progress: &options.progress,
            cancel: &options.cancel,
            threads: thread_count(options.threads),
        })?;
        if source.single().is_some() && tally.entries.total() == 0 {
            return Err(notes.tell().nothing_made_of(source.given()));
        }
        if options.verify == CloneVerification::Contents {
            let comparison = Comparison {
                src: source.directory(),
                dst: self.staging.path(),
                shown_src: source.given(),
                exclude: &exclude,
                cancel: &options.cancel,
            };
            compare(&comparison, source.single())?;
        }
        self.inside = source.single().map(ToOwned::to_owned);
        let bytes = Bytes { inlined: Some(0), ..tally.bytes };
        Ok(StrategyRun {
            strategy,
            refused,
            entries: Some(tally.entries),
            bytes: Some(bytes),
            spare: None,
            spares_wanted: false,
        })
    }

    /// Gives the tree its name. Nothing goes to the trash here: only files can be replaced.
    pub(crate) fn publish(self, _notes: &Notes) -> Result<Option<TrashedTree>, Error> {
        self.options.still_wanted()?;
        self.staging.publish(self.inside.as_deref(), self.options.existing)?;
        Ok(None)
    }

    /// Tries what cloning `source` would try, and makes nothing that stays.
    pub(crate) fn plan(self, source: &Source) -> Result<ClonePlan, Error> {
        let mut facts = Facts::between(source, self.destination)?;
        facts.try_in(source, &self.staging)?;
        let (strategy, refused) = facts.choose(&Criteria::of(self.options))?;
        Ok(ClonePlan { strategy, refused })
    }
}
