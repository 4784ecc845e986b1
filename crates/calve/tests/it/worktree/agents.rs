//! Setting agents up, the worktrees that they make, and going to one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_testkit::{Tree, require_program, rounds};
use serde_json::Value;

use super::ports::{number, with_ports};
use super::repo::{Repo, acl, git_at as git, with_environment};
use super::services::{POSTGRES, Shop};
use crate::program::{Calve, PROGRAM, calve};
use crate::terminal::Terminal;

const AGENTS: [&str; 4] = ["claude", "codex", "cursor", "opencode"];

fn hook(repo: &Repo, words: &[&str]) -> Calve {
    with_environment(calve(["hook"])).args(words).within(&repo.path).env("CALVE_HOME", repo.spot.join("home"))
}

/// The untracked files of the worktree, and their contents.
fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let listed = git(root, ["ls-files", "--others", "--exclude-standard"]);
    let one = |name: &str| (PathBuf::from(name), fs_err::read_to_string(root.join(name)).unwrap());
    listed.lines().map(one).collect()
}

fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs_err::read(path.as_ref()).unwrap()).unwrap()
}

#[test]
fn an_agent_is_set_up_after_it_was_shown_and_exactly_that_is_taken_away() {
    let repo = Repo::anywhere();
    let root = repo.path.clone();
    for agent in AGENTS {
        // It is shown, and not written without consent.
        let refused = hook(&repo, &["install", agent]).fails(3).hints();
        refused.says(&["+", "calve", "mcp"]);
        hook(&repo, &["install", agent, "-n"]).succeeds();
        assert!(files(&root).is_empty(), "{agent}");
        hook(&repo, &["install", agent, "--yes"]).succeeds();
        let written = files(&root);
        assert!(written.iter().any(|(_, text)| text.contains("mcp")), "{agent}: {written:?}");
        hook(&repo, &["install", agent]).succeeds().says(&["up to date"]);
        assert_eq!(files(&root), written);
        hook(&repo, &["uninstall", agent, "-y"]).succeeds();
        assert!(files(&root).is_empty(), "{agent}");
        assert!(![".claude", ".codex", ".cursor"].iter().any(|name| root.join(name).exists()), "{agent}");
    }
}

#[test]
fn what_else_is_in_the_files_of_an_agent_stays() {
    let repo = Repo::anywhere();
    let before = [
        (".claude/settings.json", "{\n\t\"model\": \"x\",\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}"),
        (".codex/config.toml", "# mine\nmodel = \"x\" # too\n"),
        (".mcp.json", "{\n  \"mcpServers\": {\n    \"other\": {}\n  }\n}\n"),
        ("opencode.json", "{\n  // mine\n  \"mcp\": {\n    \"servers\": {\n      \"other\": {},\n    },\n  },\n}\n"),
    ];
    before.iter().for_each(|(path, text)| repo.write(path, text));
    AGENTS.iter().for_each(|agent| drop(hook(&repo, &["install", agent, "--yes"]).succeeds()));
    let settings = json(repo.join(".claude/settings.json"));
    let create = &settings["hooks"]["WorktreeCreate"][0]["hooks"][0];
    assert_eq!(
        (&create["type"], &create["command"]),
        (&"command".into(), &"calve hook worktree-create --maker claude".into())
    );
    assert!(settings["hooks"]["Stop"].is_array() && settings["model"] == "x");
    assert_eq!(json(repo.join(".mcp.json"))["mcpServers"]["calve"]["command"], "calve");
    // As version 2 has it, because the file is of version 2.
    let opencode = fs_err::read_to_string(repo.join("opencode.json")).unwrap();
    assert!(opencode.contains("\n      \"calve\": {\n"), "{opencode}");
    assert!(fs_err::read_to_string(repo.join(".codex/config.toml")).unwrap().starts_with(before[1].1));
    AGENTS.iter().for_each(|agent| drop(hook(&repo, &["uninstall", agent, "--yes"]).succeeds()));
    let expected: Vec<_> = before.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    assert_eq!(files(&repo.path), expected);
}

