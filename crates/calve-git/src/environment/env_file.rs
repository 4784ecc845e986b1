//! A worktree's env file, for frameworks to find. The hash in its first line tells whether it is as Calve made it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use calve_core::internal::ReplacedFile;
use calve_core::internal::json::{As, ReceiptPath, Text};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use strum::{Display, VariantNames};
#[cfg(target_os = "linux")]
use {rustix::fs::linkat, std::os::fd::AsRawFd as _};

use crate::directory::open_below;
use crate::error::{Result, failed};
use crate::git::Git;
use crate::paths::path_of;

const HEADING: &str = "# Made by Calve for one worktree. Once edited, it is left alone: ";

/// Calve writes no larger file.
const LARGEST_BYTES: u64 = 64 * 1024;

/// A file for the ports of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "EnvFileReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvFile {
    /// The path in the worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// `written`. Left alone: `tracked` by git, or `foreign`, which somebody else made or edited. Not written although the source worktree has
    /// one: `not_ignored` by git here, or `no_directory` for it.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = EnvFileOutcome::VARIANTS)))]
    pub outcome: EnvFileOutcome,
    /// True if git ignores the file; null if it was not written.
    pub ignored: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum EnvFileOutcome {
    Written,
    Tracked,
    Foreign,
    NotIgnored,
    NoDirectory,
}

impl EnvFile {
    fn new(path: &Path, outcome: EnvFileOutcome, ignored: Option<bool>) -> EnvFile {
        EnvFile { path: path.to_path_buf(), outcome, ignored }
    }
}

/// Accepts only the path of a file inside the worktree.
pub fn env_file_inside(text: &str) -> std::result::Result<PathBuf, String> {
    let path: PathBuf = Path::new(text).components().filter(|part| *part != Component::CurDir).collect();
    let is_inside =
        path.components().all(|part| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git")));
    match is_inside && path.file_name().is_some() && !text.ends_with('/') {
        true => Ok(path),
        false => Err("it is the path of a file in the new worktree, relative to its root".into()),
    }
}

pub fn env_file_text(name: &Path, variables: &[(String, String)]) -> String {
    let lines: String = match name.extension() {
        // Calve's names, numbers and URLs contain neither quotes nor backslashes.
        Some(extension) if extension == "toml" => {
            let lines = variables.iter().map(|(name, value)| format!("{name} = \"{value}\"\n"));
            std::iter::once("[env]\n".to_owned()).chain(lines).collect()
        }
        _ => variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect(),
    };
    format!("{HEADING}{}\n{lines}", hash(lines.as_bytes()))
}

fn hash(lines: &[u8]) -> String {
    blake3::hash(lines).to_hex()[..16].to_owned()
}

fn is_own(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(HEADING.as_bytes()) else { return false };
    rest.split_at_checked(17).is_some_and(|(first, lines)| first == format!("{}\n", hash(lines)).as_bytes())
}

/// Returns whether a worktree of this commit, with `donor`'s files, may have the directory for such a file.
pub fn may_have_directory(donor: &Path, commit: &str, path: &Path) -> Result<bool> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(true) };
    let mut tree = OsString::from(format!("{commit}:"));
    tree.push(directory);
    let kind = Git::at(donor).answer(&["cat-file".as_ref(), "-t".as_ref(), tree.as_os_str()])?;
    Ok(kind.as_deref() == Some("tree") || EnvFilePlace::open(donor, path).is_ok())
}

/// Returns whether Calve made the file at `path`, relative to the root, and it is unedited.
pub fn is_own_env_file(root: &Path, path: &Path) -> bool {
    let found = EnvFilePlace::open(root, path).and_then(|place| place.find());
    matches!(found, Ok(PresentFile::Own(_)))
}

pub fn is_outdated_env_file(root: &Path, path: &Path, variables: &[(String, String)]) -> bool {
    let found = EnvFilePlace::open(root, path).and_then(|place| place.find());
    matches!(found, Ok(PresentFile::Own(text)) if text != env_file_text(path, variables).as_bytes())
}

/// Lists untracked files outside of wholly untracked directories, and `configured`: env files are among them.
pub fn untracked_files(root: &Path, configured: Option<PathBuf>) -> Result<Vec<PathBuf>> {
    let listed = Git::at(root).run(&["ls-files", "-z", "--others", "--directory"])?;
    let listed = listed.split(|&byte| byte == 0).filter(|path| !path.is_empty() && !path.ends_with(b"/"));
    let mut all: Vec<PathBuf> = listed.map(path_of).collect();
    let configured = configured.filter(|path| !all.contains(path) && root.join(path).symlink_metadata().is_ok());
    all.extend(configured);
    Ok(all)
}

/// Removes those files that Calve made: no program may find another worktree's ports and databases in them.
pub fn remove_own_env_files(root: &Path, paths: &[PathBuf]) -> Result<()> {
    for path in paths.iter().filter(|path| is_own_env_file(root, path)) {
        let place = EnvFilePlace::open(root, path)?;
        unlinkat(&place.directory, &place.name, AtFlags::empty()).map_err(|errno| place.error("remove", errno))?;
    }
    Ok(())
}

/// Writes the variables to `path`, relative to the root. Replaces only a file that Calve made, and follows no symlink.
pub fn write_env_file(root: &Path, path: &Path, variables: &[(String, String)]) -> Result<EnvFile> {
    write(root, path, None, variables)
}

