use calve_core::internal::json::{FromReport, ReceiptPath};
use serde::Serialize;

use crate::unsaved_item::{self, UnsavedItem};

/// Something in a worktree, or in its entry, that exists nowhere else.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnsavedReceipt {
    /// Its kind.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = <UnsavedItem as strum::VariantNames>::VARIANTS)))]
    kind: &'static str,
    /// The repository, worktree or submodule inside that it is in. Absent if it is in the worktree itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<ReceiptPath>,
    /// The files concerned. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<ReceiptPath>,
    /// The newest of the commits concerned. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// How many commits there are, up to 1,000. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<u64>,
    /// The size of ignored files. Absent for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// True if `-f` is needed to remove it. Other items are moved aside.
    needs_force: bool,
    /// The item in words, for people.
    text: String,
}

impl FromReport<UnsavedItem> for UnsavedReceipt {
    fn from_report(item: &UnsavedItem) -> Self {
        let (inside, own) =
            if let UnsavedItem::Inside { path, item } = item { (Some(path), &**item) } else { (None, item) };
        let (mut paths, mut commits, mut bytes) = (Vec::new(), None, None);
        match own {
            UnsavedItem::Uncommitted(all) | UnsavedItem::Staged(all) | UnsavedItem::InSubmodule(all) => {
                paths = Vec::from_report(all);
            }
            UnsavedItem::Hidden { path, .. }
            | UnsavedItem::RepositoryOf(path)
            | UnsavedItem::Orphaned(path)
            | UnsavedItem::Misplaced(path) => paths.push(ReceiptPath::new(path)),
            UnsavedItem::Ignored(files) => {
                paths = files.iter().map(|file| ReceiptPath::new(&file.path)).collect();
                bytes = Some(unsaved_item::bytes(files));
            }
            UnsavedItem::Commits(loose)
            | UnsavedItem::Reflog(loose)
            | UnsavedItem::Reference { commits: loose, .. }
            | UnsavedItem::Unpushed(loose) => commits = Some(loose),
            _ => {}
        }
        Self {
            kind: own.into(),
            inside: inside.map(ReceiptPath::from_report),
            paths,
            commit: commits.map(|loose| loose.commit.clone()),
            commits: commits.map(|loose| loose.count),
            bytes,
            needs_force: item.needs_force(),
            text: item.to_string(),
        }
    }
}
