//! Remedies for errors. The program has its own words for those that one of its commands or options offers.

use std::path::PathBuf;

use calve_core::internal::ShownPath;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error(transparent)]
    #[strum(transparent)]
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
    #[error("create it first")]
    CreateTemplate(String),
    #[error("try again when it is complete")]
    WaitForBuild,
    #[error("create it again")]
    RebuildTemplate(String),
    #[error("pull it again")]
    PullTemplate { name: String, origin: String },
    #[error("install that version; if its directory is another one, pull it again")]
    PullForVersion { name: String, origin: String },
    #[error("choose another name, remove it, or replace it")]
    ReplaceTemplate(String),
    #[error("check the name of the server")]
    ListServers,
    #[error("choose another name, or stop it")]
    StopServer(String),
    #[error("end it, and try again")]
    EndServer(String),
    #[error("try again, go back to a mark, or stop it")]
    ResetServer(String),
    #[error("read the last lines of its log")]
    ReadLog(String),
    #[error("save what you need of it, then stop it")]
    RestartServer(String),
    #[error("move CALVE_HOME back, or end the server")]
    MoveHomeBack,
    #[error("start a new server from a template, and stop this one")]
    StartNewServer,
    #[error("make that template again with the service's engine, or give the service another name")]
    NameServiceAnew,
    #[error("install the server, or name its directory, or an image")]
    InstallServer,
    #[error("install podman or docker, or name its program")]
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
    #[error("name an image of that engine for this machine")]
    ChooseImage,
    #[error("install a supported version, or name its directory")]
    ChooseSupportedVersion,
    #[error("install that version of the server; name its directory, or an image")]
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
    #[error("mark it, and create the template from the mark")]
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
    #[error("run this as the owner of that directory, or name a copy that you may read")]
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
    #[error("leave the strategy out: the best one is then taken")]
    DropStrategy,
    #[error("try again when what it left has been cleaned up")]
    Sweep,
    #[error("name one")]
    NameEngine,
    #[error("name either a data directory or a base")]
    NameOneSource,
    #[error("create one of these accounts: {}", .0.join(", "))]
    CreateAccount(Vec<String>),
    #[error("check the name of the mark")]
    ListMarks(String),
    #[error("choose another name, or remove it")]
    RemoveMark { server: String, mark: String },
    #[error("free some space on its disk and try again")]
    ForceStop,
    #[error("a client changed its password or users: undo that")]
    RestoreAccess,
    #[error("end it by force, which loses what it cannot write")]
    StopAnyway,
    #[error("keep the worktree, or lose its data")]
    ForceRemoval,
    #[error("try again in a moment")]
    TryAgain,
    #[error("name a template that was made without an image")]
    ChooseProgramTemplate,
    #[error("start a server of its own for that")]
    StartThrowaway,
    #[error("correct the request")]
    ReadHelp,
}
