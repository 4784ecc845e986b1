//! A project's hooks, and the user's approval; and what coding agents call.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use calve_testkit::{Tree, git_command, rounds};
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Calve, Reachable, calve};
use crate::spot::{Spot, eventually_nothing_left};
use crate::terminal::Terminal;

/// A repository with hooks.
struct Project {
    spot: Spot,
}

impl Project {
    fn with(configuration: &str) -> Self {
        let spot = Spot::anywhere();
        let tree = spot.tree("main");
        tree.file(".calve.toml", configuration.as_bytes())
            .file("file", b"")
            .file(".gitignore", b"log\nignored\n")
            .file("ignored/x", b"");
        let project = Self { spot };
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"],
        ] {
            assert!(git_command(project.main()).args(args).status().unwrap().success());
        }
        project
    }

    fn main(&self) -> PathBuf {
        self.spot.join("main")
    }

    fn worktree(&self, branch: &str) -> PathBuf {
        self.spot.join(format!("main.{branch}"))
    }

    /// A command line in the main worktree, with a home of its own.
    fn calve<const N: usize>(&self, args: [&str; N]) -> Calve {
        calve(args).within(self.main()).env("CALVE_HOME", self.spot.join("home"))
    }
}

const TELLING: &str = r#"[hooks]
post-add = '''
echo said by the hook
printf '%s\n' "$CALVE_HOOK" "$CALVE_WORKTREE" "$CALVE_MAIN_WORKTREE" "$CALVE_SOURCE" "$CALVE_BRANCH" "$CALVE_COMMIT" "$(pwd -P)" > log
'''
pre-remove = 'echo "$CALVE_HOOK $CALVE_BRANCH" > "$CALVE_MAIN_WORKTREE/log"'
"#;

#[test]
fn a_hook_that_is_not_approved_is_not_run_and_nothing_is_made() {
    let project = Project::with(TELLING);
    let refused = project.calve(["worktree", "add", "a"]).fails(3).says(&["post-add", "not approved"]);
    refused.says(&["`calve hook approve` shows it and approves it; `--yes` runs it once, `--no-hooks` goes without"]);
    assert!(!project.worktree("a").exists());
    let branches = git_command(project.main()).args(["branch", "--list", "a"]).output().unwrap();
    assert!(branches.stdout.is_empty(), "the branch was made");
    // Without them, it is made; and with `--yes` they are run, this once.
    project.calve(["worktree", "add", "--no-hooks", "a"]).succeeds();
    assert!(!project.worktree("a").join("log").exists());
    project.calve(["worktree", "add", "--yes", "b"]).succeeds();
    assert!(project.worktree("b").join("log").exists());
    project.calve(["worktree", "add", "c"]).fails(3);
    project.calve(["worktree", "remove", "-f", "b"]).fails(3);
    assert!(project.worktree("b").exists());
    project.calve(["worktree", "remove", "--no-hooks", "-f", "b"]).succeeds();
    assert!(!project.main().join("log").exists() && !project.worktree("b").exists());
    eventually_nothing_left(&project.spot);
}

