//! Remedies for errors of a bench, in the words of the program, of which this library is a part.

use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error("name a directory on the file system to measure")]
    ChooseDirectory,
    #[error("name a directory that you can reach")]
    ChooseReachableDirectory,
    #[error("name a place with `--into` that you may write to")]
    ChooseWritablePlace,
    #[error("that file system is mounted read-only: name a writable place with `--into`")]
    LeaveReadOnlyPlace,
    #[error("free some there, or name another place with `--into`")]
    FreeSpaceOrChooseAnotherPlace,
    #[error("copies cannot be made inside the tree: name a place beside it with `--into`")]
    ChoosePlaceOutsideTree,
    #[error("name the directory to copy with `--tree`")]
    NameTree,
    #[error("the whole tree must be readable: fix the mode, or run as its owner")]
    MakeTreeReadable,
    #[error("the names are {0}")]
    NameCommand(String),
    #[error("name other commands with `--only`, or another place with `--into`")]
    ChooseOtherCommandsOrPlace,
    #[error("{0}")]
    AsReported(String),
    #[error("the report has the other results; run the command by hand to see more")]
    RunByHand,

    #[error("install git 2.30 or later, and have it on the PATH")]
    InstallGit,
    #[error("git's message above has the reason")]
    ReadGitOutput,
    #[error("give a URL that git understands, or a directory")]
    CorrectUrl,
    #[error("name the directory of a repository, or a URL, with `--repo`")]
    NameRepository,
    #[error("name the repository that it was cloned from, or a full clone")]
    NameFullClone,
    #[error("run `git fetch --unshallow` in it, or name a full clone")]
    Unshallow,
    #[error("name a repository with a history")]
    NameRepositoryWithHistory,
    #[error("try `git clone` with that URL yourself: the bench asks for no password")]
    TryCloningUrl,
    #[error("try `git clone --bare --no-local` with it yourself")]
    TryCloningDirectory,
    #[error("check out a branch there, or name a clone that has one checked out")]
    CheckOutBranch,
    #[error("name the directory that has `.git` in it with `--repo`")]
    NameMainWorktree,

    #[error("install Node 18.17 or later, and have it on the PATH")]
    InstallNode,
    #[error("install it in the current directory: npm install calve")]
    InstallNpmPackage,
    #[error("end it first: calve db pool {0} --size 0")]
    EndStandbys(String),
    #[error("give a statement that writes with `--write`")]
    ChangeWrite,
}

/// Source of a program that commands are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramSource {
    #[error("install it with the system's package manager")]
    PackageManager,
    #[error("install btrfs-progs")]
    BtrfsProgs,
    #[error("install Node.js")]
    Node,
    #[error("cargo install {0}")]
    Crate(&'static str),
}
