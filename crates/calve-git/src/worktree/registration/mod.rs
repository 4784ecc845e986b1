//! A worktree's entry in the repository: made out of git's sight, and shown in one step.
//!
//! git takes `worktrees/ID` for a worktree if it has a file `gitdir`, and removes it as broken if it has neither that nor a file `locked`
//! (gitrepository-layout(5), git-worktree(1)). So an entry is made with `locked` and without `gitdir`. The worktree gets its name first, then
//! its `gitdir`. In between it is complete and works; after a kill, the next command adds the file. Killed before the name, nothing is listed,
//! and nothing has the new name.
//!
//! While its maker lives, flock(2) is held on the entry's file `calve`. It names the new worktree for the clean-up.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::{ShownPath, lock_file};
use calve_core::{RemovalWait, RemoveOptions};
use rustix::fs::{CWD, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::file_lock::{lock, lock_directory};
use crate::git::Git;
use crate::paths::{check_writable, if_there, is_missing, numbered, path_of, write_at_once};
use crate::remedy::Remedy;
use crate::repository;
use crate::repository::Repository;
use crate::repository::entries::{self, DATA_SOURCE, GITDIR, NO_SOURCE, branch_in};
use crate::repository::references::BRANCH_MARK;
use crate::repository::state::LinkedWorktree;
use crate::trust::{self, Provenance};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::target::{AddTarget, check_free, check_not_checked_out};
use crate::worktree::agent_turn;
use crate::worktree::unsaved::sweep_kept;

const LOCKED: &str = "locked";
/// The file in an entry that its maker holds under flock(2), and removes last.
const JOURNAL: &str = "calve";
/// Text of the file `locked` while an entry is being made.
const BEING_MADE: &str = "calve: being made\n";
/// Prefix of entries that are being removed. git refuses to make such a name.
const LEAVING: &str = ".calve-";

/// Takes the right to change the list of worktrees. It is held for moments, and by git while that changes a reference: a clean-up after a
/// killed run waits for the git that the run started.
///
/// git fails on a locked configuration file instead of waiting, so making or deleting a branch takes a turn as well.
fn take_turn(common: &Path) -> Result<File> {
    lock_directory(common)
}

/// A worktree that git does not show yet. Dropping it takes back what there is: the files under their name, the branch
/// that was made, the entry.
pub(crate) struct Registration<'r> {
    pub(crate) request: &'r AddRequest,
    pub(crate) directory: PathBuf,
    journal: Option<File>,
    made_branch: Option<(String, String)>,
    is_taken_back: bool,
}

impl<'r> Registration<'r> {
    /// Makes the entry unless a run has the branch. git called it free; [`Self::seal`] asks again.
    pub(crate) fn begin(request: &'r AddRequest) -> Result<Self> {
        let AddRequest { repository, path, target, .. } = request;
        let common = &repository.common;
        let _turn = take_turn(common)?;
        clean_up(common)?;
        check_branch(repository, target.branch.as_deref())?;
        let all = common.join("worktrees");
        fs_err::create_dir_all(&all)?;
        let id = identifier(path);
        // git, too, adds numbers.
        let directory = numbered(|number| {
            let directory = all.join(if number == 0 { id.clone() } else { format!("{id}{number}") });
            fs_err::create_dir(&directory).map(|()| directory)
        })?;
        let mut entry = Self { request, directory, journal: None, made_branch: None, is_taken_back: true };
        // With all its text at once: it marks the entry as Calve's if this process is killed before it has a journal.
        write_at_once(&entry.directory.join(LOCKED), BEING_MADE.as_bytes())?;
        entry.note_provenance()?;
        let mut journal = fs_err::File::create(entry.directory.join(JOURNAL))?;
        lock(journal.file(), journal.path(), FlockOperation::NonBlockingLockExclusive)?;
        journal.write_all(path.as_os_str().as_bytes())?;
        journal.write_all(b"\n")?;
        entry.journal = Some(File::from(journal));
        entry.fill(OsStr::new("../.."))?;
        Ok(entry)
    }

