use std::path::PathBuf;
use std::time::Duration;

use calve_core::internal::ShownPath;
use calve_core::internal::json::{As, Milliseconds, ReceiptPath, Text};
use calve_core::report::SkippedEntry;
use serde::Serialize;
use strum::{Display, VariantNames};

use crate::escape::entry::WalkEntry;
use crate::escape::trees::Mention;

/// The report of `calve worktree check`.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-check/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditReport {
    /// The worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// True if the actions of the findings were carried out.
    pub fixed: bool,
    /// References into other trees.
    pub findings: Vec<Finding>,
    /// The number of entries of the worktree.
    pub entries: u64,
    /// Entries that could not be read.
    pub skipped: Vec<SkippedEntry>,
    /// The time that it took in milliseconds.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

impl AuditReport {
    /// Counts the references that are left.
    pub fn left(&self) -> usize {
        self.findings.iter().filter(|finding| !self.fixed || finding.action == Action::Reported).count()
    }
}

/// A reference from a worktree into another tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "EscapeFinding")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The kind of reference.
    #[serde(with = "As::<Text>")]
    pub kind: ReferenceKind,
    /// The file that has the reference, relative to the worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The path that it names.
    #[serde(with = "As::<ReceiptPath>")]
    pub names: PathBuf,
    /// The action that was taken, or would be taken.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Action::VARIANTS)))]
    pub action: Action,
    /// The meaning of it, or the next step.
    #[serde(rename = "hint", with = "As::<Text>")]
    pub explanation: Explanation,
    /// The changes that are left to make for that.
    #[serde(skip)]
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Explanation {
    #[error("{}", .0.effect())]
    NamesThisTree(ReferenceKind),
    #[error("the hashes of the files that were repaired are left out")]
    HashesRemoved,
    #[error("it leads to what it led to before: `{}`", ShownPath(.0))]
    SameTarget(PathBuf),
    #[error("only this link has that name here; remove it, then clone its target")]
    NoOtherTarget,
    #[error("there is no `{}` in this worktree; clone it here, or remove the link", ShownPath(.0))]
    TargetMissing(PathBuf),
    #[error("the new path has characters that are special in this file; recreate it with the tool that wrote it")]
    Unwritable,
    #[error(
        "its first line would be longer than the 127 bytes that every kernel reads; recreate it with the tool that wrote it"
    )]
    LineTooLong,
    #[error("git tracks it, so a repair would be a change to commit; change it in the project")]
    Tracked,
    #[error("`{}` could not be changed: {reason}; resolve that, then repair this tree again", ShownPath(path))]
    Unchangeable {
        /// Below the new tree.
        path: PathBuf,
        reason: String,
    },
    #[error("its options are kept, what was generated is dropped: run `cmake {}`", ShownPath(.0))]
    RunCMake(PathBuf),
    #[error("the next build recreates it")]
    MadeAgain,
    #[error("the path is compiled in: cargo compiles this unit again, and what depends on it")]
    CompiledAgain,
    #[error("the build script's output names the other tree: cargo runs the script again")]
    ScriptRunsAgain,
    #[error(
        "git works on another worktree's index here; if that one was moved here, run `git worktree repair`, else add this worktree anew"
    )]
    IndexOfAnother,
    #[error("`git submodule update --init` recreates the submodule when its directory is empty")]
    InitSubmodule,
    #[error("its files are plain files here; git in it no longer works on the other worktree")]
    PlainFiles,
    #[error("the repository borrows objects; run `git repack -a -d` in it, then remove the file")]
    BorrowsObjects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Action {
    Repaired,
    /// The file that held it was removed, and is made again when needed.
    Dropped,
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display)]
#[strum(serialize_all = "kebab-case")]
pub enum ReferenceKind {
    AbsoluteLink,
    LeavingLink,
    Shebang,
    Activate,
    PyvenvCfg,
    Editable,
    /// A Python package's `direct_url.json` and `RECORD`.
    DistInfo,
    Pnpm,
    #[strum(serialize = "cmake")]
    CMake,
    WebCache,
    /// A `.git` file, or a repository that borrows objects.
    GitPointer,
    Cargo,
}

impl ReferenceKind {
    fn effect(self) -> &'static str {
        match self {
            Self::Activate => "it switches this worktree's environment on",
            Self::Shebang => "it runs with what is in this worktree",
            Self::PyvenvCfg => "it is this worktree's environment",
            Self::Editable => "Python imports this worktree's package",
            Self::DistInfo => "pip and uv see this worktree's package",
            Self::Pnpm => "pnpm takes what is installed here for its own",
            Self::WebCache => "it serves this worktree",
            Self::Cargo => "it lists this worktree's files",
            _ => "it leads to the same place in this worktree",
        }
    }
}

/// One change to the new tree, with paths below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Relink { path: PathBuf, target: Vec<u8> },
    Write { path: PathBuf, bytes: Vec<u8>, keeps_time: bool },
    Remove { path: PathBuf },
}

impl Step {
    pub(super) fn path(&self) -> &PathBuf {
        match self {
            Self::Relink { path, .. } | Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }
}

impl Finding {
    pub(super) fn reported(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        Self { kind, path, names, action: Action::Reported, explanation, steps: Vec::new() }
    }

    /// Makes a finding that writes these contents, which name the new tree instead.
    pub(super) fn rewritten(kind: ReferenceKind, path: PathBuf, names: PathBuf, bytes: Vec<u8>) -> Self {
        let steps = vec![Step::Write { path: path.clone(), bytes, keeps_time: true }];
        Self { kind, path, names, action: Action::Repaired, explanation: Explanation::NamesThisTree(kind), steps }
    }

    pub(super) fn dropped(kind: ReferenceKind, path: PathBuf, names: PathBuf, explanation: Explanation) -> Self {
        let steps = vec![Step::Remove { path: path.clone() }];
        Self { kind, path, names, action: Action::Dropped, explanation, steps }
    }

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

    pub(super) fn takes_away(&self, entry: &WalkEntry<'_>) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Remove { path } if *path == entry.path()))
    }
}
