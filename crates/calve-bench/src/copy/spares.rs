//! The command that takes a spare of the tree.

use std::path::Path;

use calve_core::CancelToken;
use calve_receipt::bench::{NotRun, NotRunReason};

use super::workloads::{SPARE, Sources, words_with_places};
use crate::error::BenchError;
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::spares::{SPARES, Store};
use crate::workload::{Role, Workload};

pub(super) fn add(
    selection: &Selection,
    sources: &Sources,
    calve: &Path,
    scratch: &Scratch<'_>,
    cancel: &CancelToken,
    (workloads, not_run): (&mut Vec<Workload>, &mut Vec<NotRun>),
) -> Result<(), BenchError> {
    if !selection.takes(SPARE) {
        return Ok(());
    }
    let store = Store::new(calve, scratch, sources.tree.clone(), cancel);
    if let Some(reason) = store.make(&["--at".as_ref(), scratch.path.as_os_str()])? {
        let command = SPARE.to_owned();
        not_run.push(NotRun { command, why: NotRunReason::Refused, reason, remedy: None });
        return Ok(());
    }
    let (calve, source) = (calve.to_path_buf(), sources.tree.clone());
    let argv = move |dst: &Path| words_with_places(SPARE, &calve, &source, dst);
    let (environment, prepare) = (store.environment(), Some(store.refilled_before_runs()));
    workloads.push(Workload { environment, prepare, ..Workload::new(SPARE, Role::Calve, SPARES, argv) });
    Ok(())
}
