//! Leaves out ignored entries by their names. All others are carried.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use calve_core::Patterns;
use calve_core::report::SkipReason;

use crate::config::{Config, Secrets};
use crate::dependency_names::is_dependency;
use crate::error::Result;
use crate::worktree::add::ignored::left_behind;
use crate::worktree::add::input_paths::InputPaths;
use crate::worktree::status::split;

/// Directories and endings of files that a build, a test run or a tool makes again when they are gone.
const BUILD_OUTPUTS: &str = "build dist out _build bin obj coverage htmlcov .nyc_output .cache .parcel-cache .turbo \
    .nx .next .nuxt .output .svelte-kit .astro .docusaurus .angular .vite .webpack .expo .gradle .bundle \
    .dart_tool .build DerivedData Pods __pycache__ .pytest_cache .mypy_cache .ruff_cache .hypothesis .nox .eggs \
    .ipynb_checkpoints .terraform elm-stuff zig-out zig-cache .zig-cache";
const BUILD_OUTPUT_ENDINGS: &str = ".egg-info .pyc .pyo .o .obj .class .tsbuildinfo .eslintcache .stylelintcache \
    .DS_Store";

/// State of a running program, by name. It is useless to another one, and often harmful.
const RUNTIME_ENDINGS: [&str; 4] = [".pid", ".sock", ".swp", ".swo"];
const RUNTIME_NAMES: [&str; 8] = [
    ".dmypy.json",
    ".terraform.tfstate.lock.info",
    "SingletonLock",
    "SingletonSocket",
    "SingletonCookie",
    "server-process.json",
    "index.lock",
    "HEAD.lock",
];
const RUNTIME_BEGINNINGS: [&str; 3] = [".watchman-cookie-", ".nfs", ".fuse_hidden"];

#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) exclude: Patterns,
    /// `exclude` comes from the user's own file.
    pub(crate) is_exclude_local: bool,
    pub(crate) secrets: Secrets,
    /// A planned worktree needs only these.
    pub(crate) only: Option<Arc<InputPaths>>,
}

impl Rules {
    pub(crate) fn new(config: &Config, secrets: Secrets) -> Result<Rules> {
        let exclude = Patterns::new(&config.exclude)?;
        Ok(Rules { exclude, is_exclude_local: config.is_exclude_local, secrets, only: None })
    }

    /// Returns why an entry is left out by its name and place, `None` if it is carried.
    pub(crate) fn leave(&self, path: &Path, is_directory: bool) -> Option<SkipReason> {
        // Asked for every entry: `file_name` would take the whole path apart.
        let bytes = path.as_os_str().as_bytes();
        if self.only.as_ref().is_some_and(|only| !only.may_have(path, is_directory)) {
            return Some(left_behind::EXCLUDED);
        }
        let (_, name) = split(bytes);
        if name == b".git" && !is_directory {
            return Some(left_behind::POINTER);
        }
        if name == b"worktrees" && bytes.ends_with(b"/.git/worktrees") {
            return Some(left_behind::FOREIGN_WORKTREES);
        }
        if !is_directory && is_runtime(name) {
            return Some(left_behind::RUNTIME);
        }
        if self.secrets.leaves(path) {
            return Some(left_behind::SECRET);
        }
        let excluded = if self.is_exclude_local { left_behind::EXCLUDED_LOCALLY } else { left_behind::EXCLUDED };
        (!self.exclude.is_empty() && self.exclude.matches(path, is_directory)).then_some(excluded)
    }
}

/// Returns whether an ignored entry is made again, by its name: dependencies, build outputs, a running program's state.
pub(crate) fn is_made_again(path: &Path, is_directory: bool) -> bool {
    let Some(name) = path.file_name() else { return false };
    let bytes = name.as_bytes();
    let ends_with = |ending: &str| bytes.ends_with(ending.as_bytes());
    let is_output = || BUILD_OUTPUT_ENDINGS.split(' ').any(ends_with);
    match is_directory {
        true => {
            let is_known = || BUILD_OUTPUTS.split(' ').any(|known| known == name);
            is_dependency(name) || is_known() || bytes.starts_with(b"cmake-build-") || is_output()
        }
        // An editor's swap file may have the only copy of an edit.
        false => is_output() || is_runtime(bytes) && ![".swp", ".swo"].iter().any(|ending| ends_with(ending)),
    }
}

fn is_runtime(name: &[u8]) -> bool {
    RUNTIME_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
        || RUNTIME_NAMES.iter().any(|known| known.as_bytes() == name)
        || name.first() == Some(&b'.')
            && RUNTIME_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependency_names::dependency;

    #[test]
    fn names_are_judged() {
        let rules = Rules { secrets: Secrets::Leave, exclude: Patterns::new(["*.log"]).unwrap(), ..Rules::default() };
        for (path, is_directory, expected) in [
            ("node_modules/x/index.js", false, None),
            ("node_modules/x/yarn.lock", false, None),
            ("node_modules/x/test/key.pem", false, None),
            (".venv/lib/certifi/cacert.pem", false, None),
            (".env", false, Some(left_behind::SECRET)),
            ("sub/.env.local", false, Some(left_behind::SECRET)),
            (".env.example", false, None),
            (".ssh", true, Some(left_behind::SECRET)),
            // A secret is known however it is spelled, in a file's place and a directory's. Below such a directory nothing is asked.
            (".env.d", true, Some(left_behind::SECRET)),
            ("ign/.Env", true, Some(left_behind::SECRET)),
            ("a.KEY", false, Some(left_behind::SECRET)),
            ("prod.env", false, Some(left_behind::SECRET)),
            ("Secrets", true, Some(left_behind::SECRET)),
            ("secrets/node_modules", true, None),
            ("a/.git/refs/heads/secrets", false, None),
            (".ENV.Example", false, None),
            ("secrets.rs.d", true, Some(left_behind::SECRET)),
            ("tmp/server.pid", false, Some(left_behind::RUNTIME)),
            ("a/.git", false, Some(left_behind::POINTER)),
            ("a/.git", true, None),
            ("a/.git/worktrees", true, Some(left_behind::FOREIGN_WORKTREES)),
            ("x.log", false, Some(left_behind::EXCLUDED)),
        ] {
            assert_eq!(rules.leave(Path::new(path), is_directory), expected, "{path}");
        }
        for (path, is_directory, expected) in [
            ("a/node_modules", true, true),
            ("dist", true, true),
            ("dist", false, false),
            ("x.egg-info", true, true),
            ("a/b.pyc", false, true),
            ("server.pid", false, true),
            (".notes.swp", false, false),
            (".env", false, false),
            ("data", true, false),
            ("", true, false),
        ] {
            assert_eq!(is_made_again(Path::new(path), is_directory), expected, "{path}");
        }
        assert_eq!(dependency(Path::new("a/node_modules/b/node_modules/c")), Some(Path::new("a/node_modules")));
    }
}
