use std::path::Path;

use calve_agent::configuration::{Direction, Edit, FileChange, apply, plan};
use calve_core::internal::ShownPath;
use calve_git::environment::root_of;
use similar::TextDiff;

use crate::cli::hook::InstallArguments;
use crate::failure::{FAILED, Failure};
use crate::{consent, output};

pub(crate) fn run(arguments: &InstallArguments, direction: Direction) -> Result<(), Failure> {
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
        Edit::Fine => return output::note(&format!("`{path}` is as it should be")),
        Edit::LeftAlone(why) => {
            return output::warn(&format!("`{}` is left alone: {why}", ShownPath(&root.join(&change.path))));
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
    let text = format!("`{}`{more} had to be left alone", ShownPath(&first.path));
    let hint = "change it yourself: docs/agents.md has what each agent needs; then run this again";
    Err(Failure::stated(FAILED, text, hint))
}
