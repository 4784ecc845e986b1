//! `[ports]`: each worktree has its own.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::repo::{Repo, git, with_environment};
use crate::program::{Calve, Running, calve};

/// A repository with this `.calve.toml` committed.
pub(super) fn with_ports(ports: &str) -> Repo {
    let repo = Repo::anywhere();
    repo.write(".calve.toml", &format!("[ports]\n{ports}\n"));
    repo.commit("ports");
    repo.settle();
    repo
}

impl Repo {
    fn home(&self) -> PathBuf {
        self.spot.join("home")
    }

    pub(super) fn adding(&self, branch: &str) -> Calve {
        self.calve(["add", branch]).env("CALVE_HOME", self.home())
    }

    pub(super) fn added(&self, branch: &str) -> PathBuf {
        PathBuf::from(self.adding(branch).succeeds().stdout.trim_end())
    }

    /// `calve WORDS…` in a worktree.
    pub(super) fn within(&self, worktree: impl AsRef<Path>, words: &[&str]) -> Calve {
        with_environment(calve(words)).within(worktree).env("CALVE_HOME", self.home())
    }

    fn env_of(&self, worktree: impl AsRef<Path>) -> String {
        self.within(worktree, &["env"]).succeeds().stdout
    }
}

#[test]
fn every_worktree_has_ports_of_its_own() {
    let repo = with_ports("web = 20100\nadmin-api = 20101");
    let ran = repo.adding("one").succeeds().says(&["ports: ADMIN_API_PORT=20102, WEB_PORT=20103"]);
    let one = PathBuf::from(ran.stdout.trim_end());
    let two = repo.added("two");
    assert_eq!(repo.env_of(one.join("src")), "export ADMIN_API_PORT=20102\nexport WEB_PORT=20103\n");
    assert_eq!(repo.env_of(&two), "export ADMIN_API_PORT=20104\nexport WEB_PORT=20105\n");
    // The main worktree has those of the file, and everybody keeps his own.
    assert_eq!(repo.env_of(&repo.path), "export ADMIN_API_PORT=20101\nexport WEB_PORT=20100\n");
    assert_eq!(repo.env_of(&two), "export ADMIN_API_PORT=20104\nexport WEB_PORT=20105\n");
    let document = repo.within(&one, &["env", "--json"]).succeeds().json();
    assert_eq!(document["ports"][1], serde_json::json!({ "name": "web", "variable": "WEB_PORT", "port": 20103 }));
    let document = repo.adding("three").arg("--json").succeeds().json();
    assert_eq!(document["ports"][0]["port"], 20106);
    repo.adding("four").arg("-n").succeeds();
    assert_eq!(repo.added("five"), repo.spot.join("proj.five"));
    assert!(repo.env_of(repo.spot.join("proj.five")).contains("20108"), "a dry run leases nothing");
}

#[test]
fn adds_in_parallel_processes_never_get_one_port_twice() {
    let mut repos: Vec<Repo> = (0..4).map(|_| with_ports("web = 21000\napi = 21300")).collect();
    let home = repos[0].home();
    let mut all = BTreeSet::new();
    for batch in 0..15 {
        let adds = |repo: &Repo| -> Vec<Running> {
            let add = |n| repo.adding(&format!("b{batch}-{n}")).args(["-q", "--json"]).env("CALVE_HOME", &home).start();
            (0..4).map(add).collect()
        };
        for add in repos.iter_mut().flat_map(|repo| adds(repo)).collect::<Vec<_>>() {
            let ran = add.wait();
            ran.ended(0);
            for port in ran.json()["ports"].as_array().unwrap() {
                assert!(all.insert(port["port"].as_u64().unwrap()), "{port} twice");
            }
        }
    }
    assert_eq!(all.len(), 2 * 240);
}

#[test]
fn a_port_that_a_program_listens_on_is_passed_over() {
    let repo = with_ports("web = 20200");
    let _listening: Vec<TcpListener> =
        ["127.0.0.1:20201", "0.0.0.0:20202"].map(|address| TcpListener::bind(address).unwrap()).into();
    let one = repo.added("one");
    assert_eq!(repo.env_of(&one), "export WEB_PORT=20203\n");
    // What listens on a port that the worktree has is its own server.
    let _own = TcpListener::bind("127.0.0.1:20203").unwrap();
    assert_eq!(repo.env_of(&one), "export WEB_PORT=20203\n");
}

#[test]
fn removed_worktrees_free_their_ports_and_moved_ones_keep_them() {
    let repo = with_ports("web = 20300");
    let (one, two) = (repo.added("one"), repo.added("two"));
    repo.within(&repo.path, &["worktree", "remove", "one"]).succeeds();
    assert_eq!(repo.env_of(repo.added("three")), "export WEB_PORT=20301\n");
    // By git itself, too.
    repo.git(["worktree", "remove", "--force", two.to_str().unwrap()]);
    assert_eq!(repo.env_of(repo.added("four")), "export WEB_PORT=20302\n");
    let moved = repo.spot.join("moved");
    repo.git(["worktree", "move", repo.spot.join("proj.four").to_str().unwrap(), moved.to_str().unwrap()]);
    assert_eq!(repo.env_of(&moved), "export WEB_PORT=20302\n");
    assert_eq!(repo.env_of(&repo.path), "export WEB_PORT=20300\n");
    // With its repository, too.
    let elsewhere = repo.spot.join("elsewhere");
    fs_err::rename(&repo.path, &elsewhere).unwrap();
    git(&elsewhere, ["worktree", "repair", moved.to_str().unwrap()]);
    assert_eq!(repo.env_of(&elsewhere), "export WEB_PORT=20300\n");
    assert_eq!(repo.env_of(&moved), "export WEB_PORT=20302\n");
    assert!(!one.exists());
}

