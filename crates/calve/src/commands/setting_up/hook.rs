use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_agent::configuration::{Direction, Edit, FileChange, apply, plan};
use calve_agent::mcp::HINTS_FOR_AGENT;
use calve_core::internal::ShownPath;
use calve_core::{CancelToken, CloneOptions};
use calve_env::{OwnParts, approvals_failed};
use calve_git::environment::root_of;
use calve_git::escape::{self, Action};
use calve_git::hooks::{Hook, repository_of};
use calve_git::worktree::{AddOptions, FillReport, left_behind};
use calve_git::{Config, Git, provenance_of, trust_commit};
use calve_receipt::{FactSubject, human};
use serde_json::Value;
use similar::TextDiff;

use crate::cli::hook::{ApproveArguments, HookCommand, InstallArguments, WorktreeCreateArguments};
use crate::commands::worktree::add::say_failed;
use crate::commands::worktree::facts::{Facts, UNTRUSTED, dependency_lines};
use crate::failure::{FAILED, Failure, REFUSED, USAGE};
use crate::host::Program;
use crate::{consent, home, output, real_path, wording};

pub(crate) fn run(command: &HookCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        HookCommand::Install(arguments) => install(arguments, Direction::Install),
        HookCommand::Uninstall(arguments) => install(arguments, Direction::Uninstall),
        HookCommand::WorktreeSetup { maker, from } => worktree_setup(maker, from.as_ref(), cancel),
        HookCommand::WorktreeCreate(arguments) => worktree_create(arguments, cancel),
        HookCommand::WorktreeRemove { force } => worktree_remove(*force),
        HookCommand::Approve(arguments) => approve(arguments),
    }
}

/// An agent's request has a few lines.
const QUESTION_BYTES: u64 = 1024 * 1024;

const EXPECTED: &str = "give one JSON object on stdin: `{\"cwd\": \"/path/of/repository\", \"name\": \"topic\"}` to create a worktree, \
    `{\"worktree_path\": \"/path/of/worktree\"}` to remove one";

/// Reads one JSON object from stdin, not to its end: some agents keep stdin open.
fn question() -> Result<Value, Failure> {
    let input = std::io::stdin().lock().take(QUESTION_BYTES);
    let mut values = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
    let wrong = |what: String| Failure::stated(USAGE, what, EXPECTED);
    match values.next() {
        Some(Ok(value)) if value.is_object() => Ok(value),
        Some(Ok(_)) => Err(wrong("stdin has JSON that is not an object".into())),
        Some(Err(error)) => Err(wrong(format!("stdin is not JSON: {error}"))),
        None => Err(wrong("there is nothing on stdin".into())),
    }
}

/// Returns the first field that is present: agents have renamed fields over time.
fn field<'v>(question: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| question.get(name)?.as_str()).filter(|value| !value.is_empty())
}

fn required<'v>(question: &'v Value, names: &[&str]) -> Result<&'v str, Failure> {
    field(question, names)
        .ok_or_else(|| Failure::stated(USAGE, format!("the JSON object on stdin has no text `{}`", names[0]), EXPECTED))
}

fn worktree_create(arguments: &WorktreeCreateArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let question = question()?;
    let place = PathBuf::from(field(&question, &["cwd"]).unwrap_or("."));
    let is_there = |branch: &str| {
        let [local, listed, remote] = ["heads", "remotes", "remotes/*"].map(|above| format!("refs/{above}/{branch}"));
        let found = Git::at(&place).run(&["for-each-ref", &local, &listed, &remote]);
        found.is_ok_and(|found| !found.is_empty())
    };
    let branch = branch_of(required(&question, &["name", "worktree_name", "branch_name"])?, is_there)?;
    let base = field(&question, &["base_commit", "base_ref", "source_ref"]);
    let mut add = calve(&place, "add")?;
    add.arg(format!("--for-agent={}", arguments.maker)).args(base.map(|base| format!("--base={base}")));
    add.args(arguments.no_hooks.then_some("--no-hooks")).args(arguments.yes.then_some("--yes"));
    if cancel.is_cancelled() {
        return Err(calve_git::Error::Interrupted.into());
    }
    // Exec: it prints the path and receives this process's signals.
    let error = crate::sys::become_command(add.arg("--").arg(&branch));
    if place.is_dir() {
        let hint = "try again: another version of calve may just have been installed";
        return Err(Failure::stated(FAILED, format!("cannot run calve in `{}`: {error}", ShownPath(&place)), hint));
    }
    Err(calve_git::Error::start(&place)(error).into())
}

