use calve_core::error::TemplateError;
use calve_core::report::{SkippedEntry, Warning};
use calve_core::template::Template;
use calve_core::{Error, Refusal};
use schemars::JsonSchema;
use serde::Serialize;
use strum::VariantNames;

use crate::values::{Milliseconds, ReceiptPath};

/// The report of `calve template create` and `calve template refresh`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.template.create/1")]
pub struct TemplateCreateReceipt<'a> {
    #[serde(flatten)]
    pub template: &'a Template,
    /// The better strategies that were not used.
    pub refused: &'a [Refusal],
    /// Entries that were left out, with the reasons.
    pub skipped: &'a [SkippedEntry],
    /// Entries of the source that changed meanwhile.
    pub changed: Vec<ReceiptPath>,
    /// Other facts that the user should know.
    pub warnings: &'a [Warning],
    /// The time that the frozen clone took in milliseconds.
    pub clone_ms: Milliseconds,
    /// The time that everything took in milliseconds.
    pub elapsed_ms: Milliseconds,
}

/// The result of a template's cheap check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TemplateState {
    Ready,
    /// Its files are missing.
    Gone,
    /// Its files are on a file system that is not mounted.
    Unmounted,
    /// Its root or its manifest has changed.
    Changed,
    /// Its record is unreadable, or another user could write to its files.
    Damaged,
}

impl TemplateState {
    pub fn from_check(checked: &Result<(), Error>) -> Self {
        match checked {
            Ok(()) => Self::Ready,
            Err(Error::Template(TemplateError::Gone { .. })) => Self::Gone,
            Err(Error::Template(TemplateError::NotMounted { .. })) => Self::Unmounted,
            Err(Error::Template(TemplateError::Changed { .. })) => Self::Changed,
            Err(_) => Self::Damaged,
        }
    }
}

/// The report of `calve template show`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.template/1")]
pub struct TemplateReceipt<'a> {
    #[serde(flatten)]
    pub template: &'a Template,
    /// Whether it can be cloned.
    #[schemars(with = "String", extend("enum" = TemplateState::VARIANTS))]
    pub state: TemplateState,
}

/// The report of `calve template list`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.templates/1")]
pub struct TemplatesReceipt {
    /// The templates by name.
    pub templates: Vec<ListedTemplate>,
}

/// A template of the list.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ListedTemplate {
    /// The name.
    pub name: String,
    /// Whether it can be cloned.
    #[schemars(with = "String", extend("enum" = TemplateState::VARIANTS))]
    pub state: TemplateState,
    /// The known facts of it. Null if its record cannot be read.
    pub template: Option<Template>,
}

/// The report of `calve template remove`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.template.remove/1")]
pub struct TemplateRemoveReceipt {
    /// The names that are free now.
    pub names: Vec<String>,
}

/// The common fields of the reports of `calve template push` and `calve db template push`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PushFields {
    /// The name of the template.
    pub name: String,
    /// The image, with the tag.
    pub reference: String,
    /// The digest of the image.
    pub digest: String,
    /// The number of layers.
    pub layers: u64,
    /// The number of layers that the image under the tag had already, if the push has added a delta to it; else 0.
    pub kept_layers: u64,
    /// The size of what was sent.
    pub sent_bytes: u64,
    /// The size of the image.
    pub image_bytes: u64,
    /// The time that everything took in milliseconds.
    pub elapsed_ms: Milliseconds,
}

/// The common fields of the reports of `calve template pull` and `calve db template pull`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct PullFields {
    /// The image, with the tag.
    pub reference: String,
    /// The digest of the image.
    pub digest: String,
    /// The size of what was fetched.
    pub fetched_bytes: u64,
    /// The size of what was taken from the version that was here before.
    pub reused_bytes: u64,
    /// True if the template was here as it is in the registry, so that nothing was made.
    pub up_to_date: bool,
    /// The time that everything took in milliseconds.
    pub elapsed_ms: Milliseconds,
}

/// The report of `calve template push`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.template.push/1")]
pub struct TemplatePushReceipt {
    #[serde(flatten)]
    pub push: PushFields,
    /// The BLAKE3 hash of the manifest without owners. Equal templates have the same on every machine.
    pub portable_key: String,
}

/// The report of `calve template pull`.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.template.pull/1")]
pub struct TemplatePullReceipt<'a> {
    #[serde(flatten)]
    pub template: &'a Template,
    #[serde(flatten)]
    pub pull: PullFields,
    /// The BLAKE3 hash of the manifest without owners. Equal templates have the same on every machine.
    pub portable_key: String,
}
