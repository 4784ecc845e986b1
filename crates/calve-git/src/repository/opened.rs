use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use calve_core::internal::{ShownPath, joined};

use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{path_of, real};
use crate::remedy::{Remedy, UnfinishedOperation};
use crate::repository::operation::returning;
use crate::repository::origins::{Origins, decide};
use crate::repository::reference_list::References;
use crate::repository::references::{Refspec, refspecs};
use crate::repository::state::{self, LinkedWorktree};
use crate::repository::status::WorktreeState;
use crate::repository::unopened::unopened;
use crate::repository::worktree::Worktree;
use crate::settings::{FILES, REFERENCE_FORMAT, is_true, settings_of};
use crate::trust::{self, Provenance};

#[derive(Debug)]
pub(crate) struct Repository {
    /// The directory of files that all worktrees share.
    pub(crate) common: PathBuf,
    /// The directory that git is asked from: a worktree's root, or the one given.
    pub(crate) start: PathBuf,
    /// The directory that the user's relative paths are relative to.
    asked_from: PathBuf,
    /// The root of the worktree that git was asked from, if any.
    pub(crate) here: Option<PathBuf>,
    /// The git directory of that worktree: its entry, or `common`.
    pub(crate) own: PathBuf,
    pub(crate) worktrees: Vec<Worktree>,
    settings: HashMap<String, String>,
    /// The remotes' refspecs, each with its remote, in git's order.
    pub(super) refspecs: Vec<(String, Refspec)>,
    /// Read when the repository was opened.
    pub(crate) references: References,
    origins: Origins,
}

impl Repository {
    pub(crate) fn open(start: &Path) -> Result<Repository> {
        Self::asked_by(&Git::at(start), false)
    }

    /// Opens a repository again by its git directory: `safe.bareRepository` may keep git from discovering it.
    pub(crate) fn open_again(common: &Path) -> Result<Repository> {
        Self::asked_by(&Git::at(common).with("GIT_DIR", common), true)
    }

    fn asked_by(git: &Git, has_named_directory: bool) -> Result<Repository> {
        let start = git.directory();
        // At once: git takes longer to start than to answer.
        let (places, settings, references, worktrees) = std::thread::scope(|scope| {
            let places = scope.spawn(|| places(git));
            let settings = scope.spawn(|| git.run(&["config", "-z", "--list"]));
            let references = scope.spawn(|| References::list(git));
            let worktrees = list(git);
            (joined(places), joined(settings), joined(references), worktrees)
        });
        let (common, own, here) = match places {
            Ok((common, own, here)) => {
                // With GIT_DIR set, git takes any directory for a worktree.
                let here = here.filter(|_| !has_named_directory);
                (fs_err::canonicalize(start.join(common))?, real(&own), here)
            }
            Err(Error::Git { said, .. }) => return Err(unopened(start, &said)),
            Err(other) => return Err(other),
        };
        let (settings, mut worktrees) = (settings?, worktrees?);
        state::look(&common, here.as_deref().map(|here| (here, own.as_path())), &mut worktrees)?;
        for worktree in &mut worktrees {
            let place = if let WorktreeState::Moved(place) = &worktree.status { place } else { &worktree.path };
            worktree.is_here = here.as_ref() == Some(place);
        }
        let settings = parse_settings(&settings);
        let references = references?;
        let origins = decide(&common, &settings, &mut worktrees, &references)?;
        Ok(Repository {
            worktrees,
            start: here.clone().unwrap_or_else(|| start.to_path_buf()),
            asked_from: start.to_path_buf(),
            refspecs: refspecs(&settings),
            settings: settings.into_iter().collect(),
            common,
            own,
            here,
            references,
            origins,
        })
    }

    pub(crate) fn git(&self) -> Git {
        Git::at(&self.start)
    }

    /// Returns the provenance of a commit to check out, as `branch` if it is a local one.
    pub(crate) fn provenance_of(&self, commit: &str, branch: Option<&str>) -> Result<Provenance> {
        if self.origins.lacks_evidence || branch.is_some_and(|branch| self.origins.branches.contains(branch)) {
            return Ok(Provenance::Untrusted);
        }
        // A worktree's trust goes with the worktree: elsewhere, its commit counts as the user's.
        Ok(Provenance::new(self.is_foreign(commit)?, false))
    }

