//! The part of a request that decides between strategies, and why one declines.

use crate::options::CloneOptions;
use crate::vocabulary::remedy::Remedy;
use crate::vocabulary::strategy::{Refusal, Strategy};

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

pub(crate) struct Criteria<'a> {
    pub(crate) options: &'a CloneOptions,
    /// The clone lacks entries of the source.
    pub(crate) excludes: bool,
}

impl<'a> Criteria<'a> {
    pub(crate) fn new(options: &'a CloneOptions) -> Self {
        Self { options, excludes: !options.exclude.is_empty() || options.select.is_some() }
    }
}
