//! Why servers end.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::sys::ProcessEnd;

/// Why a server ended without being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EndReason {
    #[error("ended by itself ({0})")]
    EndedByItself(ProcessEnd),
    #[error("ended with its owner")]
    OwnerEnded,
    #[error("ended when its time was over")]
    TimeOver,
    #[error("ended because its supervisor was told to end")]
    SupervisorStopped,
    #[error("ended because its supervisor was killed")]
    SupervisorKilled,
    /// Its files were moved, and its supervisor has ended since.
    #[error("ended after CALVE_HOME was moved")]
    HomeMoved,
}
