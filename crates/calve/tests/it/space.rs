//! `calve du` and `calve dedupe`, as their users meet them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calve_testkit::{
    FileSystem, Injection, SplitMix64, Tree, UnprivilegedUser, Volume, few_rounds, fingerprint, matrix,
    node_modules_like, rounds, run_injected,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::process::send;
use crate::program::{PROGRAM, Reachable, calve};

fn document(args: &[&str], volume: &Volume) -> Value {
    let home = volume.path().join("home");
    let text = calve(args).within(volume.path()).env("CALVE_HOME", home).succeeds().stdout;
    serde_json::from_str(&text).unwrap()
}

#[test]
fn both_commands_print_their_documents() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    Tree::new(volume.path()).file("a/x", &content).file("b/x", &content).file("b/y", &content).file("c/x", &content);
    let would = document(&["dedupe", "-n", "--json", "a", "b"], &volume);
    assert_eq!((&would["dry_run"], &would["shared"]["files"]), (&true.into(), &2.into()), "{would}");
    let did = document(&["dedupe", "--json", "a", "b"], &volume);
    assert_eq!((&did["schema"], &did["shared"]["files"]), (&"calve.dedupe/1".into(), &2.into()), "{did}");
    assert!(volume.path().join("home/hashes").is_dir());
    let again = document(&["dedupe", "--json", "a", "b"], &volume);
    assert_eq!((&again["already_shared_files"], &again["hashed"]["files"]), (&2.into(), &0.into()), "{again}");
    let reshared = document(&["dedupe", "--json", "--against", "a", "c"], &volume);
    assert_eq!(reshared["shared"]["files"], 1, "{reshared}");
    let du = document(&["du", "--json", "a", "b"], &volume);
    assert_eq!(du["schema"], "calve.du/1");
    assert!(du["total"]["frees_min"].as_u64() <= du["total"]["frees_max"].as_u64(), "{du}");
    assert_eq!(du["paths"].as_array().unwrap().len(), 2);
    // State is kept in the data directory of the user.
    let dedupe = || calve(["dedupe", "-q", "a", "b"]).within(volume.path()).env("CALVE_HOME", "");
    let data = volume.path().join("data");
    dedupe().env("XDG_DATA_HOME", &data).succeeds();
    assert!(data.join("calve/hashes").is_dir());
    dedupe().env("XDG_DATA_HOME", "relative").env("HOME", volume.path().join("home")).succeeds();
    assert!(volume.path().join("home/.local/share/calve/hashes").is_dir());
    assert!(!volume.path().join("relative").exists());
}

#[test]
fn links_name_what_they_lead_to_and_what_is_inside_is_refused() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let tree = Tree::new(volume.path()).file("a/x", &content).symlink("to-a", "a");
    let tree = tree.file("b/y", &content).symlink("to-b", "b").file("c/z", &content).symlink("to-z", "c/z");
    tree.file("a/in/x", &content).symlink("to-in", "a/in");
    let shared = |args: &[&str]| {
        let words = [&["dedupe", "-n", "--json"], args].concat();
        document(&words, &volume)["shared"]["files"].as_u64().unwrap()
    };
    assert_eq!(shared(&["--against", "a", "to-b"]), 1);
    assert_eq!(shared(&["--against", "to-a", "b"]), 1);
    assert_eq!(shared(&["--against", "to-a", "to-z", "to-b"]), 2);
    assert_eq!(shared(&["to-a", "b"]), 2);
    for [inside, against] in [["a/in", "a"], ["to-in", "to-a"], ["a/x", "a/."]] {
        let refused =
            calve(["dedupe", "-n", "--no-cache", "--against", against, inside]).within(volume.path()).fails(1);
        refused.says(&["is inside", "which `--against` leaves alone"]).hints();
    }
    for [same, against] in [["a", "a"], ["to-a", "a"], ["a/.", "to-a"], ["a/x", "a/x"]] {
        for option in ["-n", "-x"] {
            let refused = calve(["dedupe", option, "--no-cache", "--against", against, same]).within(volume.path());
            refused.fails(1).says(&["is the same as", "which `--against` leaves alone"]).hints();
        }
    }
    // The others share with it.
    assert_eq!(shared(&["--against", "a", "a", "b"]), 1);
}

