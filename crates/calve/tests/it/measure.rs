//! `calve probe --measure`: the numbers are kept, believed only where they hold, and used by `calve cp`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use calve_testkit::{Fault, FileSystem, Injection, Unprivileged, Volume, remove_deep, require_root, run_injected};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::send;
use crate::program::{Calve, Reachable, cp, keys_in_order, probe};
use crate::spot::{Spot, eventually, leftovers, nothing_left};

/// A place on a file system, and a CALVE_HOME of its own.
struct Kept {
    spot: Spot,
    home: tempfile::TempDir,
}

impl Kept {
    /// With files that a reflink may copy: 3,000 and 9,000 bytes, and one that it never copies.
    fn on(file_system: FileSystem) -> Option<Self> {
        let spot = Spot::on(file_system)?;
        spot.tree("src").file("small", vec![1; 3000]).file("middle", vec![2; 9000]).file("large", vec![3; 100_000]);
        Some(Self { spot, home: tempfile::tempdir().unwrap() })
    }

    /// [`Self::on`], measured.
    fn measured_on(file_system: FileSystem) -> Option<Self> {
        let kept = Self::on(file_system)?;
        kept.at_home(probe().arg("--measure")).succeeds();
        Some(kept)
    }

    fn at_home(&self, command: Calve) -> Calve {
        command.within(&self.spot).env("CALVE_HOME", self.home.path())
    }

    /// The one file that is kept.
    fn file(&self) -> PathBuf {
        let mut files = fs_err::read_dir(self.home.path().join("measured")).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        file
    }

    fn document(&self) -> Value {
        serde_json::from_str(&fs_err::read_to_string(self.file()).unwrap()).unwrap()
    }

    /// Keeps what was measured, with one answer changed.
    fn change(&self, name: &str, value: Value) {
        let mut document = self.document();
        document[name] = value;
        fs_err::write(self.file(), document.to_string()).unwrap();
    }

    /// Expects a clone to write so many bytes, of 3,000, 9,000 and 100,000, and to share the rest.
    #[track_caller]
    fn writes(&self, bytes: u64) {
        self.writes_at(self.home.path(), bytes);
    }

    #[track_caller]
    fn writes_at(&self, home: &Path, bytes: u64) {
        let mut seen = Vec::new();
        // Files that are not in memory are shared whatever their size, and anybody may empty the caches at any time.
        while !seen.contains(&bytes) {
            assert!(seen.len() < 50, "{bytes} are to be written, but {seen:?}");
            for name in ["small", "middle", "large"] {
                fs_err::read(self.spot.join("src").join(name)).unwrap();
            }
            let command = cp().args(["--json", "src", "dst"]).within(&self.spot).env("CALVE_HOME", home);
            let ran = command.succeeds();
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            seen.push(ran.json()["bytes"]["written"].as_u64().unwrap());
            remove_deep(self.spot.join("dst"));
        }
    }

    /// Expects the kept file not to be believed, for a reason with these words, and clones to be made as without it.
    #[track_caller]
    fn is_ignored(&self, words: &str) {
        let report = self.at_home(probe().args(["--json", "src", "."])).succeeds().json();
        assert!(report["measured"].is_null(), "{words}: {report}");
        let reason = report["measured_ignored"].as_str().unwrap_or_else(|| panic!("{words}: {report}"));
        assert!(reason.contains(words), "{reason}");
        assert_eq!(report["copy_up_to_bytes"], BUILT_IN, "{words}");
        let table = self.at_home(probe()).succeeds();
        assert!(table.stdout.contains("the kept measurement is not used: "), "{}", table.stdout);
        self.writes(12_000);
    }
}

/// For XFS.
const BUILT_IN: u64 = 16 * 1024;

