//! Reads in git's logs of references (git-reflog(1)) how they came to have their commits.

use std::collections::HashSet;
use std::path::Path;

use crate::repository::references::{Refspec, is_of_others, takes_request};

/// The log of a reference, or of a HEAD.
pub(crate) struct Log {
    text: String,
}

impl Log {
    /// Reads the log of a reference, with `refs/`, in a directory of git's own. One that is not there has no lines.
    pub(crate) fn of(directory: &Path, reference: &str) -> Log {
        let text = fs_err::read(directory.join("logs").join(reference)).unwrap_or_default();
        // The loose conversion takes several times as long, and logs may have thousands of lines.
        let text =
            String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Log { text }
    }

    /// Returns the lines, the oldest first.
    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = LogLine<'_>> {
        self.text.lines().filter_map(LogLine::new)
    }

    /// Returns the commits of pull requests that fetches have put into `reference`.
    pub(crate) fn requests<'l>(&'l self, reference: &'l str) -> impl Iterator<Item = &'l str> {
        self.lines().filter(|line| line.brings_request(reference)).map(|line| line.new)
    }

    /// Returns whether the branch `reference`, whose tip is `oid`, was made of a pull request, or a fetch put one there last. Where no line says
    /// how the tip came, it is one if it `is_forgotten`.
    pub(crate) fn is_of_request(&self, reference: &str, oid: &str, is_forgotten: bool) -> bool {
        let is_local = reference.starts_with("refs/heads/");
        if is_local && self.lines().next().is_some_and(|line| line.brings_request(reference)) {
            return true;
        }
        match self.lines().next_back().filter(|line| line.new == oid && line.is_fetch()) {
            // Whoever pulls one into a branch merges it.
            Some(line) => line.brings_request(reference) && !(is_local && line.is_pull()),
            None => is_forgotten,
        }
    }
}

/// One line of a log: `OLD NEW WHO WHEN\tHOW`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine<'l> {
    pub(crate) old: &'l str,
    pub(crate) new: &'l str,
    how: &'l str,
}

