//! `engine`, `create` and `inputs` of a service: its template is made of the worktree's own files, by the first command that needs it.

use std::path::{Path, PathBuf};

use calve_testkit::{require_program, require_root};

use super::repo::{Repo, with_environment, write};
use crate::program::{Calve, Reachable, calve};
use crate::spot::names;

/// A repository whose service `db` is filled from `schema/*.redis`. The command writes a line for each run. Redis starts soonest.
struct Recipe {
    repo: Repo,
}

const CREATE: &str = "echo x >> \"$RUNS\"; cat schema/*.redis | redis-cli -e -s \"$REDIS_SOCKET\"";

impl Recipe {
    fn new() -> Option<Self> {
        if !["redis-server", "redis-cli"].iter().all(|program| require_program(program)) {
            return None;
        }
        let repo = Repo::anywhere();
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
        let recipe = Self { repo };
        recipe.configure(CREATE, "[\"schema/*.redis\"]");
        recipe.repo.write("schema/1.redis", "RPUSH t 1\n");
        recipe.repo.commit("services");
        Some(recipe)
    }

    fn configure(&self, create: &str, inputs: &str) {
        let text = format!(
            "[services.db]\nengine = 'redis'\nenv = 'DATABASE_URL'\ncreate = '''{create}'''\ninputs = {inputs}\n"
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
        let sum = "redis-cli -s \"${DATABASE_URL#unix://}\" LRANGE t 0 -1 | awk '{ sum += $1 } END { print sum }'";
        let words = ["exec", "--", "sh", "-c", sum];
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
    recipe.repo.write("schema/1.redis", "RPUSH t 666\n");
    recipe.repo.commit("stranger");
    recipe.repo.git(["update-ref", "refs/pull/7/head", "HEAD"]);
    recipe.repo.git(["checkout", "-q", "main"]);
    recipe.repo.git(["branch", "-qD", "theirs"]);
    recipe.repo.git(["reflog", "expire", "--expire=now", "--all"]);
    let theirs = recipe.add(&["--detach", "refs/pull/7/head", "--path", "../theirs", "--yes"]).succeeds();
    theirs.says(&[
        "not trusted",
        "and a pull request may not create it",
        "read it and trust it with `calve hook approve --trust`, or wait until it is merged; if it changes no `inputs`, `calve up` in a worktree of your own makes it too",
    ]);
    let stranger = |words: &[&str]| recipe.within(recipe.repo.spot.join("theirs"), words);
    for words in [&["up"][..], &["exec", "true"]] {
        stranger(words).fails(3).says(&["and a pull request may not create it"]).hints();
    }
    stranger(&["reset", "--yes"]).fails(1).says(&["`calve up` clones it, or says why it cannot"]);
    assert_eq!(recipe.runs(), 0);
    recipe.within(main, &["up"]).succeeds();
    assert_eq!((recipe.sum(main), recipe.runs()), ("1".into(), 1));
    recipe.repo.write("schema/1.redis", "RPUSH t 1 \n");
    recipe.repo.commit("other");
    let lacks = "`--no-hooks` keeps the create command of the service `db` from running; `calve up` runs it";
    recipe.add(&["without", "--no-hooks", "--yes"]).succeeds().says(&[lacks]);
    recipe.repo.git(["reset", "-q", "--hard", "HEAD~1"]);
    // For once.
    recipe.within(main, &["hook", "approve", "--revoke"]).succeeds();
    recipe.repo.write("schema/2.redis", "RPUSH t 2\n");
    recipe.repo.commit("two");
    let lacks = "from running; `calve hook approve` shows it and approves it, and `calve up` then runs it";
    recipe.add(&["unapproved", "--no-hooks"]).succeeds().says(&[lacks]);
    recipe.add(&["two", "--yes"]).succeeds().says(&["data: `db` from the template `db-"]);
    assert_eq!((recipe.sum(recipe.place("two")), recipe.runs()), ("3".into(), 2));
}

#[test]
fn no_command_of_the_users_runs_while_a_service_has_no_data() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    let hooks = "hooks.post-add = 'touch ran'\nhooks.pre-remove = 'touch ../proj/removing'\n";
    recipe.repo.write(".calve.toml", hooks);
    recipe.within(main, &["hook", "approve", "--yes"]).succeeds();
    let recipes = [
        ("template = 'nowhere'", 1, "there is no template `nowhere`"),
        ("engine = 'redis'\ncreate = 'false'\ninputs = ['*.nothing']", 3, "matches `*.nothing`"),
        ("engine = 'redis'\ncreate = 'false'", 3, "is not approved"),
    ];
    let not_run = "the post-add hook did not run: the service `db` has no data";
    for (at, (service, code, why)) in recipes.into_iter().enumerate() {
        recipe.repo.write(".calve.toml", &format!("{hooks}[services.db]\n{service}\n"));
        recipe.repo.commit("lacks");
        for data in [&[] as &[&str], &["--data-from", "none"]] {
            let name = format!("at{at}{}", data.len());
            let added = recipe.add(&[&name]).args(data).ends(if data.is_empty() { 1 } else { 0 });
            let said = added.says(&[not_run]);
            if data.is_empty() {
                said.says(&[
                    "once `calve up` has cloned it, run the commands of `hooks.post-add` in the worktree yourself",
                ]);
            }
            recipe.within(recipe.place(&name), &["exec", "touch", "ran"]).fails(code).says(&[why]).hints();
            assert!(!recipe.place(&name).join("ran").exists());
            let removed = recipe.within(main, &["worktree", "remove", &name]).succeeds();
            removed.says(&["the pre-remove hook did not run: the service `db` has no data"]);
        }
        fs_err::write(recipe.repo.spot.join("input"), format!("{{\"name\": \"agents{at}\"}}")).unwrap();
        // An agent gets its worktree, and the same one again.
        let agents = recipe.place(&format!("agents{at}"));
        let create = || recipe.within(main, &["hook", "worktree-create"]).in_shell("", "<../input").succeeds();
        assert_eq!(create().says(&[why, not_run]).stdout, format!("{}\n", agents.display()));
        assert!(!create().stderr.contains("hook"));
        let setup = recipe.within(&agents, &["hook", "worktree-setup"]).succeeds();
        setup.says(&[why, not_run]);
        assert!(!recipe.repo.path.join("removing").exists() && !agents.join("ran").exists());
    }
    recipe.repo.write(".calve.toml", "[services.db]\ntemplate = 'nowhere'\n");
    recipe.repo.commit("no hooks");
    fs_err::write(recipe.repo.spot.join("input"), "{\"name\": \"plain\"}").unwrap();
    let plain = recipe.within(main, &["hook", "worktree-create"]).in_shell("", "<../input").succeeds();
    assert!(!plain.says(&["the service `db` has no data: there is no template `nowhere`"]).stderr.contains("hook"));
}

#[test]
fn a_pull_request_in_the_main_worktree_makes_no_template_until_it_is_trusted() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    recipe.repo.git(["checkout", "-q", "-b", "theirs"]);
    recipe.repo.write("schema/1.redis", "RPUSH t 666\n");
    recipe.repo.commit("stranger");
    recipe.repo.git(["update-ref", "refs/pull/7/head", "HEAD"]);
    recipe.repo.git(["checkout", "-q", "main"]);
    recipe.repo.git(["branch", "-qD", "theirs"]);
    recipe.repo.git(["reflog", "expire", "--expire=now", "--all"]);
    recipe.within(main, &["up"]).succeeds();
    assert_eq!((recipe.sum(main), recipe.runs()), ("1".into(), 1));
    recipe.repo.git(["checkout", "-q", "--detach", "refs/pull/7/head"]);
    for words in [&["reset", "--yes"] as &[&str], &["hook", "approve", "--yes"]] {
        recipe.within(main, words).fails(3).hints();
    }
    assert_eq!((recipe.sum(main), recipe.runs()), ("1".into(), 1));
    recipe.within(main, &["hook", "approve", "--trust", "--yes"]).succeeds().says(&["is trusted from now on"]);
    recipe.within(main, &["reset", "--yes"]).succeeds();
    assert_eq!((recipe.sum(main), recipe.runs()), ("666".into(), 2));
}

