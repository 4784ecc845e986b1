//! Decides who owns rebased or amended commits: the owner of the commits that they were made from.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::git::Git;
use crate::repository::logs::{Certainty, History, Rewriting};

type Parents<'p> = HashMap<&'p str, Vec<&'p str>>;

/// Returns whether the logs explain each commit: it was made here, or by a rebase whose last commit is among them.
pub(crate) fn is_explained<'p>(history: &'p History, parents: &Parents<'p>) -> bool {
    let ranges: Vec<Range<'p>> = history.rewritten.iter().filter_map(|one| Range::new(one, parents)).collect();
    let is_made =
        |commit: &&str| history.made.contains(*commit) || ranges.iter().any(|range| range.made.contains(commit));
    parents.keys().all(is_made)
}

/// Returns the earlier forms of these commits, all the way back.
pub(crate) fn earlier_forms<'h>(history: &'h History, commits: &Parents<'_>) -> Vec<&'h str> {
    let mut earlier: HashSet<&str> = HashSet::new();
    // Lines from several logs are in no order, so this repeats until nothing is added.
    let mut before = usize::MAX;
    while before != earlier.len() {
        before = earlier.len();
        for Rewriting { old, new, .. } in history.rewritten.iter().rev() {
            if commits.contains_key(new.as_str()) || earlier.contains(new.as_str()) {
                earlier.insert(old);
            }
        }
    }
    earlier.into_iter().collect()
}

/// Corrects `of_others`, found regardless of rewriting: a rewritten commit belongs to the owner of its original.
pub(crate) fn rewritten<'p>(
    git: &Git,
    history: &'p History,
    parents: &Parents<'p>,
    mut of_others: HashSet<&'p str>,
) -> Result<HashSet<&'p str>> {
    let ranges: Vec<Range<'p>> =
        history.rewritten.iter().filter_map(|rewriting| Range::new(rewriting, parents)).collect();
    let mut kept: Option<HashMap<String, Vec<u8>>> = None;
    // Each pass settles the commits that were rewritten from commits settled by the pass before.
    for _ in 0..=ranges.len() {
        let (mut own, mut foreign): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
        for range in &ranges {
            let count = range.earlier.iter().filter(|commit| of_others.contains(*commit)).count();
            if count == 0 && range.certainty != Certainty::Unknown {
                own.extend(&range.made);
            } else if count == range.earlier.len() && count > 0 && range.certainty == Certainty::Reported {
                foreign.extend(&range.made);
            } else {
                let kept = match &mut kept {
                    Some(kept) => kept,
                    none => none.insert(kept_by_rebases(git, &ranges)?),
                };
                for commit in &range.made {
                    let is_same = |one: &&&str| kept.contains_key(*commit) && kept.get(**one) == kept.get(*commit);
                    let mut same = range.earlier.iter().filter(is_same).peekable();
                    // A commit forged to match the user's also matches the foreign one that it was made from.
                    let is_own = same.peek().is_some() && same.all(|one| !of_others.contains(one));
                    if is_own {
                        own.insert(commit)
                    } else {
                        foreign.insert(commit)
                    };
                }
            }
        }
        let before = of_others.clone();
        of_others.retain(|commit| !own.contains(commit));
        of_others.extend(foreign);
        if before == of_others {
            break;
        }
    }
    Ok(of_others)
}

/// The commits that a rebase or an amendment made, and those that it may have made them from.
struct Range<'p> {
    earlier: HashSet<&'p str>,
    made: HashSet<&'p str>,
    certainty: Certainty,
}

impl<'p> Range<'p> {
    fn new(rewriting: &'p Rewriting, parents: &Parents<'p>) -> Option<Range<'p>> {
        let Rewriting { old, new, onto, certainty } = rewriting;
        if !parents.contains_key(new.as_str()) {
            return None;
        }
        let (earlier, made) = match onto {
            None => (HashSet::from([old.as_str()]), HashSet::from([new.as_str()])),
            Some(onto) => {
                let mut earlier = history_of(old, parents, None);
                let made = history_of(new, parents, Some(onto));
                let made = made.difference(&earlier).copied().collect();
                // The project's commits are not rewritten.
                earlier.retain(|commit| parents.contains_key(commit));
                (earlier, made)
            }
        };
        Some(Range { earlier, made, certainty: *certainty })
    }
}

/// Returns, for each commit id, the properties that a rebase keeps by default: author, author date and subject.
fn kept_by_rebases(git: &Git, ranges: &[Range<'_>]) -> Result<HashMap<String, Vec<u8>>> {
    let ids: HashSet<&str> = ranges.iter().flat_map(|range| range.earlier.iter().chain(&range.made)).copied().collect();
    let input: String = ids.into_iter().map(|id| format!("{id}\n")).collect();
    let asked = ["rev-list", "--no-walk", "--ignore-missing", "--missing=allow-any", "--stdin"];
    let printed = git.fed(&[&asked[..], &["--format=%at %ae%x00%an%x00%s"]].concat(), input.as_bytes())?;
    let mut lines = printed.split(|&byte| byte == b'\n');
    let mut kept = HashMap::new();
    while let (Some(id), Some(text)) = (lines.next(), lines.next()) {
        let id = String::from_utf8_lossy(id.strip_prefix(b"commit ").unwrap_or(id)).into_owned();
        kept.insert(id, text.to_owned());
    }
    Ok(kept)
}

pub(crate) fn parents_of(printed: &[u8]) -> Parents<'_> {
    let lines = std::str::from_utf8(printed).unwrap_or_default().lines().map(str::split_ascii_whitespace);
    lines.map(|mut words| (words.next().unwrap_or_default(), words.collect())).collect()
}

/// Returns a commit and its ancestors that `parents` knows, without those only below `until`.
pub(crate) fn history_of<'p>(commit: &'p str, parents: &Parents<'p>, until: Option<&str>) -> HashSet<&'p str> {
    let (mut seen, mut waiting) = (HashSet::new(), vec![commit]);
    while let Some(commit) = waiting.pop() {
        if until != Some(commit) && seen.insert(commit) {
            waiting.extend(parents.get(commit).into_iter().flatten());
        }
    }
    seen
}
