//! Every system call fails once: the first, the second, the third … until the command succeeds. Whatever fails, the
//! destination is absent or complete, the source is untouched, nothing stays behind, and the exit code tells the truth.

use std::path::Path;

use calve_testkit::{
    Aspect, FileSystem, Fingerprint, Injection, Outcome, Tree, assert_same, assert_same_except, each_nth, fingerprint,
    remove_deep, run_injected,
};
use serde_json::Value;

use crate::program::{Calve, cp, rm};
use crate::spot::{Spot, eventually_nothing_left, leftovers, nothing_left};

/// Small, because each call in it is one run; and with one thing of each kind.
fn small_tree(path: &Path) {
    Tree::new(path)
        .file("large", vec![b'x'; 100_000])
        .file("small", b"y")
        .sparse("sparse", 1 << 20, &[(1 << 19, b"z")])
        .file("d/owned", b"1")
        .owner("d/owned", 12345, 12345)
        .mode("d/owned", 0o4711)
        .xattr("d/owned", "user.a", b"1")
        .hard_link("d/linked", "small")
        .symlink("link", "small")
        .fifo("d/e/fifo")
        .acl("d", "d:u:12345:rwx")
        .mode("d/e", 0o500)
        .mtime("d", 1_000_000_000, 1);
}

/// A clone of `src` to `dst` that is disturbed.
struct Disturbed {
    spot: Spot,
    before: Fingerprint,
    arguments: &'static [&'static str],
}

impl Disturbed {
    fn on(file_system: FileSystem, arguments: &'static [&'static str]) -> Option<Self> {
        let spot = Spot::on(file_system)?;
        small_tree(&spot.join("src"));
        let before = fingerprint(spot.join("src"));
        Some(Self { spot, before, arguments })
    }

    fn command(&self) -> Calve {
        cp().args(["--json", "--threads", "1", "-T"]).args(self.arguments).args(["src", "dst"]).within(&self.spot)
    }

    /// Fails each of these calls once with `error`. What the program makes of it is up to `check`, which is given the
    /// receipt where there is one.
    fn by(&self, syscalls: &str, error: &str, check: impl Fn(&str, Option<&Value>)) -> u32 {
        let prepare = || {
            if self.spot.join("dst").exists() {
                remove_deep(self.spot.join("dst"));
            }
            self.command().command()
        };
        let mut failures = 0;
        let undisturbed = each_nth(syscalls, &format!("error={error}"), 150, prepare, |nth, outcome| {
            let what = format!("{error} at call {nth} of {syscalls}");
            failures += u32::from(!outcome.status.success());
            let receipt = self.check(&what, outcome);
            check(&what, receipt.as_ref());
        });
        if let Some(undisturbed) = undisturbed {
            assert!(undisturbed.status.success(), "{}", undisturbed.stderr);
            assert_same(self.spot.join("src"), self.spot.join("dst"));
        }
        failures
    }

    fn check(&self, what: &str, outcome: &Outcome) -> Option<Value> {
        let (src, dst) = (self.spot.join("src"), self.spot.join("dst"));
        let Outcome { status, stderr, stdout, trace, .. } = outcome;
        let shown = format!("{what}: {status}\n{stderr}\n{trace}");
        self.before.assert_unchanged(&src);
        assert!(!stderr.contains("panicked"), "{shown}");
        let receipt = match status.code() {
            // The loader could not start the program.
            Some(127) => None,
            Some(1) => {
                let cannot_say = trace.lines().any(|line| line.contains("write(2,") && line.contains("(INJECTED)"));
                assert!(cannot_say || stderr.contains("error: "), "{shown}");
                None
            }
            Some(0) => Some(serde_json::from_str::<Value>(stdout).unwrap_or_else(|_| panic!("{shown}"))),
            _ => panic!("{shown}"),
        };
        match &receipt {
            Some(receipt) => {
                let lost = aspects_said_to_be_lost(receipt);
                assert_same_except(&src, &dst, &lost);
            }
            // The clone was made, and only its receipt could not be printed.
            None if stderr.contains("write the report to stdout") => assert_same(&src, &dst),
            None => assert!(!dst.exists(), "{shown}\nthere is a clone although it failed"),
        }
        self.expect_nothing_left(&shown, trace);
        receipt
    }

    /// Calls are counted in each thread, so that the clean-up may be disturbed as well. Then the next run sweeps.
    fn expect_nothing_left(&self, shown: &str, trace: &str) {
        if leftovers(&self.spot).is_empty() {
            return;
        }
        let cleaning_up_failed = trace.matches("(INJECTED)").count() > 1 || trace.contains("unlinkat");
        let only_a_lock = is_only_a_lock(&leftovers(&self.spot));
        assert!(cleaning_up_failed || only_a_lock, "{shown}\nleft: {:?}", leftovers(&self.spot));
        cp().args(["-q", "src", "again"]).within(&self.spot).succeeds();
        nothing_left(&self.spot);
        remove_deep(self.spot.join("again"));
    }

    fn fails_by(&self, syscalls: &str, errors: &[&str]) {
        for error in errors {
            let failures = self.by(syscalls, error, |_, _| {});
            assert!(failures > 0, "no call of {syscalls} matters");
        }
    }
}

