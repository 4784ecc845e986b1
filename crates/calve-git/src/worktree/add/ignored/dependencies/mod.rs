//! Chooses the worktree for each directory of dependencies: the one that has installed the new worktree's lockfile.

mod bun;
mod fit;
mod installers;
mod npm;
mod pnpm;
mod python;
mod vendored;
mod yarn;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::dependency_names::dependency;
use crate::directory::{Directory, LARGEST_BYTES, Time};
use crate::error::Result;
use crate::git::Git;
use crate::paths::path_of;
use crate::repository::Worktree;
use crate::worktree::add::ignored::CarriedEntries;
use crate::worktree::add::report::Dependency;
use crate::worktree::status::{GitPath, Status, UntrackedEntry, split};
use crate::worktree::tracked::TrackedFiles;
use crate::worktree::tracked::index::{Index, IndexEntry};
use fit::{Fit, Judge};
use installers::Installer;

/// The most other worktrees to compare for one directory, the wanted lockfile first. Each takes milliseconds.
const MOST_JUDGED: usize = 8;

struct Lockfile<'t> {
    path: PathBuf,
    installer: &'static Installer,
    entry: &'t IndexEntry,
    text: OnceCell<Option<String>>,
}

/// Lockfiles of one kind in one directory. Dependencies belong to the nearest group above them.
type Group<'t> = Vec<Lockfile<'t>>;
type GroupKey = (PathBuf, &'static str);

/// One installer's lockfiles in a group, which it reads together.
struct Together<'g, 't> {
    lockfiles: &'g [Lockfile<'t>],
    /// Shared by all compared worktrees. `None`: a lockfile is too large, or no text.
    judge: OnceCell<Option<Judge<'g>>>,
}

impl<'g, 't> Together<'g, 't> {
    /// Splits a group, which is ordered by installer.
    fn all(group: &'g Group<'t>) -> Vec<Self> {
        let parts = group.chunk_by(|one, next| std::ptr::eq(one.installer, next.installer));
        parts.map(|lockfiles| Self { lockfiles, judge: OnceCell::new() }).collect()
    }

    fn installer(&self) -> &'static Installer {
        self.lockfiles[0].installer
    }
}

struct Candidate<'w> {
    path: &'w Path,
    lockfile: PathBuf,
    command: Option<String>,
    /// Its lockfile is the new worktree's.
    is_same: bool,
    changed: Option<Time>,
}

impl Candidate<'_> {
    fn is_right(&self) -> bool {
        self.command.is_none() && self.is_same
    }

    fn rank(&self) -> (bool, bool, Option<Time>) {
        (self.command.is_none(), self.is_same, self.changed)
    }
}

pub(crate) struct Choice<'a> {
    pub(crate) donor: &'a Path,
    pub(crate) tracked: &'a TrackedFiles,
    pub(crate) entries: &'a CarriedEntries<'a>,
    pub(crate) worktrees: &'a [Worktree],
    /// Tracked files that are carried in the donor's version instead of the commit's.
    pub(crate) changed: &'a HashSet<GitPath>,
}

impl<'a> Choice<'a> {
    pub(crate) fn dependencies(&self) -> Result<Vec<Dependency>> {
        let groups = lockfiles(&self.tracked.index);
        let mut present: BTreeMap<&GroupKey, Vec<PathBuf>> = groups.keys().map(|key| (key, Vec::new())).collect();
        for found in dependencies(&self.entries.roots) {
            if let Some(of_group) = governing(&found, &groups).and_then(|key| present.get_mut(key)) {
                of_group.push(found);
            }
        }
        let mut chosen = Vec::new();
        let mut ignored: HashMap<&Path, HashSet<PathBuf>> = HashMap::new();
        for (key, present) in present {
            let Some(best) = self.best(key, &groups[key], &present) else { continue };
            let found = if best.path == self.donor {
                present
            } else {
                if !ignored.contains_key(best.path) {
                    ignored.insert(best.path, dependencies(&Status::read(&Git::at(best.path))?.ignored));
                }
                let all = ignored.get(best.path).into_iter().flatten();
                all.filter(|path| governing(path, &groups) == Some(key) && self.entries.takes(path)).cloned().collect()
            };
            for path in found {
                let (from, lockfile, command) = (best.path.to_path_buf(), best.lockfile.clone(), best.command.clone());
                chosen.push(Dependency { path, from, lockfile, install_needed: command.is_some(), command });
            }
        }
        chosen.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(chosen)
    }

