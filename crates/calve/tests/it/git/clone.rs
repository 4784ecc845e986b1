//! Each purpose's clone, and the receipt of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use calve_testkit::{FileSystem, Tree, Volume, git, matrix, require_root};
use serde_json::{Value, json};

use super::host::HostFault;
use super::{COMMITS, Hosted, alone, git_repository};
use crate::program::{Reachable, calve, keys_in_order};
use crate::spot::{names, nothing_left};

#[test]
fn each_purpose_gets_its_clone_and_a_receipt() {
    let hosted = Hosted::new();
    let head = git(&hosted.repository, ["rev-parse", "main"]);
    for (purpose, shallow, filter) in [
        ("dev", "false", Value::Null),
        ("ci", "true", Value::Null),
        ("history", "false", json!("blob:none")),
        ("blobs", "false", json!("blob:none")),
    ] {
        let before = hosted.host.requests().len();
        let ran = hosted.calve(&["clone", "--json", "--for", purpose, &hosted.url(), purpose]).succeeds();
        let receipt = ran.json();
        assert_eq!(hosted.git(purpose, &["rev-parse", "--is-shallow-repository"]), shallow, "{purpose}");
        assert_eq!(hosted.git(purpose, &["config", "calve.purpose"]), purpose);
        assert_eq!(hosted.git(purpose, &["status", "--porcelain"]), "");
        assert_eq!(hosted.git(purpose, &["remote", "get-url", "origin"]), hosted.url());
        assert_eq!((&receipt["recipe"]["filter"], &receipt["head"]), (&filter, &json!(head)), "{purpose}");
        let requests = hosted.host.requests().len() - before;
        assert_eq!(receipt["requests"], requests, "{purpose}: the receipt counts what the host has seen");
        let honoured = if filter.is_null() { Value::Null } else { json!(true) };
        assert_eq!(receipt["honoured"]["filter"], honoured);
        let missing = receipt["objects_missing"].as_u64().unwrap();
        assert_eq!(missing > 0, !filter.is_null(), "{purpose}: {missing}");
        if !filter.is_null() {
            // Every commit has one new file; three of them are checked out.
            assert_eq!(missing, COMMITS as u64 - 3);
        }
        let ran = ran.says(&[&format!("for {purpose}: "), "cloned `http://127.0.0.1"]);
        assert!(!ran.stderr.contains("published"), "{}", ran.stderr);
    }
    let bytes = |purpose: &str| {
        let pack = hosted.spot.join(purpose).join(".git/objects/pack");
        let packs = fs_err::read_dir(pack).unwrap().map(|entry| entry.unwrap());
        packs
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "pack"))
            .map(|entry| entry.metadata().unwrap().len())
            .sum::<u64>()
    };
    assert!(bytes("ci") < bytes("dev") && bytes("history") < bytes("dev"));
    nothing_left(&hosted.spot);
}