#[test]
fn what_is_missing_or_closed_is_named_and_the_rest_is_counted() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(volume.path()).file("tree/a", "x");
    let ran = calve(["du", "--json", "none", "tree"]).within(volume.path()).ends(1);
    let ran = ran.says(&["`none` does not exist"]);
    assert_eq!(ran.json()["total"]["entries"]["files"], 1);
    let ran = calve(["du", "none"]).within(volume.path()).fails(1);
    assert_eq!(ran.says(&["`none` does not exist"]).stdout, "");
    // So is what cannot be read.
    let root = volume.path().join("closed");
    Tree::new(&root).file("a", "x").dir("closed").file("closed/b", "y").mode("closed", 0o000);
    let output = UnprivilegedUser::command(PROGRAM).args(["du", "--json"]).arg(&root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("permission denied") && text.contains("\"unreadable\": 1"), "{text}");
    // Nothing can be shared on ext4.
    let refused = calve(["dedupe", "."]).within(volume.path()).fails(1);
    refused.says(&["hint: keep them on btrfs, or on XFS made with reflink=1 (the default)\n"]);
    calve(["dedupe", "missing"]).within(volume.path()).fails(1);
}

#[test]
fn unreadable_operands_are_named_and_the_rest_is_done() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let tree = Tree::new(volume.path()).file("a/x", &content).file("b/x", &content).dir("closed").mode("closed", 0);
    let own = |tree: Tree, entry| tree.owner(entry, UnprivilegedUser::UID, UnprivilegedUser::GID);
    ["a", "a/x", "b", "b/x"].into_iter().fold(tree, own);
    let run = |arguments: &[&str]| {
        let mut command = UnprivilegedUser::command(PROGRAM);
        let output = command.args(arguments).current_dir(volume.path()).env("CALVE_HOME", "").output().unwrap();
        let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}{told}");
        assert!(told.contains("closed") && told.to_lowercase().contains("permission denied"), "{told}");
        said
    };
    let said = run(&["du", "--json", "closed", "a"]);
    let receipt: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&receipt["unreadable"], &receipt["skipped"][0]["path"]), (&1.into(), &"closed".into()), "{said}");
    assert_eq!((&receipt["paths"][0]["path"], &receipt["total"]["entries"]["files"]), (&"a".into(), &1.into()));
    let said = run(&["dedupe", "--no-cache", "--json", "a", "closed", "b"]);
    let receipt: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&receipt["unreadable"], &receipt["shared"]["files"]), (&1.into(), &1.into()), "{said}");
    // Nothing is done where none is left, or where the others were to share with it.
    assert_eq!(run(&["du", "closed"]), "");
    assert_eq!(run(&["dedupe", "--no-cache", "--against", "closed", "a", "b"]), "");
}

#[test]
fn sharing_fails_when_some_entries_could_not_be_read() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let content = SplitMix64::new(1).bytes(100_000);
    let [src, root] = ["src", "tree"].map(|name| volume.path().join(name));
    Tree::new(&src).file("a", &content);
    Tree::new(&root).file("a", &content).file("b", &content).dir("closed").file("closed/c", "y").mode("closed", 0o000);
    let with = src.to_str().unwrap();
    for arguments in [&["dedupe", "--no-cache", "--json"][..], &["dedupe", "--no-cache", "--against", with, "--json"]] {
        let output = UnprivilegedUser::command(PROGRAM).args(arguments).arg(&root).output().unwrap();
        let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}{told}");
        assert!(said.contains("\"unreadable\": 1"), "{said}");
        assert!(told.contains("closed") && told.contains("permission denied"), "{told}");
    }
}

