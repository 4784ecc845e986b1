//! Remedies for errors. The program has its own words for those that one of its commands or options offers.

use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error(transparent)]
    #[strum(transparent)]
    Core(calve_core::error::Remedy),
    #[error("name the image in full, such as ghcr.io/team/deps:main")]
    NameImage,
    #[error("name only the tag of an image in the same repository, such as `main`")]
    NameTag,
    #[error("leave out plain HTTP; it is for a registry on this machine, such as 127.0.0.1:5000")]
    UseEncryption,
    #[error("log in with an account that may: `docker login {0}` or `podman login {0}`")]
    LogIn(String),
    #[error("correct {0}, or unset it to trust the system's certificates")]
    NameCertificates(&'static str),
    #[error("check the names of the repository and the tag")]
    CheckImage,
    #[error("try again later")]
    TryLater,
    #[error(
        "check the name and the port of the registry, and the network; a registry on this machine without encryption needs plain HTTP"
    )]
    CheckNetwork,
    #[error("look at the log of the registry, or of a proxy in front of it")]
    AskRegistry,
    #[error(
        "look at the log of the registry, or of a proxy in front of it; if the image is damaged, delete it and its layers there, and push it again"
    )]
    ReplaceImage,
    #[error("push a template there first")]
    PushTemplate,
    #[error("pull it as a template of a database")]
    PullDatabase,
    #[error("pull it as a template of files")]
    PullFiles,
    #[error("create the template, then push it with a key of the same files in the same order")]
    PushWithKey,
    #[error("create the template, then push it with a key of the same files in the same order")]
    PushDatabaseWithKey,
    #[error("make the template again without it")]
    RemakeWithoutEntry,
    #[error("make a template with less data")]
    RemakeSmaller,
    #[error("pull it under another name")]
    PullUnderAnotherName,
    #[error("free some space there, or keep the template elsewhere")]
    FreeSpace,
    #[error("check the owner and mode of the path above, and the limits of your session (ulimit -a)")]
    CheckSystem,
}
