//! The options of an audit, and its findings.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use calve_core::{CancelToken, SkippedEntry, SpareNames};
use strum::{IntoStaticStr, VariantNames};

use crate::escape::entry::WalkEntry;
use crate::escape::trees::Mention;

#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditOptions {
    /// Whether to put right what can be put right.
    pub fix: Fix,
    /// Only these entries, by their paths below the new tree. Empty: everything.
    pub below: Vec<PathBuf>,
    /// The entries that are known to be there, because the new tree was a spare. Only with `below`, and not with [`FormerPathRule::Sought`].
    pub names: Option<Arc<SpareNames>>,
    /// More trees that must not be named: the repository's other worktrees.
    pub others: Vec<PathBuf>,
    /// Whether to look for the path that the tree had before it was moved.
    pub moved: FormerPathRule,
    /// The path that the new tree is going to have, when it is still being made under another one.
    pub will_be: Option<PathBuf>,
    /// The entries that git tracks in the new tree, by paths below it. `None`: git is asked, if anything is found.
    pub tracked: Option<HashSet<PathBuf>>,
    /// How many threads; by default as many as there are processors, at most 8.
    pub threads: Option<NonZeroUsize>,
    /// Ends the audit early.
    pub cancel: CancelToken,
}

/// Whether an audit repairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fix {
    /// It says what it would do.
    #[default]
    No,
    Yes,
}

/// Whether an audit takes the tree's former path, as virtual environments in it state it, for another tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FormerPathRule {
    /// It does not: the path may be that of a container, in which the tree is mounted.
    #[default]
    Ignored,
    /// It does, if nothing is there any more.
    Sought,
}

/// The findings of an audit.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditReport {
    pub findings: Vec<Finding>,
    /// Whether the actions were carried out.
    pub fixed: bool,
    /// How many entries were come across.
    pub entries: u64,
    /// The entries that could not be looked at.
    pub skipped: Vec<SkippedEntry>,
    /// How long it took.
    pub elapsed: Duration,
}

impl AuditReport {
    /// Returns how many references are still there.
    pub fn left(&self) -> usize {
        match self.fixed {
            true => self.findings.iter().filter(|finding| finding.action == Action::Reported).count(),
            false => self.findings.len(),
        }
    }
}

/// One reference out of the new tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of reference.
    pub kind: ReferenceKind,
    /// Where it is, below the new tree.
    pub path: PathBuf,
    /// The path that it names.
    pub names: PathBuf,
    /// The action that was taken, or would be taken.
    pub action: Action,
    /// The meaning of it, or the step that is left.
    pub explanation: Explanation,
}

/// The meaning of an action, or the step that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// It names this tree now; the kind says what follows from that.
    NamesThisTree,
    /// The hashes of repaired files are left out of the list.
    HashesRemoved,
    /// The link still leads to what it led to before.
    SameTarget,
    /// The link's target does not exist in this tree.
    TargetMissing(PathBuf),
    /// The new path has characters that mean something in the file.
    Unwritable,
    /// git tracks the file, so that a repair would be a change to commit.
    Tracked,
    /// This path could not be changed.
    Unchangeable {
        /// Below the new tree.
        path: PathBuf,
        reason: String,
    },
    /// Generated files are dropped; CMake has to run in this directory.
    RunCMake(PathBuf),
    /// The next build makes it again.
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
    /// The repository borrows objects from the other tree.
    BorrowsObjects,
}

/// The treatment of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Action {
    /// It names the new tree's own file now.
    Repaired,
    /// The file that held it was removed, and is made again when it is needed.
    Dropped,
    /// It is as it was.
    Reported,
}

impl Action {
    /// The words of all.
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns its word in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The kinds of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum ReferenceKind {
    /// A symlink with an absolute target in another tree.
    AbsoluteLink,
    /// A symlink with a relative target that leaves the tree.
    LeavingLink,
    /// A script that names another tree, mostly as its interpreter.
    Shebang,
    /// The `activate` scripts of a virtual environment.
    Activate,
    /// A virtual environment's `pyvenv.cfg`.
    PyvenvCfg,
    /// `*.pth` and what else makes a Python package importable from where it is written.
    Editable,
    /// A Python package's `direct_url.json` and `RECORD`.
    DistInfo,
    /// pnpm's notes of an installation.
    Pnpm,
    /// A build directory of CMake.
    #[strum(serialize = "cmake")]
    CMake,
    /// Caches of webpack, Next.js and the like.
    WebCache,
    /// A `.git` file, or a repository that borrows objects.
    GitPointer,
    /// Units of Cargo's `target`.
    Cargo,
}

impl ReferenceKind {
    /// Returns its word in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A finding with what there is to do about it.
pub(super) struct PendingFinding {
    pub(super) kind: ReferenceKind,
    pub(super) path: PathBuf,
    pub(super) names: PathBuf,
    pub(super) action: Action,
    pub(super) explanation: Explanation,
    pub(super) steps: Vec<Step>,
}

/// One change to the new tree. Paths are below it.
pub(super) enum Step {
    /// A symlink gets another target.
    Relink { path: PathBuf, target: Vec<u8> },
    /// A file gets other contents.
    Write { path: PathBuf, bytes: Vec<u8>, time: Time },
    /// A file, a link or a directory goes.
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
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Kept,
    Now,
}

impl PendingFinding {
    /// Makes a finding of something that cannot be put right.
    pub(super) fn reported(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        Self { kind, path, names, action: Action::Reported, explanation, steps: Vec::new() }
    }

    /// Makes a finding that writes contents which name the new tree instead.
    pub(super) fn rewritten(
        kind: ReferenceKind,
        path: PathBuf,
        names: PathBuf,
        bytes: Vec<u8>,
        explanation: Explanation,
    ) -> Self {
        let steps = vec![Step::Write { path: path.clone(), bytes, time: Time::Kept }];
        Self { kind, path, names, action: Action::Repaired, explanation, steps }
    }

    /// Makes a finding that removes something which is made again when it is needed.
    pub(super) fn dropped(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        let steps = vec![Step::Remove { path: path.clone() }];
        Self { kind, path, names, action: Action::Dropped, explanation, steps }
    }

    /// Makes a finding of a text, which is written to name the new tree instead where it can, and is only reported otherwise.
    pub(super) fn text(kind: ReferenceKind, path: PathBuf, named: Mention) -> Self {
        match named.moved {
            Some(bytes) => Self::rewritten(kind, path, named.names, bytes, Explanation::NamesThisTree),
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

    pub(super) fn finding(self) -> Finding {
        let Self { kind, path, names, action, explanation, .. } = self;
        Finding { kind, path, names, action, explanation }
    }
}
