//! Configures agents to make worktrees with Calve and to use its server.
//!
//! Only members in a file's syntax tree are added and removed; everything else stays, with its comments. A file with an
//! error, or with another value at that place, is left alone.

mod agents;
mod edit;
mod file;
mod json_text;
mod toml_text;

pub use agents::{Agent, Direction};
pub use edit::{Edit, FileChange, FileLeftReason};
pub use file::apply;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use calve_git::Git;

use agents::{Content, Part};

/// Plans the changes to an agent's files in the worktree at `root`. Changes nothing.
pub fn plan(agent: Agent, root: &Path, direction: Direction) -> io::Result<Vec<FileChange>> {
    agents::parts(agent, root, direction).into_iter().map(|part| planned(root, part, direction)).collect()
}

fn planned(root: &Path, part: Part, direction: Direction) -> io::Result<FileChange> {
    let before = match file::read(root, &part.path)? {
        Ok(before) => before,
        Err(why) => return Ok(FileChange { path: part.path, before: None, outcome: Edit::LeftAlone(why) }),
    };
    let text = before.as_deref();
    let installed = |text: Option<&str>| match &part.content {
        Content::Json(members) => json_text::with(text, members),
        Content::Toml { tables, text: own } => toml_text::with(text, own, tables),
    };
    // Removing Calve's part cannot tell an empty object or table of the user's from a missing one, but the commit can.
    let is_origin = |origin: &String| installed(Some(origin)).ok() == text.map(|text| Edit::Write(text.to_owned()));
    let outcome = match (direction, &part.content) {
        (Direction::Install, _) => installed(text),
        (Direction::Uninstall, content) => match (committed(root, &part.path).filter(is_origin), content) {
            (Some(origin), _) => Ok(Edit::Write(origin)),
            (None, Content::Json(members)) => json_text::without(text, members),
            (None, Content::Toml { tables, text: own }) => toml_text::without(text, own, tables),
        },
    };
    let outcome = outcome.unwrap_or_else(Edit::LeftAlone);
    Ok(FileChange { path: part.path, before, outcome })
}

fn committed(root: &Path, path: &Path) -> Option<String> {
    let mut name = OsString::from("HEAD:");
    name.push(path);
    let blob = Git::at(root).run(&["cat-file".as_ref(), "blob".as_ref(), name.as_os_str()]);
    String::from_utf8(blob.ok()?).ok()
}