    /// Makes a planned worktree's entry in `directory`, outside the repository, after the checks of [`Self::begin`].
    pub(crate) fn planned(request: &'r AddRequest, directory: PathBuf) -> Result<Self> {
        let common = &request.repository.common;
        {
            let _turn = take_turn(common)?;
            check_branch(&request.repository, request.target.branch.as_deref())?;
        }
        fs_err::create_dir(&directory)?;
        let entry = Self { request, directory, journal: None, made_branch: None, is_taken_back: false };
        entry.note_provenance()?;
        entry.fill(common.as_os_str())?;
        Ok(entry)
    }

    fn note_provenance(&self) -> Result<()> {
        let request = self.request;
        let oid = &request.target.oid;
        match request.provenance {
            Provenance::Untrusted => trust::mark(&self.directory, request.of_commit, Some(oid)),
            Provenance::TrustedByUser => trust::note_trust(&self.directory, oid),
            Provenance::Own => Ok(()),
        }
    }

    /// Writes the files that git and Calve read. `common`: the repository's directory, as seen from the entry.
    fn fill(&self, common: &OsStr) -> Result<()> {
        let request = self.request;
        fs_err::write(self.directory.join("commondir"), [common.as_bytes(), b"\n"].concat())?;
        let head = match &request.target.branch {
            Some(branch) => format!("ref: refs/heads/{branch}\n"),
            None => format!("{}\n", request.target.oid),
        };
        fs_err::write(self.directory.join("HEAD"), head)?;
        fs_err::write(self.directory.join(DATA_SOURCE), request.data_source.as_deref().unwrap_or(NO_SOURCE))?;
        self.copy_settings()
    }

    /// Copies the sparse checkout's list and, as git does, the donor's own settings, without those about its place.
    fn copy_settings(&self) -> Result<()> {
        if self.request.is_sparse {
            fs_err::create_dir_all(self.directory.join("info"))?;
            self.copy_file("info/sparse-checkout")?;
        }
        let is_there = self.request.repository.is_set("extensions.worktreeconfig");
        if !is_there || !self.copy_file("config.worktree")? {
            return Ok(());
        }
        let to = self.directory.join("config.worktree");
        for name in ["core.worktree", "core.bare"] {
            let arguments =
                ["config".as_ref(), "--file".as_ref(), to.as_os_str(), "--unset-all".as_ref(), name.as_ref()];
            // Fails without such a setting.
            self.request.repository.git().output(&arguments)?;
        }
        Ok(())
    }

    /// Copies one of the donor's own files in the repository, if it exists.
    fn copy_file(&self, name: &str) -> Result<bool> {
        let found = if_there(fs_err::read(Git::at(&self.request.donor).own_file(name)?))?;
        Ok(found.map(|bytes| fs_err::write(self.directory.join(name), bytes)).transpose()?.is_some())
    }

    /// Returns git on this entry, with its files elsewhere for now.
    pub(crate) fn git(&self, files: &Path) -> Git {
        Git::at(files).with("GIT_DIR", &self.directory).with("GIT_WORK_TREE", files)
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.directory.join("index")
    }

    /// Makes the branch and points the worktree's `.git` here: the last step before the worktree gets its name.
    pub(crate) fn seal(&mut self, files: &Path) -> Result<()> {
        let AddRequest { repository, target, of_commit, .. } = self.request;
        let turn = take_turn(&repository.common)?;
        if let Some(branch) = &target.branch {
            let (git, names) = (repository.git(), repository.references.names_of(branch));
            // A rebase or a bisection may have begun since.
            check_free(repository, branch)?;
            if may_be_checked_out(&repository.common, &self.directory, &names)? {
                check_not_checked_out(&repository::list(&git)?, branch)?;
            }
            if !target.is_new || may_be_there(&repository.common, branch)? {
                check_unmoved(&git, branch, target)?;
            }
            if target.is_new {
                if let Some(journal) = &mut self.journal {
                    journal.write_all(format!("{branch}\n{}\n", target.oid).as_bytes())?;
                }
                // At the commit of the files: the start may have moved on since.
                git.run_holding(&turn, &["branch", "--quiet", "--no-track", branch, &target.oid])?;
                self.made_branch = Some((branch.clone(), target.oid.clone()));
                if let Some(upstream) = &target.upstream {
                    let follow = format!("--set-upstream-to=refs/remotes/{upstream}");
                    git.run_holding(&turn, &["branch", "--quiet", &follow, branch])?;
                }
                // This mark outlives the worktree's.
                if of_commit.is_untrusted() {
                    git.run_holding(&turn, &["config", &format!("branch.{branch}.{BRANCH_MARK}"), "true"])?;
                }
            }
        }
        // Its time shows later which files are as they were cloned.
        entries::note(&self.directory, entries::DONOR, &self.request.donor)?;
        let pointer = [b"gitdir: ", self.directory.as_os_str().as_bytes(), b"\n"].concat();
        let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(files.join(".git"))?;
        Ok(file.write_all(&pointer)?)
    }

