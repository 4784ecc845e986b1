//! The question on a terminal what is to become of the changes.

use std::io;
use std::path::{Path, PathBuf};

use calve_core::{Beginning, CancelToken, Error, PrivateError, PrivateOverlay, ShownPath};

use super::{CommandOutcome, Copies, diff, keep_beside, keep_copy, outside, set_aside, summary};
use crate::failure::Failure;
use crate::sys::Answers;
use crate::{output, sys};

/// Asks until there is an answer, and does as it says. Ctrl-C and Ctrl-D discard the changes; an empty line, which may have been meant for the
/// command, does not. If the user cannot answer, the changes are set aside.
pub(super) fn settle(copies: &mut Copies, beginning: &Beginning) -> Result<CommandOutcome, Failure> {
    ask(copies, beginning).unwrap_or_else(|_| {
        set_aside(copies);
        Ok(CommandOutcome::default())
    })
}

/// Fails if nobody can answer.
fn ask(copies: &mut Copies, beginning: &Beginning) -> io::Result<Result<CommandOutcome, Failure>> {
    let question = match copies.len() {
        1 => "apply it, keep a copy, show the diff, or discard it? [a/k/d/n]",
        _ => "apply it, show the diff, or discard it? [a/d/n]",
    };
    let mut answers = Answers::new()?;
    loop {
        let cancel = sys::interrupt::listen_again()?;
        output::say(question);
        let Some(answer) = answers.line()? else {
            output::say("discarded");
            return Ok(Ok(CommandOutcome::default()));
        };
        match answer.trim().to_ascii_lowercase().as_str() {
            "a" | "apply" => match PrivateOverlay::apply(copies, beginning, &cancel) {
                Ok(()) => {
                    output::say("applied");
                    return Ok(Ok(CommandOutcome { is_applied: true, ..CommandOutcome::default() }));
                }
                Err(error @ Error::Private(PrivateError::ChangedSinceShown(_))) => {
                    output::say(&error.to_string());
                    if let Err(error) = list_again(copies) {
                        set_aside(copies);
                        return Ok(Err(error.into()));
                    }
                    output::say(&summary(copies));
                }
                Err(error) => {
                    let is_kept = keep_beside(copies, &error);
                    let failure = Failure::from(error);
                    if is_kept {
                        return Ok(Err(failure));
                    }
                    output::failure(&failure);
                }
            },
            "k" | "keep" if copies.len() == 1 => {
                if let Some(kept) = keep_where_asked(copies, &answers, &cancel)? {
                    return Ok(Ok(CommandOutcome { kept: Some(kept), ..CommandOutcome::default() }));
                }
            }
            "d" | "diff" => {
                let printed = diff::print(copies, |bytes| {
                    output::say_bytes(bytes);
                    Ok(())
                });
                if let Err(failure) = printed {
                    output::failure(&failure);
                }
            }
            "n" | "no" | "discard" => {
                output::say("discarded");
                return Ok(Ok(CommandOutcome::default()));
            }
            _ => {}
        }
        if cancel.is_cancelled() {
            // Ctrl-C has stopped the command, not the questions.
            answers = Answers::new()?;
        }
    }
}

fn list_again(copies: &mut Copies) -> Result<(), Error> {
    let shown = Beginning::now();
    for (overlay, changes) in copies {
        *changes = overlay.changes(Some(&shown))?;
    }
    Ok(())
}

/// Asks where to keep the copy, and does. `None`: there is no answer that will do.
fn keep_where_asked(copies: &Copies, answers: &Answers, cancel: &CancelToken) -> io::Result<Option<PathBuf>> {
    let Some((overlay, _)) = copies.first() else { return Ok(None) };
    output::say("keep it at:");
    let Some(answer) = answers.line()?.filter(|answer| !answer.trim().is_empty()) else { return Ok(None) };
    let kept = outside(Path::new(answer.trim()), &[overlay.tree().to_path_buf()]).and_then(|dst| {
        keep_copy(overlay, &dst, cancel)?;
        Ok(dst)
    });
    match kept {
        Ok(dst) => {
            output::say(&format!("kept in `{}`", ShownPath(&dst)));
            Ok(Some(dst))
        }
        Err(failure) => {
            output::failure(&failure);
            Ok(None)
        }
    }
}