#[test]
fn an_approved_hook_runs_in_the_new_worktree_with_its_variables() {
    let project = Project::with(TELLING);
    project.calve(["hook", "approve"]).fails(3).hints().says(&["echo said by the hook"]);
    project.calve(["hook", "approve", "--yes"]).succeeds().says(&["echo said by the hook", "post-add", "pre-remove"]);
    let added = project.calve(["worktree", "add", "a"]).succeeds();
    let new = project.worktree("a");
    assert_eq!(added.stdout, format!("{}\n", new.display()), "the path alone is on stdout");
    assert!(added.stderr.contains("said by the hook"), "{}", added.stderr);
    let log = fs_err::read_to_string(new.join("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let (main, new) = (project.main().display().to_string(), new.display().to_string());
    assert_eq!(lines[..5], ["post-add", &new, &main, &main, "a"]);
    assert_eq!((lines[5].len(), lines[6]), (40, &*new));
    // It holds for every worktree of the repository.
    calve(["worktree", "add", "b"])
        .within(project.worktree("a"))
        .env("CALVE_HOME", project.spot.join("home"))
        .succeeds();
    project.calve(["worktree", "remove", "-f", "a"]).succeeds();
    assert_eq!(fs_err::read_to_string(project.main().join("log")).unwrap(), "pre-remove a\n");
    eventually_nothing_left(&project.spot);
}

#[test]
fn hooks_in_a_bare_repository_are_told_of_no_main_worktree() {
    let tell = "printf %s \"${CALVE_MAIN_WORKTREE-none}\" > ../$CALVE_HOOK";
    let project = Project::with(&format!("[hooks]\npost-add = '{tell}'\npre-remove = '{tell}'\n"));
    let [bare, one, two] = ["bare", "one", "two"].map(|name| project.spot.join(name));
    for args in [
        &["clone", "-q", "--bare", ".", bare.to_str().unwrap()][..],
        &["--git-dir", bare.to_str().unwrap(), "worktree", "add", "-q", one.to_str().unwrap(), "main"],
        &["--git-dir", bare.to_str().unwrap(), "worktree", "add", "-q", "-b", "two", two.to_str().unwrap()],
    ] {
        assert!(git_command(project.main()).args(args).status().unwrap().success());
    }
    project.calve(["hook", "approve", "--yes"]).within(&one).succeeds();
    project.calve(["hook", "worktree-setup", "--from", "../one"]).within(&two).succeeds();
    project.calve(["worktree", "remove", "-f", "two"]).within(&one).succeeds();
    for hook in ["post-add", "pre-remove"] {
        assert_eq!(fs_err::read_to_string(project.spot.join(hook)).unwrap(), "none", "{hook}");
    }
}

#[test]
fn an_approval_is_for_exactly_that_text() {
    let project = Project::with("hooks.post-add = 'true'\n");
    project.calve(["hook", "approve", "--yes"]).succeeds();
    project.calve(["worktree", "add", "a"]).succeeds();
    Tree::new(project.main()).file(".calve.toml", b"hooks.post-add = 'true '\n");
    project.calve(["worktree", "add", "b"]).fails(3);
    Tree::new(project.main()).file(".calve.toml", b"hooks.post-add = 'true'\n");
    project.calve(["worktree", "add", "b"]).succeeds();
    project.calve(["hook", "approve", "--revoke"]).succeeds();
    project.calve(["worktree", "add", "c"]).fails(3);
    let approvals = project.spot.join("home/approved-hooks");
    fs_err::remove_dir_all(&approvals).unwrap();
    fs_err::write(&approvals, "").unwrap();
    let refused = project.calve(["hook", "approve", "--yes"]).fails(1);
    refused.says(&["check who may write there: approvals are kept under $CALVE_HOME"]);
    let homeless = project.calve(["hook", "approve", "--yes"]).env("CALVE_HOME", "relative").fails(1);
    homeless.says(&["set HOME, or CALVE_HOME to an absolute path"]);
}

#[test]
fn a_text_that_hides_a_part_of_itself_is_shown_or_refused() {
    let project =
        Project::with("hooks.post-add = \"true \\u2028 \\u202e \\u00ad \\U000e0041 'it\\\\s' # \u{e4}e\u{301}\"\n");
    let ran = project.calve(["hook", "approve"]).fails(3);
    ran.says(&["true \\u{2028} \\u{202e} \\u{ad} \\u{e0041} 'it\\s' # \u{e4}e\u{301}"]);
    Tree::new(project.main()).file(".calve.toml", b"hooks.post-add = \"a\\u0000b\"\n");
    for words in [["hook", "approve", "--yes"], ["worktree", "add", "a"]] {
        project.calve(words).fails(1).says(&["line 1, column 18: `post-add` has a NUL character in it"]).hints();
    }
}

#[test]
fn a_question_is_asked_on_a_terminal_and_no_is_the_answer_to_anything_but_yes() {
    let project = Project::with("hooks.post-add = \"touch log; printf '\\u001b[2J'\"\n");
    let on_terminal = |answer: &str, branch: &str| {
        let command = calve(["worktree", "add", branch]).within(project.main());
        let mut terminal = Terminal::new(&command.env("CALVE_HOME", project.spot.join("home")).command());
        let said = terminal.after("[y/N]", answer);
        let (code, rest) = terminal.end();
        (code, said + &rest)
    };
    // Ctrl-C is no consent either.
    for (answer, code) in [("\n", 3), ("\x03", 130)] {
        assert_eq!(on_terminal(answer, "a").0, Some(code));
    }
    let (code, said) = on_terminal("\n", "a");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("touch log"), "{said}");
    // What would clear the screen is shown, not done.
    assert!(said.contains("\\u{1b}[2J") && !said.contains("\u{1b}[2J"), "{said:?}");
    let (code, said) = on_terminal("y\n", "a");
    assert_eq!(code, Some(0), "{said}");
    assert!(project.worktree("a").join("log").exists());
    // It need not be asked again.
    project.calve(["worktree", "add", "b"]).succeeds();
}

#[test]
fn a_hook_that_fails_leaves_the_worktree_and_says_so() {
    let project = Project::with("hooks.post-add = 'echo broken >&2; exit 7'\n");
    let failed = project.calve(["worktree", "add", "--yes", "a"]).ends(1);
    assert!(project.worktree("a").join("ignored/x").exists());
    let failed = failed
        .says(&["broken", "post-add hook failed"])
        .says(&["the worktree is there; fix what the hook reported, and run its commands in it yourself"]);
    assert_eq!(failed.stdout, format!("{}\n", project.worktree("a").display()));
    Tree::new(project.worktree("a")).file(".calve.toml", b"hooks.pre-remove = 'exit 1'\n");
    let failed = project.calve(["worktree", "remove", "--yes", "-f", "a"]).fails(1);
    failed.says(&["the worktree is still there; fix what the hook reported, or use `--no-hooks`"]);
    assert!(project.worktree("a").exists());
    let failed = project.calve(["worktree", "add", "--yes", "--json", "b"]).fails(1).json();
    assert_eq!(failed["path"], project.worktree("b").to_str().unwrap());
}

#[test]
fn a_file_of_variables_without_a_directory_is_refused_before_anything_is_made() {
    let project = Project::with("hooks.post-add = 'touch ran'\n[ports]\nweb = 24017\n");
    for more in [None, Some("-n")] {
        let refused = project.calve(["worktree", "add", "--yes", "a", "--env-file", "no/dir"]).args(more);
        refused.fails(3).says(&[
            "no directory for `no/dir`",
            "name a file in a directory that it gets: one that git tracks, or that is carried along",
        ]);
        assert!(!project.worktree("a").exists());
    }
    project.calve(["worktree", "add", "--yes", "a", "--env-file", "ignored/env"]).succeeds();
    assert!(project.worktree("a").join("ignored/env").exists());
}

#[test]
fn a_hook_that_removes_its_own_worktree_fails_and_is_told() {
    // Also one that then fails.
    for text in
        ["mv \"$CALVE_WORKTREE\" ../moved", "git worktree remove --force .", "rm -rf \"$CALVE_WORKTREE\"; exit 7"]
    {
        let project = Project::with(&format!("hooks.post-add = '''{text}'''\n"));
        let failed = project.calve(["worktree", "add", "--yes", "a"]).fails(1);
        let failed = failed.says(&["the post-add hook removed or moved its own worktree", "main.a`"]);
        failed.says(&[
            "remove that command from the hook in .calve.toml; if the worktree was moved, run `git worktree repair NEW-PATH`, otherwise `calve worktree prune` forgets it",
        ]);
        project.calve(["worktree", "prune"]).succeeds();
        let agent = agent(&project, &["worktree-create", "--yes"], &create(&project.main(), "b"));
        assert_eq!((agent.0, &*agent.1), (Some(1), ""), "{}", agent.2);
        assert!(agent.2.contains("removed or moved its own worktree"), "{}", agent.2);
        assert!(!project.worktree("a").exists() && !project.worktree("b").exists());
    }
}

/// Runs `calve hook WHAT` with that on stdin, which stays open, as some agents leave it.
fn agent(project: &Project, what: &[&str], question: &str) -> (Option<i32>, String, String) {
    ask(calve(["hook"]).args(what).within("/").env("CALVE_HOME", project.spot.join("home")), question)
}

fn ask(command: Calve, question: &str) -> (Option<i32>, String, String) {
    let mut command = command.command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(question.as_bytes()).unwrap();
    if question.trim().is_empty() {
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        return said(output);
    }
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    said(output)
}

fn said(output: std::process::Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn create(cwd: &Path, name: &str) -> String {
    let cwd = cwd.display();
    format!(
        r#"{{"session_id":"abc","transcript_path":"/t.jsonl","cwd":"{cwd}","hook_event_name":"WorktreeCreate","name":"{name}"}}"#
    )
}

#[test]
fn an_agent_gets_a_worktree_and_gives_it_back() {
    let project = Project::with("");
    let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&project.main(), "agent-1f"));
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("agent-1f").display())), "{stderr}");
    assert!(project.worktree("agent-1f").join("ignored/x").exists());
    // Asked again, from inside: the same one.
    let (code, stdout, _) = agent(&project, &["worktree-create"], &create(&project.worktree("agent-1f"), "agent-1f"));
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("agent-1f").display())));
    let remove = format!(
        r#"{{"cwd":"{0}","hook_event_name":"WorktreeRemove","worktree_path":"{0}"}}"#,
        project.worktree("agent-1f").display()
    );
    // With work in it, it stays.
    fs_err::write(project.worktree("agent-1f").join("work"), "").unwrap();
    let (code, stdout, stderr) = agent(&project, &["worktree-remove"], &remove);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("uncommitted changes"), "{stderr}");
    fs_err::remove_file(project.worktree("agent-1f").join("work")).unwrap();
    fs_err::write(project.worktree("agent-1f").join("ignored/notes"), "notes\n").unwrap();
    let (code, stdout, stderr) = agent(&project, &["worktree-remove"], &remove);
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("agent-1f").display())), "{stderr}");
    assert!(stderr.contains("`ignored/notes`") && stderr.contains("7 days"), "{stderr}");
    assert!(!project.worktree("agent-1f").exists());
    agent(&project, &["worktree-create"], &create(&project.main(), "agent-1f"));
    fs_err::write(project.worktree("agent-1f").join("work"), "").unwrap();
    let (code, stdout, stderr) = agent(&project, &["worktree-remove", "--force"], &remove);
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("agent-1f").display())), "{stderr}");
    assert!(!project.worktree("agent-1f").exists());
    eventually_nothing_left(&project.spot);
}

