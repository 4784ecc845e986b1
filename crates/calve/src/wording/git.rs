//! Words for calve-git.

use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::Remedy;
use calve_git::worktree::AddWarning;

use super::word;

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::RemoveAsRoot(path) => {
            format!("another user owns it; root may remove it: sudo calve worktree remove {}", word(path))
        }
        Remedy::RemoveLeases(file) => {
            format!("remove it (`rm {}`): worktrees then get ports anew", word(file))
        }
        other => other.to_string(),
    }
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
