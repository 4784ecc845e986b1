//! `calve run`.

mod choice;
mod diff;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::{
    Beginning, CancelToken, Changes, CloneOptions, EntryKind, Error, Network, PrivateError, PrivateOverlay, ShownPath,
};
use calve_receipt::RunReceipt;
use calve_receipt::human::{count, counted, size};

use super::db;
use crate::cli::run::RunArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{clone_receipt, consent, home, output, real_path, sys};

/// The changes that a command has left of a tree.
type Copies = [(PrivateOverlay, Changes)];

/// The fate of the changes.
#[derive(Default)]
struct CommandOutcome {
    kept: Option<PathBuf>,
    is_applied: bool,
}

pub(crate) fn run(arguments: &RunArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let here = std::env::current_dir()?;
    let trees = trees(arguments, &here)?;
    let keep = arguments.keep.as_deref().map(|dst| outside(dst, &trees)).transpose()?;
    let overlays = overlays(&trees)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if arguments.json || arguments.diff {
        command.stdout(std::io::stderr());
    }
    let server =
        arguments.db.as_deref().map(|template| db::run::server_for(template, &mut command, cancel)).transpose();
    let server = match server {
        Ok(server) => server,
        Err(failure) => {
            let _ = discard(overlays);
            return Err(failure);
        }
    };
    let network = if arguments.net.is_some() { Network::None } else { Network::Shared };
    let terminal = asks(arguments).then(sys::TerminalModes::current).flatten();
    let beginning = (arguments.apply || asks(arguments)).then(Beginning::now);
    let ended = contained(&overlays, &mut command, &here, network, cancel).map(sys::command_end);
    if let Some(modes) = terminal {
        modes.restore();
    }
    let stopped = server.map_or(Ok(()), |server| server.stop().map(|_| ()));
    let shown = beginning.is_some().then(Beginning::now);
    let changes: Result<Vec<_>, _> = overlays.iter().map(|overlay| overlay.changes(shown.as_ref())).collect();
    let code = ended.as_ref().map(|end| end.as_ref().map_or(0, |(code, _)| *code));
    let (mut copies, untold) = match changes {
        Ok(changes) => (overlays.into_iter().zip(changes).collect::<Vec<_>>(), None),
        Err(error) => (overlays.into_iter().map(|overlay| (overlay, Changes::default())).collect(), Some(error)),
    };
    let outcome = match (code, &untold) {
        (Ok(code), None) => settle(arguments, &mut copies, keep, code, beginning.as_ref()),
        (Ok(code), Some(_)) if keep.is_some() || (beginning.is_some() && (!arguments.apply || code == 0)) => {
            set_aside(&copies);
            Ok(CommandOutcome::default())
        }
        _ => Ok(CommandOutcome::default()),
    };
    // The error before says more; the next run deletes the leftovers.
    let discarded = discard(copies.into_iter().map(|(overlay, _)| overlay));
    let code = ended?.map_or(0, |(code, _)| code);
    outcome?;
    stopped?;
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
    let RunArguments { keep, apply, discard, json, diff, quiet, .. } = arguments;
    keep.is_none() && ![apply, discard, json, diff, quiet].contains(&&true) && consent::can_ask()
}