#[test]
fn who_asks_at_the_same_time_gets_the_same_worktree() {
    let project = Project::with("[hooks]\npost-add = \"sleep 0.3; echo once >>../ran\"\n");
    for round in 0..rounds(20) {
        let name = format!("agent-{round}");
        // The lock file of a killed process is no obstacle, and is removed.
        fs_err::write(project.main().join(".git/calve-agent-0123456789abcdef.lock"), "").unwrap();
        let question = create(&project.main(), &name);
        let ask = || agent(&project, &["worktree-create", "--yes"], &question);
        let answers = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        for (code, stdout, stderr) in answers {
            assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree(&name).display())), "{stderr}");
        }
        let ran = fs_err::read_to_string(project.worktree(&name).join("../ran")).unwrap();
        assert_eq!(ran.lines().count(), round + 1, "the hook runs once for each worktree");
    }
    let left = fs_err::read_dir(project.main().join(".git")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("calve-agent-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_lock_that_another_user_left_keeps_nobody_from_a_branch() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let project = Project::with("[hooks]\npost-add = \"stat -c %a ../main/.git/calve-agent-*\"\n");
    let main = project.main();
    let shell = |line: &str| {
        assert!(
            std::process::Command::new("sh")
                .args(["-ec", line])
                .current_dir(&*project.spot)
                .status()
                .unwrap()
                .success()
        )
    };
    shell("chmod 755 . && mkdir home theirs && chmod 777 . theirs");
    // His files are the repository's, as those of a group are.
    let agent = |by_somebody_else: bool, name: &str| {
        let home = if by_somebody_else { "theirs" } else { "home" };
        let mut command =
            calve(["hook", "worktree-create", "--yes"]).within("/").env("CALVE_HOME", project.spot.join(home));
        for (name, value) in
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")]
        {
            command = command.env(name, value);
        }
        let command = if by_somebody_else { command.by_somebody_else(&reachable) } else { command };
        ask(command, &create(&main, name))
    };
    let (code, _, stderr) = agent(false, "private");
    assert!(code == Some(0) && stderr.contains("\n600\n"), "{stderr}");
    shell("git -C main config core.sharedRepository 0666 && chmod -R a+rwX main && chmod 777 main/.git/worktrees");
    let (code, _, stderr) = agent(false, "shared");
    assert!(code == Some(0) && stderr.contains("\n666\n"), "{stderr}");
    // One of a killed process, as it is made now, and as it was before.
    for (name, mode) in [("a", 0o666), ("b", 0o600)] {
        let id = blake3::hash(name.as_bytes()).to_hex();
        let lock = main.join(format!(".git/calve-agent-{}.lock", &id[..16]));
        fs_err::write(&lock, "").unwrap();
        shell("chmod -R a+rwX main");
        fs_err::set_permissions(&lock, std::fs::Permissions::from_mode(mode)).unwrap();
        let (code, stdout, stderr) = agent(true, name);
        assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree(name).display())), "{stderr}");
    }
}

