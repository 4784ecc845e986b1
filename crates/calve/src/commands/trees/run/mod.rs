mod choice;
mod copy;
mod diff;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use calve_core::error::PrivateError;
use calve_core::overlay_run::{BaseState, Changes, ChangesUse, PrivateOverlay};
use calve_core::{CancelToken, Error};
use calve_receipt::human::size;
use calve_receipt::{RunReceipt, path};

use self::copy::{PrivateCopy, changes_directory, keep_beside, keep_copy, outside, say_set_aside, set_aside, summary};
use crate::cli::run::RunArguments;
use crate::failure::Failure;
use crate::{consent, output, real_path, sys};

pub(crate) fn run(arguments: &RunArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let here = real_path::here()?;
    // Outside of a repository, the directory itself.
    let root = here.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    let tree = real_path::resolve(arguments.tree.as_deref().or(root).unwrap_or(&here))?;
    let keep = arguments.keep.as_deref().map(|dst| outside(dst, &tree)).transpose()?;
    let directory = changes_directory(Some(&tree))?;
    say_set_aside(&directory, &tree);
    let mut overlay = PrivateOverlay::new(&tree, &directory)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if arguments.json || arguments.diff {
        command.stdout(output::for_command());
    }
    let terminal = asks(arguments).then(sys::TerminalModes::current).flatten();
    let base = (arguments.apply || asks(arguments)).then(|| overlay.base_state()).transpose()?;
    let ended = contained(&overlay, &mut command, &here, cancel).map(sys::command_end);
    if let Some(modes) = terminal {
        modes.restore();
    }
    let shown_for = if base.is_some() { ChangesUse::Apply } else { ChangesUse::Show };
    let (changes, unknown) = match overlay.changes(shown_for) {
        Ok(changes) => (changes, None),
        Err(error) => (Changes::default(), Some(error)),
    };
    let mut copy = PrivateCopy { overlay, changes };
    let code = ended.as_ref().map(|end| end.as_ref().map_or(0, |end| end.code));
    let outcome = match (code, &unknown) {
        (Ok(code), None) => finish(arguments, &mut copy, keep, code, base.as_ref()),
        (Ok(code), Some(_)) if keep.is_some() || (base.is_some() && (!arguments.apply || code == 0)) => {
            set_aside(&mut copy);
            Ok(())
        }
        _ => Ok(()),
    };
    // An earlier error says more; the next run deletes the leftovers.
    let discarded = discard(copy.overlay);
    let code = ended?.map_or(0, |end| end.code);
    outcome?;
    match unknown {
        // Never omit requested output silently.
        Some(error) if arguments.json || arguments.diff || arguments.keep.is_some() => return Err(error.into()),
        Some(error) if arguments.apply && code == 0 => return Err(error.into()),
        Some(error) => output::warn(&format!("cannot tell what changed: {error}")),
        None => {}
    }
    discarded?;
    if code == 0 { Ok(()) } else { Err(Failure::reported(code)) }
}

fn asks(arguments: &RunArguments) -> bool {
    let RunArguments { keep, apply, discard, json, diff, .. } = arguments;
    keep.is_none() && ![apply, discard, json, diff].contains(&&true) && !output::is_quiet() && consent::can_ask()
}

fn discard(overlay: PrivateOverlay) -> Result<(), Failure> {
    if !overlay.discard()? {
        output::note(
            "processes of the command still run; their copy is deleted after they end, by the next `calve run`",
        );
    }
    Ok(())
}

fn contained(
    overlay: &PrivateOverlay,
    command: &mut Command,
    here: &Path,
    cancel: &CancelToken,
) -> Result<ExitStatus, Failure> {
    let refused = overlay.contain(command, here)?;
    // Until here a signal could only be meant for this process.
    if cancel.is_cancelled() {
        return Err(Error::Interrupted.into());
    }
    Ok(sys::run_command(command).map_err(|error| match refused.reason(command, error) {
        Error::Private(PrivateError::NotStarted { program, source }) => {
            let source = sys::without_closed_directories(&program, source);
            Error::from(PrivateError::NotStarted { program, source })
        }
        refused => refused,
    })?)
}

/// Mentions copying that took seconds.
fn tell_of_copying(copy: &PrivateCopy) {
    const MUCH: u64 = 1 << 28;
    let copied = copy.overlay.most_copied(&copy.changes);
    if copied >= MUCH {
        output::note(&format!("up to {} was copied before the command could change it", size(copied)));
    }
}

/// Applies, keeps or drops the changes as requested, and reports it.
fn finish(
    arguments: &RunArguments,
    copy: &mut PrivateCopy,
    keep: Option<PathBuf>,
    code: u8,
    base: Option<&BaseState>,
) -> Result<(), Failure> {
    let summary = summary(&copy.changes);
    tell_of_copying(copy);
    if let (false, Some(base)) = (arguments.apply, base) {
        output::note(&summary);
        if copy.changes.is_empty() {
            return Ok(());
        }
        return choice::resolve(copy, base);
    }
    let is_applied = arguments.apply && code == 0;
    let cancel = sys::interrupt::listen_again()?;
    let kept = keep.as_ref().map(|dst| keep_copy(&copy.overlay, dst, &cancel)).transpose();
    let printed = if arguments.diff { diff::print(copy, output::bytes) } else { Ok(()) };
    let done = kept.and_then(|kept| {
        let applied = base.filter(|_| is_applied);
        applied.map_or(Ok(()), |base| copy.overlay.apply(&copy.changes, base, &cancel)).map(|()| kept)
    });
    let kept = match done {
        Ok(kept) => kept,
        Err(error) => {
            if !keep_beside(copy, &error) {
                set_aside(copy);
            }
            return Err(error.into());
        }
    };
    // Report a failed write only now, because it must not keep the changes from being kept or applied.
    printed?;
    if arguments.json {
        output::json(&RunReceipt {
            exit_code: code,
            kept: kept.as_ref().map(|report| path(&report.dst)),
            clone: kept,
            applied: is_applied,
            tree: path(copy.overlay.tree()),
            entries: copy.changes.to_vec(),
        })?;
    }
    match (arguments.apply, is_applied) {
        (true, true) => output::note(&format!("applied: {summary}")),
        (true, false) => output::warn(&format!("the command failed, so nothing is applied: {summary}")),
        (false, _) => output::note(&summary),
    }
    Ok(())
}
