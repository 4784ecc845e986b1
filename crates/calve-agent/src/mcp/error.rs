use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("`{}` is not a directory that can be read: {error}", calve_core::internal::ShownPath(.path))]
    NoDirectory { path: PathBuf, error: std::io::Error },
    /// The system refused a thread or a descriptor.
    #[error("the server did not start: {0}")]
    Start(#[from] std::io::Error),
    #[error("the session did not begin: {0}")]
    Session(String),
}