#[test]
fn the_purpose_is_ci_in_ci_and_the_receipt_has_the_documented_keys() {
    let hosted = Hosted::new();
    for (ci, purpose) in [("true", "ci"), ("1", "dev"), ("", "dev")] {
        let plan = hosted.calve(&["clone", "-n", "--json", &hosted.url()]).env("CI", ci).succeeds().json();
        assert_eq!((&plan["schema"], &plan["purpose"]), (&json!("calve.git-clone-plan/1"), &json!(purpose)));
    }
    let shown = hosted.calve(&["clone", "-n", "--for", "ci", &hosted.url()]).succeeds().stdout;
    assert!(
        shown.contains("it has no tags and no history, so that `git describe` needs the purpose `history`"),
        "{shown}"
    );
    let command =
        format!("git clone --no-checkout -c calve.purpose=ci --depth=1 --single-branch -- {} project", hosted.url());
    assert!(shown.lines().any(|line| line == command), "{shown}");
    assert!(hosted.host.requests().is_empty(), "a dry run asks nobody");
    hosted.spot.holds(&[]);
    let receipt = hosted.calve(&["clone", "--json", "--for", "ci", &hosted.url()]).succeeds().json();
    let keys = "schema url dst purpose recipe git head requests bytes_received seconds objects_missing objects_missing_counted honoured warnings";
    assert_eq!(keys_in_order(&receipt), keys.split(' ').collect::<Vec<_>>());
    assert_eq!((&receipt["schema"], &receipt["dst"]), (&json!("calve.git-clone/1"), &json!("project")));
    let keys = "filter depth branch revision sparse reason commands";
    assert_eq!(keys_in_order(&receipt["recipe"]), keys.split(' ').collect::<Vec<_>>());
    assert_eq!(receipt["honoured"], json!({ "filter": null, "depth": true }));
    let seconds = &receipt["seconds"];
    let sum = seconds["clone"].as_f64().unwrap() + seconds["checkout"].as_f64().unwrap();
    assert!(sum > 0.0 && sum <= seconds["total"].as_f64().unwrap(), "{seconds}");
    let pack: u64 = receipt["bytes_received"].as_u64().unwrap();
    assert!(pack > 1000, "{pack}");
    let text = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/receipt.md")).unwrap();
    let (_, table) = text.split_once("calve.git-clone/1").unwrap();
    for key in keys_in_order(&receipt) {
        assert!(table.contains(&format!("`{key}`")), "docs/receipt.md lacks `{key}`");
    }
}

