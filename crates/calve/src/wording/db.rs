//! The remedies of `calve db`.

use std::path::Path;

use calve_core::ShownPath;
use calve_db::Remedy;

/// Returns what the user can do next, as one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Engine(remedy) => engine_hint(remedy),
        Remedy::CheckPath => "check the path and the disk, then try again".into(),
        Remedy::FreeSpace(path) if is_below_home(path) => {
            "free some space, or set CALVE_HOME to a directory on a larger file system".into()
        }
        Remedy::FreeSpace(path) => format!("free some space on the file system of `{}`", ShownPath(path)),
        Remedy::CheckOwner(path) if is_below_home(path) => {
            "check who owns it, or set CALVE_HOME to a directory of your own".into()
        }
        Remedy::CheckOwner(path) => format!("check the owner and the mode of `{}`", ShownPath(path)),
        Remedy::ChooseHome => "set CALVE_HOME to a directory of your own that others may enter".into(),
        Remedy::CreateTemplate(name) => {
            format!("see `calve db template list`, or create it: calve db template create {name} --engine …")
        }
        Remedy::WaitForBuild => "try again when `calve db template create` has finished".into(),
        Remedy::RebuildTemplate(name) => format!("create it again: calve db template create {name} --rebuild …"),
        Remedy::ReplaceTemplate(name) => {
            format!(
                "choose another name, remove it with `calve db template remove {name}`, or replace it with --rebuild"
            )
        }
        Remedy::ListServers => "see `calve db list`".into(),
        Remedy::StopServer(name) => format!("choose another name, or stop it: calve db stop {name}"),
        Remedy::ListMarks(server) => format!("see `calve db marks {server}`"),
        Remedy::RemoveMark { server, mark } => {
            format!("choose another name, or remove it: calve db unmark {server} {mark}")
        }
        Remedy::ResetServer(name) => format!("try again, go back to a mark, or stop it: calve db reset {name}"),
        Remedy::ReadLog(name) => format!("read the last lines of its log: calve db logs {name}"),
        Remedy::StartNewServer => "start a new server from a template, and stop this one".into(),
        Remedy::InstallServer => {
            "install the server, name its directory with --server-bin, or an image with --image".into()
        }
        Remedy::ChooseSupportedVersion => "name the directory of a supported version with --server-bin".into(),
        Remedy::ChooseMatchingVersion => {
            "install that version of the server and name its directory with --server-bin, or an image with --image"
                .into()
        }
        Remedy::ReadOutput => "the lines above are the last that it wrote".into(),
        Remedy::CheckServerProgram => "check that the server's program runs on this machine".into(),
        Remedy::CorrectCommand => "correct the command, and create the template again".into(),
        Remedy::ConnectToServer => {
            "check where the command connects; make it use DATABASE_URL (REDIS_URL for Redis and Valkey), or leave it out for an empty template".into()
        }
        Remedy::MoveOption => {
            "move that line to a group of its own, such as [clientprod] for `mariadb --defaults-group-suffix=prod`"
                .into()
        }
        Remedy::ShutDownSource => "shut its server down cleanly, then try again".into(),
        Remedy::NameCompleteDirectory => "name a complete data directory".into(),
        Remedy::CopyToOnePlace => "copy the data to one directory without links that lead out, and name that".into(),
        Remedy::ReadAsOwner => {
            "run this as the owner of that directory, or name a copy that you may read with --from".into()
        }
        Remedy::ChooseAnotherPort => "choose another port, or leave it out: --tcp alone takes a free one".into(),
        Remedy::ChooseUnprivilegedPort => {
            "choose a port from 1024 on, or leave it out: --tcp alone takes a free one".into()
        }
        Remedy::MakeRuntimeRoots => "make it a directory of root's, which is where root's sockets belong".into(),
        Remedy::ChooseRuntime => {
            "set XDG_RUNTIME_DIR to a directory of your own with a short path, or remove what is in the way".into()
        }
        Remedy::DropStrategy => "leave --strategy out: the best one is then taken".into(),
        Remedy::Sweep => "run `calve db gc`, then try again".into(),
        Remedy::RestartServer(name) => format!("save what you need of it, then stop it: calve db stop {name}"),
        Remedy::NameEngine => format!("name one with --engine: {}", calve_db::engines().join(", ")),
        Remedy::NameOneSource => "name either --from or --base".into(),
        Remedy::CreateAccount(names) => format!("create one of these accounts: {}", names.join(", ")),
        Remedy::ForceStop => {
            "free some space on its disk and try again; `calve down --force` ends it and loses what it could not write".into()
        }
        Remedy::ForceRemoval => "keep the worktree, or lose its data: calve worktree remove --lose-data".into(),
        Remedy::TryAgain => "try again in a moment".into(),
        Remedy::StartThrowaway => "start a server of its own for that: calve db start TEMPLATE".into(),
        other => of_container(other).unwrap_or_else(|| "see `calve db --help`".into()),
    }
}

fn of_container(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::InstallRuntime => "install podman or docker, or name its program with --runtime".into(),
        Remedy::ChooseProgramTemplate => "name a template that was made without --image".into(),
        Remedy::UseLocalServer => {
            "install the database server here (Homebrew, apt) and leave --image out, or use podman or a Docker engine that runs as root on this machine".into()
        }
        Remedy::RemoveVolumes { template, volumes } if volumes.is_empty() => {
            format!("remove it, and make it again from a local server: calve db template remove {template}")
        }
        Remedy::RemoveVolumes { template, volumes } => {
            let volumes = volumes.join(" ");
            format!("remove it, and its data in the engine: calve db template remove {template} && docker volume rm {volumes}")
        }
        Remedy::GrantIds => {
            "as root, give this user subordinate ids: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER".into()
        }
        Remedy::CheckRuntime(runtime) => {
            format!("check that it works without Calve: {} info", runtime.display())
        }
        Remedy::PullImage { runtime, image } => {
            format!("pull it, or name one that is here: {} pull {image}", runtime.display())
        }
        Remedy::ChooseImage => "name an image of that engine for this machine with --image".into(),
        _ => return None,
    })
}

/// Returns the hint of `calve cp`, without the options that `calve db` does not have.
fn engine_hint(remedy: &calve_core::Remedy) -> String {
    use calve_core::Remedy;
    match remedy {
        Remedy::RaiseOpenFiles => "raise the limit of open files (ulimit -n 4096)".into(),
        Remedy::RaiseProcesses => "raise the limit of processes (ulimit -u)".into(),
        Remedy::FreeMemory => "free some memory".into(),
        other => super::core::hint(other),
    }
}

fn is_below_home(path: &Path) -> bool {
    crate::home::directory().is_ok_and(|home| path.starts_with(home))
}
