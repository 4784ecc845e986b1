//! Servers in containers: the program of an image, on a data directory of this machine. A container has a random name,
//! and labels with its home and slot. Calve removes only a container with all three.

pub(crate) mod process;
mod runtime;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::engine::address::Address;
use crate::engine::{connection, setting};
use crate::error::{Error, Result};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::home::Home;
use crate::files::private;
use crate::files::random;
use crate::sys;

pub use runtime::RUNTIMES;
pub(crate) use runtime::{Image, environment, look_at};

/// The settings file that a container has as /etc/passwd.
pub(crate) const USERS: &str = "passwd";
/// The file in a slot that describes its container, so that it can be found without a record.
pub(crate) const NOTE: &str = "container.json";
/// Labels of a container: its home, and its slot in the registry.
const HOME: &str = "calve.home";
const SERVER: &str = "calve.server";
/// Podman's process that stays with a container.
const MONITOR: &str = "conmon";
/// The longest time that Docker's engine takes to make a container.
const MADE_IN: Duration = Duration::from_secs(1);
/// The longest time that it takes to remove a container that has ended.
const REMOVED_IN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Container {
    pub(crate) image: Image,
    name: String,
    home: PathBuf,
    server: String,
}

/// Writes a mount for `--volume`. Fails if a path has a colon, which separates the parts and cannot be escaped.
pub(crate) fn volume(source: &Path, at: &Path, is_read_only: bool) -> Result<OsString> {
    let has_colon = |path: &&Path| path.as_os_str().as_encoded_bytes().contains(&b':');
    if let Some(path) = [source, at].into_iter().find(has_colon) {
        return Err(Error::CannotBind(path.into()));
    }
    let mut text = [source.as_os_str(), at.as_os_str()].join(OsStr::new(":"));
    text.push(if is_read_only { ":ro" } else { "" });
    Ok(text)
}

impl Container {
    pub(crate) fn new(image: &Image, home: &Home, server: &str) -> Result<Self> {
        let name = format!("calve-{}", random::letters(24)?);
        Ok(Self { image: image.clone(), name, home: home.root.clone(), server: server.to_owned() })
    }

    /// Returns whether the supervisor may have namespaces of its own. Inside them, rootless podman could create none,
    /// and Docker's engine would not see the mounts.
    pub(crate) fn may_isolate(&self) -> bool {
        !self.image.is_docker() && rustix::process::geteuid().is_root()
    }

    /// Returns the command line that runs `command`, by its path in the image, in the foreground in `directory`, and
    /// removes the container at its end. Without a port it has no network. Initialisation bypasses the entry point.
    pub(crate) fn command(
        &self,
        command: &[OsString],
        account: Account,
        directory: &Path,
        volumes: Vec<OsString>,
        tcp_port: Option<u16>,
        by_entry_point: bool,
    ) -> Vec<OsString> {
        let mut line = self.image.program();
        line.extend(["run", "--rm", "--pull=never", "--name", &self.name].map(Into::into));
        for (label, value) in [(HOME, self.home.as_os_str()), (SERVER, self.server.as_ref())] {
            line.extend(["--label".into(), setting(label, value)]);
        }
        line.extend(self.image.options());
        if !self.image.is_docker() {
            line.push("--sdnotify=ignore".into());
        }
        // Calve probes the server itself, and logs its output already.
        line.extend(["--no-healthcheck", "--log-driver=none"].map(Into::into));
        // Under SELinux the runtime would relabel the user's files, or the server would fail.
        let security = ["--cap-drop=all", "--security-opt=no-new-privileges", "--security-opt=label=disable"];
        line.extend(security.map(Into::into));
        line.push(if tcp_port.is_some() { "--network=host" } else { "--network=none" }.into());
        line.push(format!("--user={}:{}", account.user, account.group).into());
        line.push(setting("--workdir", directory));
        let temporary = directory.with_file_name("tmp");
        for (variable, value) in
            [("LC_ALL", "C".as_ref()), ("TMPDIR", temporary.as_os_str()), ("PGDATA", directory.as_os_str())]
        {
            line.extend(["--env".into(), setting(variable, value)]);
        }
        line.extend(volumes.into_iter().flat_map(|volume| ["--volume".into(), volume]));
        let arguments = match command {
            [program, arguments @ ..] if !by_entry_point => {
                line.push(setting("--entrypoint", program));
                arguments
            }
            command => command,
        };
        line.push(self.image.id.clone().into());
        line.extend_from_slice(arguments);
        line
    }

