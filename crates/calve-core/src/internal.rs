//! Names for the other crates of this workspace. They may change in any version.

pub use crate::background::{lower_priority, start_background, start_reaper};
pub use crate::claim::names::RecordedTree;
pub use crate::claim::record::RecordedState;
pub use crate::clone::build::{BuildPaths, build_tree, check_buildable};
pub use crate::clone::follow::FollowedSource;
pub use crate::clone::merge::{OverwriteRule, merge_tree};
pub use crate::clone::revert::{CloneState, RevertReport, revert};
pub use crate::clone::stage::supersede::supersede;
pub use crate::clone::stage::{StageReport, StagedTree, is_subvolume, stage_in};
pub use crate::error::{ShownPath, if_there, without_path};
pub use crate::home::home_directory;
pub use crate::options::internal::{
    BeforePublish, FrozenSince, InlinedBytes, InternalOptions, KeptLinks, KeptTimes, KeptXattrs, Latency, LeftLinks,
    PlainCopy,
};
pub use crate::remove::{
    PendingTrash, check_removable, check_renamable, delete_in_place, move_to_trash, pending_trash, remove_opened, sweep,
};
pub use crate::scan::{ScanOptions, scan_tree};
pub use crate::spares::watched_listing::ListedEntry;
pub use crate::strategy::hardlink::NOT_INDEPENDENT;
pub use crate::strategy::{OverlayMount, make_snapshotable_directory, mount_overlay};
pub use crate::sys::{times, unescape};
pub use crate::template::delta::PortableDelta;
pub use crate::template::name::is_record_name;
pub use crate::template::portable::{PortabilityObstacle, PortableEntry, PortableKind, PortableTemplate, split_name};
pub use crate::template::receive::{CheckedFiles, sync_during};
pub use crate::template::templates::with_source;
pub use crate::tree::file_set::FileSet;
pub use crate::tree::fill::room::NewEntries;
pub use crate::tree::held_lock::lock_file;
pub use crate::tree::location::{is_at, is_mounted, make_below, mount_point_of};
pub use crate::tree::node::open_source;
pub use crate::tree::own::{OwnDirectory, is_own, replace_record, sweep_records};
pub use crate::tree::pool::joined;
pub use crate::tree::replaced::ReplacedFile;
pub use crate::tree::set_state::FileSetState;
pub use crate::tree::stable::set_clock_back_with;
pub use crate::tree::walk::{Descent, EntryKind, Folder, ScanReport, Visitor};
pub use crate::vocabulary::hidden_name::is_trash;
pub use crate::vocabulary::shell::{ansi_c, word};

/// Values of reports in JSON documents.
pub mod json {
    pub use crate::json::*;
}
