//! npm: `node_modules/.package-lock.json`, which it writes last, against `package-lock.json`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::fit::{Fit, Judge};
use crate::directory::{Directory, Time};

pub(super) const WITNESS: &str = ".package-lock.json";

#[derive(Deserialize)]
struct Lockfile<'t> {
    #[serde(rename = "lockfileVersion")]
    version: u64,
    #[serde(borrow)]
    packages: Option<Packages<'t>>,
}

/// A package at a path. Its texts are borrowed: there are thousands, and they have nothing that JSON has to escape.
/// Fields: <https://docs.npmjs.com/cli/configuring-npm/package-lock-json>
#[derive(Deserialize, Default, Clone, PartialEq, Eq, Debug)]
#[serde(default)]
struct Package<'t> {
    #[serde(borrow)]
    version: Option<&'t str>,
    #[serde(borrow)]
    resolved: Option<&'t str>,
    #[serde(borrow)]
    integrity: Option<&'t str>,
    link: bool,
    dev: bool,
    optional: bool,
    #[serde(rename = "devOptional")]
    dev_optional: bool,
    /// No package asks for it: `npm prune` would remove it.
    extraneous: bool,
}

type Packages<'t> = HashMap<&'t str, Package<'t>>;

/// Lockfiles before version 2 name no paths.
fn packages(text: &str) -> Option<Packages<'_>> {
    let lockfile: Lockfile<'_> = serde_json::from_str(text).ok()?;
    let mut packages = lockfile.packages.filter(|_| [2, 3].contains(&lockfile.version))?;
    // The others are the project's own.
    packages.retain(|path, _| is_installed_at(path));
    Some(packages)
}

/// Returns whether an installer fills a path: at the top or in a workspace's package, but not above the project.
pub(super) fn is_installed_at(path: &str) -> bool {
    !path.starts_with("../") && (path.starts_with("node_modules/") || path.contains("/node_modules/"))
}

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let text = lockfiles.first().copied().unwrap_or_default();
    let wanted = packages(text);
    let of_version_1 = if wanted.is_none() { needed_by_version_1(text) } else { None };
    Box::new(move |directory| match (&wanted, &of_version_1) {
        (Some(wanted), _) => judge(directory, wanted),
        // npm 6, which wrote it, leaves no witness: the packages at the top have to be there.
        (None, Some(needed)) if directory.is_settled(needed.iter().map(String::as_str), Time::MAX) => Fit::Unsure,
        (None, None) if directory.has(WITNESS) => Fit::Unsure,
        _ => Fit::No,
    })
}

fn judge(directory: &Directory, wanted: &Packages<'_>) -> Fit {
    let end = directory.changed(WITNESS);
    let Some((end, installed)) = end.zip(directory.read(WITNESS)) else { return Fit::No };
    // npm writes it in place, so it may be incomplete.
    let Some(installed) = packages(&installed) else { return Fit::No };
    let directories = installed.iter().filter(|(_, package)| !package.link).map(|(path, _)| *path);
    let is_settled = |project: Directory| project.is_settled(directories, end);
    (is_installed(wanted, &installed) && directory.above().is_some_and(is_settled)).into()
}

/// Returns the packages at the top of a version 1 lockfile, by npm 6 and older. `None`: it has another version.
fn needed_by_version_1(text: &str) -> Option<Vec<String>> {
    let lockfile: Value = serde_json::from_str(text).ok()?;
    let packages = (lockfile["lockfileVersion"] == 1).then(|| lockfile["dependencies"].as_object())?;
    let needed = packages.into_iter().flatten().filter(|(_, package)| package["optional"] != true);
    Some(needed.map(|(name, _)| name.clone()).collect())
}

