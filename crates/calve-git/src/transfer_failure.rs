//! Classifies a failed transfer by git's own errors: it has one exit code for everything.

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
    #[error("`git fetch --unshallow` there fetches the missing history")]
    SourceShallow,
    #[error("free some space")]
    DiskFull { is_for_ci: bool },
    /// The server answered, and something failed here, such as a hook.
    #[error("see what git, or a hook that it ran, says above")]
    Here,
    #[error("see what git says above; `git ls-remote URL` shows whether the server answers at all")]
    Unknown,
}

pub const ENDLESS: &str = "git kept asking the shallow source for commits that it lacks, and was stopped";

/// An error of git itself, from its trace (git's Documentation/technical/api-trace2.txt, "error").
#[derive(Debug, Clone)]
pub(crate) struct GitError {
    /// From the command itself, not from another git that it started.
    pub(crate) is_outermost: bool,
    /// Git's constant, without the names in `text`, which may read like anything.
    pub(crate) format: String,
    pub(crate) text: String,
}

/// Counts whoever says it: git's trace, a hook and a filter have the same disk.
const DISK_FULL: &[&str] =
    &["No space left on device", "Disk quota exceeded", "Out of diskspace", "unable to write file"];
const UNREACHABLE: &[&str] = &["Could not resolve host", "Failed to connect", "ssh: connect to host", "timed out"];
const ANY: &[&str] = &[""];

/// Curl has failed, and says why.
const ACCESS: &str = "unable to access '%s': %s";
/// ssh, or the server behind it, has ended, and has said why.
const OTHER_SIDE: &str = "Could not read from remote repository";

impl TransferFailure {
    /// The kinds by parts of git's formats, and by the words of curl, ssh or the server. More particular ones come
    /// first: a cut connection says more than its cause.
    const KNOWN: &[(Self, &[&str], &[&str])] = &[
        (Self::Filter, &["external filter '%s", "smudge filter %s failed", "subprocess '%s'"], ANY),
        (Self::NoCommit, &["remote error: %s"], &["not our ref"]),
        (Self::NoCommit, &["no such remote ref", "unadvertised object", "bad object", "not a valid SHA1"], ANY),
        (Self::NoCommit, &["is not a tree", "to a non-commit '", "a %s, not a %s", "mismatched algorithms"], ANY),
        // The second before git 2.38.
        (Self::Ownership, &["dubious ownership", "unsafe repository"], ANY),
        (Self::Refused, &["Authentication failed", "could not read %s%s"], ANY),
        (Self::Refused, &[ACCESS, "RPC failed"], &["returned error: 401", "returned error: 403"]),
        (Self::Refused, &[OTHER_SIDE], &["Permission denied (", "Host key verification failed"]),
        (Self::NoBranch, &["Remote branch %s not found", "couldn't find remote ref"], ANY),
        (Self::Unreachable, &["unable to connect to", "unable to look up"], ANY),
        (Self::Unreachable, &[ACCESS, OTHER_SIDE], UNREACHABLE),
        (Self::CutShort, &["early EOF", "unexpected disconnect", "the remote end hung up", "RPC failed"], ANY),
        (Self::CutShort, &["fetch-pack: invalid", "expected '%s', received", "expected flush after"], ANY),
        (Self::CutShort, &["invalid server response", "bad pack header"], ANY),
        (Self::CutShort, &[ACCESS], &["transfer closed", "Connection reset", "Empty reply from server"]),
        (Self::NoRepository, &["repository '%s' not found", "repository '%s' does not exist"], ANY),
        (Self::NoRepository, &["does not appear to be a git repository", "a git repository?"], ANY),
        (Self::NoRepository, &[ACCESS], &["returned error: 404"]),
        (
            Self::NoRepository,
            &["remote error: %s", OTHER_SIDE],
            &["epository not found", "not exported", "does not appear"],
        ),
        // The checkout of a partial clone fetches what it lacks.
        (Self::Unknown, &[ACCESS, "from promisor remote"], ANY),
        // Of git 2.55, in place of "is not a tree"; also if the server does not send a tree of a partial clone.
        (Self::NoCommit, &["unable to read tree (%s)"], ANY),
    ];

