//! Deltas: a push that keeps the layers of the image before, and a pull that fetches only new files.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{Aspect, SplitMix64, assert_same, assert_same_except, require_program, require_root};
use serde_json::Value;

use super::interrupted::kill_after;
use super::server::Server;
use super::{pull, push, registry, skopeo, template, tree};
use crate::spot::{Spot, names};

/// A directory, and what its entries are about to become.
fn first(spot: &Spot) {
    first_of(spot, 500);
}

fn first_of(spot: &Spot, files: u64) {
    for number in 0..files {
        let contents = SplitMix64::new(number).bytes(8_000);
        spot.tree("src").file(format!("d{:02}/f{number:04}", number / 50), contents);
    }
    spot.tree("src")
        .file("becomes a directory", b"1")
        .file("becomes a file/x/y", b"1")
        .file("gone/x", b"1")
        .file("keeps/in/it", b"1")
        .symlink("link", "a")
        .symlink("becomes a link", "nowhere")
        .file("linked", b"1")
        .hard_link("again", "linked")
        .file("mode", b"1")
        .file("time", b"1")
        .dir("closed")
        .mode("keeps/in", 0o700)
        .mtime("keeps/in", 7, 8)
        .mode("keeps", 0o711)
        .xattr("mode", "user.name", b"1");
}

/// Changes a part of what [`first`] made, and all kinds of entries.
fn change(spot: &Spot) {
    let src = spot.join("src");
    for number in (0..500).step_by(25) {
        fs_err::write(src.join(format!("d{:02}/f{number:04}", number / 50)), format!("changed {number}")).unwrap();
    }
    for number in (7..500).step_by(50) {
        fs_err::remove_file(src.join(format!("d{:02}/f{number:04}", number / 50))).unwrap();
    }
    for path in ["becomes a directory", "link", "becomes a link", "linked"] {
        fs_err::remove_file(src.join(path)).unwrap();
    }
    fs_err::write(src.join("keeps/in/it"), b"2").unwrap();
    for path in ["gone", "becomes a file"] {
        fs_err::remove_dir_all(src.join(path)).unwrap();
    }
    spot.tree("src")
        .file("becomes a directory/x", b"2")
        .file("becomes a file", b"2")
        .file("becomes a link", b"a file")
        .symlink("link", "b")
        .file("new/x", b"new")
        .hard_link("new/again", "d00/f0001")
        .hard_link("new/link", "link")
        .mode("mode", 0o600)
        .xattr("mode", "user.name", b"2")
        .mtime("time", 5, 123_456_789)
        .mode("closed", 0o500);
}

/// A template of it, pushed and pulled.
fn first_pulled(server: &Server, files: u64) -> Spot {
    let spot = Spot::anywhere();
    first_of(&spot, files);
    create(&spot);
    push(&spot, server, "shop").succeeds();
    pull(&spot, "other", server, "shop").succeeds();
    spot
}

fn create(spot: &Spot) {
    template(spot, "home", &["create", "-q", "shop", "src"]).succeeds();
}

fn refresh(spot: &Spot) {
    template(spot, "home", &["refresh", "-q", "shop"]).succeeds();
}

/// Returns the image's own manifest.
fn image(server: &Server, tag: &str) -> Value {
    serde_json::from_slice(&server.manifest(tag)).unwrap()
}

fn deltas(image: &Value) -> usize {
    let layers = image["layers"].as_array().unwrap();
    layers.iter().filter(|layer| layer["annotations"]["dev.calve.template.delta"].is_string()).count()
}

