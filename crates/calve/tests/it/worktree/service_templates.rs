//! `engine`, `create` and `inputs` of a service: its template is made of the worktree's own files, by whoever needs it first.

use std::path::{Path, PathBuf};

use calve_testkit::require_program;

use super::repo::{Repo, with_environment, write};
use crate::program::{Calve, calve};

/// A repository whose service `db` is filled from `schema/*.sql`. The command writes a line for each run.
struct Recipe {
    repo: Repo,
}

const CREATE: &str = "echo x >> \"$RUNS\"; cat schema/*.sql | psql -XqAt -v ON_ERROR_STOP=1 \"$DATABASE_URL\"";

impl Recipe {
    fn new() -> Option<Self> {
        if !["postgres", "psql"].iter().all(|program| require_program(program)) {
            return None;
        }
        let repo = Repo::anywhere();
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
        let recipe = Self { repo };
        recipe.configure(CREATE, "[\"schema/*.sql\"]");
        recipe.repo.write("schema/1.sql", "CREATE TABLE t (a int); INSERT INTO t VALUES (1);\n");
        recipe.repo.commit("services");
        Some(recipe)
    }

    fn configure(&self, create: &str, inputs: &str) {
        let text = format!(
            "[services.db]\nengine = 'postgres'\nenv = 'DATABASE_URL'\ncreate = '''{create}'''\ninputs = {inputs}\n"
        );
        self.repo.write(".calve.toml", &text);
    }

    fn within(&self, worktree: impl AsRef<Path>, words: &[&str]) -> Calve {
        let calve = with_environment(calve(words)).within(worktree).env("CALVE_HOME", self.repo.spot.join("home"));
        calve.env("RUNS", self.repo.spot.join("runs"))
    }

    fn add(&self, words: &[&str]) -> Calve {
        self.within(&self.repo.path, &["worktree", "add"]).args(words)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.repo.spot.join(format!("proj.{name}"))
    }

    /// How often the command ran.
    fn runs(&self) -> usize {
        fs_err::read_to_string(self.repo.spot.join("runs")).unwrap_or_default().lines().count()
    }

    #[track_caller]
    fn sum(&self, worktree: impl AsRef<Path>) -> String {
        let words = ["exec", "--", "sh", "-c", "psql -XqAt \"$DATABASE_URL\" -c 'SELECT sum(a) FROM t'"];
        self.within(worktree, &words).succeeds().stdout.trim_end().to_owned()
    }

    fn approve(&self, worktree: impl AsRef<Path>) {
        self.within(worktree, &["hook", "approve", "--yes"]).succeeds().says(&["The create command of this project:"]);
    }

