//! How servers are reached.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;

use crate::world::{Engine, Mariadb, Postgres, Redis, World, eventually, ordinary};

#[test]
fn every_form_of_the_address_works() {
    for engine in Engine::kinds_of_sql() {
        let Some(world) = World::having(engine) else { return };
        let server = world.db(["start", "t", "--name", "a", "--tcp", "--json"]).succeeds().json();
        let form = |format: &str| world.db(["url", "a", "--format", format]).succeeds().stdout().trim().to_owned();
        assert_eq!(form("url"), server["url"].as_str().unwrap());
        lines_name_what_they_unset(&form("env"));
        assert_eq!(world.db(["url", "a", "--format", "json"]).succeeds().json(), server);
        let sql = "SELECT count(*) FROM t";
        let shell = |script: &str, word: &str| {
            let output = Command::new("sh").args(["-ec", script, "sh", word, sql]).output().unwrap();
            assert!(output.status.success(), "{script} {word}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let (port, password) = (server["tcp_port"].as_u64().unwrap(), server["password"].as_str().unwrap());
        match engine {
            Postgres => {
                assert_eq!(shell("psql -XAt \"$1\" -c \"$2\"", &form("url")), "1000");
                assert_eq!(shell("psql -XAt \"$1\" -c \"$2\"", &form("tcp")), "1000");
                assert_eq!(shell("psql -XAt \"$1\" -c \"$2\"", &form("dsn")), "1000");
                assert_eq!(shell("eval \"$1\"; psql -XAt -c \"$2\"", &form("env")), "1000");
                // The password is needed, and cannot be guessed.
                let wrong = form("tcp").replace(password, "wrong");
                let refused = Command::new("psql").args(["-XAt", &wrong, "-c", sql]).output().unwrap();
                assert!(!refused.status.success());
            }
            _ => {
                let client = format!("mariadb --no-defaults -BN -h 127.0.0.1 -P {port} -uroot test");
                assert_eq!(shell(&format!("{client} -p\"$1\" -e \"$2\""), password), "1000");
                assert_eq!(shell("eval \"$1\"; mariadb -BN -e \"$2\"", &form("env")), "1000");
                let refused =
                    Command::new("sh").args(["-c", &format!("{client} -pwrong -e 'SELECT 1'")]).output().unwrap();
                assert!(!refused.status.success());
                assert_eq!(form("dsn"), format!("root@unix({})/test", server["socket"].as_str().unwrap()));
            }
        }
        assert!(password.len() >= 20);
        // The same after a reset.
        world.db(["reset", "a"]).succeeds();
        assert_eq!(form("tcp"), server["tcp_url"].as_str().unwrap());
        world.stop_last("a");
    }
}

/// zsh refuses an `unset` without names.
#[track_caller]
fn lines_name_what_they_unset(lines: &str) {
    let is_whole =
        |line: &str| line.strip_prefix("unset ").is_some_and(|name| !name.is_empty()) || line.starts_with("export ");
    assert!(lines.lines().count() > 1 && lines.lines().all(is_whole), "{lines}");
}

/// In the clients' configuration it begins a comment.
#[test]
fn a_place_for_sockets_whose_path_has_a_hash() {
    let Some(world) = World::of(ordinary(), Mariadb) else { return };
    let runtime = world.path().join("r #1");
    fs_err::create_dir(&runtime).unwrap();
    world.give(&runtime);
    let count = ["sh", "-ec", "unset MYSQL_UNIX_PORT; exec mariadb -BN -e 'SELECT count(*) FROM t'"];
    let ran = world.db(["run", "t", "--"]).args(count).env("XDG_RUNTIME_DIR", &runtime).succeeds();
    assert_eq!(ran.stdout().trim(), "1000");
}

#[test]
fn there_is_no_port_unless_it_is_asked_for() {
    for engine in Engine::kinds_of_sql() {
        let Some((world, server)) = World::with_server(engine) else { return };
        assert!(server["tcp_url"].is_null() && server["password"].is_null());
        world.db(["url", "a", "--format", "tcp"]).fails(1, &["does not listen on a port", "--tcp"]);
        lines_name_what_they_unset(&world.db(["url", "a", "--format", "env"]).succeeds().stdout());
        // The engine's own port has no listener either, unless it had one before.
        let pid = server["pid"].as_u64().unwrap();
        let inodes: Vec<String> = fs_err::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .flatten()
            .filter_map(|entry| fs_err::read_link(entry.path()).ok())
            .map(|to| to.to_string_lossy().into_owned())
            .collect();
        let tcp = fs_err::read_to_string("/proc/net/tcp").unwrap();
        for line in tcp.lines().skip(1) {
            let inode = line.split_ascii_whitespace().nth(9).unwrap();
            assert!(!inodes.contains(&format!("socket:[{inode}]")), "{line}");
        }
        world.stop("a");
    }
}

/// How far below those ports the last one is that a test took.
static NEXT: Mutex<u16> = Mutex::new(0);

/// A port outside the range that the kernel hands out.
fn port() -> (TcpListener, u16) {
    let range = fs_err::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_ascii_whitespace().next().unwrap().parse().unwrap();
    let mut next = NEXT.lock().unwrap();
    loop {
        *next += 1;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", first - *next)) {
            return (listener, first - *next);
        }
    }
}

#[test]
fn a_port_that_is_taken() {
    let Some(world) = World::having(Postgres) else { return };
    let (other, port) = port();
    world.db(["start", "t", &format!("--tcp={port}")]).fails(
        1,
        &[&format!("port {port}"), "is taken", "hint: choose another port, or name none to get a free one\n"],
    );
    world.nothing_left();
    drop(other);
    let server = start_on(&world, port);
    assert_eq!(server["tcp_port"], port);
    // And by a server of Calve's.
    world.db(["start", "t", &format!("--tcp={port}")]).fails(1, &["is taken"]);
    // It can be used again at once, although the kernel keeps its closed connections for a minute.
    let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    world.stop_all();
    drop(client);
    let server = world.db(["start", "t", "--json", &format!("--tcp={port}")]).succeeds().json();
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_all();
}

/// On a port that was just given up.
fn start_on(world: &World, port: u16) -> serde_json::Value {
    let mut server = serde_json::Value::Null;
    // A process that another test is starting just now may have inherited the socket.
    eventually(|| {
        let ran = world.db(["start", "t", "-q", "--json", &format!("--tcp={port}")]).ends();
        assert!(ran.stderr().is_empty() || ran.stderr().contains("is taken"), "{}", ran.stderr());
        server = serde_json::from_str(&ran.stdout()).map_err(|_| ran.stderr())?;
        Ok(())
    });
    server
}

#[test]
fn two_starts_on_one_port() {
    let Some(world) = World::having(Postgres) else { return };
    let (other, port) = port();
    drop(other);
    world.db(["stop", start_on(&world, port)["name"].as_str().unwrap()]).succeeds();
    for _ in 0..3 {
        let starts = [0, 1].map(|_| world.db(["start", "t", "-q", &format!("--tcp={port}")]).spawn());
        let ended = starts.map(|start| start.wait_with_output().unwrap());
        let refused: Vec<_> = ended.iter().filter(|output| !output.status.success()).collect();
        assert_eq!(refused.len(), 1, "{ended:?}");
        let stderr = String::from_utf8_lossy(&refused[0].stderr);
        assert!(stderr.contains(&format!("port {port} of 127.0.0.1 is taken")), "{stderr}");
        world.db(["stop", "--all"]).succeeds();
    }
}

#[test]
fn twenty_servers_at_once_get_twenty_ports() {
    let Some(world) = World::having(Postgres) else { return };
    let starts: Vec<_> = (0..20).map(|_| world.db(["start", "t", "--tcp", "--json"]).spawn()).collect();
    let mut ports: Vec<u64> = starts
        .into_iter()
        .map(|start| {
            let output = start.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let server: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            server["tcp_port"].as_u64().unwrap()
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 20);
    world.db(["stop", "--all"]).succeeds();
}

#[test]
fn a_home_with_a_long_path() {
    let Some(world) = World::having(Postgres) else { return };
    let long = world.path().join("x".repeat(120)).join("y".repeat(120));
    fs_err::create_dir_all(&long).unwrap();
    fs_err::rename(world.home().join("db"), long.join("db")).unwrap();
    // Neither does a long place for sockets get in the way: it is not used.
    let run = |words: &[&str]| world.db(words).env("CALVE_HOME", &long).env("XDG_RUNTIME_DIR", &long);
    let server = run(&["start", "t", "--json", "--name", "a"]).succeeds().json();
    assert!(server["socket"].as_str().unwrap().len() <= 107);
    assert_eq!(world.rows(Postgres, &server), "1000");
    run(&["stop", "a"]).succeeds();
    run(&["gc"]).succeeds();
}

#[test]
fn a_url_with_a_password_is_understood_by_redis_cli() {
    let Some(world) = World::having(Redis) else { return };
    let server = world.db(["start", "t", "--name", "a", "--json", "--tcp"]).succeeds().json();
    let url = server["tcp_url"].as_str().unwrap();
    let output = Command::new("redis-cli").args(["-u", url, "PING"]).output().unwrap();
    assert_eq!(output.stdout, b"PONG\n", "{url}: {output:?}");
    world.stop("a");
}
