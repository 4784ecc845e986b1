//! Why servers end.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::sys::ProcessEnd;

/// Why a server ended without being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EndReason {
    /// Its first process ended.
    #[error("ended by itself ({0})")]
    EndedByItself(ProcessEnd),
    /// The process or the command that owned it ended.
    #[error("ended with its owner")]
    OwnerEnded,
    /// It was as old as it may become.
    #[error("ended when its time was over")]
    TimeOver,
    /// The process that looks after it was asked to end.
    #[error("ended because its supervisor was told to end")]
    SupervisorStopped,
    /// The process that looks after it was killed.
    #[error("ended because its supervisor was killed")]
    SupervisorKilled,
    /// Its files were moved, and its supervisor has ended since.
    #[error("ended after CALVE_HOME was moved")]
    HomeMoved,
}

impl EndReason {
    /// Returns the stable name, for programs.
    pub fn code(self) -> &'static str {
        self.into()
    }
}
