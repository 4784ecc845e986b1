//! bun leaves no sign of completion: each package of `bun.lock` is checked by its `package.json` version, as bun does.

use std::collections::{HashMap, HashSet};

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::fit::{Fit, Judge, listed};
use crate::directory::Directory;

/// The directory of the linker that keeps packages apart and links them.
const STORE: &str = ".bun";
/// Prefix of a package's directory while another version takes its place.
const REPLACED: &str = ".old-";

/// The packages of a text lockfile (<https://bun.com/docs/pm/lockfile>), and those that the project's own need.
struct Wanted {
    packages: Vec<Package>,
    needs: Vec<Need>,
}

struct Package {
    /// Relative to `node_modules`. `None`: elsewhere, if only one of the project's own packages needs it.
    path: Option<String>,
    /// `None`: any, because it is not from a registry.
    version: Option<String>,
    /// It may be for another platform.
    may_be_missing: bool,
    needs: Vec<Need>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Need {
    /// Position in [`Wanted::packages`].
    package: usize,
    is_optional: bool,
}

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().and_then(|text| Wanted::read(text));
    Box::new(move |directory| match &wanted {
        Some(wanted) if !directory.has(STORE) => wanted.judge(directory),
        _ => Fit::Unsure,
    })
}

impl Wanted {
    fn read(text: &str) -> Option<Wanted> {
        // It has commas before closing brackets, which JSON forbids.
        let document = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?.value?;
        let document = Value::from(document);
        let is_known = document["lockfileVersion"].as_u64().is_some_and(|version| version <= 2);
        let packages = document["packages"].as_object()?;
        if !is_known || !packages.values().all(Value::is_array) {
            return None;
        }
        let workspaces = match document.get("workspaces") {
            Some(all) => Some(all.as_object()?),
            None => None,
        };
        let keys: HashMap<&str, usize> = packages.keys().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
        // A package is its locator, and then values of several kinds.
        let reference = |package: &Value| {
            let locator = package[0].as_str()?;
            Some(locator[locator.get(1..)?.find('@')? + 2..].to_owned())
        };
        let is_workspace = |key: &str| {
            let own = packages.get(key).and_then(reference);
            own.is_some_and(|reference| reference.starts_with("workspace:"))
        };
        let package = |(key, package): (&String, &Value)| {
            let about = package.as_array().into_iter().flatten().find(|value| value.is_object());
            let own = parts(key).next().is_some_and(|first| is_workspace(&first));
            let is_for_platform = |about: &Value| ["os", "cpu", "libc"].iter().any(|kind| about.get(kind).is_some());
            Package {
                path: (!own).then(|| parts(key).collect::<Vec<_>>().join("/node_modules/")),
                version: reference(package).filter(|reference| reference.starts_with(|c: char| c.is_ascii_digit())),
                may_be_missing: about.is_some_and(is_for_platform),
                needs: about.map(|about| needs(about, key, &keys)).unwrap_or_default(),
            }
        };
        let own = workspaces.into_iter().flat_map(|all| all.values());
        let needs = own.flat_map(|about| needs(about, about["name"].as_str().unwrap_or_default(), &keys)).collect();
        Some(Wanted { packages: packages.iter().map(package).collect(), needs })
    }

    fn judge(&self, directory: &Directory) -> Fit {
        if directory.names().iter().any(|name| name.starts_with(REPLACED)) {
            return Fit::No;
        }
        let (mut open, mut seen) = (self.needs.clone(), HashSet::new());
        while let Some(need) = open.pop() {
            if !seen.insert(need) {
                continue;
            }
            let package = &self.packages[need.package];
            match package.is_right(directory) {
                // It is in one of the project's own packages, where it is not looked for.
                _ if package.path.is_none() && (need.is_optional || package.may_be_missing) => {}
                Some(true) => open.extend(&package.needs),
                // Nothing that it needs is there for its sake.
                None if need.is_optional || package.may_be_missing => {}
                _ => return Fit::No,
            }
        }
        let is_known = |package: &Package| package.path.is_none() || package.version.is_some();
        if self.packages.iter().all(is_known) { Fit::Yes } else { Fit::Unsure }
    }
}

impl Package {
    /// Returns whether it has the wanted version, `None` if nothing is in its place.
    fn is_right(&self, directory: &Directory) -> Option<bool> {
        let Some(path) = &self.path else { return Some(true) };
        if !directory.has(path) {
            return None;
        }
        // A package that is not from a registry may be a link.
        let Some(version) = &self.version else { return Some(true) };
        let manifest = directory.read(format!("{path}/package.json"));
        let manifest = manifest.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        Some(manifest.is_some_and(|manifest| manifest["version"] == **version))
    }
}