impl<'l> LogLine<'l> {
    fn new(line: &'l str) -> Option<LogLine<'l>> {
        let (who, how) = line.split_once('\t')?;
        let mut ids = who.split(' ');
        Some(LogLine { old: ids.next()?, new: ids.next()?, how })
    }

    /// Returns whether a fetch, also that of a pull, wrote it.
    fn is_fetch(&self) -> bool {
        self.is_of("fetch") || self.is_pull()
    }

    fn is_pull(&self) -> bool {
        self.is_of("pull")
    }

    fn is_of(&self, command: &str) -> bool {
        self.how.strip_prefix(command).is_some_and(|rest| rest.starts_with([' ', ':']))
    }

    /// Returns whether a fetch has put a pull request's commit into `reference`. git writes down what was typed, for all references that the
    /// command changed: `fetch origin pull/5/head:refs/remotes/origin/x: storing ref`.
    fn brings_request(&self, reference: &str) -> bool {
        if !self.is_fetch() {
            return false;
        }
        let (command, what) = self.how.rsplit_once(": ").unwrap_or((self.how, ""));
        if !command.contains(':') && !self.is_pull() {
            // The usual line, of which there may be thousands: without a refspec.
            return what == "storing ref";
        }
        let words = || self.how.split_ascii_whitespace().map(|word| word.trim_end_matches(':'));
        // Also in `--refmap=REFSPEC`.
        let refspecs: Vec<_> = words().filter_map(|word| Refspec::new(word.rsplit('=').next()?)).collect();
        if let Some(is_request) = takes_request(&refspecs, reference) {
            return is_request;
        }
        // What is no branch and no tag on the server is a ref to git.
        self.how.ends_with(": storing ref") || self.is_pull() && words().any(is_of_others)
    }

    /// Returns whether git made the new commit here, of what was in this repository. What came by a fetch, a fast-forward or a checkout may be
    /// somebody else's, and so may what a rebase made anew: [`Self::rewriting`] tells of what.
    fn is_made_here(&self) -> bool {
        const MAKING: [&str; 3] = ["cherry-pick", "revert", "am"];
        let Some((action, what)) = self.how.split_once(": ") else { return false };
        what != "fast-forward"
            && (action.starts_with("commit")
                || MAKING.contains(&action)
                || what.starts_with("Merge made by ") && !self.brings_request(""))
    }

    /// Returns how the new commit is the old one in another form; `None` if it is not.
    fn rewriting(&self) -> Option<Rewriting> {
        let (action, what) = self.how.split_once(": ")?;
        let onto = match action {
            "commit (amend)" => None,
            // In the log of a branch: `rebase (finish): refs/heads/x onto OID`, `pull --rebase origin main (finish): …`. It may have nothing that
            // the other one lacks.
            _ if action.ends_with("(finish)") => {
                let (_, onto) = what.rsplit_once(" onto ").filter(|(_, onto)| *onto != self.new)?;
                Some(onto.to_owned())
            }
            _ => return None,
        };
        Some(Rewriting { old: self.old.to_owned(), new: self.new.to_owned(), onto })
    }
}

/// A commit that replaced another one.
pub(crate) struct Rewriting {
    pub(crate) old: String,
    pub(crate) new: String,
    /// The commit on which a rebase has made it anew, and everything in between. `None` where it is the last commit alone.
    pub(crate) onto: Option<String>,
}

/// The commits of a repository that its logs tell about.
#[derive(Default)]
pub(crate) struct History {
    /// Commits that git made here.
    pub(crate) made: HashSet<String>,
    /// Commits that replaced others, the oldest of each log first.
    pub(crate) rewritten: Vec<Rewriting>,
}

impl History {
    pub(crate) fn read(&mut self, log: &Log) {
        for line in log.lines() {
            if line.is_made_here() {
                self.made.insert(line.new.to_owned());
            }
            self.rewritten.extend(line.rewriting());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(how: &str) -> LogLine<'_> {
        LogLine { old: "a", new: "b", how }
    }

    #[test]
    fn a_fetch_tells_what_it_put_where() {
        let x = "refs/remotes/origin/x";
        for (how, reference) in [
            ("fetch -q origin pull/5/head:refs/remotes/origin/x: storing ref", x),
            ("fetch origin main pull/5/head:remotes/origin/x: forced-update", x),
            ("fetch origin +refs/pull/*/head:refs/remotes/origin/q*: fast-forward", "refs/remotes/origin/q5"),
            ("fetch origin pull/5/head:x pull/6/head:y: fast-forward", "refs/heads/y"),
            ("fetch --refmap=+refs/pull/5/head:refs/remotes/origin/x origin refs/pull/5/head: fast-forward", x),
            ("fetch origin 1683a1b15552b9e10de007ef878fc9f54473ffd0:x: storing ref", "refs/heads/x"),
            ("fetch -q: storing ref", x),
            ("fetch --stdin origin: storing ref", x),
            ("pull origin pull/5/head: Fast-forward", "refs/heads/x"),
            ("pull --rebase origin refs/merge-requests/5/head: Fast-forward", "refs/heads/x"),
        ] {
            assert!(line(how).brings_request(reference), "{how}");
        }
        for (how, reference) in [
            ("fetch: fast-forward", x),
            ("fetch origin main pull/5/head:remotes/origin/x: fast-forward", "refs/remotes/origin/main"),
            ("fetch origin HEAD:x: storing ref", "refs/heads/x"),
            ("fetch git@example.org:pull/5/head x:y: fast-forward", "refs/heads/y"),
            ("pull origin main: Fast-forward", "refs/heads/x"),
            ("commit: fetch origin pull/5/head:x", "refs/heads/x"),
            ("fetched: storing ref", x),
            ("branch: Created from pull/5", "refs/heads/x"),
            ("update by push", x),
        ] {
            assert!(!line(how).brings_request(reference), "{how}");
        }
    }

    #[test]
    fn what_was_made_here_is_told_from_what_came() {
        for how in [
            "commit: x",
            "commit (initial): x",
            "commit (amend): x",
            "commit (merge): x",
            "cherry-pick: x",
            "revert: x",
            "am: x",
            "merge origin/main: Merge made by the 'ort' strategy.",
        ] {
            assert!(line(how).is_made_here(), "{how}");
        }
        for how in [
            "checkout: moving from main to commit: x",
            "cherry-pick: fast-forward",
            "rebase (pick): x",
            "rebase -i (squash): x",
            "pull --rebase (continue): x",
            "rebase: fast-forward",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/x",
            "merge x: Fast-forward",
            "pull origin pull/5/head: Merge made by the 'ort' strategy.",
            "reset: moving to HEAD~1",
            "branch: Created from x",
            "clone: from x",
            "commit",
        ] {
            assert!(!line(how).is_made_here(), "{how}");
        }
        let onto = |how| line(how).rewriting().map(|rewriting| rewriting.onto);
        assert_eq!(onto("commit (amend): x onto y"), Some(None));
        assert_eq!(onto("rebase (finish): refs/heads/x onto 12"), Some(Some("12".to_owned())));
        for how in
            ["pull -q --rebase origin main (finish): refs/heads/x onto 12", "pull -q (finish): refs/heads/x onto 12"]
        {
            assert_eq!(onto(how), Some(Some("12".to_owned())), "{how}");
        }
        for how in ["rebase (finish): refs/heads/x onto b", "rebase (finish): returning to refs/heads/x", "commit: x"] {
            assert_eq!(onto(how), None, "{how}");
        }
    }

    #[test]
    fn fuzz_logs() {
        let log = b"0 1683a u <u@e> 1 +0000\tfetch origin a:b: storing ref\n1 2 u <u@e> 1 +0000\tcommit (amend): x\n";
        calve_testkit::fuzz(&[log], |input| {
            let log = Log { text: String::from_utf8_lossy(input).into_owned() };
            History::default().read(&log);
            assert!(log.lines().all(|line| line.is_fetch() || !line.brings_request("refs/heads/b")));
        });
    }
}
