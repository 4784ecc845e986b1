use std::path::PathBuf;

/// Why the server ended that was not asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("`{}` is not a directory that can be read: {error}", calve_core::internal::ShownPath(.path))]
    NoDirectory { path: PathBuf, error: std::io::Error },
    /// The system gave no thread or descriptor.
    #[error("the server did not start: {0}")]
    Start(#[from] std::io::Error),
    #[error("the session did not begin: {0}")]
    Session(String),
}
