//! Templates of directories.

use std::time::UNIX_EPOCH;

use calve_core::{CreatedTemplate, DifferenceKind, Error, Template, TemplateError, Verification};
use serde::Serialize;

use crate::values::{Milliseconds, ReceiptPath, Refusal, SkippedEntry, StrategyName, Warning};
use crate::values::{path, paths, refusals, skipped, warnings};

/// A template.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TemplateFields {
    /// The name.
    name: String,
    /// The BLAKE3 hash of the manifest in hexadecimal digits. Templates of equal trees have the same key.
    key: String,
    /// The directory that the template was made of.
    source: ReceiptPath,
    /// The patterns of the entries that were left out.
    exclude: Vec<String>,
    /// The frozen clone.
    tree: ReceiptPath,
    /// The manifest.
    manifest: ReceiptPath,
    /// The number of entries, with the root.
    entries: u64,
    /// The sum of the files' sizes.
    bytes: u64,
    /// When the template was made, in seconds since 1970.
    created_unix_s: u64,
    /// The strategy that made the frozen clone.
    strategy: StrategyName,
}

impl From<&Template> for TemplateFields {
    fn from(template: &Template) -> Self {
        Self {
            name: template.name.clone(),
            key: template.key.clone(),
            source: path(&template.source),
            exclude: template.exclude.clone(),
            tree: path(&template.tree),
            manifest: path(template.manifest()),
            entries: template.entries,
            bytes: template.bytes,
            created_unix_s: template.created.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            strategy: template.strategy.into(),
        }
    }
}

/// The report of `calve template create` and `calve template refresh`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template.create/1")]
pub struct TemplateCreateReceipt {
    /// The template.
    #[serde(flatten)]
    template: TemplateFields,
    /// The better strategies that were not used.
    refused: Vec<Refusal>,
    /// Entries that were left out, with the reasons.
    skipped: Vec<SkippedEntry>,
    /// Entries of the source that changed meanwhile.
    changed: Vec<ReceiptPath>,
    /// Other facts that the user should know.
    warnings: Vec<Warning>,
    /// The time that the frozen clone took in milliseconds.
    clone_ms: Milliseconds,
    /// The time that everything took in milliseconds.
    elapsed_ms: Milliseconds,
}

impl TemplateCreateReceipt {
    /// Converts the report of a template that took `elapsed`.
    pub fn new(created: &CreatedTemplate, elapsed: std::time::Duration) -> Self {
        Self {
            template: (&created.template).into(),
            refused: refusals(&created.clone.refused),
            skipped: skipped(&created.clone.skipped),
            changed: paths(&created.clone.changed),
            warnings: warnings(&created.clone.warnings),
            clone_ms: created.clone.elapsed.into(),
            elapsed_ms: elapsed.into(),
        }
    }
}

/// Whether a template can be cloned, found at little cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateState {
    /// It can be cloned.
    Ready,
    /// Its files are not there.
    Gone,
    /// Its root or its manifest was changed.
    Changed,
    /// Its record cannot be read, or another user could write to its files.
    Damaged,
}

impl TemplateState {
    #[cfg(test)]
    const NAMES: [&'static str; 4] = ["ready", "gone", "changed", "damaged"];

    /// Returns the state that the result of the cheap check stands for.
    pub fn of(checked: &Result<(), Error>) -> Self {
        match checked {
            Ok(()) => Self::Ready,
            Err(Error::Template(TemplateError::Gone { .. })) => Self::Gone,
            Err(Error::Template(TemplateError::Changed { .. })) => Self::Changed,
            Err(_) => Self::Damaged,
        }
    }

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Damaged => "damaged",
        }
    }
}

/// The report of `calve template show`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template/1")]
pub struct TemplateReceipt {
    /// The template.
    #[serde(flatten)]
    template: TemplateFields,
    /// Whether it can be cloned.
    #[cfg_attr(test, schemars(extend("enum" = TemplateState::NAMES)))]
    state: &'static str,
}