    fn templates(&self) -> Vec<String> {
        let listed = self.within(&self.repo.path, &["db", "template", "list", "--json"]).succeeds().json();
        listed["templates"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Recipe {
    fn drop(&mut self) {
        let worktrees = self.repo.worktrees();
        worktrees.iter().filter(|path| path.exists()).for_each(|path| _ = self.within(path, &["down", "-q"]).run());
    }
}

#[test]
fn a_create_command_that_is_not_approved_is_not_run() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    let lacks =
        "the service `db` has no data: the create command of this project is not approved; `calve hook approve`";
    recipe.add(&["one"]).succeeds().says(&[lacks]);
    let receipt = recipe.add(&["json", "--json"]).succeeds().json();
    assert_eq!(receipt["services"][0]["no_data_because"], "the create command of this project is not approved");
    let refused = recipe.within(main, &["up"]).fails(3).hints();
    refused.says(&["the create command of this project is not approved"]);
    assert_eq!((recipe.runs(), recipe.templates().len()), (0, 0));
    // It is approved for this text in this repository, and for no other.
    recipe.approve(main);
    recipe.configure("echo other >> \"$RUNS\"", "[]");
    recipe.within(main, &["up"]).fails(3);
    recipe.repo.git(["checkout", "-q", ".calve.toml"]);
    // A pull request's tree is the stranger's: nothing of it runs, whatever the user has approved.
    recipe.repo.git(["checkout", "-q", "-b", "theirs"]);
    recipe.repo.write("schema/1.sql", "CREATE TABLE t (a int); INSERT INTO t VALUES (666);\n");
    recipe.repo.commit("stranger");
    recipe.repo.git(["update-ref", "refs/pull/7/head", "HEAD"]);
    recipe.repo.git(["checkout", "-q", "main"]);
    recipe.repo.git(["branch", "-qD", "theirs"]);
    recipe.repo.git(["reflog", "expire", "--expire=now", "--all"]);
    let theirs = recipe.add(&["--detach", "refs/pull/7/head", "--path", "../theirs", "--yes"]).succeeds();
    theirs.says(&["not trusted", "and a pull request makes none; `calve up` in a worktree of your own makes it"]);
    recipe.within(recipe.repo.spot.join("theirs"), &["up"]).fails(3).hints();
    assert_eq!(recipe.runs(), 0);
    recipe.within(main, &["up"]).succeeds();
    assert_eq!((recipe.sum(main), recipe.runs()), ("1".into(), 1));
    recipe.repo.write("schema/1.sql", "CREATE TABLE t (a int); INSERT INTO t VALUES (1); --\n");
    recipe.repo.commit("other");
    let lacks = "`--no-hooks` keeps the create command of the service `db` from running; `calve up` runs it";
    recipe.add(&["without", "--no-hooks", "--yes"]).succeeds().says(&[lacks]);
    recipe.repo.git(["reset", "-q", "--hard", "HEAD~1"]);
    // For once.
    recipe.within(main, &["hook", "approve", "--revoke"]).succeeds();
    recipe.repo.write("schema/2.sql", "INSERT INTO t VALUES (2);\n");
    recipe.repo.commit("two");
    recipe.add(&["two", "--yes"]).succeeds().says(&["data: `db` from the template `db-"]);
    assert_eq!((recipe.sum(recipe.place("two")), recipe.runs()), ("3".into(), 2));
}

#[test]
fn a_template_is_made_once_for_each_content_of_its_inputs() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    // Two at once: one makes it, and both have it.
    recipe.add(&["one", "--data-from", "none"]).succeeds();
    let both = [main.clone(), recipe.place("one")].map(|place| recipe.within(place, &["up"]).start());
    both.into_iter().for_each(|one| one.wait().ended(0));
    assert_eq!((recipe.sum(main), recipe.sum(recipe.place("one")), recipe.runs()), ("1".into(), "1".into(), 1));
    recipe.add(&["two"]).succeeds().says(&["data: `db` from `", "proj`, whose server runs"]);
    assert_eq!(recipe.runs(), 1);
    // A branch with another schema gets a template of its own, and so does a reset after a change.
    let two = recipe.place("two");
    write(&two.join("schema/2.sql"), "INSERT INTO t VALUES (2);\n");
    assert_eq!(recipe.sum(&two), "1", "data that is there stays as it is");
    recipe.within(&two, &["reset", "--yes"]).succeeds();
    assert_eq!((recipe.sum(&two), recipe.sum(main), recipe.runs()), ("3".into(), "1".into(), 2));
    recipe.within(&two, &["reset", "--yes"]).succeeds();
    assert_eq!(recipe.runs(), 2, "it is there");
    super::repo::git(&two, ["add", "-A"]);
    super::repo::git(&two, ["commit", "-qm", "two"]);
    recipe.add(&["three", "--base", "two"]).succeeds().says(&["data: `db` from the template `db-"]);
    assert_eq!((recipe.sum(recipe.place("three")), recipe.runs()), ("3".into(), 2));
    // Data that the user names counts, whatever it was made of.
    recipe.add(&["four", "--data-from", "two"]).succeeds().says(&["data: `db` from `"]);
    assert_eq!((recipe.sum(recipe.place("four")), recipe.runs()), ("3".into(), 2));
    recipe.add(&["five", "--data-from", "none"]).succeeds();
    recipe.add(&["six", "--data-from", "five"]).fails(1).says(&["has no data of the service `db`"]).hints();
    // Those that no worktree uses go, but for the newest, and for data that was promoted.
    recipe.within(main, &["db", "promote", "--yes", "one"]).succeeds();
    recipe.within(main, &["worktree", "remove", "one", "--lose-data"]).succeeds();
    let promoted = recipe.templates();
    for round in 3..9 {
        recipe.repo.write("schema/2.sql", &format!("INSERT INTO t VALUES ({round});\n"));
        recipe.within(main, &["reset", "--yes"]).succeeds();
        assert_eq!(recipe.sum(main), (1 + round).to_string());
    }
    let templates = recipe.templates();
    assert!(promoted.iter().all(|name| templates.contains(name)), "{promoted:?} {templates:?}");
    assert_eq!(templates.len(), 2 + 1 + 1 + 3, "{templates:?}");
}

#[test]
fn a_command_that_fails_costs_no_other_service_and_leaves_no_template() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    let shared = |create: &str, inputs: &str| {
        recipe.configure(create, inputs);
        let also = "[services.empty]\nengine = 'postgres'\n[services.lost]\ntemplate = 'nowhere'\n";
        recipe.repo.write(".calve.toml", &(fs_err::read_to_string(main.join(".calve.toml")).unwrap() + also));
        recipe.repo.commit("services");
        recipe.approve(main);
    };
    shared("psql -XqAt \"$DATABASE_URL\" -c 'CREATE TABLE t (a int)'; exit 7", "[]");
    let failed = recipe.add(&["one"]).fails(1);
    failed.says(&["exit code 7", "the service `lost` has no data: there is no template `nowhere`"]).hints();
    assert!(recipe.place("one").join(".git").exists());
    recipe.within(main, &["up"]).fails(1).says(&["started `empty`", "exit code 7", "there is no template `nowhere`"]);
    let states = recipe.within(main, &["status", "--json"]).succeeds().json();
    let states: Vec<_> = states["services"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["absent", "running", "absent"]);
    // It hangs, and somebody loses his patience.
    shared("psql -XqAt \"$DATABASE_URL\" -c 'CREATE TABLE t (a int)'; echo x >> \"$RUNS\"; exec sleep 600", "[]");
    let hangs = recipe.within(main, &["up"]).start();
    while recipe.runs() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(hangs.id() as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    hangs.wait().ended(130);
    // It changes what it reads, each time, and once.
    shared("date +%N > schema/now.sql; psql -XqAt \"$DATABASE_URL\" -c 'CREATE TABLE t (a int)'", "['schema']");
    recipe.within(main, &["up"]).fails(1).says(&["change whenever its template is made"]).hints();
    shared(
        "echo '--' > schema/now.sql; psql -XqAt \"$DATABASE_URL\" -c 'CREATE TABLE t AS SELECT 5 AS a'",
        "['schema']",
    );
    recipe.within(main, &["up"]).fails(1).says(&["there is no template `nowhere`"]);
    let lacks = "the service `lost` has no data";
    recipe.within(main, &["exec", "true"]).succeeds().says(&[lacks]);
    assert_eq!(recipe.within(main, &["env"]).succeeds().says(&[lacks]).stdout.lines().count(), 2);
}

#[test]
fn inputs_are_below_the_worktree() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    for outside in ["['/etc/passwd']", "['../x']", "['schema/../../x']", "['']"] {
        recipe.configure(CREATE, outside);
        recipe.within(main, &["up"]).fails(1).says(&["`inputs` are below the root of the worktree", "line 5"]);
    }
    fs_err::os::unix::fs::symlink("/etc", main.join("etc")).unwrap();
    fs_err::os::unix::fs::symlink("/etc/passwd", main.join("schema/9.sql")).unwrap();
    for linked in ["['etc']", "['etc/passwd']", "['etc/pass*']", "['schema']", "['schema/*.sql']", "['none*']"] {
        recipe.configure(CREATE, linked);
        recipe.within(main, &["up"]).fails(3).says(&["no file of this worktree matches"]).hints();
    }
    assert_eq!(recipe.runs(), 0);
    for (text, reason) in [
        ("create = 'x'", "need an `engine`"),
        ("inputs = ['x']", "need an `engine`"),
        ("engine = 'postgres'\ninputs = ['x']", "files that `create` reads"),
        ("engine = 'postgres'\ntemplate = 'x'", "`engine` makes one"),
    ] {
        recipe.repo.write(".calve.toml", &format!("[services.db]\n{text}\n"));
        recipe.within(main, &["up"]).fails(1).says(&[reason]);
    }
}

#[test]
fn a_commit_without_the_configuration_is_named() {
    let Some(recipe) = Recipe::new() else { return };
    recipe.approve(&recipe.repo.path);
    recipe.repo.git(["branch", "old", "HEAD~1"]);
    let lacks = "this commit has no `.calve.toml`, so there are no ports and no services here";
    recipe.add(&["old"]).succeeds().says(&[lacks]);
    assert!(!recipe.add(&["new", "--data-from", "none"]).succeeds().stderr.contains(lacks));
}
