//! Images of databases that are not as they should be, or do not arrive. Nothing is ever published.

use calve_testkit::{FileSystem, Volume, rounds};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::databases::{Machines, POSTGRES, REDIS};
use super::interrupted::{arrived, send_only};
use super::server::{Answer, Asked, Server, image_of, zstd};
use crate::kill::Killer;
use crate::process::send;
use crate::spot::{Spot, eventually};

/// Tables of some megabytes in a few parts.
const ROWS: &str = "CREATE TABLE t AS SELECT n AS a, md5(n::text) AS b FROM generate_series(1, 40000) n";

#[test]
fn what_lies_does_not_fit_or_is_killed_publishes_nothing() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    let server = &machines.server;
    machines.push().succeeds();
    // Data that no server here takes is refused before it is fetched.
    let none = machines.pull("other").args(["--server-bin", "/nonexistent"]).fails(1);
    none.says(&["cannot find `redis-server`", "hint: install the server"]);
    for (change, what, remedy) in [
        (engine as fn(&mut String, &mut Vec<u8>), "it is for the engine `couchdb`", "read_help"),
        (version, "and the server is Redis server v=", "choose_matching_version"),
        (architecture, "it was made on s390x, and this machine is", "rebuild_template"),
    ] {
        machines.server.rule(move |asked| match asked.is_manifest() {
            true => Answer::Change(change),
            false => Answer::Pass,
        });
        machines.server.asked();
        let refused = machines.pull("other").fails(1).says(&["the template `shop` was not pulled: ", what]);
        assert_eq!(refused.json()["remedy"], remedy);
        assert_eq!(machines.server.count("GET /v2/shop/blobs/"), 0);
    }
    assert_eq!(machines.templates("other"), [] as [Value; 0]);
    let is_index = |asked: &Asked| asked.is_blob() && !asked.head.contains("ange: bytes=");
    server.rule(move |asked| match asked.is_blob() && !is_index(asked) {
        true => Answer::Change(|_, body| body[5] ^= 1),
        false => Answer::Pass,
    });
    machines.pull("other").fails(1).says(&["a part of a blob with the wrong hash", "hint: look at the log"]);
    server.rule(move |asked| if is_index(asked) { Answer::Change(|_, body| body[5] ^= 1) } else { Answer::Pass });
    machines.pull("other").fails(1).says(&["has the wrong digest"]);
    server.rule(|asked| match asked.is_blob() {
        true => Answer::Change(|_, body| body.truncate(body.len() / 2)),
        false => Answer::Pass,
    });
    machines.pull("other").fails(1).says(&["fetch a part of the image"]);
    assert_eq!(machines.templates("other"), [] as [Value; 0]);
    server.rule(|_| Answer::Pass);
    machines.pull("other").succeeds();
    // A pull that is killed leaves nothing half done.
    let mut killer = Killer::new(22);
    for _ in 0..rounds(12) {
        let ran = killer.let_run(machines.pull("killed"));
        let is_there = !machines.templates("killed").is_empty();
        assert!(is_there || ran.was_killed());
        machines.pull("killed").succeeds();
        machines.has_same_files("killed", "shop");
        assert_eq!(arrived(&machines.spot, "killed"), 0);
        machines.db("killed", &["template", "remove", "-q", "shop"]).succeeds();
    }
}

#[test]
fn a_pull_goes_on_where_one_was_killed() {
    let Some(machines) = Machines::new(POSTGRES, ROWS) else { return };
    let server = &machines.server;
    machines.push().succeeds();
    let all = machines.pull("third").succeeds().json()["fetched_bytes"].as_u64().unwrap();
    assert_eq!(server.blob_bytes(), all);
    send_only(server, all / 2);
    let running = machines.pull("other").start();
    eventually("half of it has arrived", || arrived(&machines.spot, "other") == all / 2);
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    server.rule(|_| Answer::Pass);
    assert_eq!(machines.templates("other"), [] as [Value; 0]);
    server.blob_bytes();
    let pulled = machines.pull("other").succeeds().json();
    assert_eq!((&pulled["fetched_bytes"], server.blob_bytes()), (&(all - all / 2).into(), all - all / 2));
    machines.has_same_files("other", "shop");
    assert_eq!(arrived(&machines.spot, "other"), 0);
}

fn engine(head: &mut String, body: &mut Vec<u8>) {
    annotate(head, body, "engine", "couchdb");
}

fn version(head: &mut String, body: &mut Vec<u8>) {
    annotate(head, body, "version", "Redis server v=999.0.0 sha=00000000:0");
}

fn architecture(head: &mut String, body: &mut Vec<u8>) {
    annotate(head, body, "architecture", "s390x");
}

/// Changes what an image says of its data.
fn annotate(head: &mut String, body: &mut Vec<u8>, field: &str, value: &str) {
    let mut manifest: Value = serde_json::from_slice(body).unwrap();
    manifest["annotations"][format!("dev.calve.database.{field}")] = value.into();
    let changed = manifest.to_string().into_bytes();
    *head = head.replace(&format!("Content-Length: {}", body.len()), &format!("Content-Length: {}", changed.len()));
    *body = changed;
}

/// An index with one file, `dump.rdb`, which has these chunks: hash, size, size of the frame.
fn index(chunks: &[(&str, u64, u64)]) -> Value {
    json!({
        "format": 1,
        "directories": [],
        "files": [{ "path": "dump.rdb", "mode": 0o600, "layer": 0, "offset": 0, "chunks": chunks }],
    })
}

fn hash(contents: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(&blake3::hash(contents).as_bytes()[..16])
}

