//! Every hint that a user sees, with the situation that shows it; a command that a hint names, run as it stands, helps.

mod git;
mod list;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use calve_testkit::{FileSystem, Volume};

use crate::program::{PROGRAM, calve};
use crate::spot::Spot;

/// Runs a command line that fails with the remedy, and returns its hint.
#[track_caller]
fn hint(spot: &Path, line: &str, remedy: &str) -> String {
    let (command, operands) = line.split_once('|').unwrap();
    let words = [command, "--json"].into_iter().chain(operands.split('|'));
    let ran = calve(words).env("HOME", spot.join("home")).within(spot).run().hints();
    assert_eq!(ran.json()["remedy"], remedy, "{line}: {}", ran.stderr);
    ran.json()["hint"].as_str().unwrap().to_owned()
}

/// Runs the command that a hint ends with, or has in backticks, in a shell.
#[track_caller]
fn run(spot: &Path, hint: &str) {
    let quoted = hint.split('`').nth(1).filter(|quoted| quoted.starts_with("calve "));
    let command = quoted.or_else(|| hint.rsplit_once(": ").map(|(_, command)| command)).expect("a hint with a command");
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    let line = format!("PATH={folder}:$PATH; {command}");
    let status = Command::new("sh").args(["-c", &line]).current_dir(spot).status().unwrap();
    assert!(status.success(), "{command}");
}

fn spot() -> Spot {
    let spot = Spot::anywhere();
    spot.tree("").file("a", b"1").file("b", b"2").file("tree/sub/file", b"3").dir("home").symlink("link", "tree");
    spot
}

#[test]
fn a_hint_stands_for_each_mistake_in_the_paths() {
    let spot = spot();
    let _socket = UnixListener::bind(spot.join("socket")).unwrap();
    for (line, remedy, words) in [
        ("cp|-T|a|b", "choose_another_destination_or_replace", "deletes what is there now"),
        ("cp|-T|a|.", "name_directory_from_outside", "from outside"),
        ("cp|none|new", "check_spelling", "spelling"),
        ("cp|-T|a|a", "choose_another_destination", "another destination"),
        ("cp|-T|tree|tree/inside", "clone_outside_source", "outside the source"),
        ("cp|-T|--replace|tree/sub|tree", "move_source_out", "move the source out"),
        ("cp|socket|new", "clone_another_kind", "a regular file"),
        ("cp|--exclude|[|tree|new", "correct_pattern", "*.log"),
        ("rm|home", "name_unprotected", "one by one"),
        ("rm|tree/.", "name_directory_from_outside", "from outside"),
        ("rm|link/", "drop_slash", "symlink itself"),
        ("cp|a/b|new", "check_path_for_file", "check the path"),
    ] {
        let hint = hint(&spot, line, remedy);
        assert!(hint.contains(words), "{line}: {hint}");
        assert!(!hint.contains("docs/"), "{line}: {hint}");
    }
}

#[test]
fn the_command_that_a_hint_names_helps() {
    let spot = spot();
    let create = hint(&spot, "cp|a|no such/it's/new", "create_directory");
    run(&spot, &create);
    calve(["cp", "a", "no such/it's/new"]).within(&spot).succeeds();

    let probe = hint(&spot, "cp|--strategy|snapshot|a|new", "probe_or_drop_requirement");
    run(&spot, &probe.replace("SRC DST", "a new"));

    let leave = hint(&spot.join("tree/sub"), "rm|../sub", "leave_directory");
    run(&spot.join("tree/sub"), &format!("{leave} && rm -r sub"));
    spot.tree("tree").dir("sub");

    calve(["cp", "-T", "--replace", "a", "b"]).within(&spot).succeeds();
    run(&spot, &hint(&spot, "rm|link/", "drop_slash"));
    assert!(!spot.join("link").is_symlink() && spot.join("tree").exists());
}

#[test]
fn a_mount_point_is_to_be_unmounted() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let folder = volume.path().parent().unwrap().to_path_buf();
    let hint = hint(&folder, &format!("rm|{}", volume.path().display()), "unmount");
    assert_eq!(hint, format!("unmount it first: umount {}", volume.path().display()));
}
