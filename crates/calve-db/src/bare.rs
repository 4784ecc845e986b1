//! Servers started without Calve's cloning, for `calve bench db` to compare with.
//!
//! A bare server has a place in the registry, whose lock this process holds, so that the next command removes its container and files,
//! should this process be killed. Images and volumes have the number of the process in their names, and go with the next [`BareServers`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;

use calve_core::{CancelToken, RemovalWait};
use rustix::fs::FlockOperation;

use crate::address::Address;
use crate::container::{self, Image, ServerProcess};
use crate::engine::{self, Engine, memory};
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private::{self, CLOSED};
use crate::files::{random, trash};
use crate::launch::data::{Mounts, clone_data};
use crate::launch::{ContainerData, LaunchRequest, Places, as_seen, instance, open_up, places, start_server};
use crate::messages::{Origin, Spec};
use crate::operation::Operation;
use crate::registry::{self, EarlyRecord, Home, RegistryPlace};
use crate::server::spec_of;
use crate::sys::{self, ProcessEnd};
use crate::template::{self, DatabaseTemplate};
use crate::{log, runtime, sweep};

/// How a server gets data of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareData {
    /// A data directory that is there: a clone that was made before, by the best strategy but an overlay.
    Directory,
    /// The container's image has the data.
    Image,
    /// A volume of `type=overlay`, which the container's runtime mounts.
    OverlayVolume,
    /// The template's directory, bound with podman's option `O`.
    OverlayBind,
}

/// Bare servers of a template, one at a time.
pub struct BareServers<'a> {
    home: &'a Home,
    template: DatabaseTemplate,
    /// The name of the server: there is one at a time.
    name: String,
    /// The image that has the data, once there is one.
    filled: Option<String>,
    /// The lock of the template, which stays as it is.
    _lock: File,
}

/// A bare server that only has to be started.
pub struct PreparedBareServer {
    parts: Parts,
    places: Places,
    data: BareData,
    /// The directory that the data is in.
    source: OsString,
}

/// A bare server, which is killed when this is dropped.
pub struct BareServer {
    process: ServerProcess,
    // Dropped after the process.
    parts: Parts,
}

/// Everything of a server but its process. Removed when dropped.
struct Parts {
    engine: &'static dyn Engine,
    spec: Spec,
    address: Address,
    volume: Option<String>,
    /// True once its container is known to be gone.
    is_removed: bool,
    _place: RegistryPlace,
}

/// The label of the images and volumes of a home.
const LABEL: &str = "calve.bench";
/// The beginnings of their names, before that of the process.
const IMAGE: &str = "localhost/calve-bench:";
const VOLUME: &str = "calve-bench-";

impl<'a> BareServers<'a> {
    /// Locks the template `name` of `templates`, and removes the images and volumes that killed benches left. The places of the servers are in
    /// `home`.
    pub fn new(home: &'a Home, templates: &Home, name: &str) -> Result<Self> {
        let template = template::load(templates, name)?;
        home.prepare()?;
        let lock = registry::open_lock(&template.place)?;
        registry::wait_for(&lock, FlockOperation::LockShared)
            .map_err(|errno| Error::io(Operation::Lock, &template.place, errno))?;
        template.image.iter().for_each(|image| remove_left(image, home));
        let name = format!("bench-{}", random::letters(8)?);
        Ok(Self { home, template, name, filled: None, _lock: lock })
    }

