//! Strategies, requirements and refusals.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::vocabulary::remedy::Remedy;

/// Calls a macro with the table of contents: all strategies with a file of their own in `strategy/`, the fastest first.
macro_rules! strategies {
    ($with:ident) => {
        $with! {
            /// The file system's own snapshot (btrfs): one call, whatever the size.
            Snapshot snapshot
            /// One `clonefile` call for the tree (APFS).
            Clonefile clonefile
            /// Per file, extents shared (`FICLONE`).
            Reflink reflink
            /// Per file, bytes read and written. Always works.
            Copy copy
            /// Per file, the same inode under a second name: **the trees are not independent**. Only when named.
            Hardlink hardlink
            /// An OverlayFS mount. Only for callers that own the lifetime of the mount: see [`crate::internal::mount_overlay`].
            Overlay overlay
        }
    };
}
pub(crate) use strategies;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident $file:ident)*) => {
        /// One way to clone. In order of preference.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantNames, Serialize, Deserialize)]
        #[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = no_strategy)]
        #[serde(rename = "StrategyName", rename_all = "snake_case", into = "&'static str")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(description = "The name of a strategy.", extend("enum" = Self::ALL)))]
        pub enum Strategy {
            /// A clone that was made ahead of time, checked and renamed: see [`CloneOptions::spares`].
            Spare,
            $($(#[$doc])* $name),*
        }

        impl Strategy {
            /// All of them, in order of preference.
            pub const ALL: &[Self] = &[Self::Spare, $(Self::$name),*];

            /// Their names, in the same order.
            pub const NAMES: &[&str] = Self::VARIANTS;
        }
    };
}
strategies!(names);

impl Strategy {
    /// Returns the name that receipts and the command line use.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn no_strategy(name: &str) -> String {
    format!("there is no strategy `{name}`")
}

/// Which strategies may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The fastest one that this source and destination really offer.
    #[default]
    Fastest,
    /// This one or none.
    Only(Strategy),
}

/// A property that the clone must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = no_requirement)]
pub enum Requirement {
    /// The cost does not grow with the tree.
    Instant,
    /// Calve itself writes no file data.
    Cow,
    /// The clone equals the source at one moment: no entry changed while it was made. A snapshot is stable; the
    /// per-file strategies check every change time (ctime) again before the clone gets its name. Where
    /// times are whole seconds (ext3), they wait for the next one first. On Linux the source must be on ext4, XFS or
    /// btrfs: elsewhere a store through a shared mapping may leave no trace.
    Stable,
}

fn no_requirement(_name: &str) -> String {
    "the properties are instant, cow and stable".into()
}

/// A strategy that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The strategy.
    pub strategy: Strategy,
    /// The reason in a few words.
    pub reason: String,
    /// The condition that would make it available, where there is one.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
}