/// An agent that asks for a branch, and is refused.
#[track_caller]
fn refused(project: &Project, cwd: &Path, name: &str) -> String {
    let (code, stdout, stderr) = agent(project, &["worktree-create", "--yes"], &create(cwd, name));
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    stderr
}

#[test]
fn an_agent_never_gets_the_users_own_worktrees() {
    let project = Project::with("");
    let said = refused(&project, &project.main(), "main");
    assert!(said.contains(&format!("`{}`", project.main().display())), "{said}");
    assert!(said.contains("ask for another name: an agent gets a worktree of its own"), "{said}");
    project.calve(["worktree", "add", "mine"]).succeeds();
    let said = refused(&project, &project.main(), "mine");
    assert!(said.contains("ask for another name; if an earlier attempt left `"), "{said}");
    let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&project.main(), "theirs"));
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("theirs").display())), "{stderr}");
    refused(&project, &project.worktree("theirs"), "main");
    // Something else that has come to the place of an agent's worktree is not one.
    fs_err::rename(project.worktree("theirs"), project.spot.join("elsewhere")).unwrap();
    assert!(git_command(&project.spot).args(["clone", "-q", "main", "main.theirs"]).status().unwrap().success());
    refused(&project, &project.main(), "theirs");
}

fn branches(project: &Project) -> String {
    let listed = git_command(project.main()).args(["branch", "--format=%(refname:short)"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn an_agent_gets_no_worktree_of_which_the_hook_failed() {
    let project = Project::with("hooks.post-add = 'echo x >ignored/made; exit 7'\n");
    let ask = create(&project.main(), "a").replace("{\"session_id\"", "{\"base_commit\":\"HEAD\",\"session_id\"");
    for _ in 0..2 {
        let (code, stdout, stderr) = agent(&project, &["worktree-create", "--yes"], &ask);
        assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
        assert!(stderr.contains("post-add hook failed") && stderr.contains("removed again"), "{stderr}");
        assert!(stderr.contains("`ignored/made`") && stderr.contains("7 days"), "{stderr}");
        assert!(!project.worktree("a").exists());
        assert_eq!(branches(&project), "main\n");
    }
    // A branch that was there stays.
    assert!(git_command(project.main()).args(["branch", "b"]).status().unwrap().success());
    refused(&project, &project.main(), "b");
    assert_eq!(branches(&project), "b\nmain\n");
    Tree::new(project.main()).file(".calve.toml", b"hooks.post-add = 'true'\n");
    let (code, stdout, stderr) = agent(&project, &["worktree-create", "--yes"], &ask);
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("a").display())), "{stderr}");
    eventually_nothing_left(&project.spot);
}

