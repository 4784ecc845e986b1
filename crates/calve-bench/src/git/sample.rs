//! The measurement of one operation of one client.

use super::host::ledger::Charge;
use crate::report::Usage;

/// The operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Clone,
    Fetch,
    Reset,
    Checkout,
    Blame,
}

impl Step {
    /// In the order of a report.
    pub(crate) const ALL: [Self; 5] = [Self::Clone, Self::Checkout, Self::Blame, Self::Fetch, Self::Reset];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Fetch => "fetch",
            Self::Reset => "reset",
            Self::Checkout => "checkout",
            Self::Blame => "blame",
        }
    }
}

/// One run of a step.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) step: Step,
    /// From 1.
    pub(crate) round: u32,
    /// Which fetch after its clone it belongs to, from 1.
    pub(crate) ordinal: u32,
    pub(crate) usage: Usage,
    /// `None`: only the client's side is known.
    pub(crate) charge: Option<Charge>,
    /// The known facts of a server of others.
    pub(crate) seen: Option<ClientView>,
    /// git's words, but for progress.
    pub(crate) said: String,
}

/// The client's own knowledge of its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientView {
    pub(crate) requests: Option<u64>,
    pub(crate) pack_bytes: u64,
}
