//! Remedies against errors, as values without words.

use strum::IntoStaticStr;

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// A remedy against an error of the engine.
    Core(calve_core::Remedy),
    /// Name the image in full.
    NameImage,
    /// Leave out the option for a registry without encryption.
    UseEncryption,
    /// Log in to this registry.
    LogIn(String),
    /// Check the names of the repository and the tag.
    CheckImage,
    TryLater,
    /// Check the name of the registry and the network.
    CheckNetwork,
    /// Look into what the registry, or what is between, says.
    AskRegistry,
    /// Push a template there first.
    PushTemplate,
    /// Pull it as the template of a database that it is.
    PullDatabase,
    /// Pull it as the template of files that it is.
    PullFiles,
    /// Make a template for these files, and push it with the key made of them.
    PushWithKey,
    /// Make the template again without the file that cannot travel.
    RemakeWithoutEntry,
    /// Make the template again with less data.
    RemakeSmaller,
    PullUnderAnotherName,
    /// Free space where templates are kept.
    FreeSpace,
    /// Check what the system says.
    CheckSystem,
}

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Core(remedy) => remedy.name(),
            own => own.into(),
        }
    }
}
