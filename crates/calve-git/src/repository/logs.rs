//! Reads from git's logs of references (git-reflog(1)) how they got their commits.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use calve_core::internal::joined;
use rustix::fs::{Mode, OFlags};

use crate::repository::operation::RebaseNote;
use crate::repository::references::{Refspec, Source, names_request, source_of_name, takes};
use crate::repository::remotes::Remotes;
use crate::trust::is_object_id;

#[derive(Default)]
pub(crate) struct Log {
    text: String,
}

impl Log {
    /// Reads the log of a reference, with `refs/`, in a directory of git's own. A missing log has no lines.
    pub(crate) fn new(directory: &Path, reference: &str) -> Log {
        Log::of_each(directory, &[reference]).pop().unwrap_or_default()
    }

    /// Reads the logs of references, in their order, on all processors: there may be a thousand branches.
    pub(crate) fn of_each(directory: &Path, references: &[&str]) -> Vec<Log> {
        // Relative to an open directory, a thousand open much faster. It may be a link (git-new-workdir).
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(logs) = rustix::fs::open(directory.join("logs"), flags, Mode::empty()) else {
            return references.iter().map(|_| Log::default()).collect();
        };
        let read_all = |references: &[&str]| -> Vec<Log> {
            let mut buffer = vec![0; 16_384];
            references.iter().map(|name| Log::read(&logs, name, &mut buffer).unwrap_or_default()).collect()
        };
        const LEAST: usize = 64;
        let threads = || std::thread::available_parallelism().map_or(1, usize::from);
        let share = if references.len() > LEAST { references.len().div_ceil(threads()).max(LEAST) } else { LEAST };
        std::thread::scope(|scope| {
            let mut shares = references.chunks(share);
            let here = shares.next().unwrap_or_default();
            let others: Vec<_> = shares.map(|share| scope.spawn(move || read_all(share))).collect();
            let others = others.into_iter().flat_map(joined);
            read_all(here).into_iter().chain(others).collect()
        })
    }

    /// Reads a log into its own memory through `buffer`: most logs have a few lines.
    fn read(logs: &OwnedFd, name: &str, buffer: &mut [u8]) -> rustix::io::Result<Log> {
        let file = rustix::fs::openat(logs, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        loop {
            let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
            if length == 0 {
                break;
            }
            text.extend_from_slice(&buffer[..length]);
        }
        // The lossy conversion takes several times as long, and logs may have thousands of lines.
        let text =
            String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(Log { text })
    }

    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = LogLine<'_>> {
        self.text.lines().filter_map(LogLine::new)
    }

