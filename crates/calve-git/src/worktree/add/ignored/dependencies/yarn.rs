//! yarn 1: `.yarn-integrity`, which it removes before it changes anything and writes last. Later versions: `.yarn-state.yml`. Both are compared
//! with `yarn.lock`, of which only lines and their indentation are read.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::fit::{Fit, Judge, listed};
use super::npm::is_installed_at;
use crate::directory::{Directory, Time};

pub(super) const CLASSIC: &str = ".yarn-integrity";
pub(super) const BERRY: &str = ".yarn-state.yml";

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    match lockfiles.first().copied() {
        Some(text) if text.contains("\n__metadata:") => {
            let resolved = Resolved::read(text);
            Box::new(move |directory| berry(directory, &resolved))
        }
        Some(text) if text.contains("# yarn lockfile v1") => {
            let wanted = entries(text);
            Box::new(move |directory| classic(directory, &wanted))
        }
        _ => Box::new(|_| Fit::Unsure),
    }
}

fn classic(directory: &Directory, wanted: &HashMap<String, String>) -> Fit {
    let integrity: Option<Value> = directory.read(CLASSIC).and_then(|text| serde_json::from_str(&text).ok());
    let (Some(integrity), Some(workspace)) = (integrity, directory.above()) else { return Fit::No };
    // Those of packages, which yarn names if it has filled them.
    let folders = listed(&integrity, "modulesFolders").filter_map(Value::as_str);
    let folders = folders.filter(|path| is_installed_at(&format!("{path}/")));
    (integrity["lockfileEntries"] == json!(wanted) && workspace.is_settled(folders, Time::MAX)).into()
}

/// Maps each pattern of a version 1 lockfile to its package's origin.
fn entries(lockfile: &str) -> HashMap<String, String> {
    let mut entries = HashMap::new();
    let mut patterns: Vec<String> = Vec::new();
    for line in lockfile.lines() {
        if let Some(header) = header(line) {
            patterns = split_quoted(header);
            entries.extend(patterns.iter().map(|pattern| (pattern.clone(), String::new())));
        } else if let Some(resolved) = line.strip_prefix("  resolved ") {
            let all = patterns.iter().map(|pattern| (pattern.clone(), unquoted(resolved).to_owned()));
            entries.extend(all);
        }
    }
    entries
}

fn header(line: &str) -> Option<&str> {
    if line.starts_with([' ', '#']) { None } else { line.strip_suffix(':') }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

fn split_quoted(text: &str) -> Vec<String> {
    let mut is_quoted = false;
    let mut is_between = |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    };
    text.split(|c: char| is_between(c)).map(|part| unquoted(part).to_owned()).collect()
}

#[derive(Default)]
struct Entry<'t> {
    resolution: &'t str,
    /// Names and ranges, which make up the descriptors of other entries.
    dependencies: Vec<(&'t str, &'t str)>,
    optional: HashSet<&'t str>,
    /// For some platforms only.
    is_conditional: bool,
}

fn berry(directory: &Directory, wanted: &Resolved<'_>) -> Fit {
    // This linker makes links into a store.
    let is_store = || directory.has(".store");
    let (Some(end), Some(state)) = (directory.changed(BERRY), directory.read(BERRY)) else {
        return if is_store() { Fit::Unsure } else { Fit::No };
    };
    let locations = state.lines().filter_map(|line| line.strip_prefix("    - "));
    let locations: Vec<&str> = locations.map(unquoted).filter(|path| is_installed_at(path)).collect();
    let project = directory.above();
    let are_settled = |end| project.as_ref().is_some_and(|project| project.is_settled(locations.iter().copied(), end));
    let installed: HashSet<String> = state.lines().filter_map(header).map(|key| real(unquoted(key))).collect();
    match wanted.is_installed(&installed) && are_settled(Time::MAX) {
        false => Fit::No,
        // yarn writes the state before it runs the packages' build scripts, which may write into them.
        true if !are_settled(end) => Fit::Unsure,
        true => Fit::Yes,
    }
}

/// Removes the mark of instances with different peers: `a@virtual:HASH#npm:1` is `a@npm:1`.
fn real(locator: &str) -> String {
    match locator.split_once("@virtual:").and_then(|(name, rest)| Some((name, rest.split_once('#')?.1))) {
        Some((name, reference)) => format!("{name}@{reference}"),
        None => locator.to_owned(),
    }
}