/// Counts the changes. A file that has become a directory is a deleted one; directories count where nothing else has changed in kind.
fn summary(copies: &Copies) -> String {
    let is_file = |kind: Option<EntryKind>| kind.is_some_and(|kind| kind != EntryKind::Directory);
    let (mut changed, mut new, mut deleted, mut directories) = (0, 0, 0, 0);
    for change in copies.iter().flat_map(|(_, changes)| changes.iter()) {
        *match (is_file(change.before), is_file(change.after)) {
            (true, true) => &mut changed,
            (false, true) => &mut new,
            (true, false) => &mut deleted,
            (false, false) => &mut directories,
        } += 1;
    }
    if copies.iter().all(|(_, changes)| changes.is_empty()) {
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

/// Makes a private copy of each tree.
fn overlays(trees: &[PathBuf]) -> Result<Vec<PrivateOverlay>, Failure> {
    let changes = changes(trees)?;
    let mut overlays = Vec::new();
    for tree in trees {
        match PrivateOverlay::new(tree, &changes) {
            Ok(overlay) => overlays.push(overlay),
            Err(error) => {
                let _ = discard(overlays);
                return Err(error.into());
            }
        }
    }
    Ok(overlays)
}

fn discard(overlays: impl IntoIterator<Item = PrivateOverlay>) -> Result<(), Failure> {
    let gone: Vec<_> = overlays.into_iter().map(PrivateOverlay::discard).collect();
    if gone.into_iter().collect::<Result<Vec<_>, _>>()?.contains(&false) {
        output::say(
            "processes of the command still run; their copy is deleted after they end, by the next `calve run`",
        );
    }
    Ok(())
}

/// Runs `command` in the private copies.
fn contained(
    overlays: &[PrivateOverlay],
    command: &mut Command,
    here: &Path,
    network: Network,
    cancel: &CancelToken,
) -> Result<ExitStatus, Failure> {
    let refused = PrivateOverlay::contain(overlays, command, here, network)?;
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
fn tell_of_copying(copies: &Copies) {
    const MUCH: u64 = 1 << 28;
    let copied: u64 = copies.iter().map(|(overlay, changes)| overlay.most_copied(changes)).sum();
    if copied >= MUCH {
        output::say(&format!("the overlay copied files before the command could change them: up to {}", size(copied)));
    }
}

/// Does with the changes what the user has asked for, and says so.
fn settle(
    arguments: &RunArguments,
    copies: &mut Copies,
    keep: Option<PathBuf>,
    code: u8,
    beginning: Option<&Beginning>,
) -> Result<CommandOutcome, Failure> {
    let told = summary(copies);
    if !arguments.quiet {
        tell_of_copying(copies);
    }
    if let (false, Some(beginning)) = (arguments.apply, beginning) {
        output::say(&told);
        if copies.iter().all(|(_, changes)| changes.is_empty()) {
            return Ok(CommandOutcome::default());
        }
        return choice::settle(copies, beginning);
    }
    let is_applied = arguments.apply && code == 0;
    let cancel = sys::interrupt::listen_again()?;
    let kept = keep.as_ref().map_or(Ok(()), |dst| keep_copy(&copies[0].0, dst, &cancel));
    let printed = if arguments.diff { diff::print(copies, output::bytes) } else { Ok(()) };
    let done = kept.and_then(|()| match beginning.filter(|_| is_applied) {
        Some(beginning) => PrivateOverlay::apply(copies, beginning, &cancel),
        None => Ok(()),
    });
    if let Err(error) = done {
        if !keep_beside(copies, &error) {
            set_aside(copies);
        }
        return Err(error.into());
    }
    // Not before: the changes do not come back.
    printed?;
    let outcome = CommandOutcome { kept: keep, is_applied };
    if arguments.json {
        let changes = copies.iter().map(|(overlay, changes)| (overlay.tree(), &**changes));
        output::json(&RunReceipt::new(code, outcome.kept.as_deref(), outcome.is_applied, changes))?;
    } else if !arguments.diff && !arguments.quiet {
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

/// Keeps complete copies of what the command has left beside the trees, if these did not take the changes: they may be hours of work. Returns
/// whether nothing is lost.
fn keep_beside(copies: &Copies, error: &Error) -> bool {
    match error {
        Error::Private(PrivateError::HalfApplied { .. }) => return true,
        Error::Interrupted => return false,
        _ => {}
    }
    let mut is_kept = true;
    for (overlay, _) in copies.iter().filter(|(_, changes)| !changes.is_empty()) {
        let dst = free_name_beside(overlay.tree());
        match overlay.keep(&dst, &CloneOptions::default()) {
            Ok(report) => {
                output::say(&format!("a copy with the command's changes is kept in `{}`", ShownPath(&dst)));
                clone_receipt::attention(&report).iter().for_each(|line| output::say(line));
            }
            Err(error) => {
                is_kept = false;
                output::failure(&error.into());
            }
        }
    }
    is_kept
}

/// Moves what the command has changed to where it stays, which takes neither time nor room on the disk.
fn set_aside(copies: &Copies) {
    let is_changed = |overlay: &&PrivateOverlay| !overlay.changes(None).is_ok_and(|changes| changes.is_empty());
    for overlay in copies.iter().map(|(overlay, _)| overlay).filter(is_changed) {
        let aside = changes(&[]).map(|directory| directory.join(overlay.tree().file_name().unwrap_or_default()));
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

/// Returns the directories of which the command sees copies, without links.
fn trees(arguments: &RunArguments, here: &Path) -> Result<Vec<PathBuf>, Failure> {
    if arguments.tree.is_empty() {
        return Ok(vec![real_path::of(&repository(here))?]);
    }
    let trees = arguments.tree.iter().map(|tree| real_path::of(tree)).collect::<Result<Vec<_>, _>>()?;
    for (number, tree) in trees.iter().enumerate() {
        let mut others = trees.iter().enumerate().filter(|(other, _)| *other != number);
        if let Some((_, around)) = others.find(|(_, other)| tree.starts_with(other)) {
            return Err(Failure::stated(
                USAGE,
                format!("`{}` is inside `{}`, or is the same", ShownPath(tree), ShownPath(around)),
                "name directories none of which is inside another one",
            ));
        }
    }
    if arguments.keep.is_some() && trees.len() > 1 {
        return Err(Failure::stated(
            USAGE,
            "`--keep` makes one copy, but there are several directories",
            "use `--apply`, or name one directory",
        ));
    }
    Ok(trees)
}

/// Returns the root of the repository around a directory, or the directory if there is none.
fn repository(here: &Path) -> PathBuf {
    let found = here.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    found.unwrap_or(here).to_path_buf()
}

/// Returns the absolute path of a destination. Fails if an overlay would hide it, or if it exists.
fn outside(dst: &Path, trees: &[PathBuf]) -> Result<PathBuf, Failure> {
    let dst = std::path::absolute(dst)?;
    let parent = real_path::of(dst.parent().unwrap_or(&dst))?;
    if let Some(tree) = trees.iter().find(|tree| parent.starts_with(tree)) {
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

/// Returns where the changes are, while the command runs: not where the command would see them.
fn changes(trees: &[PathBuf]) -> Result<PathBuf, Failure> {
    let home = home::directory()
        .map_err(|why| Failure::stated(FAILED, format!("no directory for changes: {why}"), "set CALVE_HOME"))?;
    let changes = home.join("runs");
    fs_err::create_dir_all(&changes)?;
    let real = real_path::of(&changes)?;
    if trees.iter().any(|tree| real.starts_with(tree)) {
        return Err(Error::Private(PrivateError::ChangesInside(changes)).into());
    }
    Ok(changes)
}