/// Gives a new file the permissions of the donor's.
fn write(root: &Path, path: &Path, donor: Option<&Path>, variables: &[(String, String)]) -> Result<EnvFile> {
    let git = Git::at(root);
    if is_tracked(&git, path)? {
        return Ok(EnvFile::new(path, EnvFileOutcome::Tracked, None));
    }
    let place = EnvFilePlace::open(root, path)?;
    let replaced = match place.find()? {
        PresentFile::Foreign => return Ok(EnvFile::new(path, EnvFileOutcome::Foreign, None)),
        PresentFile::Own(_) => {
            let replaced = place.replaced()?;
            unlinkat(&place.directory, &place.name, AtFlags::empty()).map_err(|errno| place.error("remove", errno))?;
            replaced
        }
        PresentFile::Nothing => match donor.map(|donor| EnvFilePlace::open(donor, path)) {
            Some(Ok(donors)) => donors.replaced()?,
            // The donor has lost it meanwhile.
            Some(Err(_)) | None => None,
        },
    };
    place.fill(replaced.as_ref(), &env_file_text(&place.name, variables))?;
    let ignored = Some(is_ignored(&git, path)?);
    Ok(EnvFile::new(path, EnvFileOutcome::Written, ignored))
}

/// Writes the env file that the donor has too, if git ignores it here. Otherwise the outcome says why not.
pub fn follow_env_file(root: &Path, donor: &Path, path: &Path, variables: &[(String, String)]) -> Result<EnvFile> {
    let git = Git::at(root);
    match EnvFilePlace::open(root, path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error.into()),
        Err(_) => Ok(EnvFile::new(path, EnvFileOutcome::NoDirectory, None)),
        Ok(_) if !is_ignored(&git, path)? && !is_tracked(&git, path)? => {
            Ok(EnvFile::new(path, EnvFileOutcome::NotIgnored, None))
        }
        Ok(_) => write(root, path, Some(donor), variables),
    }
}

fn is_tracked(git: &Git, path: &Path) -> Result<bool> {
    let words = ["--literal-pathspecs", "ls-files", "-z", "--"].map(Path::new);
    Ok(!git.run(&[&words[..], &[path]].concat())?.is_empty())
}

fn is_ignored(git: &Git, path: &Path) -> Result<bool> {
    Ok(git.output(&["check-ignore".as_ref(), "-q".as_ref(), "--".as_ref(), path])?.status.success())
}

enum PresentFile {
    Nothing,
    Own(Vec<u8>),
    Foreign,
}

struct EnvFilePlace {
    directory: File,
    name: PathBuf,
    path: PathBuf,
}

impl EnvFilePlace {
    fn open(root: &Path, path: &Path) -> io::Result<EnvFilePlace> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, root, flags, Mode::empty())?;
        let directory = open_below(opened.into(), path.parent().unwrap_or(Path::new("")));
        let path = root.join(path);
        let directory = directory.map_err(|errno| failed("failed to open the directory of", &path, errno))?;
        Ok(EnvFilePlace { directory, name: path.file_name().unwrap_or_default().into(), path })
    }

    fn find(&self) -> io::Result<PresentFile> {
        // Opening a FIFO must not wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(PresentFile::Nothing),
            // A symlink, a socket, or a file that only others may read is not Calve's.
            Err(Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(PresentFile::Foreign),
            Err(errno) => return Err(self.error("open", errno)),
        };
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Ok(PresentFile::Foreign);
        }
        let mut text = Vec::new();
        file.take(LARGEST_BYTES).read_to_end(&mut text).map_err(|error| self.error("read", error))?;
        Ok(if is_own(&text) { PresentFile::Own(text) } else { PresentFile::Foreign })
    }

    fn replaced(&self) -> io::Result<Option<ReplacedFile>> {
        let found = ReplacedFile::find(self.directory.as_fd(), self.name.as_os_str());
        found.map_err(|error| self.error("look at", error))
    }

    /// Makes the file with the replaced one's permissions. Where the system can, its name appears with its text.
    fn fill(&self, replaced: Option<&ReplacedFile>, text: &str) -> io::Result<()> {
        let mode = Mode::from_raw_mode(replaced.map_or(0o644, |_| ReplacedFile::NEW_MODE) as _);
        #[cfg(target_os = "linux")]
        if let Ok(file) = openat(&self.directory, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, mode) {
            let file = self.write(file, replaced, text)?;
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            match linkat(CWD, own, &self.directory, &self.name, AtFlags::SYMLINK_FOLLOW) {
                // `/proc` is not mounted.
                Err(Errno::NOENT) => {}
                linked => return linked.map_err(|errno| self.error("write", errno)),
            }
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, &self.name, flags, mode);
        self.write(file.map_err(|errno| self.error("create", errno))?, replaced, text).map(drop)
    }

    fn write(&self, file: OwnedFd, replaced: Option<&ReplacedFile>, text: &str) -> io::Result<File> {
        let kept = replaced.map_or(Ok(()), |replaced| replaced.keep_in(file.as_fd()).map(drop));
        kept.map_err(|error| self.error("create", error))?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes()).map_err(|error| self.error("write", error))?;
        Ok(file)
    }

    fn error(&self, what: &str, error: impl Into<io::Error>) -> io::Error {
        failed(&format!("failed to {what}"), &self.path, error)
    }
}
