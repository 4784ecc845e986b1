//! A CALVE_HOME of its own, on a file system, for a user; and commands of `calve db` there.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use calve_testkit::{FileSystem, UnprivilegedUser, Volume, calve_binary, copy_program, is_root, require_program};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::patience::Patience;

pub(crate) use crate::engine::Engine::{self, Mariadb, Mysql, Postgres, Redis, Valkey};
pub(crate) use crate::engine::MUCH;
pub(crate) use crate::run::Run;

/// Who runs `calve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The user who runs the tests.
    This,
    /// A user who owns nothing.
    Unprivileged,
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    user: User,
    /// What runs `calve`, if it is not run by itself.
    runner: Vec<OsString>,
    /// Has the namespaces that the runner enters, for as long as it runs.
    holder: Option<Child>,
    // Unmounted after everything in it is gone.
    _volume: Option<Volume>,
}

const SEGMENTS: &str = "/proc/sysvipc/shm";
/// In the numbers of statfs(2).
const BTRFS: i64 = 0x9123_683E;

/// A copy of the program that every user can reach, and a data directory of each engine, made once. Nothing is left to be ended when
/// the tests end.
static SHARED: OnceLock<(tempfile::TempDir, Child)> = OnceLock::new();
static MAKING: Mutex<()> = Mutex::new(());

impl World {
    /// In the directory for temporary files.
    pub(crate) fn new() -> Option<Self> {
        Self::with(User::This, None)
    }

    /// The same, with the template `t`.
    pub(crate) fn having(engine: Engine) -> Option<Self> {
        Self::of(User::This, engine)
    }

    /// The same, with a server `a` on that.
    pub(crate) fn with_server(engine: Engine) -> Option<(Self, Value)> {
        let world = Self::having(engine)?;
        let server = world.start("a");
        Some((world, server))
    }

    /// A user's, with the template `t`.
    pub(crate) fn of(user: User, engine: Engine) -> Option<Self> {
        let world = Self::with(user, None)?;
        world.template(engine);
        Some(world)
    }

    /// The same on a file system.
    pub(crate) fn at(file_system: FileSystem, user: User, engine: Engine) -> Option<Self> {
        let world = Self::on(file_system, user)?;
        world.template(engine);
        Some(world)
    }

    pub(crate) fn on(file_system: FileSystem, user: User) -> Option<Self> {
        Self::with(user, Some(Volume::with_size(file_system, 2 << 30)?))
    }

