use calve_core::internal::ShownPath;
use calve_git::worktree::{KeptFiles, UnsavedItem};
use calve_receipt::human::{counted, size};
use calve_receipt::{UnsavedReceipt, path, paths};

pub(crate) fn receipts(items: &[UnsavedItem]) -> Vec<UnsavedReceipt> {
    items.iter().map(receipt).collect()
}

fn receipt(item: &UnsavedItem) -> UnsavedReceipt {
    let (inside, own) =
        if let UnsavedItem::Inside { path, item } = item { (Some(path), &**item) } else { (None, item) };
    let (mut concerned, mut commits, mut bytes) = (Vec::new(), None, None);
    match own {
        UnsavedItem::Uncommitted(all) | UnsavedItem::Staged(all) | UnsavedItem::InSubmodule(all) => {
            concerned = paths(all)
        }
        UnsavedItem::Hidden { path: one, .. }
        | UnsavedItem::RepositoryOf(one)
        | UnsavedItem::Orphaned(one)
        | UnsavedItem::Misplaced(one) => concerned.push(path(one)),
        UnsavedItem::Ignored(files) => {
            concerned = files.iter().map(|file| path(&file.path)).collect();
            bytes = Some(files.iter().map(|file| file.bytes).sum());
        }
        UnsavedItem::Commits(loose)
        | UnsavedItem::Reflog(loose)
        | UnsavedItem::Reference { commits: loose, .. }
        | UnsavedItem::Unpushed(loose) => commits = Some(loose),
        _ => {}
    }
    UnsavedReceipt {
        kind: own.name(),
        inside: inside.map(path),
        paths: concerned,
        commit: commits.map(|loose| loose.commit.clone()),
        commits: commits.map(|loose| loose.count),
        bytes,
        needs_force: item.needs_force(),
        text: item.to_string(),
    }
}

pub(crate) fn planned_line(item: &UnsavedItem) -> String {
    match item.needs_force() {
        true => format!("would lose {item}"),
        false => format!("would keep for 7 days {item}"),
    }
}

pub(crate) fn kept_line(kept: &KeptFiles) -> String {
    let files = counted(kept.files.len() as u64, "ignored file");
    let (directory, size) = (ShownPath(&kept.directory), size(kept.bytes));
    let first = kept.files.iter().take(3).map(|file| format!("`{}`", ShownPath(file))).collect::<Vec<_>>().join(", ");
    let more = if kept.files.len() > 3 { ", ..." } else { "" };
    let losses: String = kept.losses.iter().map(|loss| format!("; {}", loss.message)).collect();
    format!("{files} that only it had ({first}{more}; {size}) will stay in `{directory}` for 7 days{losses}")
}
