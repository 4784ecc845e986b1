//! Templates: directories kept unmodified, to clone from. docs/registry-format.md describes the manifest.

mod arrivals;
mod create;
pub(crate) mod delta;
mod manifest;
pub(crate) mod name;
#[expect(missing_docs, reason = "only crates of this workspace use it")]
pub(crate) mod portable;
mod read;
pub(crate) mod receive;
mod record;
mod store;
pub(crate) mod templates;
mod verify;

pub use create::{CreatedTemplate, TemplateOptions};
pub use name::{LONGEST_TEMPLATE_NAME, is_template_name, template_name};
pub use record::Template;
pub use store::SweptTemplates;
pub use templates::{HeldTemplate, ListedTemplate, Templates};
pub use verify::{Difference, DifferenceKind, Verification};