    /// Returns the worktree to take a group's dependencies from. `present`: those that the donor has.
    fn best(&self, (beside, kind): &GroupKey, group: &Group<'_>, present: &[PathBuf]) -> Option<Candidate<'a>> {
        let together = Together::all(group);
        let own = (!present.is_empty()).then(|| self.candidate(self.donor, &together, present));
        if own.as_ref().is_some_and(Candidate::is_right) {
            return own;
        }
        let others = self.worktrees.iter().filter(|other| other.is_usable() && other.path != self.donor);
        // Files that a pull request has put there would run in the new worktree.
        let others = others.filter(|other| !other.provenance.is_untrusted());
        let with_directories = others.filter_map(|other| {
            let likely = likely(&other.path, beside, kind);
            let newest = likely.iter().filter_map(|path| Directory::open(&other.path, path)?.changed(".")).max();
            let is_wanted = likely.iter().any(|path| self.entries.takes(path));
            is_wanted.then(|| ((self.is_same(&other.path, &group[0]), newest), other, likely))
        });
        let mut others: Vec<_> = with_directories.collect();
        others.sort_by_key(|(rank, ..)| std::cmp::Reverse(*rank));
        let mut best = own;
        for (_, other, likely) in others.into_iter().take(MOST_JUDGED) {
            let candidate = self.candidate(&other.path, &together, &likely);
            let is_right = candidate.is_right();
            // If an install is needed anyway, the donor's own directory goes along, like everything else of it.
            let may_replace = |best: &Candidate<'_>| candidate.command.is_none() || best.path != self.donor;
            if best.as_ref().is_none_or(|best| candidate.rank() > best.rank() && may_replace(best)) {
                best = Some(candidate);
            }
            if is_right {
                break;
            }
        }
        best
    }

    fn candidate(&self, worktree: &'a Path, group: &[Together<'_, '_>], present: &[PathBuf]) -> Candidate<'a> {
        let beside = group[0].lockfiles[0].path.parent();
        let is_beside = |path: &&PathBuf| path.parent() == beside;
        // Directories in the packages of a workspace have no witness of their own.
        let judged = present.iter().filter(|path| is_beside(path) || !present.iter().any(|path| is_beside(&path)));
        let judged: Vec<Directory> = judged.filter_map(|path| Directory::open(worktree, path)).collect();
        let has_finished =
            |all: &&Together<'_, '_>| judged.iter().any(|directory| all.installer().has_finished(directory));
        let all = group.iter().find(has_finished).unwrap_or(&group[0]);
        let is_same = all.lockfiles.iter().all(|lockfile| self.is_same(worktree, lockfile));
        let fit = |only: Option<&Lockfile<'_>>| {
            !judged.is_empty() && judged.iter().all(|directory| self.fits(worktree, directory, all, only))
        };
        let changed = judged.iter().filter_map(changed).max();
        if fit(None) {
            let lockfile = all.lockfiles[0].path.clone();
            return Candidate { path: worktree, lockfile, command: None, is_same, changed };
        }
        // If several files are read together, those that do not fit by themselves are to be installed.
        let mut misfits: Vec<&Lockfile<'_>> = match all.lockfiles {
            [only] => vec![only],
            several => several.iter().filter(|one| !fit(Some(one))).collect(),
        };
        if misfits.is_empty() || judged.is_empty() {
            misfits = vec![&all.lockfiles[0]];
        }
        let names = misfits.iter().map(|one| one.path.file_name().unwrap_or_default().to_string_lossy());
        let names = names.collect::<Vec<_>>().join(" -r ");
        let command = Some(all.installer().command.replace("FILE", &names));
        Candidate { path: worktree, lockfile: misfits[0].path.clone(), command, is_same, changed }
    }

