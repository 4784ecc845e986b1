//! Texts that name the tree which they are in, and that work in the new one when they name that instead.

use crate::escape::detectors::detector::Detector;
use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::{PendingFinding, ReferenceKind};
use crate::escape::trees::{Language, Trees};

pub(super) struct TextFile {
    kind: ReferenceKind,
    language: Language,
    is_one: fn(&EntryName<'_>) -> bool,
}

impl Detector for TextFile {
    fn wants(&self, entry: &EntryName<'_>) -> bool {
        entry.is_file() && (self.is_one)(entry)
    }

    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>) {
        let named = entry.text().and_then(|text| trees.named(&text, self.language));
        found.extend(named.map(|named| PendingFinding::text(self.kind, entry.path(), named)));
    }
}

/// The scripts that switch a virtual environment on: those of venv, virtualenv, uv and conda.
pub(super) const ACTIVATE: TextFile = TextFile {
    kind: ReferenceKind::Activate,
    language: Language::Shell,
    is_one: |entry| is_script_folder(entry) && is_activate(entry),
};

/// By this a Python interpreter knows that it is a virtual environment's.
pub(super) const PYVENV: TextFile = TextFile {
    kind: ReferenceKind::PyvenvCfg,
    language: Language::Lines,
    is_one: |entry| entry.name() == b"pyvenv.cfg",
};

/// Files that make a Python package importable from where it is written.
pub(super) const PATH_FILES: TextFile = TextFile {
    kind: ReferenceKind::Editable,
    language: Language::Lines,
    is_one: |entry| is_site(entry) && (entry.name().ends_with(b".pth") || entry.name().ends_with(b".egg-link")),
};

/// By this (PEP 610) pip and uv tell whether an editable package is the one that is wanted.
pub(super) const DIRECT_URL: TextFile = TextFile {
    kind: ReferenceKind::DistInfo,
    language: Language::Quoted,
    is_one: |entry| entry.name() == b"direct_url.json" && entry.folder_name.ends_with(b".dist-info"),
};

/// pnpm's notes of an installation. Where they name another tree, pnpm installs everything anew, or into that tree.
pub(super) const PNPM: TextFile = TextFile {
    kind: ReferenceKind::Pnpm,
    language: Language::Quoted,
    is_one: |entry| {
        let name = entry.name();
        entry.folder_name == b"node_modules"
            && (name == b".modules.yaml" || (name.starts_with(b".pnpm-workspace-state") && name.ends_with(b".json")))
    },
};

/// The settings of a server of Next.js.
pub(super) const NEXT: TextFile = TextFile {
    kind: ReferenceKind::WebCache,
    language: Language::Quoted,
    is_one: |entry| entry.name() == b"required-server-files.json" && entry.folder_name == b".next",
};

pub(super) fn is_script_folder(entry: &EntryName<'_>) -> bool {
    matches!(entry.folder_name, b"bin" | b".bin" | b"Scripts" | b"sbin")
}

pub(super) fn is_activate(entry: &EntryName<'_>) -> bool {
    let name = entry.name();
    matches!(name, b"Activate.ps1" | b"activate_this.py" | b"deactivate.nu" | b"activate")
        || name
            .strip_prefix(b"activate.")
            .is_some_and(|end| matches!(end, b"bat" | b"csh" | b"fish" | b"nu" | b"ps1" | b"xsh"))
}

/// Returns whether an entry is in a directory of Python packages.
pub(super) fn is_site(entry: &EntryName<'_>) -> bool {
    matches!(entry.folder_name, b"site-packages" | b"dist-packages")
}
