//! Cargo's `target`. Cargo takes a unit (one crate, compiled one way) for fresh when its sources are no newer, wherever it was compiled.
//! So a copied unit stays, unless the path of the other tree is compiled into it: those are marked, and Cargo compiles them again.
//!
//! The sources of a unit are in its dep-info, `deps/NAME-HASH.d`: the files, and the variables that `env!` asked for
//! (`# env-dep:`). Cargo itself does not track those that it sets, `CARGO_MANIFEST_DIR` among them. A unit is marked by removing its
//! fingerprint, `.fingerprint/PACKAGE-HASH/KIND-NAME`.

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

/// Accepts the directory that marks a `target/PROFILE` or `target/TRIPLE/PROFILE`: Cargo keeps it there.
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
    /// Marks the units whose dep-infos in a directory name another tree.
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

    /// Returns the parts of another tree in the compiled unit, by its dep-info.
    fn compiled_in(&self, info: &DepInfo<'_>) -> Option<PathBuf> {
        let mut from_script = None;
        for (key, value) in &info.variables {
            let Some(named) = self.trees.first_named(value) else { continue };
            if *key != b"OUT_DIR" {
                return Some(named);
            }
            from_script = Some(named);
        }
        // Files that are generated into `target` have been copied with it, and Cargo knows them by their place in `target`.
        let generated = |path: &Path| path.components().any(|part| part.as_os_str() == "out");
        for file in &info.files {
            let Some(named) = self.trees.first_named(file) else { continue };
            if !generated(&named) {
                return Some(named);
            }
            from_script.get_or_insert(named);
        }
        let from_script = from_script?;
        // `include!(concat!(env!("OUT_DIR"), …))` takes in what the file holds, not its path.
        let sources = info.files.iter().filter(|file| self.trees.first_named(file).is_none());
        let texts: Option<Vec<_>> = sources.map(|file| self.source(file)).collect();
        let only_included = texts.is_some_and(|texts| dep_info::only_included(&texts));
        (!only_included).then_some(from_script)
    }

    /// Reads a source file: relative to the workspace, which is above `target`, or somewhere else on the machine.
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

    /// Marks the results of a build script that name another tree: `build/PACKAGE-HASH` with its output and the files that it made.
    fn script_run(&mut self, directory: &File, name: &[u8]) {
        let Some(output) = read(directory, c"output", TEXT_BYTES) else { return };
        // Cargo puts the new directory in place of this one when it reads the output.
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

    /// Plans to remove the fingerprints of a unit. It adds no finding where they are gone already.
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

    /// Plans to rewrite the lists beside the programs, for other build tools: `target/debug/PROGRAM.d`.
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