    /// Returns the ways in which its servers can get data.
    pub fn ways(&self) -> &'static [BareData] {
        use BareData::{Directory, Image, OverlayBind, OverlayVolume};
        match &self.template.image {
            None => &[Directory],
            Some(image) if image.is_docker() => &[Directory, Image, OverlayVolume],
            Some(_) => &[Directory, Image, OverlayVolume, OverlayBind],
        }
    }

    /// Returns the name of the runtime, if the servers are in containers.
    pub fn runtime(&self) -> Option<&'static str> {
        self.template.image.as_ref().map(|image| if image.is_docker() { "docker" } else { "podman" })
    }

    /// Removes the image that was made of the data.
    pub fn finish(mut self) -> Result<()> {
        match (&self.template.image, self.filled.take()) {
            (Some(image), Some(filled)) => image.work(["rmi", &filled], &CancelToken::default()).map(drop),
            _ => Ok(()),
        }
    }

    /// Prepares a server, which is not timed.
    pub fn prepare(&mut self, data: BareData, cancel: &CancelToken) -> Result<PreparedBareServer> {
        let engine = engine::named(&self.template.engine)?;
        let place = registry::reserve(self.home, &self.name)?;
        let spec = spec_of(self.home, &self.name, &place, self.template.clone())?;
        let address = engine.address(&spec.directory, None, None);
        let spec = Spec { origin: Origin::Present, isolate: false, ..spec };
        let mut parts = Parts { engine, spec, address, volume: None, is_removed: false, _place: place };
        let spec = &mut parts.spec;
        sweep::note_sockets(&spec.place, &spec.directory)?;
        spec.container.as_ref().map_or(Ok(()), |container| container.note(&spec.place))?;
        registry::write_begun(&spec.place, &EarlyRecord::now(&spec.engine, None))?;
        runtime::make(&spec.directory, spec.account)?;
        let source = self.template.data_directory();
        match data {
            BareData::Directory => {
                clone_data(&source, &spec.place.join("data"), None, Mounts::None, cancel)?;
            }
            BareData::Image => {
                if let Some(container) = &mut spec.container {
                    container.image.id = self.filled_image(&container.image, &spec.place, cancel)?;
                }
            }
            BareData::OverlayVolume => {
                let place = Directory::open(&spec.place)?;
                for name in ["upper", "work"] {
                    private::make_in(&place, name, CLOSED)?.give_itself(spec.account)?;
                }
            }
            BareData::OverlayBind => {}
        }
        let wanted = parts.request(ContainerData::Bound, cancel);
        let places = places(&wanted)?;
        open_up(&wanted, &places.place, &places.settings)?;
        Ok(PreparedBareServer { parts, places, data, source: source.into() })
    }

    /// Returns the image that has the data in a place, as users make one.
    fn filled_image(&mut self, image: &Image, place: &Path, cancel: &CancelToken) -> Result<String> {
        if let Some(filled) = &self.filled {
            return Ok(filled.clone());
        }
        let account = self.template.account;
        // Docker's builder finds no image of this machine by its identity.
        let base = format!("{IMAGE}base-{}", own_name());
        image.ask(["tag", &image.id, &base])?;
        // The directory above, because a copied directory itself would get other permissions than its own.
        let recipe = format!(
            "FROM {}\nCOPY --chown={}:{} [\"./\", {}]\n",
            base,
            account.user,
            account.group,
            serde_json::Value::from(place.to_string_lossy()),
        );
        let file = place.join("recipe");
        private::replace(&file, recipe.as_bytes())?;
        let name = format!("{IMAGE}{}", own_name());
        let words = ["build", "--quiet", "--tag", &name, "--label"].map(OsString::from);
        let paths = [label(self.home.path()), "--file".into(), file.into(), self.template.place.clone().into()];
        let built = image.work(words.into_iter().chain(paths), cancel);
        let untagged = image.ask(["rmi", &base]);
        built.and(untagged)?;
        self.filled = Some(name.clone());
        Ok(name)
    }
}

impl Drop for BareServers<'_> {
    fn drop(&mut self) {
        if let (Some(image), Some(filled)) = (&self.template.image, &self.filled) {
            let _ = image.work(["rmi", filled], &CancelToken::default());
        }
    }
}

impl PreparedBareServer {
    /// Starts it. Returns before it answers.
    pub fn start(self, cancel: &CancelToken) -> Result<BareServer> {
        let Self { mut parts, places: Places { settings, output, .. }, data, source } = self;
        if data == BareData::OverlayVolume {
            parts.make_volume(&source)?;
        }
        let container_data = match (data, &parts.volume) {
            (BareData::Image, _) => ContainerData::OfImage,
            (BareData::OverlayBind, _) => ContainerData::Mounted { source: &source, option: Some("O") },
            (_, Some(volume)) => ContainerData::Mounted { source: OsStr::new(volume), option: None },
            (_, None) => ContainerData::Bound,
        };
        let wanted = parts.request(container_data, cancel);
        let seen = as_seen(&wanted)?;
        let instance = instance(&wanted, seen.path(), settings);
        let process = start_server(&wanted, &instance, None, &output)?;
        registry::write_begun(&parts.spec.place, &EarlyRecord::now(&parts.spec.engine, Some(process.pid())))?;
        Ok(BareServer { process, parts })
    }
}

impl BareServer {
    /// Returns how it is reached.
    pub fn address(&self) -> &Address {
        &self.parts.address
    }