    /// Returns commits that may be foreign: put into `reference` by a fetch, or a command that named a fetched commit.
    pub(crate) fn of_others<'l>(&'l self, reference: &'l str, remotes: &'l Remotes) -> impl Iterator<Item = &'l str> {
        self.lines().filter(|line| line.source(reference, remotes) != Source::Project).map(|line| line.new)
    }

    pub(crate) fn of_project<'l>(&'l self, reference: &'l str, remotes: &'l Remotes) -> impl Iterator<Item = &'l str> {
        let is_project = |line: &LogLine<'_>| line.is_fetch() && line.source(reference, remotes) == Source::Project;
        // A clone writes no log: the first line's old commit is the one that it brought.
        let first = self.lines().next().filter(is_project).map(|line| line.old);
        let first = first.filter(|old| old.bytes().any(|byte| byte != b'0'));
        first.into_iter().chain(self.lines().filter(is_project).map(|line| line.new))
    }

    /// Returns whether the branch was made at a commit that no name led to: a detached HEAD may have had it.
    pub(crate) fn begins_at_commit(&self) -> bool {
        let first = self.lines().next().filter(|line| line.is_of("branch"));
        first.as_ref().and_then(LogLine::revision).is_some_and(|revision| {
            let name = revision.split(['~', '^', '@']).next().unwrap_or_default();
            matches!(name, "" | "HEAD") || name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    /// Returns the source of a branch's tip, by its beginning and its last fetch; `unlogged` if no line tells.
    pub(crate) fn source(&self, reference: &str, oid: &str, unlogged: Source, remotes: &Remotes) -> Source {
        let is_local = reference.starts_with("refs/heads/");
        // Both commands set a branch regardless of its earlier commit.
        let begins_anew = |line: &LogLine<'_>| line.is_of("branch") || line.is_of("reset");
        let begins = self.lines().enumerate().filter(|(at, line)| is_local && (*at == 0 || begins_anew(line)));
        let sources: Vec<Source> = begins.map(|(_, line)| line.source(reference, remotes)).collect();
        if sources.first() == Some(&Source::Request) {
            return Source::Request;
        }
        let last = match self.lines().next_back().filter(|line| line.new == oid && line.is_fetch()) {
            // A pull into a branch merges it.
            Some(line) if is_local && line.is_pull() => Source::Project,
            Some(line) => line.source(reference, remotes),
            None => unlogged,
        };
        let begin = sources.into_iter().find(|source| *source != Source::Project);
        if last == Source::Project { begin.unwrap_or(last) } else { last }
    }

    /// Returns the rebases in the log of a HEAD. Usually the commit checked out before was the rebased one. For an
    /// unfinished rebase, git has noted it (`unfinished`), and no line tells of it while it has kept all commits.
    pub(crate) fn rebases(&self, unfinished: Option<&RebaseNote>) -> Vec<Rewriting> {
        let mut all: Vec<Rewriting> = Vec::new();
        let mut started_unix_s = 0;
        for line in self.lines() {
            match line.rebase_step() {
                Some("(start)") => {
                    started_unix_s = line.unix_s;
                    let (old, new) = (line.old.to_owned(), line.new.to_owned());
                    all.push(Rewriting { old, onto: Some(new.clone()), new, certainty: Certainty::Unknown });
                }
                Some("(finish)") => {
                    all.last_mut().into_iter().for_each(|rebase| rebase.certainty = Certainty::Likely);
                }
                Some("(abort)") | None => {}
                Some(_) => all.last_mut().into_iter().for_each(|rebase| line.new.clone_into(&mut rebase.new)),
            }
        }
        if let (Some(note), Some(last)) = (unfinished, all.last_mut())
            && note.since_unix_s <= started_unix_s
        {
            (last.old, last.certainty) = (note.commit.clone(), Certainty::Reported);
        }
        all.retain(|rebase| rebase.onto.as_ref() != Some(&rebase.new));
        all
    }
}

/// One line of a log: `OLD NEW WHO WHEN\tHOW`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine<'l> {
    pub(crate) old: &'l str,
    pub(crate) new: &'l str,
    unix_s: i64,
    pub(crate) how: &'l str,
}

impl<'l> LogLine<'l> {
    fn new(line: &'l str) -> Option<LogLine<'l>> {
        let (who, how) = line.split_once('\t')?;
        let mut ids = who.split(' ');
        let unix_s = who.rsplit(' ').nth(1).and_then(|time| time.parse().ok()).unwrap_or(0);
        Some(LogLine { old: ids.next()?, new: ids.next()?, unix_s, how })
    }

    fn is_fetch(&self) -> bool {
        self.is_of("fetch") || self.is_pull()
    }

    fn is_pull(&self) -> bool {
        self.is_of("pull")
    }

    fn is_of(&self, command: &str) -> bool {
        self.how.strip_prefix(command).is_some_and(|rest| rest.starts_with([' ', ':']))
    }

    /// Returns the step of a rebase that wrote the line, such as `(start)` or `(pick)`.
    fn rebase_step(&self) -> Option<&str> {
        let (action, _) = self.how.split_once(": ")?;
        let is_rebase = action.starts_with("rebase ") || self.is_pull();
        action.rsplit(' ').next().filter(|step| is_rebase && step.starts_with('('))
    }

    fn revision(&self) -> Option<&str> {
        let (action, what) = self.how.split_once(": ")?;
        match action {
            "checkout" => Some(what.rsplit_once(" to ")?.1),
            "reset" => what.strip_prefix("moving to "),
            "branch" => what.strip_prefix("Created from ").or_else(|| what.strip_prefix("Reset to ")),
            _ if self.rebase_step() == Some("(start)") => what.strip_prefix("checkout "),
            _ => action.strip_prefix("merge "),
        }
    }

    /// Returns the source by the command, as typed: `fetch origin pull/5/head:refs/remotes/origin/x: storing ref`.
    fn source(&self, reference: &str, remotes: &Remotes) -> Source {
        if !self.is_fetch() {
            // git logs `git merge FETCH_HEAD` with the id.
            let is_merged = |revision| self.is_of("merge") && is_object_id(revision);
            let is_others = self.revision().is_some_and(|revision| names_request(revision) || is_merged(revision));
            return if is_others { Source::Anybody } else { Source::Project };
        }
        let (command, what) = self.how.split_once(": ").unwrap_or((self.how, ""));
        if !command.contains(':') && !self.is_pull() {
            // The usual line, of which there may be thousands, without a refspec.
            return if what == "storing ref" { Source::Request } else { Source::Project };
        }
        // The last word may be a rebase's step: `pull --rebase origin main (pick): …`.
        let words = || command.split_ascii_whitespace().skip(1).filter(|word| !word.starts_with('('));
        // Also in `--refmap=REFSPEC`.
        let refspecs: Vec<_> = words().filter_map(|word| Refspec::new(word.rsplit('=').next()?)).collect();
        let named = match takes(&refspecs, reference) {
            Some(source) => source,
            // git says `ref` for a reference of the server that is neither a branch nor a tag.
            None if what == "storing ref" => Source::Request,
            None if !self.is_pull() => return Source::Project,
            None => words().map(source_of_name).find(|source| *source != Source::Project).unwrap_or(Source::Project),
        };
        if named == Source::Project && !remotes.are_asked_by(words()) { Source::Anybody } else { named }
    }

    /// Returns whether git made the new commit here, from this repository's objects. One from a fetch, a fast-forward
    /// or a checkout may be foreign, and so may a rebased one, whose original [`Self::rewriting`] names.
    fn is_made_here(&self, remotes: &Remotes) -> bool {
        const MAKING: [&str; 3] = ["cherry-pick", "revert", "am"];
        let Some((action, what)) = self.how.split_once(": ") else { return false };
        what != "fast-forward"
            && (action.starts_with("commit")
                || MAKING.contains(&action)
                || what.starts_with("Merge made by ")
                    && !(self.is_pull() && self.source("", remotes) != Source::Project))
    }

    fn rewriting(&self) -> Option<Rewriting> {
        let (action, what) = self.how.split_once(": ")?;
        let onto = match action {
            "commit (amend)" => None,
            // In a branch's log: `rebase (finish): refs/heads/x onto OID`, `pull --rebase … (finish): …`.
            // It may have nothing that OID lacks.
            _ if action.ends_with("(finish)") => {
                let (_, onto) = what.rsplit_once(" onto ").filter(|(_, onto)| *onto != self.new)?;
                Some(onto.to_owned())
            }
            _ => return None,
        };
        Some(Rewriting { old: self.old.to_owned(), new: self.new.to_owned(), onto, certainty: Certainty::Reported })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The log of a branch or git's notes say so, or it was an amendment.
    Reported,
    /// It was checked out when the rebase began. The rebase ended on a branch, whose log may be gone.
    Likely,
    /// Checked out when the rebase began. No branch was rebased, so it may be another: `git rebase main FETCH_HEAD`.
    Unknown,
}

pub(crate) struct Rewriting {
    pub(crate) old: String,
    pub(crate) new: String,
    /// The commit on which a rebase remade it, with all commits in between. `None` if only the last one was remade.
    pub(crate) onto: Option<String>,
    pub(crate) certainty: Certainty,
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) made: HashSet<String>,
    pub(crate) rewritten: Vec<Rewriting>,
}

impl History {
    pub(crate) fn read(&mut self, log: &Log, remotes: &Remotes) {
        for line in log.lines() {
            if line.is_made_here(remotes) {
                self.made.insert(line.new.to_owned());
            }
            self.rewritten.extend(line.rewriting());
        }
    }

    pub(crate) fn rebased(&self) -> impl Iterator<Item = &str> {
        self.rewritten.iter().filter(|one| one.onto.is_some()).map(|one| one.new.as_str())
    }

    /// Drops less certain records of a rebased commit if a certain one exists.
    pub(crate) fn prefer_certain(&mut self) {
        let certain = self.rewritten.iter().filter(|one| one.onto.is_some() && one.certainty == Certainty::Reported);
        let certain: HashSet<String> = certain.map(|one| one.new.clone()).collect();
        self.rewritten.retain(|one| one.certainty == Certainty::Reported || !certain.contains(&one.new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(how: &str) -> LogLine<'_> {
        LogLine { old: "a", new: "b", unix_s: 0, how }
    }

    fn remotes() -> Remotes {
        Remotes::new(&[("remote.origin.url".to_owned(), "https://example.org/we/project".to_owned())])
    }

    const ID: &str = "1683a1b15552b9e10de007ef878fc9f54473ffd0";

    #[test]
    fn a_fetch_tells_what_it_put_where() {
        let x = "refs/remotes/origin/x";
        for (how, reference) in [
            ("fetch -q origin pull/5/head:refs/remotes/origin/x: storing ref", x),
            ("fetch origin main pull/5/head:remotes/origin/x: forced-update", x),
            ("fetch origin +refs/pull/*/head:refs/remotes/origin/q*: fast-forward", "refs/remotes/origin/q5"),
            ("fetch origin pull/5/head:x pull/6/head:y: fast-forward", "refs/heads/y"),
            ("fetch --refmap=+refs/pull/5/head:refs/remotes/origin/x origin refs/pull/5/head: fast-forward", x),
            ("fetch -q: storing ref", x),
            ("fetch --stdin origin: storing ref", x),
            ("pull origin pull/5/head: Fast-forward", "refs/heads/x"),
            ("pull --rebase origin refs/merge-requests/5/head: Fast-forward", "refs/heads/x"),
        ] {
            assert_eq!(line(how).source(reference, &remotes()), Source::Request, "{how}");
        }
        for (how, reference) in [
            (format!("fetch origin {ID}:x: storing ref"), "refs/heads/x"),
            (format!("pull origin {ID}: Fast-forward"), "refs/heads/x"),
            (format!("merge {ID}: Fast-forward"), "HEAD"),
            ("fetch ../fork main:x: storing head".to_owned(), "refs/heads/x"),
            ("fetch git@example.org:them/project main:y: fast-forward".to_owned(), "refs/heads/y"),
            ("pull https://example.org/them/project main: Fast-forward".to_owned(), "refs/heads/x"),
            ("pull --no-rebase ../fork main: Merge made by the 'ort' strategy.".to_owned(), "refs/heads/x"),
            ("checkout: moving from main to FETCH_HEAD".to_owned(), "HEAD"),
            ("checkout: moving from a to b to refs/pull/5/head".to_owned(), "HEAD"),
            ("reset: moving to FETCH_HEAD~2".to_owned(), "refs/heads/x"),
            ("branch: Created from FETCH_HEAD".to_owned(), "refs/heads/x"),
            ("branch: Reset to origin/pull/5/head".to_owned(), "refs/heads/x"),
            ("branch: Created from pull/5/head".to_owned(), "refs/heads/x"),
            ("rebase (start): checkout FETCH_HEAD".to_owned(), "HEAD"),
            ("pull --rebase ../fork main (start): checkout 1683a1b".to_owned(), "HEAD"),
        ] {
            assert_eq!(line(&how).source(reference, &remotes()), Source::Anybody, "{how}");
        }
        for (how, reference) in [
            ("fetch: fast-forward", x),
            ("fetch origin main pull/5/head:remotes/origin/x: fast-forward", "refs/remotes/origin/main"),
            ("fetch origin HEAD:x: storing ref", "refs/heads/x"),
            ("fetch git@example.org:we/project x:y: fast-forward", "refs/heads/y"),
            ("pull origin main: Fast-forward", "refs/heads/x"),
            ("pull: Fast-forward", "refs/heads/x"),
            ("pull https://example.org/we/project.git main: Fast-forward", "refs/heads/x"),
            ("pull --rebase (start): checkout 1683a1b", "HEAD"),
            ("pull --rebase origin main (pick): fix: see pull/5/head: it", "HEAD"),
            ("commit: fetch origin pull/5/head:x", "refs/heads/x"),
            ("fetched: storing ref", x),
            ("checkout: moving from FETCH_HEAD to main", "HEAD"),
            ("checkout: moving from pr/5 to main", "HEAD"),
            ("branch: Created from pull/x", "refs/heads/x"),
            ("merge origin/main: Fast-forward", "HEAD"),
            ("update by push", x),
        ] {
            assert_eq!(line(how).source(reference, &remotes()), Source::Project, "{how}");
        }
    }

    #[test]
    fn a_heads_log_tells_what_was_rebased() {
        let lines = [
            "a b checkout: moving from main to FETCH_HEAD",
            "b c rebase (start): checkout main",
            "c d rebase (pick): one",
            "d e rebase (pick): two",
            "e f checkout: moving from e to x",
            "f g pull -q --rebase origin main (start): checkout g",
            "g h pull -q --rebase origin main (pick): one",
            "h h pull -q --rebase origin main (finish): returning to refs/heads/x",
            "h g rebase (start): checkout g",
            "g g rebase (finish): returning to refs/heads/x",
        ];
        let text: String = lines
            .iter()
            .map(|line| {
                let mut words = line.splitn(3, ' ');
                let mut next = || words.next().unwrap();
                format!("{} {} u <u@e> 1 +0000\t{}\n", next(), next(), next())
            })
            .collect();
        let log = Log { text };
        let told = |unfinished: Option<&RebaseNote>| -> Vec<_> {
            let rebases = log.rebases(unfinished).into_iter();
            rebases.map(|one| [one.old, one.onto.unwrap(), one.new, format!("{:?}", one.certainty)]).collect()
        };
        assert_eq!(told(None), [["b", "c", "e", "Unknown"], ["f", "g", "h", "Likely"]]);
        // The last one has made nothing yet.
        assert_eq!(told(Some(&RebaseNote { commit: "x".into(), since_unix_s: 0 })), told(None));
        // An unfinished one changes the last record only if that is about it: one that has kept all commits so far has no lines.
        let detached: String =
            ["a b w 100 +0000\trebase (start): checkout x", "b c w 101 +0000\trebase (pick): one"].join("\n");
        let detached = Log { text: detached };
        for (since_unix_s, old, certainty) in [(100, "x", Certainty::Reported), (101, "a", Certainty::Unknown)] {
            let note = RebaseNote { commit: "x".into(), since_unix_s };
            let rebases = detached.rebases(Some(&note));
            assert_eq!((&*rebases[0].old, &*rebases[0].new, rebases[0].certainty), (old, "c", certainty));
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
            assert!(line(how).is_made_here(&remotes()), "{how}");
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
            assert!(!line(how).is_made_here(&remotes()), "{how}");
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
            let mut history = History::default();
            history.read(&log, &remotes());
            history.rewritten.extend(log.rebases(Some(&RebaseNote { commit: "1".into(), since_unix_s: 0 })));
            history.prefer_certain();
            let request = |line: &LogLine<'_>| line.source("refs/heads/b", &remotes()) == Source::Request;
            assert!(log.lines().all(|line| line.is_fetch() || !request(&line)));
        });
    }
}
