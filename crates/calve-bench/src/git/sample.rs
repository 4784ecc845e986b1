//! What was measured: one operation of one client.

use super::host::ledger::Charge;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Clone,
    Fetch,
    Reset,
    Checkout,
    Blame,
}

impl Step {
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
    pub(crate) seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    pub(crate) peak_memory_bytes: u64,
    /// `None`: only the client's side is known.
    pub(crate) charge: Option<Charge>,
    /// What is known of a server of others.
    pub(crate) seen: Option<Seen>,
    /// What git had to say, but for progress.
    pub(crate) said: String,
}

/// What the client itself knows of its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Option<u64>,
    pub(crate) pack_bytes: u64,
}

/// How a step went wrong, after which its test is not run again.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub(crate) step: Step,
    pub(crate) command: String,
    pub(crate) round: u32,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: String,
}
