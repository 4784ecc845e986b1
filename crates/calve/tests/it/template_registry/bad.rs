//! Registries and images that are not as they should be. Nothing is ever published, and nothing is outside of the template.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, SplitMix64, Volume, assert_same};
use serde_json::Value;

use super::server::{Answer, Server, answer, bomb, image, image_with_layer, tar_header, with_delta};
use super::{has_nothing, pull, push, registry, template, tree};
use crate::spot::Spot;

/// The annotation that says where the parts of a manifest are.
const FRAMES: &str = "dev.calve.template.frames";

fn pushed() -> Option<(Server, Spot)> {
    let (server, spot) = registry()?;
    // Two layers, so that one can be good.
    let random: Vec<u8> =
        (0..1_100_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    spot.tree("src").file("a", b"1").file("b", random);
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    Some((server, spot))
}

#[test]
fn a_registry_that_lies_or_fails_publishes_nothing_until_that_passes() {
    let Some((server, spot)) = pushed() else { return };
    server.rule(|asked| if asked.is_blob() { Answer::Change(|_, body| body[0] ^= 1) } else { Answer::Pass });
    pull(&spot, "other", &server, "shop").fails(1).says(&[
        "has the wrong digest",
        "hint: look at the log of the registry, or of a proxy in front of it; if the image is damaged, delete it and its layers there, and push it again\n",
    ]);
    server.rule(
        |asked| if asked.is_blob() { Answer::Change(|_, body| body.truncate(body.len() / 2)) } else { Answer::Pass },
    );
    pull(&spot, "other", &server, "shop").fails(1).says(&["fetch a part of the image", "hint: check the name and the port of the registry, and the network; a registry on this machine without encryption needs `--plain-http`\n"]);
    let busy = || Answer::Bytes(answer("503 Service Unavailable", "Retry-After: 0\r\n", b""));
    server.rule(move |asked| if asked.is_blob() { busy() } else { Answer::Pass });
    server.asked();
    pull(&spot, "other", &server, "shop").fails(1).says(&["(status 503)", "try again later"]);
    assert_eq!(server.count("GET /v2/shop/blobs/"), 5);
    server.rule(|_| Answer::Bytes(answer("429 Too Many Requests", "Retry-After: 3600\r\n", b"")));
    pull(&spot, "other", &server, "shop").fails(1).says(&["(status 429)"]);
    assert_eq!(server.count("GET"), 1);
    server.rule(|_| Answer::Pass);
    pull(&spot, "other", &server, "nothing")
        .fails(1)
        .says(&["there is no such image", "hint: check the names of the repository and the tag\n"]);
    server.rule(|_| Answer::Bytes(b"not HTTP\r\n\r\n".to_vec()));
    pull(&spot, "other", &server, "shop").fails(1).hints();
    server.rule(|_| Answer::Bytes(answer("200 OK", "", b"{\"schemaVersion\": 2}")));
    pull(&spot, "other", &server, "shop").fails(1).says(&["is not a template", "hint: push a template there first\n"]);
    let digest = format!("shop@sha256:{}", "0".repeat(64));
    server.rule(|asked| match asked.is_manifest() {
        true => Answer::Bytes(answer("200 OK", "", b"{}")),
        false => Answer::Pass,
    });
    pull(&spot, "other", &server, &digest).fails(1).says(&["the digest that was asked for"]);
    has_nothing(&spot, "other");
    assert!(server.asked().iter().all(|asked| !asked.head.contains("Authorization")));
    // After a fault that passes, the pull goes on where it was.
    let seen = AtomicUsize::new(0);
    server.rule(move |asked| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::Bytes(answer("429 Too Many Requests", "Retry-After: 2\r\n", b"")),
        1 => Answer::Bytes(answer("500 Internal Server Error", "", b"")),
        2 => Answer::Bytes(Vec::new()),
        number if number % 2 == 0 && asked.is_blob() => Answer::Change(|_, body| body.truncate(body.len() * 2 / 3)),
        _ => Answer::Pass,
    });
    server.asked();
    let started = Instant::now();
    pull(&spot, "other", &server, "shop").succeeds();
    // As long as the registry said; by itself it would have been a quarter of a second.
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    let asked = server.asked();
    assert!(asked.iter().any(|asked| asked.head.to_ascii_lowercase().contains("range: bytes=")), "{asked:?}");
    template(&spot, "other", &["verify", "-q", "shop"]).succeeds();
}

