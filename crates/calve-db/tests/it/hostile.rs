//! A server whose account is hostile: whatever it puts where it may write, neither root nor another user's file is touched.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use calve_testkit::{BindMount, UnprivilegedUser, is_root, matrix, require_root, write_program};
use fs_err as fs;
use serde_json::Value;

use crate::patience::Patience;
use crate::world::{Mariadb, Postgres, User, World, data_of, kill, names, ordinary, users};

/// What Calve has, or had in an older version, in the directories around a server.
const NAMES: &[&str] = &[
    ".s.PGSQL.5432",
    "begun.json",
    "config",
    "control",
    "copied",
    "copied.new",
    "data",
    "files",
    "init.sql",
    "lock",
    "log",
    "my.cnf",
    "mysql.sock",
    "mysql.sock.lock",
    "notify",
    "pg_hba.conf",
    "pg_ident.conf",
    "postgresql.conf",
    "s",
    "server.json",
    "server.new",
    "server.pid",
    "sockets",
    "tmp",
];

/// Puts a link of each of these names, in place of any entry, into every directory in which it may.
const PLANT: &str = r#"
outside=$1 names=$2
shift 2
planted=0
for directory; do
    for name in $names; do
        rm -f "$directory/$name" 2>/dev/null || rmdir "$directory/$name" 2>/dev/null
        ln -sT "$outside/$name" "$directory/$name" 2>/dev/null && planted=$((planted + 1))
    done
done
[ $planted -gt 0 ]
"#;

/// Files that only their owner may change, and names that nothing has yet.
struct Outside {
    path: PathBuf,
    before: Vec<String>,
}

impl Outside {
    fn make(world: &World) -> Self {
        let path = world.path().join("outside");
        fs::create_dir(&path).unwrap();
        for name in NAMES.iter().step_by(2) {
            fs::write(path.join(name), "kept").unwrap();
            rustix::fs::chmod(path.join(name), 0o600.into()).unwrap();
        }
        world.give(&path);
        rustix::fs::chmod(&path, 0o755.into()).unwrap();
        let before = Self::look(&path);
        Self { path, before }
    }

    fn look(path: &Path) -> Vec<String> {
        let one = |name: String| {
            let found = fs::symlink_metadata(path.join(&name)).unwrap();
            let text = fs::read(path.join(&name)).unwrap_or_default();
            format!("{name} {} {} {:o} {text:?}", found.uid(), found.gid(), found.mode())
        };
        names(path).into_iter().map(one).collect()
    }

    #[track_caller]
    fn is_unchanged(&self, after: &str) {
        assert_eq!(Self::look(&self.path), self.before, "{after}");
    }
}

/// An attacker with the account that a server runs as, and the rights of its SQL clients: outside of all namespaces, as a process that he left
/// there could.
struct Attacker {
    account: (u32, u32),
    /// Directories of the server: what it may write, and what it may not.
    around: Vec<PathBuf>,
    script: PathBuf,
}

impl Attacker {
    fn new(world: &World, server: &Value) -> Self {
        let found = fs::metadata(format!("/proc/{}", server["pid"])).unwrap();
        let place = world.home().join("db/servers").join(server["name"].as_str().unwrap());
        let directory = PathBuf::from(fs::read_to_string(place.join("sockets")).unwrap().lines().next().unwrap());
        let mut around = vec![place.join("tmp"), directory.join("s")];
        // Where both are one user, these are his own in any case.
        if is_root() && found.uid() != UnprivilegedUser::UID {
            around.extend([directory.join("settings"), directory.join("files"), place, directory]);
        }
        let script = plant_script(world);
        Self { account: (found.uid(), found.gid()), around, script }
    }

    /// The same by the server, where it sees its files.
    fn plant_by_sql(&self, world: &World, server: &Value, outside: &Outside) {
        let around: Vec<String> = self.around.iter().map(|path| path.display().to_string()).collect();
        let (script, outside) = (self.script.display(), outside.path.display());
        let line = format!("{script} {outside} \"{}\" {} >&2", NAMES.join(" "), around.join(" "));
        world.query(Postgres, server, &format!("COPY (SELECT 1) TO PROGRAM '{line}'"));
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        if is_root() {
            command.uid(self.account.0).gid(self.account.1);
        }
        command
    }

