//! `calve template push` and `calve template pull`, with a real registry, and with everything that may go wrong on the way.

mod bad;
mod databases;
mod databases_bad;
mod deltas;
mod encrypted;
mod interrupted;
mod jobs;
mod proxy;
pub(crate) mod server;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use calve_testkit::{
    Aspect, FileSystem, assert_same, assert_same_except, few_rounds, is_root, node_modules_like, require_program,
    rounds,
};
use serde_json::Value;

use self::databases::has_ranges;
use self::server::{Answer, Server, answer};
use crate::kill::Killer;
use crate::program::{Calve, Reachable, calve};
use crate::spot::{Spot, eventually, names};

/// `calve template COMMAND`, with a home of that name.
fn template(spot: &Spot, home: &str, args: &[&str]) -> Calve {
    let args = ["template"].iter().chain(args);
    let home = spot.join(home);
    // No credentials but those that a test has.
    let command = calve(args).within(spot).env("HOME", spot.join("nobody")).env("XDG_CONFIG_HOME", spot.join("nobody"));
    command.env("XDG_RUNTIME_DIR", spot.join("nobody")).env("CALVE_HOME", home)
}

/// A registry, and a place for homes.
fn registry() -> Option<(Server, Spot)> {
    Some((Server::new()?, Spot::anywhere()))
}

fn push(spot: &Spot, server: &Server, image: &str) -> Calve {
    let reference = format!("{}/{image}", server.host);
    template(spot, "home", &["push", "--plain-http", "--json", "shop", &reference])
}

fn pull(spot: &Spot, home: &str, server: &Server, image: &str) -> Calve {
    template(spot, home, &["pull", "--plain-http", "--json", &format!("{}/{image}", server.host)])
}

/// Returns where a template of that home has its files.
fn tree(spot: &Spot, home: &str, name: &str) -> PathBuf {
    let shown = template(spot, home, &["show", "--json", name]).succeeds().json();
    shown["tree"].as_str().unwrap().into()
}

/// Nothing of a template is in that home, nor a part of one.
#[track_caller]
fn has_nothing(spot: &Spot, home: &str) {
    let listed = template(spot, home, &["list", "--json"]).succeeds().json();
    assert_eq!(listed["templates"], serde_json::json!([]));
    let trees = spot.join(home).join("templates/trees");
    let versions = spot.join(home).join("templates/versions");
    eventually("nothing is left", || {
        [&trees, &versions].iter().all(|place| !place.exists() || names(place).is_empty())
    });
}

/// Returns a path that is too long for the header of a tar and does not begin with UTF-8.
fn long_bytes(name: &str) -> PathBuf {
    Path::new(OsStr::from_bytes(b"\xe9t\xe9")).join(name.repeat(150))
}

