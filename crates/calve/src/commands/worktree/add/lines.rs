use std::collections::BTreeMap;
use std::path::Path;

use calve_core::Strategy;
use calve_core::internal::ShownPath;
use calve_core::report::{SkipReason, SkippedEntry};
use calve_env::AddedEnvironment;
use calve_git::escape::{Action, AuditReport};
use calve_git::worktree::{AddReport, AddTarget, NotClonedReason, PlanDetails, left_behind};
use calve_receipt::FactSubject;
use calve_receipt::human::{self, count, duration};

use crate::commands::worktree::facts::{Facts, UNTRUSTED, dependency_lines};
use crate::commands::worktree::services;
use crate::output;
use crate::wording::{self, word};

pub(super) fn describe(report: &AddReport, is_detached: bool, facts: &mut Facts) {
    describe_files(report, is_detached, facts);
    let AddReport { worktree: added, untracked, details, .. } = report;
    if added.provenance.is_untrusted() {
        facts.add(FactSubject::Trust, UNTRUSTED);
    }
    facts.add_all(FactSubject::Dependencies, dependency_lines(&untracked.dependencies, &added.donor));
    if details.uncommitted > 0 {
        let stay = if details.uncommitted == 1 { "stays" } else { "stay" };
        let text = format!(
            "{} {stay} in `{}`; `calve worktree add --dirty` takes them along",
            human::counted(details.uncommitted, "uncommitted change"),
            ShownPath(&added.donor)
        );
        facts.add(FactSubject::Uncommitted, text);
    }
    facts.add_all(FactSubject::Left, left_lines(&untracked.left));
    describe_audit(&details.audit, facts);
    let warnings = details.warnings.iter().map(|warning| format!("warning: {}", wording::git::warning(warning)));
    facts.add_all(FactSubject::Warning, warnings);
    if details.post_checkout.as_ref().is_some_and(|hook| hook.code != Some(0)) {
        let text = "warning: git's hook post-checkout failed; the worktree is complete all the same";
        facts.add(FactSubject::Warning, text);
    }
    let changed = wording::clone::changed(&details.clone.changed).map(|line| format!("warning: {line}"));
    facts.add_all(FactSubject::Warning, changed);
}

fn describe_files(report: &AddReport, is_detached: bool, facts: &mut Facts) {
    let AddReport { worktree: added, tracked, details, .. } = report;
    let entries = details.clone.entries.map(|entries| format!(", {}", human::entries(entries.total())));
    let text = format!(
        "added `{}` {} by {}{}: {} cloned, {} written by git, in {}",
        ShownPath(&added.path),
        on(&added.target),
        details.clone.strategy,
        entries.unwrap_or_default(),
        human::counted(tracked.cloned, "tracked file"),
        count(tracked.written_by_git),
        duration(details.elapsed),
    );
    facts.add(FactSubject::Files, text);
    facts.add_all(FactSubject::Branch, unasked_line(&added.target));
    if added.target.branch.is_none() && !is_detached {
        let text = "the name is a tag or a commit, so no branch is checked out; `git switch -c NAME` makes one there";
        facts.add(FactSubject::Branch, text);
    }
    let spares: Vec<String> = details
        .spares
        .iter()
        .filter_map(|clone| Some((clone, clone.spare.as_ref()?)))
        .map(|(clone, spare)| format!("`{}` ({})", ShownPath(&clone.dst), human::entries(spare.entries_updated)))
        .collect();
    if !spares.is_empty() {
        let text = format!("taken from spares, and brought up to date: {}", spares.join(", "));
        facts.add(FactSubject::Cloning, text);
    }
    if tracked.cloned == 0
        && let Some(most) = tracked.not_cloned.iter().max_by_key(|other| other.files)
    {
        facts.add(FactSubject::Cloning, format!("no tracked file was cloned: {}", none_cloned(most.reason)));
    }
    if could_be_a_snapshot(report) {
        let donor = word(&added.donor);
        let text =
            format!("`calve worktree convert {donor}`, once and from outside of it, makes the next one a snapshot");
        facts.add(FactSubject::Cloning, text);
    }
}

fn none_cloned(why: NotClonedReason) -> &'static str {
    match why {
        NotClonedReason::OtherVersion => "the commit has other versions of them",
        NotClonedReason::Uncommitted => "they have uncommitted changes there",
        NotClonedReason::Converted => {
            "git converts them on checkout (`core.autocrlf`, or `eol`, `filter` or `ident` in .gitattributes)"
        }
        NotClonedReason::SplitIndex => {
            "git's index is split there; `git config core.splitIndex false && git update-index --no-split-index` makes it whole"
        }
        NotClonedReason::StaleIndex => "git's index is not up to date there; `git status` refreshes it",
        _ => "git is configured to ignore changes to them, or they are submodules",
    }
}