/// A process that cannot tell whether a lock is its own, or cannot empty it, leaves it, and has done its work all the same.
fn is_only_a_lock(left: &[String]) -> bool {
    left.iter().all(|name| name.ends_with(".lock"))
}

/// Returns what a receipt owns up to not having kept.
fn aspects_said_to_be_lost(receipt: &Value) -> Vec<Aspect> {
    let warnings = receipt["warnings"].as_array().unwrap();
    let mut lost = Vec::new();
    for warning in warnings {
        match warning["code"].as_str().unwrap() {
            "owner_not_kept" => lost.push(Aspect::Owners),
            "set_id_dropped" => lost.push(Aspect::Modes),
            "xattr_not_kept" => lost.push(Aspect::Xattrs),
            // A link that is refused becomes a file of its own.
            "hard_link_not_kept" => lost.push(Aspect::HardLinks),
            "swept" | "not_swept" => {}
            other => panic!("an unexpected warning: {other}"),
        }
    }
    lost
}

#[test]
fn opening_listing_and_moving_bytes() {
    let Some(clone) = Disturbed::on(FileSystem::Ext4, &[]) else { return };
    clone.fails_by("openat", &["EIO", "EACCES", "EMFILE"]);
    clone.fails_by("getdents64", &["EIO"]);
    clone.fails_by("write,pwrite64", &["EIO", "ENOSPC"]);
    clone.fails_by("read,pread64", &["EIO"]);
    clone.fails_by("lseek", &["EIO"]);
    clone.fails_by("ftruncate", &["EFBIG"]);
}

#[test]
fn making_entries_and_their_attributes() {
    let Some(clone) = Disturbed::on(FileSystem::Xfs, &[]) else { return };
    clone.fails_by("mkdirat", &["ENOSPC", "EDQUOT"]);
    clone.fails_by("symlinkat", &["EIO"]);
    clone.fails_by("mknodat", &["ENOSPC"]);
    clone.fails_by("linkat", &["EIO"]);
    clone.fails_by("renameat2", &["EIO", "ENOSPC", "EACCES"]);
    clone.fails_by("flock", &["EIO", "ENOLCK"]);
    clone.fails_by("readlinkat", &["EIO"]);
    // Attributes that are refused are reported.
    for (syscalls, error, code) in [
        ("fchown,fchownat", "EPERM", "owner_not_kept"),
        ("fsetxattr", "EOPNOTSUPP", "xattr_not_kept"),
        ("fsetxattr", "EPERM", "xattr_not_kept"),
    ] {
        let failures = clone.by(syscalls, error, |what, receipt| {
            let warnings = &receipt.unwrap()["warnings"];
            let told = warnings.as_array().unwrap().iter().any(|warning| warning["code"] == code);
            assert!(told, "{what}: {warnings}");
        });
        assert_eq!(failures, 0);
    }
}

#[test]
fn metadata() {
    let Some(clone) = Disturbed::on(FileSystem::Ext4, &[]) else { return };
    clone.fails_by("fchmod,fchmodat", &["EIO"]);
    clone.fails_by("fchown,fchownat", &["EIO", "EDQUOT"]);
    clone.fails_by("utimensat", &["EIO"]);
    clone.fails_by("flistxattr,llistxattr,fgetxattr", &["EIO"]);
    clone.fails_by("fsetxattr", &["EIO", "EDQUOT"]);
    clone.fails_by("fstat,newfstatat", &["EIO"]);
}