#[test]
fn every_failure_is_told_and_what_did_not_run() {
    let Some(recipe) = Recipe::new() else { return };
    let service = "engine = \"redis\"\ncreate = \"false\"\n";
    let config =
        format!("hooks.post-add = 'touch ran'\n[services.db]\n{service}[services.more]\n{service}env = \"MORE_URL\"\n");
    recipe.repo.write(".calve.toml", &config);
    recipe.repo.commit("fails");
    let refused = recipe.within(&recipe.repo.path, &["up"]).fails(3);
    assert_eq!(refused.stderr.matches("is not approved").count(), 1, "{}", refused.stderr);
    let failed = recipe.add(&["one", "--yes"]).ends(1);
    let failed = failed.says(&["service `db` failed", "service `more` failed", "the post-add hook did not run"]);
    let one = PathBuf::from(failed.stdout.trim_end());
    assert!(one.join(".calve.toml").exists() && !one.join("ran").exists(), "{one:?}");
}

#[test]
fn a_commit_without_the_configuration_and_the_command_that_creates_again_are_named() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    recipe.within(main, &["up", "-q"]).succeeds();
    recipe.repo.git(["branch", "old", "HEAD~1"]);
    let lacks = "this commit has no `.calve.toml`, so there are no ports and no services here";
    recipe.add(&["old"]).succeeds().says(&[lacks]);
    assert!(!recipe.add(&["new", "--data-from", "none"]).succeeds().stderr.contains(lacks));
    recipe.configure("exit 1", "[]");
    recipe.approve(main);
    recipe
        .within(main, &["reset", "--yes"])
        .fails(1)
        .says(&["fix what the command reported; `calve reset db` runs it again"]);
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
    write(&two.join("schema/2.redis"), "RPUSH t 2\n");
    assert_eq!(recipe.sum(&two), "1", "data that is there stays as it is");
    recipe.within(&two, &["reset", "--yes"]).succeeds();
    assert_eq!((recipe.sum(&two), recipe.sum(main), recipe.runs()), ("3".into(), "1".into(), 2));
    recipe.within(&two, &["reset", "--yes"]).succeeds();
    assert_eq!(recipe.runs(), 2, "it is there");
    super::repo::git(&two, ["add", "-A"]);
    super::repo::git(&two, ["commit", "-qm", "two"]);
    recipe
        .add(&["three", "--base", "two"])
        .succeeds()
        .says(&["data: `db` from the template `db-", &format!("` (`{}` has redis data of `db-", main.display())]);
    assert_eq!((recipe.sum(recipe.place("three")), recipe.runs()), ("3".into(), 2));
    // Data that the user names counts, whatever it was made of.
    recipe.add(&["four", "--data-from", "two"]).succeeds().says(&["data: `db` from `"]);
    assert_eq!((recipe.sum(recipe.place("four")), recipe.runs()), ("3".into(), 2));
    recipe.add(&["five", "--data-from", "none"]).succeeds();
    recipe.add(&["six", "--data-from", "five"]).fails(1).says(&["has no data for the service `db`"]).hints();
    // Those that no worktree uses go, but for the newest, and for data that was promoted.
    recipe.within(main, &["db", "promote", "--yes", "one"]).succeeds();
    recipe.within(main, &["worktree", "remove", "one", "--lose-data"]).succeeds();
    let promoted = recipe.templates();
    for round in 3..9 {
        recipe.repo.write("schema/2.redis", &format!("RPUSH t {round}\n"));
        recipe.within(main, &["reset", "--yes"]).succeeds();
        assert_eq!(recipe.sum(main), (1 + round).to_string());
    }
    let templates = recipe.templates();
    assert!(promoted.iter().all(|name| templates.contains(name)), "{promoted:?} {templates:?}");
    assert_eq!(templates.len(), 2 + 1 + 1 + 3, "{templates:?}");
}

