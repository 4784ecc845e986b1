//! `pyvenv.cfg`, by which a Python interpreter knows that it is a virtual environment's.

use crate::escape::detectors::Detector;
use crate::escape::entry::Entry;
use crate::escape::report::{Found, Kind};
use crate::escape::trees::{Language, Trees, UNWRITABLE};

pub(super) struct PyvenvCfg;

impl Detector for PyvenvCfg {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        entry.is_file() && entry.name() == b"pyvenv.cfg"
    }

    fn look(&self, entry: &Entry<'_>, trees: &Trees, found: &mut Vec<Found>) {
        let Some(named) = entry.text().and_then(|text| trees.named(&text, Language::Lines)) else { return };
        let (kind, path) = (Kind::PyvenvCfg, entry.path());
        found.push(match named.moved {
            Some(bytes) => Found::rewritten(kind, path, named.names, bytes, "it is this worktree's environment"),
            None => Found::reported(kind, path, named.names, UNWRITABLE),
        });
    }
}
