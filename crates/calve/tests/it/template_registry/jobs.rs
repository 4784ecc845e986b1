//! Jobs of CI, by what `deploy/` has for them: `ci/from-template`, called by the action for GitHub and by the snippet for GitLab.

use std::path::PathBuf;
use std::process::Command;

use calve_testkit::{assert_same, require_program};

use super::server::{Answer, Server, answer};
use super::template;
use crate::program::PROGRAM;
use crate::spot::Spot;

/// The output and the exit code of a job.
struct Job {
    said: String,
    code: Option<i32>,
}

/// The system that starts the script.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Caller {
    GitHub,
    GitLab,
}

fn deploy(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// The commands below the last `|` of a file: what a runner gives to a shell.
fn commands(path: &str, marker: &str) -> String {
    let text = fs_err::read_to_string(deploy(path)).unwrap();
    let (_, block) = text.rsplit_once(&format!("{marker} |\n")).unwrap();
    block.to_owned()
}

/// Runs one job on a runner with that home. `calve` reaches the registry without encryption.
fn job(spot: &Spot, server: &Server, caller: Caller, home: &str, command: &str, push: bool) -> Job {
    let bin = spot.join("bin");
    fs_err::create_dir_all(spot.join("work/ci")).unwrap();
    fs_err::create_dir_all(&bin).unwrap();
    let wrapper = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n'template push'|'template pull')\na=$1 b=$2\nshift 2\n\
         exec '{PROGRAM}' $a $b --plain-http \"$@\" ;;\nesac\nexec '{PROGRAM}' \"$@\"\n"
    );
    fs_err::write(bin.join("calve"), wrapper).unwrap();
    fs_err::copy(deploy("ci/from-template"), spot.join("work/ci/from-template")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(bin.join("calve")).status().unwrap().success());
    let image = format!("{}/team/deps:linux", server.host);
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("bash");
    shell.current_dir(spot.join("work")).env("PATH", format!("{}:{path}", bin.display()));
    shell.env("CALVE_HOME", spot.join(home)).env("HOME", spot.join("nobody")).env_remove("GITHUB_ACTIONS");
    match caller {
        Caller::GitHub => {
            let push = if push { "true" } else { "false" };
            shell.args(["-e", "-o", "pipefail", "-c", &commands("github/action.yml", "run:")]);
            shell.env("GITHUB_ACTIONS", "true").env("GITHUB_ACTION_PATH", deploy("github"));
            shell.env("CALVE_ACTION_IMAGE", image).env("CALVE_ACTION_PATH", "deps").env("CALVE_ACTION_PUSH", push);
            shell.env("CALVE_ACTION_FILES", "lock file\n\nnode").env("CALVE_ACTION_RUN", command);
        }
        Caller::GitLab => {
            shell.args(["-e", "-o", "pipefail", "-c", &commands("gitlab/from-template.yml", "-")]);
            shell
                .env("CI_REGISTRY", &server.host)
                .env("CI_REGISTRY_USER", "user")
                .env("CI_REGISTRY_PASSWORD", "secret");
            shell.env("TEMPLATE_IMAGE", image).env("TEMPLATE_DIR", "deps").env("TEMPLATE_FILES", "lock node");
            shell.env("TEMPLATE_COMMAND", command).env("TMPDIR", spot.as_os_str());
        }
    }
    let output = shell.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Job { said: String::from_utf8(said).unwrap(), code: output.status.code() }
}

const MAKE: &str = "echo made; mkdir deps; cat node > deps/a; ln -s a deps/b";

#[test]
fn a_job_makes_what_no_earlier_one_has_pushed() {
    if !require_program("git") {
        return;
    }
    for caller in [Caller::GitHub, Caller::GitLab] {
        let server = if caller == Caller::GitLab { Server::with_password() } else { Server::new() };
        let Some(server) = server else { return };
        let spot = Spot::anywhere();
        spot.tree("work").file("lock", b"left-pad 1").file("lock file", b"left-pad 1").file("node", b"22");
        let job = |home: &str, command: &str, push| job(&spot, &server, caller, home, command, push);
        let made = job("home", MAKE, true);
        assert_eq!(made.code, Some(0), "{}", made.said);
        assert!(
            made.said.contains("has no template for these files, so this job runs: ") && made.said.contains("made\n"),
            "{}",
            made.said
        );
        fs_err::rename(spot.join("work/deps"), spot.join("made")).unwrap();
        // On another runner, and on one that has it already, beside an older directory.
        for home in ["other", "other"] {
            let cloned = job(home, MAKE, true);
            assert_eq!(cloned.code, Some(0), "{}", cloned.said);
            assert!(!cloned.said.contains("made\n") && !cloned.said.contains("warning"), "{}", cloned.said);
            assert_same(spot.join("made"), spot.join("work/deps"));
        }
        fs_err::remove_dir_all(spot.join("work/deps")).unwrap();

        fs_err::write(spot.join("work/node"), b"24").unwrap();
        let failed = job("other", "echo made; exit 7", true);
        assert_eq!(failed.code, Some(7), "{}", failed.said);
        let nothing = job("other", "echo made", true);
        assert_eq!(nothing.code, Some(0), "{}", nothing.said);
        assert!(nothing.said.contains("deps was not pushed to"), "{}", nothing.said);
        let changed = job("other", &format!("{MAKE}; echo 25 > node"), true);
        assert!(changed.said.contains("because the command changed one of: lock"), "{}", changed.said);
        fs_err::remove_dir_all(spot.join("work/deps")).unwrap();
        if caller == Caller::GitHub {
            server.asked();
            assert_eq!(job("other", MAKE, false).code, Some(0));
            assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET ")));
            fs_err::remove_dir_all(spot.join("work/deps")).unwrap();
        }
        // The job goes on without the registry, and says so.
        server.rule(|_| Answer::Bytes(answer("403 Forbidden", "", b"")));
        let alone = job("other", MAKE, true);
        assert_eq!(alone.code, Some(0), "{}", alone.said);
        let warning = if caller == Caller::GitHub { "::warning::" } else { "warning: " };
        assert!(
            alone.said.contains(&format!(
                "{warning}{}/team/deps:linux was not pulled, so this job makes deps itself",
                server.host
            )),
            "{}",
            alone.said
        );
        // One template for each content stays, and no token.
        let listed = template(&spot, "other", &["list", "--json"]).succeeds().json();
        assert_eq!(listed["templates"].as_array().unwrap().len(), 1, "{listed}");
        assert!(!crate::spot::names(&*spot).iter().any(|name| name.starts_with("tmp.")));
    }
}
