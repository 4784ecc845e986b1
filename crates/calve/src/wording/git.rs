//! Words for calve-git: what to type next, and what a repaired reference means.

use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::Remedy;
use calve_git::escape::{Explanation, Finding, ReferenceKind};
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

/// Says what the action on a reference out of a worktree means, or what is left to do.
pub(crate) fn explanation(finding: &Finding) -> String {
    let fixed = match &finding.explanation {
        Explanation::NamesThisTree => match finding.kind {
            ReferenceKind::Activate => "it switches this worktree's environment on",
            ReferenceKind::Shebang => "it runs with what is in this worktree",
            ReferenceKind::PyvenvCfg => "it is this worktree's environment",
            ReferenceKind::Editable => "Python imports this worktree's package",
            ReferenceKind::DistInfo => "pip and uv see this worktree's package",
            ReferenceKind::Pnpm => "pnpm takes what is installed here for its own",
            ReferenceKind::WebCache => "it serves this worktree",
            ReferenceKind::Cargo => "it lists this worktree's files",
            _ => "it leads to the same place in this worktree",
        },
        Explanation::HashesRemoved => "the hashes of the files that were repaired are left out",
        Explanation::SameTarget => {
            return format!("it leads to what it led to before: `{}`", ShownPath(&finding.names));
        }
        Explanation::TargetMissing(path) if *path == finding.path => {
            "only this link has that name here; remove it, then clone its target with `calve cp`"
        }
        Explanation::TargetMissing(path) => {
            return format!(
                "there is no `{}` in this worktree; clone it here with `calve cp`, or remove the link",
                ShownPath(path)
            );
        }
        Explanation::Unwritable => {
            "the new path has characters that are special in this file; recreate it with the tool that wrote it"
        }
        Explanation::LineTooLong => {
            "its first line would be longer than the 127 bytes that every kernel reads; make it anew with the tool that wrote it"
        }
        Explanation::Tracked => "git tracks it, so a repair would be a change to commit; change it in the project",
        Explanation::Unchangeable { path, reason } => {
            return format!(
                "`{}` could not be changed: {reason}; free what holds it, then run `calve worktree check --fix`",
                ShownPath(path)
            );
        }
        Explanation::RunCMake(directory) => {
            return format!(
                "its options are kept, what was generated is dropped: run `cmake {}`",
                ShownPath(directory)
            );
        }
        Explanation::MadeAgain => "the next build makes it again",
        Explanation::CompiledAgain => "the path is compiled in: cargo compiles this unit again, and what depends on it",
        Explanation::ScriptRunsAgain => "the build script's output names the other tree: cargo runs the script again",
        Explanation::IndexOfAnother => {
            "git works on another worktree's index here; if that one was moved here, run `git worktree repair`, else make this \
             worktree with `calve worktree add`"
        }
        Explanation::InitSubmodule => {
            "`git submodule update --init` makes the submodule anew, when its directory is empty"
        }
        Explanation::PlainFiles => "its files are plain files here; git in it no longer works on the other worktree",
        Explanation::BorrowsObjects => {
            "the repository borrows objects; run `git repack -a -d` in it, then remove the file"
        }
    };
    fixed.to_owned()
}