    /// Returns whether a commit is a pull request's that no worktree trusts. Without evidence it is the user's.
    pub(crate) fn is_foreign(&self, commit: &str) -> Result<bool> {
        Ok(self.origins.foreign(&self.common, &self.worktrees, &[commit])?.contains(&true))
    }

    /// Returns git for questions about commits: outside of every worktree, and without programs from the settings.
    pub(crate) fn git_to_ask(&self) -> Git {
        Git::confined_at(&self.common).with("GIT_DIR", &self.common)
    }

    /// Returns git for questions to a remote: it looks for no transport program in an untrusted tree.
    pub(crate) fn git_to_fetch(&self) -> Git {
        match trust::is_untrusted(&self.start) {
            true => Git::at(&self.common).with("GIT_DIR", &self.common),
            false => self.git(),
        }
    }

    pub(crate) fn object_of(&self, prefix: &str, name: &str) -> Option<&str> {
        let mut references = self.references.all();
        references.find(|one| one.name.strip_prefix(prefix) == Some(name)).map(|one| one.oid)
    }

    /// Returns the last value of a setting, whose name is in lower case, except between two dots.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Returns the main worktree; `None` if the repository is bare.
    pub(crate) fn main(&self) -> Option<&Path> {
        self.worktrees.iter().find(|one| one.is_main && !one.is_bare).map(|one| one.path.as_path())
    }

    /// Returns git's own directory for the worktree listed at this path.
    pub(crate) fn own_directory(&self, path: &Path) -> Option<&Path> {
        let worktree = self.worktrees.iter().find(|worktree| worktree.path == path && !worktree.is_bare)?;
        self.directory_of(worktree)
    }

    fn directory_of<'r>(&'r self, worktree: &'r Worktree) -> Option<&'r Path> {
        if worktree.is_main { Some(&self.common) } else { worktree.entry.as_deref() }
    }

    /// Returns the first worktree with an operation that `find` finds in its git directory.
    pub(crate) fn with_operation(
        &self,
        find: impl Fn(&Path) -> Option<UnfinishedOperation>,
    ) -> Option<(&Worktree, UnfinishedOperation)> {
        self.worktrees.iter().find_map(|worktree| Some((worktree, find(self.directory_of(worktree)?)?)))
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.setting(name).is_some_and(is_true)
    }

    /// Returns the hooks directory of all worktrees; `None` if git has to be asked in each, as settings may move it.
    pub(crate) fn hooks(&self) -> Option<PathBuf> {
        let is_moved = self.setting("core.hookspath").is_some() || self.settings_below("includeif.").next().is_some();
        (!is_moved && !self.is_set("extensions.worktreeconfig")).then(|| self.common.join("hooks"))
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.is_set("core.sparsecheckout")
    }