impl TemplateReceipt {
    /// Converts a template and the result of the cheap check.
    pub fn new(template: &Template, state: TemplateState) -> Self {
        Self { template: template.into(), state: state.name() }
    }
}

/// The report of `calve template list`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.templates/1")]
pub struct TemplatesReceipt {
    /// The templates by name.
    templates: Vec<ListedTemplate>,
}

/// A template of the list.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ListedTemplate {
    /// The name.
    name: String,
    /// Whether it can be cloned.
    #[cfg_attr(test, schemars(extend("enum" = TemplateState::NAMES)))]
    state: &'static str,
    /// The known facts of it. Null if its record cannot be read.
    template: Option<TemplateFields>,
}

impl<'t> FromIterator<(&'t str, TemplateState, Option<&'t Template>)> for TemplatesReceipt {
    fn from_iter<I: IntoIterator<Item = (&'t str, TemplateState, Option<&'t Template>)>>(listed: I) -> Self {
        let one = |(name, state, template): (&str, TemplateState, Option<&Template>)| ListedTemplate {
            name: name.into(),
            state: state.name(),
            template: template.map(Into::into),
        };
        Self { templates: listed.into_iter().map(one).collect() }
    }
}

/// The report of `calve template verify`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template.verify/1")]
pub struct TemplateVerifyReceipt {
    /// The name.
    name: String,
    /// The key.
    key: String,
    /// The number of entries that the template should have.
    entries: u64,
    /// The entries that differ from the manifest.
    differences: Vec<TemplateDifference>,
    /// The time that it took in milliseconds.
    elapsed_ms: Milliseconds,
}

/// An entry that is not as the manifest says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TemplateDifference {
    /// The path below the root.
    path: ReceiptPath,
    /// How it differs.
    #[cfg_attr(test, schemars(extend("enum" = ["missing", "added", "unreadable", "changed"])))]
    code: &'static str,
    /// The keywords of the manifest whose values differ, if it was changed.
    keywords: Vec<String>,
    /// Why it cannot be read. Null if it can.
    reason: Option<String>,
}

impl TemplateVerifyReceipt {
    /// Converts the result of a verification that took `elapsed`.
    pub fn new(verification: &Verification, elapsed: std::time::Duration) -> Self {
        let differences = verification.differences.iter().map(|difference| TemplateDifference {
            path: path(&difference.path),
            code: difference.what.code(),
            keywords: match &difference.what {
                DifferenceKind::Changed(keywords) => keywords.clone(),
                _ => Vec::new(),
            },
            reason: match difference.what {
                DifferenceKind::Unreadable(reason) => Some(reason.into()),
                _ => None,
            },
        });
        Self {
            name: verification.template.name.clone(),
            key: verification.template.key.clone(),
            entries: verification.entries,
            differences: differences.collect(),
            elapsed_ms: elapsed.into(),
        }
    }
}

/// The report of `calve template remove`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template.remove/1")]
pub struct TemplateRemoveReceipt {
    /// The names that are free now.
    pub names: Vec<String>,
}

/// The common fields of the reports of `calve template push` and `calve db template push`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template.push/1")]
pub struct TemplatePushReceipt {
    /// The template and the image.
    #[serde(flatten)]
    pub push: PushFields,
    /// The BLAKE3 hash of the manifest without owners. Equal templates have the same on every machine.
    pub portable_key: String,
}

/// The report of `calve template pull`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.template.pull/1")]
pub struct TemplatePullReceipt {
    /// The template.
    #[serde(flatten)]
    template: TemplateFields,
    /// The image.
    #[serde(flatten)]
    pull: PullFields,
    /// The BLAKE3 hash of the manifest without owners. Equal templates have the same on every machine.
    portable_key: String,
}

impl TemplatePullReceipt {
    /// Converts a template that was pulled.
    pub fn new(template: &Template, pull: PullFields, portable_key: String) -> Self {
        Self { template: template.into(), pull, portable_key }
    }
}