    /// Fails if it has ended, or its runtime could not start it.
    pub fn check(&mut self) -> Result<()> {
        let Some(ended) = self.process.ended() else { return Ok(()) };
        // The exit codes by which runtimes say that.
        if let (Some(container), ProcessEnd::Exit(code @ 125..=127)) = (&self.parts.spec.container, ended) {
            let (runtime, said) = (container.image.runtime.clone(), log::tail(&self.parts.spec.place));
            return Err(Error::Runtime { runtime, code: Some(code), said });
        }
        Err(log::added_to(Error::server_failed(format!("ended ({ended})")), &self.parts.spec.place))
    }

    /// Kills it. Its files are removed when it is dropped.
    pub fn stop(&mut self) -> Result<()> {
        self.kill();
        self.process.check_removed()?;
        self.parts.is_removed = true;
        Ok(())
    }

    fn kill(&mut self) {
        match sys::ProcessHandle::open(self.process.pid(), None) {
            Some(process) if self.parts.spec.container.is_none() => sys::end_tree(&process),
            _ => self.process.kill(),
        }
        let _ = self.process.wait();
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        if !self.parts.is_removed && self.process.ended().is_none() {
            self.kill();
        }
        if self.parts.spec.container.is_none() {
            memory::remove(self.parts.engine, &self.parts.spec.place, Some(self.process.pid()));
        }
    }
}

impl Parts {
    fn request<'r>(&'r self, container_data: ContainerData<'r>, cancel: &'r CancelToken) -> LaunchRequest<'r> {
        LaunchRequest {
            spec: &self.spec,
            origin: &Origin::Present,
            files: &self.spec.place,
            directory: &self.spec.directory,
            reset: None,
            is_ahead: false,
            engine: self.engine,
            address: &self.address,
            isolated: false,
            starter: None,
            owners: (None, Vec::new()),
            cancel,
            container_data,
            tell: &|_| (),
        }
    }

    /// Makes the volume, whose lower directory is `lower`. Its runtime mounts it for the container.
    fn make_volume(&mut self, lower: &OsStr) -> Result<()> {
        let Some(container) = &self.spec.container else { return Ok(()) };
        let name = format!("{VOLUME}{}", own_name());
        let place = &self.spec.place;
        let mut options = OsString::from("o=lowerdir=");
        for part in [lower, ",upperdir=".as_ref(), place.join("upper").as_ref(), ",workdir=".as_ref()] {
            options.push(part);
        }
        options.push(place.join("work"));
        let words = ["volume", "create", "--opt", "type=overlay", "--opt", "device=overlay", "--opt"];
        let labelled = [options, "--label".into(), label(container.home()), name.clone().into()];
        // Set first: the runtime may make the volume although its answer is late.
        self.volume = Some(name);
        container.image.ask(words.map(OsString::from).into_iter().chain(labelled)).map(drop)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        runtime::remove(&self.spec.directory, RemovalWait::Yes);
        let is_gone = self.is_removed || container::remove_left(&self.spec.place).is_ok();
        if let (Some(container), Some(volume)) = (&self.spec.container, &self.volume) {
            let _ = container.image.ask(["volume", "rm", "--force", volume]);
        }
        // Otherwise the place tells the next sweep which container is left.
        if is_gone {
            let _ = trash::remove(&self.spec.place, RemovalWait::Yes);
        }
    }
}

/// Returns the name of this process, which no other one has until the machine starts again.
fn own_name() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", sys::start_time(pid).unwrap_or_default())
}

fn label(home: &Path) -> OsString {
    let mut label = OsString::from(LABEL);
    label.push("=");
    label.push(home);
    label
}

/// Returns whether a name is that of a process ([`own_name`]) that has ended.
fn has_ended(name: &str) -> bool {
    let numbers = name.split_once('-').and_then(|(pid, started)| Some((pid.parse().ok()?, started.parse().ok()?)));
    numbers.is_some_and(|(pid, started)| sys::start_time(pid) != Some(started))
}

/// Removes the images and volumes of processes that were killed. Nothing with another name is touched, whatever its labels.
fn remove_left(image: &Image, home: &Home) {
    let mut filter = OsString::from("label=");
    filter.push(label(home.path()));
    let lists = [
        (&["images", "--format", "{{.Repository}}:{{.Tag}}"][..], IMAGE, &["rmi"][..]),
        (&["volume", "ls", "--format", "{{.Name}}"], VOLUME, &["volume", "rm"]),
    ];
    for (list, prefix, remove) in lists {
        let words = list.iter().map(OsString::from).chain(["--filter".into(), filter.clone()]);
        let Ok(listed) = image.ask(words) else { continue };
        for name in listed.lines().filter(|name| name.strip_prefix(prefix).is_some_and(has_ended)) {
            let _ = image.ask(remove.iter().chain(&[name]));
        }
    }
}
