//! Why an ignored entry is left out, going by its name. All others are carried.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use calve_core::Patterns;

use crate::worktree::add::ignored::LeftBehindReason;

/// Directories that a package manager or a build tool fills. What is in them are others' files: a certificate there is no secret.
pub(crate) const DEPENDENCIES: [&str; 7] =
    ["node_modules", ".venv", "venv", "target", "vendor", ".tox", "bower_components"];

/// Directories and endings of files that a build, a test run or a tool fills, and makes again when they are gone.
const BUILD_OUTPUTS: [&str; 42] = [
    "build",
    "dist",
    "out",
    "_build",
    "bin",
    "obj",
    "coverage",
    "htmlcov",
    ".nyc_output",
    ".cache",
    ".parcel-cache",
    ".turbo",
    ".nx",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".astro",
    ".docusaurus",
    ".angular",
    ".vite",
    ".webpack",
    ".expo",
    ".gradle",
    ".bundle",
    ".dart_tool",
    ".build",
    "DerivedData",
    "Pods",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".nox",
    ".eggs",
    ".ipynb_checkpoints",
    ".terraform",
    "elm-stuff",
    "zig-out",
    "zig-cache",
    ".zig-cache",
];
const BUILD_OUTPUT_ENDINGS: [&str; 10] = [
    ".egg-info",
    ".pyc",
    ".pyo",
    ".o",
    ".obj",
    ".class",
    ".tsbuildinfo",
    ".eslintcache",
    ".stylelintcache",
    ".DS_Store",
];

/// Endings of names, and whole names, that stand for a running program. Of no use to another one, and often harmful.
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

/// Names of secrets, and what looks like one but is meant to be read.
const SECRET_NAMES: [&str; 14] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    "credentials.json",
    "service-account.json",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "kubeconfig",
];
const SECRET_ENDINGS: [&str; 9] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".tfvars", ".ppk"];
const SECRET_BEGINNINGS: [&str; 3] = [".env.", "secrets.", "credentials."];
const SECRET_DIRECTORIES: [&str; 4] = [".aws", ".ssh", ".gnupg", ".secrets"];
const EXAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// The rule for every entry that git ignores.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) exclude: Patterns,
    /// Secret-looking files stay where they are.
    pub(crate) leaves_secrets: bool,
}

impl Rules {
    /// Returns why an entry is left out, going by its own name and place; `None` when it is carried.
    pub(crate) fn leave(&self, path: &Path, is_directory: bool) -> Option<LeftBehindReason> {
        // Asked for every entry: `file_name` would take the whole path apart.
        let bytes = path.as_os_str().as_bytes();
        let slash = memchr::memrchr(b'/', bytes);
        let name = slash.map_or(bytes, |slash| &bytes[slash + 1..]);
        if name == b".git" && !is_directory {
            return Some(LeftBehindReason::Pointer);
        }
        if name == b"worktrees" && bytes.ends_with(b"/.git/worktrees") {
            return Some(LeftBehindReason::ForeignWorktrees);
        }
        if !is_directory && is_runtime(name) {
            return Some(LeftBehindReason::Runtime);
        }
        if self.leaves_secrets && is_secret(path, is_directory) {
            return Some(LeftBehindReason::Secret);
        }
        (!self.exclude.is_empty() && self.exclude.matches(path, is_directory)).then_some(LeftBehindReason::Excluded)
    }
}

/// Returns whether an ignored entry, going by its own name, is a directory of dependencies, the output of a build, or the state of a running
/// program: nobody misses it, because it is made again.
pub(crate) fn is_made_again(path: &Path, is_directory: bool) -> bool {
    let Some(name) = path.file_name() else { return false };
    let is_in = |table: &[&str]| table.iter().any(|known| OsStr::new(known) == name);
    let bytes = name.as_bytes();
    let is_output = || BUILD_OUTPUT_ENDINGS.iter().any(|ending| bytes.ends_with(ending.as_bytes()));
    match is_directory {
        true => is_in(&DEPENDENCIES) || is_in(&BUILD_OUTPUTS) || bytes.starts_with(b"cmake-build-") || is_output(),
        false => is_output() || is_state(bytes),
    }
}

/// Returns whether it is of no use once the program has ended. An editor's swap file is: it may have the only copy of an edit.
fn is_state(name: &[u8]) -> bool {
    is_runtime(name) && ![".swp", ".swo"].iter().any(|ending| name.ends_with(ending.as_bytes()))
}

fn is_runtime(name: &[u8]) -> bool {
    RUNTIME_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
        || RUNTIME_NAMES.iter().any(|known| known.as_bytes() == name)
        || name.first() == Some(&b'.')
            && RUNTIME_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}

/// Returns whether a name is one under which people keep secrets. Not in directories that package managers fill.
pub(crate) fn is_secret(path: &Path, is_directory: bool) -> bool {
    let Some(name) = path.file_name().map(OsStrExt::as_bytes) else { return false };
    if dependency(path).is_some() {
        return false;
    }
    if is_directory {
        return SECRET_DIRECTORIES.iter().any(|known| known.as_bytes() == name);
    }
    if EXAMPLES.iter().any(|ending| name.ends_with(ending.as_bytes())) {
        return false;
    }
    SECRET_NAMES.iter().any(|known| known.as_bytes() == name)
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}

/// Returns the outermost directory of dependencies that the path is in, or is.
pub(crate) fn dependency(path: &Path) -> Option<&Path> {
    let is_one = |above: &&Path| {
        above.file_name().is_some_and(|name| DEPENDENCIES.iter().any(|known| OsStr::new(known) == name))
    };
    path.ancestors().filter(is_one).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged() {
        let rules = Rules { leaves_secrets: true, exclude: Patterns::new(["*.log"]).unwrap() };
        for (path, is_directory, expected) in [
            ("node_modules/x/index.js", false, None),
            ("node_modules/x/yarn.lock", false, None),
            ("node_modules/x/test/key.pem", false, None),
            (".venv/lib/certifi/cacert.pem", false, None),
            (".env", false, Some(LeftBehindReason::Secret)),
            ("sub/.env.local", false, Some(LeftBehindReason::Secret)),
            (".env.example", false, None),
            (".ssh", true, Some(LeftBehindReason::Secret)),
            ("tmp/server.pid", false, Some(LeftBehindReason::Runtime)),
            ("a/.git", false, Some(LeftBehindReason::Pointer)),
            ("a/.git", true, None),
            ("a/.git/worktrees", true, Some(LeftBehindReason::ForeignWorktrees)),
            ("x.log", false, Some(LeftBehindReason::Excluded)),
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
