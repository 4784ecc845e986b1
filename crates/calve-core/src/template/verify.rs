//! Verifies a template by reading all of it.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use strum::{Display, VariantNames};

use super::manifest::{HEAD, Line, Manifest, lines_after, shown};
use super::record::{FrozenState, Stamp, Template};
use super::store::{frozen_state, open_tree, persist_change_time};
use super::templates::Templates;
use super::{read, store};
use crate::error::Error;
use crate::json::{As, Milliseconds, ReceiptPath, Text};
use crate::progress::CancelToken;
use crate::tree::stable::Moment;
use crate::tree::walk::reason;

/// The result of [`Templates::verify`].
#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "calve.template.verify/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(description = "The report of `calve template verify`."))]
pub struct Verification {
    /// The name.
    pub name: String,
    /// The key.
    pub key: String,
    /// The number of entries that the template should have.
    pub entries: u64,
    /// The entries that differ from the manifest.
    // By path.
    pub differences: Vec<Difference>,
    /// The time that it took in milliseconds.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

/// An entry that is not as the manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "TemplateDifference")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The path below the root.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// How it differs.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = DifferenceKind::VARIANTS)))]
    pub code: DifferenceKind,
    /// The keywords of the manifest whose values differ, if it was changed.
    pub keywords: Vec<String>,
    /// Why it cannot be read. Null if it can.
    pub reason: Option<&'static str>,
}

/// How an entry differs from the manifest. Displayed, it is its stable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum DifferenceKind {
    /// It is not there.
    Missing,
    /// It was not there.
    Added,
    /// It cannot be read.
    Unreadable,
    /// Some keywords of the manifest have another value.
    Changed,
}

impl Difference {
    fn new(path: &[u8], code: DifferenceKind) -> Self {
        Self { path: shown(path), code, keywords: Vec::new(), reason: None }
    }
}

impl Templates {
    /// Reads a whole template and compares it with the manifest. If nothing differs, earlier change times no longer
    /// make its clones fail (a restored backup looks changed).
    ///
    /// # Errors
    /// Fails with [`crate::error::TemplateError`]: `Gone`, or `Damaged` if the manifest is not the one written.
    pub fn verify(&self, name: &str, cancel: &CancelToken) -> Result<Verification, Error> {
        let begin = Instant::now();
        let template = self.find(name)?;
        let lock = self.store.hold(&template.version)?;
        let gone = || self.store.missing(&template);
        let _lock = lock.ok_or_else(gone)?;
        store::open_own(&template.versions_directory())?.ok_or_else(gone)?;
        store::stat_of(&template.tree)?.ok_or_else(gone)?;
        let written = store::read_manifest(&template)?;
        let root = open_tree(&template.tree)?;
        // Another process may have verified it just now.
        if Stamp::new(&store::stat(root.as_fd(), &template.tree)?) != self.find(name)?.frozen.root {
            // A changed template cannot be cloned, so this disturbs no clone. It fails on a read-only file system.
            let _ = persist_change_time(root.as_fd(), &template.tree);
        }
        let [moment, _] = Moment::tick(&store::stat(root.as_fd(), &template.tree)?);
        let found = read::read(root.as_fd(), None, None, cancel)?;
        let now = Manifest::new(found.entries);
        let mut differences = Vec::new();
        if now.text != written {
            differences = compare(&written, &now.text).ok_or_else(|| store::other_manifest(&template))?;
        }
        for (path, errno) in found.unreadable {
            let unreadable = Difference::new(path.as_os_str().as_bytes(), DifferenceKind::Unreadable);
            differences.retain(|difference| difference.path != unreadable.path);
            differences.push(Difference { reason: Some(reason(errno).text()), ..unreadable });
        }
        differences.sort_by(|a, b| a.path.cmp(&b.path));
        if differences.is_empty() {
            self.freeze_again(&template, found.latest, moment)?;
        }
        let Template { name, key, entries, .. } = template;
        Ok(Verification { name, key, entries, differences, elapsed: begin.elapsed() })
    }

    /// Records that nothing changed until `moment`, as a full read has found, unless the record still says enough: a
    /// read-only file system can be verified. `latest` is the latest change of an entry.
    fn freeze_again(&self, template: &Template, latest: Option<Moment>, moment: Moment) -> Result<(), Error> {
        let frozen = frozen_state(&template.tree, &template.manifest, template.frozen.moment)?;
        if frozen == template.frozen && latest <= Some(frozen.moment) {
            return Ok(());
        }
        let frozen = FrozenState { moment: latest.map_or(moment, |latest| latest.max(moment)), ..frozen };
        let records = self.store.lock()?;
        if self.find(&template.name)?.version == template.version {
            records.write(&Template { frozen, ..template.clone() })?;
        }
        Ok(())
    }
}

/// Compares two manifests, in no particular order. `None` if one cannot be parsed.
fn compare(written: &str, now: &str) -> Option<Vec<Difference>> {
    let now = lines_after(HEAD, now)?.map(|line| line.map(|line| (line.path, line.keywords)));
    let mut now: HashMap<Vec<u8>, &str> = now.collect::<Option<_>>()?;
    let mut differences = Vec::new();
    for line in lines_after(HEAD, written)? {
        let Line { path, keywords } = line?;
        match now.remove(&path) {
            None => differences.push(Difference::new(&path, DifferenceKind::Missing)),
            Some(found) if found == keywords => {}
            Some(found) => differences.push(Difference {
                keywords: changed(keywords, found),
                ..Difference::new(&path, DifferenceKind::Changed)
            }),
        }
    }
    differences.extend(now.keys().map(|path| Difference::new(path, DifferenceKind::Added)));
    Some(differences)
}

fn changed(old: &str, new: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (these, others) in [(old, new), (new, old)] {
        for keyword in these.split(' ').filter(|keyword| !others.split(' ').any(|other| other == *keyword)) {
            let name = keyword.split('=').next().unwrap_or_default().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
