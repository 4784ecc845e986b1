//! Processes that go on when their worktree is removed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use calve_testkit::require_program;

use super::ports::{number, with_ports};
use super::repo::git;
use crate::terminal::Terminal;

const LISTEN: &str = "
import socket, sys, time
server = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('listens', flush=True)
time.sleep(600)
";

/// A program that goes on until the end of the test.
struct Program(Child);

impl Program {
    fn sleeping(at: &Path) -> Self {
        Self(Command::new("sleep").arg("600").current_dir(at).spawn().unwrap())
    }

    fn listening(at: &Path, port: u16) -> Self {
        let mut command = Command::new("python3");
        let command = command.args(["-c", LISTEN, &port.to_string()]).current_dir(at).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listens\n");
        Self(program)
    }

    /// As it is named.
    fn named(&self) -> String {
        let name = fs_err::read_to_string(format!("/proc/{}/comm", self.0.id())).unwrap();
        format!("process {} ({})", self.0.id(), name.trim_end())
    }

    fn goes_on(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn removing_a_worktree_names_the_processes_in_it_and_those_on_its_ports() {
    if !require_program("python3") {
        return;
    }
    let repo = with_ports(&format!("web = {}", number(180)));
    let [one, two] = ["one", "two"].map(|name| repo.added(name));
    let remove = |words: &[&str]| repo.within(&repo.path, &["worktree", "remove"]).args(words);
    let mut inside = Program::listening(&one.join("src"), number(181));
    let mut sleeping = Program::sleeping(&one);
    let mut elsewhere = Program::listening(&repo.path, number(182));
    let _of_nobody = Program::listening(&repo.path, number(183));
    let first = format!("`{}`: {} is running in it, and listens on {}\n", one.display(), inside.named(), number(181));
    // Another Calve does not count: it waits for its input.
    let mut server = repo.within(&one, &["mcp"]).command();
    let _calve = Program(server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    let second = format!("`{}`: {} is running in it\n", one.display(), sleeping.named());
    let third = format!("`{}`: {} listens on {}\n", two.display(), elsewhere.named(), number(182));
    remove(&["-n", "one"]).succeeds().says(&[&first, &second]);
    let removed = remove(&["one", "two"]).succeeds().says(&[&first, &second, &third]);
    assert_eq!(removed.stderr.matches("process ").count(), 3, "{}", removed.stderr);
    assert!(!one.exists() && !two.exists());
    assert!(inside.goes_on() && sleeping.goes_on() && elsewhere.goes_on());
}

#[test]
fn on_a_terminal_they_are_ended_after_a_question() {
    let repo = with_ports(&format!("web = {}", number(200)));
    for (answer, is_ended) in [("n\n", false), ("y\n", true)] {
        let one = repo.added("one");
        let mut program = Program::sleeping(&one);
        let remove = repo.within(&repo.path, &["worktree", "remove", "one"]);
        let mut terminal = Terminal::new(&remove.command());
        assert!(terminal.after("End it? The worktree is removed either way. [y/N]", answer).contains(&program.named()));
        let (code, said) = terminal.end();
        assert_eq!((code, said.contains("has not ended")), (Some(0), false), "{said}");
        assert_eq!((one.exists(), program.goes_on()), (false, !is_ended), "{answer:?}");
    }
    // There is no question with `--yes`, nor by `prune`, which asks about all worktrees at once.
    let asks_nobody = [&["remove", "--yes", "one"][..], &["prune", "--merged", "--yes"]];
    for words in asks_nobody.into_iter().filter(|_| require_program("python3")) {
        let one = repo.added("one");
        git(&one, ["commit", "-q", "--allow-empty", "-m", "done"]);
        repo.git(["merge", "-q", "one"]);
        let port = repo.within(&one, &["env", "--json"]).succeeds().json()["ports"][0]["port"].as_u64().unwrap();
        let mut program = Program::listening(&repo.path, port.try_into().unwrap());
        let (code, said) = Terminal::new(&repo.within(&repo.path, &["worktree"]).args(words).command()).end();
        assert!(code == Some(0) && said.contains(&program.named()) && !said.contains("[y/N]"), "{said}");
        assert_eq!((one.exists(), program.goes_on()), (false, true), "{said}");
    }
    // The shell around the command is in the worktree too, and is not meant; other worktrees are none of its business.
    let [one, two] = ["one", "two"].map(|name| repo.added(name));
    let _program = Program::sleeping(&two);
    let removed = repo.within(&one, &["worktree", "remove"]).in_shell("(", "); :").succeeds();
    assert!(!removed.stderr.contains("process ") && !one.exists(), "{}", removed.stderr);
    // Work that is written while the question waits is not lost.
    let one = repo.added("one");
    let mut program = Program::sleeping(&one);
    let mut terminal = Terminal::new(&repo.within(&repo.path, &["worktree", "remove", "one"]).command());
    terminal.after("End it? The worktree is removed either way. [y/N]", "");
    fs_err::write(one.join("new"), "work").unwrap();
    terminal.after("", "y\n");
    let (code, said) = terminal.end();
    assert!(code == Some(1) && said.contains("uncommitted changes") && one.join("new").exists(), "{said}");
    assert!(!program.goes_on());
}
