//! What pnpm notes of an installation. Where it names another tree, pnpm installs everything anew, or into that tree.

use crate::escape::detectors::Detector;
use crate::escape::entry::Entry;
use crate::escape::report::{Found, Kind};
use crate::escape::trees::{Language, Trees, UNWRITABLE};

pub(super) struct Pnpm;

impl Detector for Pnpm {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        let name = entry.name();
        entry.is_file()
            && entry.folder_name() == b"node_modules"
            && (name == b".modules.yaml" || (name.starts_with(b".pnpm-workspace-state") && name.ends_with(b".json")))
    }

    fn look(&self, entry: &Entry<'_>, trees: &Trees, found: &mut Vec<Found>) {
        let Some(named) = entry.text().and_then(|text| trees.named(&text, Language::Quoted)) else { return };
        let (kind, path) = (Kind::Pnpm, entry.path());
        found.push(match named.moved {
            Some(bytes) => {
                Found::rewritten(kind, path, named.names, bytes, "pnpm takes what is installed here for its own")
            }
            None => Found::reported(kind, path, named.names, UNWRITABLE),
        });
    }
}
