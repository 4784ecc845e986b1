//! The private copy of a repository that everything is served from, in the state that `git gc` leaves a bare repository in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use calve_core::ShownPath;

use super::clients::{Clients, GitOutput};
use super::shape::Shape;
use super::source::Source;
use crate::error::{BenchError, FailureKind};
use crate::remedy::Remedy;

/// A repository that is ready to be measured.
pub(crate) struct Repository {
    pub(crate) name: String,
    /// Where it came from.
    pub(crate) source: String,
    pub(crate) branch: String,
    /// The file that `git blame` is run on: the one that changed most often in the commits that it looks at. `None`: there is no history.
    pub(crate) file: Option<String>,
    /// `N` of `git checkout HEAD~N`: [`FARTHEST_BACK`], or less in a shorter history.
    pub(crate) back: u32,
    pub(crate) shape: Shape,
    pub(crate) bitmaps: bool,
    pub(crate) commit_graph: bool,
    /// Bare, and never served itself.
    pub(super) template: PathBuf,
}

/// How many commits back `git checkout` and `git blame` go.
const FARTHEST_BACK: u32 = 20;

/// How it is to be prepared.
pub(super) struct Preparation<'a> {
    pub(super) branch: Option<&'a str>,
    /// Fails when the place has not so many bytes more.
    pub(super) check_room: &'a dyn Fn(u64) -> Result<(), BenchError>,
}

impl Repository {
    /// Copies the source to `template`. The source is only read.
    pub(super) fn prepare(
        source: &Source,
        template: PathBuf,
        wanted: &Preparation<'_>,
        clients: &Clients<'_>,
        users: &Clients<'_>,
    ) -> Result<Self, BenchError> {
        source.check()?;
        copy(source, &template, users)?;
        let git = |arguments: &[&str]| clients.run(clients.git(&template, None).args(arguments));
        if !has_commits(&git(&["for-each-ref", "--count=1"])?) {
            let text = format!("`{}` has no commits", ShownPath(Path::new(&source.shown())));
            return Err(BenchError::stated(FailureKind::Failed, text, Remedy::NameRepositoryWithHistory));
        }
        let branch = branch(source, wanted.branch, &git)?;
        let work = |arguments: &[&str], what: &str| {
            clients.output(clients.git(&template, None).args(arguments), what).map(drop)
        };
        work(&["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")], "choosing the branch")?;
        work(&["pack-refs", "--all"], "packing the references")?;
        // The pack is written anew beside the one that there is.
        (wanted.check_room)(pack_bytes(&template))?;
        work(&["repack", "-a", "-d", "-q", "--write-bitmap-index"], "packing the repository")?;
        work(&["commit-graph", "write", "--reachable", "--no-progress"], "writing the commit-graph")?;
        let back = back(&git(&["rev-list", "--first-parent", &format!("--max-count={}", FARTHEST_BACK + 1), &branch])?);
        let file = if back == 0 { None } else { most_changed(clients, &template, &branch, back)? };
        let shape = Shape::of(clients, &template, &branch)?;
        let packs = template.join("objects/pack");
        let has = |ending: &str| files(&packs).iter().any(|path| path.extension().is_some_and(|it| it == ending));
        Ok(Self {
            name: source.name(),
            source: source.shown(),
            bitmaps: has("bitmap"),
            commit_graph: template.join("objects/info/commit-graph").exists()
                || template.join("objects/info/commit-graphs").exists(),
            branch,
            file,
            back,
            shape,
            template,
        })
    }
}

fn copy(source: &Source, template: &Path, users: &Clients<'_>) -> Result<(), BenchError> {
    let text = match source {
        Source::Path(path) => fs_err::canonicalize(path)?.into_os_string(),
        Source::Url(address) => address.for_git().into(),
    };
    let parent = template.parent().unwrap_or(template);
    let mut command = users.git(parent, None);
    // No object is shared with a local repository, and what its configuration may say of alternates stays behind.
    command.env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file");
    command.args(["clone", "--quiet", "--bare", "--no-local", "--template=", "--"]).arg(text).arg(template);
    let mut ran = users.run(&mut command)?;
    if ran.is_success() {
        return Ok(());
    }
    if let Source::Url(address) = source {
        // Before it is made shorter: half of a URL is not known for one.
        ran.said = address.censored(&ran.said);
    }
    let reason = users.reason(&ran).text;
    let text = format!("`{}` cannot be cloned: {reason}", ShownPath(Path::new(&source.shown())));
    let hint = match source {
        Source::Url(_) => Remedy::TryCloningUrl,
        Source::Path(_) => Remedy::TryCloningDirectory,
    };
    Err(BenchError::stated(FailureKind::Failed, text, hint))
}

fn has_commits(references: &GitOutput) -> bool {
    references.is_success() && !references.stdout.is_empty()
}

/// Returns the branch that was asked for, else the one that the source has checked out.
fn branch(
    source: &Source,
    wanted: Option<&str>,
    git: &dyn Fn(&[&str]) -> Result<GitOutput, BenchError>,
) -> Result<String, BenchError> {
    let exists = |name: &str| -> Result<bool, BenchError> {
        Ok(git(&["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")])?.is_success())
    };
    let shown = source.shown();
    if let Some(name) = wanted {
        if exists(name)? {
            return Ok(name.to_owned());
        }
        let text = format!("`{}` has no branch `{}`", ShownPath(Path::new(&shown)), ShownPath(Path::new(name)));
        return Err(BenchError::stated(FailureKind::Failed, text, Remedy::ListBranches));
    }
    let head = git(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    let name = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    if !name.is_empty() && exists(&name)? {
        return Ok(name);
    }
    let text = format!("`{}` has no branch checked out", ShownPath(Path::new(&shown)));
    Err(BenchError::stated(FailureKind::Failed, text, Remedy::NameBranch))
}

/// Returns one less than there are commits.
fn back(listed: &GitOutput) -> u32 {
    let lines = listed.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    u32::try_from(lines.saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Finds the file that the last commits changed most often, and that still exists. Of several the first by name.
fn most_changed(clients: &Clients<'_>, template: &Path, branch: &str, back: u32) -> Result<Option<String>, BenchError> {
    let mut command = clients.git(template, None);
    let range = format!("{branch}~{back}..{branch}");
    command.args(["log", "--format=", "--name-only", "--no-renames", "-z", &range]);
    let listed = clients.output(&mut command, "looking for a file with a history")?;
    let mut times: HashMap<&[u8], u32> = HashMap::new();
    for path in listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        *times.entry(path).or_default() += 1;
    }
    let mut paths: Vec<(&[u8], u32)> = times.into_iter().collect();
    paths.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    for (path, _) in paths.into_iter().take(50) {
        let Ok(path) = std::str::from_utf8(path) else { continue };
        let found = clients.run(clients.git(template, None).args(["cat-file", "-t", &format!("{branch}:{path}")]))?;
        if found.stdout.starts_with(b"blob") {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Returns the size of a repository's packs; 0 where there are none.
pub(super) fn pack_bytes(repository: &Path) -> u64 {
    let packs = ["objects/pack", ".git/objects/pack"].map(|folder| repository.join(folder));
    let all =
        packs.iter().flat_map(|folder| files(folder)).filter(|path| path.extension().is_some_and(|it| it == "pack"));
    all.filter_map(|path| Some(fs_err::metadata(path).ok()?.len())).sum()
}
