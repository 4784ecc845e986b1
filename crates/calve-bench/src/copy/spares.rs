//! The commands that take a spare of the tree.

use std::path::Path;

use calve_core::CancelToken;
use calve_receipt::bench::{NotRun, NotRunReason};

use super::workloads::{Sources, words_with_places};
use crate::error::BenchError;
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::spares::{SPARES, Store, Watchers, words};
use crate::workload::{Leftovers, Role, Workload};

/// Every entry is compared with what was recorded of it.
const WALKED: &str = "calve cp --strategy spare SRC DST";
/// A watcher knows that nothing has changed.
const WATCHED: &str = "calve cp --strategy spare --require instant SRC DST";
/// Nothing can have changed.
const FROZEN: &str = "calve cp --strategy spare @TEMPLATE DST";

/// The commands, as they are typed.
pub(super) const COMMANDS: [&str; 3] = [WALKED, WATCHED, FROZEN];

/// Prepares the commands that are wanted, each with spares of its own.
pub(super) fn add(
    selection: &Selection,
    sources: &Sources,
    calve: &Path,
    scratch: &Scratch<'_>,
    cancel: &CancelToken,
    (workloads, not_run): (&mut Vec<Workload>, &mut Vec<NotRun>),
) -> Result<Watchers, BenchError> {
    let mut watchers = Watchers::default();
    for (number, command) in COMMANDS.into_iter().enumerate() {
        if !selection.takes(command) {
            continue;
        }
        let frozen = command == FROZEN;
        let of = if frozen { "@TEMPLATE".into() } else { sources.tree.clone() };
        let store = Store::new(calve, scratch, &format!("home-{number}"), of, cancel);
        let template = words(["template", "create", "--quiet", "TEMPLATE"], &[sources.tree.as_os_str()]);
        let at = ["--at".as_ref(), scratch.path().as_os_str()];
        if let Some(reason) = store.make(frozen.then_some(template), &at)? {
            let command = command.to_owned();
            not_run.push(NotRun { command, why: NotRunReason::Refused, reason, remedy: None });
            continue;
        }
        let environment = store.environment();
        let prepare =
            if command == WATCHED { store.known_before_runs(&mut watchers) } else { store.refilled_before_runs() };
        let (calve, source) = (calve.to_path_buf(), sources.tree.clone());
        workloads.push(Workload {
            command: command.to_owned(),
            role: Role::Calve,
            group: &SPARES,
            argv: Box::new(move |dst| words_with_places(command, &calve, &source, dst)),
            environment,
            prepare: Some(prepare),
            leftovers: Leftovers::Keep,
        });
    }
    Ok(watchers)
}