#[test]
fn killed_at_random_moments_nothing_but_sharing_has_changed() {
    let mut random = SplitMix64::new(8);
    for file_system in matrix([FileSystem::Xfs, FileSystem::Btrfs]) {
        let Some(volume) = Volume::new(file_system) else { continue };
        let home = volume.path().join("home");
        let roots = ["a", "b"].map(|name| volume.path().join(name));
        let run = || {
            let mut command = Command::new(PROGRAM);
            command.args(["dedupe", "-q"]).args(&roots).env("CALVE_HOME", &home).stderr(Stdio::null());
            command
        };
        node_modules_like(&roots[0], 150);
        let (mut interrupted, mut whole) = (0, Duration::from_millis(60));
        for round in 0..=rounds(100) {
            // Anew, so that there is something to share.
            let _ = fs_err::remove_dir_all(&roots[1]);
            node_modules_like(&roots[1], 150);
            volume.settle();
            let before = roots.each_ref().map(fingerprint);
            let began = Instant::now();
            let mut running = run().spawn().unwrap();
            if round > 0 {
                std::thread::sleep(whole.mul_f64(random.below(1000) as f64 / 1000.0));
                send(running.id(), [Signal::KILL, Signal::INT][round % 2]);
            }
            let ended = running.wait().unwrap();
            // A machine is not always as fast as it was: in equilibrium seven of ten are interrupted.
            whole = match (round, ended.success()) {
                (0, true) => began.elapsed(),
                (0, false) => panic!("{ended}"),
                (_, true) => whole.mul_f64(0.8),
                (_, false) => whole.mul_f64(1.1),
            };
            interrupted += u32::from(!ended.success());
            before.iter().zip(&roots).for_each(|(before, root)| before.assert_unchanged(root));
        }
        assert!(few_rounds() || interrupted > 50, "{}: only {interrupted} were still running", file_system.name());
        let before = roots.each_ref().map(fingerprint);
        assert!(run().status().unwrap().success());
        before.iter().zip(&roots).for_each(|(before, root)| before.assert_unchanged(root));
    }
}

#[test]
fn files_of_others_and_what_is_closed_is_left_alone_and_said_to_be() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { continue };
        let [own, foreign] = [1, 2].map(|seed| SplitMix64::new(seed).bytes(100_000));
        let tree = Tree::new(volume.path().join("t")).file("mine/1", &own).file("mine/2", &own);
        let tree = tree.file("others/1", &foreign).file("others/2", &foreign).file("secret", &own);
        tree.dir("closed").file("closed/x", &own).mode("closed", 0o700).mode("secret", 0o600);
        let owner = format!("{}:{}", UnprivilegedUser::UID, UnprivilegedUser::GID);
        assert!(
            Command::new("chown").args(["-R", &owner]).arg(volume.path().join("t/mine")).status().unwrap().success()
        );
        let before = fingerprint(volume.path());
        for options in [&["-n"][..], &[]] {
            let words = [&["dedupe", "--json", "--no-cache", "t"], options].concat();
            let ran = calve(words).within(volume.path()).by_somebody_else(&reachable).ends(1);
            let report = ran.json();
            before.assert_unchanged(volume.path());
            assert_eq!(report["shared"]["files"], 1, "{options:?} {report:#}");
            let reasons = report["left_alone"].to_string();
            for words in ["another owner's, and not writable", "permission denied"] {
                assert!(reasons.contains(words), "{words}: {report:#}");
            }
            assert_eq!(report["unreadable"], 1, "{report:#}");
            assert!(report["skipped"].to_string().contains("closed"), "{report:#}");
        }
    }
}

#[test]
fn own_files_are_shared_with_those_of_others_in_any_order() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for paths in [["mine", "others"], ["others", "mine"]] {
        let Some(volume) = Volume::new(FileSystem::Btrfs) else { continue };
        let content = SplitMix64::new(1).bytes(100_000);
        Tree::new(volume.path()).file("mine/a", &content).file("mine/b", &content).file("others/b", &content);
        let owner = format!("{}:{}", UnprivilegedUser::UID, UnprivilegedUser::GID);
        assert!(Command::new("chown").args(["-R", &owner]).arg(volume.path().join("mine")).status().unwrap().success());
        let line = calve(["dedupe", "--json", "--no-cache"]).args(paths).within(volume.path());
        let report = line.by_somebody_else(&reachable).succeeds().json();
        assert_eq!(
            (&report["shared"]["files"], &report["left_alone"]),
            (&2.into(), &serde_json::json!([])),
            "{paths:?}"
        );
    }
}