    pub(crate) fn with(user: User, volume: Option<Volume>) -> Option<Self> {
        if !["postgres", "mariadbd", "psql", "mariadb", "redis-server", "redis-cli"].iter().all(|program| has(program))
        {
            return None;
        }
        let folder = match &volume {
            Some(volume) => tempfile::tempdir_in(volume.path()).unwrap(),
            None => tempfile::tempdir().unwrap(),
        };
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(folder.path(), 0o755.into()).unwrap();
        let world = Self { folder, user, runner: Vec::new(), holder: None, _volume: volume };
        fs::create_dir(world.home()).unwrap();
        world.give(&world.home());
        Some(world)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// `calve`, where this user can reach it.
    pub(crate) fn program() -> PathBuf {
        shared().join("calve")
    }

    /// The same, with `calve` run by a command that ends in running what follows.
    pub(crate) fn within(mut self, runner: &[&str]) -> Self {
        self.runner = runner.iter().map(OsString::from).collect();
        self
    }

    /// The same, in a user namespace below which no other namespace of these kinds can be made (namespaces(7), /proc/sys/user).
    /// Its System V memory is this world's own, so that leftovers there are of this world.
    pub(crate) fn without_namespaces(mut self) -> Self {
        let forbid = "for kind in user mnt ipc pid; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; \
            echo ready; exec cat";
        let mut holder = self.command("unshare");
        holder.args(["--user", "--ipc", "--map-current-user", "--keep-caps", "sh", "-ec", forbid]);
        let target = self.hold(holder);
        self.within(&["nsenter", "--target", &target, "--user", "--ipc", "--preserve-credentials", "--"])
    }

    /// The same for root, who could make them in spite of that: without the capability that it takes, as in a container.
    pub(crate) fn without_capability(self) -> Self {
        self.without_capability_after(":")
    }

    /// The same without POSIX shared memory, as where `/dev/shm` is not mounted.
    pub(crate) fn without_posix_memory(self) -> Self {
        self.without_capability_after("mkdir -p /dev/shm; mount -t tmpfs -o mode=755 none /dev/shm")
    }

    fn without_capability_after(mut self, command: &str) -> Self {
        let mut holder = self.command("unshare");
        holder.args(["--ipc", "--mount", "sh", "-ec", &format!("{command}; echo ready; exec cat")]);
        let target = self.hold(holder);
        let directory = format!("--wd={}", self.path().display());
        let enter = ["nsenter", "--target", &target, "--ipc", "--mount", &directory, "--"];
        let drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"];
        self.within(&[&enter[..], &drop[..]].concat())
    }

    fn hold(&mut self, mut holder: Command) -> String {
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let target = holder.id().to_string();
        self.holder = Some(holder);
        target
    }

    /// A program in this world's namespaces, run by its user.
    pub(crate) fn inside(&self, words: &[&str]) -> Command {
        let line: Vec<OsString> = self.runner.iter().cloned().chain(words.iter().map(OsString::from)).collect();
        let mut command = self.command(&line[0]);
        command.args(&line[1..]);
        command
    }

    pub(crate) fn has_namespaces(&self) -> bool {
        self.runner.is_empty()
    }

    /// A process in whose namespaces `calve` is run, as /proc names it.
    pub(crate) fn outside(&self) -> String {
        self.holder.as_ref().map_or_else(|| "self".to_owned(), |holder| holder.id().to_string())
    }

    /// The directories of sockets of all servers, also of those being started.
    pub(crate) fn noted_sockets(&self) -> Vec<PathBuf> {
        let servers = self.home().join("db/servers");
        let notes = names(&servers).into_iter().map(|name| servers.join(name).join("sockets"));
        notes.filter_map(|note| Some(fs::read_to_string(note).ok()?.lines().next()?.into())).collect()
    }

    /// Makes something the user's own.
    pub(crate) fn give(&self, path: &Path) {
        if self.user == User::Unprivileged {
            let owner = format!("{}:{}", UnprivilegedUser::UID, UnprivilegedUser::GID);
            let output = Command::new("chown").args(["-R", &owner]).arg(path).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }

    /// `calve db WORDS`.
    pub(crate) fn db<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Run {
        self.calve("db").args(words)
    }

    /// The same, run by a command that ends in running what follows.
    pub(crate) fn db_by<S: AsRef<OsStr>>(&self, runner: &[&str], words: impl IntoIterator<Item = S>) -> Run {
        self.run(runner, "db").args(words)
    }

    /// `calve COMMAND`.
    pub(crate) fn calve(&self, name: &str) -> Run {
        self.run(&[], name)
    }

    fn run(&self, runner: &[&str], name: &str) -> Run {
        let mut line = self.runner.clone();
        line.extend(runner.iter().map(OsString::from));
        line.push(Self::program().into());
        let mut command = self.command(&line[0]);
        command.args(&line[1..]).arg(name).current_dir(self.path());
        command.env("CALVE_HOME", self.home()).env_remove("LD_LIBRARY_PATH").env_remove("XDG_RUNTIME_DIR");
        Run { command }
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.user {
            User::This => Command::new(program),
            User::Unprivileged => UnprivilegedUser::command(program),
        }
    }

    /// System V segments, and PostgreSQL's POSIX ones, of this world; where other tests have theirs in the same namespace, those
    /// without attached processes.
    pub(crate) fn ipc(&self) -> Vec<String> {
        let list = match self.holder {
            Some(_) => {
                let output = self.inside(&["cat", SEGMENTS]).output().unwrap();
                assert!(output.status.success(), "{output:?}");
                String::from_utf8(output.stdout).unwrap()
            }
            None => fs::read_to_string(SEGMENTS).unwrap(),
        };
        let is_left = |line: &&str| self.holder.is_some() || line.split_ascii_whitespace().nth(6) == Some("0");
        let mut found: Vec<String> = list.lines().skip(1).filter(is_left).map(str::to_owned).collect();
        found.extend(names(Path::new("/dev/shm")).into_iter().filter(|name| name.contains("PostgreSQL")));
        found
    }

    /// A template `t` with a thousand rows. It is made once for all tests, by taking over a data directory, and copied here.
    pub(crate) fn template(&self, engine: Engine) {
        let templates = self.home().join("db/templates");
        // A copy of a subvolume is a plain directory, and could not be snapshot.
        if rustix::fs::statfs(self.home()).unwrap().f_type == BTRFS {
            return self.take_over(engine);
        }
        fs::create_dir_all(&templates).unwrap();
        copy(&taken_over(engine), &templates.join("t"));
        if self.user == User::Unprivileged {
            let document = templates.join("t/template.json");
            let mut template: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
            template["account"] = serde_json::json!({ "user": UnprivilegedUser::UID, "group": UnprivilegedUser::GID });
            fs::write(&document, template.to_string()).unwrap();
            self.give(&self.home());
        }
    }

    /// The same, made here.
    pub(crate) fn take_over(&self, engine: Engine) {
        let mut from = made(engine);
        if self.user == User::Unprivileged {
            let own = self.path().join(format!("from-{}", engine.name()));
            copy(&from, &own);
            self.give(&own);
            from = own;
        }
        self.db(["template", "create", "t", "--engine", engine.name(), "-q", "--from"]).arg(&from).succeeds();
    }

    /// Starts a server `name` on `t`.
    pub(crate) fn start(&self, name: &str) -> Value {
        self.db(["start", "t", "--json", "--name", name]).succeeds().json()
    }

    pub(crate) fn stop(&self, name: &str) {
        self.db(["stop", name]).succeeds();
    }

    /// Stops the last server, of which nothing is left.
    #[track_caller]
    pub(crate) fn stop_last(&self, name: &str) {
        self.stop(name);
        self.nothing_left();
    }

    /// Stops all servers, of which nothing is left.
    #[track_caller]
    pub(crate) fn stop_all(&self) {
        self.db(["stop", "--all"]).succeeds();
        self.nothing_left();
    }

    /// Runs a statement on a server, and gives what it prints.
    #[track_caller]
    pub(crate) fn query(&self, engine: Engine, server: &Value, sql: &str) -> String {
        let output = self.client(engine, server, sql).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn client(&self, engine: Engine, server: &Value, sql: &str) -> Command {
        let words = engine.client(sql);
        let mut command = Command::new(&words[0]);
        match engine {
            Postgres => command.args(&words[1..]).arg(server["url"].as_str().unwrap()),
            Mariadb | Mysql => {
                let socket = server["socket"].as_str().unwrap();
                command.args(["--no-defaults", "-uroot", "-Dtest", "-S", socket]).args(&words[1..])
            }
            Redis | Valkey => {
                let socket = server["socket"].as_str().unwrap();
                command = Command::new("redis-cli");
                command.args(["-e", "-s", socket, "EVAL", sql, "0"])
            }
        };
        command
    }

    /// Puts [`MUCH`] into a server of Redis or Valkey.
    #[track_caller]
    pub(crate) fn fill_up(&self, server: &Value) {
        let socket = server["socket"].as_str().unwrap();
        let filled = Command::new("sh").args(["-c", MUCH]).env("REDIS_SOCKET", socket).output().unwrap();
        assert!(filled.status.success(), "{filled:?}");
    }

    /// Changes a setting of Redis or Valkey, which no script may.
    #[track_caller]
    pub(crate) fn set(&self, server: &Value, name: &str, value: &str) {
        let socket = server["socket"].as_str().unwrap();
        let output = Command::new("redis-cli").args(["-e", "-s", socket, "CONFIG", "SET", name, value]).output();
        assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{name}: {output:?}");
    }

    #[track_caller]
    pub(crate) fn rows(&self, engine: Engine, server: &Value) -> String {
        self.query(engine, server, engine.count())
    }

    /// The processes of this world's servers and supervisors, each with its command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .filter_map(|pid| self.process(&pid))
            .collect()
    }

    /// Returns a process if it is this world's: it has a path of it in its command line or environment, or works there.
    fn process(&self, pid: &str) -> Option<String> {
        let at = Path::new("/proc").join(pid);
        let mark = self.home().to_string_lossy().into_owned();
        let text = |name: &str| {
            let bytes = fs::read(at.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let command = text("cmdline");
        // A zombie has neither.
        let is_ours = command.contains(&mark) || command.contains("__supervise") && text("environ").contains(&mark);
        let works_there = || fs::read_link(at.join("cwd")).is_ok_and(|at| at.starts_with(self.home()));
        (is_ours || works_there()).then(|| format!("{pid} {command}"))
    }

    /// The supervisors of this world.
    pub(crate) fn supervisors(&self) -> Vec<u64> {
        let processes = self.processes();
        let found = processes.iter().filter(|process| process.contains("__supervise"));
        found.map(|process| process.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    /// Nothing runs any more, within two seconds.
    #[track_caller]
    pub(crate) fn nothing_runs(&self) {
        let patience = Patience::new(Duration::from_secs(2));
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            // Until these have ended it is not worth a look at all the others.
            while processes.iter().any(|process| self.process(process.split(' ').next().unwrap()).is_some()) {
                assert!(!patience.is_over(), "still there: {processes:#?}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// No server, no file and no socket is left.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        self.nothing_runs();
        eventually(|| {
            let names = names(&self.home().join("db/servers"));
            if names == [".lock"] { Ok(()) } else { Err(format!("{names:?}")) }
        });
        assert_eq!(self.sockets(), Vec::<PathBuf>::new());
    }

    /// The directories of sockets whose notes name this world.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let list = self.db(["list", "--json"]).succeeds().json();
        let servers = list["servers"].as_array().unwrap();
        servers.iter().map(|server| PathBuf::from(server["socket"].as_str().unwrap())).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Templates are read-only, which keeps all but root from deleting them.
        if !is_root() {
            let templates = self.home().join("db/templates");
            let _ = Command::new("chmod").args(["-R", "u+w"]).arg(templates).stderr(Stdio::null()).status();
        }
        let _ = self.db(["stop", "--all"]).command.output();
        let _ = self.db(["gc"]).command.output();
        // What a test that failed has found.
        for process in self.processes() {
            let pid = process.split(' ').next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
        if let Some(mut holder) = self.holder.take() {
            // It ends with its input.
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

fn shared() -> &'static Path {
    let (folder, _) = SHARED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        rustix::fs::chmod(folder.path(), 0o755.into()).unwrap();
        copy_program(calve_binary(), folder.path().join("calve"));
        // Nothing drops it. This process has the only other end of that pipe, and however it ends, the directory goes.
        let script = "trap '' HUP INT TERM; cat >/dev/null; chmod -R u+w \"$0\"; rm -rf \"$0\"";
        let cleaner = Command::new("sh").args(["-c", script]).arg(folder.path()).stdin(Stdio::piped()).spawn();
        (folder, cleaner.unwrap())
    });
    folder.path()
}

/// The data directory of an engine, filled and stopped.
fn made(engine: Engine) -> PathBuf {
    let _one = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    create_once(engine, "made", |words| {
        words.push("--".into());
        words.extend(engine.client(engine.fill()));
    })
    .join("data")
}

/// A template that was made of that data directory.
fn taken_over(engine: Engine) -> PathBuf {
    let from = made(engine);
    let _one = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    create_once(engine, "t", |words| words.extend(["--from".into(), from.into()]))
}

/// Makes a template of that name, unless it is there.
fn create_once(engine: Engine, name: &str, more: impl FnOnce(&mut Vec<OsString>)) -> PathBuf {
    let home = shared().join(engine.name());
    let place = home.join("db/templates").join(name);
    if !place.is_dir() {
        let mut words: Vec<OsString> =
            ["db", "template", "create", "-q", "--engine", engine.name(), name].map(OsString::from).to_vec();
        more(&mut words);
        let output = Command::new(calve_binary()).args(words).env("CALVE_HOME", &home).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    place
}

/// A copy of a stopped data directory, for this user.
pub(crate) fn data_of(engine: Engine, at: &Path) {
    copy(&made(engine), at);
}

fn copy(src: &Path, dst: &Path) {
    let output = Command::new("cp").arg("-a").arg(src).arg(dst).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Fills the disk of a directory, but for `leave` bytes.
pub(crate) fn fill(directory: &Path, leave: u64) -> fs::File {
    let filler = fs::File::create(directory.join("filler")).unwrap();
    let room = rustix::fs::statvfs(directory).unwrap();
    let bytes = (room.f_bavail - leave / room.f_frsize) * room.f_frsize;
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
    filler
}

/// Those of a directory that is there; one that is deleted meanwhile has none.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let is_gone = |entry: &io::Result<_>| matches!(entry, Err(error) if error.kind() == io::ErrorKind::NotFound);
    let entries = fs::read_dir(directory).into_iter().flatten().filter(|entry| !is_gone(entry));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
pub(crate) fn eventually(mut holds: impl FnMut() -> Result<(), String>) {
    let patience = Patience::new(Duration::from_secs(5));
    while let Err(why) = holds() {
        assert!(!patience.is_over(), "not so after 5 s: {why}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A script that goes on until a file exists, or for a minute at most.
pub(crate) fn until(file: &str) -> String {
    format!("n=0; until [ -e {file} ] || [ $n -ge 6000 ]; do n=$((n + 1)); sleep 0.05; done")
}

fn has(program: &str) -> bool {
    // PostgreSQL's server is not in PATH on Debian.
    let at_home = |version: u32| Path::new(&format!("/usr/lib/postgresql/{version}/bin/{program}")).exists();
    (13..=18).any(at_home) || require_program(program)
}

/// Users to run as: this one, and when this one is root, another one.
pub(crate) fn users() -> Vec<User> {
    if is_root() { vec![User::This, User::Unprivileged] } else { vec![User::This] }
}

/// A user without privilege.
pub(crate) fn ordinary() -> User {
    if is_root() { User::Unprivileged } else { User::This }
}

/// Sends a signal to a process, which is there.
pub(crate) fn signal(pid: u64, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Kills a process, which may have ended.
pub(crate) fn kill(pid: u64) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
}
