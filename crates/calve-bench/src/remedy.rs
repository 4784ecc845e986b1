//! Remedies against errors of a bench: names, which the program puts into words.

use strum::IntoStaticStr;

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    ChooseDirectory,
    ChooseReachableDirectory,
    ChooseWritablePlace,
    /// The place is on a file system that is mounted read-only.
    LeaveReadOnlyPlace,
    FreeSpaceOrChooseAnotherPlace,
    /// Measure into a place that is not in the tree.
    ChoosePlaceOutsideTree,
    NameTree,
    MakeTreeReadable,
    /// Name one of these commands.
    NameCommand(String),
    ChooseOtherCommandsOrPlace,
    /// The condition of a command, in the words of the report.
    AsReported(String),
    RunByHand,

    InstallGit,
    ReadGitOutput,
    CorrectUrl,
    NameRepository,
    NameFullClone,
    Unshallow,
    NameRepositoryWithHistory,
    TryCloningUrl,
    TryCloningDirectory,
    CheckOutBranch,
    NameMainWorktree,

    InstallNode,
    InstallNpmPackage,
    /// Install the program that a command needs.
    Install(ProgramSource),
    /// A remedy of the engine.
    Engine(calve_core::Remedy),
    /// End the servers of this template that wait.
    EndStandbys(String),
    ChangeQuery,
    ChangeWrite,
}

/// Where a program that commands are compared with comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramSource {
    PackageManager,
    BtrfsProgs,
    Node,
    /// The crate of this name.
    Crate(&'static str),
}

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Engine(remedy) => remedy.name(),
            own => own.into(),
        }
    }
}