#[test]
fn an_agents_worktree_that_cannot_be_marked_as_finished_is_taken_away() {
    let project = Project::with("hooks.post-add = 'mkdir \"$(git rev-parse --git-dir)/calve-agent\"'\n");
    let ask = create(&project.main(), "a");
    let (code, stdout, stderr) = agent(&project, &["worktree-create", "--yes"], &ask);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("/calve-agent`: Is a directory") && stderr.contains("removed again"), "{stderr}");
    assert!(!project.worktree("a").exists());
    assert_eq!(branches(&project), "main\n");
    let (code, stdout, stderr) = agent(&project, &["worktree-create", "--no-hooks"], &ask);
    assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("a").display())), "{stderr}");
}

#[test]
fn what_an_agents_hook_left_half_done_is_kept_and_never_handed_over() {
    // Work that exists nowhere else, and an end without warning, which the hook brings on the calve that runs it.
    for (left, ended) in [("echo x >work; exit 7", Some(1)), ("kill -9 $PPID", None)] {
        let project = Project::with(&format!("hooks.post-add = '{left}'\n"));
        let (code, stdout, stderr) = agent(&project, &["worktree-create", "--yes"], &create(&project.main(), "a"));
        assert_eq!((code, &*stdout), (ended, ""), "{stderr}");
        assert!(project.worktree("a").exists());
        for _ in 0..2 {
            let said = refused(&project, &project.main(), "a");
            assert!(said.contains("calve worktree remove"), "{said}");
        }
        Tree::new(project.main()).file(".calve.toml", b"");
        project.calve(["worktree", "remove", "-f", "a"]).succeeds();
        let (code, ..) = agent(&project, &["worktree-create"], &create(&project.main(), "a"));
        assert_eq!(code, Some(0));
    }
}