    pub(crate) fn show(mut self) -> Result<()> {
        show(&self.directory, &self.request.path)?;
        self.is_taken_back = false;
        Ok(())
    }

    fn take_back(&mut self) -> Result<()> {
        let (common, path) = (&self.request.repository.common, &self.request.path);
        // A staged tree that has not got this name yet removes itself.
        if let Ok(linked) = LinkedWorktree::open(&self.directory, path) {
            let options = RemoveOptions { wait: RemovalWait::Yes, ..RemoveOptions::default() };
            calve_core::internal::remove_opened(path, linked.root(), &options)?;
        }
        let branch = self.made_branch.take();
        let _turn = branch.as_ref().map(|_| take_turn(common)).transpose()?;
        take_back(common, &self.directory, branch)
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        if self.is_taken_back {
            // The next command deals with anything left.
            let _ = self.take_back();
        }
    }
}

/// Deletes the branch, with its commit, that was made for an unfinished worktree, then the entry. While there is a branch,
/// the caller has the turn.
fn take_back(common: &Path, directory: &Path, made_branch: Option<(String, String)>) -> Result<()> {
    if let Some((branch, oid)) = made_branch {
        // It may have been checked out meanwhile.
        let name = HashSet::from([format!("refs/heads/{branch}")]);
        if !may_be_checked_out(common, directory, &name)? {
            delete_branch(common, &branch, &oid)?;
        }
    }
    remove(directory)
}

fn show(directory: &Path, worktree: &Path) -> Result<()> {
    entries::note_mount(directory, worktree)?;
    write_at_once(&directory.join(GITDIR), &[worktree.join(".git").as_os_str().as_bytes(), b"\n"].concat())?;
    for name in [LOCKED, JOURNAL] {
        if_there(fs_err::remove_file(directory.join(name)))?;
    }
    Ok(())
}

/// Returns an entry's name as git makes it: characters that a reference may not have become dashes.
fn identifier(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut id = name.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "-");
    while id.contains("..") {
        id = id.replace("..", ".-");
    }
    if id.starts_with('.') {
        id.replace_range(..1, "-");
    }
    if id.ends_with(".lock") || id.ends_with('.') {
        id.push('-');
    }
    if id.is_empty() { "worktree".to_owned() } else { id }
}

/// The text of a journal, and its lock.
type LeftJournal = (Vec<u8>, File);

