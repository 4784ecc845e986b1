//! Every way to reach a repository, and what can be told of the traffic there.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use calve_testkit::git_command;
use serde_json::{Value, json};

use super::Hosted;
use crate::program::{Calve, calve};
use crate::spot::nothing_left;

/// git's own server, each connection of which is given to a `git daemon --inetd`, as inetd does: its port is taken from the
/// beginning. It ends with the test.
struct Daemon {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Daemon {
    fn serving(root: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_over, root) = (Arc::new(AtomicBool::new(false)), root.to_path_buf());
        let acceptor = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                for socket in listener.incoming() {
                    let socket = OwnedFd::from(socket.unwrap());
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let mut command = git_command("/");
                    command.args(["daemon", "--inetd", "--export-all"]).arg(format!("--base-path={}", root.display()));
                    command.stdin(socket.try_clone().unwrap()).stdout(socket).stderr(Stdio::null());
                    let mut child = command.spawn().unwrap();
                    // It has the socket, too.
                    drop(command);
                    child.wait().unwrap();
                }
            }
        });
        Self { address, is_over, acceptor: Some(acceptor) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let _ = self.acceptor.take().map(JoinHandle::join);
    }
}

#[test]
fn git_urls_reach_a_daemon() {
    let hosted = Hosted::new();
    let daemon = Daemon::serving(hosted.repository.parent().unwrap());
    let url = format!("git://{}/project.git", daemon.address);
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
fn what_a_host_without_git_sends_is_not_counted() {
    let hosted = Hosted::new();
    // On a terminal, progress is one line that goes.
    let line = ["git", "clone", "--for", "dev", &hosted.url(), "shown"];
    let ran = super::alone(calve(line).within(&hosted.spot)).on_a_terminal().succeeds();
    assert!(ran.stdout.contains("\r\x1b[K") && ran.stdout.contains("Receiving objects"), "{:?}", ran.stdout);
    assert!(ran.stdout.trim_end().ends_with("shown"), "{:?}", ran.stdout);
    assert_eq!(hosted.git("shown", &["rev-list", "--count", "HEAD"]), "30");
    nothing_left(&hosted.spot);
    let received = |words: &[&str]| {
        git_command(&hosted.repository).arg("update-server-info").status().unwrap();
        let ran = hosted.calve(words).env("GIT_SMART_HTTP", "0").succeeds();
        let ran = ran.says(&["objects of unknown size received"]);
        ran.json()["bytes_received"].clone()
    };
    assert_eq!(received(&["clone", "--json", "--for", "dev", &hosted.url(), "new"]), Value::Null);
    hosted.push();
    assert_eq!(received(&["fetch", "--json", "-C", "new"]), Value::Null);
}

#[test]
fn a_transport_that_the_user_forbids_stays_forbidden() {
    let hosted = Hosted::new();
    let url = format!("file://{}", hosted.repository.display());
    hosted.calve(&["clone", "-q", &url, "there"]).succeeds();
    let of_git = |setting: &'static str| [("COUNT", "1"), ("KEY_0", setting), ("VALUE_0", "never")];
    for arguments in [&["clone", &url, "new"][..], &["fetch", "-C", "there"]] {
        let refused = |command: Calve| command.fails(1).says(&["transport 'file' not allowed"]).hints();
        refused(hosted.calve(arguments).env("GIT_ALLOW_PROTOCOL", "https:http"));
        for settings in ["protocol.file.allow", "protocol.allow"].map(of_git) {
            let command = hosted.calve(arguments);
            let set = |command: Calve, (name, value)| command.env(&format!("GIT_CONFIG_{name}"), value);
            refused(settings.into_iter().fold(command, set));
        }
    }
    hosted.calve(&["clone", "-q", &hosted.url(), "new"]).env("GIT_ALLOW_PROTOCOL", "http").succeeds();
}
