//! The question on a terminal what is to become of the changes.

use std::io;
use std::path::{Path, PathBuf};

use calve_core::{Beginning, CancelToken, ChangesUse, Error, PrivateError, ShownPath};

use super::{CommandOutcome, PrivateCopy, diff, keep_beside, keep_copy, outside, set_aside, summary};
use crate::failure::Failure;
use crate::sys::Answers;
use crate::{output, sys};

/// Asks until there is an answer, and does as it says. Ctrl-C and Ctrl-D discard the changes; an empty line, which may have been meant for the
/// command, does not. If the user cannot answer, the changes are set aside.
pub(super) fn settle(copy: &mut PrivateCopy, beginning: &Beginning) -> Result<CommandOutcome, Failure> {
    ask(copy, beginning).unwrap_or_else(|_| {
        set_aside(copy);
        Ok(CommandOutcome::default())
    })
}

/// Fails if nobody can answer.
fn ask(copy: &mut PrivateCopy, beginning: &Beginning) -> io::Result<Result<CommandOutcome, Failure>> {
    let mut answers = Answers::new()?;
    loop {
        let cancel = sys::interrupt::listen_again()?;
        output::say("apply it, keep a copy, show the diff, or discard it? [a/k/d/n]");
        let Some(answer) = answers.line()? else {
            output::say("discarded");
            return Ok(Ok(CommandOutcome::default()));
        };
        match answer.trim().to_ascii_lowercase().as_str() {
            "a" | "apply" => match copy.overlay.apply(&copy.changes, beginning, &cancel) {
                Ok(()) => {
                    output::say("applied");
                    return Ok(Ok(CommandOutcome { is_applied: true, ..CommandOutcome::default() }));
                }
                Err(error @ Error::Private(PrivateError::ChangedSinceShown(_))) => {
                    output::say(&error.to_string());
                    if let Err(error) = list_again(copy) {
                        set_aside(copy);
                        return Ok(Err(error.into()));
                    }
                    output::say(&summary(&copy.changes));
                }
                Err(error) => {
                    let is_kept = keep_beside(copy, &error);
                    let failure = Failure::from(error);
                    if is_kept {
                        return Ok(Err(failure));
                    }
                    output::failure(&failure);
                }
            },
            "k" | "keep" => {
                if let Some(kept) = keep_where_asked(copy, &answers, &cancel)? {
                    return Ok(Ok(CommandOutcome { kept: Some(kept), ..CommandOutcome::default() }));
                }
            }
            "d" | "diff" => {
                let printed = diff::print(copy, |bytes| {
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

fn list_again(copy: &mut PrivateCopy) -> Result<(), Error> {
    copy.changes = copy.overlay.changes(ChangesUse::Apply)?;
    Ok(())
}

/// Asks where to keep the copy, and does. `None`: there is no answer that will do.
fn keep_where_asked(copy: &PrivateCopy, answers: &Answers, cancel: &CancelToken) -> io::Result<Option<PathBuf>> {
    output::say("keep it at:");
    let Some(answer) = answers.line()?.filter(|answer| !answer.trim().is_empty()) else { return Ok(None) };
    let kept = outside(Path::new(answer.trim()), copy.overlay.tree()).and_then(|dst| {
        keep_copy(&copy.overlay, &dst, cancel)?;
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