/// A registry with an image of Redis that has this index, as `t`.
fn indexed(version: &str, index: &Value, layer: &[u8]) -> Server {
    let annotations = json!({
        "dev.calve.database.engine": "redis",
        "dev.calve.database.version": version,
        "dev.calve.database.architecture": std::env::consts::ARCH,
        "dev.calve.database.key": "key",
        "dev.calve.database.files": "1",
        "dev.calve.database.bytes": "16",
    });
    let index = index.to_string();
    Server::of(image_of(annotations, (layer, json!({})), (index.as_bytes(), "dev.calve.database.index")))
}

#[test]
fn an_index_of_many_small_files_is_measured_in_blocks_and_inodes() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    let ext4 = Volume::builder(FileSystem::Ext4).size_bytes(24 << 20).mkfs_args(["-b", "4096", "-N", "20000"]).mount();
    let Some(volume) = ext4 else { return };
    let small = Spot::at(volume);
    let version = machines.templates("home")[0]["version"].as_str().unwrap().to_owned();
    let (frame, hash) = (zstd(b"1"), hash(b"1"));
    let size = frame.len();
    let file = |number: usize, chunks: Value| {
        let offset = if chunks == json!([]) { 0 } else { number * size };
        json!({ "path": format!("f{number}"), "mode": 0o600, "layer": 0, "offset": offset, "chunks": chunks })
    };
    let files =
        |count: usize, chunks: &Value| (0..count).map(|number| file(number, chunks.clone())).collect::<Vec<_>>();
    let directories: Vec<_> = (0..8_000).map(|number| json!({ "path": format!("d{number}"), "mode": 0o700 })).collect();
    for (directories, files, needs) in [
        (json!([]), files(8_000, &json!([[hash, 1, size]])), "needs 32.8 MB"),
        (json!([]), files(30_000, &json!([])), "needs 30000 inodes"),
        (json!(directories), Vec::new(), "needs 32.8 MB"),
    ] {
        let index = json!({ "format": 1, "directories": directories, "files": files });
        let server = indexed(&version, &index, &frame.repeat(8_000));
        let pull = machines.db("other", &["template", "pull", "--plain-http", &format!("{}/t", server.host)]);
        pull.env("CALVE_HOME", small.join("home")).fails(1).says(&[needs, ", and only", "hint: free some space"]);
    }
}

#[test]
fn an_index_that_lies_is_refused() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    let frame = zstd(b"no dump of redis");
    let right = (hash(b"no dump of redis"), 16, frame.len() as u64);
    let version = machines.templates("home")[0]["version"].as_str().unwrap().to_owned();
    let pulled = |index: &Value, layer: &[u8]| {
        let server = indexed(&version, index, layer);
        machines.db("other", &["template", "pull", "--plain-http", &format!("{}/t", server.host)])
    };
    let (right_hash, size, compressed) = (right.0.as_str(), right.1, right.2);
    let good = index(&[(right_hash, size, compressed)]);
    // The pull succeeds up to the check of the server, which would not take it.
    pulled(&good, &frame).fails(1).says(&["the template `t` was not pulled: ", "hint: create it again"]);
    let with = |field: &str, value: Value| {
        let mut index = good.clone();
        index["files"][0][field] = value;
        index
    };
    let twice = (right_hash, size, compressed);
    let mut overlapping = with("path", "other".into());
    let second = overlapping["files"][0].clone();
    overlapping["files"] = json!([good["files"][0], second]);
    let padded = [&frame[..], &[0; 100_000]].concat();
    // This registry has no parts.
    let with_end = [&frame[..], &zstd(&[0; 1024])].concat();
    let bomb = zstd(&vec![0; 1 << 20]);
    for (index, layer, what) in [
        (with("path", "../dump.rdb".into()), &frame, "in a directory of the template"),
        (with("path", "..".into()), &frame, "a name that is not allowed"),
        (with("layer", 7.into()), &frame, "a file in no layer"),
        (with("offset", u64::MAX.into()), &frame, "a chunk outside of its layer"),
        (with("offset", 1.into()), &frame, "a chunk outside of its layer"),
        (overlapping, &frame, "two chunks at one place"),
        (index(&[(right_hash, 1 << 40, 10)]), &frame, "its index is not valid"),
        (index(&vec![twice; 100_000]), &frame, "a chunk outside of its layer"),
        (index(&[(right_hash, size, 0)]), &frame, "an impossible size"),
        (good.clone(), &padded, "a layer is too large"),
        (index(&[(&hash(b"else"), size, compressed)]), &frame, "the wrong hash"),
        (index(&[(&hash(b"else"), size, compressed)]), &with_end, "whose chunks have other hashes"),
        (index(&[(right_hash, size, bomb.len() as u64)]), &bomb, "an impossible size"),
        (index(&[(right_hash, 65_536, bomb.len() as u64)]), &bomb, "the wrong hash"),
        (json!({ "format": 2, "directories": [], "files": [] }), &frame, "of another version"),
    ] {
        pulled(&index, layer).fails(1).says(&[what]);
    }
    assert_eq!(machines.templates("other"), [] as [Value; 0]);
}

#[test]
fn a_full_disk_is_told() {
    let Some(machines) = Machines::new(POSTGRES, "SELECT 1") else { return };
    machines.push().succeeds();
    // By a limit on the size of files.
    let full = machines.pull("other").in_shell("trap '' XFSZ; ulimit -f 64;", "");
    full.fails(1)
        .says(&["hint: check the owner and mode of the path above, and the limits of your session (ulimit -a)"]);
    assert_eq!(machines.templates("other"), [] as [Value; 0]);
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 40 << 20) else { return };
    let small = Spot::at(volume);
    let full = machines.pull("other").env("CALVE_HOME", small.join("home")).fails(1);
    let hint = "hint: free some space, or set CALVE_HOME to a directory on a larger file system\n";
    full.says(&["db/servers` needs ", " are free", hint]);
}
