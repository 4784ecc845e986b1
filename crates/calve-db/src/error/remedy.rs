//! Remedies for errors, in the words of the program, which uses this library.

use std::path::PathBuf;

use calve_core::internal::ShownPath;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error(transparent)]
    Engine(calve_core::error::Remedy),
    #[error("check the path and the disk, then try again")]
    CheckPath,
    #[error("free some space on the file system of `{}`", ShownPath(.0))]
    FreeSpace(PathBuf),
    #[error("check the owner and the mode of `{}`", ShownPath(.0))]
    CheckOwner(PathBuf),
    #[error("restore that file, or use the version that wrote it; to begin without it, move `{}` away", ShownPath(.0))]
    RestoreRecord(PathBuf),
    #[error("set CALVE_HOME to a directory of your own that others may enter")]
    ChooseHome,
    #[error("set CALVE_HOME to a directory with a shorter path")]
    ShortenHome,
    #[error("see `calve db template list`, or create it: calve db template create {0} --engine …")]
    CreateTemplate(String),
    #[error("try again when `calve db template create` has finished")]
    WaitForBuild,
    #[error("create it again: calve db template create {0} --rebuild …")]
    RebuildTemplate(String),
    #[error("pull it again: calve db template pull --name {name} {origin}")]
    PullTemplate { name: String, origin: String },
    #[error(
        "install that version; if its directory is another one, pull it again: calve db template pull --server-bin DIR --name {name} {origin}"
    )]
    PullForVersion { name: String, origin: String },
    #[error("choose another name, remove it with `calve db template remove {0}`, or replace it with `--rebuild`")]
    ReplaceTemplate(String),
    #[error("see `calve db list`")]
    ListServers,
    #[error("choose another name, or stop it: calve db stop {0}")]
    StopServer(String),
    #[error("end it, and try again: `calve down` in its worktree, or `calve db stop {0}` if it is not a service's")]
    EndServer(String),
    #[error("try again, go back to a mark, or stop it: calve db reset {0}")]
    ResetServer(String),
    #[error("read the last lines of its log: calve db logs {0}")]
    ReadLog(String),
    #[error("save what you need of it, then stop it: calve db stop {0}")]
    RestartServer(String),
    #[error("move CALVE_HOME back, or end the server: `calve db stop`, for a service `calve down --force`")]
    MoveHomeBack,
    #[error("start a new server from a template, and stop this one")]
    StartNewServer,
    #[error("make that template again with the service's engine, or give the service another name")]
    NameServiceAnew,
    #[error("install the server, or name its directory with `--server-bin`, or an image with `--image`")]
    InstallServer,
    #[error("install podman or docker, or name its program with `--runtime`")]
    InstallRuntime,
    #[error(
        "install the database server here (Homebrew, apt) and use no image, or use podman or a Docker engine that runs as root on this machine"
    )]
    UseLocalServer,
    #[error(
        "as root, give this user subordinate ids: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"
    )]
    GrantIds,
    #[error("check that it works without Calve: {} info", .0.display())]
    CheckRuntime(PathBuf),
    #[error("pull it, or name one that is here: {} pull {image}", .runtime.display())]
    PullImage { runtime: PathBuf, image: String },
    #[error("name an image of that engine for this machine with `--image`")]
    ChooseImage,
    #[error("install a supported version, or name its directory with `--server-bin`")]
    ChooseSupportedVersion,
    #[error("install that version of the server; name its directory with `--server-bin`, or an image with `--image`")]
    ChooseMatchingVersion,
    #[error("the lines above are the last that it wrote")]
    ReadOutput,
    #[error("check that the server's program runs on this machine")]
    CheckServerProgram,
    #[error("correct the command, and create the template again")]
    CorrectCommand,
    #[error(
        "check where the command connects; make it use DATABASE_URL (REDIS_URL for Redis and Valkey), or leave it out for an empty template"
    )]
    ConnectToServer,
    #[error("move that line to a group of its own, such as [clientprod] for `mariadb --defaults-group-suffix=prod`")]
    MoveOption,
    #[error("mark it, and create the template from the mark: calve db mark {0} NAME, then `--from-mark {0}:NAME`")]
    MarkServer(String),
    #[error("shut its server down cleanly, then try again")]
    ShutDownSource,
    #[error("start its server, run `{0}` there, shut it down cleanly, and try again")]
    PrepareSource(String),
    #[error("name a complete data directory")]
    NameCompleteDirectory,
    #[error("copy the data to one directory without links that lead out, and name that")]
    CopyToOnePlace,
    #[error("drop it first: a mark contains only the server's data directory")]
    DropOutside,
    #[error("run this as the owner of that directory, or name a copy that you may read with `--from`")]
    ReadAsOwner,
    #[error("name a process that runs")]
    NameRunningProcess,
    #[error("choose another port, or name none to get a free one")]
    ChooseAnotherPort,
    #[error("choose a port from 1024 on, or name none to get a free one")]
    ChooseUnprivilegedPort,
    #[error("make root its owner: root keeps its sockets there")]
    MakeRuntimeRoots,
    #[error("set XDG_RUNTIME_DIR to a directory of your own with a short path, or remove what is in the way")]
    ChooseRuntime,
    #[error("leave `--strategy` out: the best one is then taken")]
    DropStrategy,
    #[error("run `calve db gc`, then try again")]
    Sweep,
    #[error("name one with `--engine`")]
    NameEngine,
    #[error("name either `--from` or `--base`")]
    NameOneSource,
    #[error("create one of these accounts: {}", .0.join(", "))]
    CreateAccount(Vec<String>),
    #[error("see `calve db marks {0}`")]
    ListMarks(String),
    #[error("choose another name, or remove it: calve db unmark {server} {mark}")]
    RemoveMark { server: String, mark: String },
    #[error(
        "free some space on its disk and try again; `calve down --force` ends it and loses what it could not write"
    )]
    ForceStop,
    #[error("a client changed its password or users: undo that; `calve down --force` ends a service as it is")]
    RestoreAccess,
    #[error("end it with `calve down --force`, which loses what it cannot write")]
    StopAnyway,
    #[error("keep the worktree, or lose its data: add `--lose-data` to this command")]
    ForceRemoval,
    #[error("try again in a moment")]
    TryAgain,
    #[error("name a template that was made without an image")]
    ChooseProgramTemplate,
    #[error("start a server of its own for that: calve db start TEMPLATE")]
    StartThrowaway,
    #[error("see `calve db --help`")]
    ReadHelp,
}

impl Remedy {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Engine(remedy) => remedy.name(),
            own => own.into(),
        }
    }
}