#[test]
fn a_redirect_to_another_host_is_followed_without_credentials() {
    let Some(server) = Server::with_password() else { return };
    let spot = Spot::anywhere();
    let file = format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpzZWNyZXQ="}}}}}}"#, server.host);
    spot.tree("right").file("config.json", file);
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").env("DOCKER_CONFIG", spot.join("right")).succeeds();
    let store = Server::of(HashMap::new());
    let elsewhere = store.host.clone();
    server.rule(move |asked| match asked.is_blob() {
        true => Answer::Bytes(answer("307 Temporary Redirect", &format!("Location: http://{elsewhere}/blob\r\n"), b"")),
        false => Answer::Pass,
    });
    pull(&spot, "other", &server, "shop").env("DOCKER_CONFIG", spot.join("right")).fails(1).says(&["(status 404)"]);
    let asked = store.asked();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|asked| !asked.head.to_ascii_lowercase().contains("authorization")), "{asked:?}");
    // Nor does an upload take them along.
    let elsewhere = store.host.clone();
    server.rule(move |asked| match asked.line.starts_with("POST") {
        true => Answer::Bytes(answer("202 Accepted", &format!("Location: http://{elsewhere}/upload\r\n"), b"")),
        false => Answer::Pass,
    });
    push(&spot, &server, "again").env("DOCKER_CONFIG", spot.join("right")).fails(1);
    let asked = store.asked();
    assert!(asked.iter().any(|asked| asked.line.starts_with("PUT /upload?digest=sha256%3A")), "{asked:?}");
    assert!(asked.iter().all(|asked| !asked.head.to_ascii_lowercase().contains("authorization")), "{asked:?}");
}

#[test]
fn a_redirect_leads_to_parts_and_never_away_from_this_machine_without_encryption() {
    let (Some((server, spot)), Some(store)) = (pushed(), Server::new()) else { return };
    push(&spot, &store, "shop").succeeds();
    let elsewhere = store.host.clone();
    server.rule(move |asked| match asked.line.split(' ').nth(1) {
        Some(path) if asked.is_blob() => {
            Answer::Bytes(answer("307 Temporary Redirect", &format!("Location: http://{elsewhere}{path}\r\n"), b""))
        }
        _ => Answer::Pass,
    });
    store.asked();
    pull(&spot, "other", &server, "shop").succeeds();
    assert!(store.count("GET /v2/shop/blobs/") > 0);
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
    // In a circle: five redirects, and no more.
    server.rule(|asked| match asked.is_manifest() {
        true => Answer::Bytes(answer("302 Found", "Location: /v2/shop/manifests/other\r\n", b"")),
        false => Answer::Pass,
    });
    server.asked();
    pull(&spot, "third", &server, "shop").fails(1).says(&["status 302"]);
    assert_eq!(server.count("GET /v2/shop/manifests/"), 6);
    // An address of no machine.
    let away = |line: &'static str, status: &'static str| {
        server.rule(move |asked| match asked.line.starts_with(line) {
            true => Answer::Bytes(answer(status, "Location: http://192.0.2.1/x\r\n", b"")),
            false => Answer::Pass,
        });
    };
    away("GET /v2/shop/blobs/", "307 Temporary Redirect");
    pull(&spot, "third", &server, "shop").fails(2).says(&["`192.0.2.1` is not this machine"]);
    away("POST", "202 Accepted");
    push(&spot, &server, "again").fails(2).says(&["`192.0.2.1` is not this machine"]);
    has_nothing(&spot, "third");
}