#[test]
fn what_was_measured_is_printed_and_kept() {
    for file_system in FileSystem::ALL {
        let Some(kept) = Kept::on(file_system) else { return };
        let ran = kept.at_home(probe().args(["--measure", "--json", "src", "."])).succeeds();
        assert_eq!(ran.stderr, "");
        let report = ran.json();
        let expected = "at_unix_s machine kernel processors file_system volume mount_options create_us delete_us files \
                        reflink_refused snapshot overlay threads small_copies copy_up_to_bytes best_threads \
                        written_bytes elapsed_ms";
        assert_eq!(keys_in_order(&report["measured"]).join(" "), expected);
        assert_eq!(keys_in_order(&report["measured"]["files"][1]), ["size_bytes", "copy_us", "reflink_us"]);
        assert_eq!(keys_in_order(&report["measured"]["threads"][0]), ["threads", "file_us"]);
        assert_eq!(keys_in_order(&report["measured"]["snapshot"]), ["us", "reason", "remedy"]);
        assert_eq!(report["measured"]["file_system"], file_system.name());
        assert!(report["measured_ignored"].is_null());
        nothing_left(&kept.spot);
        let mode = fs_err::metadata(kept.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut document = kept.document();
        assert_eq!(document.as_object_mut().unwrap().shift_remove("schema"), Some(json!("calve.measured/1")));
        assert_eq!(document, report["measured"]);
        // The next probe shows the same, and for how long it has been known.
        let again = kept.at_home(probe().args(["--json", "src", "."])).succeeds().json();
        assert_eq!(again, report);
        kept.change("at_unix_s", json!(document["at_unix_s"].as_u64().unwrap() - 3 * 3600));
        let table = kept.at_home(probe()).succeeds().stdout;
        for words in ["measured 3 hours ago on ", "16 KiB", "create, empty", "overlay mount", "by threads  1: "] {
            assert!(table.contains(words), "{words}: {table}");
        }
    }
}

#[test]
fn it_decides_what_a_clone_copies() {
    let Some(kept) = Kept::measured_on(FileSystem::Xfs) else { return };
    for (limit, written) in [(0, 0), (4096, 3000), (16384, 12_000)] {
        kept.change("copy_up_to_bytes", json!(limit));
        kept.writes(written);
        let report = kept.at_home(probe().args(["--json", "src", "."])).succeeds().json();
        assert_eq!(report["copy_up_to_bytes"], limit);
    }
    // Elsewhere it does not count.
    let Some(other) = Kept::on(FileSystem::Xfs) else { return };
    kept.change("copy_up_to_bytes", json!(0));
    other.writes_at(kept.home.path(), 12_000);
}

#[test]
fn it_decides_how_many_threads_a_clone_has() {
    let Some(kept) = Kept::measured_on(FileSystem::Xfs) else { return };
    let started = |dst: &str, threads: &[&str]| {
        let command = kept.at_home(cp().args(["-q", "src", dst]).args(threads)).command();
        // Nothing is injected: there are not so many.
        let injection = Injection { syscalls: "clone,clone3", fault: Fault::Error("EAGAIN"), nth: 1000 };
        let outcome = run_injected(&command, injection)?;
        assert!(outcome.status.success(), "{}", outcome.stderr);
        Some(outcome.trace.lines().filter(|line| line.contains("clone")).count())
    };
    kept.change("best_threads", json!(1));
    let Some(one) = started("one", &[]) else { return };
    kept.change("best_threads", json!(6));
    assert_eq!(started("six", &[]), Some(one + 5));
    assert_eq!(started("two", &["--threads", "2"]), Some(one + 1), "the user's word counts more");
}

#[test]
fn what_does_not_hold_is_ignored_and_said_so() {
    let Some(kept) = Kept::measured_on(FileSystem::Xfs) else { return };
    kept.change("copy_up_to_bytes", json!(0));
    kept.writes(0);
    let whole = fs_err::read(kept.file()).unwrap();
    let then = |days: u64| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        json!(now - days * 24 * 3600)
    };
    let changes = [
        ("machine", json!("another"), "another machine"),
        ("kernel", json!("5.4.0"), "another kernel, 5.4.0"),
        ("processors", json!(63), "another number of processors"),
        ("volume", json!("00"), "another file system or mount"),
        ("mount_options", json!("rw"), "another file system or mount"),
        ("at_unix_s", then(91), "too old"),
        ("at_unix_s", json!(u64::MAX), "too old"),
        ("schema", json!("calve.measured/0"), "damaged"),
    ];
    for (name, value, words) in changes {
        kept.change(name, value);
        kept.is_ignored(words);
        fs_err::write(kept.file(), &whole).unwrap();
    }
    for text in [&whole[..whole.len() / 2], b"", b"\0\0\0\0", b"\xff\xfe"] {
        fs_err::write(kept.file(), text).unwrap();
        let words = if text == b"\xff\xfe" { "UTF-8" } else { "damaged" };
        kept.is_ignored(words);
    }
    // Measuring again repairs it.
    kept.at_home(probe().arg("--measure")).succeeds();
    assert!(kept.at_home(probe().arg("--json")).succeeds().json()["measured"].is_object());
}

