//! Words for calve-env: what to type or change next.

use calve_core::internal::ShownPath;
use calve_env::{Error, Remedy};

use super::fitting::fitting;
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

/// Says what to do next against an error that stops nothing else.
pub(crate) fn hint_of(error: &Error) -> Option<String> {
    let hint = match error {
        Error::Git(calve_git::Error::Clone(error)) => error.remedy().as_ref().map(super::core::hint),
        Error::Git(error) => error.remedy().as_ref().map(super::git::hint),
        Error::Db(error) => error.remedy().as_ref().map(super::db::hint),
        Error::Io(error) => Some(super::system::hint(error).into()),
        Error::Failed { remedy, .. } => Some(hint(remedy)),
        Error::Refused { remedy, .. } => remedy.as_ref().map(hint),
        _ => None,
    };
    hint.map(fitting).filter(|hint| !hint.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_has_a_hint() {
        let error = fs_err::File::open("/nowhere/file").unwrap_err();
        assert!(hint_of(&error.into()).unwrap().contains("spelling"));
    }
}
