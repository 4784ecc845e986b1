//! Data directories of database servers in registries.
//!
//! The image is an ordinary one, as those of file templates: layers of tar, compressed by zstd, and a last layer that
//! describes the others, here an index of chunks. Each chunk of a file has a frame of its own, and a pull reads nothing
//! else of the tar. Files are cut by their contents, so that a changed page costs a chunk, not a file.

mod cut;
mod description;
mod fetch;
mod index;
mod pull;
mod push;

pub use description::DataDescription;
pub use pull::{DataImage, OldData, ReceivedBytes};
pub use push::{DataSource, push_data};