#[test]
fn a_template_without_inputs_is_said_to_stay_when_it_is_made() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.configure(CREATE, "[]");
    recipe.repo.commit("no inputs");
    recipe.approve(main);
    let stays = "no file rebuilds the template of `db`: name those that `create` reads as `inputs`";
    recipe.within(main, &["up"]).succeeds().says(&[stays]);
    recipe.repo.write("schema/1.redis", "RPUSH t 5\n");
    for words in [&["reset", "--yes"] as &[&str], &["up"], &["worktree", "add", "one"]] {
        let ran = recipe.within(main, words).succeeds();
        assert!(!ran.stderr.contains("inputs"), "{}", ran.stderr);
    }
    assert_eq!((recipe.sum(main), recipe.runs()), ("1".into(), 1));
}

#[test]
fn a_template_that_is_damaged_is_made_again() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    recipe.add(&["one"]).succeeds();
    let name = &recipe.templates()[0];
    let template = recipe.repo.spot.join("home/db/templates").join(name);
    fs_err::remove_dir_all(template.join("data")).unwrap();
    recipe.add(&["two"]).succeeds();
    assert_eq!((recipe.runs(), recipe.sum(recipe.place("two"))), (2, "1".into()));
    fs_err::remove_dir_all(template.join("data")).unwrap();
    assert_eq!((recipe.sum(main), recipe.runs(), recipe.templates().len()), ("1".into(), 3, 1));
    // Nothing tells whether it holds the data of a worktree, which no command makes again.
    rustix::fs::chmod(&template, 0o700.into()).unwrap();
    fs_err::write(template.join("template.json"), "{").unwrap();
    let hint = format!("remove it, and `calve up` rebuilds it: calve db template remove {name}");
    recipe
        .add(&["three", "--data-from", "template"])
        .succeeds()
        .says(&["is damaged: its `template.json` is missing or damaged", &hint]);
    recipe.within(main, &["db", "template", "remove", name]).succeeds();
    assert_eq!((recipe.sum(recipe.place("three")), recipe.runs()), ("1".into(), 4));
}

