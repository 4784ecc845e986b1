//! Distinguishes the references of pull requests from others, wherever a fetch has put them.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use crate::repository::remotes::Remotes;
use crate::settings::is_true;
use crate::trust::is_object_id;

/// Names below `refs/` under which servers offer pull requests: GitHub and Gitea, GitLab, Bitbucket, Gerrit.
const OFFERED: [&str; 4] = ["pull", "merge-requests", "pull-requests", "changes"];

/// Their local name, given by people and Calve: `origin/pr/5`, `pr/5`.
const SHORT: &str = "pr";

/// The setting that marks a local branch made by Calve for an untrusted worktree.
pub(crate) const BRANCH_MARK: &str = "calveuntrusted";

/// Names below `refs/` where git and its helpers keep the user's own work. No fetch puts foreign work there.
const LOCAL: [&str; 14] = [
    "bisect",
    "branchless",
    "gitbutler",
    "jj",
    "notes",
    "original",
    "patches",
    "prefetch",
    "replace",
    "rewritten",
    "stacks",
    "stash",
    "wip",
    "worktree",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Project,
    /// A pull request, recognized by its name.
    Request,
    /// Unknown: fetched by id, from an unconfigured server, or into a neutral name. Foreign unless the project has it.
    Anybody,
}

#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    pub(crate) remotes: Remotes,
    refspecs: Vec<Refspec>,
    /// Refspecs of remotes that a program made for a fork.
    of_forks: Vec<Refspec>,
    /// Local branches that follow a pull request, or that Calve has made of one.
    branches: HashSet<String>,
    /// A fetch writes the project's branches to `refs/heads`, as in a mirror.
    pub(crate) mirrors: bool,
    pub(crate) has_refspecs: bool,
    /// git keeps no logs of branches, as in a bare repository.
    pub(crate) lacks_logs: bool,
}

