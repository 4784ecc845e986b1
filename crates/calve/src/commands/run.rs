//! `calve run`.

mod diff;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::{Beginning, Cancel, Change, CloneOptions, EntryKind, Error, PrivateError, PrivateOverlay, Shown};
use calve_receipt::RunReceipt;
use calve_receipt::human::{count, counted};

use crate::cli::run::RunArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{home, output, real_path, sys};

pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let here = std::env::current_dir()?;
    let tree = real_path::of(&arguments.tree.clone().unwrap_or_else(|| repository(&here)))?;
    let keep = arguments.keep.as_deref().map(|dst| outside(dst, &tree)).transpose()?;
    let overlay = PrivateOverlay::new(&tree, &changes(&tree)?)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if arguments.json || arguments.diff {
        command.stdout(std::io::stderr());
    }
    let beginning = arguments.apply.then(|| overlay.begin());
    let ended = contained(&overlay, &mut command, &here).map(sys::command_end);
    let changes = overlay.changes();
    let done = match (&ended, &changes) {
        (Ok(end), Ok(changes)) => {
            let beginning = beginning.filter(|_| end.is_none());
            settle(arguments, &overlay, (&tree, keep.as_deref()), changes, beginning.as_ref())
        }
        _ => Ok(()),
    };
    if !overlay.discard()? {
        output::say(
            "processes of the command still run; their copy is deleted after they end, by the next `calve run`",
        );
    }
    let code = ended?.map_or(0, |(code, _)| code);
    done?;
    let is_applied = arguments.apply && code == 0;
    let changes = match changes {
        Ok(changes) => changes,
        // Nothing that was asked for is left out in silence.
        Err(error) if arguments.json || arguments.diff || is_applied || keep.is_some() => return Err(error.into()),
        Err(error) => {
            output::say(&format!("cannot tell what changed: {error}"));
            return if code == 0 { Ok(()) } else { Err(Failure::Reported(code)) };
        }
    };
    if arguments.json {
        output::json(&RunReceipt::new(&tree, code, keep.as_deref(), is_applied, &changes))?;
    } else if !arguments.diff && !arguments.quiet {
        let told = summary(&changes);
        output::say(&match (arguments.apply, is_applied) {
            (true, true) => format!("applied: {told}"),
            (true, false) => format!("the command failed, so nothing is applied: {told}"),
            (false, _) => told,
        });
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
fn contained(overlay: &PrivateOverlay, command: &mut Command, here: &Path) -> Result<ExitStatus, Failure> {
    let refused = overlay.contain(command, here)?;
    let error = match sys::run_command(command) {
        Ok(status) => return Ok(status),
        Err(error) => error,
    };
    Err(Error::Private(refused.reason(command, error)).into())
}

/// Does with the changes what the user has asked for.
fn settle(
    arguments: &RunArguments,
    overlay: &PrivateOverlay,
    (tree, keep): (&Path, Option<&Path>),
    changes: &[Change],
    beginning: Option<&Beginning>,
) -> Result<(), Failure> {
    if let Some(dst) = keep {
        overlay.keep(dst, &CloneOptions::default())?;
    }
    if arguments.diff {
        diff::print(overlay, changes)?;
    }
    beginning.map_or(Ok(()), |beginning| apply(overlay, tree, changes, beginning))
}

/// Makes the changes in the tree. If it does not take them, keeps a complete copy beside it: they may be hours of work.
fn apply(overlay: &PrivateOverlay, tree: &Path, changes: &[Change], beginning: &Beginning) -> Result<(), Failure> {
    let error = match overlay.apply(changes, beginning, &Cancel::default()) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if let Error::Private(PrivateError::ChangedMeanwhile(_) | PrivateError::NotApplied { .. }) = error {
        let mut name = tree.file_name().unwrap_or_default().to_os_string();
        name.push(".run");
        let free = (1..).map(|number| match number {
            1 => tree.with_file_name(&name),
            number => tree.with_file_name(format!("{}-{number}", Shown(Path::new(&name)))),
        });
        let dst = free.take(1000).find(|dst| dst.symlink_metadata().is_err()).unwrap_or_else(|| tree.to_path_buf());
        overlay.keep(&dst, &CloneOptions::default())?;
        output::say(&format!("the copy that the command left is kept in `{}`", Shown(&dst)));
    }
    Err(error.into())
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
