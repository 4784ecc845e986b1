//! The report in its forms.

pub(crate) mod html;
pub(crate) mod hyperfine;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod plot;