#[test]
fn a_newer_version_is_a_delta_and_arrives_as_it_is() {
    let Some((server, spot)) = registry() else { return };
    first(&spot);
    create(&spot);
    let full = push(&spot, &server, "shop").succeeds().json();
    let pulled = pull(&spot, "other", &server, "shop").succeeds().json();
    let before = image(&server, "shop");
    change(&spot);
    refresh(&spot);
    server.asked();
    let pushed = push(&spot, &server, "shop").succeeds().json();
    // The new files, the manifest and the configuration.
    assert_eq!(server.count("POST"), 3);
    let sent = |receipt: &Value| receipt["sent_bytes"].as_u64().unwrap();
    assert!(sent(&pushed) < sent(&full) / 50, "{pushed} after {full}");
    let after = image(&server, "shop");
    let kept = before["layers"].as_array().unwrap();
    assert_eq!((&full["kept_layers"], &pushed["kept_layers"]), (&0.into(), &kept.len().into()));
    assert_eq!((&after["layers"].as_array().unwrap()[..kept.len()], deltas(&after)), (&kept[..], 1));
    // A machine with the first version fetches a hundredth: the image's manifest, that of the delta, and the new files.
    server.asked();
    let newer = pull(&spot, "other", &server, "shop").succeeds().json();
    assert_eq!(server.asked().len(), 3);
    let fetched = |receipt: &Value| receipt["fetched_bytes"].as_u64().unwrap();
    assert!(fetched(&newer) < fetched(&pulled) * 3 / 100, "{newer} after {pulled}");
    assert_eq!(newer["portable_key"], pushed["portable_key"]);
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    // So does one who has nothing.
    pull(&spot, "third", &server, "shop").succeeds();
    assert_same(spot.join("src"), tree(&spot, "third", "shop"));
    let up_to_date = pull(&spot, "third", &server, "shop").succeeds().json();
    assert_eq!((&up_to_date["up_to_date"], fetched(&up_to_date)), (&true.into(), 0));
    // Pushing it again changes nothing, and so does a machine that has only pulled it.
    let again = push(&spot, &server, "shop").succeeds().json();
    assert_eq!((&again["digest"], sent(&again)), (&pushed["digest"], 0));
    let reference = format!("{}/shop", server.host);
    let theirs = template(&spot, "third", &["push", "--plain-http", "--json", "shop", &reference]).succeeds().json();
    assert_eq!(theirs["digest"], pushed["digest"]);
}

fn tagged(image: &str, tag: &str) -> String {
    format!("{image}:{tag}")
}

#[test]
fn a_new_tag_is_a_delta_to_the_newest_image_that_is_known_here() {
    let Some(server) = Server::new() else { return };
    let spot = first_pulled(&server, 500);
    let sent =
        |receipt: &Value| (receipt["kept_layers"].as_u64().unwrap() > 0, receipt["sent_bytes"].as_u64().unwrap());
    let full = image_bytes(&server, "shop");
    change(&spot);
    refresh(&spot);
    let (is_delta, bytes) = sent(&push(&spot, &server, &tagged("shop", "commit-1")).succeeds().json());
    assert!(is_delta && bytes < full / 25, "{bytes} of {full}");
    // A machine with the older version fetches the difference.
    let pulled = pull(&spot, "other", &server, &tagged("shop", "commit-1")).succeeds().json();
    assert!(pulled["fetched_bytes"].as_u64().unwrap() < full / 25, "{pulled}");
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    // Pulled there, it is the base for a push from there.
    let reference = |tag: &str| format!("{}/shop:{tag}", server.host);
    fs_err::write(spot.join("src/new/y"), "y").unwrap();
    template(&spot, "other", &["create", "-q", "mine", "src"]).succeeds();
    let words = ["push", "--plain-http", "--json", "mine"];
    let pushed =
        |home: &str, more: &[&str]| sent(&template(&spot, home, &[&words[..], more].concat()).succeeds().json());
    let (is_delta, bytes) = pushed("other", &[&reference("commit-2")]);
    assert!(is_delta && bytes < full / 25, "{bytes} of {full}");
    // A machine that knows nothing names a tag.
    template(&spot, "fresh", &["create", "-q", "mine", "src"]).succeeds();
    fs_err::write(spot.join("src/new/z"), "z").unwrap();
    template(&spot, "fresh", &["refresh", "-q", "mine"]).succeeds();
    let (is_delta, bytes) = pushed("fresh", &["--base", "commit-2", &reference("commit-3")]);
    assert!(is_delta && bytes < full / 25, "{bytes} of {full}");
    let refused =
        template(&spot, "fresh", &[&words[..], &["--base", "../x", &reference("commit-4")]].concat()).fails(2);
    refused.says(&["`../x` is not a tag"]);
    template(&spot, "blank", &["create", "-q", "mine", "src"]).succeeds();
    let full = template(&spot, "blank", &[&words[..], &["--base", "nowhere", &reference("commit-4")]].concat());
    full.succeeds().says(&["a full image was sent: there is no image `nowhere`, or a delta would save too little"]);
    // One that the registry does not have is no base, and the image is a full one.
    let notes = spot.join("home/templates/images");
    let [note] = &names(&notes)[..] else { panic!() };
    fs_err::write(notes.join(note), format!("sha256:{}\n", "0a".repeat(32))).unwrap();
    let (is_delta, _) = sent(&push(&spot, &server, &tagged("shop", "commit-5")).succeeds().json());
    assert!(!is_delta);
    pull(&spot, "last", &server, &tagged("shop", "commit-5")).succeeds();
    template(&spot, "last", &["verify", "shop"]).succeeds();
}

fn image_bytes(server: &Server, tag: &str) -> u64 {
    image(server, tag)["layers"].as_array().unwrap().iter().map(|layer| layer["size"].as_u64().unwrap()).sum()
}

