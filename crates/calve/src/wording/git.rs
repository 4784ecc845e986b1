use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::Remedy;
use calve_git::worktree::AddWarning;

/// Returns the user's hint, as one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    let Remedy::MountPlace { mount_point, record } = remedy.clone() else { return remedy.to_string() };
    let mount = super::core::hint(&calve_core::error::Remedy::MountPlace { mount_point, record });
    format!("if the worktree was moved, run `git worktree repair NEW-PATH`; otherwise {mount}")
}

pub(crate) fn warning(warning: &AddWarning) -> String {
    match warning {
        AddWarning::EmptySubmodules => {
            "submodules are empty, as after `git worktree add`: run `git submodule update --init`".to_owned()
        }
        AddWarning::Unfiltered { filter, command, files } => format!(
            "{} stored, because the filter `{}` would run code of the pull request (`{}`); `--trust` runs it",
            if *files == 1 { "1 file is as".to_owned() } else { format!("{files} files are as") },
            ShownPath(filter),
            ShownPath(command)
        ),
        AddWarning::Git(said) => {
            let lines: Vec<String> = said.lines().map(|line| ShownPath(Path::new(line.trim())).to_string()).collect();
            format!("git says of the files that it wrote: {}", lines.join("; "))
        }
        AddWarning::Engine(warning) => warning.message.clone(),
    }
}
