use std::time::Duration;

use calve_core::internal::ShownPath;
use calve_git::environment::LeasedPort;
use calve_git::worktree::{self, WorktreeInfo, WorktreeState};

use crate::commands::worktree::{env, services, up};
use crate::failure::Failure;
use crate::output;
use crate::real_path::here;
use crate::wording::fitting::fitting;
use crate::wording::git::hint;
use calve_receipt::human::age;
use calve_receipt::{ListedWorktree, ServiceReceipt, WorktreesReceipt};

pub(crate) fn run(json: bool) -> Result<(), Failure> {
    let all = worktree::list(&here()?)?;
    let ports = env::of_worktrees(&all);
    let services = services::of_worktrees(&all);
    let with_both = all.iter().zip(ports.iter().zip(services));
    if json {
        let worktrees = with_both.map(|(info, (ports, services))| ListedWorktree { info, ports, services });
        return output::json(&WorktreesReceipt { worktrees: worktrees.collect() });
    }
    let lines: Vec<[String; 5]> =
        with_both.map(|(listed, (ports, services))| columns(listed, ports, &services)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (branch, state, age, ports) = (width(0), width(1), width(2), width(3));
    let mut text = String::new();
    for [a, b, c, d, path] in &lines {
        let d = if ports > 0 { format!("  {d:ports$}") } else { String::new() };
        text.push_str(&format!("{a:branch$}  {b:state$}  {c:>age$}{d}  {path}\n"));
    }
    output::result(&text)?;
    for listed in &all {
        if let Some(problem) = listed.worktree.problem() {
            let hint = problem.remedy().map(|remedy| fitting(hint(&remedy))).unwrap_or_default();
            output::warn(&format!("{problem}; {hint}"));
        }
    }
    Ok(())
}

fn columns(listed: &WorktreeInfo, ports: &[LeasedPort], services: &[ServiceReceipt]) -> [String; 5] {
    let worktree = &listed.worktree;
    let here = if worktree.is_here { "* " } else { "  " };
    let branch = match (&worktree.branch, &worktree.head) {
        _ if worktree.is_bare => "(bare)".to_owned(),
        (Some(branch), _) => ShownPath(branch).to_string(),
        (None, Some(head)) => format!("({})", &head[..head.len().min(12)]),
        (None, None) => "(none)".to_owned(),
    };
    let word = |applies: bool, word: &str| applies.then(|| word.to_owned());
    let signed =
        |sign, number: Option<u64>| number.filter(|number| *number > 0).map(|number| format!("{sign}{number}"));
    let state = [
        word(worktree.status != WorktreeState::Intact, (&worktree.status).into()),
        word(worktree.is_unfinished, "unfinished"),
        word(worktree.locked.is_some(), "locked"),
        worktree.maker.as_ref().map(|maker| format!("by {maker}")),
        word(worktree.provenance.is_untrusted(), "untrusted"),
        word(listed.is_dirty == Some(true), "dirty"),
        word(listed.is_dirty.is_none() && worktree.is_usable(), "unreadable"),
        signed('+', listed.ahead),
        signed('-', listed.behind),
    ];
    let state: Vec<String> = state.into_iter().flatten().collect();
    let age = listed.age_s.map(|seconds| age(Duration::from_secs(seconds))).unwrap_or_default();
    let ports = ports.iter().map(|port| format!("{}:{}", port.name, port.number));
    let services = services.iter().map(|service| {
        let taken = up::taken(service).map(|taken| format!(" ({taken})")).unwrap_or_default();
        format!("{}:{}{taken}", service.name, service.state)
    });
    let environment: Vec<String> = ports.chain(services).collect();
    [format!("{here}{branch}"), state.join(" "), age, environment.join(" "), ShownPath(&worktree.path).to_string()]
}
