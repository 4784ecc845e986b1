//! `[ports]`: each worktree has its own.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{SplitMix64, require_program, rounds};

use super::repo::{Repo, git, with_environment, write};
use crate::program::{Calve, RunningProgram, calve, carry_environment};
use crate::spot::names;

/// A number of this run's own: others may run at the same time, and listen. Each test has twenty.
pub(super) fn number(at: u32) -> u16 {
    u16::try_from(10_000 + std::process::id() % 90 * 250 + at).unwrap()
}

/// The variable, as `calve env` prints it.
fn web(at: u32) -> String {
    format!("export WEB_PORT={}\n", number(at))
}

/// Both of them.
fn admin_and_web(admin: u32, at: u32) -> String {
    format!("export ADMIN_API_PORT={}\n{}", number(admin), web(at))
}

/// A repository with this `[ports]` committed.
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
    let repo = with_ports(&format!("web = {}\nadmin-api = {}", number(0), number(1)));
    let ran =
        repo.adding("one").succeeds().says(&[&format!("ports: ADMIN_API_PORT={}, WEB_PORT={}", number(2), number(3))]);
    let one = PathBuf::from(ran.stdout.trim_end());
    let two = repo.added("two");
    assert_eq!(repo.env_of(one.join("src")), admin_and_web(2, 3));
    assert_eq!(repo.env_of(&two), admin_and_web(4, 5));
    // The main worktree has those of the file, and everybody keeps his own.
    assert_eq!(repo.env_of(&repo.path), admin_and_web(1, 0));
    assert_eq!(repo.env_of(&two), admin_and_web(4, 5));
    let document = repo.within(&one, &["env", "--json"]).succeeds().json();
    assert_eq!(document["ports"][1], serde_json::json!({ "name": "web", "variable": "WEB_PORT", "port": number(3) }));
    let document = repo.adding("three").arg("--json").succeeds().json();
    assert_eq!(document["ports"][0]["port"], number(6));
    repo.adding("four").arg("-n").succeeds();
    assert_eq!(repo.added("five"), repo.spot.join("proj.five"));
    assert!(repo.env_of(repo.spot.join("proj.five")).contains(&web(9)), "a dry run leases nothing");
}

