//! A destination whose parent belongs to the attacker, who reaches for the staged tree.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use calve_core::{CloneOptions, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume, fingerprint};
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
    const ROUNDS: usize = 2_000;
    const MOST_TIME: Duration = Duration::from_secs(10);
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
        for number in 0..ROUNDS {
            if started.elapsed() > MOST_TIME && exchanges.load(Ordering::Relaxed) > 0 {
                break;
            }
            Tree::new(at("bait", number))
                .symlink("secret", outside.join("secret"))
                .symlink("directory", outside.join("directory"));
            Tree::new(at("place", number));
            round.store(number, Ordering::Relaxed);
            // It succeeds, or says what is wrong; it never panics.
            let _ = clone_tree(&src, &at("place", number).join("dst"), &CloneOptions::default());
        }
    });
    assert!(exchanges.into_inner() > 0, "nothing was exchanged in time");
    before.assert_unchanged(&outside);
}