    /// Makes links that lead outside, wherever that is possible. Once the server is gone that may be nowhere.
    fn plant(&self, outside: &Outside) {
        let mut command = self.command(&self.script);
        let status = command.arg(&outside.path).arg(NAMES.join(" ")).args(&self.around).status().unwrap();
        assert!(status.success(), "nothing was planted");
    }
}

fn plant_script(world: &World) -> PathBuf {
    let script = world.path().join("plant");
    if !script.exists() {
        write_program(&script, format!("#!/bin/sh\n{PLANT}"));
    }
    script
}

/// Servers that share the machine's System V memory with others: of an ordinary user, and of root.
fn worlds_without_namespaces() -> Option<Vec<World>> {
    let mut worlds = vec![World::with(ordinary(), None)?.without_namespaces()];
    if is_root() {
        worlds.push(World::with(User::This, None)?.without_capability());
    }
    worlds.iter().for_each(|world| world.template(Postgres));
    Some(worlds)
}

#[test]
fn links_that_a_server_plants_lead_nowhere() {
    for engine in matrix([Postgres, Mariadb]) {
        for user in users() {
            let Some(world) = World::of(user, engine) else { return };
            let outside = Outside::make(&world);
            let server = world.start("a");
            let attacker = Attacker::new(&world, &server);
            if engine == Postgres {
                attacker.plant_by_sql(&world, &server, &outside);
            }
            attacker.plant(&outside);
            world.db(["reset", "a"]).succeeds();
            outside.is_unchanged("reset");
            let server = world.db(["url", "a", "--format", "json"]).succeeds().json();
            assert_eq!(world.rows(engine, &server), "1000");
            attacker.plant(&outside);
            world.stop("a");
            outside.is_unchanged("stop");
            let attacker = Attacker::new(&world, &world.start("a"));
            attacker.plant(&outside);
            world.supervisors().into_iter().for_each(kill);
            world.nothing_runs();
            attacker.plant(&outside);
            world.db(["gc"]).succeeds();
            outside.is_unchanged("gc");
            world.nothing_left();
        }
    }
}

/// A template is made by commands that anybody may have written, in a server that they may do everything in.
#[test]
fn links_that_are_planted_while_a_template_is_made_lead_nowhere() {
    for user in users() {
        let Some(world) = World::of(user, Postgres) else { return };
        let outside = Outside::make(&world);
        let script = plant_script(&world);
        // The directory above its sockets, and its place, which the server's own settings name.
        let sql = format!(
            "DO $$ BEGIN EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', '{} {} \"{}\" ' || current_setting('unix_socket_directories') \
             || ' ' || current_setting('unix_socket_directories') || '/.. ' || current_setting('data_directory') || '/.. ' \
             || current_setting('data_directory') || '/../tmp >&2'); END $$",
            script.display(),
            outside.path.display(),
            NAMES.join(" "),
        );
        world.db(["template", "create", "p", "-q", "--base", "t", "--"]).args(Postgres.client(&sql)).succeeds();
        outside.is_unchanged("template create");
        world.nothing_left();
    }
}

/// A client that root runs does what its configuration says.
#[test]
fn what_clients_of_root_read_is_root_s() {
    if !require_root("servers of another user") {
        return;
    }
    let Some(world) = World::having(Mariadb) else { return };
    world.start("a");
    let variables = world.db(["url", "a", "--format", "env"]).succeeds().stdout();
    let home = variables.lines().find_map(|line| line.strip_prefix("export MYSQL_HOME=")).unwrap();
    let home = PathBuf::from(home.trim_matches(['\'', '"', ';']));
    for path in home.ancestors().map(Path::to_path_buf).chain([home.join("my.cnf")]) {
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(found.uid() == 0 && found.mode() & 0o022 == 0, "{} {:o}", path.display(), found.mode());
    }
    world.stop("a");
}