fn worktree_remove(force: bool) -> Result<(), Failure> {
    let question = question()?;
    let path = PathBuf::from(required(&question, &["worktree_path", "path"])?);
    if !path.is_absolute() {
        let what = format!("`worktree_path` is not an absolute path: `{}`", ShownPath(&path));
        return Err(Failure::stated(USAGE, what, EXPECTED));
    }
    // Run it from the main worktree, because the agent's shell is usually in the one being removed.
    let worktrees = escape::worktrees_of(&path)?;
    let place = worktrees.others.iter().find(|place| place.is_dir()).unwrap_or(&path);
    let mut remove = calve(place, "remove")?;
    finished(remove.args(force.then_some("--force")).arg("--").arg(&path))?;
    output::path(&path)
}

/// Turns an agent's name, often words, into a valid branch name, a new one without characters that a shell needs quotes for.
fn branch_of(name: &str, is_there: impl Fn(&str) -> bool) -> Result<String, Failure> {
    const QUOTED: &str = "$;'\"`&|()<>";
    let mut branch = valid(name, "");
    if branch.contains(|c| QUOTED.contains(c)) && !is_there(&branch) {
        branch = valid(name, QUOTED);
    }
    if branch.is_empty() {
        return Err(Failure::stated(USAGE, "cannot make a branch of that name", EXPECTED));
    }
    Ok(branch)
}

/// Replaces what git-check-ref-format(1) refuses, and `others`.
fn valid(name: &str, others: &str) -> String {
    let is_refused = |c: char| c.is_control() || " ~^:?*[\\".contains(c) || others.contains(c);
    let branch = name.trim().trim_end_matches(|c| "/.".contains(c) || is_refused(c)).replace(is_refused, "-");
    let branch = branch.replace("..", "-").replace("@{", "@-");
    let parts = branch.split('/').map(|part| part.trim_start_matches('.').trim_end_matches(".lock"));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("/").trim_start_matches(['-', '/', '.']).to_owned()
}

fn calve(place: &Path, what: &str) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(output::is_quiet().then_some("--quiet"))
        .args(["worktree", what])
        .current_dir(place)
        .stdin(Stdio::null())
        .env(HINTS_FOR_AGENT, "1");
    Ok(command)
}

/// Runs the command, discarding its stdout. Its messages go to stderr.
fn finished(command: &mut Command) -> Result<(), Failure> {
    let status = command.stderr(Stdio::inherit()).output()?.status;
    if status.success() {
        return Ok(());
    }
    Err(Failure::reported(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)))
}

