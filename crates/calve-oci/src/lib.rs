//! Templates in OCI registries: `push` sends one as an ordinary image, `pull` receives one.
//!
//! `image` describes a template's image. Nothing from a registry is trusted: hashes of blobs and frames are checked,
//! paths come from a manifest checked line by line, and the tree is compared with that before it gets a name.

mod address;
mod arrivals;
mod assemble;
mod credentials;
mod data;
mod error;
mod fetch;
mod frames;
mod image;
mod layer;
mod manifest;
mod newest;
mod predecessor;
mod pull;
mod push;
mod reference;
mod registry;
mod remedy;
mod revision;
mod send;
mod spool;
mod work;

pub use address::Transport;
pub use credentials::CredentialFiles;
pub use data::{DataDescription, DataImage, DataSource, OldData, ReceivedBytes, push_data};
pub use error::{Error, RegistryRefusal};
pub use pull::{PullReport, origin, pull};
pub use push::{PushedImage, push};
pub use reference::Reference;
pub use registry::RegistryOptions;
pub use remedy::Remedy;
pub use send::PushReport;
