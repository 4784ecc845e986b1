//! Every way to reach a repository, and what can be told of the traffic there.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::Hosted;
use crate::program::calve;
use crate::spot::{eventually, nothing_left};

/// `git daemon`, which ends with the test.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    fn serving(root: &Path) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        // Not `git daemon`, which would be a parent of the process that serves.
        let output = Command::new("git").arg("--exec-path").output().unwrap();
        let programs = String::from_utf8(output.stdout).unwrap();
        let child = Command::new(Path::new(programs.trim()).join("git-daemon"))
            .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1", &format!("--port={port}")])
            .arg(format!("--base-path={}", root.display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the daemon listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Self { child, port }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn git_urls_reach_a_daemon() {
    let hosted = Hosted::new();
    let daemon = Daemon::serving(hosted.repository.parent().unwrap());
    let url = format!("git://127.0.0.1:{}/project.git", daemon.port);
    for (purpose, requests) in [("dev", 2), ("ci", 2), ("history", 3)] {
        let receipt = hosted.calve(&["clone", "--json", "--for", purpose, &url, purpose]).succeeds().json();
        assert_eq!(receipt["requests"], requests, "the branches, the objects, and the contents to check out");
        assert_eq!(receipt["warnings"], json!([]));
    }
    hosted.push();
    let receipt = hosted.calve(&["fetch", "--json", "-C", "history"]).succeeds().json();
    assert_eq!((&receipt["requests"], receipt["updated"].as_array().unwrap().len()), (&json!(2), 1));
}

#[test]
fn ssh_urls_and_their_short_form_start_ssh() {
    let hosted = Hosted::new();
    // In place of ssh: it notes its arguments, and runs the command here.
    let script = "printf '%s\\n' \"$*\" >>asked; for last; do :; done; eval \"exec $last\"";
    let asked = hosted.spot.join("asked");
    let ssh = hosted.spot.join("in-place-of-ssh");
    fs_err::write(&ssh, script.replace("asked", &format!("'{}'", asked.display()))).unwrap();
    let path = hosted.repository.display().to_string();
    for (index, url) in
        [format!("ssh://me@host{path}"), format!("me@host:{path}"), format!("host:{path}")].iter().enumerate()
    {
        for purpose in ["dev", "ci", "history"] {
            let dst = format!("{purpose}-{index}");
            let run = hosted.calve(&["clone", "--json", "--for", purpose, url, &dst]);
            let run = run.env("GIT_SSH_COMMAND", format!("sh '{}'", ssh.display())).env("GIT_SSH_VARIANT", "ssh");
            let receipt = run.succeeds().json();
            assert_eq!((&receipt["url"], &receipt["warnings"]), (&json!(url), &json!([])));
            assert_eq!(receipt["requests"], if purpose == "history" { 3 } else { 2 });
        }
    }
    let asked = fs_err::read_to_string(asked).unwrap();
    assert!(asked.contains("me@host git-upload-pack") && asked.contains(" host git-upload-pack"), "{asked}");
}

#[test]
fn with_an_old_protocol_the_requests_are_unknown_and_the_rest_holds() {
    let hosted = Hosted::new();
    let config = hosted.spot.join("config");
    fs_err::write(&config, "[protocol]\n\tversion = 0\n").unwrap();
    let url = format!("file://{}", hosted.repository.display());
    for purpose in ["ci", "history"] {
        let run = hosted.calve(&["clone", "--json", "--for", purpose, &url, purpose]);
        let receipt = run.env("GIT_CONFIG_GLOBAL", &config).succeeds().json();
        let property = if purpose == "ci" { "depth" } else { "filter" };
        assert_eq!((&receipt["requests"], &receipt["honoured"][property]), (&Value::Null, &json!(true)));
    }
    // HTTP requests are requests whatever is in them.
    let run = hosted.calve(&["clone", "--json", "--for", "dev", &hosted.url(), "dev"]);
    let receipt = run.env("GIT_CONFIG_GLOBAL", &config).succeeds().json();
    assert_eq!(receipt["requests"], hosted.host.requests().len());
}

#[test]
fn on_a_terminal_progress_is_one_line_that_goes() {
    let hosted = Hosted::new();
    let line = ["git", "clone", "--for", "dev", &hosted.url(), "new"];
    let ran = super::alone(calve(line).within(&hosted.spot)).on_a_terminal().succeeds();
    assert!(ran.stdout.contains("\r\x1b[K") && ran.stdout.contains("Receiving objects"), "{:?}", ran.stdout);
    assert!(ran.stdout.trim_end().ends_with("new"), "{:?}", ran.stdout);
    assert_eq!(hosted.git("new", &["rev-list", "--count", "HEAD"]), "30");
    nothing_left(&hosted.spot);
}
