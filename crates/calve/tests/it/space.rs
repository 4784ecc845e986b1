//! `calve du`, `calve dedupe` and `calve reshare`, as their users meet them.

use std::process::Command;
use std::time::Duration;

use calve_testkit::{FileSystem, SplitMix64, Tree, Unprivileged, Volume, fingerprint, node_modules_like};
use rustix::process::Signal;
use serde_json::Value;

use crate::process::send;
use crate::program::{PROGRAM, calve};

fn document(args: &[&str], volume: &Volume) -> Value {
    let home = volume.path().join("home");
    let text = calve(args).within(volume.path()).env("CALVE_HOME", home).succeeds().stdout;
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_three_commands_print_their_documents() {
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
    let reshared = document(&["reshare", "--json", "c", "--with", "a"], &volume);
    assert_eq!(
        (&reshared["schema"], &reshared["shared"]["files"]),
        (&"calve.reshare/1".into(), &1.into()),
        "{reshared}"
    );
    let du = document(&["du", "--json", "a", "b"], &volume);
    assert_eq!(du["schema"], "calve.du/1");
    assert!(du["total"]["frees_min"].as_u64() <= du["total"]["frees_max"].as_u64(), "{du}");
    assert_eq!(du["paths"].as_array().unwrap().len(), 2);
}

#[test]
fn a_worktree_is_reshared_with_the_main_one() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(volume.path().join("main")).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    Tree::new(volume.path().join("main")).file("file", "x");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    git(&["worktree", "add", "-q", "../linked"]);
    let content = SplitMix64::new(1).bytes(100_000);
    Tree::new(volume.path()).file("main/modules/x", &content).file("linked/modules/x", &content);
    let report = document(&["reshare", "--json", "linked/modules"], &volume);
    assert_eq!(report["shared"]["files"], 1, "{report}");
    calve(["reshare", "main/modules"]).within(volume.path()).fails(2);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_counted() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let root = volume.path().join("tree");
    Tree::new(&root).file("a", "x").dir("closed").file("closed/b", "y").mode("closed", 0o000);
    let output = Unprivileged::command(PROGRAM).args(["du", "--json"]).arg(&root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("permission denied") && text.contains("\"unreadable\": 1"), "{text}");
}

#[test]
fn elsewhere_it_is_refused() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    calve(["dedupe", "."]).within(volume.path()).fails(1);
    calve(["dedupe", "missing"]).within(volume.path()).fails(1);
}

#[test]
fn killed_at_200_random_moments_nothing_but_sharing_has_changed() {
    let mut random = SplitMix64::new(8);
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { continue };
        let home = volume.path().join("home");
        let roots = ["a", "b"].map(|name| volume.path().join(name));
        for root in &roots {
            node_modules_like(root, 300);
        }
        let before = roots.each_ref().map(fingerprint);
        for round in 0..100 {
            let mut command = Command::new(PROGRAM);
            command.args(["dedupe", "-q"]).args(&roots).env("CALVE_HOME", &home);
            let mut running = command.spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(60_000)));
            send(running.id(), [Signal::KILL, Signal::INT][round % 2]);
            running.wait().unwrap();
            if round % 10 == 9 {
                for (root, before) in roots.iter().zip(&before) {
                    before.assert_unchanged(root);
                }
            }
        }
        calve(["dedupe", "-q"]).args(&roots).env("CALVE_HOME", &home).succeeds();
        for (root, before) in roots.iter().zip(&before) {
            before.assert_unchanged(root);
        }
    }
}
