//! Podman: finding it, its images, and what it says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::server::programs::{self, Program};
use crate::sys;

const RUNTIME: &str = "podman";

/// Prints the path of the server's program in an image, and its version. Its arguments are the name and the usual places.
const LOOK: &str = r#"for program in "$(command -v "$0")" "$@"; do
    if [ -x "$program" ]; then echo "$program"; exec "$program" --version; fi
done
exit 127"#;

/// An image, and the program that runs containers of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    pub(crate) runtime: PathBuf,
    /// What the user calls it.
    pub(crate) name: String,
    /// What it is: the name may come to mean another one.
    pub(crate) id: String,
}

impl Image {
    fn find(runtime: PathBuf, name: &str) -> Result<Self> {
        let said = ask(&runtime, ["--version"])?;
        if !said.contains(RUNTIME) {
            return Err(Error::NotPodman { runtime, said: said.trim().to_owned() });
        }
        let image = Self { runtime, name: name.to_owned(), id: String::new() };
        Ok(Self { id: image.current()?, ..image })
    }

    /// Returns the identity of the image that has the name now.
    fn current(&self) -> Result<String> {
        let inspected = self.ask(["image", "inspect", "--format", "{{.Id}}", "--", &self.name]);
        match inspected {
            Ok(id) => Ok(id.trim().to_owned()),
            Err(error) => Err(self.unless_missing(error)),
        }
    }

    /// Returns the error that there is no such image, if the runtime can tell.
    fn unless_missing(&self, error: Error) -> Error {
        match self.ask(["images", "--quiet"]) {
            Ok(_) => Error::NoImage { runtime: self.runtime.clone(), image: self.name.clone() },
            Err(_) => error,
        }
    }

    /// Returns what is wrong with an image from which no container could be started.
    pub(crate) fn missing(&self) -> Option<Error> {
        let inspected = self.ask(["image", "inspect", "--format", "{{.Id}}", "--", &self.id]);
        inspected.err().map(|error| self.unless_missing(error))
    }

    /// Keeps this user's number in the container: what the server makes is his.
    pub(super) fn options(&self) -> &'static [&'static str] {
        if rustix::process::geteuid().is_root() { &[] } else { &["--userns=keep-id"] }
    }

    /// Runs the runtime, and returns what it prints.
    pub(super) fn ask(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        ask(&self.runtime, words)
    }
}

fn ask(runtime: &Path, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let output = Command::new(runtime).args(words).current_dir("/").stdin(Stdio::null()).output();
    let output = output.map_err(|error| Error::io("run", runtime, error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(Error::Runtime {
            runtime: runtime.to_path_buf(),
            code: output.status.code(),
            said: text(&output.stderr).trim_end().to_owned(),
        }),
    }
}

/// Finds podman: `named`, by its name or path, or else in `search`.
fn find(named: Option<&Path>, search: &[PathBuf]) -> Result<PathBuf> {
    let name = named.unwrap_or(Path::new(RUNTIME));
    let places = if name.components().count() > 1 { vec![PathBuf::new()] } else { search.to_vec() };
    let found = places.iter().map(|place| place.join(name)).find(|path| path.is_file());
    let path = found.ok_or_else(|| Error::NoRuntime(name.to_path_buf()))?;
    fs_err::canonicalize(&path).map_err(|error| Error::io("find", &path, error))
}

/// Finds an image that is here, and the server's program in it.
pub(crate) fn look_at(
    engine: &dyn Engine,
    image: &str,
    runtime: Option<&Path>,
    search: &[PathBuf],
) -> Result<(Image, Program)> {
    if !sys::HAS_CONTAINERS {
        return Err(Error::NoContainers);
    }
    let image = Image::find(find(runtime, search)?, image)?;
    let program = engine.program();
    let fixed =
        ["run", "--rm", "--pull=never", "--network=none", "--image-volume=ignore", "--cap-drop=all", "--entrypoint=sh"];
    let mut words: Vec<&OsStr> = fixed.iter().chain(image.options()).map(OsStr::new).collect();
    words.extend([&image.id, "-c", LOOK, program].map(OsStr::new));
    let places: Vec<PathBuf> = engine.usual_places().iter().map(|place| place.join(program)).collect();
    words.extend(places.iter().map(|place| place.as_os_str()));
    let printed = image.ask(words).map_err(|error| match error {
        // No shell, or no such program.
        Error::Runtime { code: Some(126 | 127), .. } => {
            Error::ImageWithoutServer { image: image.name.clone(), program: program.to_owned() }
        }
        other => other,
    })?;
    let (path, printed) = printed.split_once('\n').unwrap_or_default();
    let path = PathBuf::from(path);
    let version = programs::checked(engine, &path, printed)?;
    Ok((image, Program { path, version }))
}
