//! The shape of a repository, in the words of git-sizer, which counts it when it is installed.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use calve_receipt::bench::RepositoryShape;
use serde_json::Value;

use super::clients::Clients;
use crate::error::BenchError;
use calve_receipt::human::{count, size};

/// The numbers, by git-sizer's names for them, and some of the branch's newest commit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) numbers: RepositoryShape,
    /// The regular files of a checkout.
    pub(crate) checkout_files: u64,
    pub(crate) checkout_bytes: u64,
}

impl Shape {
    pub(super) fn of(clients: &Clients<'_>, repository: &Path, branch: &str) -> Result<Self, BenchError> {
        let (counted_by, mut numbers) = match by_git_sizer(clients, repository)? {
            Some(numbers) => ("git-sizer", numbers),
            None => ("calve", by_counting(clients, repository)?),
        };
        let checkout = Checkout::of(clients, repository, branch)?;
        for (name, number) in [
            ("checkout_files", checkout.files),
            ("checkout_bytes", checkout.bytes),
            ("checkout_max_path_depth", checkout.depth),
            ("pack_bytes", super::repository::pack_bytes(repository)),
        ] {
            numbers.insert(name.into(), number);
        }
        let numbers = RepositoryShape { counted_by, numbers };
        Ok(Self { numbers, checkout_files: checkout.files, checkout_bytes: checkout.bytes })
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers.numbers.get(name).copied().unwrap_or(0)
    }

    /// Describes the shape for one line of a report.
    pub(crate) fn in_words(&self) -> String {
        let number = |name| count(self.number(name));
        format!(
            "{} commits, {} trees, {} blobs, {} packed; the largest blob {}; {} deep; a checkout has {} files with {}",
            number("unique_commit_count"),
            number("unique_tree_count"),
            number("unique_blob_count"),
            size(self.number("pack_bytes")),
            size(self.number("max_blob_size")),
            number("max_history_depth"),
            count(self.checkout_files),
            size(self.checkout_bytes),
        )
    }
}

fn by_git_sizer(clients: &Clients<'_>, repository: &Path) -> Result<Option<BTreeMap<String, u64>>, BenchError> {
    let mut command = Command::new("git-sizer");
    command.args(["--json", "--json-version=1", "--no-progress"]).current_dir(repository).stdin(Stdio::null());
    let Ok(ran) = clients.run(&mut command) else { return Ok(None) };
    let document: Option<Value> = serde_json::from_slice(&ran.stdout).ok();
    let numbers = document.as_ref().and_then(Value::as_object).filter(|_| ran.is_success());
    Ok(numbers.map(|all| all.iter().filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect()))
}

/// Returns the numbers that need no tree to be read.
fn by_counting(clients: &Clients<'_>, repository: &Path) -> Result<BTreeMap<String, u64>, BenchError> {
    let mut numbers = BTreeMap::new();
    let mut add = |name: String, number: u64| {
        numbers.insert(name, number);
    };
    let mut command = clients.git(repository, None);
    command.args(["cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectsize)"]);
    let objects = clients.output(&mut command, "counting the objects")?;
    let mut kinds: HashMap<&str, (u64, u64, u64)> = HashMap::new();
    let text = String::from_utf8_lossy(&objects);
    for (kind, size) in text.lines().filter_map(|line| line.split_once(' ')) {
        let size = size.parse().unwrap_or(0);
        let (number, bytes, most) = kinds.entry(kind).or_default();
        (*number, *bytes, *most) = (*number + 1, *bytes + size, (*most).max(size));
    }
    for kind in ["commit", "tree", "blob", "tag"] {
        let (number, bytes, most) = kinds.get(kind).copied().unwrap_or_default();
        add(format!("unique_{kind}_count"), number);
        if kind != "tag" {
            add(format!("unique_{kind}_size"), bytes);
        }
        if ["commit", "blob"].contains(&kind) {
            add(format!("max_{kind}_size"), most);
        }
    }
    let (depth, parents) = history(clients, repository)?;
    add("max_history_depth".into(), depth);
    add("max_parent_count".into(), parents);
    let references =
        clients.output(clients.git(repository, None).args(["for-each-ref", "--format=x"]), "counting references")?;
    add("reference_count".into(), references.lines().count() as u64);
    Ok(numbers)
}

/// Returns the longest chain of commits, and the most parents of one.
fn history(clients: &Clients<'_>, repository: &Path) -> Result<(u64, u64), BenchError> {
    let mut command = clients.git(repository, None);
    command.args(["rev-list", "--all", "--topo-order", "--reverse", "--parents"]);
    let printed = clients.output(&mut command, "counting the commits")?;
    let mut depths: HashMap<String, u64> = HashMap::new();
    let (mut deepest, mut most) = (0, 0);
    for line in BufReader::new(printed.as_slice()).lines() {
        let line = line?;
        let mut ids = line.split(' ');
        let commit = ids.next().unwrap_or_default().to_owned();
        let parents: Vec<&str> = ids.collect();
        let depth = 1 + parents.iter().filter_map(|parent| depths.get(*parent)).max().copied().unwrap_or(0);
        most = most.max(parents.len() as u64);
        deepest = deepest.max(depth);
        depths.insert(commit, depth);
    }
    Ok((deepest, most))
}

#[derive(Default)]
struct Checkout {
    files: u64,
    bytes: u64,
    depth: u64,
}

impl Checkout {
    fn of(clients: &Clients<'_>, repository: &Path, branch: &str) -> Result<Self, BenchError> {
        let mut command = clients.git(repository, None);
        command.args(["ls-tree", "-r", "-l", "-z", &format!("refs/heads/{branch}")]);
        let listed = clients.output(&mut command, "listing the files")?;
        let mut checkout = Self::default();
        // MODE blob OID SIZE<tab>PATH, and `-` for the size of a submodule.
        for entry in listed.split(|byte| *byte == 0) {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let about = String::from_utf8_lossy(&entry[..tab]);
            let Some(size) = about.split_whitespace().nth(3).and_then(|digits| digits.parse::<u64>().ok()) else {
                continue;
            };
            checkout.files += 1;
            checkout.bytes += size;
            let slashes = entry[tab..].iter().filter(|byte| **byte == b'/').count() as u64;
            checkout.depth = checkout.depth.max(1 + slashes);
        }
        Ok(checkout)
    }
}
