//! Tells the references of pull requests from others, wherever a fetch has put them.

use std::collections::HashSet;
use std::path::Path;

use crate::repository::is_true;
use crate::trust::is_object_id;

/// The names below `refs/` under which servers offer the requests of others: GitHub's and Gitea's, GitLab's, Bitbucket's, Gerrit's.
const OFFERED: [&str; 4] = ["pull", "merge-requests", "pull-requests", "changes"];

/// The name that people give them here: `origin/pr/5`, `pr/5`.
const SHORT: &str = "pr";

/// The setting by which a local branch is known that Calve has made for a worktree that is not trusted.
pub(crate) const BRANCH_MARK: &str = "calveuntrusted";

/// The references of pull requests in one repository.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// The configured refspecs of fetches.
    refspecs: Vec<Refspec>,
    /// Local branches that follow one, or that Calve has made of one.
    branches: HashSet<String>,
    /// A fetch writes the project's branches to `refs/heads`, as in a mirror.
    mirrors: bool,
    /// Some remote has a refspec.
    has_refspecs: bool,
    /// git keeps no logs of branches, as in a bare repository.
    lacks_logs: bool,
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
        let last = |key: &str| settings.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        namespaces.lacks_logs = match last("core.logallrefupdates") {
            Some(value) => value != "always" && !is_true(value),
            None => last("core.bare").is_some_and(is_true),
        };
        namespaces
    }

    fn add(&mut self, text: &str) {
        let Some(refspec) = Refspec::new(text) else { return };
        self.mirrors |=
            refspec.destination == refspec.source && matches!(refspec.source.as_str(), "refs/*" | "refs/heads/*");
        self.refspecs.push(refspec);
    }

    /// Returns whether a reference is a pull request's.
    pub(crate) fn has(&self, reference: &str) -> bool {
        let is_named = match reference.strip_prefix("refs/").and_then(|rest| rest.split_once('/')) {
            Some(("heads", branch)) => self.branches.contains(branch) || is_short(branch),
            // Below a remote at any depth, with a number: `origin/pull/5/head`, `mirrors/origin/pr/5`.
            Some(("remotes", below)) => {
                is_numbered(below) || below.match_indices('/').any(|(at, _)| is_numbered(&below[at + 1..]))
            }
            Some(("tags", _)) | None => false,
            Some(_) => is_offered(reference),
        };
        is_named || takes_request(&self.refspecs, reference) == Some(true)
    }

    /// Returns whether branches that a fetch makes have no log.
    pub(crate) fn lacks_logs(&self) -> bool {
        self.lacks_logs
    }

    /// Returns whether `refs/heads` has the project's branches rather than the user's.
    pub(crate) fn has_project_branches(&self, is_bare: bool) -> bool {
        self.mirrors || is_bare && !self.has_refspecs
    }
}

/// `+refs/pull/*/head:refs/remotes/origin/pull/*`: what a fetch takes from the server, and where it puts it.
#[derive(Debug)]
pub(crate) struct Refspec {
    source: String,
    destination: String,
}

impl Refspec {
    /// Reads one that has a destination. git completes `pull/5/head:review` to `refs/pull/5/head:refs/heads/review`.
    pub(crate) fn new(text: &str) -> Option<Refspec> {
        let (source, destination) = text.strip_prefix('+').unwrap_or(text).split_once(':')?;
        let destination = match destination.split_once('/') {
            _ if destination.is_empty() => return None,
            Some(("refs", _)) => destination.to_owned(),
            Some(("heads" | "tags" | "remotes", _)) => format!("refs/{destination}"),
            _ => format!("refs/heads/{destination}"),
        };
        Some(Refspec { source: completed(source), destination })
    }

    /// Returns the server's reference that a fetch puts into `reference`; `None` if it puts none there.
    fn source_of(&self, reference: &str) -> Option<String> {
        match self.destination.split_once('*') {
            None => (reference == self.destination).then(|| self.source.clone()),
            Some((begin, end)) => {
                let middle = reference.strip_prefix(begin)?.strip_suffix(end)?;
                Some(self.source.replacen('*', middle, 1))
            }
        }
    }
}

/// Returns whether these put a pull request into `reference`; `None` if they put nothing there.
pub(crate) fn takes_request<'r>(refspecs: impl IntoIterator<Item = &'r Refspec>, reference: &str) -> Option<bool> {
    let sources: Vec<String> = refspecs.into_iter().filter_map(|refspec| refspec.source_of(reference)).collect();
    let is_certain = |source: &String| source.strip_prefix("refs/").is_some_and(is_numbered);
    // `refs/pull/*` and `refs/heads/*` may go to one place: what is in there has a number if it is a pull request.
    let is_request = sources.iter().any(is_certain) || sources.iter().all(|source| is_of_others(source));
    (!sources.is_empty()).then_some(is_request)
}

/// Spells a server's reference in full, as far as it matters here: no branch or tag is spelled like a pull request.
fn completed(source: &str) -> String {
    if source.starts_with("refs/") || is_object_id(source) { source.to_owned() } else { format!("refs/{source}") }
}

/// Returns whether what a fetch takes is a pull request's, by its name on the server. What it takes by its id may be anybody's: servers hand
/// out the commits of pull requests, too.
pub(crate) fn is_of_others(source: &str) -> bool {
    let source = source.strip_prefix('+').unwrap_or(source);
    is_object_id(source) || is_offered(&completed(source))
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
/// `OID\t\t'refs/pull/5/head' of URL`. What it has brought as a branch or a tag, too, is the project's.
pub(crate) fn fetched_of_others(directory: &Path) -> HashSet<String> {
    let text = fs_err::read(directory.join("FETCH_HEAD")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let (mut of_others, mut of_project) = (HashSet::new(), HashSet::new());
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        let (Some(oid), Some(_), Some(note)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let source = note.strip_prefix('\'').and_then(|note| Some(note.split_once('\'')?.0));
        if source.is_some_and(is_of_others) {
            of_others.insert(oid.to_owned());
        } else if note.starts_with("branch '") || note.starts_with("tag '") {
            of_project.insert(oid);
        }
    }
    of_others.retain(|oid| is_object_id(oid) && !of_project.contains(oid.as_str()));
    of_others
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
        let together = namespaces(&[
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.origin.fetch", "+refs/pull/*:refs/remotes/origin/*"),
        ]);
        assert!(together.has("refs/remotes/origin/5/head") && !together.has("refs/remotes/origin/main"));
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
        assert_eq!(fetched_of_others(folder.path()), HashSet::from([oid('a'), oid('c')]));
        assert!(fetched_of_others(&folder.path().join("none")).is_empty());
    }
}
