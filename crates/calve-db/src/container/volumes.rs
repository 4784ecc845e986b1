//! Data in volumes of a Docker engine that does not see this machine's files, or changes user ids.
//!
//! A server's volumes have the name of its container. The engine clones them from the template's volume; to build a template, Calve
//! fills them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use fs_err as fs;

use super::{Container, HOME, Image, MADE_IN, REMOVED_IN, SERVER, joined};
use crate::engine::Instance;
use crate::error::{Error, Result};
use crate::files::{private, random};
use crate::operation::Operation;

/// Where a container has its volume: in it are `data`, `tmp`, `s` for sockets, and `settings`.
pub(crate) const ROOT: &str = "/calve";
/// The label of a template's volume: which state of the template it has.
const TEMPLATE: &str = "calve.template";

/// The script among a server's settings, and the line that ends a file in it.
const SCRIPT: &str = "start";
const END: &str = "END-OF-FILE";
const LARGEST_SETTINGS: u64 = 1 << 20;

/// Makes the rest of a volume that has data, for the user `$0`.
const FURNISH: &str =
    r#"cd /calve && mkdir tmp s settings && chmod 700 tmp s settings && chown -R "$0" data tmp s settings"#;

/// A volume, with the other volumes of its overlay and its helper containers, whose names begin with its own.
pub(crate) struct Volume<'a> {
    image: &'a Image,
    pub(crate) name: String,
    labels: [OsString; 2],
}

impl Container {
    /// Returns the mount of its volume, for `--mount`.
    pub(super) fn volume_mount(&self) -> OsString {
        self.volume().mount(ROOT)
    }

    /// Returns its volume.
    pub(crate) fn volume(&self) -> Volume<'_> {
        let labels = [joined(HOME, &self.home), joined(SERVER, &self.server)];
        Volume { image: &self.image, name: self.name.clone(), labels }
    }

    /// Removes its volumes, if it has any. No container uses them.
    pub(crate) fn remove_volumes(&self) -> Result<()> {
        if self.image.apart.is_some() { self.volume().remove() } else { Ok(()) }
    }
}

impl<'a> Volume<'a> {
    /// Returns the volume for the state `identity` of a template of this home.
    pub(crate) fn of_template(image: &'a Image, name: &str, home: &Path, identity: &str) -> Self {
        Self { image, name: name.to_owned(), labels: [joined(HOME, home), joined(TEMPLATE, identity)] }
    }

    /// Returns another one that goes with it.
    pub(crate) fn beside(&self, end: &str) -> Self {
        Self { image: self.image, name: format!("{}-{end}", self.name), labels: self.labels.clone() }
    }

    pub(crate) fn make(&self) -> Result<()> {
        self.make_with(&[])
    }

    fn make_with(&self, options: &[String]) -> Result<()> {
        let mut line: Vec<OsString> = vec!["volume".into(), "create".into()];
        line.extend(options.iter().flat_map(|option| ["--opt".into(), option.into()]));
        line.extend(self.labelled());
        line.push(self.name.clone().into());
        self.image.ask(line).map(drop)
    }

    /// Makes one that the engine mounts as an overlay on the volume `lower`, which is at `directory`. The changes go to two other volumes,
    /// whose directories are beside that.
    pub(crate) fn make_overlay(&self, lower: &str, directory: &str) -> Result<()> {
        let (upper, work) = (self.beside("upper"), self.beside("work"));
        let at = |volume: &Self| directory.replace(lower, &volume.name);
        let directories = format!("o=lowerdir={directory},upperdir={},workdir={}", at(&upper), at(&work));
        let options = ["type=overlay".to_owned(), "device=overlay".to_owned(), directories];
        // Each is a process that waits for the engine.
        std::thread::scope(|scope| {
            let others = [&upper, &work].map(|volume| scope.spawn(move || volume.make()));
            let made = self.make_with(&options);
            let others = others.into_iter();
            others
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .fold(made, Result::and)
        })
    }

    /// Returns its directory like [`Self::directory`]; `None` if the engine does not have it. Fails if the engine does not say.
    pub(crate) fn find(&self) -> Result<Option<String>> {
        let listed = self.listed(&["volume", "ls", "--format", "{{.Name}} {{.Mountpoint}}"])?;
        let own = |line: &String| line.strip_prefix(self.name.as_str())?.strip_prefix(' ').map(str::to_owned);
        Ok(listed.iter().find_map(own))
    }

