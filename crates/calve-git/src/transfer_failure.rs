//! Classifies a failed transfer by git's message: git has one exit code for everything.

/// A kind of failed transfer, worded as its remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransferFailure {
    /// The program of a checkout's filter failed or is missing: git-lfs, for one.
    #[error(
        "install the program of that filter, such as git-lfs, or see what it says; `git config --get-regexp '^filter'` shows its commands"
    )]
    Filter,
    #[error("run the `git config` command that git names above if you trust the repository's owner")]
    Ownership,
    /// The server requires a login, or does not accept this one.
    #[error(
        "check that you may read it, and set up a credential helper (gitcredentials(7)) or an ssh key; git asks for a password only on a terminal"
    )]
    Refused,
    #[error("check the spelling of the URL; many servers also answer so if you may not see the repository")]
    NoRepository,
    #[error("check the host's name and your network, then try again")]
    Unreachable,
    #[error("see what is there: git ls-remote --heads --tags URL")]
    NoBranch,
    /// The repository lacks the commit, or does not hand it out.
    #[error(
        "check that it is the id of a commit; many servers send only commits that a branch or tag reaches (`uploadpack.allowReachableSHA1InWant`)"
    )]
    NoCommit,
    #[error("try again; if it persists, ask the server's administrator")]
    CutShort,
    /// The source's history is cut off, so that git would look for the rest without end.
    #[error(
        "`git fetch --unshallow` there fetches the missing history; new clones with `--for dev` or `--for ci` do without it"
    )]
    SourceShallow,
    /// With the options that need less space.
    #[error("free some space; {0}")]
    DiskFull(&'static str),
    /// The server answered, and something failed here, such as a hook.
    #[error("see what git, or a hook that it ran, says above")]
    Here,
    #[error("see what git says above; `git ls-remote URL` shows whether the server answers at all")]
    Unknown,
}

pub const ENDLESS: &str = "git kept asking the shallow source for commits that it lacks, and was stopped";

const DISK_FULL: &[&str] =
    &["No space left on device", "Disk quota exceeded", "Out of diskspace", "file write error", "unable to write file"];
/// Messages of the checkout. The filter's own message comes before them.
const FILTER: &[&str] = &["external filter '", "smudge filter ", "filter-process"];
const OWNERSHIP: &[&str] = &["dubious ownership"];
const REFUSED: &[&str] = &[
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Permission denied (",
    "Host key verification failed",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "HTTP 401",
    "HTTP 403",
];
const NO_BRANCH: &[&str] = &["Remote branch", "couldn't find remote ref", "Could not find remote branch"];
const NO_COMMIT: &[&str] = &[
    "not our ref",
    "no such remote ref",
    "unadvertised object",
    "reference is not a tree",
    "to a non-commit '",
    "bad object",
    ", not a commit",
    "not a valid SHA1",
    "mismatched algorithms",
];
const UNREACHABLE: &[&str] = &[
    "Could not resolve host",
    "Could not resolve hostname",
    "Failed to connect",
    "Connection refused",
    "unable to connect",
    "Connection timed out",
    "No route to host",
];
const CUT_SHORT: &[&str] = &[
    "early EOF",
    "unexpected disconnect",
    "hung up unexpectedly",
    "RPC failed",
    "invalid index-pack output",
    "fetch-pack: invalid",
    "transfer closed",
    "Connection reset",
    "Empty reply from server",
    "expected 'packfile'",
    "expected flush after",
    "invalid server response",
    "bad pack header",
];
const NO_REPOSITORY: &[&str] = &[
    "' not found",
    "epository not found",
    "Not Found",
    "returned error: 404",
    "does not exist",
    "does not appear to be a git repository",
    "not a git repository",
    "no such directory",
];

impl TransferFailure {
    /// Classifies git's message. More particular words come first: a cut connection says more than its cause. Where no
    /// server was asked, only the first three are possible: the other words are a hook's or a filter's.
    pub(crate) fn from_message(said: &str, asks_server: bool) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let kinds = [
            (DISK_FULL, Self::DiskFull("`--for ci` and `--sparse` need less")),
            (FILTER, Self::Filter),
            (NO_COMMIT, Self::NoCommit),
            (OWNERSHIP, Self::Ownership),
            (REFUSED, Self::Refused),
            (NO_BRANCH, Self::NoBranch),
            (UNREACHABLE, Self::Unreachable),
            (CUT_SHORT, Self::CutShort),
            (NO_REPOSITORY, Self::NoRepository),
        ];
        let (possible, other) = if asks_server { (&kinds[..], Self::Unknown) } else { (&kinds[..3], Self::Here) };
        possible.iter().find(|(words, _)| says(words)).map_or(other, |(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_git_are_understood() {
        let cases = [
            ("fatal: Authentication failed for 'http://x/'", TransferFailure::Refused),
            ("fatal: could not read Username for 'http://x': terminal prompts disabled", TransferFailure::Refused),
            ("fatal: Remote branch nope not found in upstream origin", TransferFailure::NoBranch),
            ("fatal: remote error: upload-pack: not our ref 0000", TransferFailure::NoCommit),
            ("fatal: 0000^{commit}: not a valid SHA1", TransferFailure::NoCommit),
            ("fatal: Cannot switch branch to a non-commit '0000'", TransferFailure::NoCommit),
            ("fatal: mismatched algorithms: client sha1; server sha256", TransferFailure::NoCommit),
            ("fatal: repository 'http://x/' not found", TransferFailure::NoRepository),
            ("error: RPC failed; curl 18 transfer closed\nfatal: early EOF", TransferFailure::CutShort),
            (
                "fatal: write error: No space left on device\nfatal: early EOF",
                TransferFailure::DiskFull("`--for ci` and `--sparse` need less"),
            ),
            ("fatal: unable to access 'http://x/': Failed to connect to x", TransferFailure::Unreachable),
            (
                "git-lfs smudge -- %f: git-lfs: not found\nerror: external filter 'git-lfs smudge -- %f' failed 127",
                TransferFailure::Filter,
            ),
            (
                "batch request: Connection refused\nerror: external filter 'git-lfs filter-process' failed",
                TransferFailure::Filter,
            ),
            ("fatal: the remote end hung up\nfatal: a.bin: smudge filter lfs failed", TransferFailure::Filter),
            ("fatal: detected dubious ownership in repository at '/srv/a.git'", TransferFailure::Ownership),
            (
                "ERROR: Repository not found.\nfatal: Could not read from remote repository.",
                TransferFailure::NoRepository,
            ),
            ("sh: 1: ssh-wrapper: not found", TransferFailure::Unknown),
            ("fatal: something else", TransferFailure::Unknown),
        ];
        for (said, trouble) in cases {
            assert_eq!(TransferFailure::from_message(said, true), trouble, "{said}");
            let is_of_a_checkout =
                matches!(trouble, TransferFailure::DiskFull(_) | TransferFailure::Filter | TransferFailure::NoCommit);
            let of_checkout = if is_of_a_checkout { trouble } else { TransferFailure::Here };
            assert_eq!(TransferFailure::from_message(said, false), of_checkout, "{said}");
        }
    }
}