#[test]
fn a_file_that_others_may_have_written_is_ignored() {
    let Some(kept) = Kept::measured_on(FileSystem::Xfs) else { return };
    kept.change("copy_up_to_bytes", json!(0));
    let file = kept.file();
    kept.writes(0);
    fs_err::set_permissions(&file, PermissionsExt::from_mode(0o620)).unwrap();
    kept.is_ignored("can be changed by others");
    fs_err::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    rustix::fs::chown(&file, Some(rustix::fs::Uid::from_raw(Unprivileged::UID)), None).unwrap();
    kept.is_ignored("belongs to another user");
    rustix::fs::chown(&file, Some(rustix::fs::Uid::from_raw(0)), None).unwrap();
    let elsewhere = kept.home.path().join("elsewhere");
    fs_err::rename(&file, &elsewhere).unwrap();
    fs_err::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    kept.is_ignored("is a symlink");
    // What the link leads to is not written to.
    let before = fs_err::read(&elsewhere).unwrap();
    kept.at_home(probe().arg("--measure")).succeeds();
    assert_eq!(fs_err::read(&elsewhere).unwrap(), before);
    assert!(fs_err::symlink_metadata(&file).unwrap().is_file());
    fs_err::remove_file(&file).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    kept.is_ignored("is not a regular file");
}

#[test]
fn without_a_place_to_keep_it_the_measurement_is_still_shown() {
    let Some(kept) = Kept::on(FileSystem::Tmpfs) else { return };
    let file = kept.home.path().join("file");
    fs_err::write(&file, "").unwrap();
    for home in [file.join("below"), PathBuf::from("/proc/none"), PathBuf::from("relative")] {
        let ran = probe().arg("--measure").within(&kept.spot).env("CALVE_HOME", &home).succeeds();
        assert!(ran.stdout.contains("measured just now on tmpfs"), "{}", ran.stdout);
        assert!(ran.stderr.starts_with("warning: the measurement is not kept"), "{}", ran.stderr);
        kept.spot.holds(&["src"]);
    }
    assert_eq!(fs_err::read(&file).unwrap(), b"");
}

#[test]
fn it_is_kept_in_the_data_directory_of_the_user() {
    let Some(kept) = Kept::on(FileSystem::Tmpfs) else { return };
    let data = kept.home.path().join("data");
    let measure = || probe().arg("--measure").within(&kept.spot).env("CALVE_HOME", "");
    measure().env("XDG_DATA_HOME", &data).succeeds();
    assert!(data.join("calve/measured").is_dir());
    measure().env("XDG_DATA_HOME", "relative").env("HOME", kept.home.path()).succeeds();
    assert!(kept.home.path().join(".local/share/calve/measured").is_dir());
    kept.spot.holds(&["src"]);
}

#[test]
fn a_place_that_cannot_be_measured_is_an_error() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    volume.remount_read_only();
    probe().args(["--measure", "."]).within(volume.path()).fails(1).says(&["Read-only file system"]).hints();
    volume.remount_writable();
    nothing_left(volume.path());
    let Some(small) = Volume::with_size(FileSystem::Ext4, 32 << 20) else { return };
    probe().args(["--measure", "."]).within(small.path()).fails(1).says(&["bytes, and only"]).hints();
    nothing_left(small.path());
    probe().args(["--measure", "missing/too"]).within(small.path()).fails(1).says(&["does not exist"]).hints();
}