#[test]
fn a_list_opens_the_repository_once() {
    let repo = with_ports(&format!("web = {}", number(60)));
    for branch in ["one", "two", "three"] {
        // The file differs from that of the main worktree.
        write(&repo.added(branch).join(".calve.toml"), &format!("[ports]\nweb = {}\n\n", number(60)));
    }
    let trace = repo.spot.join("trace");
    let listed = repo.within(&repo.path, &["worktree", "list"]).env("GIT_TRACE2_EVENT", &trace).succeeds();
    assert_eq!(listed.stdout.matches("web:").count(), 3, "{}", listed.stdout);
    let trace = fs_err::read_to_string(&trace).unwrap();
    let lists = |line: &&str| line.contains(r#""event":"start""#) && line.contains(r#""worktree","list""#);
    assert_eq!(trace.lines().filter(lists).count(), 1, "{trace}");
}

#[test]
fn adds_in_parallel_processes_never_get_one_port_twice() {
    let batches = rounds(6);
    let repos: Vec<Repo> = (0..4).map(|_| with_ports("web = 21000\napi = 22300")).collect();
    let home = repos[0].home();
    let (mut all, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for batch in 0..batches {
        let adds = |repo: &Repo| -> Vec<RunningProgram> {
            let add = |n| repo.adding(&format!("b{batch}-{n}")).args(["-q", "--json"]).env("CALVE_HOME", &home).start();
            (0..4).map(add).collect()
        };
        for add in repos.iter().flat_map(adds).collect::<Vec<_>>() {
            let ran = add.ends(0);
            let document = ran.json();
            assert!(paths.insert(document["path"].as_str().unwrap().to_owned()));
            for port in document["ports"].as_array().unwrap() {
                assert!(all.insert(port["port"].as_u64().unwrap()), "{port} twice");
            }
        }
    }
    assert_eq!((all.len(), paths.len()), (2 * paths.len(), batches * 16));
}

#[test]
fn a_port_that_a_program_listens_on_is_passed_over() {
    let repo = with_ports(&format!("web = {}", number(20)));
    let _listening: Vec<TcpListener> =
        [("127.0.0.1", number(21)), ("0.0.0.0", number(22))].map(|address| TcpListener::bind(address).unwrap()).into();
    let one = repo.added("one");
    assert_eq!(repo.env_of(&one), web(23));
    // What listens on a port that the worktree has is its own server.
    let _own = TcpListener::bind(("127.0.0.1", number(23))).unwrap();
    assert_eq!(repo.env_of(&one), web(23));
}

#[test]
fn removed_worktrees_free_their_ports_and_moved_ones_keep_them() {
    let repo = with_ports(&format!("web = {}", number(40)));
    let (one, two) = (repo.added("one"), repo.added("two"));
    repo.within(&repo.path, &["worktree", "remove", "one"]).succeeds();
    assert_eq!(repo.env_of(repo.added("three")), web(41));
    // By git itself, too.
    repo.git(["worktree", "remove", "--force", two.to_str().unwrap()]);
    assert_eq!(repo.env_of(repo.added("four")), web(42));
    let moved = repo.spot.join("moved");
    repo.git(["worktree", "move", repo.spot.join("proj.four").to_str().unwrap(), moved.to_str().unwrap()]);
    assert_eq!(repo.env_of(&moved), web(42));
    assert_eq!(repo.env_of(&repo.path), web(40));
    // With its repository, too.
    let elsewhere = repo.spot.join("elsewhere");
    fs_err::rename(&repo.path, &elsewhere).unwrap();
    git(&elsewhere, ["worktree", "repair", moved.to_str().unwrap()]);
    assert_eq!(repo.env_of(&elsewhere), web(40));
    assert_eq!(repo.env_of(&moved), web(42));
    assert!(!one.exists());
}

#[test]
fn ports_go_with_the_worktree_and_not_with_its_name() {
    let repo = with_ports(&format!("web = {}", number(140)));
    assert_eq!((repo.env_of(&repo.path), repo.env_of(repo.added("one"))), (web(140), web(141)));
    let listening = TcpListener::bind(("127.0.0.1", number(141))).unwrap();
    repo.within(&repo.path, &["worktree", "remove", "one"]).succeeds();
    assert_eq!(repo.env_of(repo.added("one")), web(142));
    drop(listening);
    let two = repo.added("two");
    assert_eq!(repo.env_of(&two), web(141));
    // Another repository in the place of one that was moved.
    let (old, copy) = (repo.spot.join("proj.old"), repo.spot.join("copy"));
    repo.git(["clone", "-q", ".", copy.to_str().unwrap()]);
    fs_err::rename(&repo.path, &old).unwrap();
    fs_err::rename(&copy, &repo.path).unwrap();
    assert_eq!(repo.env_of(&repo.path), web(143));
    git(&old, ["worktree", "repair", two.to_str().unwrap()]);
    assert_eq!((repo.env_of(&two), repo.env_of(&old)), (web(141), web(140)));
    // One that was deleted leaves its number to the next in its place.
    fs_err::remove_dir_all(&repo.path).unwrap();
    git(&repo.spot, ["clone", "-q", "proj.old", "proj"]);
    assert_eq!(repo.env_of(&repo.path), web(143));
    assert_eq!(repo.env_of(&old), web(140));
}

#[test]
fn another_number_in_the_file_is_for_new_worktrees() {
    let repo = with_ports(&format!("web = {}\n[worktree]\nenv-file = '.env.local'", number(200)));
    let one = repo.added("one");
    for first in [number(210), number(195)] {
        fs_err::write(one.join(".calve.toml"), format!("[ports]\nweb = {first}\n")).unwrap();
        assert_eq!(repo.env_of(&one), web(201));
    }
    assert_eq!(repo.env_of(repo.added("two")), web(202));
    let renewed = repo.within(&one, &["env", "--renew"]).succeeds().stdout;
    assert!(renewed != web(201) && renewed != web(202), "{renewed}");
    // The list shows what `calve env` prints.
    fs_err::write(one.join(".calve.toml"), format!("[ports]\nsite = {}\n", number(210))).unwrap();
    assert_eq!(repo.env_of(&one), format!("export SITE_PORT={}\nunset WEB_PORT\n", number(211)));
    let listed = repo.within(&one, &["worktree", "list", "--json"]).succeeds().json();
    let ports = listed["worktrees"][1]["ports"].as_array().unwrap();
    assert_eq!((ports.len(), &ports[0]["name"]), (1, &"site".into()), "{listed}");
}

#[test]
fn a_worktree_can_have_other_ports() {
    let repo = with_ports(&format!("web = {}\napi = {}", number(160), number(161)));
    let one = repo.added("one");
    assert_eq!(repo.env_of(&one), format!("export API_PORT={}\n{}", number(162), web(163)));
    // One that Calve wrote gets the new ones; one that was edited, and one of the user's, are only named.
    let own = repo.within(&one, &["env", "--format", "dotenv"]).succeeds().stdout;
    fs_err::write(one.join("src/.env.local"), &own).unwrap();
    let edited = format!("{own}MORE=1\n");
    fs_err::write(one.join(".env.edited"), &edited).unwrap();
    fs_err::write(one.join(".env"), format!("WEB_PORT={}\n", number(163))).unwrap();
    let renewed = repo.within(&one, &["env", "--renew"]).succeeds();
    let renewed = renewed.says(&[
        "wrote the variables to `src/.env.local`",
        "`.env.edited` still has a different API_PORT and WEB_PORT",
    ]);
    let renewed = renewed.says(&["`.env` still has a different WEB_PORT"]);
    let rewritten = fs_err::read_to_string(one.join("src/.env.local")).unwrap();
    assert_eq!(rewritten, repo.within(&one, &["env", "--format", "dotenv"]).succeeds().stdout);
    assert_eq!(fs_err::read_to_string(one.join(".env.edited")).unwrap(), edited);
    for file in ["src/.env.local", ".env.edited", ".env"] {
        fs_err::remove_file(one.join(file)).unwrap();
    }
    assert_eq!(renewed.stdout, format!("export API_PORT={}\n{}", number(164), web(165)));
    assert_eq!(repo.env_of(&one), renewed.stdout);
    let was = format!("WEB_PORT changes from {} to {}", number(163), number(165));
    renewed.says(&[&was, "restart the programs of this worktree that use them"]);
    // The others are free again, and the main worktree's own can be given up too.
    assert!(repo.env_of(repo.added("two")).ends_with(&web(163)));
    assert!(repo.env_of(&repo.path).ends_with(&web(160)));
    let renewed = repo.within(&repo.path, &["env", "--renew", "--json"]).succeeds().json();
    assert_eq!(
        (&renewed["ports"][0]["port"], &renewed["ports"][1]["port"]),
        (&number(166).into(), &number(167).into())
    );
    let none = Repo::anywhere();
    none.within(&none.path, &["env", "--renew"]).succeeds().says(&["this worktree has no ports"]);
}

#[test]
fn the_main_worktree_has_the_numbers_in_its_file() {
    let repo = with_ports("");
    let [one, two, three] = [12, 13, 17].map(number);
    for (ports, expected) in [
        (format!("web = {one}"), web(12)),
        (format!("web = {three}"), web(17)),
        (format!("web = {one}"), web(12)),
        (format!("api = {one}"), format!("export API_PORT={one}\n")),
        (format!("api = {one}\nweb = {two}"), format!("export API_PORT={one}\n{}", web(13))),
        (format!("api = {two}\nweb = {one}"), format!("export API_PORT={two}\n{}", web(12))),
    ] {
        repo.write(".calve.toml", &format!("[ports]\n{ports}\n"));
        assert_eq!(repo.env_of(&repo.path), expected, "{ports}");
    }
}

/// Worktrees and repositories come, go, and are moved, by Calve and by git, while programs listen.
#[test]
fn random_changes_never_give_one_port_to_two_worktrees() {
    let mut random = SplitMix64::new(0x706f_7274);
    for _ in 0..rounds(10) {
        let repo = with_ports("web = 8100");
        let mut here: Vec<(PathBuf, String)> = Vec::new();
        let mut listening = Vec::new();
        for step in 0..25 {
            let name = format!("n{}", random.below(4));
            let at = here.iter().position(|(_, of)| *of == name);
            match (random.below(5), at) {
                (action @ (0 | 1), None) => {
                    let path = repo.spot.join(format!("proj.{name}"));
                    match action {
                        0 => assert_eq!(repo.added(&name), path),
                        _ => drop(repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()])),
                    }
                    let number = repo.env_of(&path).trim_end().rsplit('=').next().unwrap().parse().unwrap();
                    let bound = TcpListener::bind(("127.0.0.1", number)).expect("nobody listens on a new one's port");
                    listening.extend(Some(bound).filter(|_| random.below(2) == 0));
                    here.push((path, name));
                }
                (2, Some(at)) => {
                    let (path, _) = here.remove(at);
                    repo.git(["worktree", "remove", "--force", path.to_str().unwrap()]);
                }
                (3, Some(at)) => {
                    let to = repo.spot.join(format!("moved-{step}"));
                    repo.git(["worktree", "move", here[at].0.to_str().unwrap(), to.to_str().unwrap()]);
                    here[at].0 = to;
                }
                (4, Some(at)) => drop(repo.within(&here[at].0, &["env", "--renew"]).succeeds()),
                _ => continue,
            }
            let ports: BTreeSet<String> = here.iter().map(|(path, _)| repo.env_of(path)).collect();
            assert_eq!(ports.len(), here.len(), "{here:?} have {ports:?}");
        }
    }
}