#[test]
fn an_agents_name_becomes_a_branch() {
    let project = Project::with("");
    let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&project.main(), "fix: the login"));
    assert_eq!(code, Some(0), "{stderr}");
    let branch = git_command(stdout.trim_end()).args(["branch", "--show-current"]).output().unwrap();
    assert_eq!(branch.stdout, b"fix--the-login\n");
    let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&project.main(), "fix @{u} (a..b)?"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.ends_with("fix-@-u}--a-b\n"), "{stdout}");
    // Whatever git accepts names the branch that is there.
    for name in ["fix#12", "a=b&c!%(d),'e'", "fix-🎉", "ends-"] {
        assert!(git_command(project.main()).args(["branch", name]).status().unwrap().success());
        agent(&project, &["worktree-create"], &create(&project.main(), name));
        let listed = git_command(project.main()).args(["worktree", "list", "--porcelain"]).output().unwrap().stdout;
        assert!(String::from_utf8(listed).unwrap().contains(&format!("branch refs/heads/{name}\n")), "{name}");
    }
}

/// Waits until a file is there.
fn appears(path: &Path) {
    for _ in 0..600 {
        if path.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} is not made", path.display());
}

#[test]
fn an_agent_that_waits_for_another_sees_no_progress() {
    let project = Project::with("hooks.post-add = 'touch ignored/begun; sleep 2'\n");
    let add = || project.calve(["worktree", "add", "--for-agent=claude", "--yes", "a"]);
    let first = add().start();
    appears(&project.worktree("a").join("ignored/begun"));
    let (code, said) = Terminal::new(&add().command()).end();
    first.wait().ended(0);
    assert_eq!((code, said), (Some(0), format!("{}\r\n", project.worktree("a").display())));
}

#[test]
fn an_agents_worktree_that_is_interrupted_is_taken_away() {
    let project = Project::with("hooks.post-add = 'echo x >ignored/begun; exec sleep 600'\n");
    let words = ["hook", "worktree-create", "--yes"];
    let mut command = calve(words).within("/").env("CALVE_HOME", project.spot.join("home")).command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(create(&project.main(), "a").as_bytes()).unwrap();
    appears(&project.worktree("a").join("ignored/begun"));
    // The one process that the agent knows of.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, stdout, stderr) = said(child.wait_with_output().unwrap());
    assert!(code.is_some_and(|code| code != 0) && stdout.is_empty(), "{code:?} {stderr}");
    assert!(stderr.contains("removed again"), "{stderr}");
    assert!(!project.worktree("a").exists());
    assert_eq!(branches(&project), "main\n");
    eventually_nothing_left(&project.spot);
}

