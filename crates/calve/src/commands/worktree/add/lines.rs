//! The lines that `calve worktree add` ends with: one for each thing that matters, and what has to be done about it.

use std::collections::BTreeMap;
use std::path::Path;

use calve_core::{ShownPath, SkipReason, Strategy};
use calve_git::escape::{Action, AuditReport};
use calve_git::worktree::{AddPlan, AddReport, BranchStart, LeftBehindReason, LeftEntry, NotClonedReason};
use calve_receipt::human::{self, count, duration};

use super::{Environment, written};
use crate::clone_receipt;
use crate::commands::env;
use crate::commands::services::{DataOrigin, Services};
use crate::commands::worktree::dependencies;
use crate::failure::Failure;
use crate::output;
use crate::wording;

pub(crate) const UNTRUSTED: &str = "this worktree is from a pull request and not trusted: it gets no secrets, and its hooks do not run; \
    `calve hook approve --trust PATH` trusts it later";

/// Says what the worktree has.
pub(super) fn say(added: &AddReport, is_detached: bool) {
    say_files(added, is_detached);
    if added.provenance.is_untrusted() {
        output::say(UNTRUSTED);
    }
    dependencies::say(&added.dependencies, &added.donor);
    if added.uncommitted > 0 {
        let stay = if added.uncommitted == 1 { "stays" } else { "stay" };
        output::say(&format!(
            "{} {stay} in `{}`; `calve worktree add --dirty` takes them along",
            human::counted(added.uncommitted, "uncommitted change"),
            ShownPath(&added.donor)
        ));
    }
    say_left(&added.left);
    say_audit(&added.audit);
    for warning in &added.warnings {
        output::say(&format!("warning: {}", wording::git::warning(warning)));
    }
    let clones = std::iter::once(&added.clone).chain(&added.spares);
    clones.filter_map(|clone| clone_receipt::changed(&clone.changed)).for_each(|line| output::say(&line));
}

/// Says where the files come from, and how.
fn say_files(added: &AddReport, is_detached: bool) {
    let branch = on(added.branch.as_deref(), added.is_new_branch, added.start.as_ref(), &added.head);
    let entries = added.clone.entries.map(|entries| format!(", {}", human::entries(entries.total())));
    output::say(&format!(
        "added `{}` {branch} by {}{}: {} cloned, {} written by git, in {}",
        ShownPath(&added.path),
        added.clone.strategy,
        entries.unwrap_or_default(),
        human::counted(added.tracked_cloned, "tracked file"),
        count(written(added)),
        duration(added.elapsed),
    ));
    say_unasked(added.branch.as_deref(), added.start.as_ref());
    let spares: Vec<String> = added
        .spares
        .iter()
        .filter_map(|clone| Some((clone, clone.spare.as_ref()?)))
        .map(|(clone, spare)| format!("`{}` ({})", ShownPath(&clone.dst), human::entries(spare.entries_updated)))
        .collect();
    if !spares.is_empty() {
        output::say(&format!("taken from spares, and brought up to date: {}", spares.join(", ")));
    }
    if added.tracked_cloned == 0
        && let Some((why, _)) = added.tracked_written.iter().max_by_key(|(_, files)| **files)
    {
        output::say(&format!("no tracked file was cloned: {}", none_cloned(*why)));
    }
    if added.branch.is_none() && !is_detached {
        output::say("the name is a tag or a commit, so no branch is checked out; `git switch -c NAME` makes one there");
    }
    if could_be_a_snapshot(added) {
        let donor = ShownPath(&added.donor);
        output::say(&format!(
            "`calve worktree convert {donor}`, once and from outside of it, makes the next one a snapshot"
        ));
    }
}

/// Says which ports and which data the worktree has, and what it lacks.
pub(super) fn say_environment(environment: &Environment, added: &AddReport) -> Result<(), Failure> {
    env::say_ports(&environment.ports);
    for service in environment.services.receipts()? {
        if let (Some(variable), Some(url)) = (service.variable, service.url) {
            output::say(&format!("service: {variable}={url} (`calve up` starts it)"));
        }
    }
    say_origins(&environment.services);
    say_configuration(&added.path, &added.donor);
    environment.files.iter().for_each(|(file, outcome)| env::say_file(file, *outcome));
    env::say_other_values(&environment.other_values, &environment.files);
    Ok(())
}

/// Says where the data of services comes from, and which have none.
pub(crate) fn say_origins(services: &Services) {
    let origins: Vec<String> =
        services.origins().map(|(name, origin)| format!("`{name}` from {}", from(origin))).collect();
    if !origins.is_empty() {
        output::say(&format!("data: {}", origins.join(", ")));
    }
    services.say_lacking();
}

/// Says that a worktree has no configuration, if the one that its files come from has.
pub(crate) fn say_configuration(root: &Path, donor: &Path) {
    let is_there = |root: &Path| root.join(calve_git::SHARED_CONFIG).symlink_metadata().is_ok();
    if !is_there(root) && is_there(donor) {
        output::say(
            "this commit has no `.calve.toml`, so there are no ports and no services here; commit the file, or copy it",
        );
    }
}

