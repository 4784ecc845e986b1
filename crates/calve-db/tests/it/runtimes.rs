//! Podman and Docker with storage of their own, and images of the servers that are here.

use std::io::BufRead as _;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use calve_testkit::{few_rounds, require_program, require_root};
use fs_err as fs;
use serde_json::Value;

use crate::world::{Engine, Run, World, kill};

static MAKING: Mutex<()> = Mutex::new(());

/// A world whose templates are made from an image, and the runtime that has it.
pub(crate) struct Containers {
    pub(crate) world: World,
    pub(crate) engine: Engine,
    pub(crate) runtime: PathBuf,
    pub(crate) image: String,
    pub(crate) is_docker: bool,
    /// Names the process that podman without privilege keeps for its namespaces.
    pub(crate) pause: Option<PathBuf>,
}

/// Takes an image from one runtime to another one.
fn carry(world: &World, image: &str, from: &Path, to: &Path) {
    let saved = world.path().join("image");
    let saved = saved.to_str().unwrap();
    for (program, words) in
        [(from, ["save", "--quiet", "--output", saved, image].as_slice()), (to, &["load", "--quiet", "--input", saved])]
    {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    fs::remove_file(saved).unwrap();
}

impl Containers {
    pub(crate) fn with_engine(engine: Engine) -> Option<Self> {
        Self::within(World::new()?, engine)
    }

    pub(crate) fn within(world: World, engine: Engine) -> Option<Self> {
        let (podman, image) = image_of(engine)?;
        Some(Self { world, engine, runtime: podman, image, is_docker: false, pause: None })
    }

    /// In Docker's containers, by an engine that is started for the tests. Not with few rounds.
    pub(crate) fn of_docker(world: World, engine: Engine) -> Option<Self> {
        if few_rounds() {
            return None;
        }
        let (podman, image) = image_of(engine)?;
        let runtime = DOCKER.as_deref()?;
        let _one = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !Command::new(runtime).args(["image", "inspect", &image]).output().unwrap().status.success() {
            carry(&world, &image, &podman, runtime);
        }
        Some(Self { world, engine, runtime: runtime.into(), image, is_docker: true, pause: None })
    }

    /// With podman, and with Docker where that is.
    pub(crate) fn each(engine: Engine) -> impl Iterator<Item = Self> {
        [Self::within, Self::of_docker].into_iter().filter_map(move |of| of(World::new()?, engine))
    }

    /// Keeps a container of the test's own from using the image's volume.
    pub(crate) fn no_volume(&self) -> &'static str {
        if self.is_docker { "--tmpfs=/var/lib/postgresql/data" } else { "--image-volume=ignore" }
    }

    pub(crate) fn create(&self, image: &str) -> Run {
        let run = self.world.db(["template", "create", "t", "-q", "--engine", self.engine.name(), "--image", image]);
        run.arg("--runtime").arg(&self.runtime)
    }

    pub(crate) fn template(&self) {
        self.create(&self.image).arg("--").args(self.engine.client(self.engine.fill())).succeeds();
    }

    pub(crate) fn ask<'a>(&'a self, words: impl IntoIterator<Item = &'a str>) -> String {
        let line: Vec<&str> = iter::once(self.runtime.to_str().unwrap()).chain(words).collect();
        let output = self.world.inside(&line).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Makes an image of this root directory, for another processor than this machine's. Docker's engine could not say so.
    pub(crate) fn import_foreign(&self, archive: &Path, name: &str) {
        let foreign = if cfg!(target_arch = "aarch64") { "amd64" } else { "arm64" };
        let (podman, _) = image_of(self.engine).unwrap();
        let words = ["import", "--quiet", "--arch", foreign, archive.to_str().unwrap(), name];
        let output = Command::new(&podman).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        if self.is_docker {
            carry(&self.world, name, &podman, &self.runtime);
            assert!(Command::new(&podman).args(["rmi", name]).output().unwrap().status.success());
        }
    }

    pub(crate) fn home_label(&self) -> String {
        format!("calve.home={}", fs::canonicalize(self.world.home()).unwrap().join("db").display())
    }

    /// The names of this world's containers.
    pub(crate) fn names(&self) -> Vec<String> {
        let filter = format!("label={}", self.home_label());
        let printed = self.ask(["ps", "--all", "--format", "{{.Names}}", "--filter", &filter]);
        printed.lines().map(str::to_owned).collect()
    }

    pub(crate) fn rows(&self, server: &Value) -> String {
        self.world.rows(self.engine, server)
    }

    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        self.world.nothing_left();
        assert_eq!(self.names(), Vec::<String>::new());
    }
}

/// A podman with a storage of its own, and its image of an engine.
pub(crate) fn image_of(engine: Engine) -> Option<(PathBuf, String)> {
    if !require_root("containers of root") || !require_program("podman") {
        return None;
    }
    let _one = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = checkout.join("target/containers");
    let script = checkout.join("scripts/steps/container-image");
    let made = Command::new(script).arg(engine.name()).arg(&directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let image = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    Some((fs::canonicalize(directory).unwrap().join("podman"), image))
}

/// The client of the tests' own engine.
static DOCKER: LazyLock<Option<PathBuf>> = LazyLock::new(docker);

/// Starts a Docker engine of the tests' own, which ends with this process. Returns the client for it.
fn docker() -> Option<PathBuf> {
    if !require_root("an engine of Docker") || !require_program("/usr/local/docker/bin/dockerd") {
        return None;
    }
    let directory = std::env::temp_dir().join(format!("calve-docker-{}", std::process::id()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/steps/docker-engine");
    let mut engine = Command::new("setpriv");
    engine.args(["--pdeathsig", "TERM"]).arg(script).arg(&directory);
    engine.stdout(std::process::Stdio::piped());
    let (ready, wait) = std::sync::mpsc::channel();
    // It gets the signal when the thread that started it ends.
    std::thread::spawn(move || {
        let mut engine = engine.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(engine.stdout.take().unwrap()).read_line(&mut line).unwrap();
        ready.send(line).unwrap();
        engine.wait().unwrap();
    });
    assert_eq!(wait.recv().unwrap(), "ready\n");
    Some(directory.join("docker"))
}

impl Drop for Containers {
    fn drop(&mut self) {
        let _ = self.world.db(["stop", "--all"]).command.output();
        // What a test that failed has left.
        for name in self.names() {
            let _ = self.world.inside(&[self.runtime.to_str().unwrap(), "rm", "--force", &name]).output();
        }
        let pause = self.pause.iter().filter_map(|file| fs::read_to_string(file).ok());
        pause.filter_map(|pid| pid.trim().parse().ok()).for_each(kill);
    }
}