    fn fits(
        &self,
        worktree: &Path,
        directory: &Directory,
        all: &Together<'_, '_>,
        only: Option<&Lockfile<'_>>,
    ) -> bool {
        let is_asked = |one: &Lockfile<'_>| only.is_none_or(|only| std::ptr::eq(only, one));
        let of_one;
        let judge = if only.is_none() {
            all.judge.get_or_init(|| self.read(all, is_asked))
        } else {
            of_one = self.read(all, is_asked);
            &of_one
        };
        let fit = match judge {
            Some(judge) => judge(directory),
            None if all.installer().has_finished(directory) => Fit::Unsure,
            None => Fit::No,
        };
        let is_older = |one: &Lockfile<'_>| self.is_same(worktree, one) && is_older(worktree, one, directory);
        match fit {
            Fit::Yes => true,
            Fit::No => false,
            Fit::Unsure => all.lockfiles.iter().filter(|one| is_asked(one)).all(is_older),
        }
    }

    fn read<'g>(&self, all: &Together<'g, '_>, is_asked: impl Fn(&Lockfile<'_>) -> bool) -> Option<Judge<'g>> {
        // Each file keeps its place: the first is the project's own.
        let texts = all.lockfiles.iter().map(|one| if is_asked(one) { self.text(one) } else { Some("") });
        Some((all.installer().read)(&texts.collect::<Option<Vec<_>>>()?))
    }

    /// Returns whether the new worktree's lockfile is this worktree's.
    fn is_same(&self, worktree: &Path, lockfile: &Lockfile<'_>) -> bool {
        if worktree == self.donor && self.is_donors(lockfile) {
            return true;
        }
        match (self.text(lockfile), read(worktree, &lockfile.path)) {
            // git may have converted line endings.
            (Some(text), Some(own)) => text.lines().eq(own.lines()),
            (Some(_), None) => false,
            (None, _) => {
                let words = ["hash-object", "--"].map(OsStr::new);
                let hash = Git::at(worktree).line(&[&words[..], &[lockfile.path.as_os_str()]].concat());
                hash.is_ok_and(|hash| hash == OsStr::new(&lockfile.entry.hex()))
            }
        }
    }

    fn is_donors(&self, lockfile: &Lockfile<'_>) -> bool {
        self.tracked.is_cloned(&lockfile.entry.path) || self.changed.contains(&lockfile.entry.path)
    }

    /// Returns the text of the new worktree's lockfile. `None` if it is too large, or no text.
    fn text<'l>(&self, lockfile: &'l Lockfile<'_>) -> Option<&'l str> {
        let text = lockfile.text.get_or_init(|| match self.is_donors(lockfile) {
            true => read(self.donor, &lockfile.path),
            false => {
                let bytes = Git::at(self.donor).blob(&lockfile.entry.hex(), LARGEST_BYTES).ok()??;
                String::from_utf8(bytes).ok()
            }
        });
        text.as_deref()
    }
}

fn read(worktree: &Path, path: &Path) -> Option<String> {
    Directory::open(worktree, path.parent()?)?.read(path.file_name()?)
}

/// An installer may write its lockfile right after the directory.
const RIGHT_AFTER: Time = 50_000_000;

/// Returns whether something was installed since the lockfile was written. Caches in the directory do not count.
fn is_older(worktree: &Path, lockfile: &Lockfile<'_>, directory: &Directory) -> bool {
    let beside = lockfile.path.parent().and_then(|beside| Directory::open(worktree, beside));
    let written = beside.zip(lockfile.path.file_name()).and_then(|(beside, name)| beside.changed(name));
    let names = directory.names().into_iter().filter(|name| !name.starts_with('.'));
    let installed = names.filter_map(|name| directory.changed(name)).max().max(changed(directory));
    written.zip(installed).is_some_and(|(written, installed)| written <= installed + RIGHT_AFTER)
}

/// Returns when something was last installed. A virtual environment's own directory does not change then.
fn changed(directory: &Directory) -> Option<Time> {
    directory.changed(".").max(python::site_packages(directory).and_then(|packages| packages.changed(".")))
}

/// Returns the commit's lockfiles in the order of installers. Those inside dependencies do not count.
fn lockfiles(target: &Index) -> BTreeMap<GroupKey, Group<'_>> {
    let mut groups: BTreeMap<GroupKey, Group<'_>> = BTreeMap::new();
    for entry in &target.entries {
        let Some(installer) = Installer::of_lockfile(split(&entry.path).1) else { continue };
        let path = path_of(&entry.path);
        if let Some(beside) = path.parent().filter(|_| dependency(&path).is_none()) {
            let group = groups.entry((beside.to_path_buf(), installer.kind())).or_default();
            group.push(Lockfile { path, installer, entry, text: OnceCell::new() });
        }
    }
    for group in groups.values_mut() {
        // If several files are read together, the one with the shortest name is the project's own.
        group.sort_by_key(|lockfile| (lockfile.installer.order(), lockfile.entry.path.len()));
    }
    groups
}