/// Lists the unfinished entries, with the journal if the maker is gone.
fn unfinished(common: &Path) -> Result<Vec<(PathBuf, Option<LeftJournal>)>> {
    let mut found = Vec::new();
    for directory in entries::all(common)? {
        let path = directory.join(JOURNAL);
        let lock = |flags| lock_file(CWD, &*path, flags, FlockOperation::NonBlockingLockExclusive);
        // NFS grants the lock only on a file open for writing. Another user's may be open to reading only.
        match lock(OFlags::RDWR).or_else(|_| lock(OFlags::RDONLY)) {
            Ok(Some(journal)) => {
                let (mut text, mut journal) = (Vec::new(), File::from(journal));
                journal.read_to_end(&mut text)?;
                found.push((directory, Some((text, journal))));
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            // Its maker has finished the entry since.
            _ if is_missing(&path) => {}
            _ => found.push((directory, None)),
        }
    }
    Ok(found)
}

/// Returns whether a worktree with one of these branches is being made, or is made and not shown. git lists neither.
fn is_being_added(common: &Path, names: &HashSet<String>) -> Result<bool> {
    // The next run removes an incomplete one.
    let stays = |(directory, journal): &(PathBuf, Option<LeftJournal>)| {
        journal.as_ref().is_none_or(|(text, _)| is_complete(directory, &worktree_in(text)))
    };
    let has_it = |entry: &Path| branch_in(entry).is_some_and(|branch| names.contains(&format!("refs/heads/{branch}")));
    Ok(unfinished(common)?.iter().any(|one| has_it(&one.0) && stays(one)))
}

fn check_branch(repository: &Repository, branch: Option<&str>) -> Result<()> {
    let Some(branch) = branch else { return Ok(()) };
    let (common, names) = (&repository.common, repository.references.names_of(branch));
    if !is_being_added(common, &names)? {
        return Ok(());
    }
    let text = format!("a worktree of the branch `{}` is being made by another calve", ShownPath(branch));
    Err(Error::refused(text, Remedy::WaitOrChooseAnotherBranch))
}

/// Returns whether a branch may exist: a reference is a file of its own, or a line in `packed-refs`.
fn may_be_there(common: &Path, branch: &str) -> Result<bool> {
    if fs_err::symlink_metadata(common.join("refs/heads").join(branch)).is_ok() {
        return Ok(true);
    }
    let line = format!(" refs/heads/{branch}\n");
    let packed = if_there(fs_err::read(common.join("packed-refs")))?;
    Ok(packed.is_some_and(|packed| memchr::memmem::find(&packed, line.as_bytes()).is_some()))
}

/// Fails if the branch changed since it was looked up: another run may have made one, or removed its own.
fn check_unmoved(git: &Git, branch: &str, target: &AddTarget) -> Result<()> {
    let now = crate::worktree::add::meaning::branch_tip(git, branch)?;
    let expected = (!target.is_new).then_some(&target.oid);
    if now.as_ref() == expected {
        return Ok(());
    }
    let reason = format!("the branch `{}` was made, moved or deleted meanwhile", ShownPath(branch));
    Err(Error::refused(reason, Remedy::RunAgain))
}

/// Finishes or removes the entries of killed runs. Returns places with possible leftovers. The caller holds the lock.
fn clean_up(common: &Path) -> Result<BTreeSet<PathBuf>> {
    agent_turn::sweep(common)?;
    for directory in entries::all(common)?.iter().filter(|directory| was_left_before_its_journal(directory)) {
        remove(directory)?;
    }
    let mut places = BTreeSet::new();
    for (directory, journal) in unfinished(common)? {
        let Some((text, _lock)) = journal else { continue };
        let worktree = worktree_in(&text);
        let mut lines = text.split(|&byte| byte == b'\n').skip(1);
        let branch = lines.next().zip(lines.next()).filter(|(branch, oid)| !branch.is_empty() && !oid.is_empty());
        let owned = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match is_complete(&directory, &worktree) {
            true => show(&directory, &worktree)?,
            false => take_back(common, &directory, branch.map(|(branch, oid)| (owned(branch), owned(oid))))?,
        }
        places.extend(worktree.parent().map(Path::to_path_buf));
    }
    Ok(places)
}

fn worktree_in(journal: &[u8]) -> PathBuf {
    path_of(journal.split(|&byte| byte == b'\n').next().unwrap_or_default())
}

/// Returns whether the worktree of an unfinished entry has its name.
fn is_complete(directory: &Path, worktree: &Path) -> bool {
    worktree.is_absolute() && LinkedWorktree::open(directory, worktree).is_ok()
}

/// Returns whether an entry's maker was killed before it had a journal. A living one holds the lock until then.
fn was_left_before_its_journal(directory: &Path) -> bool {
    [JOURNAL, GITDIR].iter().all(|name| is_missing(&directory.join(name)))
        && fs_err::read(directory.join(LOCKED)).is_ok_and(|reason| reason == BEING_MADE.as_bytes())
}

pub(crate) fn open_swept(start: &Path) -> Result<Repository> {
    let repository = Repository::open(start)?;
    // Before any look-up: a branch that a killed run made goes with its other leftovers.
    if sweep(&repository.common)?.places.is_empty() { Ok(repository) } else { Repository::open(start) }
}

/// Runs [`clean_up`], and removes staged trees of killed runs, and files that removals moved aside long ago.
pub(crate) fn sweep(common: &Path) -> Result<SweepReport> {
    sweep_kept(common);
    let places = {
        let _turn = take_turn(common)?;
        clean_up(common)?
    };
    let mut swept = SweepReport { places, trees: Vec::new() };
    for place in &swept.places {
        // No work depends on it: a git that has outlived such a run may still write there. The next sweep tries again.
        swept.trees.extend(calve_core::internal::sweep(place).unwrap_or_default());
    }
    Ok(swept)
}

pub(crate) struct SweepReport {
    /// Parents of the worktrees whose entries were finished or removed.
    pub(crate) places: BTreeSet<PathBuf>,
    pub(crate) trees: Vec<PathBuf>,
}

/// Returns whether a worktree other than that of the entry `own` may have one of these branches checked out, by `HEAD`.
pub(crate) fn may_be_checked_out(common: &Path, own: &Path, names: &HashSet<String>) -> Result<bool> {
    let mut all = entries::all(common)?;
    all.retain(|directory| *directory != own);
    all.push(common.to_path_buf());
    Ok(all.iter().any(|directory| {
        let head = directory.join("HEAD");
        // In an old repository it may be a link.
        let is_link = fs_err::symlink_metadata(&head).is_ok_and(|found| found.is_symlink());
        is_link
            || match fs_err::read(&head) {
                Ok(text) => text
                    .strip_prefix(b"ref:")
                    .is_some_and(|name| names.iter().any(|one| one.as_bytes() == name.trim_ascii())),
                Err(error) => error.kind() != std::io::ErrorKind::NotFound,
            }
    }))
}

/// Deletes a branch if it is where it was made and no worktree has it by one of its `names`. Returns whether it did. `is_in_use` is called
/// while no other run can register a worktree.
pub(crate) fn delete_unused(
    common: &Path,
    (branch, names): (&str, &HashSet<String>),
    oid: &str,
    is_in_use: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let _turn = take_turn(common)?;
    Ok(!is_being_added(common, names)? && !is_in_use()? && delete_branch(common, branch, oid)?)
}

/// Deletes a branch only if it is still where it was made: it may be in use.
fn delete_branch(common: &Path, branch: &str, oid: &str) -> Result<bool> {
    let git = Git::at(common).with("GIT_DIR", common);
    // Fails if the branch is missing or elsewhere: then there is nothing to undo.
    let name = format!("refs/heads/{branch}");
    let deleted = match git.fed_online(&["update-ref", "--no-deref", "-d", &name, oid], b"") {
        Err(Error::Git { .. }) => false,
        deleted => deleted.map(|_| true)?,
    };
    if has_settings(common, branch) && (deleted || !git.succeeds(&["show-ref", "--verify", "--quiet", &name])?) {
        git.output(&["config", "--remove-section", &format!("branch.{branch}")])?;
    }
    Ok(deleted)
}

/// Looks for a branch's settings in the text of the file: most branches have none, and git takes longer to start.
fn has_settings(common: &Path, branch: &str) -> bool {
    let Ok(text) = fs_err::read(common.join("config")) else { return true };
    let (text, branch) = (text.to_ascii_lowercase(), branch.replace('"', "\\\"").to_ascii_lowercase());
    // `[branch "x"]`, or `[branch.x]` in the old spelling.
    let spelled = [format!("\"{branch}\""), format!(".{branch}]")];
    spelled.iter().any(|spelled| memchr::memmem::find(&text, spelled.as_bytes()).is_some())
}

pub(crate) fn check_removable(directory: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        let text = format!("git's entry `{}` of the worktree cannot be removed: {error}", ShownPath(directory));
        io::Error::new(error.kind(), text)
    };
    check_writable(directory).map_err(failed)?;
    calve_core::internal::check_renamable(directory).map_err(|error| match error {
        calve_core::Error::Io { source, .. } => failed(source).into(),
        error => error.into(),
    })
}

