//! References from a copy into its source: each kind, and what an audit must not do.

mod contents;
mod hostile;
mod links;
mod options;

use std::path::{Path, PathBuf};

use calve_git::escape::{Action, AuditOptions, AuditReport, Finding, Fix, ReferenceKind, audit};
use calve_testkit::{Tree, fingerprint};

/// A tree and a copy of it, side by side.
pub(crate) struct Pair {
    folder: tempfile::TempDir,
    old: &'static str,
    new: &'static str,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::at("main", "main.feature")
    }

    /// With names of their own.
    pub(crate) fn at(old: &'static str, new: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pair = Self { folder, old, new };
        for tree in [pair.old(), pair.new_tree()] {
            fs_err::create_dir_all(tree).unwrap();
        }
        pair
    }

    pub(crate) fn folder(&self) -> PathBuf {
        fs_err::canonicalize(self.folder.path()).unwrap()
    }

    pub(crate) fn old(&self) -> PathBuf {
        self.folder().join(self.old)
    }

    pub(crate) fn new_tree(&self) -> PathBuf {
        self.folder().join(self.new)
    }

    /// The same file in both trees; `{old}` and `{new}` stand for their paths.
    pub(crate) fn file(&self, path: &str, contents: &str) -> &Self {
        let contents = self.spelled(contents);
        for tree in [self.old(), self.new_tree()] {
            Tree::new(tree).file(path, contents.as_bytes());
        }
        self
    }

    /// The same symlink in both.
    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        for tree in [self.old(), self.new_tree()] {
            let link = tree.join(path);
            fs_err::create_dir_all(link.parent().unwrap()).unwrap();
            fs_err::os::unix::fs::symlink(self.spelled(target), link).unwrap();
        }
        self
    }

    pub(crate) fn spelled(&self, text: &str) -> String {
        let (old, new) = (self.old().display().to_string(), self.new_tree().display().to_string());
        text.replace("{old}", &old).replace("{new}", &new)
    }

    #[track_caller]
    pub(crate) fn has(&self, path: &str, contents: &str) {
        let found = fs_err::read_to_string(self.new_tree().join(path)).unwrap();
        assert_eq!(found, self.spelled(contents), "{path}");
    }

    #[track_caller]
    pub(crate) fn leads(&self, path: &str, target: &str) {
        let found = fs_err::read_link(self.new_tree().join(path)).unwrap();
        assert_eq!(found, Path::new(&self.spelled(target)), "{path}");
    }

    pub(crate) fn audited(&self, options: &AuditOptions) -> AuditReport {
        audit(&self.new_tree(), &self.old(), options).unwrap()
    }

    /// Returns what an audit finds and does. It says the same before it does it, and finds only what it left when it is done; and the old
    /// tree stays as it is.
    #[track_caller]
    pub(crate) fn fixed(&self) -> Vec<Finding> {
        let before = fingerprint(self.old());
        let copy = fingerprint(self.new_tree());
        let said = self.audited(&AuditOptions::default());
        copy.assert_unchanged(self.new_tree());
        let did = self.audited(&fixing());
        let outline = |report: &AuditReport| -> Vec<_> {
            report.findings.iter().map(|found| (found.kind, found.path.clone(), found.action)).collect()
        };
        assert_eq!(outline(&said), outline(&did));
        let left: Vec<_> = outline(&did).into_iter().filter(|(_, _, action)| *action == Action::Reported).collect();
        assert_eq!(outline(&self.audited(&fixing())), left, "found again");
        before.assert_unchanged(self.old());
        did.findings
    }
}

pub(crate) fn fixing() -> AuditOptions {
    let mut options = AuditOptions::default();
    options.fix = Fix::Yes;
    options
}

/// Kind, path and action of each.
pub(crate) fn outline(findings: &[Finding]) -> Vec<(ReferenceKind, &str, Action)> {
    findings.iter().map(|found| (found.kind, found.path.to_str().unwrap(), found.action)).collect()
}
