//! Parses the command line, with better errors than clap's for `git worktree` words that Calve lacks and for numbers.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};

pub(crate) fn parse(parser: &mut Command, line: &[OsString]) -> Result<ArgMatches, clap::Error> {
    parser.try_get_matches_from_mut(line).map_err(|error| {
        let joined = joined(&error, line).and_then(|joined| parser.try_get_matches_from_mut(joined).err());
        let of_value = joined.filter(|error| error.kind() == ErrorKind::ValueValidation);
        explain(in_words(of_value.unwrap_or(error)), line)
    })
}

/// Joins an option to a value that clap takes for an option, as in `--ttl -5`, to get the error about the value.
fn joined(error: &clap::Error, line: &[OsString]) -> Option<Vec<OsString>> {
    let unknown = error.get(ContextKind::InvalidArg)?.to_string();
    let is_number = unknown.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit());
    let at = line.iter().position(|word| is_number && word.to_string_lossy().starts_with(&unknown))?;
    let option = line[at.checked_sub(1)?].to_str()?;
    if !option.starts_with("--") || option.contains('=') {
        return None;
    }
    let mut value = OsString::from(format!("{option}="));
    value.push(&line[at]);
    Some([&line[..at - 1], &[value], &line[at + 1..]].concat())
}

/// Explains how to write a number; the standard library's error does not.
fn in_words(error: clap::Error) -> clap::Error {
    let number = error.source().and_then(|source| source.downcast_ref::<ParseIntError>());
    if number.is_none_or(|number| *number.kind() != IntErrorKind::InvalidDigit) {
        return error;
    }
    let said = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (value, option) = (said(ContextKind::InvalidValue), said(ContextKind::InvalidArg));
    let text = format!("invalid value '{value}' for '{option}': it must be a whole number without a sign\n");
    clap::Error::raw(error.kind(), text)
}

/// Suggests Calve's equivalent in the error about a command line that `git worktree` would accept.
fn explain(mut error: clap::Error, line: &[OsString]) -> clap::Error {
    let words: Vec<_> = line.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(|word| &**word).filter(|word| !["-q", "--quiet"].contains(word)).collect();
    let ["worktree" | "wt", command, rest @ ..] = &words[..] else { return error };
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let way = match *command {
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
