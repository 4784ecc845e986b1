//! Every hint that a user sees, with the situation that shows it; a command that a hint names, run as it stands, helps.

mod bench;
mod case;
mod core;
mod db;
mod git;
mod list;

use std::os::unix::net::UnixListener;
use std::path::Path;

use calve_testkit::{FileSystem, Volume};

use crate::program::calve;
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
fn what_the_engine_advises_helps() {
    case::check(core::CASES);
}

#[test]
fn what_is_advised_about_git_helps() {
    case::check(git::CASES);
}

#[test]
fn what_is_advised_about_servers_helps() {
    case::check(db::CASES);
}

#[test]
fn what_is_advised_about_benches_helps() {
    case::check(bench::CASES);
}

#[test]
fn a_mount_point_is_to_be_unmounted() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let folder = volume.path().parent().unwrap().to_path_buf();
    let hint = hint(&folder, &format!("rm|{}", volume.path().display()), "unmount");
    assert_eq!(hint, format!("unmount it first: umount {}", volume.path().display()));
}