    pub(crate) fn settings_below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'s str, &'s str)> {
        self.settings.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// Returns the remote with the objects that a partial clone lacks.
    pub(crate) fn promisor(&self) -> Option<&str> {
        let remotes = self.settings_below("remote.").filter(|(_, value)| is_true(value));
        let first = remotes.filter_map(|(key, _)| key.strip_suffix(".promisor")).min();
        first.or_else(|| self.setting("extensions.partialclone"))
    }

    pub(crate) fn hash_bytes(&self) -> usize {
        if self.setting("extensions.objectformat") == Some("sha256") { 32 } else { 20 }
    }

    /// Returns whether it is a bare repository in a hidden directory, such as `project/.bare`.
    pub(crate) fn is_hidden(&self) -> bool {
        let main = self.worktrees.first().filter(|main| main.is_bare);
        main.and_then(|main| main.path.file_name()).is_some_and(|name| name.as_bytes().starts_with(b"."))
    }

    /// Returns the project's name: that of the main worktree's directory, or of the one around a hidden repository.
    pub(crate) fn name(&self) -> OsString {
        let main = self.worktrees.first().map_or(self.common.as_path(), |main| main.path.as_path());
        let directory = if self.is_hidden() { main.parent().unwrap_or(main) } else { main };
        let name = directory.file_name().unwrap_or(OsStr::new("repository")).as_bytes();
        let rest = name.strip_suffix(b".git").filter(|rest| !rest.is_empty());
        OsStr::from_bytes(rest.unwrap_or(name)).to_owned()
    }

    /// Finds a worktree by its branch, its path, or the last name of its path.
    pub(crate) fn find(&self, what: &Path) -> Result<&Worktree> {
        let there = real(&self.asked_from.join(what));
        let by_path = |worktree: &&Worktree| match &worktree.status {
            WorktreeState::Moved(here) => real(here) == there || worktree.path == there,
            _ => real(&worktree.path) == there,
        };
        let by_branch =
            |worktree: &&Worktree| worktree.branch.as_deref().is_some_and(|branch| OsStr::new(branch) == what);
        let by_name = |worktree: &&Worktree| worktree.path.file_name() == Some(what.as_os_str());
        let found = self.worktrees.iter().find(by_branch).or_else(|| self.worktrees.iter().find(by_path));
        let text = || format!("there is no worktree of the branch or at the path `{}`", ShownPath(what));
        let unknown = || Error::refused(text(), Remedy::NameListedWorktree);
        let found = found.or_else(|| {
            let names = self.references.names_of(what.to_str()?);
            self.with_operation(|own| returning(own, &names)).map(|(worktree, _)| worktree)
        });
        found.or_else(|| self.worktrees.iter().find(by_name)).ok_or_else(unknown)
    }

    pub(crate) fn linked(&self, worktree: &Worktree) -> Result<LinkedWorktree> {
        let opened = match (&worktree.status, &worktree.entry) {
            (WorktreeState::Intact, Some(entry)) => LinkedWorktree::open(entry, &worktree.path),
            (status, _) => Err(status.clone()),
        };
        opened.map_err(|status| status.refusal(&worktree.path))
    }

    pub(crate) fn find_usable(&self, what: &Path) -> Result<&Worktree> {
        let found = self.find(what)?;
        found.status.problem(&found.path).map_or(Ok(found), Err)
    }

    /// Refuses the copy of a linked worktree, in which git would work on the original's files.
    pub(crate) fn check_here(&self) -> Result<()> {
        let Some(here) = &self.here else { return Ok(()) };
        let own = &self.own;
        if own.parent() != Some(&self.common.join("worktrees")) {
            return Ok(());
        }
        LinkedWorktree::open(own, here).map(|_| ()).map_err(|status| status.refusal(here))?;
        if state::check_original(own, here)? {
            return Ok(());
        }
        let text = format!("the repository does not know that `{}` is its worktree", ShownPath(here));
        Err(Error::refused(text, Remedy::RepairWorktree))
    }

    /// Fails if references and their logs are not files: without logs, losses and provenance cannot be known.
    pub(crate) fn check_references(&self, remedy: Remedy) -> Result<()> {
        let Some(format) = self.setting(REFERENCE_FORMAT).filter(|&format| format != FILES) else { return Ok(()) };
        let reason =
            format!("this repository keeps its references as `{}`, which Calve cannot read", ShownPath(format));
        Err(Error::refused(reason, remedy))
    }

    /// Refuses unsupported repositories before anything is made.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_references(Remedy::AddWithGit)?;
        const KNOWN: [&str; 8] = [
            "noop",
            "noop-v1",
            "partialclone",
            "objectformat",
            "preciousobjects",
            "worktreeconfig",
            "refstorage",
            "relativeworktrees",
        ];
        if let Some((unknown, _)) = self.settings_below("extensions.").find(|(name, _)| !KNOWN.contains(name)) {
            let unknown = ShownPath(unknown);
            let text = format!("this repository uses the extension `{unknown}`, which Calve does not know");
            return Err(Error::refused(text, Remedy::AddWithGit));
        }
        if self.setting("core.worktree").is_some() {
            let text = "the repository has `core.worktree` set, as a submodule has: git does not say where its main worktree is";
            return Err(Error::refused(text, Remedy::AddWithGit));
        }
        Ok(())
    }
}

/// Returns the one line that git prints about the repository around `start`.
pub(crate) fn asked(start: &Path, arguments: &[&str]) -> Result<PathBuf> {
    match Git::at(start).line(arguments) {
        Err(Error::Git { said, .. }) => Err(unopened(start, &said)),
        line => line.map(PathBuf::from),
    }
}

/// Returns the common directory, and git's own directory and the root of the worktree that git is in, if any.
fn places(git: &Git) -> Result<(PathBuf, PathBuf, Option<PathBuf>)> {
    const COMMON: &str = "--git-common-dir";
    const OWN: &str = "--absolute-git-dir";
    const HERE: &str = "--show-toplevel";
    let printed = git.output(&["rev-parse", COMMON, OWN, HERE])?;
    let lines: Vec<&[u8]> = trimmed(&printed.stdout).split(|&byte| byte == b'\n').collect();
    match (printed.status.success(), lines.as_slice()) {
        (true, [common, own, here]) => Ok((path_of(common), path_of(own), Some(path_of(here)))),
        // There is no root, or a name has a line feed in it.
        _ => {
            let here = git.output(&["rev-parse", HERE])?;
            let here = here.status.success().then(|| path_of(trimmed(&here.stdout)));
            Ok((git.line(&["rev-parse", COMMON])?.into(), git.line(&["rev-parse", OWN])?.into(), here))
        }
    }
}

