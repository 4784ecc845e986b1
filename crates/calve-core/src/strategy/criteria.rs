//! The part of a request that decides between strategies, and why one declines.

use crate::options::{CloneOptions, Mounts};
use crate::vocabulary::remedy::Remedy;
use crate::vocabulary::strategy::{Choice, Refusal, Requirement, Strategy};

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
    pub(crate) fn new(options: &CloneOptions) -> Self {
        Self {
            choice: options.strategy,
            require: options.require.clone(),
            excludes: !options.exclude.is_empty() || options.select.is_some(),
            mounts: options.mounts,
            is_plain: options.internal.plain.is_some(),
            is_frozen: options.internal.frozen.is_some(),
        }
    }

    pub(crate) fn requires(&self, requirement: Requirement) -> bool {
        self.require.contains(&requirement)
    }

    pub(super) fn names(&self, strategy: Strategy) -> bool {
        self.choice == Choice::Only(strategy)
    }
}
