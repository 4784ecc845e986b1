//! Deleting a tree that is under attack.

use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::options::Background;
use calve_core::{CancelToken, Error, RemoveOptions, reap, remove_tree};
use calve_testkit::{FileSystem, Tree, Volume, fingerprint, rounds};
use fs_err as fs;

use super::attacker::{Attack, outside};
use crate::cloning::waiting;

const ROUNDS: usize = 2_000;
const MOST_SECONDS: usize = 15;
/// So many are made however long it takes.
const FEWEST: usize = 100;

/// Builds a tree, and `remove`s it while it is attacked, over and over.
fn attacked(mut remove: impl FnMut(&Path, &Path) -> Result<(), Error>) {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let outside = outside(volume.path());
    let before = fingerprint(&outside);
    let started = Instant::now();
    let most_time = Duration::from_secs(rounds(MOST_SECONDS) as u64);
    let (most, fewest, mut done) = (rounds(ROUNDS), rounds(FEWEST), 0);
    let mut exchanges = 0;
    // Few rounds go on until something was exchanged.
    let is_enough = |done: usize, exchanges| {
        done >= most.max(ROUNDS) || exchanges > 0 && (done >= most || done >= fewest && started.elapsed() >= most_time)
    };
    while !is_enough(done, exchanges) {
        let [directory, arsenal] = ["place", "arsenal"].map(|name| volume.path().join(name));
        let tree = directory.join("tree");
        let attack = Attack::prepare(&tree, &arsenal, &outside);
        for number in 0..40 {
            Tree::new(&tree)
                .file(format!("directory/sub/deeper/{number}"), "1")
                .dir(format!("directory/{number}/empty"));
        }
        let (result, exchanged) = attack.during(|| remove(&tree, &directory));
        exchanges += exchanged;
        if let Err(error) = result {
            assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(&directory)), "{error}");
        }
        assert!(outside.join("secret").exists() && outside.join("directory/sub/deeper/file").exists());
        fs::remove_dir_all(&directory).unwrap();
        fs::remove_dir_all(&arsenal).unwrap();
        done += 1;
    }
    assert!(exchanges > 0, "{done} rounds, {exchanges} exchanges");
    before.assert_unchanged(&outside);
}

#[test]
fn removing_a_tree_under_attack_deletes_nothing_outside() {
    attacked(|tree, _| remove_tree(tree, &waiting()).map(|_| ()));
}

/// With so many threads each has one directory open, and finds the one above again from below.
#[test]
fn finding_the_way_back_up_under_attack_leads_nowhere_else() {
    let mut options = waiting();
    options.threads = std::num::NonZeroUsize::new(64);
    attacked(|tree, _| remove_tree(tree, &options).map(|_| ()));
}

#[test]
fn reaping_a_tree_under_attack_deletes_nothing_outside() {
    attacked(|tree, directory| {
        remove_tree(tree, &RemoveOptions::default())?;
        let parent = fs::File::open(directory).unwrap();
        let report = reap(parent.into_parts().0.into(), directory, Background::No, &CancelToken::default())?;
        report.failure.map_or(Ok(()), Err)
    });
}