#[test]
fn a_branch_a_tag_and_a_commit_are_checked_out() {
    let hosted = Hosted::new();
    // The received bytes are counted, however few they are.
    let head = git(&hosted.repository, ["rev-parse", "main"]);
    let url = format!("file://{}", hosted.repository.display());
    for (number, (purpose, url, revision)) in [
        ("ci", hosted.url(), Some(&head)),
        ("ci", url.clone(), Some(&head)),
        ("ci", hosted.url(), None),
        ("dev", hosted.url(), Some(&head)),
        ("history", url, None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut arguments = vec!["clone", "--json", "--for", purpose];
        arguments.extend(revision.iter().flat_map(|id| ["--rev", id.as_str()]));
        let dst = number.to_string();
        arguments.extend([url.as_str(), &dst]);
        let received = hosted.calve(&arguments).succeeds().json()["bytes_received"].as_u64().unwrap();
        let packs = fs_err::read_dir(hosted.spot.join(&dst).join(".git/objects/pack")).unwrap();
        let packs = packs.map(|entry| entry.unwrap()).filter(|entry| entry.path().extension() == Some("pack".as_ref()));
        assert_eq!(received, packs.map(|entry| entry.metadata().unwrap().len()).sum::<u64>(), "{arguments:?}");
        assert!(received > 200, "{arguments:?}: {received}");
    }
    let old = git(&hosted.repository, ["rev-parse", "main~5"]);
    git(&hosted.repository, ["branch", "side", "main~3"]);
    git(&hosted.repository, ["tag", "v1", "main~4"]);
    let side = git(&hosted.repository, ["rev-parse", "side"]);
    let tagged = git(&hosted.repository, ["rev-parse", "v1"]);
    for purpose in ["dev", "ci", "history"] {
        for (option, value, commit) in
            [("--branch", "side", &side), ("--branch", "v1", &tagged), ("--rev", old.as_str(), &old)]
        {
            let dst = format!("{purpose}-{value}");
            let receipt = hosted
                .calve(&["clone", "--json", "--for", purpose, option, value, &hosted.url(), &dst])
                .succeeds()
                .json();
            assert_eq!(receipt["head"], json!(commit), "{purpose} {value}");
            assert_eq!(hosted.git(&dst, &["rev-parse", "HEAD"]), *commit);
            assert_eq!(hosted.git(&dst, &["status", "--porcelain"]), "", "{purpose} {value}");
            let count = hosted.git(&dst, &["rev-list", "--count", "HEAD"]);
            assert_eq!(count == "1", purpose == "ci", "{purpose} {value}: {count} commits");
        }
    }
    // A commit that no branch leads to.
    git(&hosted.repository, ["update-ref", "refs/heads/side", "main"]);
    let tree = git(&hosted.repository, ["rev-parse", "main^{tree}"]);
    let lost =
        git(&hosted.repository, ["-c", "user.name=A", "-c", "user.email=a@b", "commit-tree", &tree, "-m", "lost"]);
    for purpose in ["dev", "ci", "history"] {
        let dst = format!("lost-{purpose}");
        let ran = hosted.calve(&["clone", "--json", "--for", purpose, "--rev", &lost, &hosted.url(), &dst]).succeeds();
        let commands = ran.json()["recipe"]["commands"].to_string();
        let fetch = if purpose == "ci" { &lost } else { &format!("git -C {dst} fetch origin {lost}") };
        assert!(commands.contains(fetch.as_str()), "{commands}");
        assert_eq!(hosted.git(&dst, &["rev-parse", "HEAD"]), lost);
        // Its commands may be approved like those of a branch.
        fs_err::write(hosted.spot.join(&dst).join(".calve.toml"), "hooks.post-add = 'true'\n").unwrap();
        let approve = calve(["hook", "approve", "--yes"]).within(hosted.spot.join(&dst));
        approve.env("CALVE_HOME", hosted.spot.join("home")).succeeds();
    }
}

#[test]
fn a_sparse_clone_has_only_its_directories() {
    let hosted = Hosted::new();
    for (purpose, commits) in [("dev", "30"), ("ci", "1")] {
        let dst = format!("sparse-{purpose}");
        let args = ["clone", "--json", "--for", purpose, "--sparse", "docs/", &hosted.url(), &dst];
        let receipt = hosted.calve(&args).succeeds().json();
        assert_eq!(names(hosted.spot.join(&dst)), [".git", "docs", "readme"], "{purpose}");
        assert_eq!(hosted.git(&dst, &["rev-list", "--count", "HEAD"]), commits);
        assert_eq!(receipt["recipe"]["filter"], "blob:none");
        assert_eq!(receipt["honoured"]["filter"], true);
        assert_eq!(hosted.git(&dst, &["status", "--porcelain"]), "");
    }
    // One that is not there is named.
    for (purpose, directory) in [("dev", "a"), ("ci", "b")] {
        let sparse = ["--sparse", "docs", "--sparse", "nodir/", "--sparse", "readme", "--sparse", "src/none"];
        let file =
            "`readme` is not a directory of the commit that is checked out, so it is here with the files beside it";
        let url = hosted.url();
        let arguments = [&["clone", "-q", "--for", purpose][..], &sparse, &[&url, directory]].concat();
        let ran = hosted.calve(&arguments).succeeds();
        let ran = ran.says(&["`nodir/` is not a directory of the commit", "`src/none` is not", file]).hints();
        assert!(!ran.stderr.contains("`docs` is not"), "{}", ran.stderr);
        assert!(hosted.spot.join(directory).join("readme").exists());
        // The command that the hint names.
        let listed = hosted.git(directory, &["ls-tree", "-rd", "--name-only", "HEAD"]);
        assert!(listed.lines().any(|line| line == "docs"), "{listed}");
    }
    let document = hosted.calve(&["clone", "--json", "--sparse", "nodir", &hosted.url(), "c"]).succeeds().json();
    assert!(document["warnings"].as_array().unwrap().iter().any(|one| one["code"] == "sparse_missing"), "{document}");
    // Any name will do.
    let names = ["sp ", " sp", "\"sp\"", "s\\p", "sp"];
    git_repository(hosted.spot.join("bare.git"), 1);
    hosted.git("", &["clone", "-q", "bare.git", "work"]);
    for name in names {
        hosted.spot.tree("work").file(format!("{name}/file"), b"1");
    }
    hosted.git("work", &["add", "."]);
    hosted.git("work", &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "names"]);
    hosted.git("work", &["push", "-q", "origin", "HEAD"]);
    for (number, name) in names.iter().enumerate() {
        let dst = format!("clone {number}");
        hosted.calve(&["clone", "-q", "--sparse", name, "bare.git", &dst]).succeeds();
        let there: Vec<_> = names.iter().filter(|name| hosted.spot.join(&dst).join(name).exists()).collect();
        assert_eq!(there, [name]);
    }
}