#[test]
fn an_address_that_a_registry_sends_is_read_strictly() {
    let Some((server, spot)) = pushed() else { return };
    let file = format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpzZWNyZXQ="}}}}}}"#, server.host);
    spot.tree("right").file("config.json", file);
    let elsewhere = Server::of(HashMap::new());
    let refuses = |line: &'static str, status: &'static str, headers: String| {
        server.rule(move |asked| match asked.line.starts_with(line) {
            true => Answer::Bytes(answer(status, &headers, b"")),
            false => Answer::Pass,
        });
        let image = if line == "POST" { push(&spot, &server, "again") } else { pull(&spot, "other", &server, "shop") };
        let refused = image.env("DOCKER_CONFIG", spot.join("right")).fails(1);
        let refused = refused.says(&["sent an invalid answer: an address with a user name, to"]);
        assert!(!refused.stderr.contains("hidden"), "{}", refused.stderr);
    };
    for before in ["http://localhost:80@192.0.2.1", "http://user:hidden@HOST", "https://localhost:hidden@HOST"] {
        let address = format!("{}/x", before.replace("HOST", &elsewhere.host));
        refuses("GET /v2/shop/manifests/", "307 Temporary Redirect", format!("Location: {address}\r\n"));
        refuses("GET /v2/shop/blobs/", "302 Found", format!("Location: {address}\r\n"));
        refuses("POST", "202 Accepted", format!("Location: {address}\r\n"));
        refuses("GET", "401 Unauthorized", format!("WWW-Authenticate: Bearer realm=\"{address}\"\r\n"));
    }
    assert!(elsewhere.asked().is_empty());
    has_nothing(&spot, "other");
    // A spelling that another parser may take for this machine does not count as this machine.
    let port = elsewhere.host.rsplit(':').next().unwrap();
    let leads = |host: &str| {
        let location = format!("Location: http://{host}/x\r\n");
        server.rule(move |_| Answer::Bytes(answer("307 Temporary Redirect", &location, b"")));
        pull(&spot, "other", &server, "shop")
    };
    // The resolver would find this machine for most of them: the server there is asked nothing.
    for host in
        ["0x7f.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "127.0.0.1.nip.example", "localhost."]
    {
        leads(&format!("{host}:{port}")).fails(2).says(&[&format!("`{host}:{port}` is not this machine")]);
    }
    for host in ["localhost%40evil.example", "evil.example\\@localhost", "[::1]evil.example", "localhost:80:80"] {
        leads(host).fails(1).says(&["an address that is not valid"]);
    }
    assert!(elsewhere.asked().is_empty());
    // Written in another way, and the same.
    leads(&format!("LOCALHOST:{port}")).fails(1).says(&["no such image"]);
    assert!(!elsewhere.asked().is_empty());
}

const ROOT: &str = ". type=dir mode=0755 time=1.000000000\n";

/// A line of the manifest for a file that has `contents`.
fn file(path: &str, contents: &[u8]) -> String {
    let (size, hash) = (contents.len(), blake3::hash(contents).to_hex());
    format!("{path} type=file mode=0644 time=1.000000000 size={size} blake3digest={hash}\n")
}

/// A tar with these files, whatever their names are.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, contents) in files {
        tar.extend_from_slice(&tar_header(name, b'0', contents.len() as u64));
        tar.extend_from_slice(contents);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

#[test]
fn an_image_cannot_write_outside_of_its_template() {
    let spot = Spot::anywhere();
    let pulled = |lines: &str, files: &[(&str, &[u8])]| {
        let server = Server::of(image(&format!("{ROOT}{lines}"), &tar(files)));
        pull(&spot, "other", &server, "t")
    };
    // It works with a good one.
    pulled(&file("./a", b"1"), &[("a", b"1")]).succeeds();
    template(&spot, "other", &["remove", "-q", "t"]).succeeds();
    let link = "./l type=link time=1.000000000 link=/tmp\n";
    for (lines, what) in [
        (file("./../evil", b"1"), "has a name that is not allowed"),
        (file(".//evil", b"1"), "has a name that is not allowed"),
        (file("/evil", b"1"), "is not a manifest"),
        (format!("{link}{}", file("./l/evil", b"1")), "is not in a directory of the template"),
        (file("./a", b"1").replace("0644", "4755"), "has a line that is not valid"),
        ("./a type=char mode=0644 time=1.000000000 device=native,1,3\n".into(), "has a line that is not valid"),
        (format!("{}{}", file("./a", b"1"), file("./a", b"1")), "is not in order"),
    ] {
        pulled(&lines, &[("a", b"1")]).fails(1).says(&[what]);
    }
    // The names in the tar decide nothing.
    for name in ["../../evil", "/tmp/calve-evil", "l/evil"] {
        pulled(&file("./a", b"1"), &[("a", b"1"), (name, b"1")]).fails(1).says(&["more files than"]);
        let ran = pulled(&file("./a", b"1"), &[(name, b"1")]).succeeds().json();
        assert_eq!(fs_err::read(format!("{}/a", ran["tree"].as_str().unwrap())).unwrap(), b"1");
        template(&spot, "other", &["remove", "-q", "t"]).succeeds();
    }
    pulled(&file("./a", b"1"), &[]).fails(1).says(&["fewer files than"]);
    pulled(&file("./a", b"1"), &[("a", b"12")]).fails(1).says(&["`a` has a different size"]);
    pulled(&file("./a", b"1"), &[("a", b"2")]).fails(1).says(&[
        "does not match its manifest: `a` differs",
        "hint: pull to a file system that keeps modes, times and extended attributes, or push the template again\n",
    ]);
    has_nothing(&spot, "other");
    spot.holds(&["other"]);
}

#[test]
fn what_an_image_claims_of_its_manifests_parts_is_not_believed() {
    let Some((server, spot)) = registry() else { return };
    for number in 0..1500 {
        spot.tree("src").file(format!("{number:04}"), b"1");
    }
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    fs_err::write(spot.join("src/0300"), b"2").unwrap();
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    push(&spot, &server, "shop:v2").args(["--full"]).succeeds();
    let frames = |image: &str| -> Vec<String> {
        let document: Value = serde_json::from_slice(&server.manifest(image)).unwrap();
        let last = document["layers"].as_array().unwrap().last().unwrap();
        last["annotations"][FRAMES].as_str().unwrap().split(' ').map(str::to_owned).collect()
    };
    let (old, new) = (frames("shop"), frames("shop:v2"));
    let (known, changed): (Vec<usize>, _) = (0..new.len()).partition(|&number| old.contains(&new[number]));
    assert!(changed.len() == 1 && known.len() > 3, "{new:?}");
    let pulled = |frame: usize, length: &dyn Fn(usize) -> usize| {
        let mut frames = new.clone();
        let (had, rest) = frames[frame].split_once('.').unwrap();
        frames[frame] = format!("{}.{rest}", length(had.parse().unwrap()));
        let mut document: Value = serde_json::from_slice(&server.manifest("shop:v2")).unwrap();
        document["layers"].as_array_mut().unwrap().last_mut().unwrap()["annotations"][FRAMES] = frames.join(" ").into();
        server.put_manifest("shop", "lies", document.to_string().as_bytes());
        pull(&spot, "other", &server, "shop").succeeds();
        server.asked();
        pull(&spot, "other", &server, "shop:lies")
    };
    for frame in [changed[0], known[0]] {
        pulled(frame, &|length| length - 1).fails(1).says(&["a part of a blob with the wrong hash"]);
        template(&spot, "other", &["verify", "-q", "shop"]).succeeds();
    }
    // More than any manifest has: it is fetched as a whole, and is as it was sent.
    pulled(changed[0], &|_| 300_000_000).succeeds();
    assert!(server.asked().iter().any(|asked| asked.is_blob() && !asked.head.to_ascii_lowercase().contains("range:")));
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}

#[test]
fn a_delta_cannot_write_outside_of_its_template() {
    let spot = Spot::anywhere();
    let link = "./l type=link time=1.000000000 link=/tmp\n";
    let base = format!("{ROOT}{}{link}", file("./a", b"1"));
    let pulled = |delta: &str, base_key: Option<&str>, files: &[(&str, &[u8])], composed: &str| {
        let entries = delta.lines().filter(|line| !line.ends_with(" removed")).count();
        let delta = (delta, entries, &tar(files)[..]);
        let server = Server::of(with_delta((&base, &tar(&[("a", b"1")])), delta, base_key, composed));
        pull(&spot, "other", &server, "t")
    };
    // It works with a good one, whatever the names in the tar are. A whiteout is no file.
    let (added, removed) = (file("./b", b"2"), "./l removed\n");
    let composed = format!("{ROOT}{}{added}", file("./a", b"1"));
    let ran = pulled(&format!("{added}{removed}"), None, &[("../../evil", b"2")], &composed).succeeds().json();
    assert_eq!(crate::spot::names(ran["tree"].as_str().unwrap()), ["a", "b"]);
    template(&spot, "other", &["remove", "-q", "t"]).succeeds();
    let other_base = "0".repeat(64);
    let below_link = file("./l/evil", b"1");
    for (delta, base_key, what) in [
        (added.clone(), Some(&*other_base), "its manifest is against another manifest"),
        (added.clone(), Some("x"), "is not a delta that this version can read"),
        (file("./../evil", b"2"), None, "has a name that is not allowed"),
        (file(".//evil", b"2"), None, "has a name that is not allowed"),
        (file("/evil", b"2"), None, "is not a delta"),
        (file("./a/evil", b"2"), None, "is not in a directory of the template"),
        (below_link, None, "is not in a directory of the template"),
        (". removed\n".into(), None, "is not below a root"),
        ("./../evil removed\n".into(), None, "is removed, and is not there"),
        (format!("{}{added}", file("./c", b"2")), None, "is not in order"),
        (format!("{added}{added}"), None, "is not in order"),
        (added.replace("0644", "4755"), None, "has a line that is not valid"),
        (added.clone(), None, "its manifest has the wrong key"),
    ] {
        pulled(&delta, base_key, &[("b", b"2")], "").fails(1).says(&[what]);
    }
    // It is a few kilobytes, compressed.
    pulled(&"a".repeat(65 << 20), None, &[("b", b"2")], "").fails(1).says(&["its manifest cannot be read"]);
    let good = format!("{ROOT}{}{added}{link}", file("./a", b"1"));
    pulled(&added, None, &[("b", b"2"), ("c", b"2")], &good).fails(1).says(&["more files than"]);
    pulled(&added, None, &[], &good).fails(1).says(&["fewer files than"]);
    pulled(&added, None, &[("b", b"3")], &good).fails(1).says(&["does not match its manifest: `b` differs"]);
    // A layer that has more entries than the delta names, a delta against nothing, and a chain without end.
    let of = |change: &dyn Fn(&mut Vec<Value>)| {
        let delta = (&*added, 1, &tar(&[("b", b"2")])[..]);
        let mut paths = with_delta((&base, &tar(&[("a", b"1")])), delta, None, &good);
        let manifest = paths.get_mut("/v2/t/manifests/latest").unwrap();
        let mut document: Value = serde_json::from_slice(manifest).unwrap();
        change(document["layers"].as_array_mut().unwrap());
        *manifest = document.to_string().into_bytes();
        pull(&spot, "other", &Server::of(paths), "t").fails(1)
    };
    of(&|layers| layers[2]["annotations"]["dev.calve.template.range"] = "0-2".into())
        .says(&["its layers lack or repeat entries"]);
    of(&|layers| layers[3]["annotations"]["dev.calve.template.base"] = ().into()).hints();
    of(&|layers| drop(layers[3]["annotations"].as_object_mut().unwrap().remove("dev.calve.template.base")))
        .says(&["it has a delta without a base"]);
    of(&|layers| layers[3]["annotations"]["dev.calve.template.base"] = "".into())
        .says(&["its delta's base is not the manifest that it names"]);
    of(&|layers| layers.rotate_left(2)).says(&["its manifest has the wrong key"]);
    of(&|layers| {
        let last = layers[3].clone();
        layers.extend(std::iter::repeat_n(last, 100));
    })
    .says(&["it has too many deltas"]);
    has_nothing(&spot, "other");
    spot.holds(&["other"]);
}

#[test]
fn a_disk_that_fills_up_in_the_middle_leaves_the_version_before() {
    let Some(server) = Server::new() else { return };
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 40 << 20) else { return };
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    let pull = || pull(&spot, "other", &server, "shop").env("CALVE_HOME", volume.path().join("home"));
    let before = pull().succeeds().json();
    // The tree would fit, but not with the parts that arrive before it.
    let room = rustix::fs::statvfs(volume.path()).unwrap();
    let files = (room.f_bavail * room.f_frsize - (1 << 20)) / 2_000_000;
    for number in 0..files {
        let contents = SplitMix64::new(number).bytes(2_000_000);
        spot.tree("src").file(format!("large{number}"), contents);
    }
    template(&spot, "home", &["refresh", "-q", "shop"]).succeeds();
    push(&spot, &server, "shop").succeeds();
    pull().fails(1).says(&["No space left on device", "hint: free some space there, or keep the template elsewhere: `--at DIRECTORY` for one of files, CALVE_HOME for a database\n"]);
    let listed = template(&spot, "other", &["show", "--json", "shop"]).env("CALVE_HOME", volume.path().join("home"));
    assert_eq!(listed.succeeds().json()["tree"], before["tree"]);
    assert_eq!(fs_err::read(Path::new(before["tree"].as_str().unwrap()).join("a")).unwrap(), b"1");
}