fn a_bit_of_everything(spot: &Spot) {
    let long = format!("{}/{}", "d".repeat(150), "f".repeat(150));
    let random: Vec<u8> =
        (0..300_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    spot.tree("src")
        .file("a", b"1")
        .hard_link("sub/of a", "a")
        .file("sub/empty", b"")
        .file(&long, b"long")
        .file(long_bytes("a"), b"long, too")
        .hard_link(long_bytes("b"), long_bytes("a"))
        .symlink(long_bytes("c"), long_bytes("a"))
        .dir(long_bytes("d"))
        .file("new\nline \\ \u{e9}", b"2")
        .file("random", random)
        .sparse("sparse", 5_000_000, &[(3_000_000, b"middle")])
        .symlink("out", "../../out")
        .hard_link("sub/out, too", "out")
        .symlink("sub/absolute", "/etc/passwd")
        .dir("closed")
        .xattr("a", "user.name", b"val=ue\n\0")
        // Its owner may not write to it.
        .xattr("random", "user.name", b"1")
        .mode("sub", 0o1777)
        .mode("closed", 0o555)
        .mode("random", 0o400)
        .mtime("sub/empty", -1, 250_000_000)
        .mtime("out", 5, 7)
        .mtime("closed", 9, 123_456_789);
}

#[test]
fn a_template_is_the_same_after_a_push_and_a_pull() {
    let (Some(server), Some(spot)) = (Server::new(), Spot::on(FileSystem::Ext4)) else { return };
    a_bit_of_everything(&spot);
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let pushed = push(&spot, &server, "team/shop:v1").succeeds().json();
    assert_eq!(pushed["sent_bytes"], pushed["image_bytes"]);
    // By the same user everything is equal, so the key is.
    let pulled = pull(&spot, "other", &server, "team/shop:v1").succeeds().json();
    assert_eq!((&pulled["name"], &pulled["portable_key"]), (&"shop".into(), &pushed["portable_key"]));
    let key = |home| template(&spot, home, &["show", "--json", "shop"]).succeeds().json()["key"].clone();
    assert_eq!(key("home"), key("other"));
    template(&spot, "other", &["verify", "shop"]).succeeds();
    calve(["cp", "-q", "@shop", "copy"]).within(&spot).env("CALVE_HOME", spot.join("other")).succeeds();
    assert_same(spot.join("src"), spot.join("copy"));
    // Nobody may change it. A pull makes it again, of what is left of it.
    let changed = tree(&spot, "other", "shop").join("sub/empty");
    fs_err::write(&changed, "changed").unwrap();
    let copy = || calve(["cp", "-q", "@shop", "again"]).within(&spot).env("CALVE_HOME", spot.join("other"));
    for ran in [copy(), template(&spot, "other", &["verify", "shop"])] {
        let ran = ran.run().says(&["was changed after it was made", "hint: pull it again: "]);
        ran.ended(1);
    }
    let again = pull(&spot, "other", &server, "team/shop:v1").succeeds().json();
    assert_eq!((&again["up_to_date"], again["reused_bytes"].as_u64() > Some(6_000_000)), (&false.into(), true));
    copy().succeeds();
    assert_same(spot.join("src"), spot.join("again"));
    if is_root() {
        let reachable = Reachable::new();
        fs_err::create_dir(spot.join("theirs")).unwrap();
        rustix::fs::chmod(spot.join("theirs"), 0o777.into()).unwrap();
        let theirs = pull(&spot, "theirs/home", &server, "team/shop:v1").by_somebody_else(&reachable).succeeds().json();
        assert_eq!(theirs["portable_key"], pushed["portable_key"]);
        assert_ne!(theirs["key"], key("home"));
        let verify = template(&spot, "theirs/home", &["verify", "shop"]);
        verify.by_somebody_else(&reachable).succeeds();
        assert_same_except(spot.join("src"), theirs["tree"].as_str().unwrap(), &[Aspect::Owners]);
        // With mounts of its own.
        let apart = pull(&spot, "apart", &server, "team/shop:v1").under(&["unshare", "--mount"]).succeeds().json();
        assert_eq!(apart["portable_key"], pushed["portable_key"]);
        assert_same(spot.join("src"), apart["tree"].as_str().unwrap());
    }
}

#[test]
fn what_did_not_change_is_neither_sent_nor_fetched() {
    let Some((server, spot)) = registry() else { return };
    node_modules_like(spot.join("src"), 1000);
    for number in 0..40 {
        fs_err::write(spot.join(format!("src/part{number}")), [number; 1 << 20]).unwrap();
    }
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let first = push(&spot, &server, "shop").succeeds().json();
    assert!(first["layers"].as_u64() > Some(5), "{first}");
    pull(&spot, "other", &server, "shop").succeeds();
    server.asked();
    // Nothing at all.
    let again = push(&spot, &server, "shop").succeeds().json();
    assert_eq!((&again["sent_bytes"], &again["digest"]), (&0.into(), &first["digest"]));
    assert_eq!(server.count("POST"), 0);
    let ran = pull(&spot, "other", &server, "shop").succeeds().says(&["is up to date"]);
    assert_eq!(ran.json()["up_to_date"], true);
    // One file, and its directory.
    fs_err::write(spot.join("src/part7"), b"new").unwrap();
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    server.asked();
    push(&spot, &server, "shop").succeeds();
    // The first layer has the root, whose time is another; the layer of the file; the manifest; the configuration.
    let sent = server.count("POST");
    assert!((3..=5).contains(&sent), "{sent} blobs are sent");
    let pulled = pull(&spot, "other", &server, "shop").succeeds().json();
    let fetched = server.count("GET /v2/shop/blobs/");
    assert!((2..=3).contains(&fetched), "{fetched} blobs are fetched");
    assert!(pulled["reused_bytes"].as_u64() > Some(39 << 20), "{pulled}");
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn of_a_changed_layer_only_the_parts_with_changed_files_are_fetched() {
    let Some((server, spot)) = registry() else { return };
    let random = |seed: u32| {
        (0..100_000_u32).flat_map(move |number| (number ^ seed << 20).wrapping_mul(2_654_435_761).to_le_bytes())
    };
    for number in 0..16_u32 {
        spot.tree("src").file(format!("{number:02}/data"), random(number).collect::<Vec<u8>>());
        spot.tree("src")
            .file(format!("{number:02}/small"), b"1")
            .hard_link(format!("{number:02}/again"), format!("{number:02}/small"));
    }
    // The manifest has several parts, too.
    for number in 0..600 {
        spot.tree("src/many").file(format!("{number}{}", "x".repeat(200)), number.to_string());
    }
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    for home in ["parts", "single", "whole", "lies"] {
        pull(&spot, home, &server, "shop").succeeds();
    }
    for number in [3, 4, 12, 15] {
        fs_err::write(spot.join(format!("src/{number:02}/small")), b"new").unwrap();
    }
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    let image = push(&spot, &server, "shop:v2").args(["--full"]).succeeds().json()["image_bytes"].as_u64().unwrap();
    let has_range = |asked: &server::Asked| asked.head.to_ascii_lowercase().contains("range: bytes=");
    let fetched = |home| {
        server.asked();
        let pulled = pull(&spot, home, &server, "shop:v2").succeeds().json();
        assert_same(spot.join("src"), tree(&spot, home, "shop"));
        let blobs = server.asked().into_iter().filter(server::Asked::is_blob);
        let (parts, whole): (Vec<_>, Vec<_>) = blobs.partition(has_range);
        (pulled["fetched_bytes"].as_u64().unwrap(), parts.len(), whole.len())
    };
    // A part of the manifest, and no file of 400 kB.
    let (bytes, parts, whole) = fetched("parts");
    assert!(bytes < image / 100 && parts <= 6 && whole == 0, "{bytes} of {image} in {parts} parts, {whole} layers");
    // A registry that sends one part per answer: more requests, and the gaps as well.
    let refused = || Answer::Bytes(answer("416 Range Not Satisfiable", "", b""));
    server.rule(move |asked| if has_ranges(asked) { refused() } else { Answer::Pass });
    let (single_bytes, single_parts, whole) = fetched("single");
    assert!(single_bytes < image / 50 && single_parts > parts && whole == 0, "{single_bytes} in {single_parts} parts");
    // A part that is another one.
    server.rule(move |asked| if has_range(asked) { Answer::Change(|_, body| body[0] ^= 1) } else { Answer::Pass });
    pull(&spot, "lies", &server, "shop:v2").fails(1).says(&["a part of a blob with the wrong hash"]);
    assert_eq!(fs_err::read(tree(&spot, "lies", "shop").join("03/small")).unwrap(), b"1");
    // A registry that has no parts.
    server.rule(move |asked| if has_range(asked) { refused() } else { Answer::Pass });
    let (bytes, _, whole) = fetched("whole");
    assert!(bytes > image / 10 && whole > 1, "{bytes} of {image}");
}

#[test]
fn a_pull_replaces_only_what_was_pulled_from_there() {
    let Some((server, spot)) = registry() else { return };
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    // An unchanged template is moved to the directory that is named.
    pull(&spot, "other", &server, "shop").succeeds();
    for (at, is_up_to_date) in [("here", false), ("here", true), ("there", false)] {
        fs_err::create_dir_all(spot.join(at)).unwrap();
        let pulled = pull(&spot, "other", &server, "shop").args(["--at", at]).succeeds().json();
        assert_eq!(pulled["up_to_date"], is_up_to_date, "{at}");
        let tree = tree(&spot, "other", "shop");
        assert!(tree.starts_with(fs_err::canonicalize(spot.join(at)).unwrap()), "{}", tree.display());
        assert_same(spot.join("src"), tree);
    }
    // Without a directory it stays.
    assert_eq!(pull(&spot, "other", &server, "shop").succeeds().json()["up_to_date"], true);
    pull(&spot, "other", &server, "shop").args(["--at", "nowhere"]).fails(1).says(&["nowhere"]);
    let taken = pull(&spot, "home", &server, "shop")
        .fails(1)
        .says(&["was not pulled from", "hint: pull it under another name with `--name NAME`"]);
    assert_eq!(taken.json()["code"], "ERR_CALVE_REGISTRY");
    pull(&spot, "home", &server, "shop").args(["--name", "pulled"]).succeeds();
    let refused = template(&spot, "home", &["refresh", "pulled"]).fails(1);
    refused
        .says(&["was pulled", &format!("calve template pull --plain-http --name pulled {}/shop:latest", server.host)]);
    // One that is damaged is brought back by the command that the hint names.
    fs_err::remove_dir_all(tree(&spot, "home", "pulled")).unwrap();
    let hint = format!("calve template pull --plain-http --name pulled {}/shop:latest", server.host);
    let copy = || calve(["cp", "@pulled", "copy"]).within(&spot).env("CALVE_HOME", spot.join("home"));
    copy().fails(1).says(&[&format!("hint: pull it again: {hint}\n")]);
    template(&spot, "home", &hint.split(' ').skip(2).collect::<Vec<_>>()).succeeds();
    copy().succeeds();
    // A damaged file of the old version is fetched.
    fs_err::write(tree(&spot, "other", "shop").join("a"), b"2").unwrap();
    fs_err::write(spot.join("src/b"), b"3").unwrap();
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    pull(&spot, "other", &server, "shop").succeeds();
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    // From a directory it can be made anew.
    template(&spot, "home", &["refresh", "-q", "pulled", "src"]).succeeds();
    let base = template(&spot, "home", &["push", "--base", "ghcr.io/x/y:main", "pulled", "127.0.0.1:1/y"]).fails(2);
    base.says(&[
        "`ghcr.io/x/y:main` is not a tag",
        "hint: name only the tag of an image in the same repository, such as `main`",
    ]);
    template(&spot, "home", &["remove", "-q", "shop", "pulled"]).succeeds();
}

#[test]
fn what_would_change_who_may_do_what_is_not_pushed() {
    let (Some(server), Some(spot)) = (Server::new(), Spot::on(FileSystem::Ext4)) else { return };
    for (number, (what, tree)) in [
        ("the set-user-ID or the set-group-ID bit", spot.tree("src0").file("d/x", b"").mode("d/x", 0o4755)),
        ("is a device, a FIFO or a socket", spot.tree("src1").fifo("d/x")),
        ("has an access control list", spot.tree("src2").file("d/x", b"").acl("d/x", "u:1:rwx")),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("shop{number}");
        template(&spot, "home", &["create", "-q", &name, tree.path().to_str().unwrap()]).succeeds();
        let reference = format!("{}/shop", server.host);
        let ran = template(&spot, "home", &["push", "--plain-http", &name, &reference]).fails(1);
        ran.says(&["cannot be pushed: `d/x`", what, "hint: leave it out with `calve template refresh NAME --exclude GLOB`, or clear that bit or attribute in the source and refresh\n"]);
        template(&spot, "home", &["refresh", "-q", &name, "--exclude", "x"]).succeeds();
        template(&spot, "home", &["push", "-q", "--plain-http", &name, &reference]).succeeds();
    }
}

#[test]
fn of_two_first_pulls_of_different_images_the_later_one_is_tried_again() {
    let Some((server, spot)) = registry() else { return };
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop:one").succeeds();
    spot.tree("src").file("a", b"2");
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    push(&spot, &server, "shop:two").succeeds();
    let (reached, go_on) = databases::hold_first(&server, server::Asked::is_blob);
    let first = pull(&spot, "other", &server, "shop:one").start();
    reached.recv().unwrap();
    pull(&spot, "other", &server, "shop:two").succeeds();
    go_on.send(()).unwrap();
    let first = first.ends(1);
    first.says(&["was made, refreshed or removed by another process meanwhile", "hint: try again"]);
    pull(&spot, "other", &server, "shop:one").succeeds();
}

#[test]
fn pulls_that_are_killed_or_run_at_once_leave_nothing_half_done() {
    let Some((server, spot)) = registry() else { return };
    node_modules_like(spot.join("src"), 600);
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    let mut killer = Killer::new(21);
    let rounds = rounds(25);
    let all = pull(&spot, "third", &server, "shop").succeeds().json()["fetched_bytes"].as_u64().unwrap();
    for _ in 0..rounds {
        let ran = killer.let_run(pull(&spot, "other", &server, "shop"));
        let listed = template(&spot, "other", &["list", "--json"]).succeeds().json();
        let is_there = !listed["templates"].as_array().unwrap().is_empty();
        assert!(is_there || ran.was_killed());
        if is_there {
            template(&spot, "other", &["verify", "-q", "shop"]).succeeds();
            template(&spot, "other", &["remove", "-q", "shop"]).succeeds();
        }
        has_nothing(&spot, "other");
        if is_there {
            continue;
        }
        let arrived = interrupted::arrived(&spot, "other");
        let next = pull(&spot, "other", &server, "shop").succeeds().json();
        assert_eq!(next["fetched_bytes"], all - arrived, "{arrived} of {all} had arrived");
        assert_eq!(interrupted::arrived(&spot, "other"), 0);
        assert_same(spot.join("src"), tree(&spot, "other", "shop"));
        template(&spot, "other", &["remove", "-q", "shop"]).succeeds();
        has_nothing(&spot, "other");
    }
    assert!(few_rounds() || killer.killed() > rounds / 10, "{} were killed", killer.killed());
    // Two at once are both content.
    for _ in 0..3 {
        let both = [(); 2].map(|()| pull(&spot, "other", &server, "shop").start());
        both.into_iter().for_each(|running| running.wait().ended(0));
        assert_same(spot.join("src"), tree(&spot, "other", "shop"));
        template(&spot, "other", &["remove", "-q", "shop"]).succeeds();
        has_nothing(&spot, "other");
    }
}

#[test]
fn the_tag_comes_from_the_contents_of_files() {
    let Some((server, spot)) = registry() else { return };
    spot.tree("src").file("a", b"1");
    spot.tree("").file("lock", b"left-pad 1").file("node", b"22");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let pushed = push(&spot, &server, "shop:linux").args(["--key", "lock", "--key", "node"]).succeeds().json();
    let reference = pushed["reference"].as_str().unwrap();
    assert_eq!(reference.rsplit_once("linux-").map(|(_, key)| key.len()), Some(32), "{reference}");
    let keys = ["--if-key", "lock", "--if-key", "node"];
    let pulled = pull(&spot, "other", &server, "shop:linux").args(keys).succeeds().json();
    assert_eq!((&pulled["reference"], &pulled["portable_key"]), (&pushed["reference"], &pushed["portable_key"]));
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    let missing = [
        "there is no template for these files: `",
        "hint: create the template, then run `calve template push --key` with the same files in the same order\n",
    ];
    let other_order = ["--if-key", "node", "--if-key", "lock"];
    let refused = pull(&spot, "third", &server, "shop:linux").args(other_order).fails(3).says(&missing).json();
    assert_eq!(
        (&refused["code"], &refused["remedy"]),
        (&"ERR_CALVE_REQUIREMENT_REFUSED".into(), &"push_with_key".into())
    );
    // A part that is missing is another matter.
    server.rule(|asked| match asked.is_blob() {
        true => Answer::Bytes(answer("404 Not Found", "", b"")),
        false => Answer::Pass,
    });
    pull(&spot, "third", &server, "shop:linux").args(keys).fails(1).hints();
    fs_err::write(spot.join("lock"), b"left-pad 2").unwrap();
    pull(&spot, "third", &server, "shop:linux").args(keys).fails(3).says(&missing);
    // Nothing is asked if a file is not there, or if the reference leaves nothing to choose.
    server.asked();
    pull(&spot, "third", &server, "shop")
        .args(["--if-key", "gone"])
        .fails(1)
        .says(&["gone", "hint: check the spelling"]);
    let digest = format!("shop@{}", pushed["digest"].as_str().unwrap());
    pull(&spot, "third", &server, &digest).args(keys).fails(2).says(&["has a digest, so that files cannot choose"]);
    assert!(server.asked().is_empty());
    has_nothing(&spot, "third");
}

fn skopeo(args: &[&str], dir: &Path) -> Vec<u8> {
    let output = Command::new("skopeo").args(["--insecure-policy"]).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "skopeo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn other_programs_read_and_copy_the_image() {
    let (Some(server), Some(spot)) = (Server::new(), Spot::on(FileSystem::Ext4)) else { return };
    if !require_program("skopeo") || !require_program("zstd") {
        return;
    }
    a_bit_of_everything(&spot);
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let pushed = push(&spot, &server, "shop:v1").succeeds().json();
    let source = format!("docker://{}/shop:v1", server.host);
    let inspected = skopeo(&["inspect", "--tls-verify=false", &source], &spot);
    let inspected: Value = serde_json::from_slice(&inspected).unwrap();
    assert_eq!(inspected["Digest"], pushed["digest"]);
    // To a directory of blobs, of which tar makes the tree.
    skopeo(&["copy", "-q", "--src-tls-verify=false", &source, "dir:image"], &spot);
    fs_err::create_dir(spot.join("untarred")).unwrap();
    for layer in inspected["Layers"].as_array().unwrap() {
        let blob = spot.join("image").join(layer.as_str().unwrap().strip_prefix("sha256:").unwrap());
        let mut tar = Command::new("sh");
        let line = "zstd -dc \"$0\" | tar --xattrs --xattrs-include='user.*' --no-same-owner -xpf - -C untarred";
        let output = tar.args(["-c", line]).arg(&blob).current_dir(&*spot).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // A tar has no holes, a later layer changes the time of a directory that an earlier one has, and no layer has a link into another.
    let other = [Aspect::Holes, Aspect::Times, Aspect::HardLinks];
    assert_same_except(spot.join("src"), spot.join("untarred"), &other);
    // And back to a registry, from where it can be pulled.
    let copied = format!("docker://{}/copied:v2", server.host);
    skopeo(&["copy", "-q", "--dest-tls-verify=false", "dir:image", &copied], &spot);
    let pulled = pull(&spot, "other", &server, "copied:v2").succeeds().json();
    assert_eq!((&pulled["digest"], &pulled["portable_key"]), (&pushed["digest"], &pushed["portable_key"]));
    assert_same(spot.join("src"), tree(&spot, "other", "copied"));
}

#[test]
fn credentials_come_from_the_files_of_docker_and_from_helpers() {
    let Some(server) = Server::with_password() else { return };
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let refused = push(&spot, &server, "shop").fails(1);
    refused.says(&[
        "it needs credentials",
        &format!("hint: log in with an account that may: `docker login {}", server.host),
    ]);
    // user:wrong, user:secret
    let file = |auth: &str| format!(r#"{{"auths": {{"{}": {{"auth": "{auth}"}}}}}}"#, server.host);
    spot.tree("wrong").file("config.json", file("dXNlcjp3cm9uZw=="));
    let refused = push(&spot, &server, "shop").env("DOCKER_CONFIG", spot.join("wrong")).fails(1);
    let refused = refused.says(&["the credentials do not permit it"]);
    assert!(!refused.stderr.contains("wrong"));
    spot.tree("right").file("config.json", file("dXNlcjpzZWNyZXQ="));
    push(&spot, &server, "shop").env("DOCKER_CONFIG", spot.join("right")).succeeds();
    let helper = "#!/bin/sh\nread -r host\necho \"$1 $host\" >>\"$CALVE_HOME.asked\"\n\
                  echo '{\"ServerURL\": \"x\", \"Username\": \"user\", \"Secret\": \"secret\"}'\n";
    spot.tree("bin").file("docker-credential-test", helper).mode("docker-credential-test", 0o755);
    spot.tree("helped").file("config.json", r#"{"credsStore": "test"}"#);
    let path = format!("{}:{}", spot.join("bin").display(), std::env::var("PATH").unwrap());
    let pulled = pull(&spot, "other", &server, "shop").env("DOCKER_CONFIG", spot.join("helped")).env("PATH", path);
    pulled.succeeds();
    assert_eq!(fs_err::read_to_string(spot.join("other.asked")).unwrap(), format!("get {}\n", server.host));
}

#[test]
fn a_digest_is_pulled_whatever_the_tag_and_a_policy_say() {
    let Some((server, spot)) = registry() else { return };
    spot.tree("src").file("a", b"verified");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let digest = push(&spot, &server, "shop").succeeds().json()["digest"].as_str().unwrap().to_owned();
    // Another user pushes another image to the tag.
    spot.tree("src").file("a", b"exchanged");
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    // Podman and skopeo would follow it.
    spot.tree("user/.config/containers").file("policy.json", br#"{"default": [{"type": "reject"}]}"#);
    let image = format!("shop@{digest}");
    let pulled = pull(&spot, "other", &server, &image).env("HOME", spot.join("user")).succeeds().json();
    assert_eq!(pulled["digest"], *digest);
    assert_eq!(fs_err::read(tree(&spot, "other", "shop").join("a")).unwrap(), b"verified");
    // A registry that sends another image for it is not believed.
    let other = server.manifest("shop");
    server.rule(move |asked| match asked.is_manifest() {
        true => Answer::Bytes(answer("200 OK", "", &other)),
        false => Answer::Pass,
    });
    pull(&spot, "third", &server, &image).fails(1).says(&["does not have the digest that was asked for"]);
    has_nothing(&spot, "third");
}

#[test]
fn a_token_is_asked_for_with_the_credentials_and_they_go_nowhere_else() {
    let Some((server, spot)) = registry() else { return };
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    let host = server.host.clone();
    let times = AtomicUsize::new(0);
    server.rule(move |asked| {
        let has = |header: &str| asked.head.to_ascii_lowercase().contains(&header.to_ascii_lowercase());
        if asked.line.starts_with("GET /token?") {
            // Every other time the service is busy.
            if times.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                return Answer::Bytes(answer("429 Too Many Requests", "Retry-After: 0\r\n", b""));
            }
            let is_right =
                has("Authorization: Basic dXNlcjpzZWNyZXQ=") && asked.line.contains("repository%3Ashop%3Apull");
            let body: &[u8] = if is_right { br#"{"token": "short"}"# } else { b"{}" };
            return Answer::Bytes(answer("200 OK", "", body));
        }
        if has("Authorization: Bearer short") {
            return Answer::Pass;
        }
        let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"s\",scope=\"repository:shop:pull\"");
        Answer::Bytes(answer("401 Unauthorized", &format!("WWW-Authenticate: {challenge}\r\n"), b""))
    });
    pull(&spot, "other", &server, "shop").fails(1).says(&["it needs credentials"]);
    let file = format!(r#"{{"auths": {{"{}": {{"username": "user", "password": "secret"}}}}}}"#, server.host);
    spot.tree("right").file("config.json", file);
    server.asked();
    pull(&spot, "other", &server, "shop").env("DOCKER_CONFIG", spot.join("right")).succeeds();
    let basic: BTreeSet<_> =
        server.asked().into_iter().filter(|asked| asked.head.contains("Basic ")).map(|a| a.line).collect();
    assert!(!basic.is_empty() && basic.iter().all(|line| line.starts_with("GET /token?")), "{basic:?}");
    // A registry cannot send them elsewhere without encryption.
    server.rule(|_| {
        let challenge = "WWW-Authenticate: Bearer realm=\"http://example.org/token\"\r\n";
        Answer::Bytes(answer("401 Unauthorized", challenge, b""))
    });
    let refused = pull(&spot, "third", &server, "shop").env("DOCKER_CONFIG", spot.join("right")).fails(2);
    refused.says(&["`example.org` is not this machine"]);
}
