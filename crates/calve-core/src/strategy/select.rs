use super::IN_ORDER;
use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::Method;
use crate::error::{Error, StatedRequirement};
use crate::vocabulary::strategy::{Choice, Refusal, Requirement, Strategy};

/// Returns the fastest method that accepts, and the refusals before it, with `refused_already`. Touches no disk.
pub(crate) fn choose(
    facts: &Facts,
    criteria: &Criteria<'_>,
    refused_already: &[Refusal],
) -> Result<(&'static Method, Vec<Refusal>), Error> {
    let mut refused = Vec::new();
    for &method in IN_ORDER {
        if let Some(known) = refused_already.iter().find(|refusal| refusal.strategy == method.strategy) {
            refused.push(known.clone());
            continue;
        }
        match consider(method, facts, criteria) {
            Ok(()) => return Ok((method, refused)),
            Err(None) => {}
            Err(Some(reason)) => refused.push(reason.by(method.strategy)),
        }
    }
    let requirement = match (criteria.options.strategy, criteria.options.require.first()) {
        (Choice::Only(strategy), _) => StatedRequirement::Strategy(strategy),
        (Choice::Fastest, Some(requirement)) => StatedRequirement::Property(*requirement),
        // `copy` accepts everything, unless a requirement excludes it.
        (Choice::Fastest, None) => StatedRequirement::Strategy(Strategy::Copy),
    };
    Err(Error::RequirementRefused { requirement, refused, detail: None })
}

/// Asks one strategy. Fails with `None` if it is not eligible.
fn consider(method: &Method, facts: &Facts, criteria: &Criteria<'_>) -> Result<(), Option<RefusalReason>> {
    match criteria.options.strategy {
        Choice::Only(named) if named != method.strategy => return Err(None),
        Choice::Fastest if method.is_used_only_when_named => return Err(None),
        _ => {}
    }
    for requirement in &criteria.options.require {
        if !method.meets.contains(requirement) {
            return Err(Some(RefusalReason::new(match requirement {
                Requirement::Instant => "its cost grows with the tree",
                Requirement::Cow => "it does not share file data copy-on-write",
                Requirement::Stable => "it cannot tell whether the source changes",
            })));
        }
    }
    if criteria.options.internal.plain.is_some() && !method.makes_each_file {
        return Err(Some(RefusalReason::new("it takes over more than was asked for")));
    }
    (method.accepts)(facts, criteria).map_err(Some)
}

impl Strategy {
    /// Returns whether all of its clones have the property. A spare has those of the strategy that built it.
    pub fn meets(self, requirement: Requirement) -> bool {
        IN_ORDER.iter().any(|method| method.strategy == self && method.meets.contains(&requirement))
    }

    /// Returns whether it writes the data of every file.
    pub fn needs_room(self) -> bool {
        !self.meets(Requirement::Cow) && IN_ORDER.iter().any(|method| method.strategy == self && method.makes_each_file)
    }

    /// Returns whether it takes the whole tree at one moment. It includes excluded entries, and cannot fill an existing tree.
    pub(crate) fn is_at_once(self) -> bool {
        self.meets(Requirement::Instant) && self.meets(Requirement::Stable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CloneOptions;
    use crate::vocabulary::strategy::{Choice, Requirement, Strategy};

    fn asked(strategy: Choice, require: &[Requirement]) -> CloneOptions {
        CloneOptions { strategy, require: require.to_vec(), ..CloneOptions::default() }
    }

    fn no() -> Result<(), RefusalReason> {
        Err(RefusalReason::new("no"))
    }

    fn facts(snapshot: bool, reflink: bool) -> Facts {
        let offer = |works: bool| if works { Ok(()) } else { no() };
        Facts {
            snapshot: offer(snapshot).map(|()| 0),
            clonefile: no(),
            reflink: offer(reflink),
            hardlink: no(),
            may_inline: false,
            copies_on_server: false,
        }
    }

    fn chosen(facts: &Facts, options: &CloneOptions) -> Result<Strategy, Vec<Strategy>> {
        match choose(facts, &Criteria::new(options), &[]) {
            Ok((method, _)) => Ok(method.strategy),
            Err(Error::RequirementRefused { refused, .. }) => {
                Err(refused.into_iter().map(|refusal| refusal.strategy).collect())
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_first_that_works_is_taken_and_those_before_it_say_why_not() {
        let any = asked(Choice::Fastest, &[]);
        assert_eq!(chosen(&facts(true, true), &any), Ok(Strategy::Snapshot));
        assert_eq!(chosen(&facts(false, true), &any), Ok(Strategy::Reflink));
        let (method, refused) = choose(&facts(false, false), &Criteria::new(&any), &[]).unwrap();
        assert_eq!(method.strategy, Strategy::Copy);
        let names: Vec<_> = refused.iter().map(|refusal| refusal.strategy).collect();
        assert_eq!(names, [Strategy::Snapshot, Strategy::Clonefile, Strategy::Reflink]);
        assert!(refused.iter().all(|refusal| !refusal.reason.is_empty()));
    }

    #[test]
    fn requirements_are_never_traded_for_something_that_works() {
        let cow = asked(Choice::Fastest, &[Requirement::Cow]);
        assert!(chosen(&facts(false, false), &cow).is_err());
        let instant = asked(Choice::Fastest, &[Requirement::Instant]);
        assert!(chosen(&facts(false, true), &instant).is_err());
        assert_eq!(chosen(&facts(true, true), &instant), Ok(Strategy::Snapshot));
    }

    #[test]
    fn hardlink_and_overlay_are_taken_only_when_named() {
        let everything = Facts { hardlink: Ok(()), ..facts(false, false) };
        assert_eq!(chosen(&everything, &asked(Choice::Fastest, &[])), Ok(Strategy::Copy));
        let named = asked(Choice::Only(Strategy::Hardlink), &[]);
        assert_eq!(chosen(&everything, &named), Ok(Strategy::Hardlink));
        let overlay = asked(Choice::Only(Strategy::Overlay), &[]);
        assert_eq!(chosen(&everything, &overlay), Err(vec![Strategy::Overlay]));
    }

    #[test]
    fn a_named_strategy_that_refuses_is_not_replaced() {
        let named = asked(Choice::Only(Strategy::Reflink), &[]);
        assert_eq!(chosen(&facts(true, false), &named), Err(vec![Strategy::Reflink]));
    }
}