#[test]
fn an_image_that_is_too_large_or_has_no_end_is_not_unpacked() {
    let spot = Spot::anywhere();
    // A layer that grows without end is not read.
    let lines = format!("{ROOT}{}", file("./a", b"1"));
    // The window of the second is 4 GiB.
    for layer in [bomb(), [&[0x28, 0xb5, 0x2f, 0xfd, 0, 22 << 3][..], &[1, 0, 0]].concat()] {
        let server = Server::of(image_with_layer(&lines, &layer));
        // Read to its end, it would be one with fewer files.
        pull(&spot, "other", &server, "t").fails(1).says(&["a layer that cannot be read"]);
    }
    let huge = file("./a", b"1").replace("size=1", "size=1000000000000000");
    let server = Server::of(image(&format!("{ROOT}{huge}"), &tar(&[])));
    pull(&spot, "other", &server, "t").fails(1).says(&["needs 1.0 PB, and only", "free some space"]);
    // The disk is full in the middle: by a limit on the size of files.
    let zeros = vec![1; 100_000];
    let server = Server::of(image(&format!("{ROOT}{}", file("./a", &zeros)), &tar(&[("a", &zeros)])));
    let full = pull(&spot, "other", &server, "t").in_shell("trap '' XFSZ; ulimit -f 64;", "");
    full.fails(1).says(&[
        "write `",
        "hint: check the owner and mode of the path above, and the limits of your session (ulimit -a)\n",
    ]);
    has_nothing(&spot, "other");
}

