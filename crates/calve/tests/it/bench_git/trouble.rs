//! Interruptions, and what fails in the middle.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use calve_testkit::write_program;
use rustix::process::Signal;

use super::{bench_git, git, repository, tiny};
use crate::process::send;
use crate::program::{RunningProgram, calve};
use crate::spot::{Spot, eventually, leftovers};

/// A bench that goes on until it is stopped.
fn endless(spot: &Spot, repository: &str) -> RunningProgram {
    let arguments = ["bench", "git", "--into", ".", "--runs=100000", repository];
    calve(arguments).within(spot).start()
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
fn an_interruption_leaves_no_process_and_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let spot = Spot::anywhere();
        let elsewhere = Spot::anywhere();
        let running = endless(&spot, &tiny(&elsewhere));
        eventually("the clients work", || processes(&spot).len() > 2);
        send(running.id(), signal);
        let ran = running.ends(130);
        assert!(ran.stderr.ends_with("error: interrupted\n"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
        spot.holds(&[]);
        eventually("its programs have ended", || processes(&spot).is_empty());
    }
}

#[test]
fn a_killed_bench_leaves_no_process_and_its_files_are_named() {
    let spot = Spot::anywhere();
    let elsewhere = Spot::anywhere();
    let tiny = tiny(&elsewhere);
    let running = endless(&spot, &tiny);
    eventually("the clients work", || processes(&spot).len() > 2);
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    // Each of them notices that the other end is gone.
    eventually("its programs end", || processes(&spot).is_empty());
    let left = leftovers(&spot);
    assert_eq!(left.len(), 1, "{left:?}");
    let ran = bench_git(".", [&*tiny, "--tests=T2"]).within(&spot).succeeds();
    ran.says(&["a bench that was killed left", &left[0]]);
    spot.holds(&[&left[0]]);
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
    let ran = bench_git(".", arguments).env("PATH", &both).within(&spot).ends(1);
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

/// A server that answers each request with `answer`, and hangs up.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let mut lines = BufReader::new(&socket).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    format!("http://user:secret@{address}/repository")
}

#[test]
fn a_source_that_cannot_be_cloned_is_refused_without_its_password() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 5000\r\n\r\n001e# serv",
        "",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ] {
        let spot = Spot::anywhere();
        let ran = bench_git(".", ["--repo", &answering(answer), "--tests=T1"]).within(&spot).fails(1);
        let ran = ran.says(&["cannot be cloned", "fatal: "]).hints();
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
        spot.holds(&[]);
    }
}
