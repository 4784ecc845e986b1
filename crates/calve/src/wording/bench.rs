//! The remedies of `calve bench`.

use calve_bench::{ProgramSource, Remedy};

/// Returns what the user can do next, as one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::NameCommand(names) => format!("the names are {names}"),
        Remedy::EndStandbys(template) => format!("end it first: calve db pool {template} --size 0"),
        Remedy::AsReported(words) => words.clone(),
        Remedy::Engine(remedy) => super::core::hint(remedy),
        Remedy::Install(ProgramSource::Crate(name)) => format!("cargo install {name}"),
        other => fixed(other).into(),
    }
}

fn fixed(remedy: &Remedy) -> &'static str {
    match remedy {
        Remedy::ChooseDirectory => "name a directory on the file system that is to be measured",
        Remedy::ChooseReachableDirectory => "name a directory that you can reach",
        Remedy::ChooseWritablePlace => "name a place with `--into` that you may write to",
        Remedy::LeaveReadOnlyPlace => {
            "that file system is mounted read-only: name a place with `--into` that can be written to"
        }
        Remedy::FreeSpaceOrChooseAnotherPlace => "free some there, or name another place with `--into`",
        Remedy::ChoosePlaceOutsideTree => {
            "copies cannot be made inside of what is copied: name a place beside the tree with `--into`"
        }
        Remedy::NameTree => "name the directory to copy with `--tree`",
        Remedy::MakeTreeReadable => "the whole tree must be readable: fix the mode, or run as its owner",
        Remedy::ChooseOtherCommandsOrPlace => "name other commands with `--only`, or another place with `--into`",
        Remedy::RunByHand => "the report has the other results; run the command by hand to see more",

        Remedy::InstallGit => "install git 2.30 or later, and have it on the PATH",
        Remedy::ReadGitOutput => "what git says is the reason",
        Remedy::CorrectUrl => "give a URL that git understands, or a directory",
        Remedy::NameRepository => "name the directory of a repository, or a URL, with `--repo`",
        Remedy::NameFullClone => "name the repository that it was cloned from, or a full clone",
        Remedy::Unshallow => "run `git fetch --unshallow` in it, or name a full clone",
        Remedy::NameRepositoryWithHistory => "name a repository with a history",
        Remedy::TryCloningUrl => "try `git clone` with that URL yourself: the bench asks for no password",
        Remedy::TryCloningDirectory => "try `git clone --bare --no-local` with it yourself",
        Remedy::CheckOutBranch => "check out a branch there, or name a clone that has one checked out",
        Remedy::NameMainWorktree => "name the directory that has `.git` in it with `--repository`",

        Remedy::Install(source) => match source {
            ProgramSource::BtrfsProgs => "install btrfs-progs",
            ProgramSource::Node => "install Node.js",
            _ => "install it with the system's package manager",
        },
        Remedy::InstallNpmPackage => "install it in the current directory: npm install calve",
        Remedy::InstallNode => "install Node 18.17 or later, and have it on the PATH",
        Remedy::ChangeQuery => "give another statement with `--query`",
        Remedy::ChangeWrite => "give a statement that writes with `--write`",
        // `Remedy` is non-exhaustive.
        _ => "see `calve bench --help`",
    }
}
