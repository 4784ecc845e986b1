use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::git::Git;
use crate::paths::is_missing;
use crate::repository::logs::Log;
use crate::trust::is_object_id;
use crate::unsaved_item::LooseCommits;
use crate::worktree::unsaved::reflog::{made_and_left_by_user, made_here};

/// Returns a git that runs no program of the repository's configuration and fetches nothing: the user may not know it.
pub(super) fn careful(at: &Path, repository: &Path) -> Result<Git> {
    Git::at(at).with("GIT_DIR", repository).offline().without_own_programs()
}

/// Returns the commits of all references (branches, HEADs, the stash) that no remote had when it was last asked.
///
/// Tags mostly come from a remote, and a commit checked out by its tag may be on no branch there: they count as the remote's. Commits that
/// were made here do not, even if only a tag or the log of HEAD leads to them, unless a rebase has made them anew.
pub(super) fn only_here(git: &Git, repository: &Path) -> Result<Option<LooseCommits>> {
    let loose = |which: &[&str]| -> Result<Option<LooseCommits>> {
        let listed = git.run(&[&["rev-list", "--max-count=1000", "--ignore-missing"], which].concat())?;
        Ok(LooseCommits::listed(&listed))
    };
    if !has_remotes(git)? {
        return loose(&["--all"]);
    }
    if is_mirror(git)? {
        return Ok(None);
    }
    let shallow = oids(&repository.join("shallow"));
    let shallow = shallow.iter().map(String::as_str);
    if repository.join("reftable").is_dir() {
        // Its logs are unreadable: nothing says which tags and fetched commits were made here.
        let own = ["--exclude=refs/remotes/*", "--all", "--not", "--remotes"].into_iter();
        return loose(&own.chain(shallow).collect::<Vec<_>>());
    }
    // Excludes commits fetched by name, for which a remote has no branch, and the ends of a shallow clone. After `--not` they need no `^`. A
    // branch that was made here can have been fetched from here, too (`git fetch . BRANCH`).
    let log = Log::new(repository, "HEAD");
    let made = made_here(&log);
    let mut fetched = oids(&repository.join("FETCH_HEAD"));
    fetched.retain(|commit| !made.contains(commit));
    let own = ["--exclude=refs/remotes/*", "--exclude=refs/tags/*", "--all", "--not", "--remotes"].into_iter();
    let own: Vec<&str> = own.chain(fetched.iter().map(String::as_str)).chain(shallow).collect();
    let without_tags = loose(&[&own[..], &["--tags"]].concat())?;
    if without_tags.is_some() || made.is_empty() {
        return Ok(without_tags);
    }
    let left = made_and_left_by_user(&log).join("\n");
    let rebased = log.rebases(None);
    let rebased: Vec<&str> = rebased.iter().map(|one| one.old.as_str()).filter(|oid| is_object_id(oid)).collect();
    // The standard input must be read before `--not`.
    let listed =
        git.fed(&[&["rev-list", "--ignore-missing", "--stdin"], &own[..], &rebased].concat(), left.as_bytes())?;
    let listed = String::from_utf8_lossy(&listed);
    let made: HashSet<&str> = made.iter().map(String::as_str).collect();
    let own: Vec<&str> = listed.lines().filter(|commit| made.contains(commit)).collect();
    Ok(LooseCommits::listed(own.join("\n").as_bytes()))
}

fn has_remotes(git: &Git) -> Result<bool> {
    Ok(!git.output(&["config", "--get-regexp", r"^remote\..*\.url$"])?.stdout.is_empty())
}

