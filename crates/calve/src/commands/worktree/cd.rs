use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use calve_core::internal::ShownPath;
use calve_git::worktree::{self, WorktreeInfo};

use crate::failure::{Failure, INTERRUPTED, USAGE};
use crate::real_path::here;
use crate::{consent, output, sys};

/// Finder programs, and options that show only the part of a line after the tab.
const FINDERS: [&str; 2] = ["fzf", "sk"];
const FINDER_OPTIONS: [&str; 4] = ["--delimiter=\t", "--with-nth=2..", "--height=40%", "--reverse"];

pub(crate) fn run(what: Option<&PathBuf>) -> Result<(), Failure> {
    let here = here()?;
    if let Some(what) = what {
        let (_, mut found) = worktree::find_all(&here, std::slice::from_ref(what))?;
        let path = found.pop().transpose()?.unwrap_or_default();
        // The shell's function captures stdout, so on a terminal it is missing.
        if std::io::stdout().is_terminal() {
            output::note(&format!("a program cannot change the directory of its shell: {}", by_function()));
        }
        return output::path(&path);
    }
    if !consent::can_ask() {
        let hint = "name a branch: `calve worktree cd BRANCH`; `calve worktree list` has all";
        return Err(Failure::stated(USAGE, "there is no terminal to choose a worktree on", hint));
    }
    let mut all = worktree::list(&here)?;
    all.retain(|listed| listed.worktree.is_usable());
    match chosen(&all)? {
        Some(number) => output::path(&all[number].worktree.path),
        None => Err(Failure::reported(INTERRUPTED)),
    }
}

fn by_function() -> String {
    let shell = std::env::var("SHELL").unwrap_or_default();
    match shell.rsplit('/').next().unwrap_or_default() {
        "fish" => "`calve shell-init fish | source` makes this command do it".to_owned(),
        name => {
            let name = if name == "zsh" { name } else { "bash" };
            format!("`eval \"$(calve shell-init {name})\"` makes this command do it")
        }
    }
}

/// Asks the user for a worktree and returns its index, or `None` if the user chose none.
fn chosen(all: &[WorktreeInfo]) -> Result<Option<usize>, Failure> {
    let lines: Vec<String> = all.iter().map(line).collect();
    for finder in FINDERS {
        match by_finder(finder, &lines) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return Ok(found?),
        }
    }
    lines.iter().enumerate().for_each(|(number, line)| output::prompt(&format!("{:>3}  {line}", number + 1)));
    output::prompt("Which one?");
    let answer = sys::Answers::new()?.line()?.unwrap_or_default();
    let number: Option<usize> = answer.trim().parse().ok();
    Ok(number.and_then(|number| number.checked_sub(1)).filter(|number| *number < all.len()))
}

fn line(listed: &WorktreeInfo) -> String {
    let branch = listed.worktree.branch.as_ref().map_or("(detached)".into(), |branch| ShownPath(branch).to_string());
    let maker = listed.worktree.maker.as_ref().map(|maker| format!("  by {maker}")).unwrap_or_default();
    format!("{branch}{maker}  {}", ShownPath(&listed.worktree.path))
}

/// Asks with a finder program. Each line begins with a hidden number, because a path may not come back unchanged.
fn by_finder(finder: &str, lines: &[String]) -> std::io::Result<Option<usize>> {
    let mut command = Command::new(finder);
    let mut child = command.args(FINDER_OPTIONS).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        for (number, line) in lines.iter().enumerate() {
            // The finder stops reading once the user has chosen.
            let _ = writeln!(stdin, "{number}\t{line}");
        }
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number: Option<usize> = text.split('\t').next().and_then(|number| number.trim().parse().ok());
    Ok(number.filter(|number| output.status.success() && *number < lines.len()))
}
