//! kill -9, at any moment: no process, mount or IPC object is left after two seconds, and no file after the next command.

use std::process::Stdio;
use std::time::Duration;

use calve_testkit::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Engine, World, names, users};

fn kill(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}

/// The supervisors of this world, which this test started.
fn supervisors(world: &World) -> Vec<u64> {
    let processes = world.processes();
    let found = processes.iter().filter(|process| process.contains("__supervise"));
    found.map(|process| process.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn ipc() -> Vec<String> {
    let list = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let mut found: Vec<String> = list("/proc/sysvipc/shm").lines().skip(1).map(str::to_owned).collect();
    found.extend(names(std::path::Path::new("/dev/shm")).into_iter().filter(|name| name.contains("PostgreSQL")));
    found
}

fn mounts(world: &World) -> Vec<String> {
    let all = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let home = world.home().to_string_lossy().into_owned();
    all.lines().filter(|line| line.contains(&home)).map(str::to_owned).collect()
}

/// Nothing but files, and after the next command not those.
#[track_caller]
fn is_clean(world: &World, before: &[String]) {
    world.nothing_runs();
    assert_eq!(mounts(world), Vec::<String>::new());
    let left: Vec<String> = ipc().into_iter().filter(|segment| !before.contains(segment)).collect();
    // Other tests have segments too, in namespaces of their own: here none is seen.
    assert_eq!(left, Vec::<String>::new());
    world.db(["gc"]).succeeds();
    world.nothing_left();
}

#[test]
fn the_server() {
    for user in users() {
        for engine in Engine::ALL {
            let Some(world) = World::of(user, None) else { return };
            let before = ipc();
            world.template(engine);
            let server = world.start("a");
            kill(server["pid"].as_u64().unwrap());
            is_clean(&world, &before);
        }
    }
}

#[test]
fn the_supervisor() {
    for user in users() {
        for engine in Engine::ALL {
            let Some(world) = World::of(user, None) else { return };
            let before = ipc();
            world.template(engine);
            world.start("a");
            let found = supervisors(&world);
            assert_eq!(found.len(), 1);
            kill(found[0]);
            is_clean(&world, &before);
            // The name can be used again.
            world.start("a");
            world.stop("a");
        }
    }
}

#[test]
fn the_command_that_owns_the_server() {
    for user in users() {
        for engine in Engine::ALL {
            let Some(world) = World::of(user, None) else { return };
            let before = ipc();
            world.template(engine);
            let mut run = world.db(["run", "t", "--", "sh", "-c", "echo ready; exec sleep 3"]);
            let mut run = run.command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(run.stdout.as_mut().unwrap()), &mut line).unwrap();
            assert_eq!(line, "ready\n");
            run.kill().unwrap();
            run.wait().unwrap();
            is_clean(&world, &before);
        }
    }
}

#[test]
fn anybody_at_random_moments() {
    let mut random = SplitMix64::new(20_261_122);
    for (number, user) in users().into_iter().enumerate() {
        let engine = Engine::ALL[number % 2];
        let Some(world) = World::of(user, None) else { return };
        let before = ipc();
        world.template(engine);
        let rounds = 100 / users().len();
        for round in 0..rounds {
            let mut run = world.db(["run", "t", "--", "sleep", "0.2"]);
            let mut run = run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(250_000)));
            match random.below(3) {
                0 => run.kill().unwrap(),
                1 => supervisors(&world).into_iter().for_each(kill),
                _ => {
                    let ours = world.processes();
                    let servers = ours.iter().filter(|process| !process.contains("calve"));
                    let pids: Vec<u64> =
                        servers.map(|process| process.split(' ').next().unwrap().parse().unwrap()).collect();
                    if !pids.is_empty() {
                        kill(pids[usize::try_from(random.below(pids.len() as u64)).unwrap()]);
                    }
                }
            }
            run.wait().unwrap();
            world.nothing_runs();
            if round % 10 == 9 {
                is_clean(&world, &before);
            }
        }
        is_clean(&world, &before);
    }
}

#[test]
fn a_builder() {
    let Some(world) = World::new() else { return };
    let before = ipc();
    let mut build = world.db([
        "template",
        "create",
        "p",
        "--engine",
        "postgres",
        "--",
        "sh",
        "-c",
        "echo filling >&2; exec sleep 3",
    ]);
    let mut build = build.command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(build.stderr.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "filling\n");
    build.kill().unwrap();
    build.wait().unwrap();
    is_clean(&world, &before);
    assert_eq!(names(&world.home().join("db/templates")), [".lock-p"]);
    assert_eq!(world.db(["template", "list"]).succeeds().stdout(), "");
}
