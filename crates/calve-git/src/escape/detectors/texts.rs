//! Texts that name their own tree, and that work in the new one once they name that instead.

use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::{Finding, ReferenceKind};
use crate::escape::trees::{Language, Trees};

type TextKind = (ReferenceKind, Language, fn(&EntryName<'_>) -> bool);

static TEXTS: [TextKind; 6] = [
    // Scripts that activate a virtual environment: those of venv, virtualenv, uv and conda.
    (ReferenceKind::Activate, Language::Shell, |entry| is_script_folder(entry) && is_activate(entry)),
    // Tells a Python interpreter that it belongs to a virtual environment.
    (ReferenceKind::PyvenvCfg, Language::Lines, |entry| entry.name() == b"pyvenv.cfg"),
    // Files that make a Python package importable from its source.
    (ReferenceKind::Editable, Language::Lines, |entry| {
        is_site(entry) && (entry.name().ends_with(b".pth") || entry.name().ends_with(b".egg-link"))
    }),
    // From this (PEP 610), pip and uv tell whether an editable package is the wanted one.
    (ReferenceKind::DistInfo, Language::Quoted, |entry| {
        entry.name() == b"direct_url.json" && entry.folder_name.ends_with(b".dist-info")
    }),
    // pnpm's notes of an installation. If they name another tree, pnpm installs everything anew, or into that tree.
    (ReferenceKind::Pnpm, Language::Quoted, |entry| {
        let name = entry.name();
        entry.folder_name == b"node_modules"
            && (name == b".modules.yaml" || (name.starts_with(b".pnpm-workspace-state") && name.ends_with(b".json")))
    }),
    // The settings of a Next.js server.
    (ReferenceKind::WebCache, Language::Quoted, |entry| {
        entry.name() == b"required-server-files.json" && entry.folder_name == b".next"
    }),
];

fn kind_of(entry: &EntryName<'_>) -> Option<&'static TextKind> {
    TEXTS.iter().find(|(.., is_one)| entry.is_file() && is_one(entry))
}

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    kind_of(entry).is_some()
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let Some(&(kind, language, _)) = kind_of(entry) else { return };
    let named = entry.text().and_then(|text| trees.named(&text, language));
    found.extend(named.map(|named| Finding::text(kind, entry.path(), named)));
}

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

pub(super) fn is_site(entry: &EntryName<'_>) -> bool {
    matches!(entry.folder_name, b"site-packages" | b"dist-packages")
}