/// As an older version has left it, in which the directory of the sockets was the server's as a whole.
#[test]
fn a_sweep_unmounts_nothing() {
    if !require_root("a mount") {
        return;
    }
    let Some(world) = World::having(Postgres) else { return };
    let precious = world.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::create_dir(world.path().join("what")).unwrap();
    fs::write(world.path().join("what/kept"), "").unwrap();
    let _mount = BindMount::new(world.path().join("what"), &precious);
    let attacker = Attacker::new(&world, &world.start("a"));
    let directory = world.noted_sockets().remove(0);
    world.supervisors().into_iter().for_each(kill);
    world.nothing_runs();
    std::os::unix::fs::chown(&directory, Some(attacker.account.0), Some(attacker.account.1)).unwrap();
    let link = attacker.command("ln").arg("-s").arg(&precious).arg(directory.join("files")).status().unwrap();
    assert!(link.success());
    world.db(["gc"]).succeeds();
    world.nothing_left();
    assert!(!directory.exists());
    assert!(precious.join("kept").exists(), "it was unmounted");
}

/// Under 777, only root enters the directories that it makes.
fn umasks(user: User) -> &'static [&'static str] {
    if is_root() && user == User::This { &["000", "777"] } else { &["000"] }
}

/// Whatever the umask is, and the modes of directories were.
#[test]
fn nobody_else_reads_or_locks() {
    for (user, umask) in users().into_iter().flat_map(|user| umasks(user).iter().map(move |umask| (user, umask))) {
        let umask = &["sh", "-c", &format!("umask {umask}; exec \"$@\""), "sh"];
        let Some(world) = World::with(user, None) else { return };
        let from = world.path().join("from");
        data_of(Postgres, &from);
        world.give(&from);
        world.db_by(umask, ["template", "create", "t", "-q", "--engine", "postgres", "--from"]).arg(&from).succeeds();
        let fail = ["template", "create", "f", "-q", "--base", "t", "--", "false"];
        world.db_by(umask, fail).fails(1, &["the command failed"]);
        world.db_by(umask, ["start", "t", "--name", "a", "--tcp"]).succeeds();
        is_closed(&world);
        let record = fs::metadata(world.home().join("db/servers/a/server.json")).unwrap();
        assert_eq!(record.mode() & 0o777, 0o600);
        for name in ["", "servers", "logs", "templates"] {
            rustix::fs::chmod(world.home().join("db").join(name), 0o755.into()).unwrap();
        }
        rustix::fs::chmod(world.home().join("db/servers/.lock"), 0o644.into()).unwrap();
        world.db(["list"]).succeeds();
        is_closed(&world);
        if is_root() {
            let home = world.home().join("db");
            let other = |words: &[&str], path: &Path| {
                let mut command = UnprivilegedUser::command(words[0]);
                command.args(&words[1..]).arg(path).arg("true").stdin(Stdio::null());
                command.status().unwrap().success()
            };
            if user == User::This {
                assert!(!other(&["cat"], &home.join("servers/a/server.json")));
                assert!(!other(&["flock", "--nonblock"], &home.join("servers/.lock")));
            }
        }
        world.stop("a");
    }
}

/// Directories that are not the server's own are closed to others, but for the way through them.
#[track_caller]
fn is_closed(world: &World) {
    let home = world.home().join("db");
    let directory = world.noted_sockets().remove(0);
    let own =
        [home.join("servers/a/data"), home.join("servers/a/tmp"), home.join("templates/t/data"), directory.join("s")];
    let mut waiting = vec![home, directory];
    while let Some(path) = waiting.pop() {
        // Trash is being deleted meanwhile.
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            found => found.unwrap(),
        };
        let mode = found.mode() & 0o777;
        let is_way = ["db", "servers", "services", "a"].iter().any(|name| path.ends_with(name));
        let most = if found.is_dir() && is_way {
            0o755
        } else if found.is_dir() {
            0o710
        } else {
            0o640
        };
        assert_eq!(mode & !most, 0, "{} {mode:o}", path.display());
        if found.is_dir() && !own.contains(&path) {
            waiting.extend(names(&path).into_iter().map(|name| path.join(name)));
        }
    }
}

/// System V segments of this world. Others use the same /dev/shm.
fn segments(world: &World) -> Vec<String> {
    world.ipc().into_iter().filter(|found| !found.starts_with("PostgreSQL")).collect()
}

