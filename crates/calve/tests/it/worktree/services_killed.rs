//! kill -9 while services come and go: nothing is half made after the next command, and no committed row is lost.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use calve_testkit::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};

use super::services::{POSTGRES, Shop};

/// Kills a command at a random moment, if it lasts that long.
fn killed(shop: &Shop, at: &Path, words: &[&str], random: &mut SplitMix64, longest_us: u64) {
    let running = shop.within(at, words).start();
    sleep(Duration::from_micros(random.below(longest_us)));
    let _ = kill_process(Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap(), Signal::KILL);
    running.wait();
}

#[test]
fn killed_at_any_moment_nothing_is_half_made_and_no_row_is_lost() {
    let rounds: u32 = std::env::var("CALVE_SERVICE_KILLS").map_or(25, |rounds| rounds.parse().unwrap());
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let mut random = SplitMix64::new(19);
    let main = shop.repo.path.clone();
    let path = shop.repo.spot.join("proj.x");
    let mut rows = vec![1, 2, 3];
    for round in 0..rounds {
        // The data of the main worktree is that which must last.
        killed(&shop, &main, &["up"], &mut random, 120_000);
        let row = 100 + round;
        shop.sql(&main, &format!("INSERT INTO t VALUES ({row})"));
        rows.push(row);
        if random.below(2) == 0 {
            for server in shop.servers() {
                super::services::kill(&server["pid"]);
            }
        } else {
            killed(&shop, &main, &["down"], &mut random, 60_000);
        }
        assert_eq!(shop.rows(&main), rows, "round {round}");
        killed(&shop, &main, &["worktree", "add", "--data-from", "template", "x"], &mut random, 150_000);
        let there = || shop.repo.worktrees().contains(&path);
        if !there() {
            let ran = shop.repo.adding("x").args(["--data-from", "template"]).run();
            // A git that the killed one has started may have made it meanwhile.
            assert!(ran.status.success() || there(), "round {round}: {}", ran.stderr);
        }
        // A worktree that was there before its data gets it now.
        assert_eq!(shop.rows(&path), [1, 2, 3], "round {round}");
        killed(&shop, &main, &["worktree", "remove", "-f", "x"], &mut random, 80_000);
        if shop.repo.worktrees().contains(&path) {
            if path.join(".calve.toml").exists() {
                assert_eq!(shop.rows(&path), [1, 2, 3], "round {round}: a worktree that is there has its data");
            }
            shop.within(&main, &["worktree", "remove", "-f", "x"]).succeeds();
        }
        shop.repo.git(["worktree", "prune"]);
        shop.within(&main, &["worktree", "list"]).succeeds();
        shop.within(&main, &["db", "gc"]).succeeds();
        let data = shop.data();
        assert_eq!(data.len(), 1, "round {round}: {data:?}");
        let _ = fs_err::remove_dir_all(&path);
        if !shop.repo.git(["branch", "--list", "x"]).is_empty() {
            shop.repo.git(["branch", "-D", "x"]);
        }
    }
    assert_eq!(shop.rows(&main), rows);
    assert_eq!(shop.servers().len(), 1);
}