#[test]
fn room_that_runs_out_on_the_way_leaves_nothing() {
    let Some(kept) = Kept::on(FileSystem::Xfs) else { return };
    // However slow the machine is, and however few the trials therefore are, there are as many as the first of each two.
    for (syscalls, nth, there_is) in [
        ("write", 20, true),
        ("write", 100, false),
        ("openat", 60, true),
        ("openat", 300, false),
        ("mkdirat", 5, true),
        ("mkdirat", 20, false),
        ("ioctl", 10, true),
        ("ioctl", 50, false),
    ] {
        let command = kept.at_home(probe().arg("--measure")).command();
        let injection = Injection { syscalls, fault: Fault::Error("ENOSPC"), nth };
        let Some(outcome) = run_injected(&command, injection) else { return };
        if !outcome.injected {
            assert!(!there_is && outcome.status.success(), "{syscalls}: there are not so many: {}", outcome.stderr);
        } else if syscalls == "ioctl" {
            // The file is copied instead, as in every clone.
            assert!(outcome.status.success(), "{}", outcome.stderr);
        } else {
            assert_eq!(outcome.status.code(), Some(1), "{syscalls}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("No space left on device"), "{syscalls}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("hint: "), "{syscalls}: {}", outcome.stderr);
        }
        kept.spot.holds(&["src"]);
    }
}

#[test]
fn an_interrupted_measurement_leaves_nothing() {
    for file_system in FileSystem::ALL {
        let Some(kept) = Kept::on(file_system) else { return };
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let mut running = kept.at_home(probe().arg("--measure")).start();
            // The signals are heard before anything is made, and the end is some hundred milliseconds away.
            eventually("it has begun", || !leftovers(&kept.spot).is_empty() || running.has_ended());
            send(running.id(), signal);
            let ran = running.wait();
            ran.ended(130);
            assert_eq!(ran.stdout, "");
            kept.spot.holds(&["src"]);
        }
        assert!(!kept.home.path().join("measured").exists(), "nothing half measured is kept");
    }
}

#[test]
fn what_a_killed_measurement_leaves_the_next_command_removes() {
    for file_system in FileSystem::ALL {
        let Some(kept) = Kept::on(file_system) else { return };
        for (delay, next) in [(30, "cp"), (1500, "cp"), (400, "probe")] {
            let mut running = kept.at_home(probe().arg("--measure")).start();
            eventually("it has begun", || !leftovers(&kept.spot).is_empty() || running.has_ended());
            sleep(Duration::from_millis(delay));
            send(running.id(), Signal::KILL);
            running.wait();
            match next {
                "cp" => kept.at_home(cp().args(["-q", "src"]).arg(format!("after {delay}"))).succeeds(),
                _ => kept.at_home(probe().arg("--measure")).succeeds(),
            };
            nothing_left(&kept.spot);
        }
    }
}

#[test]
fn it_works_without_privileges() {
    if !require_root("another user") {
        return;
    }
    for file_system in FileSystem::ALL {
        let Some(kept) = Kept::on(file_system) else { return };
        rustix::fs::chmod(kept.home.path(), 0o777.into()).unwrap();
        let reachable = Reachable::new();
        let ran =
            kept.at_home(probe().args(["--measure", "--json", "src", "."])).by_somebody_else(&reachable).succeeds();
        assert_eq!(ran.stderr, "");
        let measured = &ran.json()["measured"];
        assert!(measured["overlay"]["reason"].as_str().unwrap().contains("Operation not permitted"), "{measured}");
        assert!(measured["overlay"]["remedy"].as_str().unwrap().contains("root"), "{measured}");
        assert_eq!(measured["snapshot"]["us"].is_number(), file_system == FileSystem::Btrfs, "{measured}");
        kept.spot.holds(&["src"]);
    }
}

#[test]
fn a_clone_does_not_need_to_know_where_home_is() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    for home in ["", "relative", "/proc/none", "/dev/null"] {
        let dst = format!("dst {}", home.replace('/', "_"));
        let ran = cp().args(["src", &dst]).within(&spot).env("CALVE_HOME", home).env("HOME", Path::new("")).succeeds();
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    }
}