struct Resolved<'t> {
    entries: Vec<Entry<'t>>,
    by_descriptor: HashMap<&'t str, usize>,
}

impl<'t> Resolved<'t> {
    fn read(lockfile: &'t str) -> Self {
        let mut resolved = Self { entries: Vec::new(), by_descriptor: HashMap::new() };
        for (descriptors, entry) in berry_entries(lockfile) {
            let at = resolved.entries.len();
            resolved.by_descriptor.extend(descriptors.split(", ").map(|descriptor| (descriptor, at)));
            resolved.entries.push(entry);
        }
        resolved
    }

    /// Returns whether all installed packages are in the lockfile, and all needed on every platform are installed.
    fn is_installed(&self, installed: &HashSet<String>) -> bool {
        let Self { entries, by_descriptor } = self;
        let known: HashSet<&str> = entries.iter().map(|entry| entry.resolution).collect();
        if installed.iter().any(|locator| locator != "__metadata" && !known.contains(&**locator)) {
            return false;
        }
        let names: HashSet<&str> =
            installed.iter().filter_map(|locator| locator.split_once("@patch:")).map(|x| x.0).collect();
        let is_there = |entry: &Entry<'_>| {
            let is_linked = ["@link:", "@portal:", "@workspace:"].iter().any(|kind| entry.resolution.contains(kind));
            is_linked || installed.contains(entry.resolution) || names.contains(name(entry.resolution))
        };
        let is_root = |at: &usize| entries[*at].resolution.contains("@workspace:");
        let mut open: Vec<usize> = (0..entries.len()).filter(is_root).collect();
        let mut seen: HashSet<usize> = open.iter().copied().collect();
        while let Some(at) = open.pop() {
            let entry = &entries[at];
            if !is_there(entry) {
                return false;
            }
            let needed = entry.dependencies.iter().filter(|(name, _)| !entry.optional.contains(name));
            for (name, range) in needed {
                let find = |descriptor: String| by_descriptor.get(&*descriptor).copied();
                // Before yarn 4, the lockfile leaves out `npm:` here.
                let found = find(format!("{name}@{range}")).or_else(|| find(format!("{name}@npm:{range}")));
                open.extend(found.filter(|found| !entries[*found].is_conditional && seen.insert(*found)));
            }
        }
        true
    }
}

/// Returns the name in a locator. A scoped one begins with `@`.
fn name(locator: &str) -> &str {
    let end = locator.get(1..).and_then(|rest| rest.find('@'));
    end.map_or(locator, |end| &locator[..=end])
}

/// Returns the entries, each with the descriptors that stand for it.
fn berry_entries(lockfile: &str) -> Vec<(&str, Entry<'_>)> {
    let mut entries: Vec<(&str, Entry<'_>)> = Vec::new();
    let (mut section, mut subject) = ("", "");
    for line in lockfile.lines() {
        if let Some(header) = header(line) {
            entries.push((unquoted(header), Entry::default()));
            continue;
        }
        let Some((_, entry)) = entries.last_mut() else { continue };
        let text = line.trim_start();
        let Some((key, value)) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, ""))) else {
            continue;
        };
        let key = unquoted(key);
        match (line.len() - text.len(), key) {
            (2, "resolution") => entry.resolution = unquoted(value),
            (2, "conditions") => entry.is_conditional = true,
            (2, key) => section = key,
            (4, name) if section == "dependencies" => entry.dependencies.push((name, unquoted(value))),
            (4, name) => subject = name,
            (6, "optional") if section == "dependenciesMeta" && value == "true" => drop(entry.optional.insert(subject)),
            _ => {}
        }
    }
    entries.retain(|(_, entry)| !entry.resolution.is_empty());
    entries
}

#[cfg(test)]
mod tests {
    use fs_err::File;

    use super::*;