    /// Returns what a command of the engine lists whose name begins with its own, and that has its labels.
    fn listed(&self, list: &[&str]) -> Result<Vec<String>> {
        let labels = self.labels.iter().map(|label| joined("label", label));
        let filters = std::iter::once(joined("name", &self.name)).chain(labels);
        let filters = filters.flat_map(|filter| [OsString::from("--filter"), filter]);
        let listed = self.image.ask(list.iter().map(OsString::from).chain(filters))?;
        Ok(listed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Returns its directory, as the engine sees it.
    pub(crate) fn directory(&self) -> Result<String> {
        let told = self.image.ask(["volume", "inspect", "--format", "{{.Mountpoint}}", &self.name])?;
        Ok(told.trim().to_owned())
    }

    /// Makes it, with a copy of the data directory `data`.
    pub(crate) fn fill(&self, data: &Path, cancel: &CancelToken) -> Result<()> {
        self.make()?;
        let helper = self.helper_name("fill")?;
        let owner = self.image.apart.as_ref().map_or(String::new(), |apart| format!("{}:{}", apart.user, apart.group));
        self.image.ask(self.helper("create", &helper, None, FURNISH, &owner))?;
        let at = OsString::from(format!("{helper}:{ROOT}/"));
        self.image.work(["cp".into(), data.into(), at], cancel)?;
        // It removes itself once it has run.
        self.image.work(["start", "--attach", &helper], cancel).map(drop)
    }

    /// Copies its data into the empty directory `data`. No server uses it.
    pub(crate) fn carry_out(&self, data: &Path, cancel: &CancelToken) -> Result<()> {
        let helper = self.helper_name("carry")?;
        self.image.ask(self.helper("create", &helper, None, "", ""))?;
        let source = OsString::from(format!("{helper}:{ROOT}/data/."));
        let carried = self.image.work(["cp".into(), source, data.into()], cancel);
        let removed = self.image.ask(["rm", &helper]);
        carried.and(removed).map(drop)
    }

    /// Runs a script as root in a container with this volume, and `other` at `/template`. Returns its output.
    pub(crate) fn run(
        &self,
        other: Option<&Self>,
        script: &str,
        argument: &str,
        cancel: &CancelToken,
    ) -> Result<String> {
        let ran = self.image.work(self.helper("run", &self.helper_name("run")?, other, script, argument), cancel);
        if matches!(ran, Err(Error::Interrupted)) {
            // The engine carries on for the killed client. Its container can only be removed once it exists.
            std::thread::sleep(MADE_IN);
        }
        ran
    }

    /// Returns the name of a new container that uses it. One that could not be removed is not to keep others from being made.
    fn helper_name(&self, end: &str) -> Result<String> {
        Ok(format!("{}-{end}-{}", self.name, random::letters(6)?))
    }

    fn helper(&self, verb: &str, name: &str, other: Option<&Self>, script: &str, argument: &str) -> Vec<OsString> {
        let fixed = [
            "--rm",
            "--pull=never",
            "--network=none",
            "--user=0:0",
            "--no-healthcheck",
            "--cap-drop=all",
            "--cap-add=CHOWN",
            "--cap-add=DAC_OVERRIDE",
            "--cap-add=FOWNER",
            "--security-opt=label=disable",
            "--entrypoint=sh",
        ];
        let mut line: Vec<OsString> = [verb].iter().chain(&fixed).map(Into::into).collect();
        line.extend(self.image.options());
        line.extend(["--name".into(), name.into()]);
        line.extend(self.labelled());
        line.extend(["--mount".into(), self.mount(ROOT)]);
        if let Some(other) = other {
            let mut mount = other.mount("/template");
            mount.push(",readonly");
            line.extend(["--mount".into(), mount]);
        }
        line.extend([self.image.id.as_str(), "-c", script, argument].map(Into::into));
        line
    }

    /// Returns its mount, as fields that commas separate. The engine makes a volume that is missing, for example after a `kill -9`; by the
    /// labels a sweep finds it.
    fn mount(&self, at: &str) -> OsString {
        let mut text = OsString::from(format!("type=volume,src={},dst={at},volume-nocopy", self.name));
        for label in &self.labels {
            text.push(",\"volume-label=");
            text.push(label.to_string_lossy().replace('"', "\"\""));
            text.push("\"");
        }
        text
    }

    fn labelled(&self) -> impl Iterator<Item = OsString> {
        self.labels.iter().flat_map(|label| ["--label".into(), label.clone()])
    }

    /// Removes it, and what comes with it. Nothing with other labels is touched.
    pub(crate) fn remove(&self) -> Result<()> {
        // Containers first: they use the volumes.
        let lists: [(&[&str], &[&str]); 2] = [
            (&["ps", "--all", "--quiet", "--no-trunc"], &["rm", "--force", "--volumes"]),
            (&["volume", "ls", "--quiet"], &["volume", "rm", "--force"]),
        ];
        let started = Instant::now();
        loop {
            let mut failed = None;
            for (list, remove) in lists {
                let found = self.listed(list)?;
                if !found.is_empty() {
                    let words = remove.iter().copied().chain(found.iter().map(String::as_str));
                    failed = self.image.ask(words).err().or(failed);
                }
            }
            match failed {
                None => return Ok(()),
                // A container that has ended may keep its volume for another moment, or remove itself.
                Some(_) if started.elapsed() < REMOVED_IN => std::thread::sleep(Duration::from_millis(50)),
                Some(error) => return Err(error),
            }
        }
    }

    /// Removes it like [`Self::remove`], twice: the engine may still be carrying out requests of a killed client.
    pub(crate) fn remove_late(&self) -> Result<()> {
        let started = Instant::now();
        self.remove()?;
        std::thread::sleep(MADE_IN.saturating_sub(started.elapsed()));
        self.remove()
    }
}

/// Writes the script that a server's container runs first, which puts the settings into the volume. On the command line, every user of
/// this machine could read the password.
pub(crate) fn script(instance: &Instance, before: Option<&str>) -> Result<File> {
    let mut script = String::from("set -e\numask 077\ncd /calve\nrm -rf tmp/* s/* s/.s.*\n");
    for entry in instance.settings.entries()? {
        let name = entry.name.to_string_lossy();
        let text = instance.settings.read_to_string(&entry.name, LARGEST_SETTINGS)?.unwrap_or_default();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        script.push_str(&format!("cat >settings/{name} <<'{END}'\n{text}{end}{END}\n"));
    }
    script.push_str(before.unwrap_or_default());
    script.push_str("cd data\nexec \"$@\"\n");
    let path = instance.settings.path().join(SCRIPT);
    let mut file = instance.settings.create_new(SCRIPT, private::SECRET)?;
    file.write_all(script.as_bytes()).map_err(|error| Error::io(Operation::Write, &path, error))?;
    fs::File::open(&path).map(Into::into).map_err(|error| Error::io(Operation::Open, &path, error))
}