/// Opening a note that is a FIFO waits for a writer.
#[test]
fn a_fifo_in_place_of_a_note_keeps_nobody_waiting() {
    let Some(worlds) = worlds_without_namespaces() else { return };
    for world in worlds {
        let server = world.start("a");
        let attacker = Attacker::new(&world, &server);
        let note = PathBuf::from(server["data_directory"].as_str().unwrap()).join("postmaster.pid");
        let replace = "rm \"$1\" && mkfifo \"$1\"";
        assert!(attacker.command("sh").args(["-c", replace, "sh"]).arg(&note).status().unwrap().success());
        let mut stop = world.db(["stop", "a"]).spawn();
        let patience = Patience::new(Duration::from_secs(20));
        let mut waits = false;
        while stop.try_wait().unwrap().is_none() {
            if patience.is_over() {
                waits = true;
                // The waiting process goes on.
                let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
                drop(rustix::fs::open(&note, flags, rustix::fs::Mode::empty()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!waits, "somebody waits for {}", note.display());
        assert!(stop.wait().unwrap().success());
        world.nothing_left();
        assert_eq!(segments(&world), Vec::<String>::new());
    }
}

/// Whichever memory a server's note names.
#[test]
fn memory_that_others_have_made_stays() {
    let Some(worlds) = worlds_without_namespaces() else { return };
    for world in worlds {
        assert!(world.inside(&["ipcmk", "--shmem", "100"]).stdout(Stdio::null()).status().unwrap().success());
        let others = segments(&world);
        let field = |at: usize| others[0].split_ascii_whitespace().nth(at).unwrap().to_owned();
        let (key, id, creator) = (field(0), field(1), field(4));
        let server = world.start("a");
        let attacker = Attacker::new(&world, &server);
        let note = PathBuf::from(server["data_directory"].as_str().unwrap()).join("postmaster.pid");
        let lie = "printf '%s\\n\\n\\n\\n\\n\\n%s %s\\n' \"$2\" \"$3\" \"$4\" > \"$1\"";
        let mut command = attacker.command("sh");
        command.args(["-c", lie, "sh"]).arg(&note).args([creator, key, id]);
        assert!(command.status().unwrap().success());
        // A server that looks at its note once a minute ends by itself.
        world.db(["stop", "a"]).ends();
        world.nothing_left();
        assert_eq!(segments(&world), others);
    }
}

/// A link in place of its socket, for as long as root may look for it there.
#[test]
fn what_is_said_to_a_server_is_not_said_to_another_one() {
    if !require_root("servers of another user") {
        return;
    }
    let Some(world) = World::having(Postgres) else { return };
    let start = |name: &str| world.db(["start", "t", "--json", "--tcp", "--name", name]).succeeds().json();
    let (other, server) = (start("other"), start("a"));
    let password = || world.query(Postgres, &other, "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'");
    let before = password();
    let attacker = Attacker::new(&world, &server);
    let over = world.path().join("over");
    let script = format!("until [ -e '{}' ]; do ln -sfn \"$1\" \"$2\"; done 2>/dev/null", over.display());
    let mut command = attacker.command("sh");
    command.args(["-c", &script, "sh", other["socket"].as_str().unwrap(), server["socket"].as_str().unwrap()]);
    let mut planting = command.spawn().unwrap();
    // That this server is kept from working is all that can be done.
    world.db(["reset", "a"]).ends();
    fs::write(over, "").unwrap();
    planting.wait().unwrap();
    assert_eq!(password(), before);
    world.stop_all();
}

/// What a server says goes to a file that it has open.
#[test]
fn a_log_may_be_of_any_length() {
    for user in users() {
        let Some(world) = World::of(user, Postgres) else { return };
        let lengthen = "COPY (SELECT 1) TO PROGRAM 'perl -e \"1 while <STDIN>; truncate(STDERR, 2 ** 43)\"'";
        let script = "\"$@\" && echo made long; exit 3";
        let mut run = world.db(["template", "create", "p", "--base", "t", "--", "sh", "-c", script, "sh"]);
        run = run.args(Postgres.client(lengthen));
        run.fails(3, &["made long", "the command failed"]);
        world.nothing_left();
    }
}