/// Whichever call fails in the middle: every file keeps its contents, and the rest is reported.
#[test]
fn permission_denied_in_the_middle_changes_nothing_but_what_is_said() {
    for file_system in matrix(FileSystem::REFLINKING) {
        let Some(volume) = Volume::new(file_system) else { continue };
        let roots = ["a", "b"].map(|name| volume.path().join(name));
        for root in &roots {
            // Of the same size, so that they are hashed.
            let tree = Tree::new(root).file("one", SplitMix64::new(1).bytes(30_000));
            tree.file("two", SplitMix64::new(2).bytes(30_000)).file("d/three", SplitMix64::new(3).bytes(30_000));
        }
        let before = roots.each_ref().map(fingerprint);
        let mut told = 0;
        for (calls, error) in [("ioctl", "EPERM"), ("ioctl", "EACCES"), ("pread64", "EACCES"), ("openat", "EACCES")] {
            for nth in 1..=12 {
                let mut command = Command::new(PROGRAM);
                command.args(["dedupe", "--json", "--no-cache"]).args(&roots).env("CALVE_TEST_THREADS", "1");
                let injection = Injection { syscalls: calls, fault: &format!("error={error}"), nth };
                let Some(outcome) = run_injected(&command, injection) else { return };
                roots.iter().zip(&before).for_each(|(root, before)| before.assert_unchanged(root));
                let what = format!("{calls} {nth}: {}{}", outcome.stdout, outcome.stderr);
                match outcome.status.code() {
                    // The loader's own calls.
                    Some(127) => assert!(outcome.stderr.contains("shared libraries"), "{what}"),
                    Some(1) if outcome.stdout.contains("\"unreadable\": 1") => told += 1,
                    Some(1) => assert!(outcome.stderr.contains("error: "), "{what}"),
                    Some(0) => told += u32::from(outcome.stdout.contains("\"reason\"")),
                    _ => panic!("{what}"),
                }
            }
        }
        assert!(told > 5, "{told}");
        assert_eq!(document(&["dedupe", "--json", "a", "b"], &volume)["left_alone"].as_array().map(Vec::len), Some(0));
    }
}

/// The most memory of its own that a run has had, in bytes: looked at again and again until it has ended. How much of the program's file is
/// in memory is not counted, as that differs from run to run.
fn peak_memory_bytes(args: &[&str], volume: &Volume) -> u64 {
    let command = calve(args).within(volume.path()).env("CALVE_HOME", volume.path().join("home"));
    let command = command.env("CALVE_TEST_THREADS", "2");
    let mut running = command.start();
    let mut peak = 0;
    while !running.has_ended() {
        let status = fs_err::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) * 1024);
        std::thread::sleep(Duration::from_millis(1));
    }
    running.wait().ended(0);
    peak
}

/// Ten million files would take too long to make. What each of many takes tells what ten million take.
#[test]
fn memory_hardly_grows_with_the_number_of_files() {
    const FEW: usize = 1_000;
    const MANY: usize = 11_000;
    for file_system in matrix(FileSystem::REFLINKING) {
        let Some(volume) = Volume::new(file_system) else { continue };
        let make = |name: &str, files: usize| {
            for number in 0..files {
                let folder = volume.path().join(name).join((number / 500).to_string());
                if number % 500 == 0 {
                    fs_err::create_dir_all(&folder).unwrap();
                }
                // Not kept inline; each of another size, and of no other's.
                fs_err::write(folder.join(number.to_string()), vec![1; 2100 + number % 1900]).unwrap();
            }
        };
        make("few", FEW);
        make("many", MANY);
        let grows = |command: &[&str]| {
            // How much of the program's own file is in memory differs by up to two megabytes from run to run.
            let of = |tree: &str| {
                let args = [command, &[tree]].concat();
                let runs = if few_rounds() { 5 } else { 7 };
                let mut peaks: Vec<_> = (0..runs).map(|_| peak_memory_bytes(&args, &volume)).collect();
                peaks.sort_unstable();
                peaks[runs / 2] as f64
            };
            (of("many") - of("few")) / (MANY - FEW) as f64
        };
        // Of an inode a bit, and of an extent up to 48 bytes, which for a million extents and more go to a file. Of two
        // threads, however many processors there are: each has its own arenas.
        let of_du = grows(&["du", "--json"]);
        assert!(of_du < 200.0, "{}: {of_du} bytes a file", file_system.name());
        let of_dedupe = grows(&["dedupe", "-q", "-n", "--no-cache"]);
        assert!(of_dedupe < 400.0, "{}: {of_dedupe} bytes a file", file_system.name());
    }
}