#[test]
fn a_url_that_comes_later_than_the_worktree_reaches_its_files() {
    let Some(recipe) = Recipe::new() else { return };
    let (main, ready) = (&recipe.repo.path, recipe.repo.spot.join("ready"));
    recipe.configure(
        &format!("test -e ../ready || exit 1; {CREATE}"),
        "['schema/*.redis']\n[worktree]\nenv-file = '.env.local'",
    );
    recipe.repo.commit("env-file");
    recipe.approve(main);
    let written = |worktree: &Path| fs_err::read_to_string(worktree.join(".env.local")).unwrap_or_default();
    let variables = |worktree: &Path| recipe.within(worktree, &["env", "--format", "dotenv"]).succeeds().stdout;
    recipe.add(&["one"]).run().ended(1);
    recipe.add(&["two", "--data-from", "none"]).succeeds();
    recipe.add(&["three", "--data-from", "none", "--env-file", ".env.other"]).succeeds();
    fs_err::write(ready, "").unwrap();
    for (name, words) in [("one", &["up"] as &[&str]), ("two", &["exec", "true"])] {
        let worktree = recipe.place(name);
        assert_eq!(written(&worktree), "");
        recipe.within(&worktree, words).succeeds().says(&["wrote the variables to `.env.local`"]);
        assert_eq!(written(&worktree), variables(&worktree));
        let again = recipe.within(&worktree, words).succeeds().stderr;
        assert!(!again.contains(".env.local"), "{again}");
    }
    // An edited one is the user's, and a main worktree has none before its user makes one.
    let three = recipe.place("three");
    fs_err::write(three.join(".env.local"), "DATABASE_URL=mine\n").unwrap();
    recipe.within(&three, &["up"]).succeeds().says(&["`.env.local` still has a different DATABASE_URL"]);
    assert_eq!(written(&three), "DATABASE_URL=mine\n");
    recipe.within(main, &["up"]).succeeds();
    assert_eq!(written(main), "");
}

#[test]
fn inputs_that_match_no_file_keep_no_variables_from_a_shell() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.configure(CREATE, "['migrations/*.redis']\n[ports]\nweb = 23700");
    let note = "the service `db` has no data yet; no file of this worktree matches `migrations/*.redis`, an input of the service `db`; correct `inputs`";
    let printed = recipe.within(main, &["env"]).succeeds().says(&[note]).stdout;
    assert_eq!(printed, "export WEB_PORT=23700\nunset DATABASE_URL\n");
    let document = recipe.within(main, &["env", "--json"]).succeeds().says(&[note]).json();
    assert_eq!(document["services"][0]["state"], "absent");
}

