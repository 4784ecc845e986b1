//! Checks that the server did as it was asked. If not, git still exits with 0: it warns, and has everything sent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use memchr::memmem;
use serde::Serialize;

use crate::error::Error;
use crate::git::Git;
use crate::remote::clone::purpose::Property;
use crate::remote::clone::recipe::Recipe;
use crate::remote::error::RemoteError;

pub(crate) enum Verdict {
    Honoured,
    Ignored(String),
    /// Not asked, or without evidence: an empty repository.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingObjects {
    /// The number of objects still on the server that were counted in time.
    #[serde(rename = "objects_missing")]
    pub objects: u64,
    /// True if all of them were counted in the time that there was.
    #[serde(rename = "objects_missing_counted")]
    pub counted: bool,
}

/// Checks a new repository before its checkout, after which a filter could not be told from its absence.
pub(crate) fn verify(property: Property, recipe: &Recipe, tree: &Path) -> Result<Verdict, RemoteError> {
    let git = Git::at(tree);
    match (property, recipe.depth, recipe.filter) {
        (Property::Depth, None, _) | (Property::Filter, _, None) => Ok(Verdict::Unknown),
        (Property::Depth, Some(depth), _) => match git.succeeds(&["rev-parse", "--quiet", "--verify", "HEAD"])? {
            true => depth_of(&git, depth),
            false => Ok(Verdict::Unknown),
        },
        (Property::Filter, ..) => filter_of(&git),
    }
}

fn depth_of(git: &Git, depth: u32) -> Result<Verdict, RemoteError> {
    let shallow = git.line(&["rev-parse", "--is-shallow-repository"])? == "true";
    let most = format!("--max-count={}", u64::from(depth) + 1);
    let commits = git.line(&["rev-list", "--count", "--first-parent", &most, "HEAD"])?;
    let commits: u64 = commits.to_str().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    // A history no longer than the depth is not cut.
    if commits <= u64::from(depth) {
        return Ok(Verdict::Honoured);
    }
    let state = if shallow { "shallow, but deeper than asked for" } else { "not shallow" };
    Ok(Verdict::Ignored(format!("the repository is {state}: there are more than {depth} commits behind HEAD")))
}

/// Judges the filter: before its checkout, a partial clone has no contents of files. HEAD may name no commit, or one
/// without files: then other branches tell.
fn filter_of(git: &Git) -> Result<Verdict, RemoteError> {
    let tips = git.run(&["for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes"])?;
    let tips = String::from_utf8_lossy(&tips);
    for tip in git.answer(&["rev-parse", "--quiet", "--verify", "HEAD"])?.as_deref().into_iter().chain(tips.lines()) {
        let listed = git.run(&["rev-list", "--objects", "--missing=print", "--max-count=1", tip])?;
        if listed.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"?")) {
            return Ok(Verdict::Honoured);
        }
        let files = git.run(&["ls-tree", "-r", "-z", tip])?;
        let files = files.split(|byte| *byte == 0).filter(|entry| memmem::find(entry, b" blob ").is_some()).count();
        if files > 0 {
            return Ok(Verdict::Ignored(format!(
                "the files of a commit came with their contents although none were asked for (files: {files})"
            )));
        }
    }
    Ok(Verdict::Unknown)
}

/// Counts the objects that a partial clone has left on the server, for a few seconds at most.
pub(crate) fn count_missing(tree: &Path, head: Option<&str>) -> Result<MissingObjects, RemoteError> {
    let git = Git::at(tree);
    let mut command = git.command();
    command.args(["rev-list", "--objects", "--missing=print", "--all"]).args(head);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(Error::start(tree))?;
    let Some(pipe) = child.stdout.take() else { return Ok(MissingObjects { objects: 0, counted: false }) };
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut objects = 0;
    let count = || -> std::io::Result<bool> {
        for (at, line) in BufReader::new(pipe).split(b'\n').enumerate() {
            objects += u64::from(line?.starts_with(b"?"));
            if at % 1024 == 1023 && Instant::now() > deadline {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let is_whole = count();
    if !matches!(is_whole, Ok(true)) {
        let _ = child.kill();
    }
    let status = child.wait()?;
    Ok(MissingObjects { objects, counted: is_whole? && status.success() })
}