#[test]
fn a_refused_reflink_is_reported_and_any_other_failure_fails() {
    let Some(clone) = Disturbed::on(FileSystem::Xfs, &[]) else { return };
    clone.fails_by("ioctl", &["EIO"]);
    for error in ["EOPNOTSUPP", "ENOTTY", "EXDEV", "EINVAL", "ETXTBSY", "ENOSPC"] {
        let seen = std::cell::RefCell::new([0, 0]);
        let failures = clone.by("ioctl", error, |what, receipt| {
            let receipt = receipt.unwrap();
            let refused = receipt["strategy"] == "copy"
                && receipt["refused"].as_array().unwrap().iter().any(|refusal| refusal["strategy"] == "reflink");
            let fell_back = receipt["fell_back"].as_array().unwrap();
            if let Some(fell) = fell_back.first() {
                assert_eq!((&fell["from"], &fell["to"]), (&"reflink".into(), &"copy".into()), "{what}");
                assert_eq!((&fell["errno"], &fell["files"]), (&error.into(), &1.into()), "{what}");
            }
            let mut seen = seen.borrow_mut();
            seen[0] += usize::from(refused);
            seen[1] += usize::from(!fell_back.is_empty());
        });
        assert_eq!(failures, 0, "{error}");
        let [refused, fell_back] = seen.into_inner();
        // The probe's own call, unless the refusal concerns one file only, and those of the two files worth sharing.
        let tries_again = matches!(error, "EINVAL" | "ETXTBSY");
        assert!((refused >= 1 || tries_again) && fell_back >= 2, "{error}: {refused} refused, {fell_back} fell back");
    }
}

#[test]
fn where_extents_have_to_be_shared_every_refusal_fails() {
    let Some(clone) = Disturbed::on(FileSystem::Xfs, &["--require", "cow"]) else { return };
    // Exit code 3 where it is the strategy that is refused.
    for nth in 1..=40 {
        let injection = Injection { syscalls: "ioctl", fault: "error=EOPNOTSUPP", nth };
        let Some(outcome) = run_injected(&clone.command().command(), injection) else { return };
        let hit_a_reflink = outcome.trace.lines().any(|line| line.contains("CLONE") && line.contains("(INJECTED)"));
        let code = outcome.status.code().unwrap();
        assert_eq!(hit_a_reflink, code != 0, "{nth}: {code}: {}", outcome.trace);
        assert!(matches!(code, 0 | 1 | 3), "{nth}: {}", outcome.stderr);
        assert_eq!(clone.spot.join("dst").exists(), code == 0, "{nth}: {}", outcome.stderr);
        if code == 0 {
            let receipt: Value = serde_json::from_str(&outcome.stdout).unwrap();
            assert_eq!(receipt["bytes"]["written"], 0);
            remove_deep(clone.spot.join("dst"));
        }
        nothing_left(&clone.spot);
        if !outcome.injected {
            return;
        }
    }
    panic!("there are more than 40 calls");
}

#[test]
fn cleaning_up() {
    let Some(clone) = Disturbed::on(FileSystem::Xfs, &[]) else { return };
    clone.by("unlinkat", "EIO", |_, _| {});
    let Some(clone) = Disturbed::on(FileSystem::Btrfs, &[]) else { return };
    clone.by("unlinkat", "EIO", |_, _| {});
}

#[test]
fn what_older_kernels_lack_is_done_without() {
    let Some(clone) = Disturbed::on(FileSystem::Ext4, &[]) else { return };
    for (syscalls, error) in [
        ("close_range", "ENOSYS"),
        ("close_range", "EINVAL"),
        ("renameat2", "EINVAL"),
        ("renameat2", "ENOSYS"),
        ("openat2", "ENOSYS"),
        ("statx", "ENOSYS"),
    ] {
        let failures = clone.by(syscalls, error, |_, _| {});
        assert_eq!(failures, 0, "{syscalls}: {error}");
    }
    // A thread that cannot be started is no panic.
    clone.by("clone3,clone", "EAGAIN", |_, _| {});
    // A link beyond the limit becomes a file of its own.
    let failures = clone.by("linkat", "EMLINK", |what, receipt| {
        let warnings = &receipt.unwrap()["warnings"];
        assert_eq!(warnings[0]["code"], "hard_link_not_kept", "{what}: {warnings}");
    });
    assert_eq!(failures, 0);
}

#[test]
fn snapshots() {
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    spot.subvolume("src").file("a", b"1").dir("d");
    spot.subvolume("src/d/nested").file("b", b"2");
    let before = fingerprint(spot.join("src"));
    for (syscalls, error) in [("ioctl", "EIO"), ("ioctl", "ENOSPC"), ("ioctl", "EPERM"), ("openat", "EMFILE")] {
        let prepare = || {
            if spot.join("dst").exists() {
                rm().args(["-q", "--wait", "dst"]).within(&spot).succeeds();
            }
            cp().args(["-T", "--json", "--threads", "1", "src", "dst"]).within(&spot).command()
        };
        each_nth(syscalls, &format!("error={error}"), 100, prepare, |nth, outcome| {
            let shown = format!("{error} at call {nth} of {syscalls}: {}\n{}", outcome.stderr, outcome.trace);
            before.assert_unchanged(spot.join("src"));
            assert!(!outcome.stderr.contains("panicked"), "{shown}");
            assert_eq!(spot.join("dst").exists(), outcome.status.success(), "{shown}");
            if outcome.status.success() {
                // An empty stub where a subvolume was nested would show.
                assert_same(spot.join("src"), spot.join("dst"));
            }
            let left = leftovers(&spot);
            if !left.is_empty() {
                assert!(outcome.trace.matches("(INJECTED)").count() > 1 || is_only_a_lock(&left), "{shown}\n{left:?}");
                cp().args(["-q", "src/a", "again"]).within(&spot).succeeds();
                nothing_left(&spot);
                fs_err::remove_file(spot.join("again")).unwrap();
            }
        });
    }
}

