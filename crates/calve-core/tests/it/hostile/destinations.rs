//! A destination whose parent belongs to the attacker, who reaches for the staged tree.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use calve_core::internal::stage_in;
use calve_core::{CloneOptions, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume, few_rounds, fingerprint, rounds};
use fs_err as fs;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::attacker::outside;
use crate::rival::while_another;

/// Exchanges the staged directory, as soon as it shows, for one of the attacker's, which has links out where the clone has
/// pipes and files.
fn exchange_what_is_staged(directory: &Path, bait: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let staged = names.find(|name| name.starts_with(".calve-staging-") && !name.ends_with(".lock"));
    staged.is_some_and(|name| renameat_with(CWD, directory.join(name), CWD, bait, RenameFlags::EXCHANGE).is_ok())
}

#[test]
fn a_staged_tree_that_is_exchanged_is_not_a_way_out() {
    let most_time = Duration::from_secs(rounds(10) as u64);
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let outside = outside(volume.path());
    let before = fingerprint(&outside);
    let src = volume.path().join("src");
    Tree::new(&src)
        .fifo("secret")
        .mode("secret", 0o666)
        .file("directory/file", "harmless")
        .file("directory/sub/file", "harmless")
        .mode("directory", 0o777);
    let round = AtomicUsize::new(0);
    let at = |name: &str, round: usize| volume.path().join(format!("{name}-{round}"));
    let exchanges = AtomicUsize::new(0);
    let exchange = || {
        let round = round.load(Ordering::Relaxed);
        if exchange_what_is_staged(&at("place", round), &at("bait", round)) {
            exchanges.fetch_add(1, Ordering::Relaxed);
        }
    };
    while_another(exchange, || {
        let started = Instant::now();
        for number in 0..rounds(2_000) {
            if started.elapsed() > most_time && exchanges.load(Ordering::Relaxed) > 0 {
                break;
            }
            Tree::new(at("bait", number))
                .symlink("secret", outside.join("secret"))
                .symlink("directory", outside.join("directory"));
            Tree::new(at("place", number));
            round.store(number, Ordering::Relaxed);
            // It succeeds, or fails with a reason; it never panics.
            let _ = clone_tree(&src, &at("place", number).join("dst"), &CloneOptions::default());
        }
    });
    assert!(few_rounds() || exchanges.into_inner() > 0, "nothing was exchanged in time");
    before.assert_unchanged(&outside);
}

/// A directory that was looked at is exchanged for a link before anything is published in it.
#[test]
fn a_parent_that_is_exchanged_is_not_a_way_out() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let outside = outside(volume.path());
    let before = fingerprint(&outside);
    let (place, aside) = (volume.path().join("place"), volume.path().join("aside"));
    let exchange = || {
        fs::rename(&place, &aside).unwrap();
        fs::os::unix::fs::symlink(&outside, &place).unwrap();
    };
    let undo = || {
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
    };
    Tree::new(&place);
    let src = volume.path().join("src");
    Tree::new(&src).file("file", "harmless");
    let options = CloneOptions::default();
    for is_early in [true, false] {
        let name = if is_early { "early" } else { "late" };
        let opened = fs::File::open(&place).unwrap().into_parts().0.into();
        if is_early {
            exchange();
        }
        let made = stage_in(Some(opened), &place.join(name), &options, |staged| {
            let cloned = staged.clone_root(&src, &options);
            if !is_early {
                exchange();
            }
            cloned
        });
        made.unwrap();
        undo();
        assert!(place.join(name).join("file").exists());
        before.assert_unchanged(&outside);
    }
    // Nothing holds the path, so it leads where it leads when the tree is staged.
    exchange();
    stage_in(None, &place.join("plain"), &options, |staged| staged.clone_root(&src, &options)).unwrap();
    assert!(outside.join("plain/file").exists());
}