/// Describes the checkout, and the start of a new branch.
fn on(target: &AddTarget) -> String {
    match (target.branch.as_deref(), &target.start) {
        (Some(branch), Some(start)) => {
            format!("on the new branch `{}` (from `{}`)", ShownPath(branch), ShownPath(&start.name))
        }
        (Some(branch), None) => {
            format!("on {}`{}`", if target.is_new { "the new branch " } else { "" }, ShownPath(branch))
        }
        (None, _) => format!("detached at {}", &target.oid[..target.oid.len().min(12)]),
    }
}

/// Warns of a new branch whose name a server may already have.
fn unasked_line(target: &AddTarget) -> Option<String> {
    let (branch, remote) = (target.branch.as_ref()?, target.start.as_ref()?.unasked.as_ref()?);
    let (branch, remote) = (ShownPath(branch), ShownPath(remote));
    Some(format!("warning: the server of `{remote}` could not be asked whether it has a branch `{branch}`"))
}

/// Returns true if the worktree is a subvolume but its source is not.
fn could_be_a_snapshot(added: &AddReport) -> bool {
    let is_subvolume = |path: &Path| calve_core::internal::is_subvolume(path).ok();
    // Shared extents prove that the donor is on the same btrfs.
    added.details.clone.strategy == Strategy::Reflink
        && is_subvolume(&added.worktree.path) == Some(true)
        && is_subvolume(&added.worktree.donor) == Some(false)
}

/// Counts the references out of the worktree, and names the first remaining one.
fn describe_audit(audit: &AuditReport, facts: &mut Facts) {
    let count = |action| audit.findings.iter().filter(|found| found.action == action).count();
    let (repaired, dropped) = (count(Action::Repaired), count(Action::Dropped));
    if repaired + dropped > 0 {
        let text = format!("references to other worktrees: {repaired} repaired, {dropped} dropped");
        facts.add(FactSubject::References, text);
    }
    let mut reported = audit.findings.iter().filter(|found| found.action == Action::Reported);
    if let Some(found) = reported.next() {
        let (path, names) = (ShownPath(&found.path), ShownPath(&found.names));
        let more = match reported.count() as u64 {
            0 => String::new(),
            more => format!("; {} more remain: `calve worktree check` lists them", human::count(more)),
        };
        let text = format!("warning: `{path}` still names `{names}`: {}{more}", found.explanation);
        facts.add(FactSubject::References, text);
    }
}

/// Returns true for entries that no user misses; only `--json` lists them.
fn is_expected(reason: SkipReason) -> bool {
    use left_behind::{NESTED_WORKTREE, RUNTIME};
    matches!(reason, SkipReason::Socket | SkipReason::CalvesOwn | NESTED_WORKTREE | RUNTIME)
}

/// Describes the other entries left out: the first for each reason, and the number of the rest.
fn left_lines(left: &[SkippedEntry]) -> Vec<String> {
    let mut reasons: BTreeMap<(bool, SkipReason), Vec<&SkippedEntry>> = BTreeMap::new();
    for entry in left.iter().filter(|left| !is_expected(left.reason)) {
        let is_engines = !matches!(entry.reason, SkipReason::Selection { .. });
        reasons.entry((is_engines, entry.reason)).or_default().push(entry);
    }
    let line = |((_, reason), entries): ((bool, SkipReason), Vec<&SkippedEntry>)| {
        let more = entries.len() as u64 - 1;
        let more = if more == 0 { String::new() } else { format!(" and {} more", count(more)) };
        format!("left out `{}`{more}: {}", ShownPath(&entries[0].path), reason.text())
    };
    reasons.into_iter().map(line).collect()
}

pub(super) fn say_plan(AddedEnvironment { report, own }: &AddedEnvironment<'_, PlanDetails>) {
    let AddReport { worktree, tracked, untracked, details } = report;
    output::note(&format!(
        "would add `{}` {}, with files from `{}`: {} cloned, {} written by git",
        ShownPath(&worktree.path),
        on(&worktree.target),
        ShownPath(&worktree.donor),
        human::counted(tracked.cloned, "tracked file"),
        count(tracked.written_by_git),
    ));
    unasked_line(&worktree.target).iter().for_each(|line| output::note(line));
    if worktree.provenance.is_untrusted() {
        output::note("the worktree would not be trusted: it would get no secrets and run no hooks");
    }
    for path in &untracked.carried {
        let secret = if details.secrets.contains(path) { " (looks like a secret)" } else { "" };
        output::note(&format!("would carry `{}`{secret}", ShownPath(path)));
    }
    for left in &untracked.left {
        output::note(&format!("would leave `{}`: {}", ShownPath(&left.path), left.reason.text()));
    }
    let dependencies = dependency_lines(&untracked.dependencies, &worktree.donor);
    let data = |services| services::origins_line(services).into_iter().chain(services::lacking_lines(services));
    let data = own.services.iter().flat_map(data);
    let hook = own.errors.first();
    let hook = hook.map(|_| "the post-add hook is not approved; `calve hook approve` shows it".to_owned());
    let wrong = details.services.as_ref().err();
    let wrong = wrong.map(|error| format!("warning: no ports would be leased and no data cloned: {error}"));
    dependencies.into_iter().chain(data).chain(hook).chain(wrong).for_each(|line| output::note(&line));
}
