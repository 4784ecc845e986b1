//! `calve worktree prune`.

use calve_core::Shown;
use calve_git::worktree::{self, KeptEntry};

use crate::cli::worktree::PruneArguments;
use crate::commands::reap;
use crate::failure::Failure;
use crate::{output, wording};
use calve_receipt::{KeptWorktree, WorktreePruneReceipt, path, paths};

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
        let kept =
            |kept: &KeptEntry| KeptWorktree { path: path(&kept.path), reason: kept.reason.clone(), hint: hint(kept) };
        return output::json(&WorktreePruneReceipt {
            forgotten: paths(&pruned.forgotten),
            kept: pruned.kept.iter().map(kept).collect(),
            swept: paths(&pruned.swept),
        });
    }
    Ok(())
}
