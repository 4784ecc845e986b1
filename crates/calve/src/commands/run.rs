//! `calve run`.

mod choice;
mod diff;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::{
    Beginning, CancelToken, Changes, ChangesUse, CloneOptions, EntryKind, Error, PrivateError, PrivateOverlay,
    ShownPath,
};
use calve_receipt::RunReceipt;
use calve_receipt::human::{count, counted, size};

use crate::cli::run::RunArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{clone_receipt, consent, home, output, real_path, sys};

/// A private copy of a tree, and what a command has changed in it.
struct PrivateCopy {
    overlay: PrivateOverlay,
    changes: Changes,
}

/// The fate of the changes.
#[derive(Default)]
struct CommandOutcome {
    kept: Option<PathBuf>,
    is_applied: bool,
}

pub(crate) fn run(arguments: &RunArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let here = std::env::current_dir()?;
    let tree = real_path::of(&arguments.tree.clone().unwrap_or_else(|| repository(&here)))?;
    let keep = arguments.keep.as_deref().map(|dst| outside(dst, &tree)).transpose()?;
    let mut overlay = PrivateOverlay::new(&tree, &changes_directory(Some(&tree))?)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if arguments.json || arguments.diff {
        command.stdout(std::io::stderr());
    }
    let terminal = asks(arguments).then(sys::TerminalModes::current).flatten();
    let beginning = (arguments.apply || asks(arguments)).then(Beginning::now);
    let ended = contained(&overlay, &mut command, &here, cancel).map(sys::command_end);
    if let Some(modes) = terminal {
        modes.restore();
    }
    let shown_for = if beginning.is_some() { ChangesUse::Apply } else { ChangesUse::Show };
    let (changes, untold) = match overlay.changes(shown_for) {
        Ok(changes) => (changes, None),
        Err(error) => (Changes::default(), Some(error)),
    };
    let mut copy = PrivateCopy { overlay, changes };
    let code = ended.as_ref().map(|end| end.as_ref().map_or(0, |(code, _)| *code));
    let outcome = match (code, &untold) {
        (Ok(code), None) => settle(arguments, &mut copy, keep, code, beginning.as_ref()),
        (Ok(code), Some(_)) if keep.is_some() || (beginning.is_some() && (!arguments.apply || code == 0)) => {
            set_aside(&mut copy);
            Ok(CommandOutcome::default())
        }
        _ => Ok(CommandOutcome::default()),
    };
    // The error before says more; the next run deletes the leftovers.
    let discarded = discard(copy.overlay);
    let code = ended?.map_or(0, |(code, _)| code);
    outcome?;
    match untold {
        // Nothing that was asked for is left out in silence.
        Some(error) if arguments.json || arguments.diff || arguments.keep.is_some() => return Err(error.into()),
        Some(error) if arguments.apply && code == 0 => return Err(error.into()),
        Some(error) => output::say(&format!("cannot tell what changed: {error}")),
        None => {}
    }
    discarded?;
    if code == 0 { Ok(()) } else { Err(Failure::Reported(code)) }
}

/// Returns whether the user is asked what to do with the changes.
fn asks(arguments: &RunArguments) -> bool {
    let RunArguments { keep, apply, discard, json, diff, .. } = arguments;
    keep.is_none() && ![apply, discard, json, diff].contains(&&true) && !output::is_quiet() && consent::can_ask()
}