#[test]
fn other_programs_unpack_a_delta() {
    let Some(server) = Server::new() else { return };
    if !require_program("skopeo") || !require_program("podman") || !require_root("podman's overlays") {
        return;
    }
    let spot = Spot::anywhere();
    first(&spot);
    // podman gives this mode to the root of every image.
    rustix::fs::chmod(spot.join("src"), 0o555.into()).unwrap();
    let [kept, removed, added] = ["k", "r", "a"].map(super::long_bytes);
    spot.tree("src").file(kept.join("in it"), b"1").file(&removed, b"1");
    create(&spot);
    push(&spot, &server, "shop").succeeds();
    change(&spot);
    fs_err::remove_file(spot.join("src").join(removed)).unwrap();
    spot.tree("src").file(added, b"2").mode(kept, 0o700);
    refresh(&spot);
    push(&spot, &server, "shop").succeeds();
    assert_eq!(deltas(&image(&server, "shop")), 1);
    let source = format!("docker://{}/shop", server.host);
    skopeo(&["copy", "-q", "--src-tls-verify=false", &source, "oci:image"], &spot);
    let podman = |args: &[&str]| {
        let store = ["--root", "store", "--runroot", "run", "--tmpdir", "run/tmp", "--storage-driver", "overlay"];
        let output = Command::new("podman").args(store).args(args).current_dir(&*spot).output().unwrap();
        assert!(output.status.success(), "podman {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let id = podman(&["pull", "-q", "oci:image"]);
    let _unmounted = Unmounted(spot.join("store/overlay"));
    let mounted = podman(&["image", "mount", &id]);
    // As in a full image, a directory that continues in a second layer may get another time, and no layer has a link into another.
    assert_same_except(spot.join("src"), &mounted, &[Aspect::Times, Aspect::HardLinks, Aspect::Holes]);
    let time = |path: &Path| fs_err::symlink_metadata(path).unwrap().modified().unwrap();
    for path in ["time", "keeps/in", "keeps", "d00", "d00/f0000"] {
        assert_eq!(time(&Path::new(&mounted).join(path)), time(&spot.join("src").join(path)), "{path}");
    }
}

/// Everything that podman mounts there goes at the end of a test, also of one that fails.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--recursive").arg(&self.0).output();
    }
}

#[test]
fn a_chain_of_deltas_ends_with_a_full_image() {
    let Some((server, spot)) = registry() else { return };
    first_of(&spot, 100);
    create(&spot);
    let mut lengths = Vec::new();
    for round in 0..11 {
        fs_err::write(spot.join("src/d00/f0001"), format!("round {round}")).unwrap();
        fs_err::write(spot.join(format!("src/new{round}")), b"1").unwrap();
        let _ = fs_err::remove_file(spot.join(format!("src/new{}", (round + 9) % 10)));
        refresh(&spot);
        push(&spot, &server, "shop").succeeds();
        lengths.push(deltas(&image(&server, "shop")));
        // One machine follows, one comes now and then, one comes at the end.
        for home in if round % 3 == 0 { &["follows", "seldom"][..] } else { &["follows"] } {
            pull(&spot, home, &server, "shop").succeeds();
            assert_same(spot.join("src"), tree(&spot, home, "shop"));
        }
        if round == 8 {
            pull(&spot, "late", &server, "shop").succeeds();
            assert_same(spot.join("src"), tree(&spot, "late", "shop"));
        }
    }
    assert_eq!(lengths, [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]);
    // A fifth of the bytes is too much for a delta, also if it comes bit by bit.
    let mut lengths = Vec::new();
    for part in 0..4_u64 {
        for number in part * 8..(part + 1) * 8 {
            let path = spot.join(format!("src/d{:02}/f{number:04}", number / 50));
            fs_err::write(path, SplitMix64::new(10_000 + number).bytes(8_000)).unwrap();
        }
        refresh(&spot);
        push(&spot, &server, "shop").succeeds();
        lengths.push(deltas(&image(&server, "shop")));
    }
    assert_eq!(lengths, [2, 3, 0, 1]);
    pull(&spot, "follows", &server, "shop").succeeds();
    assert_same(spot.join("src"), tree(&spot, "follows", "shop"));
}

