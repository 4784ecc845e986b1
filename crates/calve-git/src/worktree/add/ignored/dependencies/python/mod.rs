//! Python: a virtual environment's `*.dist-info` directories, with names and versions, against any tool's lockfile.

pub(super) mod lockfiles;
mod marker;
mod requirements;
mod version;

use std::collections::{HashMap, HashSet};

use super::fit::{Fit, Judge};
use crate::directory::Directory;
use lockfiles::{Locked, MAIN, PYTHON, normalised};
use marker::Interpreter;

pub(super) fn requirements<'t>(files: &[&'t str]) -> Judge<'t> {
    let (locked, is_understood) = requirements::read(files);
    let most = if is_understood { Fit::Yes } else { Fit::Unsure };
    Box::new(move |directory| judge(directory, Some(&locked)).min(most))
}

pub(super) fn read<'t>(files: &[&'t str], read: fn(&str) -> Option<Vec<Locked>>) -> Judge<'t> {
    let locked = files.first().and_then(|text| read(text));
    Box::new(move |directory| judge(directory, locked.as_deref()))
}

fn judge(directory: &Directory, locked: Option<&[Locked]>) -> Fit {
    let Some(venv) = Venv::read(directory) else { return Fit::No };
    let Some(locked) = locked else { return Fit::Unsure };
    (!venv.is_interrupted && fits(locked, &venv)).into()
}

struct Venv {
    interpreter: Interpreter,
    /// By normalised name.
    packages: HashMap<String, InstalledPackage>,
    /// pip was ended while it replaced a package: it has given the old one a name that begins with `~`.
    is_interrupted: bool,
}

#[derive(Default)]
struct InstalledPackage {
    version: String,
    /// The installer has written all its files.
    is_whole: bool,
    /// Its origin, if not an index (PEP 610).
    origin: Option<String>,
}

impl Venv {
    fn read(directory: &Directory) -> Option<Venv> {
        let interpreter = Interpreter::parse(&directory.read("pyvenv.cfg")?);
        let site = site_packages(directory)?;
        let names = site.names();
        let mut packages: HashMap<String, InstalledPackage> = HashMap::new();
        for entry in &names {
            let Some((name, version)) = entry.strip_suffix(".dist-info").and_then(|entry| entry.rsplit_once('-'))
            else {
                continue;
            };
            let package = InstalledPackage {
                version: version.to_owned(),
                // Every installer writes its name after the files.
                is_whole: site.has(&format!("{entry}/INSTALLER")) && has_recorded(&site, entry),
                origin: site.read(format!("{entry}/direct_url.json")),
            };
            // pdm writes a new version over the old one, which it deletes last.
            packages.entry(normalised(name)).and_modify(|other| other.is_whole = false).or_insert(package);
        }
        Some(Venv { interpreter, packages, is_interrupted: names.iter().any(|name| name.starts_with('~')) })
    }
}

/// Returns whether the first file that a package lists is there: installers delete in that order, and the list later.
fn has_recorded(site: &Directory, entry: &str) -> bool {
    let record = site.read(format!("{entry}/RECORD")).unwrap_or_default();
    let paths = record.lines().filter_map(|line| match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once("\",").map(|(path, _)| path),
        None => line.split(',').next(),
    });
    // Compiled files come and go, and programs are elsewhere.
    let mut paths = paths.filter(|path| !path.ends_with(".pyc") && !path.starts_with("..") && !path.starts_with('/'));
    paths.next().is_none_or(|path| site.has(path))
}

pub(super) fn site_packages(directory: &Directory) -> Option<Directory> {
    let lib = directory.directory("lib")?;
    let mut pythons = lib.names().into_iter().filter(|name| name.starts_with("python"));
    pythons.find_map(|name| lib.directory(name)?.directory("site-packages"))
}

/// Returns whether no installed package contradicts the lockfile, and none is missing that surely has to be there.
fn fits(locked: &[Locked], venv: &Venv) -> bool {
    let holds = |one: &Locked| one.marker.as_ref().map_or(Some(true), |marker| venv.interpreter.holds(marker));
    let mut by_name: HashMap<&str, Vec<&Locked>> = HashMap::new();
    for one in locked.iter().filter(|one| holds(one) != Some(false)) {
        by_name.entry(&one.name).or_default().push(one);
    }
    let mut pythons =
        locked.iter().filter(|one| one.name == PYTHON).filter_map(|one| one.version.as_deref()).peekable();
    if pythons.peek().is_some() && !pythons.any(|wanted| venv.interpreter.satisfies(wanted)) {
        return false;
    }
    let is_installed = |one: &&Locked| venv.packages.contains_key(&one.name);
    // A group counts if a package is installed that only this group needs.
    let of_one_group = locked.iter().filter(is_installed).filter_map(|one| match &one.groups[..] {
        [group] => Some(group.as_str()),
        _ => None,
    });
    let groups: HashSet<&str> = of_one_group.chain([MAIN]).collect();
    let is_needed =
        |one: &&Locked| holds(one) == Some(true) && one.groups.iter().any(|group| groups.contains(group.as_str()));
    by_name.values().all(|all| match venv.packages.get(&all[0].name) {
        Some(found) => found.is_whole && all.iter().any(|one| found.is(one)),
        None => !all.iter().any(is_needed),
    })
}

