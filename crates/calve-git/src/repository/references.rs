//! Tells the references of pull requests from others, wherever a fetch has put them.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;

/// The names below `refs/` under which servers offer the requests of others: GitHub's and Gitea's, GitLab's, Bitbucket's, Gerrit's.
const OFFERED: [&str; 4] = ["pull", "merge-requests", "pull-requests", "changes"];

/// The name that people give them here: `origin/pr/5`, `pr/5`.
const SHORT: &str = "pr";

/// The setting by which a local branch is known that Calve has made for a worktree that is not trusted.
pub(crate) const BRANCH_MARK: &str = "calveuntrusted";

/// The references of pull requests in one repository.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// Where the fetches of the configuration put them: a whole reference, or its beginning and end around the `*`.
    fetched: Vec<(String, Option<String>)>,
    /// Local branches that follow one, or that Calve has made of one.
    branches: HashSet<String>,
    /// A fetch writes the project's branches to `refs/heads`, as in a mirror.
    mirrors: bool,
    /// Some remote has a refspec.
    has_refspecs: bool,
}

impl Namespaces {
    /// Reads them out of all settings, by their names as git compares them.
    pub(crate) fn new(settings: &[(String, String)]) -> Namespaces {
        let remotes: HashSet<&str> =
            settings.iter().filter_map(|(name, _)| name.strip_prefix("remote.")?.strip_suffix(".url")).collect();
        let mut namespaces = Namespaces::default();
        for (name, value) in settings {
            if name.starts_with("remote.") && name.ends_with(".fetch") {
                namespaces.has_refspecs = true;
                namespaces.add(value);
            } else if let Some((branch, key)) = name.strip_prefix("branch.").and_then(|rest| rest.rsplit_once('.')) {
                let is_of_others = match key {
                    "merge" => is_offered(value),
                    // An address in place of a remote's name: the fork that a pull request comes from.
                    "remote" => value != "." && !remotes.contains(value.as_str()),
                    BRANCH_MARK => true,
                    _ => false,
                };
                if is_of_others {
                    namespaces.branches.insert(branch.to_owned());
                }
            }
        }
        namespaces
    }

    fn add(&mut self, refspec: &str) {
        let refspec = refspec.strip_prefix('+').unwrap_or(refspec);
        let Some((source, destination)) = refspec.split_once(':') else { return };
        // git completes both: `pull/5/head:review` is `refs/pull/5/head:refs/heads/review`.
        let source = if source.starts_with("refs/") { source.to_owned() } else { format!("refs/{source}") };
        let destination =
            if destination.starts_with("refs/") { destination.to_owned() } else { format!("refs/heads/{destination}") };
        let (source, destination) = (source.as_str(), destination.as_str());
        if is_offered(source) {
            let (begin, end) =
                destination.split_once('*').map_or((destination, None), |(begin, end)| (begin, Some(end)));
            self.fetched.push((begin.to_owned(), end.map(str::to_owned)));
        }
        self.mirrors |= destination == source && matches!(source, "refs/*" | "refs/heads/*");
    }

    /// Returns whether a reference is a pull request's.
    pub(crate) fn has(&self, reference: &str) -> bool {
        let is_fetched = |(begin, end): &(String, Option<String>)| match end {
            None => reference == begin,
            Some(end) => reference.strip_prefix(begin.as_str()).is_some_and(|rest| rest.ends_with(end.as_str())),
        };
        let is_named = match reference.strip_prefix("refs/").and_then(|rest| rest.split_once('/')) {
            Some(("heads", branch)) => self.branches.contains(branch) || is_short(branch),
            // Below a remote at any depth, with a number: `origin/pull/5/head`, `mirrors/origin/pr/5`.
            Some(("remotes", below)) => {
                is_numbered(below) || below.match_indices('/').any(|(at, _)| is_numbered(&below[at + 1..]))
            }
            Some(("tags", _)) | None => false,
            Some(_) => is_offered(reference),
        };
        is_named || self.fetched.iter().any(is_fetched)
    }

    /// Returns whether `refs/heads` has the project's branches rather than the user's.
    pub(crate) fn has_project_branches(&self, is_bare: bool) -> bool {
        self.mirrors || is_bare && !self.has_refspecs
    }
}

/// Returns whether a server's reference is a pull request's.
fn is_offered(reference: &str) -> bool {
    let below = reference.strip_prefix("refs/").and_then(|rest| rest.split_once('/'));
    below.is_some_and(|(first, _)| OFFERED.contains(&first))
}

