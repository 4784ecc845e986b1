//! Words for calve-env: what to type or change next.

use calve_core::internal::ShownPath;
use calve_env::Remedy;

use super::word;

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::AskForAnotherNameOrRemove(path) => {
            let (path, command) = (ShownPath(path), format!("calve worktree remove {}", word(path)));
            format!("ask for another name; if an earlier attempt left `{path}`, check it, then run `{command}`")
        }
        other => other.to_string(),
    }
}