    const LOCKFILE: &str = r#"# This file is generated by running "yarn install" inside your project.

__metadata:
  version: 8
  cacheKey: 10c0

"@s/a@npm:^1.0.0, @s/a@npm:^1.1.0":
  version: 1.2.0
  resolution: "@s/a@npm:1.2.0"
  dependencies:
    b: "npm:~2.0.0"
    mac: "npm:1.0.0"
    maybe: "npm:1.0.0"
    native: "npm:1.0.0"
  dependenciesMeta:
    maybe:
      optional: true
  checksum: 10c0/1
  languageName: node
  linkType: hard

"b@npm:~2.0.0":
  version: 2.0.1
  resolution: "b@npm:2.0.1"
  peerDependencies:
    c: "*"
  languageName: node
  linkType: hard

"b@npm:3.0.0":
  version: 3.0.0
  resolution: "b@npm:3.0.0"
  languageName: node
  linkType: hard

"mac@npm:1.0.0":
  version: 1.0.0
  resolution: "mac@npm:1.0.0"
  conditions: os=darwin
  languageName: node
  linkType: hard

"maybe@npm:1.0.0":
  version: 1.0.0
  resolution: "maybe@npm:1.0.0"
  languageName: node
  linkType: hard

"native@npm:1.0.0":
  version: 1.0.0
  resolution: "native@npm:1.0.0"
  languageName: node
  linkType: hard

"native@patch:native@npm%3A1.0.0#optional!builtin<compat/native>":
  version: 1.0.0
  resolution: "native@patch:native@npm%3A1.0.0#optional!builtin<compat/native>::version=1.0.0&hash=1"
  languageName: node
  linkType: hard

"x@workspace:.":
  version: 0.0.0-use.local
  resolution: "x@workspace:."
  dependencies:
    "@s/a": "npm:^1.1.0"
  languageName: unknown
  linkType: soft
"#;

    #[test]
    fn what_a_later_yarn_installed_is_compared() {
        let patched = "native@patch:native@npm%3A1.0.0#optional!builtin<compat/native>::version=1.0.0&hash=1";
        let fits = |locators: &[&str]| {
            let installed = locators.iter().map(|locator| real(locator)).collect();
            Resolved::read(LOCKFILE).is_installed(&installed)
        };
        let whole = ["__metadata", "x@workspace:.", "@s/a@npm:1.2.0", "b@virtual:0123#npm:2.0.1", patched];
        assert!(fits(&whole));
        assert!(fits(&[&whole[..], &["maybe@npm:1.0.0", "mac@npm:1.0.0"]].concat()));
        // Each is needed, and each of another version is one that the lockfile does not have.
        for at in 2..whole.len() {
            let mut other = whole.to_vec();
            other.remove(at);
            assert!(!fits(&other), "without {}", whole[at]);
            other.push("b@npm:2.0.0");
            assert!(!fits(&other));
        }
        assert!(!fits(&[&whole[..4], &["b@npm:3.0.0", "@s/a@npm:1.1.0", patched]].concat()));
        assert!(!Resolved::read("\n__metadata:\n").is_installed(&HashSet::from(["a@npm:1".to_owned()])));
    }

    #[test]
    fn build_scripts_run_after_a_later_yarn_has_noted_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("node_modules");
        let (built, state) =
            (modules.join("native"), "\"native@npm:1.0.0\":\n  locations:\n    - \"node_modules/native\"\n");
        fs_err::create_dir_all(&built).unwrap();
        fs_err::write(modules.join(BERRY), state).unwrap();
        let lockfile = "\n__metadata:\n  version: 8\n\n\"native@npm:1.0.0\":\n  resolution: \"native@npm:1.0.0\"\n\n\"x@workspace:.\":\n  \
            resolution: \"x@workspace:.\"\n  dependencies:\n    native: \"npm:1.0.0\"\n";
        let fit = || read(&[lockfile])(&Directory::open(&modules, std::path::Path::new("")).unwrap());
        assert_eq!(fit(), Fit::Yes);
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        File::open(&built).unwrap().set_modified(later).unwrap();
        assert_eq!(fit(), Fit::Unsure);
        fs_err::remove_dir(&built).unwrap();
        assert_eq!(fit(), Fit::No);
    }

    #[test]
    fn the_entries_of_version_1_are_read() {
        let text = "# yarn lockfile v1\n\n\n\"@s/a@^1.0.0\", \"a@>=1, <2\", b@1:\n  version \"1.2.0\"\n  resolved \"https://h/a.tgz#1\"\n  \
            dependencies:\n    c \"^1\"\n\n\"c@file:./c\":\n  version \"1.0.0\"\n";
        let expected =
            [("@s/a@^1.0.0", "https://h/a.tgz#1"), ("a@>=1, <2", "https://h/a.tgz#1"), ("b@1", "https://h/a.tgz#1")];
        let mut expected: HashMap<String, String> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        expected.insert("c@file:./c".into(), String::new());
        assert_eq!(entries(text), expected);
    }
}
