//! CMake build directories. Their rules name the source tree everywhere: `make` in the copy would build the original.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::directory::{open_directory, read};
use crate::escape::entry::{EntryName, TEXT_BYTES, WalkEntry, names};
use crate::escape::report::{Explanation, Finding, ReferenceKind, Step};
use crate::escape::trees::{Language, Trees};
use crate::paths::path_of;

const GENERATED: &[&[u8]] = &[
    b"Makefile",
    b"build.ninja",
    b"rules.ninja",
    b".ninja_deps",
    b".ninja_log",
    b"cmake_install.cmake",
    b"CTestTestfile.cmake",
    b"DartConfiguration.tcl",
    b"CPackConfig.cmake",
    b"CPackSourceConfig.cmake",
    b"compile_commands.json",
    b"install_manifest.txt",
];

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.is_file() && entry.name() == b"CMakeCache.txt"
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let Some(named) = entry.text().and_then(|text| trees.named(&text, Language::Lines)) else { return };
    let mut cache = Finding::text(ReferenceKind::CMake, entry.path(), named);
    // The cache has the chosen options; the rest follows from it.
    if !cache.steps.is_empty()
        && let Ok(directory) = open_directory(entry.directory, c".")
    {
        generated(&directory, entry.folder, trees, &mut cache.steps);
        let shown = if entry.folder.as_os_str().is_empty() { Path::new(".") } else { entry.folder };
        cache.explanation = Explanation::RunCMake(shown.to_path_buf());
    }
    found.push(cache);
}

fn generated(directory: &File, path: &Path, trees: &Trees, steps: &mut Vec<Step>) {
    for (name, kind) in names(directory) {
        let below: PathBuf = path.join(path_of(&name));
        match kind {
            FileType::Directory if name == b"CMakeFiles" => steps.push(Step::Remove { path: below }),
            FileType::Directory if name != b".git" => {
                if let Ok(directory) = open_directory(directory, path_of(&name)) {
                    generated(&directory, &below, trees, steps);
                }
            }
            FileType::RegularFile if GENERATED.contains(&name.as_slice()) => {
                // A project fetched into the build directory may have its own Makefile.
                let text = read(directory, path_of(&name), TEXT_BYTES * 16);
                if text.is_none_or(|text| trees.first_named(&text).is_some()) {
                    steps.push(Step::Remove { path: below });
                }
            }
            _ => {}
        }
    }
}
