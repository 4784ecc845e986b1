//! `calve completions`: the scripts, in the shells that they are for.

use std::process::Command;

use calve_testkit::{git_command, require_program};

use crate::manual::commands_below;
use crate::program::calve;
use crate::spot::Spot;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

fn script(shell: &str) -> String {
    calve(["completions", shell]).succeeds().stdout
}

/// Runs a shell and returns what it prints.
#[track_caller]
fn shell(program: &str, args: &[&str], spot: &Spot) -> String {
    let output = Command::new(program).args(args).current_dir(spot).env("HOME", spot).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{program} {args:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout
}

#[test]
fn every_command_is_in_the_script_of_every_shell_and_no_hidden_one() {
    let commands = commands_below(&[]);
    for shell in SHELLS {
        let script = script(shell);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: no {command}");
        }
        // The shell is asked to complete names of files by itself.
        let files = ["compgen -f", "_files", "-r"][SHELLS.iter().position(|one| one == &shell).unwrap()];
        assert!(script.contains(files), "{shell}");
        assert!(!script.contains("__reap") && !script.contains("__man"), "{shell}: a hidden command is offered");
    }
    calve(["completions", "no-shell"]).fails(2);
}

#[test]
fn bash_completes() {
    let spot = Spot::anywhere();
    spot.tree("").file("calve.bash", script("bash").as_bytes());
    shell("bash", &["-n", "calve.bash"], &spot);
    let complete = "source ./calve.bash
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        _calve calve \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        complete -p calve > registered; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let offers = |words: &[&str]| -> Vec<String> {
        let args = [&["--norc", "-c", complete, "bash"], words].concat();
        shell("bash", &args, &spot).lines().map(str::to_owned).collect()
    };
    let offered = offers(&["calve", ""]);
    for command in commands_below(&[]) {
        assert!(offered.contains(&command), "{command}: {offered:?}");
    }
    assert!(["cp", "rm", "probe"].iter().all(|command| offered.iter().any(|word| word == command)), "{offered:?}");
    assert!(fs_err::read_to_string(spot.join("registered")).unwrap().contains("-F _calve"));
    assert_eq!(offers(&["calve", "pro"]), ["probe", "prompt"]);
    assert!(offers(&["calve", "cp", "--re"]).contains(&"--require".to_owned()));
    assert_eq!(offers(&["calve", "cp", "--require", ""]), ["instant", "cow", "stable"]);
    assert_eq!(offers(&["calve", "cp", "--strategy", "sn"]), ["snapshot"]);
}

#[test]
fn zsh_takes_the_script() {
    if !require_program("zsh") {
        return;
    }
    let spot = Spot::anywhere();
    spot.tree("").file("functions/_calve", script("zsh").as_bytes());
    shell("zsh", &["-f", "-n", "functions/_calve"], &spot);
    let start = "fpath=(./functions $fpath); autoload -U compinit; compinit -u -D; print $_comps[calve]
        autoload +X _calve && print loaded";
    assert_eq!(shell("zsh", &["-f", "-c", start], &spot), "_calve\nloaded\n");
}

#[test]
fn fish_completes() {
    if !require_program("fish") {
        return;
    }
    let spot = Spot::anywhere();
    spot.tree("").file("calve.fish", script("fish").as_bytes());
    shell("fish", &["--no-execute", "calve.fish"], &spot);
    let offers =
        |line: &str| shell("fish", &["--no-config", "-c", &format!("source calve.fish; complete -C '{line}'")], &spot);
    let offered = offers("calve ");
    for command in commands_below(&[]) {
        assert!(offered.lines().any(|line| line.split('\t').next() == Some(&command)), "{command}: {offered}");
    }
    assert!(offers("calve cp --require ").contains("stable"));
}

/// Bash calls the function of the dynamic script, which asks the program of this build.
#[test]
fn bash_asks_the_program() {
    let spot = Spot::anywhere();
    let script = calve(["completions", "bash", "--dynamic"]).succeeds().stdout;
    spot.tree("").file("calve.bash", script.as_bytes()).file("some file", b"1");
    shell("bash", &["-n", "calve.bash"], &spot);
    let complete = "source ./calve.bash
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_calve calve \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let folder = std::path::Path::new(crate::program::PROGRAM).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let offers = |words: &[&str]| -> Vec<String> {
        let args = [&["--norc", "-c", complete, "bash"], words].concat();
        let output = Command::new("bash").args(args).current_dir(&spot).env("PATH", &path).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
    };
    let offered = offers(&["calve", ""]);
    for command in commands_below(&[]) {
        assert!(offered.contains(&command), "{command}: {offered:?}");
    }
    assert!(!offered.iter().any(|word| word.starts_with("__")), "{offered:?}");
    assert_eq!(offers(&["calve", "cp", "--require", "s"]), ["stable"]);
    // What no static script knows.
    let programs = offers(&["calve", "bench", "copy", "--only", ""]);
    assert!(["cp", "rsync", "calve"].iter().all(|name| programs.iter().any(|word| word == name)), "{programs:?}");
    // Branches: those that are free, and those that have a worktree. Elsewhere there are none.
    assert_eq!(offers(&["calve", "worktree", "add", "to"]), [""; 0]);
    let git = |args: &[&str]| assert!(git_command(&spot).args(args).status().unwrap().success());
    git(&["init", "-q", "-b", "trunk"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"]);
    for branch in ["topic/one", "topic/two", "other"] {
        git(&["branch", branch]);
    }
    git(&["worktree", "add", "-q", "linked", "topic/two"]);
    git(&["worktree", "add", "-q", "--detach", "loose"]);
    assert_eq!(offers(&["calve", "worktree", "add", ""])[..3], ["other", "topic/one", "--base"]);
    assert_eq!(offers(&["calve", "wt", "add", "to"]), ["topic/one"]);
    assert_eq!(offers(&["calve", "worktree", "remove", ""])[..3], ["topic/two", "loose", "--force"]);
    assert_eq!(offers(&["calve", "worktree", "add", "--from", "tr"]), ["trunk"]);
    // Names of files.
    assert!(offers(&["calve", "cp", "some"]).iter().any(|word| word.starts_with("some")));
}

#[test]
fn dynamic_scripts_are_there_for_every_shell_and_an_ordinary_run_does_not_answer() {
    for shell in SHELLS {
        let script = calve(["completions", shell, "--dynamic"]).succeeds().stdout;
        assert!(script.contains("CALVE_COMPLETE") && script.contains("calve"), "{shell}: {script}");
    }
    // A shell that is not known, and no line to complete: nothing is printed that would end up in a command line.
    let asked = calve(["--", "calve", ""]).env("CALVE_COMPLETE", "no-shell").run();
    assert_eq!(asked.stdout, "");
    asked.ended(1);
    let ordinary = calve(["--version"]).env("CALVE_COMPLETE", "").succeeds();
    assert!(ordinary.stdout.starts_with("calve "), "{}", ordinary.stdout);
}