impl InstalledPackage {
    fn is(&self, locked: &Locked) -> bool {
        locked
            .version
            .as_ref()
            .is_none_or(|version| *version == self.version || version::satisfies(&self.version, version) == Some(true))
            && locked
                .revision
                .as_ref()
                .is_none_or(|revision| self.origin.as_ref().is_some_and(|origin| origin.contains(revision.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn venv(packages: &[(String, String)]) -> Venv {
        let one = |(name, version): &(String, String)| {
            (name.clone(), InstalledPackage { version: version.clone(), is_whole: true, origin: None })
        };
        let interpreter = Interpreter::parse("version = 3.11.7\n");
        Venv { interpreter, packages: packages.iter().map(one).collect(), is_interrupted: false }
    }

    #[test]
    fn random_environments_fit_the_lockfile_they_were_made_from_only() {
        for seed in 0..calve_testkit::rounds(300) {
            let mut random = calve_testkit::SplitMix64::new(seed as u64);
            let has_dev = random.below(2) == 0;
            let (mut locked, mut installed) = (Vec::new(), Vec::new());
            for at in 0..=random.below(8) {
                let (name, version) = (format!("p{at}"), format!("{}.{}", random.below(3), random.below(3)));
                let (group, marker, is_there) = match random.below(4) {
                    0 => ("dev", None, has_dev),
                    1 => (MAIN, Some("python_version < '3.0'".to_owned()), false),
                    2 => (MAIN, Some("platform_release == '1'".to_owned()), random.below(2) == 0),
                    _ => (MAIN, None, true),
                };
                let version_there = if random.below(2) == 0 { format!("{version}.0") } else { version.clone() };
                if is_there {
                    installed.push((name.clone(), version_there));
                }
                let groups = vec![group.to_owned()];
                locked.push(Locked { name, version: Some(version), marker, groups, ..Locked::default() });
            }
            installed.push(("by-hand".into(), "1".into()));
            assert!(fits(&locked, &venv(&installed)), "{locked:?} {installed:?}");
            let at = random.below(installed.len() as u64) as usize;
            let Some(one) = locked.iter().find(|one| one.name == installed[at].0) else { continue };
            let mut other = installed.clone();
            if random.below(2) == 0 {
                other[at].1 = "9.9".into();
                assert!(!fits(&locked, &venv(&other)), "{locked:?} {other:?}");
            } else if one.marker.is_none() && one.groups == [MAIN] {
                other.remove(at);
                assert!(!fits(&locked, &venv(&other)), "{locked:?} {other:?}");
            }
        }
    }

    #[test]
    fn another_python_than_the_lockfile_wants_does_not_fit() {
        for (wanted, fit) in [(">=3.9", true), (">=3.9, <3.12", true), (">=3.12", false), ("==3.10.*", false)] {
            let text = format!("version = 1\nrequires-python = \"{wanted}\"\n");
            assert_eq!(fits(&lockfiles::uv(&text).unwrap(), &venv(&[])), fit, "{wanted}");
            let text = format!("lock-version = \"1.0\"\nrequires-python = \"{wanted}\"\n");
            assert_eq!(fits(&lockfiles::pylock(&text).unwrap(), &venv(&[])), fit, "{wanted}");
            let text =
                format!("[metadata]\nlock_version = \"4.5.0\"\n[[metadata.targets]]\nrequires_python = \"{wanted}\"\n");
            assert_eq!(fits(&lockfiles::pdm(&text).unwrap(), &venv(&[])), fit, "{wanted}");
        }
    }

    #[test]
    fn a_package_from_a_repository_is_the_one_of_its_revision() {
        let locked = Locked { name: "a".into(), revision: Some("abc".into()), ..Locked::default() };
        let mut venv = venv(&[("a".into(), "1".into())]);
        assert!(!fits(std::slice::from_ref(&locked), &venv));
        let found = venv.packages.get_mut("a").unwrap();
        found.origin = Some("{\"vcs_info\": {\"commit_id\": \"abc\"}}".into());
        assert!(fits(std::slice::from_ref(&locked), &venv));
        // A package of which only a part was written, even where any version will do.
        venv.packages.get_mut("a").unwrap().is_whole = false;
        assert!(!fits(&[Locked { name: "a".into(), ..Locked::default() }], &venv));
    }
}
