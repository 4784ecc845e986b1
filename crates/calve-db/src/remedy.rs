//! Remedies against errors: names and values, which the program words for its users.

use std::path::PathBuf;

use strum::IntoStaticStr;

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// A remedy of the clone engine.
    Engine(calve_core::Remedy),
    /// Check the path and the disk, and try again.
    CheckPath,
    /// Free space on the file system of this path.
    FreeSpace(PathBuf),
    /// Check the owner and the mode of this path.
    CheckOwner(PathBuf),
    /// Keep templates and servers in another directory, which the accounts of servers can enter.
    ChooseHome,
    /// List the templates, or create this one.
    CreateTemplate(String),
    /// Try again when the template is built.
    WaitForBuild,
    /// Create this template again.
    RebuildTemplate(String),
    /// Choose another name for the template, remove it, or permit that it is replaced.
    ReplaceTemplate(String),
    ListServers,
    /// Choose another name for the server, or stop the one of this name.
    StopServer(String),
    /// Reset this server, to its template or to a mark, or stop it.
    ResetServer(String),
    /// Read the log of this server.
    ReadLog(String),
    /// Look at what this server has, then stop it and start it again.
    RestartServer(String),
    /// Start a new server from the template, and stop the old one.
    StartNewServer,
    /// Install the server, or name its directory.
    InstallServer,
    /// Install podman or docker, or name the program.
    InstallRuntime,
    /// Install the database server on this machine, or use a runtime whose containers share its files and users.
    UseLocalServer,
    /// Remove this template, and the volumes that an earlier build has made for it.
    RemoveVolumes {
        template: String,
        /// The volumes' names, as far as they are known.
        volumes: Vec<String>,
    },
    /// Give this user subordinate ids.
    GrantIds,
    /// Check that this program runs containers for this user.
    CheckRuntime(PathBuf),
    /// Pull the image, or name one that is here.
    PullImage {
        /// The program that pulls it.
        runtime: PathBuf,
        image: String,
    },
    /// Name an image of the engine, for this machine.
    ChooseImage,
    /// Name a server program of a supported version.
    ChooseSupportedVersion,
    /// Name the server program of the version that made the data directory.
    ChooseMatchingVersion,
    /// Read the lines of output that the error quotes.
    ReadOutput,
    /// Check that the server's program runs on this machine.
    CheckServerProgram,
    /// Correct the command that fills the template.
    CorrectCommand,
    /// Make the command connect to its server, or leave it out.
    ConnectToServer,
    /// Move the line to a group of options that is used on request only.
    MoveOption,
    /// Shut down the server of the data directory.
    ShutDownSource,
    /// Name a complete data directory.
    NameCompleteDirectory,
    /// Copy what is outside of the data directory into it.
    CopyToOnePlace,
    /// Read the data directory as its owner, or name a copy.
    ReadAsOwner,
    /// Choose another port, or none.
    ChooseAnotherPort,
    /// Choose a port that needs no privilege, or none.
    ChooseUnprivilegedPort,
    /// Make the directory for sockets root's own.
    MakeRuntimeRoots,
    /// Choose another directory for sockets, with a short path.
    ChooseRuntime,
    /// Let Calve choose the strategy.
    DropStrategy,
    /// Sweep, and try again.
    Sweep,
    NameEngine,
    /// Name a data directory or a base template, not both.
    NameOneSource,
    /// Create an account for servers, one of these.
    CreateAccount(Vec<String>),
    /// Look at the marks of this server.
    ListMarks(String),
    /// Choose another name, or remove the mark.
    RemoveMark {
        server: String,
        mark: String,
    },
    /// Give the server room for its data, or end it without what it could not write.
    ForceStop,
    /// Keep the worktree, or remove it with its data.
    ForceRemoval,
    /// Wait a moment, and try again.
    TryAgain,
    /// Name a template whose server program is on this machine.
    ChooseProgramTemplate,
    /// Use a server whose data goes with it.
    StartThrowaway,
    /// Read the help of the command.
    ReadHelp,
}

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Engine(remedy) => remedy.name(),
            own => own.into(),
        }
    }
}