/// Removes an entry. First git stops showing it. Then it gets a name that git does not know: a git that a killed run started, and that is
/// still at work, finds its directory gone and can put nothing more into it.
///
/// `locked` goes first: an entry with it and without `gitdir` would stay for ever after a kill in between.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    for name in [LOCKED, GITDIR] {
        if_there(fs_err::remove_file(directory.join(name)))?;
    }
    let (Some(all), Some(id)) = (directory.parent(), directory.file_name()) else { return Ok(()) };
    let leaving = numbered(|number| {
        let mut name = OsString::from(format!("{LEAVING}{number}-"));
        name.push(id);
        let leaving = all.join(name);
        fs_err::rename(directory, &leaving).map(|()| leaving)
    });
    if let Some(leaving) = if_there(leaving)? {
        if_there(fs_err::remove_dir_all(leaving))?;
    }
    Ok(())
}

/// Removes entries half removed by killed runs and, if `may_go`, those without `gitdir` and `locked`, as git does.
pub(crate) fn remove_broken(common: &Path, mut may_go: impl FnMut(&Path) -> bool) -> Result<()> {
    let _turn = take_turn(common)?;
    for directory in entries::all(common)? {
        let is_leaving = directory.file_name().is_some_and(|name| name.as_bytes().starts_with(LEAVING.as_bytes()));
        if is_leaving {
            if_there(fs_err::remove_dir_all(directory))?;
        } else if [GITDIR, LOCKED, JOURNAL].iter().all(|name| is_missing(&directory.join(name))) && may_go(&directory) {
            remove(&directory)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::fs::flock;

    use super::*;

    #[test]
    fn identifiers_are_names_of_references() {
        for (path, id) in [
            ("/a/b.x", "b.x"),
            ("/a/.hidden", "-hidden"),
            ("/a/x y\u{e9}", "x-y-"),
            ("/a/..", "worktree"),
            ("/a/q.lock", "q.lock-"),
        ] {
            assert_eq!(identifier(Path::new(path)), id);
        }
    }

    #[test]
    fn a_branch_stays_while_a_worktree_of_a_name_that_leads_to_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let entry = folder.path().join("worktrees/x");
        fs_err::create_dir_all(&entry).unwrap();
        fs_err::write(entry.join("HEAD"), "ref: refs/heads/alias\n").unwrap();
        let maker = File::from(fs_err::File::create(entry.join(JOURNAL)).unwrap());
        flock(&maker, FlockOperation::NonBlockingLockExclusive).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| format!("refs/heads/{name}")).collect::<HashSet<String>>();
        assert!(!is_being_added(folder.path(), &names(&["real"])).unwrap());
        let both = names(&["real", "alias"]);
        let asked = || panic!("it was held already");
        assert!(!delete_unused(folder.path(), ("real", &both), "1", asked).unwrap());
    }

    #[test]
    fn an_entry_is_unfinished_while_it_has_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worktrees/x").join(JOURNAL);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let is_left = || unfinished(folder.path()).unwrap().into_iter().map(|one| one.1.is_some()).collect::<Vec<_>>();
        let mine = File::from(fs_err::File::create(&path).unwrap());
        flock(&mine, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(is_left(), [false]);
        fs_err::remove_file(&path).unwrap();
        assert_eq!(is_left(), [] as [bool; 0]);
        // A process that another test has just forked has it open too.
        flock(&mine, FlockOperation::Unlock).unwrap();
        fs_err::write(&path, "").unwrap();
        assert_eq!(is_left(), [true]);
        let (_, left) = unfinished(folder.path()).unwrap().remove(0);
        let flags = rustix::fs::fcntl_getfl(left.unwrap().1).unwrap();
        assert!(flags.contains(OFlags::RDWR), "NFS would not lock it");
    }
}
