//! `calve init`.

use super::ports::number;
use super::repo::Repo;
use crate::terminal::Terminal;

#[test]
fn a_configuration_is_written_once_and_new_worktrees_follow_it() {
    let repo = Repo::anywhere();
    let port = format!("web={}", number(340));
    let init = |words: &[&str]| repo.within(repo.join("src"), &[&["init"], words].concat());
    for (port, wrong) in [("web", "whole number"), ("Web=3000", "small letters"), ("web=0", "from 1024 to 65535")] {
        init(&["--port", port]).fails(2).says(&[wrong, "name each as in `--port web=3000`"]);
    }
    init(&["--create", "x"]).fails(2);
    init(&["--engine", "oracle"]).fails(2).says(&["the engines are postgres"]);
    init(&["--port", &port, "--engine", "postgres", "--create", "x\x7f"]).fails(1).says(&[".calve.toml"]).hints();
    assert!(!repo.join(".calve.toml").exists());
    let create = "psql \"$DATABASE_URL\" -f 'a\\b.sql'";
    let command = "git add :/.calve.toml && git commit -m 'calve init'";
    let words = ["--port", &port, "--engine", "postgres", "--create", create];
    init(&words).succeeds().says(&["wrote `.calve.toml`; commit it", command]);
    init(&[]).fails(1).says(&[".calve.toml` already exists"]).hints();
    let committed = std::process::Command::new("sh").args(["-ec", command]).current_dir(repo.join("src")).status();
    assert!(committed.unwrap().success());
    let lacks = "the service `db` has no data: the create command of this project is not approved";
    repo.adding("one").succeeds().says(&[&format!("ports: WEB_PORT={}", number(341)), lacks]);
    repo.within(&repo.path, &["hook", "approve"]).fails(3).says(&[create]);
}

#[test]
fn what_it_asks_on_a_terminal_fits_on_a_screen() {
    let repo = Repo::anywhere();
    let path = repo.join(".calve.toml");
    let (ports, engine, create) = ("[web=3000]:", "valkey) [none]:", "with its URL in REDIS_URL [none]:");
    let ask = |answers: &[(&str, &str)]| {
        let mut terminal = Terminal::new(&repo.within(&repo.path, &["init"]).command());
        answers.iter().for_each(|(question, answer)| drop(terminal.after(question, answer)));
        terminal.end()
    };
    assert_eq!(ask(&[(ports, "none\n"), (engine, "none\n")]).0, Some(0));
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "");
    fs_err::remove_file(&path).unwrap();
    // A wrong answer is asked for again at once.
    let wrong = [
        (ports, "web=80\n"),
        ("a port is from 1024 to 65535", ""),
        (ports, "web=4000 api=5000\n"),
        (engine, "oracle\n"),
        ("the engines are postgres", ""),
        (engine, "redis\n"),
        (create, "none\n"),
    ];
    let (code, said) = ask(&wrong);
    assert!(code == Some(0) && said.lines().count() < 24, "{said}");
    let text = fs_err::read_to_string(&path).unwrap();
    for line in ["web = 4000", "api = 5000", "engine = \"redis\"", "env = \"REDIS_URL\""] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert!(!text.contains("create"), "{text}");
    // Without a terminal: the usual port.
    fs_err::remove_file(&path).unwrap();
    repo.within(&repo.path, &["init"]).succeeds();
    assert!(fs_err::read_to_string(&path).unwrap().ends_with("\nweb = 3000\n"));
}