/// Returns the outermost directories of dependencies among these entries and above them.
fn dependencies(entries: &[UntrackedEntry]) -> HashSet<PathBuf> {
    entries.iter().filter_map(|entry| dependency(&entry.path)).map(Path::to_path_buf).collect()
}

/// Finds the nearest lockfiles beside or above a directory of dependencies.
fn governing<'g>(dependency: &Path, groups: &'g BTreeMap<GroupKey, Group<'_>>) -> Option<&'g GroupKey> {
    let kind = Installer::kind_of(dependency.file_name()?.to_str()?)?;
    let mut above = dependency.ancestors().skip(1);
    above.find_map(|directory| groups.get_key_value(&(directory.to_path_buf(), kind)).map(|(key, _)| key))
}

/// Lists a worktree's directories of one kind beside a lockfile.
fn likely(worktree: &Path, beside: &Path, kind: &str) -> Vec<PathBuf> {
    let all = Installer::directories(kind).map(|name| beside.join(name));
    all.filter(|path| fs_err::symlink_metadata(worktree.join(path)).is_ok_and(|found| found.is_dir())).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fuzz_lockfiles() {
        let folder = tempfile::tempdir().unwrap();
        let site = "lib/python3.11/site-packages";
        for (path, text) in [
            (".package-lock.json", "{\"lockfileVersion\": 3, \"packages\": {}}"),
            (".modules.yaml", ""),
            (".pnpm/lock.yaml", "lockfileVersion: '9.0'\n"),
            (".yarn-integrity", "{\"lockfileEntries\": {\"a@1\": \"\"}}"),
            (".yarn-state.yml", "\"a@npm:1\":\n  locations:\n    - \"node_modules/a\"\n"),
            ("pyvenv.cfg", "version = 3.11.7\n"),
            (&*format!("{site}/a-1.dist-info/INSTALLER"), "pip\n"),
            ("modules.txt", "# a v1\n## explicit\n"),
            ("composer/installed.json", "{\"packages\": []}"),
            ("bundle/ruby/3.1.0/specifications/a-1.gemspec", ""),
        ] {
            let path = folder.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let directory = Directory::open(folder.path(), Path::new("")).unwrap();
        let seeds: [&[u8]; 11] = [
            b"{\"lockfileVersion\": 3, \"packages\": {\"node_modules/a\": {\"version\": \"1\", \"optional\": true}}}",
            b"# yarn lockfile v1\n\n\n\"a@>=1, <2\", b@1:\n  resolved \"x\"\n",
            b"\n__metadata:\n  version: 8\n\n\"a@npm:1\":\n  resolution: \"a@npm:1\"\n  dependencies:\n    b: \"npm:1\"\n",
            b"version = 1\n[[package]]\nname = \"a\"\nversion = \"1\"\nsource = { editable = \".\" }\ndependencies = [{ name = \"a\" }]\n",
            b"[[package]]\nname = \"a\"\nversion = \"1.*\"\ngroups = [\"main\"]\n[metadata]\nlock-version = \"2.1\"\nlock_version = \"4.5\"\n",
            b"{\"default\": {\"a\": {\"version\": \"==1\", \"markers\": \"os_name == 'nt'\"}}}",
            b"a[x]==1.0 ; os_name == 'nt' \\\n --hash=x\nb @ git+https://h/b@v1#egg=b\n",
            b"require a v1\nrequire (\n\tb v2\n)\n",
            b"{\"packages\": [{\"name\": \"a\", \"version\": \"1\"}]}",
            b"{\"lockfileVersion\": 1, \"packages\": {\"@s/a/b\": [\"b@1\", \"\", {\"os\": \"x\",},],}}",
            b"GEM\n  specs:\n    a (1)\n",
        ];
        calve_testkit::fuzz(&seeds, |input| {
            if let Ok(text) = std::str::from_utf8(input) {
                for installer in &installers::INSTALLERS {
                    (installer.read)(&[text])(&directory);
                }
            }
        });
    }
}