/// Returns whether `npm ci` would make the same again.
fn is_installed(wanted: &Packages<'_>, installed: &Packages<'_>) -> bool {
    let is_dev = |package: &Package<'_>| package.dev || package.dev_optional;
    // `npm ci --omit=dev`
    let omits_dev = !installed.values().any(|package| package.dev);
    let is_there = |(path, package): (&&str, &Package<'_>)| match installed.get(path) {
        Some(found) => package.is(found),
        // Packages for other platforms are left out.
        None => package.optional || package.dev_optional || omits_dev && is_dev(package),
    };
    wanted.iter().all(is_there)
        && installed.iter().all(|(path, package)| package.extraneous || wanted.contains_key(path))
}

impl Package<'_> {
    fn is(&self, found: &Package<'_>) -> bool {
        let algorithm = |hash: &str| hash.split('-').next().map(str::to_owned);
        let is_from_git = || self.resolved.is_some_and(|resolved| resolved.starts_with("git"));
        self.link == found.link
            && self.version == found.version
            && match (&self.integrity, &found.integrity) {
                (Some(wanted), Some(found)) => wanted == found || algorithm(wanted) != algorithm(found),
                // The same version may come from another server.
                (None, None) if !self.link && self.version.is_some() && !is_from_git() => true,
                (None, None) => self.resolved == found.resolved,
                _ => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &'static str) -> Package<'static> {
        Package { version: Some(version), integrity: Some(version), ..Package::default() }
    }

    const PATHS: [&str; 9] = [
        "node_modules/p0",
        "node_modules/p1",
        "node_modules/p2",
        "node_modules/p3",
        "node_modules/p4",
        "node_modules/p5",
        "node_modules/p6",
        "node_modules/p7",
        "node_modules/p8",
    ];

    #[test]
    fn random_installations_fit_the_lockfile_they_were_made_from_only() {
        for seed in 0..calve_testkit::rounds(300) {
            let mut random = calve_testkit::SplitMix64::new(seed as u64);
            let mut wanted = Packages::new();
            for path in &PATHS[..=random.below(8) as usize] {
                let mut one = package(["0", "1", "2"][random.below(3) as usize]);
                match random.below(4) {
                    0 => one.dev = true,
                    1 => one.optional = true,
                    _ => {}
                }
                wanted.insert(path, one);
            }
            // As it is installed here: perhaps without what is for another platform, or for development.
            let mut installed = wanted.clone();
            installed.retain(|_, one| !one.optional || random.below(2) == 0);
            if random.below(3) == 0 {
                installed.retain(|_, one| !one.dev);
            }
            assert!(is_installed(&wanted, &installed), "{wanted:?} {installed:?}");
            let extra = Package { extraneous: true, ..package("1") };
            installed.insert("node_modules/by-hand", extra);
            assert!(is_installed(&wanted, &installed));
            // Whatever else is different is not what the lockfile asks for.
            let mut names: Vec<&str> = wanted.keys().filter(|name| installed.contains_key(*name)).copied().collect();
            names.sort();
            let Some(name) = names.get(random.below(names.len().max(1) as u64) as usize) else { continue };
            let is_needed = !wanted[name].optional && !wanted[name].dev;
            let mut other = installed.clone();
            match random.below(3) {
                0 if is_needed => drop(other.remove(name)),
                1 => drop(other.insert("node_modules/p0/node_modules/p1", package("0"))),
                _ => drop(other.insert(name, package("7"))),
            }
            assert!(!is_installed(&wanted, &other), "{wanted:?} {other:?}");
        }
    }

    #[test]
    fn unknown_versions_and_nonsense_have_no_packages() {
        for text in [
            "",
            "{",
            "[]",
            "{\"lockfileVersion\":1,\"dependencies\":{}}",
            "{\"lockfileVersion\":9,\"packages\":{}}",
            "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":7}}}",
        ] {
            assert_eq!(packages(text), None, "{text}");
        }
        assert_eq!(packages("{\"lockfileVersion\":3,\"packages\":{\"\":{},\"a\":{}}}"), Some(Packages::new()));
    }
}
