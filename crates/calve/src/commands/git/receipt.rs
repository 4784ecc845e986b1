//! Receipts of `calve git`: from the reports to the JSON documents, and the lines for people.

use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::remote::{FetchReport, GitCloneReport, Notice, PlannedFetch, Property, Recipe, Tip, Traffic, Verdict};

use crate::wording;
use calve_receipt::human::{counted, size};
use calve_receipt::{GitClonePlan, GitCloneReceipt, GitFetchReceipt, GitRecipe, GitWarning, ServerCompliance, path};

pub(crate) fn clone(report: &GitCloneReport, dst: &Path) -> GitCloneReceipt {
    let GitCloneReport { recipe, git, head, traffic, seconds, missing, verdicts, notices } = report;
    GitCloneReceipt {
        plan: plan(recipe, git, dst),
        head: head.clone(),
        traffic: *traffic,
        seconds: *seconds,
        objects_missing: missing.objects,
        objects_missing_counted: missing.counted,
        honoured: ServerCompliance {
            filter: honoured(verdicts, Property::Filter),
            depth: honoured(verdicts, Property::Depth),
        },
        warnings: warnings(notices),
    }
}

pub(crate) fn plan(recipe: &Recipe, git: &str, dst: &Path) -> GitClonePlan {
    GitClonePlan {
        url: recipe.url.to_string(),
        dst: path(dst),
        purpose: recipe.purpose.into(),
        recipe: self::recipe(recipe, dst),
        git: git.to_owned(),
    }
}

pub(crate) fn fetch(report: &FetchReport) -> GitFetchReceipt<'_> {
    GitFetchReceipt { report, warnings: warnings(&report.notices) }
}

fn recipe(recipe: &Recipe, dst: &Path) -> GitRecipe {
    let (branch, revision) = match recipe.tip.clone() {
        Tip::Default => (None, None),
        Tip::Branch(name) => (Some(name), None),
        Tip::Revision(id) => (None, Some(id)),
    };
    GitRecipe {
        filter: recipe.filter.map(Into::into),
        depth: recipe.depth,
        branch,
        revision,
        sparse: recipe.sparse.clone(),
        reason: recipe.reason.to_string(),
        commands: recipe.spoken(dst),
    }
}

/// Returns `None`, which is null in the receipt, if the property was not asked for, or if nobody could tell.
fn honoured(verdicts: &[(Property, Verdict)], wanted: Property) -> Option<bool> {
    let found = verdicts.iter().find(|(property, _)| *property == wanted);
    match found?.1 {
        Verdict::Honoured => Some(true),
        Verdict::Ignored(_) => Some(false),
        Verdict::Untold => None,
    }
}

fn warnings(notices: &[Notice]) -> Vec<GitWarning> {
    notices
        .iter()
        .map(|notice| GitWarning { code: notice.code.into(), message: wording::git::notice(notice) })
        .collect()
}

pub(crate) fn plan_text(recipe: &Recipe, dst: &Path) -> String {
    let mut text = format!("for {}: {}\n", recipe.purpose, recipe.reason);
    recipe.spoken(dst).iter().for_each(|command| text.push_str(&format!("{command}\n")));
    text
}

pub(crate) fn fetch_text(plan: &PlannedFetch) -> String {
    format!("{}: {}\n", plan.commands.join(" && "), plan.reason)
}

pub(crate) fn clone_sentence(report: &GitCloneReport, dst: &Path) -> String {
    let mut parts = vec![traffic(&report.traffic)];
    if report.recipe.filter.is_some() {
        let least = if report.missing.counted { "" } else { "at least " };
        parts.push(format!("{least}{} left on the server", counted(report.missing.objects, "object")));
    }
    parts.push(format!("in {:.2} s", report.seconds.total));
    format!("cloned `{}` to `{}`: {}", report.recipe.url, ShownPath(dst), parts.join(", "))
}

pub(crate) fn fetch_sentence(report: &FetchReport) -> String {
    let what =
        if report.updated.is_empty() { "nothing new".to_owned() } else { format!("{} updated", report.updated.len()) };
    format!("fetched: {what}, {}, in {:.2} s", traffic(&report.traffic), report.seconds)
}

fn traffic(traffic: &Traffic) -> String {
    let requests = traffic.requests.map(|requests| counted(requests, "request") + ", ").unwrap_or_default();
    match traffic.bytes_received {
        Some(bytes) => format!("{requests}{} received", size(bytes)),
        None => format!("{requests}few objects received"),
    }
}
