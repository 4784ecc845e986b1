//! The words of `git worktree` that Calve does not have: its errors say how Calve does that.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Adds Calve's way to the error about a command line that `git worktree` would understand.
pub(crate) fn explain(mut error: clap::Error, line: &[OsString]) -> clap::Error {
    let words = line.iter().skip(1).map(|word| word.to_string_lossy());
    let words: Vec<_> = words.filter(|word| !matches!(&**word, "-q" | "--quiet")).collect();
    let (["worktree" | "wt", command], rest) = (match &words[..] {
        [first, second, rest @ ..] => ([&**first, &**second], rest),
        _ => return error,
    }) else {
        return error;
    };
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let way = match command {
        "move" => "`git worktree move` moves a worktree of Calve's too",
        "lock" | "unlock" => "`git worktree lock` and `unlock` work on a worktree of Calve's too",
        "repair" => "`git worktree repair` works on a worktree of Calve's too",
        "add" if ["-b", "-B"].iter().any(|option| unknown.starts_with(option)) => {
            "`calve worktree add BRANCH` makes a branch that does not exist, with `--base REV` from another commit"
        }
        "add" if !unknown.is_empty() && !unknown.starts_with('-') && rest.iter().any(|word| *word == unknown) => {
            "name only the branch: calve worktree add BRANCH, with `--path PATH` for another place than the usual one, and `--base REV` \
             from another commit"
        }
        _ => return error,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(way)]));
    error
}
