//! npm: `node_modules/.package-lock.json`, which it writes last, against `package-lock.json`.

use std::collections::HashMap;

use serde::Deserialize;

use super::installers::Fit;
use crate::directory::Directory;

pub(super) const WITNESS: &str = ".package-lock.json";

#[derive(Deserialize)]
struct Lockfile {
    #[serde(rename = "lockfileVersion")]
    version: u64,
    packages: Option<HashMap<String, Package>>,
}

/// A package at a path. Fields: <https://docs.npmjs.com/cli/configuring-npm/package-lock-json>
#[derive(Deserialize, Default, Clone, PartialEq, Eq, Debug)]
#[serde(default)]
struct Package {
    version: Option<String>,
    resolved: Option<String>,
    integrity: Option<String>,
    link: bool,
    dev: bool,
    optional: bool,
    #[serde(rename = "devOptional")]
    dev_optional: bool,
    /// Directory without the lockfile, by `npm install --no-save`.
    extraneous: bool,
}

type Packages = HashMap<String, Package>;

/// Before version 2 a lockfile does not name the paths, and npm 6, which wrote it, left no witness.
fn packages(text: &str) -> Option<Packages> {
    let lockfile: Lockfile = serde_json::from_str(text).ok()?;
    let mut packages = lockfile.packages.filter(|_| [2, 3].contains(&lockfile.version))?;
    // The others are the project's own.
    packages.retain(|path, _| path.starts_with(BELOW) || path.contains("/node_modules/"));
    Some(packages)
}

const BELOW: &str = "node_modules/";

pub(super) fn judge(directory: &Directory, lockfiles: &[&str]) -> Fit {
    let Some(wanted) = lockfiles.first().and_then(|text| packages(text)) else { return Fit::Unsure };
    let Some(end) = directory.changed(WITNESS) else { return Fit::No };
    // npm writes it in place, so it may be a half one.
    let Some(installed) = directory.read(WITNESS).and_then(|text| packages(&text)) else { return Fit::No };
    let directories = installed.iter().filter(|(_, package)| !package.link);
    let directories = directories.filter_map(|(path, _)| path.strip_prefix(BELOW));
    (is_installed(&wanted, &installed) && directory.is_settled(directories, end)).into()
}

/// Returns whether `npm ci` would make the same again.
fn is_installed(wanted: &Packages, installed: &Packages) -> bool {
    let is_dev = |package: &Package| package.dev || package.dev_optional;
    // `npm ci --omit=dev`
    let omits_dev = !installed.values().any(|package| package.dev);
    let is_there = |(path, package): (&String, &Package)| match installed.get(path) {
        Some(found) => package.is(found),
        // Those for other platforms are left out.
        None => package.optional || package.dev_optional || omits_dev && is_dev(package),
    };
    wanted.iter().all(is_there)
        && installed.iter().all(|(path, package)| package.extraneous || wanted.contains_key(path))
}

impl Package {
    fn is(&self, found: &Package) -> bool {
        let algorithm = |hash: &str| hash.split('-').next().map(str::to_owned);
        self.link == found.link
            && self.version == found.version
            && match (&self.integrity, &found.integrity) {
                (Some(wanted), Some(found)) => wanted == found || algorithm(wanted) != algorithm(found),
                // The same version may come from another server.
                (None, None) if !self.link && self.version.is_some() && !self.is_from_git() => true,
                (None, None) => self.resolved == found.resolved,
                _ => true,
            }
    }

    fn is_from_git(&self) -> bool {
        self.resolved.as_ref().is_some_and(|resolved| resolved.starts_with("git"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str) -> Package {
        Package { version: Some(version.into()), integrity: Some(format!("sha512-{version}")), ..Package::default() }
    }

    #[test]
    fn random_installations_fit_the_lockfile_they_were_made_from_only() {
        for seed in 0..calve_testkit::rounds(300) {
            let mut random = calve_testkit::SplitMix64::new(seed as u64);
            let mut wanted = Packages::new();
            for name in 0..=random.below(8) {
                let mut one = package(&random.below(3).to_string());
                match random.below(4) {
                    0 => one.dev = true,
                    1 => one.optional = true,
                    _ => {}
                }
                wanted.insert(format!("node_modules/p{name}"), one);
            }
            // As it is installed here: perhaps without what is for another platform, or for development.
            let mut installed = wanted.clone();
            installed.retain(|_, one| !one.optional || random.below(2) == 0);
            if random.below(3) == 0 {
                installed.retain(|_, one| !one.dev);
            }
            assert!(is_installed(&wanted, &installed), "{wanted:?} {installed:?}");
            let extra = Package { extraneous: true, ..package("1") };
            installed.insert("node_modules/by-hand".into(), extra);
            assert!(is_installed(&wanted, &installed));
            // Whatever else is different is not what the lockfile asks for.
            let mut names: Vec<String> = wanted.keys().filter(|name| installed.contains_key(*name)).cloned().collect();
            names.sort();
            let Some(name) = names.get(random.below(names.len().max(1) as u64) as usize) else { continue };
            let is_needed = !wanted[name].optional && !wanted[name].dev;
            let mut other = installed.clone();
            match random.below(3) {
                0 if is_needed => drop(other.remove(name)),
                1 => drop(other.insert("node_modules/p0/node_modules/p1".into(), package("0"))),
                _ => drop(other.insert(name.clone(), package("7"))),
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