/// Describes where data comes from.
fn from(origin: &DataOrigin) -> String {
    match origin {
        DataOrigin::Template(name) => format!("the template `{name}`"),
        DataOrigin::Worktree { path, server, runs, is_older } => {
            let kept = || format!("the kept data `{server}`");
            let path = path.as_deref().map_or_else(kept, |path| format!("`{}`", ShownPath(path)));
            let runs = if *runs { ", whose server runs" } else { "" };
            let is_older = if *is_older { "; the template is newer" } else { "" };
            format!("{path}{runs}{is_older}")
        }
    }
}

/// Says why git wrote all tracked files.
fn none_cloned(why: NotClonedReason) -> &'static str {
    match why {
        NotClonedReason::OtherVersion => "the commit has other versions of them",
        NotClonedReason::Uncommitted => "they are changed there and not committed",
        NotClonedReason::Converted => {
            "git converts them on checkout (`core.autocrlf`, or `eol`, `filter` or `ident` in .gitattributes)"
        }
        NotClonedReason::SplitIndex => {
            "git's index is split there; `git config core.splitIndex false && git update-index --no-split-index` makes it whole"
        }
        NotClonedReason::StaleIndex => "git's index is not up to date there; `git status` refreshes it",
        _ => "git is told not to look at them there, or they are submodules",
    }
}

/// Says what is checked out, and what a new branch begins at.
fn on(branch: Option<&str>, is_new: bool, start: Option<&BranchStart>, head: &str) -> String {
    match (branch, start) {
        (Some(branch), Some(start)) => {
            format!("on the new branch `{}` (from `{}`)", ShownPath(branch), ShownPath(&start.name))
        }
        (Some(branch), None) => format!("on {}`{}`", if is_new { "the new branch " } else { "" }, ShownPath(branch)),
        (None, _) => format!("detached at {}", &head[..head.len().min(12)]),
    }
}

/// Warns of a new branch that a server may have too.
fn say_unasked(branch: Option<&str>, start: Option<&BranchStart>) {
    if let Some(branch) = branch
        && let Some(remote) = start.and_then(|start| start.unasked.as_ref())
    {
        let (remote, branch) = (ShownPath(remote), ShownPath(branch));
        output::say(&format!(
            "warning: the server of `{remote}` could not be asked whether it has a branch `{branch}`"
        ));
    }
}

/// Returns where worktrees are subvolumes, but that which was cloned is not one.
fn could_be_a_snapshot(added: &AddReport) -> bool {
    let is_subvolume = |path: &Path| calve_core::is_subvolume(path).ok();
    ![Strategy::Snapshot, Strategy::Spare].contains(&added.clone.strategy)
        && is_subvolume(&added.path) == Some(true)
        && is_subvolume(&added.donor) == Some(false)
}

/// Says which references pointed back: the numbers, and each that is still there.
fn say_audit(audit: &AuditReport) {
    let count = |action| audit.findings.iter().filter(|found| found.action == action).count();
    let (repaired, dropped) = (count(Action::Repaired), count(Action::Dropped));
    if repaired + dropped > 0 {
        output::say(&format!("of what pointed out of the new worktree, {repaired} repaired and {dropped} dropped"));
    }
    for found in audit.findings.iter().filter(|found| found.action == Action::Reported) {
        let (path, names) = (ShownPath(&found.path), ShownPath(&found.names));
        output::say(&format!("warning: `{path}` still names `{names}`: {}", wording::git::explanation(found)));
    }
}

/// Returns whether nobody misses such an entry, so that only `--json` has it.
fn is_expected(reason: LeftBehindReason) -> bool {
    matches!(
        reason,
        LeftBehindReason::Engine(SkipReason::Socket | SkipReason::CalvesOwn)
            | LeftBehindReason::NestedWorktree
            | LeftBehindReason::Runtime
    )
}

/// Says what was left out that somebody could miss, and why: the first of each reason, and the number of the others.
fn say_left(left: &[LeftEntry]) {
    let mut reasons: BTreeMap<LeftBehindReason, Vec<&LeftEntry>> = BTreeMap::new();
    for entry in left.iter().filter(|left| !is_expected(left.reason)) {
        reasons.entry(entry.reason).or_default().push(entry);
    }
    for (reason, entries) in reasons {
        let more = entries.len() as u64 - 1;
        let more = if more == 0 { String::new() } else { format!(" and {} more", count(more)) };
        output::say(&format!("left out `{}`{more}: {}", ShownPath(&entries[0].path), reason.text()));
    }
}

pub(super) fn say_plan(planned: &AddPlan) {
    let branch = on(planned.branch.as_deref(), planned.is_new_branch, planned.start.as_ref(), &planned.head);
    output::say(&format!(
        "would add `{}` {branch}, with files from `{}`: {} the same, {} not",
        ShownPath(&planned.path),
        ShownPath(&planned.donor),
        human::counted(planned.tracked_same, "tracked file"),
        count(planned.tracked_other),
    ));
    say_unasked(planned.branch.as_deref(), planned.start.as_ref());
    if planned.provenance.is_untrusted() {
        output::say("the worktree would not be trusted: it would get no secrets and run no hooks");
    }
    for path in &planned.carried {
        let secret = if planned.secrets.contains(path) { " (looks like a secret)" } else { "" };
        output::say(&format!("would carry `{}`{secret}", ShownPath(path)));
    }
    for left in &planned.left {
        output::say(&format!("would leave `{}`: {}", ShownPath(&left.path), left.reason.text()));
    }
    dependencies::say(&planned.dependencies, &planned.donor);
}