fn approve(arguments: &ApproveArguments) -> Result<(), Failure> {
    let repository = repository_of(&arguments.path)?;
    let root = escape::worktrees_of(&arguments.path)?.this;
    if arguments.trust {
        // Report a configuration error before trusting anything.
        Config::load(&root)?;
        if trust_commit(&root)? {
            output::note(&format!("the commit in `{}` is trusted from now on", ShownPath(&root)));
        }
    } else if provenance_of(&root)?.is_untrusted() && !arguments.revoke {
        let text = format!(
            "`{}` is the worktree of a pull request that is not trusted, so its hooks do not run",
            ShownPath(&root)
        );
        let hint = "run it in a worktree of your own; if you have read the pull request, `--trust` trusts its commit from now on";
        return Err(Failure::stated(REFUSED, text, hint));
    }
    let Config { hooks, services, .. } = Config::of_worktree(&root)?;
    let creations =
        services.into_values().map(|service| (Hook::Create, service.recipe.and_then(|recipe| recipe.command)));
    let hooks = [(Hook::PostAdd, hooks.post_add), (Hook::PreRemove, hooks.pre_remove)].into_iter().chain(creations);
    let hooks: Vec<(Hook, String)> = hooks.filter_map(|(hook, text)| Some((hook, text?))).collect();
    if hooks.is_empty() {
        output::note(&format!("`{}` has no hooks in .calve.toml", ShownPath(&root)));
        return Ok(());
    }
    let approvals = calve_env::approvals(&Program)?;
    for (hook, text) in hooks {
        let title = hook.title();
        if arguments.revoke {
            approvals.remove(&repository, hook, &text).map_err(approvals_failed)?;
            output::note(&format!("the {title} is not approved any more"));
            continue;
        }
        if !approvals.has(&repository, hook, &text).map_err(approvals_failed)? {
            consent::show(hook, &text, output::prompt_if(!arguments.yes));
            let hint = "run it on a terminal and answer `y`, or give `--yes`";
            consent::require(arguments.yes, consent::MAY_RUN, &format!("the {title} is not approved"), hint)?;
            approvals.add(&repository, hook, &text).map_err(approvals_failed)?;
        }
        output::note(&format!("the {title} is approved"));
    }
    Ok(())
}

fn install(arguments: &InstallArguments, direction: Direction) -> Result<(), Failure> {
    let root = root_of(&arguments.path)?;
    let changes = plan(arguments.agent, &root, direction)?;
    let is_work = |change: &&FileChange| matches!(change.outcome, Edit::Write(_) | Edit::Remove);
    let tell = output::prompt_if(!arguments.yes && !arguments.dry_run);
    changes.iter().for_each(|change| show(&root, change, tell));
    if changes.iter().any(|change| is_work(&change)) && !arguments.dry_run {
        let word = if direction == Direction::Install { "installed" } else { "uninstalled" };
        consent::require(arguments.yes, "Write this?", &format!("nothing was {word}"), "`--yes` does not ask")?;
        for change in changes.iter().filter(is_work) {
            apply(&root, change)?;
            output::note(&match change.outcome {
                Edit::Remove => format!("removed `{}`", ShownPath(&change.path)),
                _ => format!("wrote `{}`", ShownPath(&change.path)),
            });
        }
    }
    left_alone(&changes)
}

fn show(root: &Path, change: &FileChange, tell: fn(&str)) {
    let path = ShownPath(&change.path);
    let (before, after) = match &change.outcome {
        Edit::Write(text) => (change.before.as_deref().unwrap_or_default(), text.as_str()),
        Edit::Remove => (change.before.as_deref().unwrap_or_default(), ""),
        Edit::Fine => return output::note(&format!("`{path}` is up to date")),
        Edit::LeftAlone(why) => {
            return output::warn(&format!("`{}` was not changed: {why}", ShownPath(&root.join(&change.path))));
        }
    };
    let diff = TextDiff::from_lines(before, after);
    let header = path.to_string();
    let text = diff.unified_diff().header(&header, &header).to_string();
    tell(text.trim_end());
}

fn left_alone(changes: &[FileChange]) -> Result<(), Failure> {
    let mut left = changes.iter().filter(|change| matches!(change.outcome, Edit::LeftAlone(_)));
    let Some(first) = left.next() else { return Ok(()) };
    let more = match left.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("`{}`{more} could not be changed", ShownPath(&first.path));
    let hint = "change it yourself: docs/agents.md has what each agent needs; then run this again";
    Err(Failure::stated(FAILED, text, hint))
}

