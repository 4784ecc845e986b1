//! `calve run`.

mod diff;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::{Change, EntryKind, Error, PrivateError, PrivateOverlay, Shown};
use calve_receipt::RunReceipt;
use calve_receipt::human::{count, counted};

use crate::cli::run::RunArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{home, output, real_path, sys};

pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let here = std::env::current_dir()?;
    let tree = real_path::of(&arguments.tree.clone().unwrap_or_else(|| repository(&here)))?;
    let keep = arguments.keep.as_deref().map(|dst| outside(dst, &tree)).transpose()?;
    let mut overlay = PrivateOverlay::new(&tree, &changes(&tree)?)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if arguments.json || arguments.diff {
        command.stdout(std::io::stderr());
    }
    let ended = contained(&mut overlay, &mut command, &here).map(sys::command_end);
    let kept = match (&ended, &keep) {
        (Ok(_), Some(dst)) => copy(&mut overlay, &tree, dst),
        _ => Ok(()),
    };
    let changes = overlay.changes();
    let printed = match &changes {
        Ok(changes) if arguments.diff && ended.is_ok() => diff::print(&overlay, changes),
        _ => Ok(()),
    };
    if !overlay.discard()? {
        output::say(
            "processes of the command still run; their copy is deleted after they end, by the next `calve run`",
        );
    }
    let code = ended?.map_or(0, |(code, _)| code);
    kept?;
    printed?;
    if arguments.json {
        output::json(&RunReceipt::new(&tree, code, keep.as_deref(), &changes?))?;
    } else if arguments.diff {
        changes?;
    } else if !arguments.quiet {
        output::say(&changes.map_or_else(|error| format!("cannot tell what changed: {error}"), |all| summary(&all)));
    }
    if code == 0 { Ok(()) } else { Err(Failure::Reported(code)) }
}

/// Counts the changes. A file that has become a directory is a deleted one; directories count where nothing else has changed in kind.
fn summary(changes: &[Change]) -> String {
    let is_file = |kind: Option<EntryKind>| kind.is_some_and(|kind| kind != EntryKind::Directory);
    let (mut changed, mut new, mut deleted, mut directories) = (0, 0, 0, 0);
    for change in changes {
        *match (is_file(change.before), is_file(change.after)) {
            (true, true) => &mut changed,
            (false, true) => &mut new,
            (true, false) => &mut deleted,
            (false, false) => &mut directories,
        } += 1;
    }
    if changes.is_empty() {
        return "nothing changed".into();
    }
    let mut text = format!("{} changed, {} new, {} deleted", counted(changed, "file"), count(new), count(deleted));
    match directories {
        0 => {}
        1 => text += "; 1 directory",
        more => text += &format!("; {} directories", count(more)),
    }
    text
}

/// Runs `command` in the private copy.
fn contained(overlay: &mut PrivateOverlay, command: &mut Command, here: &Path) -> Result<ExitStatus, Failure> {
    let refused = overlay.contain(command, here)?;
    let error = match sys::run_command(command) {
        Ok(status) => return Ok(status),
        Err(error) => error,
    };
    Err(Error::Private(refused.reason(command, error)).into())
}

/// Makes the complete copy, with the program itself, which sees what the command saw.
fn copy(overlay: &mut PrivateOverlay, tree: &Path, dst: &Path) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["cp", "-q", "-T"]).args([tree, dst]);
    let status = contained(overlay, &mut command, Path::new("/"))?;
    sys::command_end(status).map_or(Ok(()), |(code, _)| Err(Failure::Reported(code)))
}

/// The repository around a directory, else the directory.
fn repository(here: &Path) -> PathBuf {
    let found = here.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    found.unwrap_or(here).to_path_buf()
}

/// The absolute path of a destination that the overlay does not hide.
fn outside(dst: &Path, tree: &Path) -> Result<PathBuf, Failure> {
    let dst = std::path::absolute(dst)?;
    let parent = real_path::of(dst.parent().unwrap_or(&dst))?;
    if parent.starts_with(tree) {
        return Err(Failure::stated(
            USAGE,
            format!("`{}` is inside `{}`", Shown(&dst), Shown(tree)),
            "name a destination outside of the directory",
        ));
    }
    if dst.symlink_metadata().is_ok() {
        return Err(Error::DestinationExists(dst).into());
    }
    Ok(dst.file_name().map_or_else(|| dst.clone(), |name| parent.join(name)))
}

/// Where the changes are, while the command runs: not where the command would see them.
fn changes(tree: &Path) -> Result<PathBuf, Failure> {
    let home = home::directory()
        .map_err(|why| Failure::stated(FAILED, format!("no directory for changes: {why}"), "set CALVE_HOME"))?;
    let changes = home.join("runs");
    fs_err::create_dir_all(&changes)?;
    if real_path::of(&changes)?.starts_with(tree) {
        return Err(Error::Private(PrivateError::ChangesInside(changes)).into());
    }
    Ok(changes)
}
