//! `calve shell-init`, in the shells that it is for.

use std::path::Path;
use std::process::Command;

use calve_testkit::{git_command, matrix, require_program};

use crate::program::{PROGRAM, calve};
use crate::spot::Spot;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// A repository with branches, and the shells that are installed.
fn repository() -> Spot {
    let spot = Spot::anywhere();
    spot.tree("main").file("file", b"");
    for args in [
        &["init", "-q", "-b", "trunk"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"],
        &["branch", "topic/one"],
        &["branch", "topic/two"],
        &["update-ref", "refs/remotes/origin/topic/far", "HEAD"],
        &["update-ref", "refs/remotes/origin/topic/one", "HEAD"],
    ] {
        assert!(git_command(spot.join("main")).args(args).status().unwrap().success());
    }
    spot
}

/// Runs lines in a shell that has read the function, in the main worktree.
#[track_caller]
fn in_shell(shell: &str, spot: &Spot, lines: &str) -> (String, String) {
    let bare: &[&str] = match shell {
        "bash" => &["--norc", "--noprofile", "-c"],
        "zsh" => &["-f", "-c"],
        _ => &["--no-config", "-c"],
    };
    let begin = match shell {
        "bash" => "eval \"$(calve shell-init bash)\"",
        "zsh" => "autoload -U compinit; compinit -u -D; eval \"$(calve shell-init zsh)\"",
        _ => "calve shell-init fish | source",
    };
    let path = format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args(bare)
        .arg(format!("{begin}\n{lines}"))
        .current_dir(spot.join("main"))
        .env("PATH", path)
        .env("HOME", spot)
        .env("CALVE_HOME", spot.join("home"))
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn git(spot: &Spot, words: &[&str]) {
    assert!(git_command(spot.join("main")).args(words).status().unwrap().success(), "{words:?}");
}

fn each(test: impl Fn(&str, &Spot)) {
    for shell in SHELLS {
        if require_program(shell) {
            test(shell, &repository());
        }
    }
}

#[test]
fn the_shell_goes_into_the_worktree_that_was_added() {
    each(|shell, spot| {
        let status = if shell == "fish" { "$status" } else { "$?" };
        let (stdout, stderr) = in_shell(shell, spot, &format!("calve worktree add topic/one\necho {status}\npwd"));
        let new = stdout.lines().next().unwrap_or_default().to_owned();
        assert!(new.starts_with(&format!("{}/main.", spot.display())), "{shell}: {stdout}{stderr}");
        assert_eq!(stdout, format!("{new}\n0\n{new}\n"), "{shell}: {stderr}");
        // Wherever options are.
        for line in ["calve -q worktree add", "calve --quiet wt -q add"] {
            let (stdout, stderr) = in_shell(shell, spot, &format!("{line} options; pwd; calve -q worktree -q rm; pwd"));
            let expected = format!("{0}.options\n{0}.options\n{0}\n{0}\n", spot.join("main").display());
            assert_eq!(stdout, expected, "{shell}: {line}: {stderr}");
        }
        // By the shorter name, too; and it stays where it is when nothing is made.
        let lines = format!("calve wt add topic/two\npwd\ncalve worktree add trunk\necho {status}\npwd");
        let (stdout, stderr) = in_shell(shell, spot, &lines);
        let lines: Vec<&str> = stdout.lines().collect();
        assert!(lines[0].starts_with(&format!("{}/main.", spot.display())), "{shell}: {stdout}{stderr}");
        assert_eq!(lines, [lines[0], lines[0], "1", lines[0]], "{shell}: {stderr}");
    });
}

#[test]
fn the_shell_goes_home_from_the_worktree_that_was_removed() {
    each(|shell, spot| {
        let main = spot.join("main").display().to_string();
        for words in matrix(["wt rm", "worktree remove", "worktree rm", "wt remove"]) {
            // Another one is removed without going anywhere; a refusal leaves the shell where it is.
            let lines = format!(
                "calve wt add -q topic/two >/dev/null; calve wt add -q topic/one >/dev/null; calve {words} -q topic/two; pwd\n\
                echo x > untracked; calve {words} -q; pwd\nrm untracked\ncalve {words} -q; pwd"
            );
            let (stdout, stderr) = in_shell(shell, spot, &lines);
            let inside = format!("{main}.topic-one");
            let expected = [&inside, &inside, &main, &main].map(|line| format!("{line}\n")).concat();
            assert_eq!(stdout, expected, "{shell}: {words}: {stderr}");
        }
    });
}

#[test]
fn the_shell_goes_into_the_worktree_that_was_named_and_back() {
    each(|shell, spot| {
        let status = if shell == "fish" { "$status" } else { "$?" };
        // One with a name that each shell must quote.
        let odd = spot.join("it's \"two\" $HOME");
        let odd = odd.to_str().unwrap();
        git(spot, &["worktree", "add", "-q", odd, "topic/two"]);
        git(spot, &["worktree", "add", "-q", spot.join("plain").to_str().unwrap(), "topic/one"]);
        let (main, plain) = (spot.join("main").display().to_string(), spot.join("plain").display().to_string());
        let lines = format!(
            "calve worktree cd topic/one\necho {status}\npwd\ncd - >/dev/null; pwd\n\
            calve wt cd topic/two; pwd\ncd - >/dev/null; pwd\ncd - >/dev/null; pwd\n\
            calve wt cd trunk >/dev/null; pwd"
        );
        let (stdout, stderr) = in_shell(shell, spot, &lines);
        let expected = [&plain, "0", &plain, &main, odd, odd, &main, odd, &main, ""].join("\n");
        assert_eq!(stdout, expected, "{shell}: {stderr}");
        assert_eq!(stderr, "", "{shell}");

        // Where it cannot go, it stays, and `cd -` means what it did; it says why, with the exit code of the program.
        let lines = format!(
            "cd {plain}; calve worktree cd nowhere\necho {status}\npwd\n\
            calve wt cd </dev/null\necho {status}\npwd\ncd - >/dev/null; pwd"
        );
        let (stdout, stderr) = in_shell(shell, spot, &lines);
        assert_eq!(stdout, ["1", &plain, "2", &plain, &main, ""].join("\n"), "{shell}: {stderr}");
        assert!(stderr.contains("error: ") && stderr.contains("`nowhere`"), "{shell}: {stderr}");

        // In a substitution it prints the path and goes nowhere.
        let path =
            if shell == "fish" { "echo (calve wt cd topic/two)" } else { "echo \"$(calve wt cd topic/two)\"; pwd" };
        let (stdout, stderr) = in_shell(shell, spot, path);
        assert_eq!(stdout.lines().next(), Some(odd), "{shell}: {stderr}");
        assert!(shell == "fish" || stdout.ends_with(&format!("\n{main}\n")), "{shell}: {stdout}");
    });
}

#[test]
fn the_prompt_follows_the_shell_as_the_guide_sets_it() {
    each(|shell, spot| {
        git(spot, &["worktree", "add", "-q", spot.join("plain").to_str().unwrap(), "topic/one"]);
        // Each shell expands it as it would before it asks for a line.
        let (set, shown) = match shell {
            "bash" => ("PS1='$(calve prompt) '\"$PS1\"", "printf '%s\\n' \"${PS1@P}\""),
            "zsh" => ("setopt prompt_subst; RPROMPT='$(calve prompt)'", "print -P -- \"$RPROMPT\""),
            _ => ("function fish_right_prompt; calve prompt; end", "echo (fish_right_prompt)"),
        };
        let lines =
            format!("{set}\n{shown}\ncalve wt cd topic/one >/dev/null\n{shown}\ncd {}\n{shown}", spot.display());
        let (stdout, stderr) = in_shell(shell, spot, &lines);
        let seen: Vec<&str> = stdout.lines().map(|line| line.split_whitespace().next().unwrap_or_default()).collect();
        let none = if shell == "bash" { seen[0] } else { "" };
        assert_eq!(seen, [none, "topic/one", none], "{shell}: {stdout}{stderr}");
        assert!(!none.contains("trunk"), "{shell}: {stdout}");
    });
}

#[test]
fn everything_else_is_passed_on_as_it_is() {
    each(|shell, spot| {
        let status = if shell == "fish" { "$status" } else { "$?" };
        let lines = format!(
            "calve worktree add -q --json topic/two\npwd\ncalve worktree add -q -n new\npwd\ncalve cp -q -T file 'a  b'\ncalve worktree add --help\ncalve\necho {status}"
        );
        let (stdout, stderr) = in_shell(shell, spot, &lines);
        let begin = stdout.find("{").unwrap();
        let end = stdout.find("\n}\n").unwrap() + 3;
        let receipt: serde_json::Value = serde_json::from_str(&stdout[begin..end]).unwrap();
        assert_eq!(receipt["branch"], "topic/two", "{shell}");
        let after = &stdout[end..];
        let main = spot.join("main").display().to_string();
        assert!(after.starts_with(&format!("{main}\n{main}\n")), "{shell}: {after}");
        assert!(spot.join("main/a  b").exists(), "{shell}: {stderr}");
        assert!(after.contains("Usage: calve worktree add") && after.ends_with("2\n"), "{shell}: {after}");
        // In a substitution it prints the path, like the program.
        let path =
            if shell == "fish" { "echo (calve worktree add -q x)" } else { "echo \"$(calve worktree add -q x)\"; pwd" };
        let (stdout, stderr) = in_shell(shell, spot, path);
        assert!(stdout.starts_with(&format!("{main}.x\n")), "{shell}: {stdout}{stderr}");
    });
}

#[test]
fn branches_are_completed() {
    let spot = repository();
    // bash and fish complete from the command line itself; zsh only on a terminal.
    let bash = "COMP_WORDS=(calve worktree add to); COMP_CWORD=3; _clap_complete_calve calve to add; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let (stdout, stderr) = in_shell("bash", &spot, bash);
    assert_eq!(stdout, "topic/far\ntopic/one\ntopic/two\n", "{stderr}");
    if require_program("fish") {
        let lines = "calve worktree add -q topic/two >/dev/null; complete -C 'calve worktree remove t'; cd $HOME/main; complete -C 'calve worktree add --from t'";
        let (stdout, stderr) = in_shell("fish", &spot, lines);
        assert_eq!(stdout, "topic/two\ntrunk\ntopic/two\n", "{stderr}");
        let (stdout, stderr) = in_shell("fish", &spot, "complete -C 'calve worktree add topic/o'");
        assert_eq!(stdout, "topic/one\n", "{stderr}");
    }
    if require_program("zsh") {
        let (stdout, stderr) = in_shell("zsh", &spot, "print $_comps[calve]");
        assert_eq!(stdout, "_clap_dynamic_completer_calve\n", "{stderr}");
    }
}

#[test]
fn no_other_shell_is_promised() {
    calve(["shell-init", "elvish"]).fails(2);
    calve(["shell-init"]).fails(2);
}