fn worktree_setup(maker: &str, from: Option<&PathBuf>, cancel: &CancelToken) -> Result<(), Failure> {
    let clone = CloneOptions { spares: home::spares(), cancel: cancel.clone(), ..CloneOptions::default() };
    let options = AddOptions { start: real_path::here()?, from: from.cloned(), clone, ..AddOptions::default() };
    let mut say = |filled: &FillReport, own: &OwnParts<'_>| {
        let mut facts = Facts::default();
        describe(filled, &mut facts);
        facts.own_parts(&filled.path, &filled.donor, own);
        facts.say();
    };
    let path = calve_env::set_up(&Program, &options, maker, &mut say, cancel);
    output::path(&path.map_err(|failed| say_failed(failed, false))?)
}

fn describe(filled: &FillReport, facts: &mut Facts) {
    let repaired = filled.audit.findings.iter().filter(|found| found.action != Action::Reported).count();
    let carried = human::entries(filled.untracked.carried.len() as u64);
    let donor = ShownPath(&filled.donor);
    let text = format!("carried {carried} that git ignores from `{donor}`; {repaired} repaired in them");
    facts.add(FactSubject::Files, text);
    if filled.provenance.is_untrusted() {
        facts.add(FactSubject::Trust, UNTRUSTED);
    }
    for left in filled.untracked.left.iter().filter(|left| left.reason == left_behind::BEHIND_LINK) {
        let text = format!("warning: `{}` was not carried: {}", ShownPath(&left.path), left.reason.text());
        facts.add(FactSubject::Left, text);
    }
    facts.add_all(FactSubject::Dependencies, dependency_lines(&filled.untracked.dependencies, &filled.donor));
    let changed = wording::clone::changed(&filled.changed);
    facts.add_all(FactSubject::Warning, changed.map(|line| format!("warning: {line}")));
}

#[cfg(test)]
mod tests {
    use calve_testkit::SplitMix64;

    use super::*;

    #[test]
    fn a_branch_is_made_of_any_name() {
        let made = |name| branch_of(name, |_| false).unwrap_or_default();
        for (name, branch) in [
            ("agent-1a2b", "agent-1a2b"),
            ("fix the: login?\n", "fix-the--login"),
            ("fix @{u", "fix-@-u"),
            ("-D x", "D-x"),
            ("feat/ä~b", "feat/ä-b"),
            ("a..b//.c.lock/", "a-b/c"),
            ("don't (now)", "don-t--now"),
            ("..//", ""),
        ] {
            assert_eq!(made(name), branch);
        }
        for legal in ["fix#12", "a=b!%,d}", "fix-🎉", "ends-"] {
            assert_eq!(made(legal), legal);
        }
        let there = "wip&x'$(a)";
        assert_eq!(
            (branch_of(there, |branch| branch == there).unwrap_or_default(), made(there)),
            (there.into(), "wip-x---a".into())
        );
    }

    #[test]
    fn git_accepts_any_branch_that_is_made() {
        let parts = [
            "a", "é", ".", ".lock", "..", "/", "@", "{", "@{u}", "}", "-", " ", "~", "\\", "\u{7f}", "$", "(", "'", "&",
        ];
        let mut random = SplitMix64::new(7);
        for _ in 0..400 {
            let name: String = (0..random.below(9)).map(|_| *random.pick(&parts)).collect();
            for is_there in [false, true] {
                let Ok(branch) = branch_of(&name, |_| is_there) else { continue };
                let checked = Command::new("git").args(["check-ref-format", "--branch", &branch]).output().unwrap();
                assert!(checked.status.success(), "{name:?} became {branch:?}");
                assert_eq!(branch_of(&branch, |_| is_there).unwrap_or_default(), branch);
            }
        }
    }

    #[test]
    fn fields_are_known_by_their_older_names_too() {
        let question = serde_json::json!({ "worktree_name": "a", "cwd": "" });
        assert_eq!(field(&question, &["name", "worktree_name"]), Some("a"));
        assert_eq!(field(&question, &["cwd"]), None);
    }
}