#[test]
fn names_with_spaces_and_quotes_are_names() {
    let name = "it's a \"project\" é%20";
    let hosted = Hosted::named(&format!("{name}.git"), HostFault::None);
    let path = hosted.repository.to_str().unwrap().to_owned();
    // In a URL, a percent sign that is meant as one is written as %25.
    let url = hosted.host.url(&format!("{}.git", name.replace('%', "%25")));
    for purpose in ["dev", "history"] {
        fs_err::create_dir(hosted.spot.join(purpose)).unwrap();
        let run = |url: &str| alone(calve(["git", "clone", "--for", purpose, url]).within(hosted.spot.join(purpose)));
        run(&url).succeeds();
        hosted.spot.holds(&["dev", "history"][..if purpose == "dev" { 1 } else { 2 }]);
        assert_eq!(names(hosted.spot.join(purpose)), [name]);
        assert_eq!(git(hosted.spot.join(purpose).join(name), ["status", "--porcelain"]), "");
        run(&path).fails(1).says(&[
            "name another directory, or remove that one first; `.` always counts as in use",
            "exists and is not an empty directory",
        ]);
        let other = format!("{purpose}/{name} by path");
        hosted.calve(&["clone", "--for", purpose, &path, &other]).succeeds();
        assert_eq!(hosted.git(&other, &["rev-list", "--count", "HEAD"]), "30");
    }
}

#[test]
fn an_empty_repository_and_one_of_a_single_commit_are_cloned() {
    let hosted = Hosted::new();
    let above = hosted.repository.parent().unwrap();
    git_repository(above.join("empty.git"), 0);
    git_repository(above.join("single.git"), 1);
    for purpose in ["dev", "ci", "history", "blobs"] {
        let clone = |name: &str| {
            let dst = format!("{purpose}-{name}");
            hosted.calve(&["clone", "--json", "--for", purpose, &hosted.host.url(name), &dst]).succeeds()
        };
        let ran = clone("empty.git").says(&["the repository is empty"]);
        assert!(!ran.stderr.contains("at least 0"), "{}", ran.stderr);
        let empty = ran.json();
        assert_eq!((&empty["head"], &empty["warnings"][0]["code"]), (&Value::Null, &json!("empty")));
        assert_eq!(empty["honoured"], json!({ "filter": null, "depth": null }));
        let single = clone("single.git").json();
        let honoured = |asked: bool| if asked { json!(true) } else { Value::Null };
        assert_eq!(single["honoured"]["depth"], honoured(purpose == "ci"), "its history is no longer than the depth");
        assert_eq!(single["honoured"]["filter"], honoured(["history", "blobs"].contains(&purpose)));
        assert_eq!(single["warnings"], json!([]));
    }
}

#[test]
fn an_empty_directory_is_filled_and_keeps_no_trace_of_the_staging() {
    let hosted = Hosted::new();
    fs_err::create_dir(hosted.spot.join("here")).unwrap();
    hosted.calve(&["clone", "--for", "dev", &hosted.url(), "here"]).succeeds();
    let config = fs_err::read_to_string(hosted.spot.join("here/.git/config")).unwrap();
    assert!(!config.contains("staging"), "{config}");
    hosted.spot.holds(&["here"]);
    // The index holds for the place where the clone is now: no file has to be read again.
    assert_eq!(hosted.git("here", &["diff-files", "--name-only"]), "");
    let mode = |path: &str| rustix::fs::stat(hosted.spot.join(path)).unwrap().st_mode & 0o777;
    fs_err::create_dir(hosted.spot.join("ordinary")).unwrap();
    assert_eq!(mode("here"), mode("ordinary"), "not the mode of the private directory it was made in");
    // A path is cloned by URL where filters and depths are wanted.
    let path = hosted.repository.to_str().unwrap();
    let ran = hosted.calve(&["clone", "--json", "--for", "ci", path, "ci"]).succeeds();
    assert_eq!(ran.json()["url"], format!("file://{path}"));
    assert_eq!(ran.json()["honoured"]["depth"], true);
    assert_eq!(ran.json()["requests"], 2, "the list of branches, and the objects");
    ran.says(&["note: the path is cloned by the URL file://"]);
    assert_eq!(hosted.git("ci", &["rev-list", "--count", "HEAD"]), "1");
    let ran = hosted.calve(&["clone", "--json", "--for", "dev", path, "dev"]).succeeds();
    assert_eq!((&ran.json()["url"], &ran.json()["requests"]), (&json!(path), &json!(0)));
    ran.says(&["note: a path: git links or copies"]);
    // Relative to where the user is, not to where the clone is made.
    git_repository(hosted.spot.join("near"), 1);
    hosted.calve(&["clone", "--for", "dev", "near", "far"]).succeeds();
    assert_eq!(hosted.git("far", &["rev-list", "--count", "HEAD"]), "1");
}