/// Returns those of the `commits` that `others` do not keep: commits of references must be in their references, those of reflogs at least in
/// their reflogs. Commits that a remote had when it was last asked are kept, too.
///
/// A repository must have all its history in its own objects. Replacements, grafts and commit graphs are not read.
pub(super) fn without_kept(git: &Git, commits: LooseCommits, others: &[PathBuf]) -> Result<Option<LooseCommits>> {
    let plain = |git: &Git| git.clone().with("GIT_NO_REPLACE_OBJECTS", "1").with("GIT_GRAFT_FILE", "/dev/null");
    let ours = plain(git);
    let others = others.iter().filter(|other| is_whole(other)).filter_map(|other| careful(other, other).ok());
    let others: Vec<Git> = others.map(|other| plain(&other)).collect();
    if others.is_empty() {
        return Ok(Some(commits));
    }
    let has_remotes = has_remotes(git)?;
    for which in [&["--all"][..], &["--all", "--reflog"]] {
        let lines = |git: &Git, arguments: &[&str]| -> Result<HashSet<String>> {
            let said = git.run(&[&PLAIN[..], arguments, which].concat())?;
            Ok(String::from_utf8_lossy(&said).lines().map(str::to_owned).collect())
        };
        let mut kept = HashSet::new();
        for other in &others {
            // Fails if an object on the way is missing.
            if other.output(&[&PLAIN[..], &["rev-list", "--objects", "--quiet"], which].concat())?.status.success() {
                kept.extend(lines(other, &["rev-list"])?);
                kept.extend(other_objects(other)?);
            }
        }
        let excluded: &[&str] = if has_remotes { &["--exclude=refs/remotes/*"] } else { &[] };
        let tips = lines(&ours, &[&["rev-list", "--no-walk"], excluded].concat())?;
        if !other_objects(&ours)?.is_subset(&kept) {
            return Ok(Some(commits));
        }
        let missing: Vec<&str> = tips.difference(&kept).map(String::as_str).collect();
        if missing.is_empty() {
            continue;
        }
        let at_remotes: &[&str] = if has_remotes { &["--not", "--remotes"] } else { &[] };
        let listed =
            ours.fed(&[&PLAIN[..], &["rev-list", "--stdin"], at_remotes].concat(), missing.join("\n").as_bytes())?;
        let listed = String::from_utf8_lossy(&listed);
        let not_kept: Vec<&str> = listed.lines().filter(|commit| !kept.contains(*commit)).take(1000).collect();
        if !listed.is_empty() {
            return Ok(Some(LooseCommits::listed(not_kept.join("\n").as_bytes()).unwrap_or(commits)));
        }
    }
    Ok(None)
}

/// Returns referenced objects that are no commits: annotated tags, and others kept by a name.
fn other_objects(git: &Git) -> Result<HashSet<String>> {
    let said = git.run(&["for-each-ref", "--format=%(objecttype) %(objectname)"])?;
    let said = String::from_utf8_lossy(&said);
    let others = said.lines().filter_map(|line| line.split_once(' ')).filter(|(kind, _)| *kind != "commit");
    Ok(others.map(|(_, name)| name.to_owned()).collect())
}

const PLAIN: [&str; 2] = ["-c", "core.commitGraph=false"];

/// Returns whether a repository has all its objects itself: none are cut off or left with a remote.
fn is_whole(repository: &Path) -> bool {
    let is_partial = || {
        let settings = Git::at(repository).with("GIT_DIR", repository).output(&["config", "--name-only", "--list"]);
        settings.map_or(true, |found| {
            let names = String::from_utf8_lossy(&found.stdout).to_ascii_lowercase();
            !found.status.success()
                || names.lines().any(|name| name.ends_with(".promisor") || name.ends_with(".partialclone"))
        })
    };
    ["objects/info/alternates", "objects/info/http-alternates", "shallow", "commondir"]
        .iter()
        .all(|name| is_missing(&repository.join(name)))
        && !is_partial()
        && ["HEAD", "packed-refs", "objects", "refs"].iter().all(|name| has_no_link(&repository.join(name)))
}

fn has_no_link(path: &Path) -> bool {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs_err::read_dir(path)
            .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| has_no_link(&entry.path())))),
        Ok(found) => found.is_file(),
        Err(_) => is_missing(path),
    }
}

/// Returns whether it is a copy for others to fetch from (`git clone --mirror`): each fetch overwrites all references.
fn is_mirror(git: &Git) -> Result<bool> {
    let is_bare = git.output(&["config", "--type=bool", "core.bare"])?.stdout.starts_with(b"true");
    let all = git.output(&["config", "--get-regexp", r"^remote\..*\.fetch$", r"^\+refs/\*:refs/\*$"])?;
    Ok(is_bare && !all.stdout.is_empty())
}

fn oids(file: &Path) -> Vec<String> {
    let text = fs_err::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.filter(|word| is_object_id(word)).map(str::to_owned).collect()
}
