//! bun: nothing says that an installation was finished, so each package of `bun.lock` is looked for, by the version in its `package.json`, as bun does.

use std::collections::{HashMap, HashSet};

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Deserialize;
use serde_json::Value;

use super::fit::{Fit, Judge};
use crate::directory::Directory;

/// The place of the linker that keeps packages apart and links them.
const STORE: &str = ".bun";
/// Begins the name that it gives a package's directory while another version takes its place.
const REPLACED: &str = ".old-";

/// The text lockfile (<https://bun.com/docs/pm/lockfile>). A package is its locator, and then things of several kinds.
#[derive(Deserialize)]
struct Lockfile {
    #[serde(rename = "lockfileVersion")]
    version: u64,
    #[serde(default)]
    workspaces: HashMap<String, Value>,
    packages: HashMap<String, Vec<Value>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    /// Relative to `node_modules`.
    path: String,
    /// `None`: any, as it is not from a registry.
    version: Option<String>,
    /// It is for another platform, maybe.
    may_be_missing: bool,
}

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().and_then(|text| packages(text));
    Box::new(move |directory| match &wanted {
        Some(wanted) if !directory.has(STORE) => judge(directory, wanted),
        _ => Fit::Unsure,
    })
}

fn judge(directory: &Directory, wanted: &[Package]) -> Fit {
    let is_interrupted = directory.names().iter().any(|name| name.starts_with(REPLACED));
    if is_interrupted || !wanted.iter().all(|package| is_there(directory, package)) {
        return Fit::No;
    }
    if wanted.iter().all(|package| package.version.is_some()) { Fit::Yes } else { Fit::Unsure }
}

fn is_there(directory: &Directory, package: &Package) -> bool {
    let manifest = directory.read(format!("{}/package.json", package.path));
    let Some(manifest) = manifest.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
        return package.may_be_missing && !directory.has(&package.path);
    };
    package.version.as_ref().is_none_or(|version| manifest["version"] == **version)
}

fn packages(text: &str) -> Option<Vec<Package>> {
    // It has commas before closing brackets.
    let document = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?.value?;
    let lockfile: Lockfile = serde_json::from_value(document.into()).ok()?;
    let packages = (lockfile.version <= 2).then_some(lockfile.packages)?;
    let abouts = || packages.values().flatten().chain(lockfile.workspaces.values()).filter_map(Value::as_object);
    let optional: HashSet<&String> = abouts()
        .filter_map(|about| about.get("optionalDependencies")?.as_object())
        .flat_map(|all| all.keys())
        .collect();
    let resolution = |package: &[Value]| {
        let locator = package.first()?.as_str()?;
        let at = locator.get(1..)?.find('@')?;
        Some((locator[..=at].to_owned(), locator[at + 2..].to_owned()))
    };
    let is_workspace = |key: &str| {
        let own = packages.get(key).and_then(|package| resolution(package));
        own.is_some_and(|(_, reference)| reference.starts_with("workspace:"))
    };
    let wanted = packages.iter().filter_map(|(key, package)| {
        let (name, reference) = resolution(package)?;
        // A package of the project's own is a link, and what it needs alone is in its own directory.
        if is_workspace(&parts(key).next()?) {
            return None;
        }
        let is_for_platform = |about: &Value| about.get("os").is_some() || about.get("cpu").is_some();
        Some(Package {
            path: parts(key).collect::<Vec<_>>().join("/node_modules/"),
            version: Some(reference).filter(|reference| reference.starts_with(|c: char| c.is_ascii_digit())),
            may_be_missing: optional.contains(&name) || package.iter().any(is_for_platform),
        })
    });
    Some(wanted.collect())
}

/// Splits the names of packages inside each other, of which those with a scope have a slash of their own.
fn parts(key: &str) -> impl Iterator<Item = String> {
    let mut words = key.split('/');
    std::iter::from_fn(move || {
        let word = words.next()?;
        Some(if word.starts_with('@') { format!("{word}/{}", words.next()?) } else { word.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_lockfile_are_read() {
        let text = r#"{
  "lockfileVersion": 1,
  "workspaces": { "": { "name": "x", "optionalDependencies": { "maybe": "1", }, }, "packages/own": { "name": "own" } },
  "packages": {
    "@s/a": ["@s/a@1.2.0", "", { "dependencies": { "b": "1,}" }, }, "sha512-1"],

    "@s/a/b": ["b@1.0.0", "", {}, "sha512-2"],
    "b": ["b@2.0.0-rc.1", "", { "bin": "\\" }, "sha512-3"],
    "mac": ["mac@1.0.0", "", { "os": "darwin" }, "sha512-4"],
    "maybe": ["maybe@1.0.0", "", {}, "sha512-5"],
    "local": ["local@/x/local.tgz", {}],
    "own": ["own@workspace:packages/own"],
    "own/b": ["b@3.0.0", "", {}, "sha512-6"],
  }
}"#;
        let package = |path: &str, version: Option<&str>, may_be_missing| Package {
            path: path.to_owned(),
            version: version.map(str::to_owned),
            may_be_missing,
        };
        let mut found = packages(text).unwrap();
        found.sort();
        let expected = [
            package("@s/a", Some("1.2.0"), false),
            package("@s/a/node_modules/b", Some("1.0.0"), false),
            package("b", Some("2.0.0-rc.1"), false),
            package("local", None, false),
            package("mac", Some("1.0.0"), true),
            package("maybe", Some("1.0.0"), true),
        ];
        assert_eq!(found, expected);
        for text in ["", "{", "[]", "{\"lockfileVersion\": 9, \"packages\": {}}"] {
            assert_eq!(packages(text), None, "{text}");
        }
    }
}
