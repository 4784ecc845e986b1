//! Cargo's `target`. Cargo considers a unit (one crate, compiled one way) fresh if its sources are no newer, wherever
//! it was compiled. So a copied unit stays, unless the other tree's path is compiled into it: then it is marked, and
//! Cargo compiles it again. A mark is the removal of its fingerprint, `.fingerprint/PACKAGE-HASH/KIND-NAME`.
//!
//! A unit's dep-info, `deps/NAME-HASH.d`, lists its source files and the variables that `env!` read (`# env-dep:`).
//! Cargo does not track those that it sets itself, such as `CARGO_MANIFEST_DIR`.

mod dep_info;
mod fingerprints;

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::directory::{open_directory, read};
use crate::escape::entry::{EntryName, TEXT_BYTES, WalkEntry, names_of};
use crate::escape::report::{Action, Explanation, Finding, ReferenceKind, Step};
use crate::escape::trees::{Language, Trees};
use crate::paths::path_of;
use dep_info::DepInfo;
use fingerprints::Fingerprints;

/// Accepts the directory that Cargo keeps in each `target/PROFILE` and `target/TRIPLE/PROFILE`.
pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.is_directory() && entry.name() == b".fingerprint"
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let Ok(profile) = open_directory(entry.directory, c".") else { return };
    let Some(fingerprints) = Fingerprints::read(&profile) else { return };
    let mut look = ProfileInspection { trees, entry, fingerprints, found };
    for folder in ["deps", "examples"] {
        if let Ok(directory) = open_directory(&profile, folder) {
            look.units(&directory);
        }
    }
    if let Ok(build) = open_directory(&profile, c"build") {
        for name in names_of(&build, FileType::Directory) {
            if let Ok(directory) = open_directory(&build, &name) {
                look.units(&directory);
                look.script_run(&directory, &name);
            }
        }
    }
    look.lists(&profile);
}

struct ProfileInspection<'a> {
    trees: &'a Trees,
    entry: &'a WalkEntry<'a>,
    fingerprints: Fingerprints,
    found: &'a mut Vec<Finding>,
}

impl ProfileInspection<'_> {
    fn units(&mut self, directory: &File) {
        for name in names_of(directory, FileType::RegularFile) {
            let Some(stem) = name.strip_suffix(b".d") else { continue };
            let Some(text) = read(directory, &name, TEXT_BYTES) else { continue };
            if self.trees.first_named(&text).is_none() {
                continue;
            }
            if let Some(named) = self.compiled_in(&DepInfo::parse(&text)) {
                self.mark(stem, named, Explanation::CompiledAgain);
            }
        }
    }

    /// Returns the path of another tree that is compiled into a unit.
    fn compiled_in(&self, info: &DepInfo<'_>) -> Option<PathBuf> {
        let mut from_script = None;
        for (key, value) in &info.variables {
            let Some(named) = self.trees.first_named(value) else { continue };
            if *key != b"OUT_DIR" {
                return Some(named);
            }
            from_script = Some(named);
        }
        // Files generated into `target` were copied with it, and Cargo knows them by their place in `target`.
        let generated = |path: &Path| path.components().any(|part| part.as_os_str() == "out");
        for file in &info.files {
            let Some(named) = self.trees.first_named(file) else { continue };
            if !generated(&named) {
                return Some(named);
            }
            from_script.get_or_insert(named);
        }
        let from_script = from_script?;
        // `include!(concat!(env!("OUT_DIR"), …))` takes the contents of the file, not its path.
        let sources = info.files.iter().filter(|file| self.trees.first_named(file).is_none());
        let texts: Option<Vec<_>> = sources.map(|file| self.source(file)).collect();
        let only_included = texts.is_some_and(|texts| dep_info::only_included(&texts));
        (!only_included).then_some(from_script)
    }

    /// Reads a source file, which is relative to the workspace above `target`, or absolute.
    fn source(&self, file: &[u8]) -> Option<Vec<u8>> {
        let path = path_of(file);
        if path.is_absolute() {
            return read(rustix::fs::CWD, &path, TEXT_BYTES);
        }
        self.entry.folder.ancestors().find_map(|above| {
            let below = above.join(&path);
            let (parent, name) = crate::escape::writing::open_parent(self.trees.root(), &below).ok()?;
            read(&parent, name, TEXT_BYTES)
        })
    }

    /// Marks a build script's results that name another tree: `build/PACKAGE-HASH` with its output and generated files.
    fn script_run(&mut self, directory: &File, name: &[u8]) {
        let Some(output) = read(directory, c"output", TEXT_BYTES) else { return };
        // When Cargo reads the output, it replaces this directory by the new one.
        let own = read(directory, c"root-output", TEXT_BYTES).unwrap_or_default();
        let mut lines = output.split(|&byte| byte == b'\n').map(|line| match own.is_empty() {
            true => line.to_vec(),
            false => without(line, own.trim_ascii_end()),
        });
        let mut named = lines.find_map(|line| self.trees.first_named(&line));
        if named.is_none()
            && let Ok(out) = open_directory(directory, c"out")
        {
            let mut sources = names_of(&out, FileType::RegularFile).filter(|name| name.ends_with(b".rs"));
            named = sources.find_map(|name| self.trees.first_named(&read(&out, name, TEXT_BYTES)?));
        }
        if let Some(named) = named {
            self.mark(name, named, Explanation::ScriptRunsAgain);
        }
    }

    /// Plans to remove a unit's fingerprints. Adds no finding if they are gone already.
    fn mark(&mut self, stem: &[u8], names: PathBuf, explanation: Explanation) {
        let folder = self.entry.path();
        for (unit, files) in self.fingerprints.units_of(stem) {
            let path = folder.join(path_of(&unit));
            let steps: Vec<Step> = files.iter().map(|file| Step::Remove { path: path.join(path_of(file)) }).collect();
            if steps.is_empty() || self.found.iter().any(|found| found.path == path) {
                continue;
            }
            let (kind, names, explanation) = (ReferenceKind::Cargo, names.clone(), explanation.clone());
            self.found.push(Finding { kind, path, names, action: Action::Dropped, explanation, steps });
        }
    }

    /// Plans to rewrite the lists for other build tools, `target/debug/PROGRAM.d`.
    fn lists(&mut self, profile: &File) {
        for name in names_of(profile, FileType::RegularFile).filter(|name| name.ends_with(b".d")) {
            let Some(text) = read(profile, &name, TEXT_BYTES) else { continue };
            let Some(named) = self.trees.named(&text, Language::Lines) else { continue };
            let path = self.entry.folder.join(path_of(&name));
            if let Some(bytes) = named.moved {
                self.found.push(Finding::rewritten(ReferenceKind::Cargo, path, named.names, bytes));
            }
        }
    }
}

fn without(line: &[u8], part: &[u8]) -> Vec<u8> {
    let (mut left, mut from) = (Vec::new(), 0);
    for at in memchr::memmem::find_iter(line, part) {
        left.extend_from_slice(&line[from..at]);
        from = at + part.len();
    }
    [&left, &line[from..]].concat()
}