    /// Classifies the errors of git's processes, of which a hook's are none. `said` is the text of all that ran.
    pub(crate) fn new(errors: &[GitError], said: &str, asks_server: bool) -> Self {
        if DISK_FULL.iter().any(|words| said.contains(words)) {
            return Self::DiskFull { is_for_ci: false };
        }
        // git itself asks no server then: a long-running filter speaks the same protocol.
        let is_filter = |error: &GitError| error.is_outermost && error.format.contains("the remote end hung up");
        if !asks_server && errors.iter().any(is_filter) {
            return Self::Filter;
        }
        let is_of = |error: &GitError, (_, formats, words): &(Self, &[&str], &[&str])| {
            let reason = error.text.rsplit_once("': ").map_or(&*error.text, |(_, reason)| reason);
            let text = if error.format.contains(OTHER_SIDE) { said } else { reason };
            formats.iter().any(|part| error.format.contains(part)) && words.iter().any(|words| text.contains(words))
        };
        let known = Self::KNOWN.iter().find(|known| errors.iter().any(|error| is_of(error, known)));
        known.map_or(if asks_server { Self::Unknown } else { Self::Here }, |(kind, ..)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS: TransferFailure = TransferFailure::DiskFull { is_for_ci: false };

    fn failure(errors: &[(&str, &str)], said: &str) -> [TransferFailure; 2] {
        let error = |(format, text): &(&str, &str)| GitError {
            is_outermost: false,
            format: (*format).into(),
            text: (*text).into(),
        };
        let errors: Vec<GitError> = errors.iter().map(error).collect();
        [true, false].map(|asks_server| TransferFailure::new(&errors, said, asks_server))
    }

    #[test]
    fn what_this_machine_has_no_server_for_is_understood() {
        let cases = [
            (ACCESS, "unable to access 'http://x/': The requested URL returned error: 403", TransferFailure::Refused),
            (
                ACCESS,
                "unable to access 'http://x/': The requested URL returned error: 404",
                TransferFailure::NoRepository,
            ),
            (ACCESS, "unable to access 'http://x/': Empty reply from server", TransferFailure::CutShort),
            (ACCESS, "unable to access 'https://x/': SSL certificate problem", TransferFailure::Unknown),
            (
                "RPC failed; %s",
                "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403",
                TransferFailure::Refused,
            ),
            ("unsafe repository ('%s' is owned by someone else)", "", TransferFailure::Ownership),
        ];
        for (format, text, kind) in cases {
            assert_eq!(failure(&[(format, text)], ""), [kind; 2], "{text}");
        }
        let other_side = [("Could not read from remote repository.\n\n%s", "")];
        for (said, kind) in [
            ("git@x: Permission denied (publickey).", TransferFailure::Refused),
            ("Host key verification failed.", TransferFailure::Refused),
            ("ERROR: Repository not found.", TransferFailure::NoRepository),
        ] {
            assert_eq!(failure(&other_side, said), [kind; 2], "{said}");
        }
        assert_eq!(failure(&other_side, "sh: 1: ssh-wrapper: not found")[0], TransferFailure::Unknown);
    }

    #[test]
    fn a_name_or_a_hook_chooses_no_kind() {
        let said = "hook: early EOF, Connection refused, not our ref, external filter 'x' failed";
        assert_eq!(failure(&[], said), [TransferFailure::Unknown, TransferFailure::Here]);
        let text = "'/early EOF/Connection refused' does not appear to be a git repository";
        let missing = ("'%s' does not appear to be a git repository", text);
        assert_eq!(failure(&[missing], text), [TransferFailure::NoRepository; 2]);
        let text = "unable to access 'http://x/Connection refused/': The requested URL returned error: 404";
        assert_eq!(failure(&[(ACCESS, text)], text), [TransferFailure::NoRepository; 2]);
        // Whoever says it has no room.
        assert_eq!(failure(&[missing], "cp: x: No space left on device"), [LESS; 2]);
    }
}