#[test]
fn an_exhausted_range_is_an_error_and_takes_what_absent_worktrees_had() {
    let repo = with_ports("web = 65534");
    repo.within(&repo.path, &["worktree", "add", "one", "--env-file", ".env.local"]).succeeds();
    let one = repo.spot.join("proj.one");
    assert_eq!(repo.env_of(&one), "export WEB_PORT=65535\n");
    // Made from there it does not keep the file with the port of the other one.
    let made = repo.within(&one, &["worktree", "add", "from-one"]).ends(1);
    assert_eq!(made.stdout, format!("{}\n", repo.spot.join("proj.from-one").display()));
    made.says(&["remove worktrees that you no longer need, end programs that listen there, or choose another number in .calve.toml; then `calve env` in the worktree"]);
    assert!(!repo.spot.join("proj.from-one/.env.local").exists());
    assert!(one.join(".env.local").exists());
    let made = repo.adding("two").ends(1);
    assert_eq!(made.stdout, format!("{}\n", repo.spot.join("proj.two").display()));
    made.says(&["no port is free for `web`", "65534 to 65535"]).hints();
    // An agent gets it with all or not at all.
    repo.adding("three").arg("--for-agent=claude").fails(1);
    assert!(!repo.spot.join("proj.three").exists());
    // It is complete but for that.
    let two = repo.spot.join("proj.two");
    repo.within(&two, &["env"]).fails(1).hints();
    fs_err::remove_dir_all(&one).unwrap();
    assert_eq!(repo.env_of(&two), "export WEB_PORT=65535\n");
}