#[test]
fn syncing_and_verifying() {
    let Some(clone) = Disturbed::on(FileSystem::Xfs, &["--sync", "--verify"]) else { return };
    clone.fails_by("syncfs", &["EIO"]);
    clone.fails_by("getdents64", &["EIO"]);
    remove_deep(clone.spot.join("dst"));
    // The last thing that is written to the disk is the clone's name.
    let injection = Injection { syscalls: "fsync", fault: "error=EIO", nth: 1 };
    let Some(outcome) = run_injected(&clone.command().command(), injection) else { return };
    assert!(outcome.injected && outcome.status.code() == Some(1), "{}", outcome.trace);
    assert!(clone.spot.join("dst").exists(), "{}", outcome.stderr);
    let told =
        "hint: the clone is in place and complete, but may not survive a power failure: check the disk (dmesg)\n";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    nothing_left(&clone.spot);
    assert_same(clone.spot.join("src"), clone.spot.join("dst"));
    clone.before.assert_unchanged(clone.spot.join("src"));
}

#[test]
fn a_replacement_that_fails_leaves_the_old_one() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    small_tree(&spot.join("src"));
    fs_err::create_dir(spot.join("place")).unwrap();
    let before = fingerprint(spot.join("src"));
    let is_old = || spot.join("place/dst/old").exists();
    for (syscalls, error) in
        [("renameat2", "EIO"), ("renameat2", "ENOSPC"), ("mkdirat", "ENOSPC"), ("flock", "EIO"), ("openat", "EMFILE")]
    {
        let prepare = || {
            eventually_nothing_left(spot.join("place"));
            if spot.join("place/dst").exists() {
                remove_deep(spot.join("place/dst"));
            }
            spot.tree("place/dst").file("old", b"1");
            cp().args(["--replace", "-T", "--threads", "1", "src", "place/dst"]).within(&spot).command()
        };
        each_nth(syscalls, &format!("error={error}"), 100, prepare, |nth, outcome| {
            let shown = format!("{error} at call {nth} of {syscalls}: {}\n{}", outcome.stderr, outcome.trace);
            before.assert_unchanged(spot.join("src"));
            assert!(!outcome.stderr.contains("panicked"), "{shown}");
            if is_old() {
                assert_eq!(fs_err::read_dir(spot.join("place/dst")).unwrap().count(), 1, "{shown}");
                assert!(!outcome.status.success(), "{shown}");
            } else {
                assert_same(spot.join("src"), spot.join("place/dst"));
                assert!(outcome.status.success(), "replaced, and yet a failure is reported: {shown}");
            }
            // What a disturbed clean-up or reaper left is swept by the next run.
            cp().args(["-q", "src", "place/again"]).within(&spot).succeeds();
            remove_deep(spot.join("place/again"));
            eventually_nothing_left(spot.join("place"));
        });
    }
}

#[test]
fn a_removal_that_fails_says_so_and_can_be_repeated() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    for (syscalls, error) in [("unlinkat", "EIO"), ("openat", "EMFILE"), ("getdents64", "EIO"), ("renameat2", "EIO")] {
        let prepare = || {
            small_tree(&spot.join("tree"));
            rm().args(["--wait", "tree"]).within(&spot).command()
        };
        each_nth(syscalls, &format!("error={error}"), 100, prepare, |nth, outcome| {
            let shown = format!("{error} at call {nth} of {syscalls}: {}\n{}", outcome.stderr, outcome.trace);
            assert!(!outcome.stderr.contains("panicked"), "{shown}");
            if outcome.status.success() {
                assert!(!spot.join("tree").exists(), "{shown}");
            }
            rm().args(["-q", "-f", "tree"]).within(&spot).succeeds();
            spot.tree("more").dir("d");
            rm().args(["-q", "more"]).within(&spot).succeeds();
            eventually_nothing_left(&spot);
        });
    }
}
