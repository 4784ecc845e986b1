//! Pulls that were interrupted: the next one goes on where they were.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use calve_testkit::{SplitMix64, assert_same};
use rustix::process::Signal;

use super::server::{Answer, Server};
use super::{has_nothing, pull, push, registry, template, tree};
use crate::process::send;
use crate::spot::{Spot, eventually, names};

/// Returns how much of images is in that home.
pub(super) fn arrived(spot: &Spot, home: &str) -> u64 {
    let directory = spot.join(home).join("templates/arrivals");
    if !directory.exists() {
        return 0;
    }
    names(&directory).iter().map(|name| fs_err::metadata(directory.join(name)).unwrap().len()).sum()
}

/// A template of several layers. Returns the size of what a pull of all of it fetches.
fn pushed() -> Option<(Server, Spot, u64)> {
    let (server, spot) = registry()?;
    for number in 0..6 {
        spot.tree("src").file(format!("part{number}"), SplitMix64::new(number).bytes(2_500_000));
    }
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    let pulled = pull(&spot, "third", &server, "shop").succeeds().json();
    let all = server.blob_bytes();
    assert_eq!(pulled["fetched_bytes"], all);
    Some((server, spot, all))
}

/// From now on the registry sends so many bytes of blobs, and no more.
pub(super) fn send_only(server: &Server, bytes: u64) {
    let left = Arc::new(AtomicU64::new(bytes));
    server.rule(move |asked| if asked.is_blob() { Answer::UpTo(Arc::clone(&left)) } else { Answer::Pass });
}

/// Kills a pull when it has got so many bytes of blobs, of which so many are small ones of which no part is kept.
pub(super) fn kill_after(spot: &Spot, server: &Server, home: &str, image: &str, (bytes, small): (u64, u64)) {
    let before = arrived(spot, home);
    send_only(server, bytes);
    let running = pull(spot, home, server, image).start();
    eventually("all of it has arrived", || arrived(spot, home) >= before + bytes - small);
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    server.rule(|_| Answer::Pass);
    server.blob_bytes();
}

