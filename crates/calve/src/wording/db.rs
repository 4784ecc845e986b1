//! The remedies of `calve db`, as commands and options of the program.

use calve_db::Remedy;

use super::{LARGER_HOME, is_below_home, reworded};

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Engine(remedy) => super::core::hint(remedy),
        Remedy::FreeSpace(path) if is_below_home(path) => LARGER_HOME.into(),
        Remedy::CheckOwner(path) if is_below_home(path) => {
            "check who owns it, or set CALVE_HOME to a directory of your own".into()
        }
        Remedy::CreateTemplate(name) => {
            format!("see `calve db template list`, or create it: calve db template create {name} --engine …")
        }
        Remedy::RebuildTemplate(name) => format!("{remedy}: calve db template create {name} --rebuild …"),
        Remedy::PullTemplate { name, origin } => super::pull_again("calve db template pull", name, origin),
        Remedy::PullForVersion { name, origin } => {
            let pull = super::pull_again("calve db template pull --server-bin DIR", name, origin);
            format!("install that version; if its directory is another one, {pull}")
        }
        Remedy::ReplaceTemplate(name) => {
            reworded(remedy, "remove it", &format!("remove it with `calve db template remove {name}`"))
                + " with `--rebuild`"
        }
        Remedy::ListServers => "see `calve db list`".into(),
        Remedy::StopServer(name) | Remedy::RestartServer(name) => format!("{remedy}: calve db stop {name}"),
        Remedy::EndServer(name) => {
            format!("{remedy}: `calve down` in its worktree, or `calve db stop {name}` if it is not a service's")
        }
        Remedy::ResetServer(name) => format!("{remedy}: calve db reset {name}"),
        Remedy::ReadLog(name) => format!("{remedy}: calve db logs {name}"),
        Remedy::InstallServer | Remedy::ChooseMatchingVersion => {
            reworded(remedy, ", or an image", " with `--server-bin`, or an image with `--image`")
        }
        Remedy::MarkServer(name) => format!("{remedy}: calve db mark {name} NAME, then `--from-mark {name}:NAME`"),
        Remedy::Sweep => "run `calve db gc`, then try again".into(),
        Remedy::NameEngine => format!("name one with `--engine`: {}", calve_db::EngineKind::NAMES.join(", ")),
        Remedy::ListMarks(server) => format!("see `calve db marks {server}`"),
        Remedy::RemoveMark { server, mark } => format!("{remedy}: calve db unmark {server} {mark}"),
        Remedy::StopAnyway => reworded(remedy, "by force", "with `calve down --force`"),
        Remedy::ReadHelp => "see `calve db --help`".into(),
        Remedy::MoveHomeBack => format!("{remedy}: `calve db stop`, for a service `calve down --force`"),
        Remedy::InstallRuntime => format!("{remedy} with `--runtime`"),
        Remedy::ChooseSupportedVersion => format!("{remedy} with `--server-bin`"),
        Remedy::ForceStop => format!("{remedy}; `calve down --force` ends it and loses what it could not write"),
        Remedy::RestoreAccess => format!("{remedy}; `calve down --force` ends a service as it is"),
        Remedy::ForceRemoval => format!("{remedy}: add `--lose-data` to this command"),
        Remedy::StartThrowaway => format!("{remedy}: calve db start TEMPLATE"),
        other => other.to_string(),
    }
}
