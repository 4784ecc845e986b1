//! Interruptions, strangers, and what fails in the middle.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use calve_testkit::write_program;
use rustix::process::Signal;

use super::{bench_git, git, repository, tiny};
use crate::process::send;
use crate::program::{RunningProgram, calve};
use crate::spot::{Spot, eventually, leftovers};

/// A bench that goes on until it is stopped.
fn endless(spot: &Spot, repository: &str) -> RunningProgram {
    let arguments = ["bench", "git", "--into", ".", "--concurrency=3", "--runs=100000", repository];
    calve(arguments).within(spot).start()
}

/// The ports of 127.0.0.1 that the process listens on.
fn ports(id: u32) -> BTreeSet<u16> {
    let descriptors = fs_err::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    let sockets: BTreeSet<String> = descriptors
        .filter_map(|entry| Some(fs_err::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = fs_err::read_to_string("/proc/net/tcp").unwrap();
    let listening = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, state, inode) = (*fields.get(1)?, *fields.get(3)?, *fields.get(9)?);
        let mine = state == "0A" && sockets.contains(inode) && address.starts_with("0100007F:");
        mine.then(|| u16::from_str_radix(&address[9..], 16).unwrap())
    });
    listening.collect()
}

/// The processes that have something to do with a directory.
fn processes(directory: &Path) -> Vec<String> {
    let directory = directory.to_string_lossy().into_owned();
    let all = fs_err::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let about = numbers.filter_map(|number| {
        let text = |name: &str| {
            let bytes = fs_err::read(format!("/proc/{number}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (line, environment) = (text("cmdline"), text("environ"));
        let concerns = number != std::process::id() && (line.contains(&directory) || environment.contains(&directory));
        concerns.then(|| format!("{number}: {line}"))
    });
    about.collect()
}

#[test]
fn an_interruption_leaves_no_process_no_port_and_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let spot = Spot::anywhere();
        let elsewhere = Spot::anywhere();
        let running = endless(&spot, &tiny(&elsewhere));
        eventually("the clients work", || processes(&spot).len() > 6);
        let ports = ports(running.id());
        assert_eq!(ports.len(), 1, "the host's");
        send(running.id(), signal);
        let ran = running.wait();
        ran.ended(130);
        assert!(ran.stderr.ends_with("error: interrupted\n"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
        spot.holds(&[]);
        eventually("its programs have ended", || processes(&spot).is_empty());
        // Another test may have been given the number since, for a while.
        for port in ports {
            eventually("the port is closed", || TcpStream::connect(("127.0.0.1", port)).is_err());
        }
    }
}

#[test]
fn a_killed_bench_leaves_no_process_and_its_files_are_named() {
    let spot = Spot::anywhere();
    let elsewhere = Spot::anywhere();
    let tiny = tiny(&elsewhere);
    let running = endless(&spot, &tiny);
    eventually("the clients work", || processes(&spot).len() > 6);
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    // Each of them notices that nobody is there any more.
    eventually("its programs end", || processes(&spot).is_empty());
    let left = leftovers(&spot);
    assert_eq!(left.len(), 1, "{left:?}");
    let ran = bench_git(".", [&*tiny, "--tests=T2"]).within(&spot).succeeds();
    ran.says(&["a bench that was killed left", &left[0]]);
    spot.holds(&[&left[0]]);
}

#[test]
fn strangers_are_not_served() {
    let spot = Spot::anywhere();
    let elsewhere = Spot::anywhere();
    let arguments = ["bench", "git", "--into", ".", "--tests=T2", "--runs=100000"];
    let running = calve(arguments).arg(tiny(&elsewhere)).within(&spot).start();
    eventually("it listens", || !ports(running.id()).is_empty());
    let port = *ports(running.id()).first().unwrap();
    let ask = |request: &str| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // It need not be heard to its end.
        let _ = socket.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer
    };
    for header in ["", "X-Calve-Key: \r\n", "X-Calve-Key: 00000000000000000000000000000000\r\nX-Calve-Operation: 1\r\n"]
    {
        let answer = ask(&format!("GET /1.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n{header}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    // Nor do they keep it from serving others.
    for wrong in ["\r\n\r\n", "GET\r\n\r\n", &"x".repeat(100_000)] {
        assert!(!ask(wrong).contains("200"), "{wrong:.20}");
    }
    send(running.id(), Signal::INT);
    let ran = running.wait();
    ran.ended(130);
    assert!(!ran.stderr.contains("failed"), "{}", ran.stderr);
}

#[test]
fn a_git_that_fails_is_reported_and_the_other_tests_go_on() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 4);
    let programs = spot.join("programs");
    fs_err::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' reset '*) echo 'disk on fire' >&2; exit 23;; esac\nexec '{}' \"$@\"\n",
        real.display()
    );
    write_program(programs.join("git"), script);
    let mut both = programs.clone().into_os_string();
    both.push(":/usr/bin:/bin");
    let arguments = ["--repo=source", "--tests=T1,T5", "--json"];
    let ran = bench_git(".", arguments).env("PATH", &both).within(&spot).run();
    ran.ended(1);
    let report = ran.json();
    let failed = super::of(&report["failed"], "T5", "reset");
    assert_eq!((&failed["exit_code"], &failed["reason"]), (&23.into(), &"exit code 23: disk on fire".into()));
    super::of(&report["results"], "T1", "clone");
    ran.says(&["error: T5", "disk on fire"]).hints();
    spot.holds(&["programs", "source"]);
    assert_eq!(git(spot.join("source"), ["rev-list", "--count", "HEAD"]), "4");
}

#[test]
fn an_old_git_is_refused() {
    let spot = Spot::anywhere();
    let programs = spot.join("programs");
    fs_err::create_dir(&programs).unwrap();
    let run = |program: Option<&str>| {
        if let Some(text) = program {
            write_program(programs.join("git"), text);
        }
        bench_git(".", ["--repo=."])
            .env("PATH", &programs)
            .within(&spot)
            .fails(1)
            .says(&["install git 2.30 or later, and have it on the PATH"])
    };
    run(None).says(&["git cannot be started"]).hints();
    run(Some("#!/bin/sh\necho git version 2.17.1\n")).says(&["git 2.17.1 is too old"]).hints();
    spot.holds(&["programs"]);
}
