//! kill -9, at any moment: no process, mount or IPC object is left after two seconds, and no file after the next command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use calve_testkit::{SplitMix64, copy_program, is_root, matrix, require_program, require_root, rounds, write_program};

use crate::world::{Engine, Postgres, World, data_of, eventually, kill, names, ordinary, until, users};

fn mounts(world: &World) -> Vec<String> {
    let all = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let home = world.home().to_string_lossy().into_owned();
    all.lines().filter(|line| line.contains(&home)).map(str::to_owned).collect()
}

/// A process's namespaces but for those that this world is in, and their processes. Everything in them goes with the last of those.
struct Apart {
    namespaces: Vec<PathBuf>,
    members: Vec<(String, String)>,
}

impl Apart {
    fn new(world: &World, pid: u64) -> Self {
        let own = namespaces_of(&world.outside());
        let namespaces: Vec<_> =
            namespaces_of(&pid.to_string()).into_iter().filter(|found| !own.contains(found)).collect();
        let is_member = |process: &String| namespaces_of(process).iter().any(|found| namespaces.contains(found));
        let members = names(Path::new("/proc")).into_iter().filter(is_member);
        let members = members.filter_map(|process| Some((started(&process)?, process))).collect();
        Self { namespaces, members }
    }

    /// The number of a namespace that is gone is soon that of another one, so it is the processes that are looked for.
    fn is_gone(&self) {
        eventually(|| {
            let left = self.members.iter().find(|(then, process)| started(process).as_ref() == Some(then));
            left.map_or(Ok(()), |(_, process)| Err(format!("{process} is still in {:?}", self.namespaces)))
        });
    }
}

fn namespaces_of(process: &str) -> Vec<PathBuf> {
    let all = ["ipc", "mnt", "pid"].map(|kind| fs_err::read_link(format!("/proc/{process}/ns/{kind}")));
    all.into_iter().flatten().collect()
}

/// When a process that has not ended started (proc_pid_stat(5)).
pub(crate) fn started(process: &str) -> Option<String> {
    let text = fs_err::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
    (!["Z", "X"].contains(&fields[0])).then(|| fields[19].to_owned())
}

/// What there was before a kill, and must not be there after it.
struct Before {
    ipc: Vec<String>,
    sockets: Vec<PathBuf>,
}

impl Before {
    fn new(world: &World) -> Self {
        Self { ipc: world.ipc(), sockets: Vec::new() }
    }

    /// Where the sockets are of what runs now.
    fn note(&mut self, world: &World) {
        self.sockets.extend(world.noted_sockets());
    }

