use calve_core::internal::ShownPath;
use calve_git::worktree::{KeptFiles, UnsavedItem};
use calve_receipt::human::{counted, size};

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
