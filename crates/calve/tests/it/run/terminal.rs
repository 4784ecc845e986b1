//! `calve run` on a terminal: the question afterwards, and job control.

use std::process::Command;

use calve_testkit::{FileSystem, Volume, fingerprint};

use super::{left, place, run};
use crate::program::{Calve, PROGRAM};
use crate::spot::{Spot, eventually, names};
use crate::terminal::Terminal;

const QUESTION: &str = "[a/k/d/n]";

fn on_a_terminal(calve: Calve) -> Terminal {
    Terminal::new(&calve.command())
}

#[test]
fn the_user_is_asked_and_without_an_answer_the_changes_are_dropped() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let before = fingerprint(spot.join("tree"));
    // "No", Ctrl-D, Ctrl-C, and before it an Enter that was meant for the command, or another word.
    for keys in ["n\n", "\x04", "\x03", "\nn\n", "x\nN\n", "half\x03", "\x03a\n"] {
        let mut terminal = on_a_terminal(run(&spot, &[], "echo > new; rm b; exit 5"));
        terminal.after(QUESTION, keys);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(5), "{keys:?}: {seen}");
        assert!(seen.contains("discarded"), "{keys:?}: {seen}");
        before.assert_unchanged(spot.join("tree"));
    }
    assert_eq!(left(&spot), [""; 0]);
    // Nothing to ask about, or nothing to ask.
    for (options, script) in [(&[][..], "true"), (&["--discard"], "echo > new"), (&["-q"], "echo > new")] {
        let (code, seen) = on_a_terminal(run(&spot, options, script)).end();
        assert!(code == Some(0) && !seen.contains(QUESTION), "{seen}");
    }
    spot.holds(&["home", "tree"]);
}

#[test]
fn the_answers_apply_keep_and_show() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let mut terminal = on_a_terminal(run(&spot, &[], "echo 2 > a"));
    terminal.after("1 file changed", "");
    terminal.after(QUESTION, "d\n");
    terminal.after("+2", "");
    terminal.after(QUESTION, "k\n");
    // One that is there already, then a new one.
    terminal.after("keep it at:", "../home\n");
    terminal.after(QUESTION, "k\n");
    terminal.after("keep it at:", "../kept\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("kept in `"), "{seen}");
    let read = |path: &str| fs_err::read_to_string(spot.join(path)).unwrap();
    assert_eq!([read("kept/a"), read("tree/a")], ["2\n", "a"]);
    // The user may apply what a command has left that failed.
    let mut terminal = on_a_terminal(run(&spot, &[], "echo 3 > a; exit 4"));
    terminal.after(QUESTION, "a\n");
    assert_eq!(terminal.end().0, Some(4));
    assert_eq!(read("tree/a"), "3\n");
    assert_eq!(left(&spot), [""; 0]);
    spot.holds(&["home", "kept", "tree"]);
}

#[test]
fn what_changes_during_the_question_is_shown_before_it_is_applied() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    assert!(Command::new("mkfifo").arg(spot.join("go")).status().unwrap().success());
    let daemon = "(read line < ../go; echo 2 > later; echo > ../done) > /dev/null 2>&1 < /dev/null &";
    let mut terminal = on_a_terminal(run(&spot, &[], &format!("echo 1 > new; setsid sh -c '{daemon}'")));
    terminal.after("1 new", "");
    terminal.after(QUESTION, "");
    fs_err::write(spot.join("go"), "\n").unwrap();
    eventually("the copy changes", || spot.join("done").exists());
    terminal.after("", "a\n");
    terminal.after("tree/later` has changed since the changes were listed; nothing was applied", "");
    terminal.after("2 new", "");
    assert!(!spot.join("tree/new").exists());
    terminal.after(QUESTION, "a\n");
    assert_eq!(terminal.end().0, Some(0));
    assert!(spot.join("tree/new").exists() && spot.join("tree/later").exists());
}

/// A debug build pretends that the clock was set back once a file exists.
#[test]
fn a_clock_that_is_set_back_during_the_question_is_no_change_of_the_copy() {
    const { assert!(cfg!(debug_assertions), "no other build has this way in") };
    for script in ["echo 1 > new", "echo 1 > a", "rm b", "mkdir -p n/e"] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        let before = names(spot.join("tree"));
        let clock = spot.join("clock");
        let mut terminal = on_a_terminal(run(&spot, &[], script).env("CALVE_TEST_CLOCK", &clock));
        terminal.after(QUESTION, "");
        fs_err::write(&clock, "").unwrap();
        terminal.after("", "a\n");
        terminal.after("the clock was set back while the command ran", "");
        let (code, seen) = terminal.end();
        assert!(code == Some(3) && !seen.contains("has changed since"), "{script}: {seen}");
        assert!(spot.join("tree.run").exists(), "{script}: {seen}");
        assert_eq!(names(spot.join("tree")), before, "{script}");
        assert_eq!(fs_err::read(spot.join("tree/a")).unwrap(), b"a", "{script}");
    }
}

