//! Podman and Docker: how Calve finds them and their images, and reads their answers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use calve_core::internal::ShownPath;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::engine::programs::{self, Program};
use crate::error::{AtPath as _, Error, Remedy, Result};
use crate::sys;

/// The default runtimes, the best first.
pub const RUNTIMES: [&str; 2] = ["podman", "docker"];

/// Prints the boot id, and the path and version of the server's program. `$0` is its name, `$@` the usual paths.
const LOOK: &str = r#"read -r boot </proc/sys/kernel/random/boot_id
echo "$boot"
for program in "$(command -v "$0")" "$@"; do
    if [ -x "$program" ]; then echo "$program"; exec "$program" --version; fi
done
exit 127"#;

const LOOKING: [&str; 6] = ["run", "--rm", "--pull=never", "--network=none", "--cap-drop=all", "--entrypoint=sh"];

/// The longest wait for a runtime: an engine that hangs must not block every command.
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of a Docker engine's address that may be local.
const LOCAL: &str = "unix://";

/// Variables that send podman to a service: its containers are no descendants of this process, and may be elsewhere.
const OF_SERVICES: [&str; 2] = ["CONTAINER_HOST", "CONTAINER_CONNECTION"];

pub(crate) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !OF_SERVICES.iter().any(|service| name == service))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) runtime: PathBuf,
    /// The address of Docker's engine, which a later command's environment may lack. `None`: the runtime is podman.
    engine: Option<String>,
    /// The volumes that the image declares. Docker would create them.
    volumes: Vec<String>,
    pub(crate) name: String,
    /// The image's id: the name may mean another image later.
    pub(crate) id: String,
}

impl Image {
    fn find(runtime: PathBuf, name: &str) -> Result<Self> {
        let said = ask(&runtime, None, ["--version"])?;
        let engine = match said.split_whitespace().next() {
            Some("podman") => None,
            Some("Docker") => Some(docker_engine(&runtime)?),
            _ => {
                let text = format!("`{}` is neither podman nor docker: {}", ShownPath(&runtime), said.trim());
                return Err(Error::failed(text, Remedy::InstallRuntime));
            }
        };
        let image = Self { runtime, engine, volumes: Vec::new(), name: name.to_owned(), id: String::new() };
        let id = image.identity(name)?;
        let format = "{{range $path, $_ := .Config.Volumes}}{{println $path}}{{end}}";
        let volumes = image.ask(["image", "inspect", "--format", format, "--", &id])?;
        let volumes = volumes.lines().filter(|path| !path.is_empty()).map(str::to_owned).collect();
        Ok(Self { id, volumes, ..image })
    }

    pub(crate) fn is_docker(&self) -> bool {
        self.engine.is_some()
    }

    /// Returns the id of the image that has this name or id now.
    fn identity(&self, image: &str) -> Result<String> {
        let inspected = self.ask(["image", "inspect", "--format", "{{.Id}}", "--", image]);
        Ok(inspected.map_err(|error| self.unless_missing(error))?.trim().to_owned())
    }

    /// Reports a missing image, or the original error if the runtime does not work at all.
    fn unless_missing(&self, error: Error) -> Error {
        if self.ask(["images", "--quiet"]).is_err() {
            return error;
        }
        let (runtime, image) = (self.runtime.clone(), self.name.clone());
        let text = format!("there is no image `{}` on this machine", image.escape_default());
        Error::failed(text, Remedy::PullImage { runtime, image })
    }

    pub(crate) fn missing(&self) -> Option<Error> {
        self.identity(&self.id).err()
    }

    pub(super) fn program(&self) -> Vec<OsString> {
        let mut words = vec![self.runtime.clone().into()];
        words.extend(self.engine.iter().flat_map(|engine| ["--host".into(), engine.into()]));
        words
    }

    /// Returns the options of every container. Its files belong to this user, whose id podman's namespaces would
    /// change. Declared volumes stay unused: Docker would create them wherever nothing else is mounted.
    pub(super) fn options(&self) -> Vec<OsString> {
        match (self.is_docker(), rustix::process::geteuid().is_root()) {
            (true, _) => self.volumes.iter().map(|path| format!("--tmpfs={path}").into()).collect(),
            // The user's default may be another namespace.
            (false, true) => vec!["--image-volume=ignore".into(), "--userns=host".into()],
            (false, false) => vec!["--image-volume=ignore".into(), "--userns=keep-id".into()],
        }
    }

    pub(crate) fn ask(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        ask(&self.runtime, self.engine.as_deref(), words)
    }

    /// Runs [`LOOK`] in the image. Returns its output, and whether its containers see the file `seen`.
    fn look(&self, program: &str, places: &[PathBuf], seen: &Path) -> Result<(String, bool)> {
        let error = match self.look_with(program, places, Some(seen)) {
            Ok(printed) => return Ok((printed, true)),
            Err(error) => error,
        };
        // The engine made no container, maybe because it does not see the file.
        if self.is_docker()
            && matches!(error, Error::Runtime { code: Some(125), .. })
            && let Ok(printed) = self.look_with(program, places, None)
        {
            return Ok((printed, false));
        }
        Err(self.explained(error, program))
    }

    fn look_with(&self, program: &str, places: &[PathBuf], seen: Option<&Path>) -> Result<String> {
        let mut words = LOOKING.map(OsString::from).to_vec();
        words.extend(self.options());
        if let (Some(seen), true) = (seen, self.is_docker()) {
            // Unlike `--volume`, this creates no directory for a missing source.
            words.extend(["--mount".into(), mounted(seen)]);
        }
        words.extend([self.id.as_str(), "-c", LOOK, program].map(OsString::from));
        words.extend(places.iter().map(|place| place.into()));
        self.ask(words)
    }