#[test]
fn a_command_that_fails_costs_no_other_service_and_leaves_no_template() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    let shared = |create: &str, inputs: &str| {
        recipe.configure(create, inputs);
        let also = "[services.empty]\nengine = 'redis'\n[services.lost]\ntemplate = 'nowhere'\n";
        recipe.repo.write(".calve.toml", &(fs_err::read_to_string(main.join(".calve.toml")).unwrap() + also));
        recipe.repo.commit("services");
        recipe.approve(main);
    };
    shared("redis-cli -s \"$REDIS_SOCKET\" PING; exit 7", "[]");
    let failed = recipe.add(&["one"]).ends(1);
    failed
        .says(&["exit code 7", "the service `lost` has no data: there is no template `nowhere`"])
        .says(&["fix what the command reported; `calve up` runs it again"]);
    assert!(recipe.place("one").join(".git").exists());
    recipe.within(main, &["up"]).fails(1).says(&["started `empty`", "exit code 7", "there is no template `nowhere`"]);
    let states = recipe.within(main, &["status", "--json"]).succeeds().json();
    let states: Vec<_> = states["services"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["absent", "running", "absent"]);
    // It hangs, and the user interrupts it.
    shared("redis-cli -s \"$REDIS_SOCKET\" PING; echo x >> \"$RUNS\"; exec sleep 600", "[]");
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
    shared("date +%N > schema/now.redis; redis-cli -s \"$REDIS_SOCKET\" PING", "['schema']");
    let failed = recipe.within(main, &["up"]).fails(1).says(&["changes its own `inputs`"]);
    failed.says(&["in .calve.toml, remove from `inputs` the files that `create` writes"]);
    shared("echo '--' > schema/now.redis; redis-cli -s \"$REDIS_SOCKET\" PING", "['schema']");
    recipe.within(main, &["up"]).fails(1).says(&["there is no template `nowhere`"]);
    let lacks = "the service `lost` has no data";
    recipe.within(main, &["exec", "true"]).fails(1).says(&["there is no template `nowhere`"]);
    let env = recipe.within(main, &["env"]).succeeds().says(&[lacks]).stdout;
    assert_eq!(env.lines().filter(|line| line.starts_with("export ")).count(), 2, "{env}");
    assert!(env.ends_with("unset LOST_URL\n"), "{env}");
}

#[test]
fn a_command_that_does_not_connect_is_told_how() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.configure("true", "[]");
    recipe.approve(main);
    recipe
        .within(main, &["up"])
        .fails(1)
        .says(&["succeeded, but never connected to its server", "let it use `DATABASE_URL`"]);
}

#[test]
fn inputs_are_below_the_worktree() {
    let Some(recipe) = Recipe::new() else { return };
    let main = &recipe.repo.path;
    recipe.approve(main);
    for outside in ["['/etc/passwd']", "['../x']", "['schema/../../x']", "['']"] {
        recipe.configure(CREATE, outside);
        recipe.within(main, &["up"]).fails(1).says(&["`inputs` must be inside the worktree", "line 5"]);
    }
    fs_err::os::unix::fs::symlink("/etc", main.join("etc")).unwrap();
    fs_err::os::unix::fs::symlink("/etc/passwd", main.join("schema/9.redis")).unwrap();
    for linked in ["['etc']", "['etc/passwd']", "['etc/pass*']", "['schema']", "['schema/*.redis']", "['none*']"] {
        recipe.configure(CREATE, linked);
        recipe
            .within(main, &["up"])
            .fails(3)
            .says(&["no file of this worktree matches", "correct `inputs` in .calve.toml"]);
    }
    assert_eq!(recipe.runs(), 0);
    for (text, reason) in [
        ("create = 'x'", "need an `engine`"),
        ("inputs = ['x']", "need an `engine`"),
        ("engine = 'redis'\ninputs = ['x']", "files that `create` reads"),
        ("engine = 'redis'\ntemplate = 'x'", "`engine` (new)"),
    ] {
        recipe.repo.write(".calve.toml", &format!("[services.db]\n{text}\n"));
        recipe.within(main, &["up"]).fails(1).says(&[reason]);
    }
}