#[test]
fn an_agents_name_is_a_branch_or_is_refused() {
    let project = Project::with("");
    let git = |args: &[&str]| assert!(git_command(project.main()).args(args).status().unwrap().success(), "{args:?}");
    git(&["tag", "v2.0"]);
    let said = refused(&project, &project.main(), "v2.0");
    assert!(said.contains("a tag or a commit"), "{said}");
    assert!(said.contains("ask for another name, with that one as the base"), "{said}");
    let question = create(&project.main(), "v2.0").replace("{\"session_id\"", "{\"base_ref\":\"HEAD\",\"session_id\"");
    assert_eq!(agent(&project, &["worktree-create"], &question).0, Some(0));
    // The branch of a remote, twice.
    git(&["clone", "-q", ".", "../other"]);
    git(&["-C", "../other", "branch", "feature"]);
    git(&["remote", "add", "origin", "../other"]);
    git(&["fetch", "-q", "origin"]);
    for _ in 0..2 {
        let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&project.main(), "origin/feature"));
        assert_eq!((code, stdout), (Some(0), format!("{}\n", project.worktree("feature").display())), "{stderr}");
    }
}

#[test]
fn what_is_saved_while_a_hook_runs_is_not_removed() {
    let project = Project::with("hooks.pre-remove = 'echo work >unsaved'\n");
    project.calve(["worktree", "add", "a"]).succeeds();
    project
        .calve(["worktree", "remove", "--yes", "a"])
        .fails(1)
        .says(&["commit or stash them, or pass `-f` to lose them"])
        .says(&["`unsaved`"]);
    assert!(project.worktree("a").join("unsaved").exists());
    project.calve(["worktree", "remove", "--yes", "-f", "a"]).succeeds();
    assert!(!project.worktree("a").exists());
}

#[test]
fn a_hook_that_fails_is_told_though_it_removed_the_worktree() {
    let project = Project::with("hooks.pre-remove = 'rm -rf \"$CALVE_WORKTREE\"; exit 7'\n");
    project.calve(["worktree", "add", "a"]).succeeds();
    let failed = project.calve(["worktree", "remove", "--yes", "a"]).fails(1);
    failed.says(&["the pre-remove hook failed in `", "/main.a`: exit status: 7"]);
}

#[test]
fn a_process_that_gits_hook_leaves_behind_is_not_waited_for() {
    let project = Project::with("");
    let hook = project.main().join(".git/hooks/post-checkout");
    fs_err::write(&hook, "#!/bin/sh\necho said\nsleep 600 &\necho $! >ignored/pid\n").unwrap();
    fs_err::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.calve(["worktree", "add", "a"]).succeeds().says(&["said"]);
    let pid = fs_err::read_to_string(project.worktree("a").join("ignored/pid")).unwrap().trim_end().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn what_is_no_question_of_an_agent_is_refused() {
    let project = Project::with("hooks.post-add = 'true'\n");
    let main = project.main();
    for (what, question) in [
        ("worktree-create", ""),
        ("worktree-create", "no json\n"),
        ("worktree-create", "[1]"),
        ("worktree-create", r#"{"cwd":"/"}"#),
        ("worktree-create", r#"{"name":"---"}"#),
        ("worktree-create", r#"{"name":7}"#),
        ("worktree-remove", r#"{"worktree_path":"relative"}"#),
        ("worktree-remove", r#"{}"#),
    ] {
        let (code, stdout, stderr) = agent(&project, &[what], question);
        assert_eq!((code, &*stdout), (Some(2), ""), "{question}: {stderr}");
        assert!(stderr.contains("hint: "), "{question}: {stderr}");
    }
    // The project's hooks are asked about here as everywhere.
    let (code, stdout, stderr) = agent(&project, &["worktree-create"], &create(&main, "a"));
    assert_eq!((code, &*stdout), (Some(3), ""), "{stderr}");
    let (code, ..) = agent(&project, &["worktree-create", "--no-hooks"], &create(&main, "a"));
    assert_eq!(code, Some(0));
    let (code, stdout, _) = agent(&project, &["worktree-create"], &create(Path::new("/"), "a"));
    assert_eq!((code, &*stdout), (Some(1), ""));
    let (code, _, stderr) = agent(&project, &["worktree-create"], &create(Path::new("/nowhere"), "a"));
    assert!(code == Some(1) && stderr.contains("there is no directory `/nowhere`"), "{stderr}");
}