#[test]
fn the_file_of_a_pull_request_that_is_not_trusted_names_no_ports() {
    let repo = with_ports(&format!("web = {}", number(80)));
    repo.git(["switch", "-q", "-c", "theirs"]);
    repo.write(".calve.toml", "[ports]\nweb = 30800\nmore = 30900\n");
    repo.commit("theirs");
    repo.git(["update-ref", "refs/pull/1/head", "HEAD"]);
    repo.git(["switch", "-q", "main"]);
    repo.git(["remote", "add", "origin", "."]);
    assert_eq!(repo.env_of(repo.added("pr/1")), web(81));
}

#[test]
fn a_command_runs_with_the_ports_and_its_end_is_its_own() {
    let repo = with_ports(&format!("web = {}", number(100)));
    let one = repo.added("one");
    let text = "echo $WEB_PORT; pwd; kill -TERM $$";
    let ran = repo.within(one.join("src"), &["exec", "--", "sh", "-c", text]).run();
    assert_eq!(ran.stdout, format!("{}\n{}\n", number(101), one.join("src").display()));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ran.status), Some(15));
    repo.within(&one, &["exec", "--", "sh", "-c", "exit 7"]).run().ended(7);
    // Without the two dashes, the first word is the command, and all that follow are its own.
    let ran = repo.within(&one, &["exec", "printf", "%s,", "-q", "--json", "--", "x", "--"]).succeeds();
    assert_eq!(ran.stdout, "-q,--json,--,x,--,");
    repo.within(&one, &["exec", "--", "no-such-program"]).fails(127).hints();
    repo.within(&one, &["exec"]).run().ended(2);
    // A hook has them too.
    let hooks = "hooks.post-add = 'echo $WEB_PORT >made.log'\nhooks.pre-remove = 'echo $WEB_PORT >&2'";
    let text = format!("ports.web = {}\n{hooks}\n", number(100));
    repo.write(".calve.toml", &text);
    repo.commit("hook");
    let hooked = PathBuf::from(repo.adding("hooked").arg("--yes").succeeds().stdout.trim_end());
    assert_eq!(fs_err::read_to_string(hooked.join("made.log")).unwrap(), format!("{}\n", number(102)));
    let said = repo.within(&repo.path, &["worktree", "remove", "--yes", "hooked"]).succeeds().stderr;
    assert!(said.lines().any(|line| line == number(102).to_string()), "{said}");
    // A shell of any kind and what reads such files take the lines as they are.
    for (words, line) in [("fish", "set -gx WEB_PORT "), ("dotenv", "WEB_PORT="), ("sh", "export WEB_PORT=")] {
        let printed = repo.within(&one, &["env", "--format", words]).succeeds().stdout;
        assert!(printed.ends_with(&format!("{line}{}\n", number(101))), "{printed}");
    }
    let mise = repo.within(&one, &["env", "--format", "mise"]).succeeds().stdout;
    let lines = format!("\n[env]\nWEB_PORT = \"{}\"\n", number(101));
    assert!(mise.starts_with("# Made by Calve") && mise.ends_with(&lines), "{mise}");
    if require_program("fish") {
        let calve = repo.within(&one, &[]).command();
        let script = format!("'{}' env --format fish | source; echo $WEB_PORT", calve.get_program().display());
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &script]);
        carry_environment(&calve, &mut fish);
        assert_eq!(String::from_utf8(fish.output().unwrap().stdout).unwrap(), format!("{}\n", number(101)));
    }
    repo.within(&one, &["env", "--format", "csh"]).run().ended(2);
}

