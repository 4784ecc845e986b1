//! `calve worktree check`.

use std::path::{Path, PathBuf};

use calve_core::{Cancel, Shown};
use calve_git::escape::{self, Action, AuditOptions, AuditReport, Finding, Fix};
use serde_json::{Value, json};

use crate::cli::worktree::CheckArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{output, receipt, wording};
use calve_receipt::human;

pub(crate) fn run(arguments: &CheckArguments, cancel: &Cancel) -> Result<(), Failure> {
    let (tree, others) = trees(arguments)?;
    let Some((old, others)) = others.split_first() else {
        // Nothing can point into another worktree where there is none.
        output::say(&format!("`{}` is the only worktree of its repository", Shown(&tree)));
        return if arguments.json { output::json(&document(&tree, None)) } else { Ok(()) };
    };
    let mut options = AuditOptions::default();
    options.fix = if arguments.fix { Fix::Yes } else { Fix::No };
    options.others = others.to_vec();
    options.cancel = cancel.clone();
    let report = escape::audit(&tree, old, &options)?;
    match arguments.json {
        true => output::json(&document(&tree, Some(&report)))?,
        false => {
            output::result(&report.findings.iter().map(|finding| line(finding, report.fixed)).collect::<String>())?
        }
    }
    for skipped in &report.skipped {
        output::say(&format!("warning: `{}` was not looked at: {}", Shown(&skipped.path), skipped.reason));
    }
    output::say(&summary(&tree, &report));
    if report.left() > 0 { Err(Failure::Reported(FAILED)) } else { Ok(()) }
}

/// The tree to look at, and those that it must not name.
fn trees(arguments: &CheckArguments) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    if !arguments.against.is_empty() {
        return Ok((arguments.path.clone(), arguments.against.clone()));
    }
    let worktrees = escape::worktrees_of(&arguments.path).map_err(|error| match error {
        calve_git::Error::Git { .. } => Failure::stated(
            USAGE,
            format!("`{}` is not in a worktree of a git repository", Shown(&arguments.path)),
            "name a worktree, or the tree that PATH was copied from with `--against DIR`",
        ),
        error => error.into(),
    })?;
    Ok((worktrees.this, worktrees.others))
}

fn line(finding: &Finding, fixed: bool) -> String {
    let Finding { kind, path, names, action, .. } = finding;
    let action = match (action, fixed) {
        (Action::Reported, _) => "left",
        (Action::Repaired, true) => "repaired",
        (Action::Dropped, true) => "dropped",
        (Action::Repaired, false) => "can be repaired",
        (Action::Dropped, false) => "can be dropped",
    };
    format!("{}: {} -> {}: {action}; {}\n", kind.name(), Shown(path), Shown(names), wording::git::explanation(finding))
}

fn summary(tree: &Path, report: &AuditReport) -> String {
    let count = |action| report.findings.iter().filter(|finding| finding.action == action).count();
    let (tree, took) = (Shown(tree), human::duration(report.elapsed));
    let looked = format!("{} looked at in {took}", human::entries(report.entries));
    if report.findings.is_empty() {
        return format!("nothing in `{tree}` points into another worktree ({looked})");
    }
    let numbers = [Action::Repaired, Action::Dropped, Action::Reported].map(count);
    match report.fixed {
        true => format!("`{tree}`: {} repaired, {} dropped, {} left ({looked})", numbers[0], numbers[1], numbers[2]),
        false => format!(
            "`{tree}`: {} to repair, {} to drop, {} to look at ({looked}); `calve worktree check --fix` does the first two",
            numbers[0], numbers[1], numbers[2]
        ),
    }
}

/// Each as JSON.
pub(super) fn findings(report: &AuditReport) -> Vec<Value> {
    let one = |finding: &Finding| {
        let Finding { kind, path, names, action, .. } = finding;
        json!({
            "kind": kind.name(),
            "path": receipt::path(path),
            "names": receipt::path(names),
            "action": action.name(),
            "hint": wording::git::explanation(finding),
        })
    };
    report.findings.iter().map(one).collect()
}

fn document(tree: &Path, report: Option<&AuditReport>) -> Value {
    let skipped = report.map_or(&[][..], |report| &report.skipped);
    let skipped: Vec<Value> = skipped
        .iter()
        .map(|skipped| json!({ "path": receipt::path(&skipped.path), "reason": skipped.reason }))
        .collect();
    json!({
        "schema": "calve.worktree-check/1",
        "path": receipt::path(tree),
        "fixed": report.is_some_and(|report| report.fixed),
        "findings": report.map(findings).unwrap_or_default(),
        "entries": report.map_or(0, |report| report.entries),
        "skipped": skipped,
        "elapsed_ms": report.map_or(0.0, |report| report.elapsed.as_secs_f64() * 1000.0),
    })
}
