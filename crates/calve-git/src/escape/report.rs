//! The findings of an audit.

use std::path::PathBuf;
use std::time::Duration;

use calve_core::report::SkippedEntry;
use strum::{Display, IntoStaticStr, VariantNames};

use crate::escape::entry::WalkEntry;
use crate::escape::trees::Mention;

#[derive(Debug, Clone, Default)]
pub struct AuditReport {
    pub findings: Vec<Finding>,
    pub fixed: bool,
    pub entries: u64,
    pub skipped: Vec<SkippedEntry>,
    pub elapsed: Duration,
}

impl AuditReport {
    /// Returns how many references are still there.
    pub fn left(&self) -> usize {
        self.findings.iter().filter(|finding| !self.fixed || finding.action == Action::Reported).count()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: ReferenceKind,
    /// Where it is, below the new tree.
    pub path: PathBuf,
    pub names: PathBuf,
    /// The action that was taken, or would be taken.
    pub action: Action,
    pub explanation: Explanation,
    /// The changes that are left to make for that.
    pub(super) steps: Vec<Step>,
}

/// The meaning of an action, or the step that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation {
    /// It names this tree now; the kind says what follows from that.
    NamesThisTree,
    HashesRemoved,
    /// The link still leads to what it led to before.
    SameTarget,
    TargetMissing(PathBuf),
    Unwritable,
    LineTooLong,
    /// git tracks the file, so that a repair would be a change to commit.
    Tracked,
    Unchangeable {
        /// Below the new tree.
        path: PathBuf,
        reason: String,
    },
    /// Generated files are dropped; CMake has to run in this directory.
    RunCMake(PathBuf),
    MadeAgain,
    /// Cargo compiles the unit again, because the path is compiled in.
    CompiledAgain,
    /// Cargo runs the build script again, because its output names the other tree.
    ScriptRunsAgain,
    /// git works on another worktree's index here.
    IndexOfAnother,
    /// The submodule has to be made again.
    InitSubmodule,
    /// A worktree inside is plain files now.
    PlainFiles,
    BorrowsObjects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Action {
    /// It names the new tree's own file now.
    Repaired,
    /// The file that held it was removed, and is made again when it is needed.
    Dropped,
    Reported,
}

impl Action {
    pub const NAMES: &[&str] = Self::VARIANTS;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ReferenceKind {
    AbsoluteLink,
    LeavingLink,
    /// A script that names another tree, mostly as its interpreter.
    Shebang,
    Activate,
    PyvenvCfg,
    /// `*.pth` and what else makes a Python package importable from where it is written.
    Editable,
    /// A Python package's `direct_url.json` and `RECORD`.
    DistInfo,
    /// pnpm's notes of an installation.
    Pnpm,
    #[strum(serialize = "cmake")]
    CMake,
    /// Caches of webpack, Next.js and the like.
    WebCache,
    /// A `.git` file, or a repository that borrows objects.
    GitPointer,
    Cargo,
}

/// One change to the new tree. Paths are below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Relink { path: PathBuf, target: Vec<u8> },
    Write { path: PathBuf, bytes: Vec<u8>, time: Time },
    Remove { path: PathBuf },
}

impl Step {
    pub(super) fn path(&self) -> &PathBuf {
        match self {
            Self::Relink { path, .. } | Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }
}

/// The modification time of a file that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Kept,
    Now,
}

impl Finding {
    pub(super) fn reported(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        Self { kind, path, names, action: Action::Reported, explanation, steps: Vec::new() }
    }

    /// Makes a finding that writes contents which name the new tree instead.
    pub(super) fn rewritten(kind: ReferenceKind, path: PathBuf, names: PathBuf, bytes: Vec<u8>) -> Self {
        let steps = vec![Step::Write { path: path.clone(), bytes, time: Time::Kept }];
        Self { kind, path, names, action: Action::Repaired, explanation: Explanation::NamesThisTree, steps }
    }

    pub(super) fn dropped(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        let steps = vec![Step::Remove { path: path.clone() }];
        Self { kind, path, names, action: Action::Dropped, explanation, steps }
    }

    /// Makes a finding of a text, which is written to name the new tree instead where it can, and is only reported otherwise.
    pub(super) fn text(kind: ReferenceKind, path: PathBuf, named: Mention) -> Self {
        match named.moved {
            Some(bytes) => Self::rewritten(kind, path, named.names, bytes),
            None => Self::reported(kind, path, named.names, Explanation::Unwritable),
        }
    }

    pub(super) fn only_reported(&mut self, explanation: Explanation) {
        self.action = Action::Reported;
        self.explanation = explanation;
        self.steps.clear();
    }

    /// Returns whether `entry` will not be there any more.
    pub(super) fn takes_away(&self, entry: &WalkEntry<'_>) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Remove { path } if *path == entry.path()))
    }
}
