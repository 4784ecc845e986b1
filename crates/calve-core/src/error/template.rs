use std::path::{Path, PathBuf};

use super::shown_path::ShownPath;
use crate::vocabulary::remedy::Remedy;

/// Why a template cannot be made or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("`{}` is not a valid name for a template: use up to {longest} letters, digits, `-`, `_` and `.`, beginning with a letter or a digit", ShownPath(.name))]
    BadName { name: String, longest: usize },
    #[error("no directory for templates: {0}")]
    NoHome(&'static str),
    #[error("there is no template `{0}`")]
    Unknown(String),
    #[error("the template `{0}` already exists")]
    Exists(String),
    #[error("`{}` is not a directory", ShownPath(.0))]
    NotADirectory(PathBuf),
    #[error("templates are kept in `{}`, which is inside `{}`", ShownPath(.directory), ShownPath(.source_path))]
    DirectoryInsideSource { directory: PathBuf, source_path: PathBuf },
    #[error("`{}` belongs to another user, or others can write to it", ShownPath(.0))]
    NotOwn(PathBuf),
    #[error("the template `{name}` has no files: `{}` is not there", ShownPath(.path))]
    Gone { name: String, path: PathBuf },
    /// The template's `record` says that the file system was mounted at `path`.
    #[error("the files of the template `{name}` are on a file system that is not mounted: `{}`", ShownPath(.path))]
    NotMounted { name: String, path: PathBuf, record: PathBuf },
    /// The path is the first changed entry that was found.
    #[error("the template `{name}` was changed after it was made: `{}`", ShownPath(.path))]
    Changed { name: String, path: PathBuf },
    #[error("the template `{name}` is damaged: `{}` {what}", ShownPath(.path))]
    Damaged { name: String, path: PathBuf, what: &'static str },
    /// The path is the first entry that cannot travel to other machines.
    #[error("the template `{name}` cannot be pushed: `{}` {what}", ShownPath(.path))]
    NotPortable { name: String, path: PathBuf, what: &'static str },
    /// The path is the first entry of the received tree that differs from its manifest.
    #[error("the template `{name}` does not match its manifest: `{}` differs", ShownPath(.path))]
    NotAsSent { name: String, path: PathBuf },
    #[error("the template `{0}` was made, refreshed or removed by another process meanwhile")]
    Superseded(String),
}

impl TemplateError {
    /// Returns the path that the error is about, if any.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::NotADirectory(path)
            | Self::NotOwn(path)
            | Self::DirectoryInsideSource { directory: path, .. }
            | Self::Gone { path, .. }
            | Self::NotMounted { path, .. }
            | Self::Changed { path, .. }
            | Self::Damaged { path, .. }
            | Self::NotPortable { path, .. }
            | Self::NotAsSent { path, .. } => Some(path),
            _ => None,
        }
    }

    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::BadName { .. } => Remedy::ChooseTemplateName,
            Self::NoHome(_) => Remedy::SetHome,
            Self::Unknown(_) => Remedy::ListTemplates,
            Self::Exists(name) => Remedy::RefreshOrRemoveTemplate(name.clone()),
            Self::NotADirectory(_) => Remedy::NameDirectory,
            Self::DirectoryInsideSource { .. } => Remedy::KeepTemplateElsewhere,
            Self::NotOwn(_) => Remedy::CheckPermissions,
            Self::Changed { name, .. } => Remedy::VerifyTemplate(name.clone()),
            Self::NotMounted { path, record, .. } => {
                Remedy::MountPlace { mount_point: path.clone(), record: record.clone() }
            }
            Self::Gone { name, .. } => Remedy::RefreshTemplate(name.clone()),
            Self::Damaged { name, .. } => Remedy::RemoveTemplate(name.clone()),
            Self::NotPortable { .. } => Remedy::LeaveOutOfTemplate,
            Self::NotAsSent { .. } => Remedy::SendTemplateAgain,
            Self::Superseded(_) => Remedy::TryAgain,
        }
    }
}