#[test]
fn a_plan_leaves_no_copies_of_its_inputs_behind() {
    if !require_root("an ordinary user") {
        return;
    }
    let Some(recipe) = Recipe::new() else { return };
    let repo = &recipe.repo;
    recipe.configure(CREATE, "[\"gen/*.redis\"]");
    repo.write(".gitignore", "gen/\n");
    repo.write("gen/1.redis", "RPUSH t 1\n");
    repo.commit("generated");
    write(&repo.spot.join("home/kept"), "");
    write(&repo.spot.join("tmp/kept"), "");
    rustix::fs::chmod(repo.join("gen"), 0o555.into()).unwrap();
    repo.give_away();
    let planned = recipe.add(&["-n", "x"]).env("TMPDIR", repo.spot.join("tmp"));
    planned.by_somebody_else(&Reachable::new()).succeeds().says(&["`db`"]);
    assert_eq!(names(repo.spot.join("tmp")), ["kept"]);
    let back = std::process::Command::new("chown").args(["-hR", "0:0"]).arg(&*repo.spot).status();
    assert!(back.unwrap().success());
}

#[test]
fn a_plan_names_the_template_that_the_run_takes() {
    let Some(recipe) = Recipe::new() else { return };
    let (main, repo) = (&recipe.repo.path, &recipe.repo);
    recipe.configure("echo x >> \"$RUNS\"; redis-cli -s \"$REDIS_SOCKET\" PING", "[\"schema\", \"gen/*.redis\"]");
    repo.write(".gitignore", "gen/\n");
    repo.write("gen/types.redis", "CREATE TYPE x AS (a int);\n");
    repo.write("more/shared.redis", "-- shared\n");
    fs_err::os::unix::fs::symlink("../more/shared.redis", main.join("schema/shared.redis")).unwrap();
    repo.commit("base");
    recipe.approve(main);
    recipe.within(main, &["up", "-q"]).succeeds();
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write("schema/2.redis", "-- of the commit\n");
    repo.write("more/shared.redis", "-- other\n");
    repo.write(".gitattributes", "schema/2.redis eol=crlf\n");
    repo.commit("other");
    repo.git(["switch", "-q", "main"]);
    let compare = |name: &str, words: &[&str]| {
        let of = |dry: &[&str]| {
            let receipt = recipe.add(&[name, "--json"]).args(words).args(dry).succeeds().json();
            let service = receipt["services"][0].clone();
            assert_eq!(service["no_data_because"], serde_json::Value::Null, "{name}: {receipt}");
            (service["template"].as_str().unwrap().to_owned(), service["data_from"].clone(), receipt["tracked"].clone())
        };
        let templates = recipe.templates();
        let planned = of(&["-n"]);
        assert_eq!(recipe.templates(), templates, "{name}: a plan makes none");
        let made = of(&[]);
        assert_eq!((&planned.0, &planned.1), (&made.0, &made.1), "{name}");
        assert_eq!((&planned.2["same"], &planned.2["other"]), (&made.2["cloned"], &made.2["written_by_git"]), "{name}");
        made.1.is_string()
    };
    assert!(compare("same", &[]), "the donor has data of this template");
    assert!(!compare("committed", &["--base", "other"]));
    // The donor has other inputs than its commit.
    repo.write("schema/1.redis", "-- changed\n");
    repo.write("schema/untracked.redis", "-- untracked\n");
    assert!(compare("clean", &[]));
    assert!(!compare("dirty", &["--dirty"]));
    repo.write("gen/types.redis", "CREATE TYPE y AS (a int);\n");
    assert!(!compare("generated", &[]));
    repo.write(".calve.local.toml", "[worktree]\nexclude = [\"gen/types.redis\"]\n");
    repo.write("gen/rest.redis", "-- rest\n");
    assert!(!compare("excluded", &[]));
}

#[test]
fn a_plan_reads_the_links_of_a_commit_at_once() {
    let Some(recipe) = Recipe::new() else { return };
    let (main, repo) = (&recipe.repo.path, &recipe.repo);
    recipe.configure(CREATE, "[\"**/*.redis\"]");
    recipe.approve(main);
    let reads = |branch: &str| {
        let trace = repo.spot.join(branch);
        recipe.add(&["-n", branch]).env("GIT_TRACE2_EVENT", &trace).succeeds();
        let trace = fs_err::read_to_string(trace).unwrap();
        trace.lines().filter(|line| line.contains(r#""event":"start""#) && line.contains(r#""cat-file""#)).count()
    };
    let link = |number: usize| {
        fs_err::os::unix::fs::symlink("../schema/1.redis", main.join(format!("src/{number}.redis"))).unwrap();
    };
    link(0);
    repo.commit("a link");
    let of_one = reads("one");
    (1..20).for_each(link);
    repo.commit("links");
    assert_eq!(reads("many"), of_one);
}
