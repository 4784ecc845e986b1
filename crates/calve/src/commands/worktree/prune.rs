//! `calve worktree prune`.

use calve_core::Shown;
use calve_git::worktree::{self, KeptEntry};
use serde_json::{Value, json};

use crate::cli::worktree::PruneArguments;
use crate::commands::reap;
use crate::failure::Failure;
use crate::{output, receipt, wording};

fn hint(kept: &KeptEntry) -> String {
    kept.remedy.as_ref().map(wording::git::hint).unwrap_or_default()
}

pub(crate) fn run(arguments: &PruneArguments) -> Result<(), Failure> {
    let pruned = worktree::prune(&super::here()?)?;
    for place in &pruned.places {
        reap::start(place);
    }
    for path in &pruned.forgotten {
        output::say(&format!("forgot `{}`, which is gone", Shown(path)));
    }
    for kept in &pruned.kept {
        output::say(&format!("kept the entry of `{}`: {}; {}", Shown(&kept.path), kept.reason, hint(kept)));
    }
    for path in &pruned.swept {
        output::say(&format!("removed `{}`, which a killed run had left", Shown(path)));
    }
    if arguments.json {
        let paths = |paths: &[std::path::PathBuf]| paths.iter().map(|path| receipt::path(path)).collect::<Vec<Value>>();
        let kept =
            |kept: &KeptEntry| json!({ "path": receipt::path(&kept.path), "reason": kept.reason, "hint": hint(kept) });
        return output::json(&json!({
            "schema": "calve.worktree-prune/1",
            "forgotten": paths(&pruned.forgotten),
            "kept": pruned.kept.iter().map(kept).collect::<Vec<Value>>(),
            "swept": paths(&pruned.swept),
        }));
    }
    Ok(())
}