#[test]
fn an_exhausted_range_is_an_error_and_takes_what_absent_worktrees_had() {
    let repo = with_ports("web = 65534");
    let one = repo.added("one");
    assert_eq!(repo.env_of(&one), "export WEB_PORT=65535\n");
    let refused = repo.adding("two").fails(1).says(&["no port is free for `web`", "65534 to 65535"]).hints();
    assert!(refused.stdout.is_empty());
    // It is complete but for that.
    let two = repo.spot.join("proj.two");
    repo.within(&two, &["env"]).fails(1).hints();
    fs_err::remove_dir_all(&one).unwrap();
    assert_eq!(repo.env_of(&two), "export WEB_PORT=65535\n");
}

#[test]
fn the_file_of_a_pull_request_that_is_not_trusted_names_no_ports() {
    let repo = with_ports("web = 20700");
    repo.git(["switch", "-q", "-c", "theirs"]);
    repo.write(".calve.toml", "[ports]\nweb = 20800\nmore = 20900\n");
    repo.commit("theirs");
    repo.git(["update-ref", "refs/pull/1/head", "HEAD"]);
    repo.git(["switch", "-q", "main"]);
    repo.git(["remote", "add", "origin", "."]);
    assert_eq!(repo.env_of(repo.added("pr/1")), "export WEB_PORT=20701\n");
}

#[test]
fn a_command_runs_with_the_ports_and_its_end_is_its_own() {
    let repo = with_ports("web = 20800");
    let one = repo.added("one");
    let text = "echo $WEB_PORT; pwd; kill -TERM $$";
    let ran = repo.within(one.join("src"), &["exec", "--", "sh", "-c", text]).run();
    assert_eq!(ran.stdout, format!("20801\n{}\n", one.join("src").display()));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ran.status), Some(15));
    repo.within(&one, &["exec", "--", "sh", "-c", "exit 7"]).run().ended(7);
    repo.within(&one, &["exec", "--", "no-such-program"]).fails(127).hints();
    repo.within(&one, &["exec"]).run().ended(2);
    // A shell of any kind and what reads such files take the lines as they are.
    for (words, line) in [("fish", "set -gx WEB_PORT 20801\n"), ("dotenv", "WEB_PORT=20801\n")] {
        let printed = repo.within(&one, &["env", "--format", words]).succeeds().stdout;
        assert!(printed.ends_with(line), "{printed}");
    }
    repo.within(&one, &["env", "--format", "csh"]).run().ended(2);
}

#[test]
fn the_list_shows_the_ports() {
    let repo = with_ports("web = 20920\napi = 20921");
    let listed = |more: &[&str]| repo.within(&repo.path, &["worktree", "list"]).args(more).succeeds();
    assert!(!listed(&[]).stdout.contains(':') && listed(&["--json"]).json()["worktrees"][0].get("ports").is_none());
    let one = repo.added("one");
    assert!(listed(&[]).stdout.contains("  api:20922 web:20923  /"), "{}", listed(&[]).stdout);
    fs_err::remove_dir_all(&one).unwrap();
    repo.env_of(&repo.path);
    let document = listed(&["--json"]).json();
    let ports = |at: usize| {
        document["worktrees"][at]["ports"].as_array().unwrap().iter().map(|port| &port["port"]).collect::<Vec<_>>()
    };
    assert_eq!((ports(0), ports(1)), (vec![&20921.into(), &20920.into()], vec![&20922.into(), &20923.into()]));
    fs_err::write(repo.home().join("ports/leases"), "x").unwrap();
    listed(&[]).says(&["warning: no ports are shown"]);
}

#[test]
fn a_damaged_file_of_leases_is_told_and_a_killed_writer_does_no_harm() {
    let repo = with_ports("web = 20400");
    let one = repo.added("one");
    fs_err::write(repo.home().join("ports/leases.new"), "calve po").unwrap();
    repo.added("two");
    fs_err::write(repo.home().join("ports/leases"), "calve po").unwrap();
    repo.within(&one, &["env"]).fails(1).says(&["is damaged", "rm "]);
    fs_err::remove_file(repo.home().join("ports/leases")).unwrap();
    assert_eq!(repo.env_of(&one), "export WEB_PORT=20401\n");
}

#[test]
fn where_no_ports_are_named_nothing_is_kept_or_printed() {
    let repo = Repo::anywhere();
    let one = repo.added("one");
    assert_eq!(repo.env_of(&one), "");
    assert!(!repo.home().exists());
    repo.within(&repo.spot, &["env"]).fails(1).says(&["not in a git repository"]).hints();
    repo.git(["switch", "-q", "-c", "broken"]);
    repo.write(".calve.toml", "[ports]\nweb = 80\n");
    repo.commit("broken");
    repo.git(["switch", "-q", "main"]);
    repo.adding("broken").succeeds().says(&["warning: no ports were leased", "line 2, column 7"]);
    fs_err::write(one.join(".calve.toml"), "[ports]\nweb = 80\n").unwrap();
    repo.within(&one, &["env"]).fails(1).says(&[".calve.toml`, line 2, column 7"]).hints();
}
