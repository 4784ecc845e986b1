//! Two clones to one place: exactly one wins, and the loser leaves nothing.

use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::thread;

use calve_core::{CloneOptions, Error, clone_tree};
use calve_testkit::{Aspect, FileSystem, Tree, Volume, assert_same, assert_same_except, rounds};
use fs_err as fs;

use crate::cloning::{assert_holds, names_in, replacing};

/// Two threads clone `a` and `b` to `dst` at once, `usual` times [`rounds`]; one of them wins each time.
fn race(directory: &Path, sources: [&str; 2], usual: usize, left_out: &[Aspect]) {
    let dst = directory.join("dst");
    let sources = sources.map(|name| directory.join(name));
    for round in 0..rounds(usual) {
        let start = Barrier::new(2);
        let results = thread::scope(|scope| {
            sources
                .each_ref()
                .map(|src| {
                    scope.spawn(|| {
                        start.wait();
                        clone_tree(src, &dst, &CloneOptions::default())
                    })
                })
                .map(|thread| thread.join().unwrap())
        });
        let winners: Vec<usize> = (0..2).filter(|&index| results[index].is_ok()).collect();
        assert_eq!(winners.len(), 1, "round {round}: {results:?}");
        for loser in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(loser, Error::DestinationExists(path) if *path == dst), "round {round}: {loser}");
        }
        let names: Vec<String> = sources.iter().map(|src| src.file_name().unwrap().to_string_lossy().into()).collect();
        assert_holds(directory, &[&names[0], &names[1], "dst"]);
        let src = &sources[winners[0]];
        if src.is_dir() {
            assert_same_except(src, &dst, left_out);
            fs::remove_dir_all(&dst).unwrap();
        } else {
            assert_eq!(fs::read(src).unwrap(), fs::read(&dst).unwrap());
            fs::remove_file(&dst).unwrap();
        }
    }
}

/// Makes two trees and two files in `directory`, each pair in a directory of its own, and has them race.
pub(super) fn two_trees_and_two_files_race(directory: &Path, usual: usize, left_out: &[Aspect]) {
    Tree::new(directory)
        .file("trees/a/from a/file", "a")
        .symlink("trees/a/link", "from a")
        .file("trees/b/from b/file", "b")
        .file("files/a", "contents of a")
        .file("files/b", "contents of b, longer");
    race(&directory.join("trees"), ["a", "b"], usual, left_out);
    race(&directory.join("files"), ["a", "b"], usual, &[]);
}

#[test]
fn exactly_one_of_two_trees_and_of_two_files_wins() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        two_trees_and_two_files_race(volume.path(), 300, &[]);
    }
}

#[test]
fn replacing_clones_at_once_all_succeed_and_one_of_them_stays() {
    const THREADS: usize = 4;
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let dst = volume.path().join("dst");
        let names: Vec<String> = (0..THREADS).map(|number| format!("src-{number}")).collect();
        for name in &names {
            Tree::new(volume.path().join(name)).file("marker", name).file("sub/marker", name);
        }
        let replacing = replacing();
        for _ in 0..rounds(25) {
            let trashed = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for name in &names {
                    let src = volume.path().join(name);
                    let (replacing, dst, trashed) = (&replacing, &dst, &trashed);
                    scope.spawn(move || {
                        let report = clone_tree(&src, dst, replacing).unwrap();
                        trashed.lock().unwrap().extend(report.trashed);
                    });
                }
            });
            let winner = fs::read_to_string(dst.join("marker")).unwrap();
            assert_same(volume.path().join(&winner), &dst);
            let trashed = trashed.into_inner().unwrap();
            let mut all: Vec<String> = trashed
                .iter()
                .map(|tree| fs::read_to_string(tree.parent.join(&tree.name).join("marker")).unwrap())
                .collect();
            all.push(winner);
            // None is lost: each is at the destination or in the trash.
            for name in &names {
                assert!(all.contains(name), "{name} is nowhere: {:?}", names_in(volume.path()));
            }
            fs::remove_dir_all(&dst).unwrap();
            for tree in trashed {
                fs::remove_dir_all(tree.parent.join(&tree.name)).unwrap();
                fs::remove_dir_all(tree.parent.join(format!("{}.lock", tree.name.to_string_lossy()))).unwrap();
            }
            let rest: Vec<&str> = names.iter().map(String::as_str).collect();
            assert_holds(volume.path(), &rest);
        }
    }
}
