//! The remedies of `calve db` that depend on the program's environment.

use calve_db::Remedy;

use super::{LARGER_HOME, is_below_home};

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Engine(remedy) => super::core::hint(remedy),
        Remedy::FreeSpace(path) if is_below_home(path) => LARGER_HOME.into(),
        Remedy::CheckOwner(path) if is_below_home(path) => {
            "check who owns it, or set CALVE_HOME to a directory of your own".into()
        }
        Remedy::PullTemplate { name, origin } => super::pull_again("calve db template pull", name, origin),
        Remedy::PullForVersion { name, origin } => {
            let pull = super::pull_again("calve db template pull --server-bin DIR", name, origin);
            format!("install that version; if its directory is another one, {pull}")
        }
        Remedy::NameEngine => format!("{remedy}: {}", calve_db::EngineKind::NAMES.join(", ")),
        other => other.to_string(),
    }
}