#[test]
fn many_small_entries_are_measured_in_blocks_and_inodes() {
    let ext4 = Volume::builder(FileSystem::Ext4).size_bytes(24 << 20).mkfs_args(["-b", "4096", "-N", "20000"]).mount();
    let Some(volume) = ext4 else { return };
    let spot = Spot::anywhere();
    let lines = |count: usize, line: &dyn Fn(String) -> String| {
        (0..count).map(|number| line(format!("./e{number:06}"))).collect::<String>()
    };
    let directory = |path: String| format!("{path} type=dir mode=0755 time=1.000000000\n");
    let link = |path: String| format!("{path} type=link time=1.000000000 link={}\n", "x".repeat(100));
    let free = || {
        let room = rustix::fs::statvfs(volume.path()).unwrap();
        (room.f_bavail, room.f_favail)
    };
    for (entries, needs) in [
        // 8 kB of contents.
        (lines(8_000, &|path| file(&path, b"1")), "needs 32.8 MB, and only"),
        (lines(8_000, &directory), "needs 32.8 MB, and only"),
        (lines(8_000, &link), "needs 32.8 MB, and only"),
        (lines(30_000, &|path| file(&path, b"")), "needs 30000 inodes, and only"),
    ] {
        let server = Server::of(image(&format!("{ROOT}{entries}"), &tar(&[])));
        let pull = || pull(&spot, "other", &server, "t").env("CALVE_HOME", volume.path().join("home"));
        // The first pull makes the directories that all pulls need.
        pull().fails(1);
        let before = free();
        pull().fails(1).says(&[needs, "free some space"]);
        let now = free();
        assert!(before.0 - now.0 < 100 && before.1 - now.1 < 10, "{needs}: {before:?} {now:?}");
    }
    // Everything that fits and that the registry has is unpacked.
    let server = Server::of(image(&format!("{ROOT}{}", lines(100, &directory)), &tar(&[])));
    pull(&spot, "other", &server, "t").env("CALVE_HOME", volume.path().join("home")).succeeds();
}

#[test]
fn what_is_no_image_is_told_before_anything_is_asked() {
    let spot = Spot::anywhere();
    for (reference, what) in [
        ("team/shop", "names no registry"),
        ("user:password@ghcr.io/shop", "`ghcr.io/shop` has a user name before it"),
        ("localhost:80@ghcr.io/shop", "`ghcr.io/shop` has a user name before it"),
        ("ghcr.io/Shop", "names a repository that is not valid"),
        ("ghcr.io/shop:", "has a tag or a digest that is not valid"),
    ] {
        for command in [&["pull", reference][..], &["push", "shop", reference]] {
            template(&spot, "home", command)
                .fails(2)
                .says(&[what, "hint: name the image in full, such as ghcr.io/team/deps:main"]);
        }
    }
    let refused = template(&spot, "home", &["pull", "--plain-http", "ghcr.io/team/shop"]).fails(2);
    refused.says(&[
        "`ghcr.io` is not this machine",
        "hint: leave out `--plain-http`; it is for a registry on this machine, such as 127.0.0.1:5000\n",
    ]);
    assert!(!spot.join("home").exists());
}