/// A Ctrl-\ has Java print its threads, and go on.
#[test]
fn a_command_that_is_interrupted_or_survives_a_quit_loses_nothing() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let script = "trap 'exit 5' INT; echo > new; echo ready; while :; do sleep 0.1; done";
    let mut terminal = on_a_terminal(run(&spot, &[], script));
    terminal.after("ready", "\x03");
    terminal.after(QUESTION, "a\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(5), "{seen}");
    assert!(spot.join("tree/new").exists());
    fs_err::remove_file(spot.join("tree/new")).unwrap();
    let script = "trap 'echo threads' QUIT; echo > new; echo ready; while test ! -e ../end; do sleep 0.1; done; exit 5";
    let mut terminal = on_a_terminal(run(&spot, &[], script));
    terminal.after("ready", "\x1c");
    terminal.after("threads", "");
    fs_err::write(spot.join("end"), "").unwrap();
    terminal.after(QUESTION, "a\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(5), "{seen}");
    assert!(spot.join("tree/new").exists());
    // As an answer it says no more than a hangup.
    let mut terminal = on_a_terminal(run(&spot, &[], "echo > other"));
    terminal.after(QUESTION, "\x1c");
    let (code, seen) = terminal.end();
    assert!(code == Some(0) && seen.contains("are kept in"), "{code:?}: {seen}");
    assert_eq!(left(&spot), ["tree.run"]);
    assert_eq!(names(spot.join("home/runs/tree.run")), ["other"]);
}

#[test]
fn a_command_that_leaves_the_terminal_raw_does_not_keep_the_user_from_answering() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let mut terminal = on_a_terminal(run(&spot, &[], "echo > new; stty raw -echo; kill -9 $$"));
    // Enter, which sends a carriage return.
    terminal.after(QUESTION, "n\r");
    assert_eq!(terminal.end().0, Some(137));
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn without_a_terminal_to_answer_on_nothing_is_applied_or_lost() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let before = fingerprint(spot.join("tree"));
    let script = "trap 'exit 0' HUP; echo > new; echo ready; while :; do sleep 0.1; done";
    let mut terminal = on_a_terminal(run(&spot, &[], script));
    terminal.after("ready", "");
    assert_eq!(terminal.hang_up(), Some(0));
    before.assert_unchanged(spot.join("tree"));
    assert_eq!(left(&spot), ["tree.run"]);
    // The user goes while the question is there.
    let mut terminal = on_a_terminal(run(&spot, &[], "echo > other"));
    terminal.after(QUESTION, "");
    assert_eq!(terminal.hang_up(), Some(0));
    before.assert_unchanged(spot.join("tree"));
    assert_eq!(left(&spot), ["tree.run", "tree.run-2"]);
    assert_eq!(names(spot.join("home/runs/tree.run-2")), ["other"]);
    spot.holds(&["home", "tree"]);
    // Nobody has read where.
    let kept = ["tree.run", "tree.run-2"]
        .map(|name| format!("earlier run's changes are still in `{}`", spot.join("home/runs").join(name).display()));
    let ran = run(&spot, &["--discard"], "true").succeeds().says(&kept.each_ref().map(String::as_str));
    assert!(ran.stderr.contains("then calve rm "), "{}", ran.stderr);
    fs_err::rename(spot.join("home/runs/tree.run"), spot.join("home/runs/tree.runs.run")).unwrap();
    assert_eq!(run(&spot, &["--discard"], "true").succeeds().stderr.matches("still in").count(), 1);
}

#[test]
fn what_was_neither_applied_nor_kept_is_asked_about_again() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let Some(spot) = place(Spot::anywhere()) else { return };
    let tree = volume.path().join("tree");
    fs_err::create_dir(&tree).unwrap();
    volume.remount_read_only();
    let mut terminal =
        on_a_terminal(run(&spot, &["--tree", tree.to_str().unwrap()], &format!("echo 2 > {}/a", tree.display())));
    terminal.after(QUESTION, "a\n");
    terminal.after("Read-only file system", "");
    terminal.after(QUESTION, "k\n");
    terminal.after("keep it at:", "../kept\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(fs_err::read(spot.join("kept/a")).unwrap(), b"2\n");
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn it_stops_and_goes_on_as_a_job_of_the_shell() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let mut command = Command::new("sh");
    command.arg("-i").env("CALVE_HOME", spot.join("home")).env_remove("ENV").current_dir(spot.join("tree"));
    let mut shell = Terminal::new(&command);
    // It does not read from the terminal: one key of the shell's could get to it before it has stopped.
    let script = "echo > new; echo re''ady; while test ! -e ../go; do sleep 0.05; done; echo \"got it\"";
    shell.after("", &format!("{PROGRAM} run --discard -- sh -c '{}'\n", script.replace('\'', "'\\''")));
    shell.after("ready", "\x1a");
    // So that what comes is no more than what `fg` says: the command, which goes on.
    shell.after("Stopped", "echo as''ide\n");
    shell.after("aside", "fg\n");
    shell.after("calve", "");
    fs_err::write(spot.join("go"), "").unwrap();
    shell.after("got it", "");
    shell.after("1 new", "exit\n");
    assert_eq!(shell.end().0, Some(0));
    assert!(!spot.join("tree/new").exists());
    assert_eq!(left(&spot), [""; 0]);
}