fn trimmed(printed: &[u8]) -> &[u8] {
    printed.strip_suffix(b"\n").unwrap_or(printed)
}

fn parse_settings(printed: &[u8]) -> Vec<(String, String)> {
    settings_of(printed).map(|(name, value)| (spelled(&name), value)).collect()
}

/// Normalizes a name such as `remote.Up.url`: case counts between the dots, and nowhere else.
fn spelled(name: &str) -> String {
    let (Some(first), Some(last)) = (name.find('.'), name.rfind('.')) else { return name.to_ascii_lowercase() };
    [&name[..first].to_ascii_lowercase(), &name[first..last], &name[last..].to_ascii_lowercase()].concat()
}

/// Runs `git worktree list`. Versions of git before 2.36 have no `-z`.
pub fn list(git: &Git) -> Result<Vec<Worktree>> {
    let output = git.output(&["worktree", "list", "--porcelain", "-z"])?;
    if output.status.success() {
        return Ok(parse_list(&output.stdout, 0));
    }
    Ok(parse_list(&git.run(&["worktree", "list", "--porcelain"])?, b'\n'))
}

fn parse_list(said: &[u8], end: u8) -> Vec<Worktree> {
    let mut worktrees: Vec<Worktree> = Vec::new();
    for line in said.split(|&byte| byte == end) {
        let space = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (word, value) = (&line[..space], line.get(space + 1..).unwrap_or_default());
        if word == b"worktree" {
            let path = PathBuf::from(std::ffi::OsString::from_vec(value.to_vec()));
            worktrees.push(Worktree { path, is_main: worktrees.is_empty(), ..Worktree::default() });
            continue;
        }
        let Some(last) = worktrees.last_mut() else { continue };
        let text = String::from_utf8_lossy(value).into_owned();
        match word {
            b"HEAD" => last.head = Some(text).filter(|oid| oid.bytes().any(|byte| byte != b'0')),
            b"branch" => last.branch = Some(text.strip_prefix("refs/heads/").unwrap_or(&text).to_owned()),
            b"bare" => last.is_bare = true,
            b"locked" => last.locked = Some(text),
            _ => {}
        }
    }
    worktrees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_remotes_keep_their_case() {
        let settings = parse_settings(b"Core.AutoCRLF\ninput\0remote.Up.One.pushURL\nx\0core.bare\0");
        for (name, value) in [("core.autocrlf", "input"), ("remote.Up.One.pushurl", "x"), ("core.bare", "")] {
            assert!(settings.contains(&(name.to_owned(), value.to_owned())), "{settings:?}");
        }
    }

    #[test]
    fn the_list_is_understood_with_and_without_z() {
        let lines = "worktree /a b\nHEAD 12\nbranch refs/heads/x/y\n\nworktree /c\nHEAD 0000\ndetached\nlocked why not\nprunable gone\n\n";
        let from_lines = parse_list(lines.as_bytes(), b'\n');
        assert_eq!(from_lines, parse_list(lines.replace('\n', "\0").as_bytes(), 0));
        assert_eq!(from_lines[0].path, Path::new("/a b"));
        assert_eq!(from_lines[0].branch.as_deref(), Some("x/y"));
        assert!(from_lines[0].is_main && !from_lines[1].is_main);
        assert_eq!((from_lines[1].head.as_deref(), from_lines[1].locked.as_deref()), (None, Some("why not")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_what_git_lists() {
        let list = b"worktree /a b\0HEAD 12\0branch refs/heads/x/y\0\0worktree /c\0detached\0locked why not\0prunable gone\0\0";
        calve_testkit::fuzz(&[list, b"Core.AutoCRLF\ninput\0remote.Up.One.pushURL\nx\0core.bare\0"], |input| {
            let listed = parse_list(input, 0);
            assert!(listed.iter().skip(1).all(|worktree| !worktree.is_main));
            parse_list(input, b'\n');
            parse_settings(input);
        });
    }
}