#[test]
fn a_pull_goes_on_where_one_was_killed() {
    let Some((server, spot, all)) = pushed() else { return };
    for part in [0, 1, 40, 99] {
        let bytes = all * part / 100;
        kill_after(&spot, &server, "other", "shop", (bytes, 0));
        has_nothing(&spot, "other");
        let pulled = pull(&spot, "other", &server, "shop").succeeds().json();
        assert_eq!((&pulled["fetched_bytes"], server.blob_bytes()), (&(all - bytes).into(), all - bytes));
        assert_same(spot.join("src"), tree(&spot, "other", "shop"));
        assert_eq!(arrived(&spot, "other"), 0);
        template(&spot, "other", &["remove", "-q", "shop"]).succeeds();
    }
    // Killed again and again.
    (0..5).for_each(|_| kill_after(&spot, &server, "other", "shop", (all / 6, 0)));
    pull(&spot, "other", &server, "shop").succeeds();
    assert_eq!(server.blob_bytes(), all - 5 * (all / 6));
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn of_a_newer_image_only_the_rest_of_the_changed_parts_is_fetched() {
    let Some((server, spot)) = registry() else { return };
    for number in 0..8 {
        spot.tree("src").file(format!("{number}/data"), SplitMix64::new(number).bytes(400_000));
        spot.tree("src").file(format!("{number}/small"), b"1");
    }
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    ["other", "third"].into_iter().for_each(|home| drop(pull(&spot, home, &server, "shop").succeeds()));
    fs_err::write(spot.join("src/3/data"), SplitMix64::new(33).bytes(400_000)).unwrap();
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    // With another tag it is no delta.
    push(&spot, &server, "shop:v2").succeeds();
    server.blob_bytes();
    let pulled = pull(&spot, "third", &server, "shop:v2").succeeds().json();
    let all = server.blob_bytes();
    assert_eq!(pulled["fetched_bytes"], all);
    assert!((400_000..600_000).contains(&all), "{all}");
    // The manifest comes first. It is too small to be worth keeping parts of.
    kill_after(&spot, &server, "other", "shop:v2", (200_000, 9_999));
    pull(&spot, "other", &server, "shop:v2").succeeds();
    let rest = server.blob_bytes();
    assert!((all - 200_000..=all - 190_000).contains(&rest), "{rest} of {all}");
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn what_has_arrived_is_private_and_is_checked_and_kept_for_a_week() {
    let Some((server, spot, all)) = pushed() else { return };
    kill_after(&spot, &server, "late", "shop", (all / 2, 0));
    let directory = spot.join("late/templates/arrivals");
    let files: Vec<_> = names(&directory).into_iter().map(|name| directory.join(name)).collect();
    let age = |days: u64| {
        let time = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        files.iter().for_each(|file| fs_err::File::open(file).unwrap().set_modified(time).unwrap());
        has_nothing(&spot, "late");
    };
    age(6);
    assert_eq!(arrived(&spot, "late"), all / 2);
    age(8);
    assert_eq!(arrived(&spot, "late"), 0);
    kill_after(&spot, &server, "other", "shop", (all / 2, 0));
    let directory = spot.join("other/templates/arrivals");
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let (mut damaged, mut rest) = (0, 0);
    for name in names(&directory) {
        let path = directory.join(&name);
        assert_eq!(mode(&path), 0o600);
        let mut bytes = fs_err::read(&path).unwrap();
        let Some(byte) = bytes.first_mut() else { continue };
        *byte ^= 1;
        // It is `<digest>.0-<size>`.
        rest += name.rsplit_once('-').unwrap().1.parse::<u64>().unwrap() - bytes.len() as u64;
        damaged += bytes.len() as u64;
        fs_err::write(&path, bytes).unwrap();
    }
    assert_eq!(damaged, all / 2);
    let pulled = pull(&spot, "other", &server, "shop").succeeds().json();
    // The rest of the damaged parts, and then everything.
    assert_eq!((&pulled["fetched_bytes"], server.blob_bytes()), (&(all + rest).into(), all + rest));
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    assert_eq!(arrived(&spot, "other"), 0);
}

#[test]
fn a_registry_that_falls_silent_ends_the_pull_and_no_other() {
    let Some((server, spot, all)) = pushed() else { return };
    send_only(&server, all / 2);
    let silent = || pull(&spot, "other", &server, "shop").env("CALVE_TEST_SILENCE", "2");
    silent().fails(1).says(&["fetch a part of the image at ", ": nothing came for 2 s\n", "hint: check the name"]);
    has_nothing(&spot, "other");
    server.blob_bytes();
    // What had come until then is not fetched again.
    server.rule(|_| Answer::Pass);
    let before = arrived(&spot, "other");
    pull(&spot, "other", &server, "shop").succeeds();
    assert!(before > 0);
    assert_eq!(server.blob_bytes(), all - before);
    // One that is slow is waited for.
    let is_first = AtomicBool::new(true);
    server.rule(move |asked| match asked.is_blob() && is_first.swap(false, Ordering::SeqCst) {
        true => Answer::Slowly(5),
        false => Answer::Pass,
    });
    server.asked();
    // It takes four seconds, but is never silent for three.
    pull(&spot, "slow", &server, "shop").env("CALVE_TEST_SILENCE", "3").succeeds();
    let blobs = server.asked().into_iter().filter(|asked| asked.is_blob()).map(|asked| asked.line);
    let (asked, different) = (blobs.clone().count(), blobs.collect::<HashSet<_>>().len());
    assert_eq!(asked, different);
    assert_same(spot.join("src"), tree(&spot, "slow", "shop"));
    // A pull beside one that hangs fetches for itself.
    send_only(&server, all / 2);
    let hanging = pull(&spot, "beside", &server, "shop").start();
    eventually("half of it has arrived", || arrived(&spot, "beside") == all / 2);
    server.rule(|_| Answer::Pass);
    pull(&spot, "beside", &server, "shop").succeeds();
    assert_same(spot.join("src"), tree(&spot, "beside", "shop"));
    send(hanging.id(), Signal::KILL);
    assert!(hanging.wait().was_killed());
    template(&spot, "beside", &["verify", "-q", "shop"]).succeeds();
}

#[test]
fn a_tag_that_moves_meanwhile_does_not_mix_two_images() {
    let Some((server, spot, _)) = pushed() else { return };
    let first = fs_err::read(spot.join("src/part0")).unwrap();
    let old = template(&spot, "home", &["show", "--json", "shop"]).succeeds().json();
    // The pull has the image's manifest, and waits for its first blob.
    let (asks, asked) = mpsc::channel();
    let (go_on, answers) = mpsc::channel::<()>();
    let (asks, answers, is_first) = (Mutex::new(asks), Mutex::new(answers), AtomicBool::new(true));
    server.rule(move |asked| {
        if asked.is_blob() && is_first.swap(false, Ordering::SeqCst) {
            asks.lock().unwrap().send(()).unwrap();
            answers.lock().unwrap().recv().unwrap();
        }
        Answer::Pass
    });
    let running = pull(&spot, "other", &server, "shop").start();
    asked.recv().unwrap();
    fs_err::write(spot.join("src/part0"), b"new").unwrap();
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    let moved = push(&spot, &server, "shop").succeeds().json();
    go_on.send(()).unwrap();
    let ran = running.ends(0);
    let pulled = ran.json();
    assert_ne!(pulled["digest"], moved["digest"]);
    assert_eq!(fs_err::read(tree(&spot, "other", "shop").join("part0")).unwrap(), first);
    assert_eq!(template(&spot, "other", &["show", "--json", "shop"]).succeeds().json()["key"], old["key"]);
    // The next one gets the new image.
    let pulled = pull(&spot, "other", &server, "shop").succeeds().json();
    assert_eq!(pulled["digest"], moved["digest"]);
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}