/// Returns whether a name begins with a name of pull requests and a number.
fn is_numbered(name: &str) -> bool {
    let mut parts = name.split('/');
    let is_namespace = parts.next().is_some_and(|first| first == SHORT || OFFERED.contains(&first));
    is_namespace && parts.next().is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a branch has the name that Calve gives a pull request: `pr/123`.
fn is_short(branch: &str) -> bool {
    let number = branch.strip_prefix(SHORT).and_then(|rest| rest.strip_prefix('/'));
    number.is_some_and(is_number)
}

/// Returns the pull requests' commits that the last `git fetch` has brought, by the FETCH_HEAD in a directory of git's own:
/// `OID\t\t'refs/pull/5/head' of URL`.
pub(crate) fn fetched_of_others(directory: &Path) -> Vec<String> {
    let text = fs_err::read(directory.join("FETCH_HEAD")).unwrap_or_default();
    let found = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (oid, rest) = line.split_once('\t')?;
        let reference = rest.split_once('\'')?.1.split_once('\'')?.0;
        (is_offered(reference) && oid.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| oid.to_owned())
    });
    found.collect()
}

/// The beginning of a reflog that is looked at: the first line says how the branch was made.
const FIRST_LINE_BYTES: u64 = 4096;

/// Returns whether a local branch was made by `git fetch origin pull/5/head:BRANCH`, by its reflog.
pub(crate) fn was_fetched_of_others(common: &Path, branch: &str) -> bool {
    let Ok(log) = fs_err::File::open(common.join("logs/refs/heads").join(branch)) else { return false };
    let mut text = Vec::new();
    if log.take(FIRST_LINE_BYTES).read_to_end(&mut text).is_err() {
        return false;
    }
    let text = String::from_utf8_lossy(&text);
    let how = text.lines().next().and_then(|line| line.split_once('\t')).map_or("", |(_, how)| how);
    let sources =
        how.strip_prefix("fetch").into_iter().flat_map(str::split_whitespace).filter_map(|word| word.split_once(':'));
    let mut sources = sources.map(|(source, _)| source.strip_prefix('+').unwrap_or(source));
    sources.any(|source| is_offered(source) || is_offered(&format!("refs/{source}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(settings: &[(&str, &str)]) -> Namespaces {
        let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Namespaces::new(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn requests_are_known_wherever_a_fetch_puts_them() {
        let plain = namespaces(&[("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")]);
        for reference in [
            "refs/pull/5/head",
            "refs/merge-requests/5/head",
            "refs/pull-requests/5/from",
            "refs/changes/34/1234/1",
            "refs/remotes/pr/5",
            "refs/remotes/origin/pull/5",
            "refs/remotes/origin/pull/5/head",
            "refs/remotes/team/origin/pr/5",
            "refs/remotes/origin/merge-requests/7/merge",
            "refs/remotes/origin/pull-requests/5/from",
            "refs/heads/pr/5",
        ] {
            assert!(plain.has(reference), "{reference}");
        }
        for reference in [
            "refs/heads/main",
            "refs/heads/pr/review",
            "refs/heads/pull-5",
            "refs/remotes/origin/main",
            "refs/remotes/origin/pull/main",
            "refs/remotes/origin/express/5",
            "refs/tags/pull/5",
            "refs/stash",
            "refs/notes/commits",
        ] {
            assert!(!plain.has(reference), "{reference}");
        }
        let named = namespaces(&[
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.origin.fetch", "+refs/pull/*/head:refs/remotes/origin/theirs/*"),
            ("remote.Other.fetch", "refs/pull/9/head:refs/heads/nine"),
            ("remote.Other.fetch", "pull/10/head:ten"),
        ]);
        assert!(["refs/remotes/origin/theirs/5", "refs/heads/nine", "refs/heads/ten"].iter().all(|one| named.has(one)));
        assert!(!named.has("refs/remotes/origin/their") && !named.has("refs/heads/ninety"));
    }

    #[test]
    fn branches_that_follow_a_request_are_its() {
        let settings = [
            ("remote.origin.url", "x"),
            ("branch.fix.remote", "origin"),
            ("branch.fix.merge", "refs/pull/5/head"),
            ("branch.fork.remote", "https://example.org/them/x.git"),
            ("branch.fork.merge", "refs/heads/main"),
            ("branch.own.remote", "origin"),
            ("branch.own.merge", "refs/heads/own"),
            ("branch.stacked.remote", "."),
            ("branch.made.calveuntrusted", "true"),
        ];
        let named = namespaces(&settings);
        for (branch, expected) in [("fix", true), ("fork", true), ("made", true), ("own", false), ("stacked", false)] {
            assert_eq!(named.has(&format!("refs/heads/{branch}")), expected, "{branch}");
        }
    }

    #[test]
    fn what_was_fetched_by_hand_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let oid = |digit: char| digit.to_string().repeat(40);
        let text = format!(
            "{}\t\t'refs/pull/5/head' of ../u\n{}\tnot-for-merge\tbranch 'main' of ../u\n{}\tnot-for-merge\t'refs/merge-requests/1/head' of x\n",
            oid('a'),
            oid('b'),
            oid('c')
        );
        fs_err::write(folder.path().join("FETCH_HEAD"), text).unwrap();
        assert_eq!(fetched_of_others(folder.path()), [oid('a'), oid('c')]);
        assert!(fetched_of_others(&folder.path().join("none")).is_empty());
    }
}
