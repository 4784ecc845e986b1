//! Advice on which clone is right, and when it stops being right, with the measured numbers behind it.

mod numbers;
mod sentences;

pub use numbers::{Cost, Numbers, RepositoryCosts, Test};
pub use sentences::{Sentence, advise};
