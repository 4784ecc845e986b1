use std::path::PathBuf;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::Remedy;
use calve_git::escape::{self, Action, AuditOptions, AuditReport, Finding, Fix, FormerPathRule};

use crate::cli::worktree::CheckArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{output, real_path};
use calve_receipt::human;

pub(crate) fn run(arguments: &CheckArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (tree, others) = trees(arguments)?;
    let mut options = AuditOptions::default();
    options.fix = if arguments.fix { Fix::Yes } else { Fix::No };
    options.moved = FormerPathRule::Sought;
    // Alone, it may still name its own former path.
    let old = others.first().unwrap_or(&tree);
    options.others = others.iter().skip(1).cloned().collect();
    options.scan.cancel = cancel.clone();
    let report = escape::audit(&tree, old, &options)?;
    check_named(&arguments.against, &report)?;
    let text: String = report.findings.iter().map(|finding| line(finding, report.fixed)).collect();
    output::json_or(arguments.json, &report, &text)?;
    for skipped in &report.skipped {
        output::warn(&format!("`{}` was not looked at: {}", ShownPath(&skipped.path), skipped.reason));
    }
    output::note(&summary(&report));
    if report.left() > 0 { Err(Failure::reported(FAILED)) } else { Ok(()) }
}

/// Returns the tree to check, and the trees that it must not name.
fn trees(arguments: &CheckArguments) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    if !arguments.against.is_empty() {
        return Ok((arguments.path.clone(), arguments.against.clone()));
    }
    let worktrees = escape::worktrees_of(&arguments.path).map_err(|error| match error {
        calve_git::Error::Refused { remedy: Remedy::EnterRepository | Remedy::EnterWorktree, .. } => Failure::stated(
            USAGE,
            format!("`{}` is not in a worktree of a git repository", ShownPath(&arguments.path)),
            "name a worktree, or the tree that PATH was copied from with `--against DIR`",
        ),
        error => error.into(),
    })?;
    Ok((worktrees.this, worktrees.others))
}

/// Refuses a missing tree that nothing names, because it may be misspelled. A moved or deleted one can still be named.
fn check_named(against: &[PathBuf], report: &AuditReport) -> Result<(), Failure> {
    for directory in against.iter().filter(|directory| !directory.is_dir()) {
        let above = real_path::parent(directory);
        let above = fs_err::canonicalize(above).unwrap_or_else(|_| above.to_path_buf());
        let path = std::path::absolute(above.join(directory.file_name().unwrap_or_default()))?;
        if !report.findings.iter().any(|finding| finding.names.starts_with(&path)) {
            let text = format!("`{}` is not a directory, and nothing here names it", ShownPath(directory));
            return Err(Failure::stated(USAGE, text, "check the spelling of the path after `--against`"));
        }
    }
    Ok(())
}

fn line(finding: &Finding, fixed: bool) -> String {
    let Finding { kind, path, names, action, explanation, .. } = finding;
    let action = match (action, fixed) {
        (Action::Reported, _) => "left",
        (Action::Repaired, true) => "repaired",
        (Action::Dropped, true) => "dropped",
        (Action::Repaired, false) => "can be repaired",
        (Action::Dropped, false) => "can be dropped",
    };
    let (path, names) = (ShownPath(path), ShownPath(names));
    format!("{kind}: {path} -> {names}: {action}; {explanation}\n")
}

fn summary(report: &AuditReport) -> String {
    let count = |action| report.findings.iter().filter(|finding| finding.action == action).count();
    let (tree, took) = (ShownPath(&report.path), human::duration(report.elapsed));
    let looked = format!("{} looked at in {took}", human::entries(report.entries));
    if report.findings.is_empty() {
        return format!("nothing in `{tree}` points into another worktree ({looked})");
    }
    let [repaired, dropped, left] = [Action::Repaired, Action::Dropped, Action::Reported].map(count);
    match report.fixed {
        true => format!("`{tree}`: {repaired} repaired, {dropped} dropped, {left} left ({looked})"),
        false => format!(
            "`{tree}`: {repaired} to repair, {dropped} to drop, {left} to look at ({looked}); `calve worktree check --fix` does the first two"
        ),
    }
}
