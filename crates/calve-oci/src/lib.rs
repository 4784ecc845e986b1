//! Templates in OCI registries: `push` sends one as an ordinary image, `pull` receives one.
//!
//! `image` says what an image of a template consists of. Nothing that a registry sends is trusted: the digest of each blob is checked before it
//! is decompressed, paths come from a manifest that is checked line by line, and the tree is compared with that before it gets a name.

#[cfg(unix)]
mod assemble;
mod credentials;
mod error;
#[cfg(unix)]
mod image;
#[cfg(unix)]
mod layer;
#[cfg(unix)]
mod pull;
#[cfg(unix)]
mod push;
mod reference;
#[cfg(unix)]
mod registry;
mod remedy;
#[cfg(unix)]
mod spool;
#[cfg(unix)]
mod work;

pub use credentials::CredentialFiles;
pub use error::{Error, Refusal};
#[cfg(unix)]
pub use pull::{PullOptions, Pulled, origin, pull};
#[cfg(unix)]
pub use push::{PushOptions, Pushed, push};
pub use reference::{Reference, Transport};
pub use remedy::Remedy;