/// Empty objects and tables do not tell whose they are.
#[test]
fn the_files_of_a_commit_are_back_when_an_agent_was_taken_away() {
    let before = [
        (".claude/settings.json", ["{}\n", "{\"hooks\": {}}", "{\n  \"hooks\": {},\n  \"a\": 1\n}\n"]),
        (".codex/config.toml", ["# mine\n[mcp_servers]\n", "[mcp_servers]\n", ""]),
        ("opencode.jsonc", ["{\"mcp\":{/*c*/}}", "{}\n", "{\n  \"mcp\": {}\n}\n"]),
    ];
    for number in 0..3 {
        let repo = Repo::anywhere();
        before.iter().for_each(|(path, texts)| repo.write(path, texts[number]));
        repo.commit("agents");
        AGENTS.iter().for_each(|agent| drop(hook(&repo, &["install", agent, "--yes"]).succeeds()));
        AGENTS.iter().for_each(|agent| drop(hook(&repo, &["uninstall", agent, "--yes"]).succeeds()));
        for (path, texts) in before {
            assert_eq!(fs_err::read_to_string(repo.join(path)).unwrap(), texts[number], "{path}");
        }
    }
    // What begins empty stays so, whatever the commit has.
    let repo = Repo::anywhere();
    repo.write(".codex/config.toml", "# mine\n[mcp_servers]\n");
    repo.write("opencode.jsonc", "{\n  \"mcp\": {\n    /*c*/\n  }\n}\n");
    let expected = files(&repo.path);
    for agent in ["codex", "opencode"] {
        hook(&repo, &["install", agent, "--yes"]).succeeds();
        hook(&repo, &["uninstall", agent, "--yes"]).succeeds();
    }
    assert_eq!(files(&repo.path), expected);
}

#[test]
fn the_files_of_an_agent_stay_open_to_whom_they_were() {
    if !require_program("setfacl") {
        return;
    }
    let repo = Repo::anywhere();
    let tree = Tree::new(&repo.path).file(".mcp.json", "{}").mode(".mcp.json", 0o600).acl(".mcp.json", "u:1001:r");
    let tree =
        tree.file(".claude/settings.json", "{}").mode(".claude/settings.json", 0o640).acl(".claude", "d:u:1001:rw");
    let before = [".mcp.json", ".claude/settings.json"].map(|name| acl(tree.path().join(name)));
    hook(&repo, &["install", "claude", "--yes"]).succeeds();
    for (name, before) in [".mcp.json", ".claude/settings.json"].into_iter().zip(before) {
        assert_ne!(fs_err::read_to_string(repo.join(name)).unwrap(), "{}", "{name}");
        assert_eq!(acl(repo.join(name)), before, "{name}");
    }
}

#[test]
fn files_with_mistakes_links_or_other_values_are_left_alone_and_told() {
    let repo = Repo::anywhere();
    fs_err::create_dir_all(repo.join(".cursor")).unwrap();
    repo.write("elsewhere.json", "{}");
    for (text, word) in [
        ("{\n  \"mcpServers\": {}\n  \"a\": 1\n}\n", "mistake"),
        ("{\"mcpServers\": ", "mistake"),
        ("{\"mcpServers\": {\"calve\": {\"command\": \"/opt/calve\"}}}", "a different value"),
        ("", "not a plain text file"),
    ] {
        let path = repo.join(".cursor/mcp.json");
        if text.is_empty() {
            fs_err::remove_file(&path).unwrap();
            fs_err::os::unix::fs::symlink("../elsewhere.json", &path).unwrap();
        } else {
            fs_err::write(&path, text).unwrap();
        }
        for command in ["install", "uninstall"] {
            let refused = hook(&repo, &[command, "cursor", "--yes"]).fails(1).hints();
            refused.says(&[".cursor/mcp.json", word]);
            // The other file has no fault.
            assert_eq!(repo.join(".cursor/worktrees.json").exists(), command == "install", "{text}");
        }
        let expected = if text.is_empty() { "{}" } else { text };
        assert_eq!(fs_err::read_to_string(&path).unwrap(), expected);
    }
    repo.write(".codex/config.toml", "mcp_servers = { other = {} }\n");
    hook(&repo, &["install", "codex", "--yes"]).fails(1).says(&["config.toml", "a different value"]);
    hook(&repo, &["install", "vim"]).fails(2);
    hook(&repo, &["install", "claude", "/"]).fails(1).hints();
}

