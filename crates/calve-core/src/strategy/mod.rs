//! The ways to clone, in order of preference, and the choice between them.

mod clonefile;
mod copy;
pub(crate) mod facts;
mod hardlink;
mod overlay;
mod reflink;
mod sample;
mod snapshot;

pub(crate) use overlay::State as OverlayState;
pub use overlay::{OverlayMount, OverlayOptions, mount_overlay};
pub use snapshot::make_snapshotable_directory;

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, Stat};

use self::facts::Facts;
use crate::choice::{Refusal, Strategy};
pub(crate) use crate::choose::{Criteria, RefusalReason};
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::{Bytes, Entries};
use crate::staging::Staging;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::tree::stable::Since;

/// One way to clone. ARCHITECTURE.md lists the places that a new one needs.
pub(crate) trait Method: Sync {
    fn strategy(&self) -> Strategy;

    /// Accepts or declines, going by the facts. Pure: no system calls.
    fn accepts(&self, facts: &Facts, criteria: &Criteria) -> Result<(), RefusalReason>;

    /// Makes the clone under the staging name. The metadata of the root is set later, and nobody else can enter until then.
    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure>;
}

/// The table of contents: the fastest first.
pub(crate) const IN_ORDER: [&dyn Method; 6] = [
    &snapshot::Snapshot,
    &clonefile::Clonefile,
    &reflink::Reflink,
    &copy::Copy,
    &hardlink::Hardlink,
    &overlay::Overlay,
];

/// Everything that a strategy works with.
pub(crate) struct Job<'a, 'p> {
    pub(crate) source: &'a Source,
    pub(crate) dst_path: &'a std::path::Path,
    pub(crate) staging: &'a mut Staging<'p>,
    /// The directory in the staged tree that is to be filled, when it is not its root.
    pub(crate) below: Option<BorrowedFd<'a>>,
    pub(crate) options: &'a CloneOptions,
    pub(crate) exclude: &'a Exclusions,
    pub(crate) facts: &'a Facts,
    pub(crate) notes: &'a Notes,
    pub(crate) created: NewFileDefaults,
    pub(crate) threads: usize,
}

pub(crate) struct Outcome {
    pub(crate) entries: Option<Entries>,
    pub(crate) bytes: Option<Bytes>,
    /// The root as one call made it, with all of its metadata, before it was closed to others by [`close_to_others`].
    pub(crate) whole: Option<WholeRoot>,
    /// For `stable`: the moment before anything was read.
    pub(crate) started: Option<Since>,
}

/// The root of a tree before it was closed to others.
#[derive(Debug, Clone)]
pub(crate) struct WholeRoot {
    pub(crate) stat: Stat,
    /// The flags that forbid changes ([`crate::sys::unlock`]).
    pub(crate) locks: u32,
}

/// Closes a tree to other users until it is published. Returns the root's attributes from before. Only the mode changes, and with it an
/// access control list's mask: setting the mode again brings both back.
pub(crate) fn close_to_others(root: BorrowedFd<'_>) -> crate::sys::Result<WholeRoot> {
    let stat = rustix::fs::fstat(root)?;
    let locks = crate::sys::unlock(root)?;
    rustix::fs::fchmod(root, Mode::RWXU)?;
    Ok(WholeRoot { stat, locks })
}

/// Why nothing was made.
pub(crate) enum Failure {
    /// It declines after all; the next one may be tried. Nothing of it is left.
    Refused(RefusalReason),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Returns the fastest method that accepts, and the refusals of those before it. `refused_already` are the refusals of methods that were
/// tried.
pub(crate) fn choose(
    facts: &Facts,
    criteria: &Criteria,
    refused_already: &[Refusal],
) -> Result<(&'static dyn Method, Vec<Refusal>), Error> {
    crate::choose::choose(
        IN_ORDER,
        |method| method.strategy(),
        |method| method.accepts(facts, criteria),
        criteria,
        refused_already,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Requirement};
    use crate::options::Mounts;

    fn criteria(choice: Choice, require: &[Requirement]) -> Criteria {
        Criteria {
            choice,
            require: require.to_vec(),
            excludes: false,
            mounts: Mounts::Cross,
            is_plain: false,
            is_frozen: false,
        }
    }

    fn no() -> Result<(), RefusalReason> {
        Err(RefusalReason::new("no"))
    }

    fn facts(snapshot: bool, reflink: bool) -> Facts {
        let offer = |works: bool| if works { Ok(()) } else { no() };
        Facts { snapshot: offer(snapshot), reflink: offer(reflink), ..Facts::nothing() }
    }

    fn chosen(facts: &Facts, criteria: &Criteria) -> Result<Strategy, Vec<Strategy>> {
        match choose(facts, criteria, &[]) {
            Ok((method, _)) => Ok(method.strategy()),
            Err(Error::RequirementRefused { refused, .. }) => {
                Err(refused.into_iter().map(|refusal| refusal.strategy).collect())
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_first_that_works_is_taken_and_those_before_it_say_why_not() {
        let any = criteria(Choice::Fastest, &[]);
        assert_eq!(chosen(&facts(true, true), &any), Ok(Strategy::Snapshot));
        assert_eq!(chosen(&facts(false, true), &any), Ok(Strategy::Reflink));
        let (method, refused) = choose(&facts(false, false), &any, &[]).unwrap();
        assert_eq!(method.strategy(), Strategy::Copy);
        let names: Vec<_> = refused.iter().map(|refusal| refusal.strategy).collect();
        assert_eq!(names, [Strategy::Snapshot, Strategy::Clonefile, Strategy::Reflink]);
        assert!(refused.iter().all(|refusal| !refusal.reason.is_empty()));
    }

    #[test]
    fn requirements_are_never_traded_for_something_that_works() {
        let cow = criteria(Choice::Fastest, &[Requirement::Cow]);
        assert!(chosen(&facts(false, false), &cow).is_err());
        let instant = criteria(Choice::Fastest, &[Requirement::Instant]);
        assert!(chosen(&facts(false, true), &instant).is_err());
        assert_eq!(chosen(&facts(true, true), &instant), Ok(Strategy::Snapshot));
    }

    #[test]
    fn hardlink_and_overlay_are_taken_only_when_named() {
        let everything = Facts { hardlink: Ok(()), ..facts(false, false) };
        assert_eq!(chosen(&everything, &criteria(Choice::Fastest, &[])), Ok(Strategy::Copy));
        let named = criteria(Choice::Only(Strategy::Hardlink), &[]);
        assert_eq!(chosen(&everything, &named), Ok(Strategy::Hardlink));
        let overlay = criteria(Choice::Only(Strategy::Overlay), &[]);
        assert_eq!(chosen(&everything, &overlay), Err(vec![Strategy::Overlay]));
    }

    #[test]
    fn a_named_strategy_that_refuses_is_not_replaced() {
        let named = criteria(Choice::Only(Strategy::Reflink), &[]);
        assert_eq!(chosen(&facts(true, false), &named), Err(vec![Strategy::Reflink]));
    }
}