    fn no_ipc(&self, world: &World) {
        // Other tests have segments too, for a moment before they are attached to.
        eventually(|| {
            let left: Vec<String> = world.ipc().into_iter().filter(|segment| !self.ipc.contains(segment)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}

#[test]
fn a_copied_home_leaves_the_servers_of_the_original_alone() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let copy = world.path().join("copy");
    // Also of files that the server changes meanwhile.
    let _ = Command::new("cp").arg("-a").args([&world.home(), &copy]).stderr(Stdio::null()).status();
    assert!(copy.join("db/servers/a").exists());
    for words in [&["list"][..], &["gc"]] {
        let listed = world.db(words).env("CALVE_HOME", &copy).succeeds().stdout();
        assert!(!listed.contains("ended"), "nothing has ended: {listed}");
    }
    assert!(!copy.join("db/servers/a").exists());
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_last("a");
}

/// Nothing but files, and after the next command not those.
#[track_caller]
fn is_clean(world: &World, before: &Before) {
    world.nothing_runs();
    assert_eq!(mounts(world), Vec::<String>::new());
    before.no_ipc(world);
    no_file_is_left(world, before);
}

#[track_caller]
fn no_file_is_left(world: &World, before: &Before) {
    world.db(["gc"]).succeeds();
    world.nothing_left();
    for directory in &before.sockets {
        assert!(!directory.exists() && !directory.with_extension("control").exists(), "{}", directory.display());
    }
}

/// The ways in which servers are kept apart: by root, by others in a user namespace, and without namespaces.
fn worlds(engine: Engine) -> Option<Vec<World>> {
    let mut worlds = Vec::new();
    for user in users() {
        worlds.push(World::with(user, None)?);
    }
    worlds.push(World::with(ordinary(), None)?.without_namespaces());
    worlds.iter().for_each(|world| world.template(engine));
    Some(worlds)
}

#[test]
fn the_server_and_the_supervisor() {
    let Some(worlds) = worlds(Postgres) else { return };
    for world in worlds {
        for is_supervisor in [false, true] {
            let mut before = Before::new(&world);
            let pid = world.start("a")["pid"].as_u64().unwrap();
            let apart = Apart::new(&world, pid);
            assert_eq!(apart.namespaces.len(), if world.has_namespaces() { 3 } else { 0 });
            let [supervisor] = world.supervisors()[..] else { panic!("there is one supervisor") };
            before.note(&world);
            assert_eq!(before.sockets.len(), 1);
            kill(if is_supervisor { supervisor } else { pid });
            is_clean(&world, &before);
            apart.is_gone();
        }
        // The name can be used again.
        world.start("a");
        world.stop("a");
    }
}

/// PostgreSQL has one, whatever its settings are.
#[test]
fn a_server_s_system_v_memory_is_in_its_own_namespace() {
    if !require_root("nsenter") {
        return;
    }
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let pid = server["pid"].as_u64().unwrap();
    let inside = |path: &str| {
        let words = ["--target", &pid.to_string(), "--ipc", "--mount", "--", "cat", path];
        let output = Command::new("nsenter").args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let ids = |list: &str| -> Vec<String> {
        list.lines().skip(1).map(|line| line.split_ascii_whitespace().nth(1).unwrap().to_owned()).collect()
    };
    let note = inside(&world.home().join("db/servers/a/data/postmaster.pid").to_string_lossy());
    let segment = note.lines().nth(6).unwrap().split_ascii_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(ids(&inside("/proc/sysvipc/shm")), [segment]);
    world.stop_last("a");
}

#[test]
fn the_command_that_owns_the_server() {
    let Some(worlds) = worlds(Postgres) else { return };
    for world in worlds {
        let mut before = Before::new(&world);
        let mut run = world.db(["run", "t", "--", "sh", "-c", &format!("echo ready; {}", until("over"))]);
        let mut run = run.command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(run.stdout.as_mut().unwrap()), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        before.note(&world);
        assert_eq!(before.sockets.len(), 1);
        run.kill().unwrap();
        run.wait().unwrap();
        is_clean(&world, &before);
        fs_err::write(world.path().join("over"), "").unwrap();
    }
}

#[test]
fn anybody_at_random_moments() {
    let mut random = SplitMix64::new(20_261_122);
    for engine in matrix(Engine::families()) {
        let Some(worlds) = worlds(engine) else { return };
        let rounds = rounds(100).div_ceil(2 * worlds.len());
        for world in worlds {
            let mut before = Before::new(&world);
            for round in 0..rounds {
                let mut run = world.db(["run", "t", "--", "sleep", "0.2"]);
                let mut run =
                    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                std::thread::sleep(Duration::from_micros(random.below(250_000)));
                before.note(&world);
                match random.below(3) {
                    0 => run.kill().unwrap(),
                    1 => world.supervisors().into_iter().for_each(kill),
                    _ => {
                        let ours = world.processes();
                        let servers = ours.iter().filter(|process| !process.contains("__supervise"));
                        let pids: Vec<u64> =
                            servers.map(|process| process.split(' ').next().unwrap().parse().unwrap()).collect();
                        if !pids.is_empty() {
                            kill(pids[usize::try_from(random.below(pids.len() as u64)).unwrap()]);
                        }
                    }
                }
                run.wait().unwrap();
                world.nothing_runs();
                if world.has_namespaces() {
                    before.no_ipc(&world);
                }
                if round % 5 == 4 {
                    is_over(&world, &before);
                }
            }
            is_over(&world, &before);
        }
    }
}

/// Without namespaces, a segment that was made in the very moment of a kill goes with the files.
#[track_caller]
fn is_over(world: &World, before: &Before) {
    assert_eq!(mounts(world), Vec::<String>::new());
    no_file_is_left(world, before);
    before.no_ipc(world);
}

/// Killed before it has noted its memory's number, and after that.
#[test]
fn a_server_that_is_killed_while_it_starts_leaves_no_memory() {
    if !require_program("strace") {
        return;
    }
    let Some(world) = World::with(ordinary(), None) else { return };
    let world = world.without_namespaces();
    let (bin, when) = traced_postgres(&world);
    let from = world.path().join("from");
    data_of(Postgres, &from);
    world.give(&from);
    let create = ["template", "create", "t", "--engine", "postgres", "-q", "--server-bin"];
    world.db(create).arg(&bin).arg("--from").arg(&from).succeeds();
    let before = Before::new(&world);
    for call in ["shmat", "clone"] {
        fs_err::write(&when, format!("trace={call} -e inject={call}:signal=KILL")).unwrap();
        world.db(["run", "t", "--", "true"]).fails(1, &["ended before it was ready (signal 9)"]);
        before.no_ipc(&world);
        world.nothing_left();
    }
    fs_err::remove_file(&when).unwrap();
    world.db(["run", "t", "--", "true"]).succeeds();
}

/// A directory of programs in which PostgreSQL's own is traced by strace, with the expressions in a file, as long as that exists.
fn traced_postgres(world: &World) -> (PathBuf, PathBuf) {
    let real = (13..=18).rev().map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin")));
    let Some(real) = real.into_iter().find(|bin| bin.join("postgres").exists()) else { panic!("no PostgreSQL") };
    let (bin, when) = (world.path().join("bin"), world.path().join("when"));
    fs_err::create_dir(&bin).unwrap();
    // Not a link: it runs programs beside it.
    copy_program(real.join("initdb"), bin.join("initdb"));
    let script = format!(
        "#!/bin/sh\nif [ -e '{when}' ]; then\n  exec strace -o /dev/null -e $(cat '{when}') '{real}' \"$@\"\nfi\n\
         exec '{real}' \"$@\"\n",
        when = when.display(),
        real = real.join("postgres").display(),
    );
    write_program(bin.join("postgres"), script);
    (bin, when)
}

/// A world in which servers share the machine's memory, of this user: initdb refuses one that the system does not know.
fn without_namespaces() -> Option<World> {
    let world = World::new()?;
    Some(if is_root() { world.without_capability() } else { world.without_namespaces() })
}

/// The supervisor is killed when a process of its server has just made memory, and knows nothing of that. It is no child of the
/// supervisor's, so that the kernel does not end it.
#[test]
fn a_supervisor_whose_server_is_not_ready() {
    let Some(world) = without_namespaces() else { return };
    is_killed_before_its_server_is_ready(&world);
}

/// initdb's servers have more System V memory then, with a key by chance.
#[test]
fn a_supervisor_whose_server_is_not_ready_without_posix_memory() {
    if !require_root("another /dev/shm") {
        return;
    }
    let Some(world) = World::new() else { return };
    is_killed_before_its_server_is_ready(&world.without_posix_memory());
}

fn is_killed_before_its_server_is_ready(world: &World) {
    if !require_program("strace") {
        return;
    }
    let (bin, when) = traced_postgres(world);
    let create = ["template", "create", "--engine", "postgres", "-q", "--server-bin"];
    world.db(create).arg(&bin).arg("t").succeeds();
    let mut before = Before::new(world);
    fs_err::write(&when, "trace=shmget -e inject=shmget:signal=STOP").unwrap();
    for command in [world.db(["run", "t", "--", "true"]), world.db(create).arg(&bin).arg("p")] {
        let asked = command.spawn();
        eventually(|| if has_made_memory(world) { Ok(()) } else { Err("there is no memory yet".into()) });
        before.note(world);
        world.supervisors().into_iter().for_each(kill);
        let output = asked.wait_with_output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        is_clean(world, &before);
    }
}

/// A process of this world has made System V memory. Other tests may have some in the same namespace.
fn has_made_memory(world: &World) -> bool {
    let processes = world.processes();
    let is_ours = |pid: &str| processes.iter().any(|process| process.split(' ').next() == Some(pid));
    world.ipc().iter().any(|segment| segment.split_ascii_whitespace().nth(4).is_some_and(is_ours))
}

/// It has POSIX shared memory too, which it would remove.
#[test]
fn a_server_of_initdb_s() {
    if !require_program("strace") {
        return;
    }
    let Some(world) = without_namespaces() else { return };
    let (bin, when) = traced_postgres(&world);
    let before = Before::new(&world);
    fs_err::write(&when, "trace=?unlink,unlinkat -e inject=?unlink,unlinkat:signal=KILL").unwrap();
    let create = ["template", "create", "p", "--engine", "postgres", "-q", "--server-bin"];
    world.db(create).arg(&bin).fails(1, &["initdb failed"]);
    is_clean(&world, &before);
}

/// PostgreSQL's initdb tries out POSIX shared memory, which it does not remove when it is killed.
#[test]
fn a_builder_at_random_moments() {
    let mut random = SplitMix64::new(7);
    let Some(world) = World::new() else { return };
    let mut before = Before::new(&world);
    for _ in 0..rounds(10) {
        let mut build = world.db(["template", "create", "p", "--engine", "postgres"]);
        let mut build = build.command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.below(1_000)));
        before.note(&world);
        build.kill().unwrap();
        build.wait().unwrap();
        is_clean(&world, &before);
    }
}

#[test]
fn a_builder() {
    let Some(world) = World::new() else { return };
    let mut before = Before::new(&world);
    let script = format!("echo filling >&2; {}", until("over"));
    let mut build = world.db(["template", "create", "p", "--engine", "postgres", "--", "sh", "-c", &script]);
    let mut build = build.command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(build.stderr.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "filling\n");
    before.note(&world);
    assert_eq!(before.sockets.len(), 1);
    build.kill().unwrap();
    build.wait().unwrap();
    fs_err::write(world.path().join("over"), "").unwrap();
    is_clean(&world, &before);
    assert_eq!(names(&world.home().join("db/templates")), [".lock-p"]);
    assert_eq!(world.db(["template", "list"]).succeeds().stdout(), "");
}
