//! Bounds that hold whatever the size of the tree.

use calve_testkit::{
    FileSystem, assert_same, deep, few_rounds, matrix, node_modules_like, remove_deep, require_program, wide,
};

use crate::process::open_descriptors;
use crate::program::{Calve, cp, rm};
use crate::spot::{Spot, eventually_nothing_left, nothing_left};

/// Runs it, and returns the most descriptors that it was seen to have open.
fn most_descriptors(command: Calve) -> usize {
    let mut running = command.start();
    let mut most = 0;
    while !running.has_ended() {
        most = most.max(open_descriptors(running.id()));
    }
    running.wait().ended(0);
    most
}

#[test]
fn no_more_than_256_descriptors_are_open() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    node_modules_like(spot.join("src"), 5_000);
    wide(spot.join("src/wide"), 5_000);
    deep(spot.join("src/deep"), 500);
    let cloning = most_descriptors(cp().args(["src", "new"]).within(&spot));
    let verifying = most_descriptors(cp().args(["--verify", "src", "newer"]).within(&spot));
    let removing = most_descriptors(rm().args(["--wait", "new"]).within(&spot));
    assert!((10..=256).contains(&cloning), "{cloning} while cloning");
    assert!((10..=256).contains(&verifying), "{verifying} while verifying");
    assert!((4..=256).contains(&removing), "{removing} while removing");
    // The most that are used by default, however many processors there are.
    let cloning = most_descriptors(cp().args(["--threads", "8", "src", "newest"]).within(&spot));
    assert!(cloning <= 256, "{cloning} with 8 threads");
}

/// Checks that names which look like a database's do not cause one listing of the directory each.
#[test]
fn a_directory_is_listed_a_few_times_whatever_its_files_are_called() {
    if !require_program("strace") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    let reads = |names: &[&str]| {
        let (src, log) = (spot.join("src"), spot.join("log"));
        fs_err::create_dir(&src).unwrap();
        for number in 0..if few_rounds() { 500 } else { 2_000 } {
            for name in names {
                fs_err::write(src.join(name.replace('*', &format!("x{number}"))), "1").unwrap();
            }
        }
        let strace = ["strace", "-fqq", "-e", "trace=getdents64", "-o", log.to_str().unwrap()];
        cp().args(["src", "new"]).within(&spot).under(&strace).succeeds();
        assert_same(&src, spot.join("new"));
        fs_err::remove_dir_all(&src).unwrap();
        fs_err::remove_dir_all(spot.join("new")).unwrap();
        fs_err::read_to_string(log).unwrap().matches("getdents64(").count()
    };
    let plain = reads(&["*.text"]);
    for names in [&["*.manifest"][..], &["*.1.base.rdb"], &["*.db"]] {
        let count = reads(names);
        assert!(count <= 4 * plain, "{count} instead of {plain} for {names:?}");
    }
    // These are sets.
    let sets = reads(&["*.manifest", "*.1.incr.aof"]);
    assert!(sets <= 8 * plain, "{sets} instead of {plain}");
}

#[test]
fn a_tree_of_2000_levels_needs_few_descriptors() {
    for (file_system, threads, wait) in matrix([(FileSystem::Xfs, "1", None), (FileSystem::Ext4, "4", Some("--wait"))])
    {
        let Some(spot) = Spot::on(file_system) else { return };
        deep(spot.join("src"), 2000);
        let clone = cp().args(["--threads", threads, "--verify", "src", "new"]).within(&spot);
        clone.in_shell("ulimit -n 256;", "").succeeds();
        assert_same(spot.join("src"), spot.join("new"));
        nothing_left(&spot);
        rm().args(wait).arg("new").within(&spot).in_shell("ulimit -n 256;", "").succeeds();
        eventually_nothing_left(&spot);
        remove_deep(spot.join("src"));
        spot.holds(&[]);
    }
}

#[test]
fn too_few_descriptors_are_an_error_that_says_so() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    deep(spot.join("src"), 100);
    let ran = cp().args(["src", "new"]).within(&spot).in_shell("ulimit -n 12;", "").run();
    if !ran.status.success() {
        ran.ended(1);
        ran.says(&["Too many open files"]).hints();
        assert!(!spot.join("new").exists());
    }
    // What could not be cleaned up then is swept by the next run.
    cp().args(["src", "newer"]).within(&spot).succeeds();
    nothing_left(&spot);
}

#[test]
fn the_caller_is_not_changed() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("src").file("a", b"1").mode("a", 0o666).dir("d").mode("d", 0o777);
    // Whatever the umask, modes are kept.
    for umask in ["000", "022", "077", "777"] {
        let command = cp().args(["src", umask]).within(&spot).in_shell(&format!("umask {umask};"), "");
        command.succeeds();
        assert_same(spot.join("src"), spot.join(umask));
    }
}
