//! Cloning a tree that is under attack.

use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::{CloneOptions, Error, Strategy, clone_tree};
use calve_testkit::{FileSystem, Volume, few_rounds, fingerprint, rounds};
use fs_err as fs;

use super::attacker::{Attack, SECRET, outside};
use crate::cloning::{names_in, only, verified};

const CLONES: usize = 10_000;
/// So many are made however long it takes.
const FEWEST: usize = 1_000;
/// An unoptimised build may not get to all of them.
const MOST_SECONDS: usize = 40;

fn attacked(file_system: FileSystem, choices: &[CloneOptions]) {
    let Some(volume) = Volume::new(file_system) else { return };
    let outside = outside(volume.path());
    let before = fingerprint(&outside);
    let [src, directory] = ["src", "place"].map(|name| volume.path().join(name));
    fs::create_dir(&directory).unwrap();
    let attack = Attack::prepare(&src, &volume.path().join("arsenal"), &outside);
    let (clones, fewest) = (rounds(CLONES), rounds(FEWEST));
    let most_time = Duration::from_secs(rounds(MOST_SECONDS) as u64);
    let started = Instant::now();
    let ((cloned, failed), exchanges) = attack.during(|| {
        let (mut cloned, mut failed) = (0_usize, 0_usize);
        for number in 0..clones {
            if started.elapsed() > most_time && cloned + failed >= fewest {
                break;
            }
            let dst = directory.join("dst");
            match clone_tree(&src, &dst, &choices[number % choices.len()]) {
                Ok(_) => {
                    cloned += 1;
                    assert_harmless(&dst);
                    fs::remove_dir_all(&dst).unwrap();
                }
                Err(error) => {
                    failed += 1;
                    assert_is_about_the_source(&error, &src);
                }
            }
            assert_eq!(names_in(&directory), Vec::<String>::new(), "clone {number} left something behind");
        }
        (cloned, failed)
    });
    let took = started.elapsed();
    assert!(few_rounds() || cloned > 0 && exchanges > fewest as u64, "{cloned} clones, {exchanges} exchanges");
    if cloned + failed < clones {
        note(&format!("{} of {clones} clones in {took:?}, {exchanges} exchanges", cloned + failed));
    }
    before.assert_unchanged(&outside);
}

#[expect(clippy::print_stderr, reason = "a shortened run must be seen in the log")]
fn note(text: &str) {
    eprintln!("{text}");
}

/// Nothing of the clone is, or shows by its contents to be, from outside.
fn assert_harmless(dst: &Path) {
    for entry in fs::read_dir(dst).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            assert_harmless(&entry.path());
        } else if kind.is_file() {
            let contents = fs::read_to_string(entry.path()).unwrap();
            assert!(!contents.contains(SECRET), "`{}` is from outside", entry.path().display());
        }
    }
}

/// A clean refusal: something in the source has just become something else.
fn assert_is_about_the_source(error: &Error, src: &Path) {
    match error {
        Error::Io { path, .. } => assert!(path.starts_with(src), "{error}"),
        Error::RequirementRefused { .. } | Error::VerifyFailed { .. } => {}
        other => panic!("{other}"),
    }
}

#[test]
#[cfg_attr(like_macos, ignore = "the stand-in for clonefile is slow")]
fn a_copy_of_a_tree_under_attack_has_nothing_from_outside() {
    let copy = only(Strategy::Copy);
    attacked(FileSystem::Tmpfs, &[copy.clone(), copy.clone(), copy, verified(Strategy::Copy)]);
}

#[test]
#[cfg_attr(like_macos, ignore = "the stand-in for clonefile is slow")]
fn reflinks_and_hard_links_of_a_tree_under_attack_have_nothing_from_outside() {
    attacked(FileSystem::Xfs, &[CloneOptions::default(), only(Strategy::Reflink), only(Strategy::Hardlink)]);
}
