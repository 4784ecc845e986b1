//! Finds commits that exist only in a repository that is about to be removed.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::Result;
use crate::git::Git;

/// Returns a git for a repository that the user may never have looked into. It runs no program that the repository's configuration names,
/// and fetches nothing. It still reads that configuration.
pub(crate) fn careful(at: &Path, repository: &Path) -> Git {
    let git = Git::at(at).with("GIT_DIR", repository);
    git.with("GIT_ALLOW_PROTOCOL", "none").with("GIT_NO_LAZY_FETCH", "1")
}

/// Returns a commit of any reference (a branch, HEAD, the stash, a worktree's HEAD) that no remote had when it was last asked.
///
/// Tags mostly come from a remote, and a commit that was checked out by its tag may be on no branch there. They count as the remote's,
/// except for commits that were made here.
pub(crate) fn only_here(git: &Git, repository: &Path) -> Result<Option<String>> {
    let all = ["rev-list", "--max-count=1", "--ignore-missing"].map(str::to_owned).to_vec();
    let remotes = git.output(&["config", "--get-regexp", r"^remote\..*\.url$"])?;
    if remotes.stdout.is_empty() {
        return first(git, &[all, vec!["--all".to_owned()]].concat());
    }
    let own = ["--exclude=refs/remotes/*", "--exclude=refs/tags/*", "--all", "--not", "--remotes"].map(str::to_owned);
    if is_mirror(git)? {
        return Ok(None);
    }
    // A commit that was fetched by its name, for which a remote has no branch; and where a shallow clone ends. Without `^`, they are
    // excluded like those before them.
    // What was made here can have been fetched from here, too (`git fetch . BRANCH`).
    let made = made_here(repository);
    let fetched = oids(&repository.join("FETCH_HEAD")).into_iter().filter(|commit| !made.contains(commit));
    let own: Vec<String> = own.into_iter().chain(fetched).chain(oids(&repository.join("shallow"))).collect();
    let without_tags = first(git, &[all.clone(), own.clone(), vec!["--tags".to_owned()]].concat())?;
    if without_tags.is_some() {
        return Ok(without_tags);
    }
    let tagged = match made.is_empty() {
        true => Vec::new(),
        false => git.run(&[vec!["rev-list".to_owned(), "--ignore-missing".to_owned()], own].concat())?,
    };
    let tagged = String::from_utf8_lossy(&tagged);
    Ok(tagged.lines().find(|commit| made.iter().any(|made| made == commit)).map(str::to_owned))
}

/// Whether it is a copy for others to fetch from (`git clone --mirror`): no files, and each fetch overwrites all references.
fn is_mirror(git: &Git) -> Result<bool> {
    let is_bare = git.output(&["config", "--type=bool", "core.bare"])?.stdout.starts_with(b"true");
    let all = git.output(&["config", "--get-regexp", r"^remote\..*\.fetch$", r"^\+refs/\*:refs/\*$"])?;
    Ok(is_bare && !all.stdout.is_empty())
}

fn first<A: AsRef<OsStr>>(git: &Git, arguments: &[A]) -> Result<Option<String>> {
    let said = git.run(arguments)?;
    Ok(Some(String::from_utf8_lossy(&said).trim().to_owned()).filter(|commit| !commit.is_empty()))
}

fn oids(file: &Path) -> Vec<String> {
    let text = fs_err::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.filter(|word| is_oid(word)).map(str::to_owned).collect()
}

fn is_oid(word: &str) -> bool {
    word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the commits that HEAD came to other than by a checkout of existing commits: `OLD NEW WHO WHEN\tWHAT: ...`.
fn made_here(repository: &Path) -> Vec<String> {
    let log = fs_err::read(repository.join("logs/HEAD")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    let made = log.lines().filter_map(|line| {
        let (numbers, what) = line.split_once('\t')?;
        let made = ["commit", "rebase", "cherry-pick", "merge", "am", "revert", "pull"];
        made.iter().any(|word| what.starts_with(word)).then(|| numbers.split(' ').nth(1))?
    });
    made.filter(|word| is_oid(word)).map(str::to_owned).collect()
}