/// Counts the changes. A file that has become a directory is a deleted one; directories count where nothing else has changed in kind.
fn summary(changes: &Changes) -> String {
    let is_file = |kind: Option<EntryKind>| kind.is_some_and(|kind| kind != EntryKind::Directory);
    let (mut changed, mut new, mut deleted, mut directories) = (0, 0, 0, 0);
    for change in changes.iter() {
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

fn discard(overlay: PrivateOverlay) -> Result<(), Failure> {
    if !overlay.discard()? {
        output::say(
            "processes of the command still run; their copy is deleted after they end, by the next `calve run`",
        );
    }
    Ok(())
}

/// Runs `command` in the private copy.
fn contained(
    overlay: &PrivateOverlay,
    command: &mut Command,
    here: &Path,
    cancel: &CancelToken,
) -> Result<ExitStatus, Failure> {
    let refused = overlay.contain(command, here)?;
    // Until here a signal was for nobody else.
    if cancel.is_cancelled() {
        return Err(Error::Interrupted.into());
    }
    let error = match sys::run_command(command) {
        Ok(status) => return Ok(status),
        Err(error) => error,
    };
    Err(match refused.reason(command, error) {
        Error::Private(PrivateError::NotStarted { program, source }) => {
            let source = sys::without_closed_directories(&program, source);
            Error::from(PrivateError::NotStarted { program, source })
        }
        refused => refused,
    }
    .into())
}

/// Says it where it took seconds.
fn tell_of_copying(copy: &PrivateCopy) {
    const MUCH: u64 = 1 << 28;
    let copied = copy.overlay.most_copied(&copy.changes);
    if copied >= MUCH {
        output::say(&format!("the overlay copied files before the command could change them: up to {}", size(copied)));
    }
}

/// Does with the changes what the user has asked for, and says so.
fn settle(
    arguments: &RunArguments,
    copy: &mut PrivateCopy,
    keep: Option<PathBuf>,
    code: u8,
    beginning: Option<&Beginning>,
) -> Result<CommandOutcome, Failure> {
    let told = summary(&copy.changes);
    if !output::is_quiet() {
        tell_of_copying(copy);
    }
    if let (false, Some(beginning)) = (arguments.apply, beginning) {
        output::say(&told);
        if copy.changes.is_empty() {
            return Ok(CommandOutcome::default());
        }
        return choice::settle(copy, beginning);
    }
    let is_applied = arguments.apply && code == 0;
    let cancel = sys::interrupt::listen_again()?;
    let kept = keep.as_ref().map_or(Ok(()), |dst| keep_copy(&copy.overlay, dst, &cancel));
    let printed = if arguments.diff { diff::print(copy, output::bytes) } else { Ok(()) };
    let done = kept.and_then(|()| match beginning.filter(|_| is_applied) {
        Some(beginning) => copy.overlay.apply(&copy.changes, beginning, &cancel),
        None => Ok(()),
    });
    if let Err(error) = done {
        if !keep_beside(copy, &error) {
            set_aside(copy);
        }
        return Err(error.into());
    }
    // Not before: the changes do not come back.
    printed?;
    let outcome = CommandOutcome { kept: keep, is_applied };
    if arguments.json {
        let kept = outcome.kept.as_deref();
        output::json(&RunReceipt::new(code, kept, outcome.is_applied, copy.overlay.tree(), &copy.changes))?;
    } else if !arguments.diff && !output::is_quiet() {
        output::say(&match (arguments.apply, outcome.is_applied) {
            (true, true) => format!("applied: {told}"),
            (true, false) => format!("the command failed, so nothing is applied: {told}"),
            (false, _) => told,
        });
    }
    Ok(outcome)
}

fn keep_copy(overlay: &PrivateOverlay, dst: &Path, cancel: &CancelToken) -> Result<(), Error> {
    let mut options = CloneOptions::default();
    options.cancel = cancel.clone();
    let report = overlay.keep(dst, &options)?;
    clone_receipt::attention(&report).iter().for_each(|line| output::say(line));
    Ok(())
}

/// Keeps a complete copy of what the command has left beside the tree, if that did not take the changes: they may be hours of work. Returns
/// whether nothing is lost.
fn keep_beside(copy: &PrivateCopy, error: &Error) -> bool {
    match error {
        Error::Private(PrivateError::HalfApplied { .. }) => return true,
        Error::Interrupted => return false,
        _ if copy.changes.is_empty() => return true,
        _ => {}
    }
    let dst = free_name_beside(copy.overlay.tree());
    match copy.overlay.keep(&dst, &CloneOptions::default()) {
        Ok(report) => {
            output::say(&format!("a copy with the command's changes is kept in `{}`", ShownPath(&dst)));
            clone_receipt::attention(&report).iter().for_each(|line| output::say(line));
            true
        }
        Err(error) => {
            output::failure(&error.into());
            false
        }
    }
}

/// Moves what the command has changed to where it stays, which takes neither time nor room on the disk.
fn set_aside(copy: &mut PrivateCopy) {
    let overlay = &mut copy.overlay;
    if overlay.changes(ChangesUse::Show).is_ok_and(|changes| changes.is_empty()) {
        return;
    }
    let aside = changes_directory(None).map(|directory| directory.join(overlay.tree().file_name().unwrap_or_default()));
    let aside = aside.map(|tree| free_name_beside(&tree));
    match aside.and_then(|dst| Ok(overlay.set_aside(&dst).map(|()| dst)?)) {
        Ok(dst) => output::say(&format!(
            "the entries that the command changed in `{}` are kept in `{}`; a character device stands for one that it deleted",
            ShownPath(overlay.tree()),
            ShownPath(&dst)
        )),
        Err(failure) => drop(output::failure(&failure)),
    }
}

fn free_name_beside(tree: &Path) -> PathBuf {
    let mut name = tree.file_name().unwrap_or_default().to_os_string();
    name.push(".run");
    let free = (1..).map(|number| match number {
        1 => tree.with_file_name(&name),
        number => tree.with_file_name(format!("{}-{number}", ShownPath(Path::new(&name)))),
    });
    free.take(1000).find(|dst| dst.symlink_metadata().is_err()).unwrap_or_else(|| tree.to_path_buf())
}

/// Returns the root of the repository around a directory, or the directory if there is none.
fn repository(here: &Path) -> PathBuf {
    let found = here.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    found.unwrap_or(here).to_path_buf()
}

/// Returns the absolute path of a destination. Fails if an overlay would hide it, or if it exists.
fn outside(dst: &Path, tree: &Path) -> Result<PathBuf, Failure> {
    let dst = std::path::absolute(dst)?;
    let parent = real_path::of(dst.parent().unwrap_or(&dst))?;
    if parent.starts_with(tree) {
        return Err(Failure::stated(
            USAGE,
            format!("`{}` is inside `{}`", ShownPath(&dst), ShownPath(tree)),
            "name a destination outside of the directory",
        ));
    }
    if dst.symlink_metadata().is_ok() {
        return Err(Error::DestinationExists(dst).into());
    }
    Ok(dst.file_name().map_or_else(|| dst.clone(), |name| parent.join(name)))
}

/// Returns where the changes are, while the command runs: not where the command would see them, in its tree.
fn changes_directory(tree: Option<&Path>) -> Result<PathBuf, Failure> {
    let home = home::directory()
        .map_err(|why| Failure::stated(FAILED, format!("no directory for changes: {why}"), "set CALVE_HOME"))?;
    let changes = home.join("runs");
    fs_err::create_dir_all(&changes)?;
    let real = real_path::of(&changes)?;
    if tree.is_some_and(|tree| real.starts_with(tree)) {
        return Err(Error::Private(PrivateError::ChangesInside(changes)).into());
    }
    Ok(changes)
}