#[test]
fn names_that_look_like_whiteouts_make_a_full_image() {
    let Some(server) = Server::new() else { return };
    let spot = first_pulled(&server, 100);
    for (path, is_delta) in
        [("d00/.wh.f0001", false), (".wh..wh..opq", false), (".wh.d00/x", false), ("d00/.whatever", true)]
    {
        spot.tree("src").file(path, b"1");
        for is_there in [true, false] {
            if !is_there {
                fs_err::remove_file(spot.join("src").join(path)).unwrap();
            }
            refresh(&spot);
            push(&spot, &server, "shop").succeeds();
            assert_eq!(deltas(&image(&server, "shop")) > 0, is_delta, "{path}");
            pull(&spot, "other", &server, "shop").succeeds();
            assert_same(spot.join("src"), tree(&spot, "other", "shop"));
        }
    }
    // A whiteout of a name this long would not be a name.
    let long = spot.join(format!("src/{}", "x".repeat(252)));
    fs_err::write(&long, b"1").unwrap();
    for _ in 0..2 {
        refresh(&spot);
        push(&spot, &server, "shop").succeeds();
        let _ = fs_err::remove_file(&long);
    }
    assert_eq!(deltas(&image(&server, "shop")), 0);
}

#[test]
fn a_pull_of_a_delta_goes_on_where_one_was_killed() {
    let Some((server, spot)) = registry() else { return };
    first(&spot);
    spot.tree("src").file("large", SplitMix64::new(1).bytes(300_000));
    create(&spot);
    push(&spot, &server, "shop").succeeds();
    pull(&spot, "other", &server, "shop").succeeds();
    pull(&spot, "third", &server, "shop").succeeds();
    fs_err::write(spot.join("src/large"), SplitMix64::new(2).bytes(300_000)).unwrap();
    refresh(&spot);
    push(&spot, &server, "shop").succeeds();
    server.blob_bytes();
    pull(&spot, "third", &server, "shop").succeeds();
    let all = server.blob_bytes();
    assert!((300_000..320_000).contains(&all), "{all}");
    kill_after(&spot, &server, "other", "shop", (200_000, 0));
    pull(&spot, "other", &server, "shop").succeeds();
    assert_eq!(server.blob_bytes(), all - 200_000);
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn a_file_that_the_version_here_has_lost_comes_from_the_layers_before() {
    let Some(server) = Server::new() else { return };
    let spot = first_pulled(&server, 500);
    let there = tree(&spot, "other", "shop");
    for damaged in ["d03/f0155", "d08/f0401", "time"] {
        fs_err::write(there.join(damaged), b"damaged").unwrap();
    }
    change(&spot);
    refresh(&spot);
    push(&spot, &server, "shop").succeeds();
    pull(&spot, "other", &server, "shop").succeeds();
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn a_tag_that_has_something_else_gets_a_full_image() {
    let Some((server, spot)) = registry() else { return };
    first(&spot);
    create(&spot);
    let full = push(&spot, &server, "shop:alone").succeeds().json();
    // Another template.
    spot.tree("different").file("a", SplitMix64::new(1).bytes(200_000)).file("b", b"1");
    template(&spot, "home", &["create", "-q", "different", "different"]).succeeds();
    for tag in ["shop:v1", "shop:v2"] {
        template(&spot, "home", &["push", "-q", "--plain-http", "different", &format!("{}/{tag}", server.host)])
            .succeeds();
    }
    let pushed = push(&spot, &server, "shop:v1").succeeds().json();
    assert_eq!(pushed["digest"], full["digest"]);
    // Something that is no template, and something whose manifest is damaged.
    let bytes = server.manifest("shop:v2");
    let text = String::from_utf8(bytes).unwrap();
    for (number, text) in [
        text.replace("dev.calve.template.key", "x.calve.template.key"),
        text.replace("dev.calve.template.manifest\":\"", "dev.calve.template.manifest\":\"1"),
    ]
    .into_iter()
    .enumerate()
    {
        let tag = format!("other{number}");
        server.put_manifest("shop", &tag, text.as_bytes());
        let pushed = push(&spot, &server, &format!("shop:{tag}")).succeeds().json();
        assert_eq!(pushed["digest"], full["digest"]);
    }
    // Something that is not to be used.
    fs_err::write(spot.join("src/newer"), b"1").unwrap();
    refresh(&spot);
    let length = |tag: &str| deltas(&image(&server, tag));
    push(&spot, &server, "shop:v1").args(["--full"]).succeeds();
    assert_eq!(length("shop:v1"), 0);
    push(&spot, &server, "shop:other0").succeeds();
    assert_eq!(length("shop:other0"), 1);
    // The registry has lost a layer.
    let layer = image(&server, "shop:v1")["layers"][0]["digest"].as_str().unwrap().to_owned();
    fs_err::write(spot.join("src/new"), b"1").unwrap();
    refresh(&spot);
    fs_err::remove_dir_all(spot.join("home/templates/images")).unwrap();
    server.rule(move |asked| match asked.line.starts_with("HEAD") && asked.line.contains(&layer) {
        true => super::Answer::Bytes(super::answer("404 Not Found", "", b"")),
        false => super::Answer::Pass,
    });
    push(&spot, &server, "shop:v1").succeeds();
    assert_eq!(deltas(&image(&server, "shop:v1")), 0);
}