/// The mode, the owner, the group and the access control lists of a directory.
fn access(directory: &Path) -> String {
    let output = Command::new("getfacl").args(["--numeric", "--omit-header"]).arg(directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stat = rustix::fs::stat(directory).unwrap();
    format!("{:o} {}:{}\n{}", stat.st_mode, stat.st_uid, stat.st_gid, String::from_utf8_lossy(&output.stdout))
}

#[test]
fn an_empty_directory_keeps_its_mode_owner_and_access_control_lists() {
    if !require_root("another owner") {
        return;
    }
    for file_system in matrix([FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Xfs]) {
        let Some(volume) = Volume::new(file_system) else { continue };
        let hosted = Hosted::new();
        for list in [None, Some("u:4711:rx,d:u:4711:rwx")] {
            let [kept, by_git] = ["kept", "by git"].map(|name| {
                let root = volume.path().join(format!("{name} {}", list.is_some()));
                let tree = Tree::new(&root).owner("", 1234, 1235).mode("", 0o2710).mtime("", 1_000_000_000, 0);
                list.into_iter().fold(tree, |tree, list| tree.acl("", list));
                root
            });
            let before = access(&kept);
            hosted.calve(&["clone", "-q", "--for", "dev", &hosted.url(), kept.to_str().unwrap()]).succeeds();
            assert_eq!(access(&kept), before, "{file_system:?}");
            git(volume.path(), ["clone", "-q", &hosted.url(), by_git.to_str().unwrap()]);
            for below in [".git", ".git/objects", "readme", "src"] {
                assert_eq!(access(&kept.join(below)), access(&by_git.join(below)), "{below} on {file_system:?}");
            }
        }
    }
}

#[test]
fn an_empty_directory_that_cannot_be_replaced_is_refused_before_anything_is_fetched() {
    const NEW: &str = "hint: give the path of a directory that does not exist yet";
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let hosted = Hosted::new();
    let (url, mount) = (hosted.url(), volume.path().to_str().unwrap());
    for options in [&["-n"][..], &[]] {
        let ran = hosted.calve(&[&["clone", &url, mount], options].concat()).fails(1);
        ran.says(&["cannot replace the empty directory", "it is a mount point", NEW]);
    }
    // Another user's, where only its owner can remove it.
    let reachable = Reachable::new();
    let tree = hosted.spot.tree("sticky").dir("theirs").mode("", 0o1777);
    for options in [&["-n"][..], &[]] {
        let theirs = tree.path().join("theirs");
        let arguments = [&["clone", &url, theirs.to_str().unwrap()], options].concat();
        let ran = hosted.calve(&arguments).by_somebody_else(&reachable).fails(1);
        ran.says(&["cannot replace the empty directory", "sticky bit", NEW]);
    }
    assert_eq!(hosted.host.requests(), Vec::<String>::new());
}

#[test]
fn a_source_that_lacks_something_is_refused_or_told() {
    let hosted = Hosted::new();
    hosted.calve(&["clone", "-q", "--for", "history", &hosted.url(), "partial"]).succeeds();
    hosted.calve(&["clone", "--for", "dev", "partial", "new"]).fails(2).says(&["is a partial clone"]).hints();
    hosted.calve(&["clone", "-q", "--for", "ci", &hosted.url(), "shallow"]).succeeds();
    let ran = hosted.calve(&["clone", "--json", "--for", "dev", "shallow", "new"]).succeeds();
    let codes: Vec<_> =
        ran.json()["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].clone()).collect();
    assert_eq!(codes, ["path_as_url", "source_shallow"]);
    hosted.spot.holds(&["new", "partial", "shallow"]);
}

#[test]
fn ids_of_sha_256_and_a_configured_name_for_the_remote_make_no_difference() {
    let hosted = Hosted::new();
    let above = hosted.repository.parent().unwrap();
    git(above, ["init", "-q", "--object-format=sha256", "--bare", "-b", "main", "long.git"]);
    let repository = above.join("long.git");
    let tree = git(&repository, ["mktree"]);
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    let commit = git(&repository, identity.into_iter().chain(["commit-tree", &tree, "-m", "first"]));
    git(&repository, ["update-ref", "refs/heads/main", &commit]);
    assert_eq!(commit.len(), 64);
    let config = hosted.spot.join("config");
    fs_err::write(&config, "[clone]\n\tdefaultRemoteName = upstream\n").unwrap();
    for purpose in ["dev", "ci"] {
        let args = ["clone", "--json", "--for", purpose, "--rev", &commit, &hosted.host.url("long.git"), purpose];
        let receipt = hosted.calve(&args).env("GIT_CONFIG_GLOBAL", &config).succeeds().json();
        assert_eq!(receipt["head"], json!(commit));
        assert_eq!(hosted.git(purpose, &["remote"]), "origin");
    }
}

#[test]
fn a_plan_is_refused_where_the_clone_would_be() {
    let hosted = Hosted::new();
    let url = hosted.url();
    hosted.spot.tree("full").file("kept", b"1");
    hosted.calve(&["clone", "-n", &url, "full"]).fails(1).says(&["is not an empty directory"]).hints();
    for (purpose, property) in [("ci", "filter"), ("dev", "filter"), ("history", "depth")] {
        for options in [&["-n"][..], &[]] {
            let words = ["clone", "--for", purpose, "--require", property, &url, "new"];
            let ran = hosted.calve(&[&words, options].concat()).fails(3);
            ran.says(&["requests none here"]).hints();
        }
    }
    assert_eq!(hosted.host.requests(), Vec::<String>::new());
    hosted.spot.holds(&["full"]);
}

#[test]
fn an_id_that_leads_to_a_commit_is_cloned_and_any_other_is_named() {
    let hosted = Hosted::new();
    let head = git(&hosted.repository, ["rev-parse", "main"]);
    git(&hosted.repository, ["-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "one", "one", &head]);
    let [tag, tree, blob] = ["one", "main:src", "main:readme"].map(|name| git(&hosted.repository, ["rev-parse", name]));
    for purpose in ["dev", "ci", "history", "blobs"] {
        let clone =
            |id: &str| hosted.calve(&["clone", "--json", "--for", purpose, "--rev", id, &hosted.url(), purpose]);
        for other in [&tree, &blob] {
            clone(other).fails(1).says(&["check that it is the id of a commit"]);
        }
        assert_eq!(clone(&tag).succeeds().json()["head"], json!(head), "{purpose}");
    }
}

#[test]
fn a_hook_that_fails_is_no_fault_of_the_server() {
    let hosted = Hosted::new();
    let hook = hosted
        .spot
        .tree("hooks")
        .file("post-checkout", b"#!/bin/sh\necho \"404 Not Found: external filter 'x' failed\" >&2\nexit 1\n")
        .mode("post-checkout", 0o755);
    let config = hosted.spot.join("config");
    fs_err::write(&config, format!("[core]\n\thooksPath = {}\n", hook.path().display())).unwrap();
    let ran = hosted.calve(&["clone", &hosted.url(), "new"]).env("GIT_CONFIG_GLOBAL", &config).fails(1);
    ran.says(&["hint: see what git, or a hook that it ran, says above"]);
    hosted.spot.holds(&["config", "hooks"]);
}

#[test]
fn a_name_that_no_terminal_shows_can_be_pasted() {
    let hosted = Hosted::new();
    for name in [&b"o\np"[..], b"it's\x1b[1m", b"\xff"] {
        let name = OsStr::from_bytes(name);
        let plan = hosted.calve(&["clone", "--dry-run", "--json", &hosted.url()]).arg(name).succeeds().json();
        let ran = hosted.calve(&["clone", "-q", &hosted.url()]).arg(name).in_shell("", "| od -An -tx1 | tr -d ' \\n'");
        let bytes = name.as_bytes().iter().chain(b"\n").map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(ran.succeeds().stdout, bytes);
        fs_err::remove_dir_all(hosted.spot.join(name)).unwrap();
        for command in plan["recipe"]["commands"].as_array().unwrap() {
            let command = command.as_str().unwrap();
            let ran = Command::new("bash").args(["-c", command]).current_dir(hosted.spot.join("")).output().unwrap();
            assert!(ran.status.success() && !command.contains('\n'), "{command}: {ran:?}");
        }
        assert!(hosted.spot.join(name).join(".git").exists());
    }
}

#[test]
fn a_head_that_names_no_branch_is_a_warning_for_every_purpose() {
    let hosted = Hosted::new();
    git(&hosted.repository, ["symbolic-ref", "HEAD", "refs/heads/missing"]);
    let local = hosted.repository.to_str().unwrap().to_owned();
    for (number, (purpose, url)) in
        [("ci", hosted.url()), ("ci", local), ("dev", hosted.url()), ("history", hosted.url())].into_iter().enumerate()
    {
        let ran = hosted.calve(&["clone", "-q", "--json", "--for", purpose, &url, &number.to_string()]).succeeds();
        let codes = ran.json()["warnings"].to_string();
        assert!(codes.contains("no_head") && !codes.contains("empty"), "{purpose}: {codes}");
        ran.says(&["warning: the repository's HEAD names no branch that is there"]);
    }
    // Another branch tells whether a filter was honoured, also where HEAD has no files.
    let of_history = |dst| hosted.calve(&["clone", "-q", "--json", "--for", "history", &hosted.url(), dst]);
    let filtered = of_history("filtered").succeeds().json();
    assert_eq!((&filtered["honoured"]["filter"], &filtered["objects_missing_counted"]), (&true.into(), &true.into()));
    let missing = hosted.git("filtered", &["rev-list", "--objects", "--all", "--missing=print"]);
    let missing = missing.lines().filter(|line| line.starts_with('?')).count();
    assert_eq!((&filtered["objects_missing"], missing > 0), (&missing.into(), true));
    git(&hosted.repository, ["config", "uploadpack.allowFilter", "false"]);
    for head in ["missing", "bare"] {
        let no_files = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let commit = git(&hosted.repository, ["commit-tree", "-m", "x", no_files]);
        git(&hosted.repository, ["update-ref", "refs/heads/bare", commit.trim_end()]);
        git(&hosted.repository, ["symbolic-ref", "HEAD", &format!("refs/heads/{head}")]);
        assert_eq!(of_history(head).succeeds().json()["honoured"]["filter"], false, "{head}");
        of_history("none").args(["--require", "filter"]).fails(3);
    }
    git(&hosted.repository, ["symbolic-ref", "HEAD", "refs/heads/missing"]);
    git(&hosted.repository, ["update-ref", "-d", "refs/heads/bare"]);
    // Only a tag is left.
    git(&hosted.repository, ["tag", "v1", "main"]);
    git(&hosted.repository, ["update-ref", "-d", "refs/heads/main"]);
    let tagged = hosted.calve(&["clone", "-q", "--json", "--for", "ci", &hosted.url(), "tagged"]).succeeds().json();
    assert!(tagged["warnings"].to_string().contains("no_head"));
    git(&hosted.repository, ["tag", "-d", "v1"]);
    let empty = hosted.calve(&["clone", "-q", "--json", "--for", "ci", &hosted.url(), "empty"]).succeeds().json();
    assert!(empty["warnings"].to_string().contains("`empty`") || empty["warnings"][0]["code"] == "empty", "{empty}");
}