#[test]
fn other_names_of_files_and_keys_of_an_agent_are_used_where_they_are_there() {
    let repo = Repo::anywhere();
    let text = "{\n  \"model\": \"x\"\n}\n";
    repo.write("opencode.jsonc", text);
    hook(&repo, &["install", "opencode", "--yes"]).succeeds();
    let written = json(repo.join("opencode.jsonc"));
    assert_eq!((&written["mcp"]["calve"]["command"][1], &written["model"]), (&"mcp".into(), &"x".into()));
    assert!(!repo.join("opencode.json").exists());
    hook(&repo, &["uninstall", "opencode", "--yes"]).succeeds();
    assert_eq!(fs_err::read_to_string(repo.join("opencode.jsonc")).unwrap(), text);
    let text = "{\n  // mine\n  \"model\": \"x\", // too\n}\n";
    repo.write("opencode.jsonc", text);
    hook(&repo, &["install", "opencode", "--yes"]).succeeds();
    let written = fs_err::read_to_string(repo.join("opencode.jsonc")).unwrap();
    assert!(
        written.starts_with("{\n  // mine\n  \"model\": \"x\", // too\n") && written.contains("\"calve\""),
        "{written}"
    );
    repo.write("opencode.jsonc", &written.replace("\"local\",", "\"local\", // mine\n"));
    hook(&repo, &["uninstall", "opencode", "--yes"]).fails(1).hints().says(&["opencode.jsonc", "comments"]);
    repo.write("opencode.jsonc", &written);
    hook(&repo, &["uninstall", "opencode", "--yes"]).succeeds();
    assert_eq!(fs_err::read_to_string(repo.join("opencode.jsonc")).unwrap(), text);
    assert!(!repo.join("opencode.json").exists());
    // Cursor's setup for all systems is not hidden by one for Unix.
    let text = "{\"setup-worktree\": [\"npm ci\"]}\n";
    repo.write(".cursor/worktrees.json", text);
    let refused = hook(&repo, &["install", "cursor", "--yes"]).fails(1).hints();
    refused.says(&["worktrees.json", "`setup-worktree` already has a different value"]);
    // Nothing of Calve's is there.
    hook(&repo, &["uninstall", "cursor", "--yes"]).succeeds();
    assert_eq!(fs_err::read_to_string(repo.join(".cursor/worktrees.json")).unwrap(), text);
}