    /// Registers the first process of a Docker container. Podman's is a descendant of the process that started it.
    pub(crate) fn find_first_process(&self, server: &Address) {
        // Each query is a process, and before the server listens nothing needs the answer.
        let socket = &server.socket;
        if !self.image.is_docker() || connection::first_processes().contains_key(socket) || !socket.exists() {
            return;
        }
        let answer = self.image.ask(["inspect", "--type=container", "--format", "{{.State.Pid}}", &self.name]);
        if let Some(pid) = answer.ok().and_then(|pid| pid.trim().parse().ok()).filter(|pid| *pid != 0) {
            connection::first_processes().insert(socket.clone(), pid);
        }
    }

    /// Records the container in its slot, before it exists.
    pub(crate) fn note(&self, slot: &Path) -> Result<()> {
        private::write_json(&slot.join(NOTE), self)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let signal = signal.as_raw().to_string();
        self.image.ask(["kill", "--signal", &signal, &self.name]).map(|_| ())
    }

    /// Kills and removes the container with this name and these labels. Returns whether it existed.
    pub(crate) fn remove(&self) -> Result<bool> {
        let name = format!("name=^{}$", self.name);
        let home = format!("label={}", setting(HOME, &self.home).to_string_lossy());
        let server = format!("label={SERVER}={}", self.server);
        let filters = ["--filter", &name, "--filter", &home, "--filter", &server];
        let listed = self.image.ask(["ps", "--all", "--quiet", "--no-trunc"].iter().chain(&filters))?;
        let Some(id) = listed.lines().next().filter(|id| !id.is_empty()) else { return Ok(false) };
        // Docker kills at once.
        let at_once: &[&str] = if self.image.is_docker() { &[] } else { &["--time=0"] };
        if let Err(error) = self.image.ask(["rm", "--force", "--volumes"].iter().chain(at_once).chain(&[id])) {
            // It may have removed itself meanwhile, or Docker's engine may be about to.
            let started = Instant::now();
            while self.image.ask(["ps", "--all", "--quiet", "--no-trunc"])?.contains(id) {
                if !self.image.is_docker() || started.elapsed() > REMOVED_IN {
                    return Err(error);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(true)
    }

    /// Removes it after its starter was killed: Docker's engine may still be making it.
    pub(crate) fn remove_late(&self) -> Result<bool> {
        let started = Instant::now();
        loop {
            let is_over = !self.image.is_docker() || started.elapsed() > MADE_IN;
            let is_removed = self.remove()?;
            if is_removed || is_over {
                return Ok(is_removed);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Writes the passwd file by which programs of an image know their user's name.
pub(crate) fn name_user(settings: &Directory, name: &str, account: Account) -> Result<()> {
    let users = format!("root:x:0:0::/:/bin/sh\n{name}:x:{}:{}::/:/bin/sh\n", account.user, account.group);
    private::write_shared(settings, USERS, &users, account).map(drop)
}

/// Returns whether a slot's server is in a container.
pub(crate) fn is_noted(slot: &Path) -> bool {
    slot.join(NOTE).exists()
}

/// Removes the container of a slot whose supervisor was killed, or could not. `was_ready`: its server was.
pub(crate) fn remove_left(slot: &Path, was_ready: bool) -> Result<()> {
    let Some(container) = private::read_json::<Container>(&slot.join(NOTE))? else { return Ok(()) };
    // The container of a ready server exists already.
    _ = if was_ready { container.remove() } else { container.remove_late() }?;
    // Podman that is killed while it makes a container leaves a monitor that it does not remember.
    sys::with_argument(MONITOR, &container.name).iter().for_each(sys::end_tree);
    Ok(())
}
