//! `calve completions`: the scripts, in the shells that they are for.

use std::process::Command;

use calve_testkit::require_program;

use crate::manual::commands_below;
use crate::program::calve;
use crate::spot::Spot;

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

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
    assert_eq!(offers(&["calve", "pro"]), ["probe"]);
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

#[test]
fn a_file_can_be_what_is_completed() {
    for shell in SHELLS {
        // What the shell completes by itself, it is told to: names of files.
        let script = script(shell);
        let files = match shell {
            "bash" => "compgen -f",
            "zsh" => "_files",
            "fish" => "-r",
            _ => "Register-ArgumentCompleter",
        };
        assert!(script.contains(files), "{shell}");
    }
}