#[test]
fn the_list_shows_the_ports() {
    let repo = with_ports(&format!("web = {}\napi = {}", number(120), number(121)));
    let listed = |more: &[&str]| repo.within(&repo.path, &["worktree", "list"]).args(more).succeeds();
    assert!(!listed(&[]).stdout.contains(':') && listed(&["--json"]).json()["worktrees"][0].get("ports").is_none());
    let one = repo.added("one");
    let shown = listed(&[]).stdout;
    assert!(shown.contains(&format!("  api:{} web:{}  /", number(122), number(123))), "{shown}");
    fs_err::remove_dir_all(&one).unwrap();
    repo.env_of(&repo.path);
    let document = listed(&["--json"]).json();
    let has = |at: usize, expected: [u32; 2]| {
        let ports = document["worktrees"][at]["ports"].as_array().unwrap().iter().map(|port| &port["port"]);
        assert!(ports.eq(&expected.map(number)), "{document}");
    };
    has(0, [121, 120]);
    has(1, [122, 123]);
    fs_err::write(repo.home().join("ports/leases"), "x").unwrap();
    listed(&[]).says(&["warning: no ports are shown"]);
}

#[test]
fn a_damaged_file_of_leases_is_told_and_a_killed_writer_does_no_harm() {
    let repo = with_ports(&format!("web = {}", number(60)));
    let one = repo.added("one");
    fs_err::write(repo.home().join("ports/.new-0123456789abcdef"), "calve po").unwrap();
    repo.added("two");
    assert_eq!(names(repo.home().join("ports")), ["leases"]);
    fs_err::write(repo.home().join("ports/leases"), "calve po").unwrap();
    repo.within(&one, &["env"]).fails(1).says(&["is damaged", "rm "]);
    fs_err::remove_file(repo.home().join("ports/leases")).unwrap();
    assert_eq!(repo.env_of(&one), web(61));
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

/// The shell has run `eval "$(calve env)"` in the main worktree. Neither a branch from before the configuration, nor one whose service has
/// no data, nor a pull request may meet the main worktree's database.
#[test]
fn no_program_inherits_another_worktrees_variables() {
    let repo = Repo::anywhere();
    repo.git(["branch", "before"]);
    let show = "echo hook ${WEB_PORT-none} ${DB_URL-none} $OTHER_URL";
    repo.write(
        ".calve.toml",
        &format!("[ports]\nweb = {}\n[services.db]\n[hooks]\npost-add = '{show}'\npre-remove = '{show}'\n", number(40)),
    );
    repo.commit("configuration");
    let request = repo.git(["commit-tree", "-p", "HEAD", "-m", "request", "HEAD^{tree}"]);
    repo.git(["update-ref", "refs/pull/1/head", request.trim()]);
    repo.settle();
    let evaluated = |calve: Calve| {
        let values = [("WEB_PORT", "1"), ("DB_URL", "postgresql:///main"), ("OTHER_URL", "kept")];
        values.into_iter().fold(calve, |calve, (name, value)| calve.env(name, value))
    };
    repo.within(&repo.path, &["hook", "approve", "--yes"]).succeeds();
    let print = ["exec", "sh", "-c", "echo ${WEB_PORT-none} ${DB_URL-none} $OTHER_URL"];
    for (branch, is_configured) in [("with", true), ("before", false), ("refs/pull/1/head", true)] {
        let add = evaluated(repo.adding(branch).arg("--no-hooks")).succeeds();
        let worktree = PathBuf::from(add.stdout.trim_end());
        let printed = evaluated(repo.within(&worktree, &print));
        match is_configured {
            true => drop(printed.fails(1)),
            false => assert_eq!(printed.succeeds().stdout, "none none kept\n"),
        }
        let lines = evaluated(repo.within(&worktree, &["env"])).succeeds().stdout;
        let unset = if is_configured { "unset DB_URL\n" } else { "unset DB_URL\nunset WEB_PORT\n" };
        assert!(lines.ends_with(unset) && !lines.contains("OTHER"), "{branch}: {lines}");
        let fish = evaluated(repo.within(&worktree, &["env", "--format", "fish"])).succeeds().stdout;
        assert!(fish.contains("set -e DB_URL\n"), "{fish}");
    }
    let add = evaluated(repo.adding("hooked")).run().says(&["the post-add hook did not run"]);
    let hooked = PathBuf::from(add.stdout.trim_end());
    evaluated(repo.within(&hooked, &["worktree", "remove"])).succeeds().says(&["the pre-remove hook did not run"]);
}