/// Asks for a worktree as an agent does. Returns the exit code and the output.
fn ask(repo: &Repo, cwd: &Path, name: &str, maker: &str) -> (Option<i32>, String, String) {
    let words = ["worktree-create", "--maker", maker];
    let mut command = hook(repo, &words).command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let question = serde_json::json!({"cwd": cwd.to_str(), "name": name}).to_string();
    child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_worktree_of_an_agent_begins_at_the_callers_head_and_is_listed_with_its_maker() {
    let repo = Repo::anywhere();
    let (code, first, said) = ask(&repo, &repo.path, "first", "claude");
    assert_eq!(code, Some(0), "{said}");
    git(&first, ["commit", "--allow-empty", "-q", "-m", "ahead"]);
    let (code, second, said) = ask(&repo, Path::new(&first), "second", "codex");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(git(&second, ["rev-parse", "HEAD"]), git(&first, ["rev-parse", "HEAD"]));
    assert_ne!(git(&second, ["rev-parse", "HEAD"]), repo.git(["rev-parse", "HEAD"]));
    repo.calve(["add", "mine"]).succeeds();
    // By itself, where it puts its own.
    let own = repo.spot.join(".codex/worktrees/1f/proj");
    repo.git(["worktree", "add", "-q", "-b", "own", own.to_str().unwrap()]);
    let listed = repo.calve(["list"]).succeeds();
    let line = |branch: &str| listed.stdout.lines().find(|line| line.contains(branch)).unwrap().to_owned();
    assert!(line("first").contains("by claude") && line("second").contains("by codex"), "{}", listed.stdout);
    assert!(line("own").contains("by codex") && !line("mine").contains("by "), "{}", listed.stdout);
    // Another agent does not get it.
    let (code, path, said) = ask(&repo, &repo.path, "first", "codex");
    assert_eq!((code, &*path), (Some(1), ""), "{said}");
    assert_eq!(ask(&repo, &repo.path, "first", "claude").1, first);
    let mut document = repo.calve(["list", "--json"]).succeeds().json();
    let all = document["worktrees"].as_array_mut().unwrap();
    all.retain(|one| one["branch"] == "second");
    assert_eq!(all[0]["maker"], "codex");
    hook(&repo, &["worktree-create", "--maker", "a b"]).fails(2);
}

#[test]
fn two_agents_that_create_one_branch_at_once_do_not_share_it() {
    let repo = Repo::anywhere();
    for round in 0..3 {
        let name = format!("topic-{round}");
        let both = std::thread::scope(|scope| {
            let (repo, name) = (&repo, &name);
            let one = scope.spawn(move || ask(repo, &repo.path, name, "claude"));
            let other = ask(repo, &repo.path, name, "codex");
            [one.join().unwrap(), other]
        });
        let made: Vec<_> = both.iter().filter(|(code, ..)| *code == Some(0)).collect();
        assert_eq!(made.len(), 1, "{both:?}");
        assert!(Path::new(&made[0].1).join("node_modules/dep/index.js").exists());
        let refused = both.iter().find(|(code, ..)| *code == Some(1)).unwrap();
        assert!(refused.1.is_empty() && refused.2.contains("hint: "), "{both:?}");
        assert_eq!(git(&made[0].1, ["branch", "--show-current"]).trim_end(), name);
    }
}

#[test]
fn a_worktree_that_an_agent_made_with_git_is_completed() {
    let repo = with_ports(&format!("web = {}", number(240)));
    repo.write("node_modules/.bin/tool", &format!("#!{}/node_modules/run\n", repo.path.display()));
    let path = repo.spot.join(".cursor/worktrees/proj/1f");
    repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    fs_err::write(path.join(".env"), "MINE=1\n").unwrap();
    let home = repo.spot.join("home");
    let setup = |within: &Path| {
        let main = repo.path.to_str().unwrap();
        let words = ["hook", "worktree-setup", "--maker", "cursor", "--from", main];
        with_environment(calve(words)).within(within).env("CALVE_HOME", &home)
    };
    let ran = setup(&path).succeeds();
    assert_eq!(ran.stdout.trim_end(), path.to_str().unwrap(), "{}", ran.stderr);
    assert!(path.join("node_modules/dep/index.js").exists() && path.join("target/debug/out.o").exists());
    // Existing files stay.
    assert_eq!(fs_err::read_to_string(path.join(".env")).unwrap(), "MINE=1\n");
    assert_eq!(git(&path, ["status", "--porcelain"]), "");
    let tool = fs_err::read_to_string(path.join("node_modules/.bin/tool")).unwrap();
    assert!(tool.starts_with(&format!("#!{}/", path.display())), "{tool}");
    assert!(ran.stderr.contains("WEB_PORT="), "{}", ran.stderr);
    let listed = repo.calve(["list"]).env("CALVE_HOME", &home).succeeds();
    assert!(listed.stdout.lines().any(|line| line.contains("by cursor") && line.contains("web:")), "{}", listed.stdout);
    // Once more changes nothing; in the main worktree it makes no sense.
    setup(&path).succeeds();
    setup(&repo.path).fails(1).hints();
}

#[test]
fn a_setup_that_fails_says_what_was_carried() {
    let repo = Repo::anywhere();
    let path = repo.spot.join(".cursor/worktrees/proj/3f");
    repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    // The donor's id cannot be read.
    fs_err::create_dir(repo.join(".git/calve-services")).unwrap();
    let setup = with_environment(calve(["hook", "worktree-setup", "--maker", "cursor"])).within(&path);
    let failed = setup.env("CALVE_HOME", repo.spot.join("home")).fails(1).hints();
    failed.says(&["carried 3 entries that git ignores from `", "calve-services`: Is a directory"]);
}

#[test]
fn two_setups_at_once_both_succeed() {
    let repo = with_ports(&format!("web = {}", number(230)));
    (0..2000).for_each(|number| repo.write(&format!("node_modules/many/{number}"), "x"));
    for round in 0..rounds(50) {
        let path = repo.spot.join(format!("two-{round}"));
        repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
        let setup = || {
            let line = calve(["hook", "worktree-setup", "--maker", "cursor"]);
            with_environment(line).within(&path).env("CALVE_HOME", repo.spot.join("home")).start()
        };
        for running in [setup(), setup()] {
            running.wait().ended(0);
        }
        assert!(path.join("node_modules/many/1999").exists());
    }
}

#[test]
fn a_setup_that_was_killed_is_finished_and_nothing_goes_through_a_link() {
    let repo = with_ports(&format!("web = {}", number(220)));
    repo.write("packages/tracked", "");
    repo.commit("packages");
    repo.write("packages/.env.local", "KEY=1\n");
    let home = repo.spot.join("home");
    let within = |at: &Path, words: &[&str]| with_environment(calve(words)).within(at).env("CALVE_HOME", &home);
    let printed = within(&repo.path, &["env", "--format", "dotenv"]).succeeds().stdout;
    repo.write(".env.main", &printed);
    let path = repo.spot.join(".cursor/worktrees/proj/2f");
    repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    // What the killed run had carried: the donor's, with a link to it.
    fs_err::write(path.join(".env.main"), &printed).unwrap();
    fs_err::create_dir_all(path.join("node_modules")).unwrap();
    fs_err::os::unix::fs::symlink(repo.join("src"), path.join("node_modules/own")).unwrap();
    // And the user's own: a link that would lead to itself, and one that leads out.
    fs_err::os::unix::fs::symlink(repo.join("target"), path.join("target")).unwrap();
    let outside = repo.spot.join("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::remove_dir_all(path.join("packages")).unwrap();
    fs_err::os::unix::fs::symlink(&outside, path.join("packages")).unwrap();
    let ran = within(&path, &["hook", "worktree-setup", "--maker", "cursor"]).succeeds();
    let variables = fs_err::read_to_string(path.join(".env.main")).unwrap();
    assert!(variables.ends_with(&format!("WEB_PORT={}\n", number(221))), "{variables}");
    assert_eq!(fs_err::read_link(path.join("node_modules/own")).unwrap(), path.join("src"));
    assert_eq!(fs_err::read_link(path.join("target")).unwrap(), repo.join("target"));
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: `packages/.env.local` was not carried: a link"), "{}", ran.stderr);
}

#[test]
fn the_prompt_shows_a_linked_worktree_and_nothing_else() {
    let repo = with_ports(&format!("web = {}", number(260)));
    let prompt = |within: &Path| repo.within(within, &["prompt"]).succeeds().stdout;
    assert_eq!(prompt(&repo.path), "");
    assert_eq!(prompt(&repo.spot), "");
    let added = repo.added("fix/a%b");
    let port = repo.within(&added, &["env"]).succeeds().stdout;
    let port = port.trim_end().rsplit('=').next().unwrap();
    assert_eq!(prompt(&added), format!("fix/a?b web:{port}\n"));
    assert_eq!(prompt(&added.join("src/deep")), format!("fix/a?b web:{port}\n"));
    fs_err::write(added.join(".calve.toml"), "[ports\n").unwrap();
    assert_eq!(prompt(&added), "fix/a?b\n");
    // The shell goes on, whatever somebody has prepared.
    let fifo = |path: PathBuf| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    for name in ["one", "two", "two/entry"] {
        fs_err::create_dir(repo.spot.join(name)).unwrap();
    }
    fifo(repo.spot.join("one/.git"));
    fs_err::write(repo.spot.join("two/.git"), "gitdir: entry\n").unwrap();
    fs_err::write(repo.spot.join("two/entry/commondir"), ".\n").unwrap();
    fifo(repo.spot.join("two/entry/HEAD"));
    assert_eq!(["one", "two"].map(|name| prompt(&repo.spot.join(name))), [""; 2]);
}

#[test]
fn a_worktree_is_chosen_by_name_by_a_finder_or_from_a_list() {
    let repo = Repo::anywhere();
    let one = PathBuf::from(repo.calve(["add", "-q", "one"]).succeeds().stdout.trim_end());
    assert_eq!(repo.calve(["cd", "one"]).succeeds().stdout.trim_end(), one.to_str().unwrap());
    assert_eq!(repo.calve(["cd", "main"]).succeeds().stdout.trim_end(), repo.path.to_str().unwrap());
    repo.calve(["cd", "nowhere"]).fails(1).says(&["name one that git lists; `calve worktree list` shows them"]);
    repo.calve(["cd"]).fails(2).hints();
    // git alone, and a finder that takes the given line.
    let programs = repo.spot.join("bin");
    fs_err::create_dir(&programs).unwrap();
    let which = |name: &str| {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).map(|place| place.join(name)).find(|path| path.exists()).unwrap()
    };
    for name in ["git", "grep", "cat", "setsid"] {
        fs_err::os::unix::fs::symlink(which(name), programs.join(name)).unwrap();
    }
    let choose = |keys: &str| {
        let command = repo.calve(["cd"]).env("PATH", &programs).command();
        let mut terminal = Terminal::new(&command);
        let said = if keys.is_empty() { String::new() } else { terminal.after("Which one?", keys) };
        let (code, rest) = terminal.end();
        (code, said + &rest)
    };
    let (code, said) = choose("2\n");
    assert!(code == Some(0) && said.contains("  2  one") && said.trim_end().ends_with(one.to_str().unwrap()), "{said}");
    assert_eq!(choose("9\n").0, Some(130));
    let finder = programs.join("fzf");
    fs_err::write(&finder, "#!/bin/sh\nexec grep one\n").unwrap();
    fs_err::set_permissions(&finder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, said) = choose("");
    assert!(code == Some(0) && said.trim_end().ends_with(one.to_str().unwrap()), "{said}");
    fs_err::write(&finder, "#!/bin/sh\ncat >/dev/null; exit 130\n").unwrap();
    assert_eq!(choose("").0, Some(130));
}

#[test]
fn what_is_made_for_an_agent_and_taken_back_leaves_no_data() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let text = "[services.db]\ntemplate = 'shop'\n[hooks]\npost-add = 'calve up && exit 3'\n";
    shop.repo.write(".calve.toml", text);
    shop.repo.commit("a hook that fails");
    let path = format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    shop.repo.adding("one").args(["--for-agent=claude", "--yes"]).env("PATH", path).fails(1).says(&["started `db`"]);
    assert_eq!(shop.repo.worktrees().len(), 1);
    assert_eq!((shop.data(), shop.servers().len()), (Vec::new(), 0));
}
