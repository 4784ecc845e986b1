use std::io;
use std::path::Path;

use calve_core::error::PrivateError;
use calve_core::internal::ShownPath;
use calve_core::overlay_run::{BaseState, ChangesUse};
use calve_core::{CancelToken, Error};

use super::copy::{PrivateCopy, keep_beside, keep_copy, outside, set_aside, summary};
use super::diff;
use crate::failure::Failure;
use crate::sys::Answers;
use crate::{output, sys};

/// Asks until there is an answer, and follows it. Ctrl-C and Ctrl-D discard the changes; an empty line does not,
/// because it may have been meant for the command. If the user cannot answer, the changes are set aside.
pub(super) fn resolve(copy: &mut PrivateCopy, base: &BaseState) -> Result<(), Failure> {
    ask(copy, base).unwrap_or_else(|_| {
        set_aside(copy);
        Ok(())
    })
}

/// Fails if the terminal cannot be read.
fn ask(copy: &mut PrivateCopy, base: &BaseState) -> io::Result<Result<(), Failure>> {
    let mut answers = Answers::new()?;
    loop {
        let cancel = sys::interrupt::listen_again()?;
        output::prompt("apply it, keep a copy, show the diff, or discard it? [a/k/d/n]");
        let Some(answer) = answers.line()? else {
            output::note("discarded");
            return Ok(Ok(()));
        };
        match answer.trim().to_ascii_lowercase().as_str() {
            "a" | "apply" => match copy.overlay.apply(&copy.changes, base, &cancel) {
                Ok(()) => {
                    output::note("applied");
                    return Ok(Ok(()));
                }
                Err(error @ Error::Private(PrivateError::ChangedSinceShown(_))) => {
                    output::note(&error.to_string());
                    match copy.overlay.changes(ChangesUse::Apply) {
                        Ok(changes) => copy.changes = changes,
                        Err(error) => {
                            set_aside(copy);
                            return Ok(Err(error.into()));
                        }
                    }
                    output::note(&summary(&copy.changes));
                }
                Err(error) => {
                    if keep_beside(copy, &error) {
                        return Ok(Err(error.into()));
                    }
                    output::failure(&error.into());
                }
            },
            "k" | "keep" if keep_where_asked(copy, &mut answers, &cancel)? => return Ok(Ok(())),
            "d" | "diff" => {
                let printed = diff::print(copy, |bytes| {
                    output::pass_on(bytes);
                    Ok(())
                });
                if let Err(failure) = printed {
                    output::failure(&failure);
                }
            }
            "n" | "no" | "discard" => {
                output::note("discarded");
                return Ok(Ok(()));
            }
            _ => {}
        }
        if cancel.is_cancelled() {
            // Ctrl-C has stopped the action, not the questions.
            answers = Answers::new()?;
        }
    }
}

/// Asks for a destination and keeps the copy there. Returns false without a usable answer.
fn keep_where_asked(copy: &PrivateCopy, answers: &mut Answers, cancel: &CancelToken) -> io::Result<bool> {
    output::prompt("keep it at:");
    let Some(answer) = answers.line()?.filter(|answer| !answer.trim().is_empty()) else { return Ok(false) };
    let kept = outside(Path::new(answer.trim()), copy.overlay.tree()).and_then(|dst| {
        keep_copy(&copy.overlay, &dst, cancel)?;
        Ok(dst)
    });
    match kept {
        Ok(dst) => {
            output::note(&format!("kept in `{}`", ShownPath(&dst)));
            Ok(true)
        }
        Err(failure) => {
            output::failure(&failure);
            Ok(false)
        }
    }
}
