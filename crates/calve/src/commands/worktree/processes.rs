//! Processes that outlive their worktree: reports them, and ends them if the user agrees.

use std::time::Duration;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::worktree::{Meanwhile, Worktree, WorktreeProcess, processes};

use crate::commands::worktree::env;
use crate::{consent, output};

const WAIT: Duration = Duration::from_secs(5);

/// Lists the processes in a worktree, as in "process 25357 (node) goes on in it, and listens on 3001".
pub(super) fn say(worktree: &Worktree, print: fn(&str)) -> Vec<WorktreeProcess> {
    let ports: Vec<u16> = env::of_worktree(worktree).iter().map(|port| port.number).collect();
    let found = processes(&worktree.path, &ports);
    for process in &found {
        let ports: Vec<String> = process.ports.iter().map(u16::to_string).collect();
        let does = match (process.is_inside, ports.join(", ")) {
            (_, ports) if ports.is_empty() => "goes on in it".to_owned(),
            (true, ports) => format!("goes on in it, and listens on {ports}"),
            (false, ports) => format!("listens on {ports}"),
        };
        print(&format!("`{}`: process {} {does}", ShownPath(&worktree.path), named(process)));
    }
    found
}

/// Lists the processes in a worktree. On a terminal, ends them if the user agrees and `may_ask`.
pub(super) fn offer_to_end(worktree: &Worktree, may_ask: bool, cancel: &CancelToken) -> Meanwhile {
    let asks = may_ask && consent::can_ask();
    let found = say(worktree, output::prompt_if(asks));
    if found.is_empty() || !asks {
        return Meanwhile::Nothing;
    }
    let them = if found.len() == 1 { "it" } else { "them" };
    if consent::yes(&format!("End {them}? The worktree is removed in any case.")) {
        for process in WorktreeProcess::end(found, WAIT, cancel) {
            output::warn(&format!("process {} has not ended", named(&process)));
        }
    }
    Meanwhile::Changes
}

fn named(process: &WorktreeProcess) -> String {
    format!("{} ({})", process.pid, ShownPath(&process.name))
}
