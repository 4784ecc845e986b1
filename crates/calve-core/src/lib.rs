//! Clone, remove and probe file trees by the fastest method that the file system really offers.
//!
//! ```
//! use calve_core::{CloneOptions, RemovalWait, clone_tree, remove_tree};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (src, dst) = (folder.path().join("project"), folder.path().join("copy"));
//! # fs_err::create_dir(&src)?;
//! # fs_err::write(src.join("readme"), "hello")?;
//! let report = clone_tree(&src, &dst, &CloneOptions::default())?;
//! println!("made by {}; better ones: {:?}", report.strategy, report.refused);
//! # assert_eq!(fs_err::read_to_string(dst.join("readme"))?, "hello");
//!
//! let mut options = calve_core::RemoveOptions::default();
//! options.wait = RemovalWait::Yes;
//! remove_tree(&dst, &options)?;
//! # assert!(!dst.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library never prints, never reads the environment or configuration files, and never changes anything of the process
//! that it runs in.

mod background;
mod bulk;
mod choice;
mod choose;
mod clone;
mod error;
mod file_set;
mod held_lock;
mod hidden;
mod home;
mod operation;
mod options;
mod own;
mod patterns;
mod private;
mod probe;
mod progress;
mod reap;
mod reason;
mod remedy;
mod remove;
mod replaced;
mod report;
mod scan;
mod space;
mod spare;
mod spares;
mod staging;
mod strategy;
mod strategy_run;
mod sys;
mod template;
mod tree;

pub use choice::{Choice, Refusal, Requirement, Strategy};
pub use clone::{clone_tree, plan};
pub use error::{Error, PrivateError, Protection, RoomUnit, ShownPath, StatedRequirement, TemplateError, without_path};
pub use file_set::FileSet;
pub use hidden::is_trash;
pub use home::home_directory;
pub use operation::Operation;
pub use options::{
    Background, CloneOptions, CloneVerification, Decision, Durability, EntryDecider, EntrySelector,
    ExistingDestination, FrozenSince, InlinedBytes, KeptLinks, KeptTimes, KeptXattrs, LastLook, Latency, LeftLinks,
    Mounts, PlainCopy, RemovalWait, RemoveOptions, Selection, SpareUse, UnreadableEntry, lower_priority,
};
pub use patterns::Patterns;
pub use progress::{CancelToken, Progress};
pub use reason::{LeftReason, SkipReason, WarningCode};
pub use remedy::Remedy;
pub use report::{
    Bytes, ClonePlan, CloneReport, Entries, Fallback, FileSystemReport, Offer, ProbeReport, ReapReport, RemoveReport,
    SkippedEntry, SpareCheck, SpareReport, TrashedTree, Warning,
};

pub use {
    background::{start_reaper, start_refill, start_watcher},
    bulk::{
        Directory, ExistingFile, Flush, OnError, Placement, ReadOptions, WriteEntry, WriteFailure, WriteOptions,
        WriteReport, Writer, read_files, write_files,
    },
    clone::build::{BuildPaths, build_tree},
    clone::follow::FollowedSource,
    clone::merge::{OverwriteRule, merge_tree},
    clone::revert::{CloneState, RevertReport, revert},
    clone::stage::{StageReport, StagedTree, is_subvolume, stage, stage_in, supersede},
    own::is_own,
    private::{Beginning, Change, Changes, ChangesUse, PrivateOverlay, StartRefusal, Version},
    probe::probe,
    remove::{PendingTrash, check_removable, delete_in_place, pending_trash, reap, remove_opened, remove_tree, sweep},
    replaced::{KeptOwner, ReplacedFile},
    scan::{ScanOptions, scan_tree},
    space::{
        DedupeMode, DedupeOptions, DedupeReport, DiskUsage, DiskUsageOptions, LeftFiles, PathUsage, Usage, dedupe,
        disk_usage,
    },
    spare::{names::SpareNames, record::KnownState, store::SpareSource},
    spares::{
        KnownEntry, KnownSource, Readiness, RefillOptions, RefillReport, SpareOptions, SpareOrigin, SpareSet,
        SpareState, Spares, UntrackedReason, WatchEnd, WatchNote, WatchOptions, WatchOutcome, WatcherStart,
    },
    strategy::{OverlayMount, OverlayOptions, make_snapshotable_directory, mount_overlay},
    template::{
        CheckedFiles, CreatedTemplate, Difference, DifferenceKind, HeldTemplate, LONGEST_TEMPLATE_NAME, ListedTemplate,
        PortabilityObstacle, PortableDelta, PortableEntry, PortableKind, PortableTemplate, ReceivedTemplate,
        SweptTemplates, Template, TemplateOptions, Templates, Verification, is_template_name, split_name, sync_during,
        template_name, with_source,
    },
    tree::fill::room::NewEntries,
    tree::set_state::FileSetState,
    tree::stable::set_clock_back_with,
    tree::walk::{Descent, EntryKind, Folder, ScanReport, Visitor},
};
