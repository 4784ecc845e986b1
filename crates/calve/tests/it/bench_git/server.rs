//! Servers of others, good and bad.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::{bench_git, git, number, of, repository};
use crate::spot::Spot;

#[test]
fn clones_from_a_server_are_measured_from_outside() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 12);
    git(spot.join("source"), ["config", "uploadpack.allowFilter", "true"]);
    let url = format!("--server=file://{}/source", spot.display());
    // T5 to T10 push, and are left out.
    let report = bench_git(".", [&url, "--json"]).within(&spot).succeeds().json();
    let results = report["results"].as_array().unwrap();
    let tests: Vec<&str> = results.iter().map(|it| it["test"].as_str().unwrap()).collect();
    assert_eq!(tests, ["T1", "T2", "T3", "T4"]);
    for result in results {
        assert!(number(&result["median"]) > 0.0 && number(&result["bytes_received"]) > 0.0, "{result:#}");
        assert!(result["server_cpu_ms_median"].is_null() && result["requests"].is_null(), "{result:#}");
    }
    assert!(report["accounting"].is_null() && report["bitmaps"].is_null());
    spot.holds(&["source"]);
}

#[test]
fn a_server_without_filters_is_found_out() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 3);
    let url = format!("--server=file://{}/source", spot.display());
    let ran = bench_git(".", [&url, "--json"]).within(&spot).run();
    ran.ended(1);
    let report = ran.json();
    for test in ["T3", "T4"] {
        let failed = of(&report["failed"], test, "clone");
        assert_eq!(failed["reason"], "the server does not support filters and sent everything");
    }
    of(&report["results"], "T1", "clone");
    of(&report["results"], "T2", "clone");
    ran.says(&["error: T3", "does not support filters"]).hints();
    spot.holds(&["source"]);
}

#[test]
fn a_shallow_server_is_not_asked_without_end() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 3);
    let source = format!("file://{}/source", spot.display());
    git(&*spot, ["clone", "-q", "--bare", "--depth=1", &source, "shallow"]);
    let url = format!("--server=file://{}/shallow", spot.display());
    let ran = bench_git(".", [&url, "--tests=T1,T4", "--json"]).within(&spot).run();
    ran.ended(1);
    let report = ran.json();
    let reason = of(&report["failed"], "T4", "clone")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("the source is a shallow repository"), "{reason}");
    of(&report["results"], "T1", "clone");
    spot.holds(&["shallow", "source"]);
}

/// A server that answers each request with `answer`, and hangs up.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(socket) = socket else { return };
            let _ = answer_one(&socket, answer);
        }
    });
    format!("http://user:secret@{address}/repository")
}

fn answer_one(mut socket: &TcpStream, answer: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(socket).lines();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    socket.write_all(answer.as_bytes())
}

#[track_caller]
fn fails_on(answer: &'static str, words: &[&str]) {
    let spot = Spot::anywhere();
    let url = answering(answer);
    let ran = bench_git(".", ["--server", &url, "--tests=T1", "--json"]).within(&spot).run();
    ran.ended(1);
    let reason = ran.json()["failed"][0]["reason"].as_str().unwrap().to_owned();
    assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("secret"), "{}{}", ran.stdout, ran.stderr);
    // The same as a source.
    let ran = bench_git(".", ["--repo", &url, "--tests=T1"]).within(&spot).fails(1).says(&["cannot be cloned"]).hints();
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    spot.holds(&[]);
}

#[test]
fn a_server_that_dies_in_the_middle_is_a_failure() {
    fails_on(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 5000\r\n\r\n001e# serv",
        &["exit code 128", "fatal: "],
    );
    fails_on("", &["exit code 128", "fatal: "]);
}

#[test]
fn refused_authentication_is_a_failure_without_a_question() {
    fails_on(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        &["exit code 128", "fatal: "],
    );
}

#[test]
fn an_unknown_branch_of_a_server_is_a_failure() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 2);
    let url = format!("--server=file://{}/source", spot.display());
    let ran = bench_git(".", [&url, "--tests=T1,T2", "--branch=nope"]).within(&spot).run();
    ran.ended(1);
    ran.says(&["nope", "not found"]).hints();
    spot.holds(&["source"]);
}
