//! The private copy that everything is served from, in the state in which `git gc` leaves a bare repository.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_receipt::bench::GitRepository;

use super::programs::GitPrograms;
use super::pushes;
use super::source::Source;
use crate::error::BenchError;
use crate::remedy::Remedy;

pub(super) struct Repository {
    pub(super) about: GitRepository,
    /// Bare, and never served itself.
    pub(super) template: PathBuf,
    /// The bare clone of the user who pushes.
    pub(super) pushing: PathBuf,
}

/// Commits that `git checkout` and `git blame` go back.
const FARTHEST_BACK: u32 = 20;

impl Repository {
    /// Copies the source into the existing `directory`. The source is only read.
    pub(super) fn prepare(
        source: &Source,
        directory: &Path,
        git: &GitPrograms<'_>,
        check_room: &dyn Fn(u64, u64) -> Result<(), BenchError>,
    ) -> Result<Self, BenchError> {
        let [template, pushing] = ["template.git", "pushing.git"].map(|name| directory.join(name));
        copy(source, &template, git)?;
        let branch = branch(source, &template, git)?;
        let output =
            |repository: &Path, arguments: &[&str], what: &str| git.output(git.at(repository).args(arguments), what);
        output(&template, &["pack-refs", "--all"], "packing the references")?;
        // The new pack is written beside the old one.
        check_room(pack_bytes(&template), 0)?;
        output(&template, &["repack", "-a", "-d", "-q", "--write-bitmap-index"], "packing the repository")?;
        output(&template, &["commit-graph", "write", "--reachable", "--no-progress"], "writing the commit-graph")?;
        let past = ["rev-list", "--first-parent", &format!("--max-count={}", FARTHEST_BACK + 1), &branch];
        let past = output(&template, &past, "counting the commits")?;
        let back = past.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count().saturating_sub(1) as u32;
        let file = if back == 0 { None } else { most_changed(git, &template, &branch, back)? };
        let files = output(&template, &["ls-tree", "-r", "-l", "-z", &branch], "listing the files")?;
        let (checkout_files, checkout_bytes) = checkout(&files);
        let pack_bytes = pack_bytes(&template);
        check_room(pack_bytes + checkout_bytes, checkout_files + 1000)?;
        let (name, source) = (source.name(), source.shown());
        let about = GitRepository { name, source, branch, file, back, pack_bytes, checkout_files, checkout_bytes };
        let clone = ["clone", "--quiet", "--bare", "--local", "--template=", "--", "template.git", "pushing.git"];
        output(directory, &clone, "copying the repository")?;
        pushes::make(git, &pushing, &about.branch, &files)?;
        Ok(Self { about, template, pushing })
    }
}

/// Makes a bare clone that shares nothing with the source, with the user's configuration.
fn copy(source: &Source, template: &Path, git: &GitPrograms<'_>) -> Result<(), BenchError> {
    let text = source.text();
    let mut arguments = ["clone", "--quiet", "--bare", "--no-local", "--template=", "--"].map(OsStr::new).to_vec();
    arguments.extend([&text, template.as_os_str()]);
    let mut ran = git.run_as_user(template.parent().unwrap_or(template), &arguments)?;
    if ran.ended.status.success() && template.join("shallow").exists() {
        // Partial clones of it would ask for the missing history endlessly.
        let text = format!("`{}` is a shallow clone: its history is cut off", ShownPath(Path::new(&source.shown())));
        return Err(BenchError::failed(text, Remedy::NameFullClone));
    }
    if ran.ended.status.success() {
        return Ok(());
    }
    let hint = if source.path().is_some() { Remedy::TryCloningDirectory } else { Remedy::TryCloningUrl };
    if source.path().is_none() {
        // Before it is shortened: half of a URL would not be recognized.
        ran.said = source.censored(&ran.said);
    }
    let (reason, _) = git.reason(&ran);
    let text = format!("`{}` cannot be cloned: {reason}", ShownPath(Path::new(&source.shown())));
    Err(BenchError::failed(text, hint))
}

fn branch(source: &Source, template: &Path, git: &GitPrograms<'_>) -> Result<String, BenchError> {
    let run = |arguments: &[&str]| git.run(git.at(template).args(arguments));
    let refused = |lack: &str, remedy| {
        let text = format!("`{}` has no {lack}", ShownPath(Path::new(&source.shown())));
        Err(BenchError::failed(text, remedy))
    };
    if run(&["for-each-ref", "--count=1"])?.stdout.is_empty() {
        return refused("commits", Remedy::NameRepositoryWithHistory);
    }
    let head = run(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    let name = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    if run(&["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")])?.ended.status.success() {
        return Ok(name);
    }
    refused("branch checked out", Remedy::CheckOutBranch)
}

/// Counts files, symlinks included, and their bytes in the output of `git ls-tree -r -l -z`.
fn checkout(listed: &[u8]) -> (u64, u64) {
    // MODE blob OID SIZE<tab>PATH, and `-` for the size of a submodule.
    let size = |entry: &[u8]| String::from_utf8_lossy(entry).split_whitespace().nth(3)?.parse::<u64>().ok();
    let sizes = listed.split(|byte| *byte == 0).filter_map(size);
    sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
}

/// Finds the existing file that the last commits changed most often, or the first by name of several.
fn most_changed(git: &GitPrograms<'_>, template: &Path, branch: &str, back: u32) -> Result<Option<String>, BenchError> {
    let mut command = git.at(template);
    let range = format!("{branch}~{back}..{branch}");
    command.args(["log", "--format=", "--name-only", "--no-renames", "-z", &range]);
    let listed = git.output(&mut command, "looking for a file with a history")?;
    let mut times: HashMap<&[u8], u32> = HashMap::new();
    for path in listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        *times.entry(path).or_default() += 1;
    }
    let mut paths: Vec<(&[u8], u32)> = times.into_iter().collect();
    paths.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    for (path, _) in paths.into_iter().take(50) {
        let Ok(path) = std::str::from_utf8(path) else { continue };
        let found = git.run(git.at(template).args(["cat-file", "-t", &format!("{branch}:{path}")]))?;
        if found.stdout.starts_with(b"blob") {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

fn pack_bytes(repository: &Path) -> u64 {
    let entries = fs_err::read_dir(repository.join("objects/pack")).into_iter().flatten().flatten();
    let packs = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack"));
    packs.filter_map(|pack| Some(pack.metadata().ok()?.len())).sum()
}
