//! The choice between the ways to clone: pure, and the same on every system.

use crate::choice::{Choice, Refusal, Requirement, Strategy};
use crate::error::{Error, StatedRequirement};
use crate::options::{CloneOptions, Mounts};
use crate::remedy::Remedy;

/// Why a strategy declines, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusalReason {
    pub(crate) why: String,
    pub(crate) remedy: Option<Remedy>,
}

impl RefusalReason {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: None }
    }

    pub(crate) fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self
    }

    pub(crate) fn by(self, strategy: Strategy) -> Refusal {
        Refusal { strategy, reason: self.why, remedy: self.remedy }
    }
}

/// The part of the options that decides about strategies.
#[derive(Debug, Clone)]
pub(crate) struct Criteria {
    pub(crate) choice: Choice,
    pub(crate) require: Vec<Requirement>,
    pub(crate) excludes: bool,
    pub(crate) mounts: Mounts,
    /// The contents of the source are not simply those of the clone.
    pub(crate) is_plain: bool,
    /// The source is a template, which a clone may not be able to write to.
    pub(crate) is_frozen: bool,
}

impl Criteria {
    pub(crate) fn of(options: &CloneOptions) -> Self {
        Self {
            choice: options.strategy,
            require: options.require.clone(),
            excludes: !options.exclude.is_empty() || options.select.is_some(),
            mounts: options.mounts,
            is_plain: options.plain.is_some(),
            is_frozen: options.frozen.is_some(),
        }
    }

    pub(crate) fn requires(&self, requirement: Requirement) -> bool {
        self.require.contains(&requirement)
    }

    fn names(&self, strategy: Strategy) -> bool {
        self.choice == Choice::Only(strategy)
    }
}

/// Returns the first method that accepts, and the refusals of those before it. `methods` are in order of preference; `refused_already` are
/// the refusals of methods that were tried.
pub(crate) fn choose<M>(
    methods: impl IntoIterator<Item = M>,
    strategy_of: impl Fn(&M) -> Strategy,
    accepts: impl Fn(&M) -> Result<(), RefusalReason>,
    criteria: &Criteria,
    refused_already: &[Refusal],
) -> Result<(M, Vec<Refusal>), Error> {
    let mut refused = Vec::new();
    for method in methods {
        let strategy = strategy_of(&method);
        if let Some(known) = refused_already.iter().find(|refusal| refusal.strategy == strategy) {
            refused.push(known.clone());
            continue;
        }
        match consider(strategy, criteria, || accepts(&method)) {
            Ok(()) => return Ok((method, refused)),
            Err(None) => {}
            Err(Some(reason)) => refused.push(reason.by(strategy)),
        }
    }
    let requirement = match (criteria.choice, criteria.require.first()) {
        (Choice::Only(strategy), _) => StatedRequirement::Strategy(strategy),
        (Choice::Fastest, Some(requirement)) => StatedRequirement::Property(*requirement),
        // `copy` accepts everything, unless it is kept out by a requirement.
        (Choice::Fastest, None) => StatedRequirement::Strategy(Strategy::Copy),
    };
    Err(Error::RequirementRefused { requirement, refused, detail: None })
}

/// Asks one strategy. Fails with `None` if it is out of the question.
fn consider(
    strategy: Strategy,
    criteria: &Criteria,
    accepts: impl FnOnce() -> Result<(), RefusalReason>,
) -> Result<(), Option<RefusalReason>> {
    if matches!(criteria.choice, Choice::Only(named) if named != strategy) {
        return Err(None);
    }
    let only_when_named = matches!(strategy, Strategy::Hardlink | Strategy::Overlay | Strategy::Spare);
    if only_when_named && !criteria.names(strategy) {
        return Err(None);
    }
    for requirement in &criteria.require {
        if !satisfies(strategy, *requirement) {
            return Err(Some(RefusalReason::new(match requirement {
                Requirement::Instant => "its cost grows with the tree",
                Requirement::Cow => "it does not share file data copy-on-write",
                Requirement::Stable => "it cannot tell whether the source changes",
            })));
        }
    }
    if criteria.is_plain && !matches!(strategy, Strategy::Reflink | Strategy::Copy) {
        return Err(Some(RefusalReason::new("it takes over more than was asked for")));
    }
    accepts().map_err(Some)
}

/// Returns whether a strategy meets a requirement. `stable` is checked for the per-file strategies while they work, and once more before publishing.
fn satisfies(strategy: Strategy, requirement: Requirement) -> bool {
    use Requirement::{Cow, Instant, Stable};
    let met: &[Requirement] = match strategy {
        Strategy::Snapshot => &[Instant, Cow, Stable],
        Strategy::Clonefile => &[Cow],
        Strategy::Reflink => &[Cow, Stable],
        Strategy::Copy => &[Stable],
        Strategy::Overlay => &[Instant],
        Strategy::Hardlink | Strategy::Spare => &[],
    };
    met.contains(&requirement)
}