impl Namespaces {
    /// Reads all settings, whose names are in the form that git compares.
    pub(crate) fn new(settings: &[(String, String)]) -> Namespaces {
        let mut namespaces = Namespaces { remotes: Remotes::new(settings), ..Namespaces::default() };
        for (name, value) in settings {
            if let Some(remote) = name.strip_prefix("remote.").and_then(|rest| rest.strip_suffix(".fetch")) {
                namespaces.add(remote, value);
            } else if let Some((branch, key)) = name.strip_prefix("branch.").and_then(|rest| rest.rsplit_once('.')) {
                let is_of_others = match key {
                    "merge" => is_offered(value),
                    // An address in place of a remote's name: the fork of a pull request.
                    "remote" => !namespaces.remotes.has(value),
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

    fn add(&mut self, remote: &str, text: &str) {
        self.has_refspecs = true;
        let Some(refspec) = Refspec::new(text) else { return };
        if self.remotes.is_fork(remote) {
            return self.of_forks.push(refspec);
        }
        self.mirrors |=
            refspec.destination == refspec.source && matches!(refspec.source.as_str(), "refs/*" | "refs/heads/*");
        self.refspecs.push(refspec);
    }

    /// Decides a reference's source by its name and the configured refspecs: the one rule for names. Branches, remotes'
    /// branches and tags are the project's, unless a log says otherwise. `None`: git and its helpers keep it.
    pub(crate) fn source_of(&self, reference: &str) -> Option<Source> {
        let (first, below) =
            reference.strip_prefix("refs/")?.split_once('/').unwrap_or((&reference["refs/".len()..], ""));
        let is_short = || below.split_once('/').is_some_and(|(first, number)| first == SHORT && is_number(number));
        let is_request = match first {
            "heads" => self.branches.contains(below) || is_short(),
            // With a number: `origin/pull/5/head`, `mirrors/origin/pr/5`, and the tag `pr/5`.
            "remotes" | "tags" => has_numbered(below),
            _ => is_offered(reference),
        };
        let is_put = |refspecs: &[Refspec]| refspecs.iter().any(|refspec| refspec.source_of(reference).is_some());
        if is_request || takes(&self.refspecs, reference) == Some(Source::Request) || is_put(&self.of_forks) {
            return Some(Source::Request);
        }
        match first {
            "heads" | "remotes" | "tags" => Some(Source::Project),
            _ if LOCAL.contains(&first) => None,
            _ => Some(Source::Anybody),
        }
    }
}

/// `+refs/pull/*/head:refs/remotes/origin/pull/*`: references of the server, and their places here.
#[derive(Debug)]
pub(crate) struct Refspec {
    source: String,
    destination: String,
}

impl Refspec {
    /// Parses a refspec with a destination. git completes `pull/5/head:review` to `refs/pull/5/head:refs/heads/review`.
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

    /// Returns the place here of the server's reference `source`, if a fetch takes it.
    pub(crate) fn destination_of(&self, source: &str) -> Option<String> {
        mapped(source, &self.source, &self.destination)
    }

    /// Returns the server's reference that a fetch puts into `reference`, if any.
    pub(crate) fn source_of(&self, reference: &str) -> Option<String> {
        mapped(reference, &self.destination, &self.source)
    }
}

/// Returns `to` with the part of `name` that the `*` of `from` matches; `None` if `name` does not match.
fn mapped(name: &str, from: &str, to: &str) -> Option<String> {
    match from.split_once('*') {
        None => (name == from).then(|| to.to_owned()),
        Some((begin, end)) => Some(to.replacen('*', name.strip_prefix(begin)?.strip_suffix(end)?, 1)),
    }
}

pub(crate) fn takes<'r>(refspecs: impl IntoIterator<Item = &'r Refspec>, reference: &str) -> Option<Source> {
    let sources: Vec<String> = refspecs.into_iter().filter_map(|refspec| refspec.source_of(reference)).collect();
    let is_certain = |source: &String| source.strip_prefix("refs/").is_some_and(is_numbered);
    let is_id = |source: &String| is_object_id(source);
    // `refs/pull/*` and `refs/heads/*` may go to one place, in which a pull request's name is a number.
    Some(match sources.as_slice() {
        [] => return None,
        all if all.iter().any(is_certain) => Source::Request,
        all if all.iter().any(is_id) => Source::Anybody,
        all if all.iter().all(|source| is_offered(source)) => Source::Request,
        _ => Source::Project,
    })
}

/// Completes a server's reference, so that no branch or tag looks like a pull request.
fn completed(source: &str) -> String {
    if source.starts_with("refs/") || is_object_id(source) { source.to_owned() } else { format!("refs/{source}") }
}

/// Returns a commit's source by its name on the server. Its id proves nothing: servers send pull requests' commits too.
pub(crate) fn source_of_name(name: &str) -> Source {
    let name = name.strip_prefix('+').unwrap_or(name);
    match () {
        () if is_object_id(name) => Source::Anybody,
        () if is_offered(&completed(name)) => Source::Request,
        () => Source::Project,
    }
}

/// Returns whether a command that names a commit in this way means a fetched one, or a pull request's reference.
pub(crate) fn names_request(revision: &str) -> bool {
    let name = revision.split(['~', '^', ':', '@']).next().unwrap_or(revision);
    name == "FETCH_HEAD" || is_offered(name) || has_numbered(name.strip_prefix("refs/").unwrap_or(name))
}

fn is_offered(reference: &str) -> bool {
    let below = reference.strip_prefix("refs/").and_then(|rest| rest.split_once('/'));
    below.is_some_and(|(first, _)| OFFERED.contains(&first))
}

/// Returns whether a name contains, at any depth, a pull request's name with its number.
fn has_numbered(name: &str) -> bool {
    is_numbered(name) || name.match_indices('/').any(|(at, _)| is_numbered(&name[at + 1..]))
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

/// Commits of the last `git fetch` of each directory, from its FETCH_HEAD: `OID\t\t'refs/pull/5/head' of URL`,
/// `OID\t\tbranch 'x' of URL`, or `OID\t\tURL`.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) is_any: bool,
    pub(crate) of_others: HashMap<String, Source>,
    /// Commits of configured remotes' branches and tags.
    pub(crate) of_project: HashSet<String>,
}

impl Fetched {
    /// Adds a git directory's FETCH_HEAD. A commit also listed as a configured remote's branch or tag is the project's.
    pub(crate) fn read(&mut self, directory: &Path, remotes: &Remotes) {
        let text = match fs_err::read(directory.join("FETCH_HEAD")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            text => text.unwrap_or_default(),
        };
        self.is_any = true;
        let text = String::from_utf8_lossy(&text);
        let (mut of_others, mut of_project) = (Vec::new(), HashSet::new());
        for line in text.lines() {
            let mut fields = line.splitn(3, '\t');
            let (Some(oid), Some(_), Some(note)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let (what, address) = note.split_once("' of ").unwrap_or(("", note));
            let (kind, name) = what.split_once('\'').unwrap_or_default();
            let source = match kind {
                _ if !remotes.has(address) => Source::Anybody,
                "" => source_of_name(name),
                _ => Source::Project,
            };
            match source {
                // Fetched from this repository: its other references tell the source.
                Source::Project if address == "." => {}
                Source::Project => drop(of_project.insert(oid)),
                others => of_others.push((oid, others)),
            }
        }
        of_others.retain(|(oid, _)| is_object_id(oid) && !of_project.contains(oid));
        for (oid, source) in of_others {
            if source == Source::Request || !self.of_others.contains_key(oid) {
                self.of_others.insert(oid.to_owned(), source);
            }
        }
        self.of_project.extend(of_project.into_iter().map(str::to_owned));
    }
}

/// Returns the remotes' refspecs, each with its remote, in the order of the settings.
pub(crate) fn refspecs(settings: &[(String, String)]) -> Vec<(String, Refspec)> {
    let fetched = settings.iter().filter_map(|(name, value)| {
        let remote = name.strip_prefix("remote.")?.strip_suffix(".fetch")?;
        Some((remote.to_owned(), Refspec::new(value)?))
    });
    fetched.collect()
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
            "refs/tags/pull/5",
            "refs/tags/pr/5",
        ] {
            assert_eq!(plain.source_of(reference), Some(Source::Request), "{reference}");
        }
        for reference in [
            "refs/heads/main",
            "refs/heads/pr/review",
            "refs/heads/pull-5",
            "refs/remotes/origin/main",
            "refs/remotes/origin/pull/main",
            "refs/remotes/origin/express/5",
            "refs/tags/v5",
        ] {
            assert_eq!(plain.source_of(reference), Some(Source::Project), "{reference}");
        }
        for reference in ["refs/review/5", "refs/x", "refs/kept/heads/main", "refs/calve/pull/5-1"] {
            assert_eq!(plain.source_of(reference), Some(Source::Anybody), "{reference}");
        }
        for reference in ["refs/stash", "refs/notes/commits", "refs/prefetch/remotes/origin/main", "HEAD"] {
            assert_eq!(plain.source_of(reference), None, "{reference}");
        }
        let named = namespaces(&[
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.origin.fetch", "+refs/pull/*/head:refs/remotes/origin/theirs/*"),
            ("remote.Other.fetch", "refs/pull/9/head:refs/heads/nine"),
            ("remote.Other.fetch", "pull/10/head:ten"),
        ]);
        let is_request = |named: &Namespaces, reference| named.source_of(reference) == Some(Source::Request);
        for reference in ["refs/remotes/origin/theirs/5", "refs/heads/nine", "refs/heads/ten"] {
            assert!(is_request(&named, reference), "{reference}");
        }
        assert!(!is_request(&named, "refs/remotes/origin/their") && !is_request(&named, "refs/heads/ninety"));
        let together = namespaces(&[
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.origin.fetch", "+refs/pull/*:refs/remotes/origin/*"),
        ]);
        assert!(is_request(&together, "refs/remotes/origin/5/head"));
        assert!(!is_request(&together, "refs/remotes/origin/main"));
        let forks = namespaces(&[
            ("remote.github-desktop-them.url", "x"),
            ("remote.github-desktop-them.fetch", "+refs/heads/*:refs/remotes/github-desktop-them/*"),
        ]);
        assert!(is_request(&forks, "refs/remotes/github-desktop-them/main"));
        assert!(!is_request(&forks, "refs/remotes/github-desktop/main"));
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
            let source = named.source_of(&format!("refs/heads/{branch}"));
            assert_eq!(source == Some(Source::Request), expected, "{branch}");
        }
    }

    #[test]
    fn what_was_fetched_by_hand_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let oid = |digit: char| digit.to_string().repeat(40);
        let remotes = Remotes::new(&[("remote.origin.url".to_owned(), "../u".to_owned())]);
        let lines = [
            ("\t\t'refs/pull/5/head' of ../u", Some(Source::Request)),
            ("\tnot-for-merge\tbranch 'main' of ../u", None),
            ("\tnot-for-merge\t'refs/merge-requests/1/head' of ../u", Some(Source::Request)),
            ("\t\tbranch 'main' of https://example.org/them/u", Some(Source::Anybody)),
            ("\t\thttps://example.org/them/u", Some(Source::Anybody)),
            ("\t\t../u", None),
            ("\tnot-for-merge\ttag 'v1' of https://example.org/them/u", Some(Source::Anybody)),
            ("\t\tbranch 'x' of .", None),
        ];
        let ids: Vec<String> = "12345678".chars().map(oid).collect();
        let text: String = lines.iter().zip(&ids).map(|((line, _), oid)| format!("{oid}{line}\n")).collect();
        let by_id = format!("{0}\t\t'{0}' of ../u\n", oid('e'));
        fs_err::write(folder.path().join("FETCH_HEAD"), text + &by_id).unwrap();
        let expected = lines.iter().zip(&ids).filter_map(|((_, source), oid)| Some((oid.clone(), (*source)?)));
        let expected: HashMap<_, _> = expected.chain([(oid('e'), Source::Anybody)]).collect();
        let fetched = |directory: &Path| {
            let mut fetched = Fetched::default();
            fetched.read(directory, &remotes);
            fetched
        };
        let found = fetched(folder.path());
        assert_eq!(found.of_others, expected);
        let of_project: HashSet<_> = [1, 5].map(|at| ids[at].clone()).into();
        assert_eq!(found.of_project, of_project);
        // The same from the project.
        let both = format!("{0}\t\tbranch 'main' of ../fork\n{0}\tnot-for-merge\tbranch 'main' of ../u\n", oid('d'));
        fs_err::write(folder.path().join("FETCH_HEAD"), both).unwrap();
        let found = fetched(folder.path());
        assert!(found.is_any && found.of_others.is_empty() && found.of_project.contains(&oid('d')));
        assert!(!fetched(&folder.path().join("none")).is_any);
    }
}