/// Returns the needs of the package with this key, or of the project's own package with this name.
fn needs(about: &Value, key: &str, keys: &HashMap<&str, usize>) -> Vec<Need> {
    let above: Vec<String> = parts(key).collect();
    // The one in the package's own directory counts, else the nearest above.
    let find = |name: &str| {
        let inside = (1..=above.len()).rev().map(|count| format!("{}/{name}", above[..count].join("/")));
        inside.chain([name.to_owned()]).find_map(|key| keys.get(&*key).copied())
    };
    let optional_peers: Vec<&Value> = listed(about, "optionalPeers").collect();
    let kinds = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];
    let named = kinds.iter().flat_map(|kind| {
        let names = about[*kind].as_object().into_iter().flat_map(|all| all.keys());
        names.map(|name| (name, *kind == "optionalDependencies"))
    });
    let named = named.filter(|(name, _)| !optional_peers.iter().any(|peer| *peer == *name));
    named.filter_map(|(name, is_optional)| Some(Need { package: find(name)?, is_optional })).collect()
}

/// Splits nested package names. Those with a scope contain a slash.
fn parts(key: &str) -> impl Iterator<Item = String> {
    let mut words = key.split('/');
    std::iter::from_fn(move || {
        let word = words.next()?;
        Some(if word.starts_with('@') { format!("{word}/{}", words.next()?) } else { word.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_nothing_here_needs_may_be_missing() {
        let text = r#"{
  "lockfileVersion": 1,
  "workspaces": {
    "": { "name": "x", "dependencies": { "@s/a": "1", "mac": "1", "app": "1", }, "optionalDependencies": { "maybe": "1", }, },
    "packages/own": { "name": "own", "devDependencies": { "b": "3", "c": "1", "native": "2" } }
  },
  "packages": {
    "@s/a": ["@s/a@1.2.0", "", { "dependencies": { "b": "1,}" }, "peerDependencies": { "c": "*", "peer": "*" }, "optionalPeers": ["peer"] }, "sha512-1"],

    "@s/a/b": ["b@1.0.0", "", {}, "sha512-2"],
    "app": ["app@1.0.0", "", { "optionalDependencies": { "native": "1" } }, "sha512-3"],
    "b": ["b@2.0.0-rc.1", "", { "bin": "\\" }, "sha512-3"],
    "c": ["c@1.0.0", "", { "dependencies": { "b": "2" } }, "sha512-7"],
    "helper": ["helper@1.0.0", "", {}, "sha512-8"],
    "mac": ["mac@1.0.0", "", { "os": "darwin" }, "sha512-4"],
    "maybe": ["maybe@1.0.0", "", {}, "sha512-5"],
    "native": ["native@1.0.0", "", { "os": "darwin", "dependencies": { "helper": "1" } }, "sha512-9"],
    "own": ["own@workspace:packages/own"],
    "helper2": ["helper2@1.0.0", "", {}, "sha512-11"],
    "own/b": ["b@3.0.0", "", {}, "sha512-6"],
    "own/native": ["native@2.0.0", "", { "os": "darwin", "dependencies": { "helper2": "1" } }, "sha512-12"],
    "peer": ["peer@1.0.0", "", {}, "sha512-10"],
  }
}"#;
        let fit = |text: &str, present: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (path, version) in present {
                let package = folder.path().join(path);
                fs_err::create_dir_all(&package).unwrap();
                fs_err::write(package.join("package.json"), format!("{{\"version\":\"{version}\"}}")).unwrap();
            }
            fs_err::os::unix::fs::symlink("..", folder.path().join("linked")).unwrap();
            read(&[text])(&Directory::open(folder.path(), Path::new("")).unwrap())
        };
        let whole = [
            ("@s/a", "1.2.0"),
            ("@s/a/node_modules/b", "1.0.0"),
            ("app", "1.0.0"),
            ("b", "2.0.0-rc.1"),
            ("c", "1.0.0"),
        ];
        assert_eq!(fit(text, &whole), Fit::Yes);
        for at in 0..whole.len() {
            let mut other = whole;
            other[at].1 = "9";
            assert_eq!(fit(text, &other), Fit::No, "another version of {}", whole[at].0);
            assert_eq!(fit(text, &[&whole[..at], &whole[at + 1..]].concat()), Fit::No, "without {}", whole[at].0);
        }
        // A package that is there needs its own, wherever it is for.
        assert_eq!(fit(text, &[&whole[..], &[("native", "1.0.0")]].concat()), Fit::No);
        assert_eq!(fit(text, &[&whole[..], &[("native", "1.0.0"), ("helper", "1.0.0")]].concat()), Fit::Yes);
        // Of a link nothing tells what it should be.
        let linked = r#"{"lockfileVersion": 1, "workspaces": {"": {"dependencies": {"linked": "link:linked"}}},
            "packages": {"linked": ["linked@link:linked", {}]}}"#;
        assert_eq!(fit(linked, &[]), Fit::Unsure);
        assert_eq!(fit(&linked.replace("linked", "missing"), &[]), Fit::No);
        for text in ["", "{", "[]", "{\"lockfileVersion\": 9, \"packages\": {}}"] {
            assert!(Wanted::read(text).is_none(), "{text}");
        }
    }
}