    fn explained(&self, error: Error, program: &str) -> Error {
        let Error::Runtime { code, .. } = error else { return error };
        let wrong = match code {
            _ if self.is_foreign() => "is for another architecture than this machine's".to_owned(),
            // No shell, or no such program.
            Some(126 | 127) => format!("has no `{program}`"),
            _ => return error,
        };
        Error::failed(format!("the image `{}` {wrong}", self.name.escape_default()), Remedy::ChooseImage)
    }

    /// Returns whether the engine's containers have other user ids than this machine.
    fn changes_ids(&self) -> Result<bool> {
        let security = self.ask(["info", "--format", "{{json .SecurityOptions}}"])?;
        Ok(["name=rootless", "name=userns"].iter().any(|option| security.contains(option)))
    }

    /// Returns whether the image is for another processor. An emulator may run it all the same.
    fn is_foreign(&self) -> bool {
        // Go's names (GOARCH).
        let own = match std::env::consts::ARCH {
            "x86" => "386",
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "powerpc64" => "ppc64le",
            same => same,
        };
        let named = self.ask(["image", "inspect", "--format", "{{.Architecture}}", "--", &self.id]);
        named.is_ok_and(|named| named.trim() != own)
    }
}

/// Returns the address of docker's engine. Fails if that is on another machine, whose ports are not this one's.
fn docker_engine(runtime: &Path) -> Result<String> {
    let address = ask(runtime, None, ["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"])?;
    let address = address.trim().to_owned();
    if !address.starts_with(LOCAL) {
        return Err(elsewhere(runtime));
    }
    // This reports best that the engine does not run.
    ask(runtime, Some(&address), ["version", "--format", "{{.Server.Version}}"])?;
    Ok(address)
}

fn elsewhere(runtime: &Path) -> Error {
    let text = format!("the engine of `{}` does not share this machine's files and users", ShownPath(runtime));
    Error::failed(text, Remedy::UseLocalServer)
}

fn mounted(path: &Path) -> OsString {
    let path = path.to_string_lossy().replace('"', "\"\"");
    format!("type=bind,readonly,\"src={path}\",\"dst={path}\"").into()
}

fn ask(runtime: &Path, engine: Option<&str>, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let mut command = Command::new(runtime);
    command.args(engine.into_iter().flat_map(|engine| ["--host", engine])).args(words);
    command.current_dir("/").env_clear().envs(environment()).stdin(Stdio::null());
    let ran = output(command).at("run", runtime)?;
    let Some(output) = ran else {
        let said = format!("it did not answer within {} s", PATIENCE.as_secs());
        return Err(Error::Runtime { runtime: runtime.to_path_buf(), code: None, said });
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let (runtime, said) = (runtime.to_path_buf(), text(&output.stderr).trim_end().to_owned());
    // Podman names the file that it reads them from. Its exit code is that of other failures.
    Err(match said.contains("/etc/subuid") {
        true => Error::NoSubordinateIds { runtime, said },
        false => Error::Runtime { runtime, code: output.status.code(), said },
    })
}

/// Runs a command. Returns `None` if it took too long and was killed.
fn output(mut command: Command) -> io::Result<Option<Output>> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = sys::ProcessHandle::open(child.id(), None);
    let (ended, end) = mpsc::channel();
    // Its descendants may hold the pipes for longer, so this thread is not joined.
    thread::spawn(move || ended.send(child.wait_with_output()));
    match end.recv_timeout(PATIENCE) {
        Ok(output) => output.map(Some),
        Err(_) => {
            process.inspect(|process| process.signal(Signal::KILL));
            Ok(None)
        }
    }
}

/// Finds runtimes, in this order: by name in `search`, or by path.
fn find(names: &[&Path], search: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let first = |name: &&Path| {
        let places = if name.components().count() > 1 { vec![PathBuf::new()] } else { search.to_vec() };
        places.iter().map(|place| place.join(name)).find(|path| path.is_file())
    };
    names.iter().filter_map(first).map(|path| fs_err::canonicalize(&path).at("find", path)).collect()
}

/// Finds a local image, and the server's program in it, by the first runtime in `names` that has the image. Fails if
/// the engine is on another machine, which does not see the file `seen`.
pub(crate) fn look_at(
    engine: &dyn Engine,
    image: &str,
    names: &[&Path],
    search: &[PathBuf],
    seen: &Path,
) -> Result<(Image, Program)> {
    let mut tried = find(names, search)?.into_iter().map(|path| Image::find(path, image));
    let Some(first) = tried.next() else {
        let names: Vec<String> = names.iter().map(|name| format!("`{}`", ShownPath(name))).collect();
        return Err(Error::failed(format!("cannot find {}", names.join(" or ")), Remedy::InstallRuntime));
    };
    // If no runtime has it, the error is the first one's.
    let image = first.or_else(|error| tried.find_map(Result::ok).ok_or(error))?;
    let program = engine.program();
    let places: Vec<PathBuf> = engine.usual_places().iter().map(|place| place.join(program)).collect();
    let (printed, is_seen) = image.look(program, &places, seen)?;
    let (boot, printed) = printed.split_once('\n').unwrap_or_default();
    let is_here = is_seen && boot == sys::boot();
    if !is_here || (image.is_docker() && image.changes_ids()?) {
        return Err(elsewhere(&image.runtime));
    }
    let (path, printed) = printed.split_once('\n').unwrap_or_default();
    let path = PathBuf::from(path);
    let version = programs::checked(engine, &path, printed)?;
    Ok((image, Program { path, version }))
}
