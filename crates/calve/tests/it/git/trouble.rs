//! What can go wrong: nothing is left behind, nothing is passed over in silence, and every error says what to do next.

use calve_testkit::{FileSystem, Volume, git};
use rustix::process::Signal;
use serde_json::json;

use super::host::HostFault;
use super::{Hosted, alone};
use crate::process::send;
use crate::program::calve;
use crate::spot::{Spot, eventually, names, nothing_left};

const LOST: &str = "0123456789012345678901234567890123456789";

#[test]
fn a_filter_may_be_required_and_a_server_without_filters_is_reported() {
    let hosted = Hosted::new();
    // One that is honoured may be required.
    hosted.calve(&["clone", "--require", "filter", "--for", "history", &hosted.url(), "a"]).succeeds();
    hosted
        .calve(&["clone", "--require", "filter", "--for", "blobs", "--sparse", "docs", &hosted.url(), "b"])
        .succeeds();
    git(&hosted.repository, ["config", "uploadpack.allowFilter", "false"]);
    for purpose in ["history", "blobs"] {
        let ran = hosted.calve(&["clone", "-q", "--json", "--for", purpose, &hosted.url(), purpose]).succeeds();
        let receipt = ran.json();
        assert_eq!(receipt["honoured"]["filter"], false);
        assert_eq!(
            (&receipt["warnings"][0]["code"], &receipt["objects_missing"]),
            (&json!("filter_ignored"), &json!(0))
        );
        ran.says(&["warning: THE SERVER IGNORED THE FILTER", "(files: 3)", "uploadpack.allowFilter"]);
        // It is a good clone all the same.
        assert_eq!(hosted.git(purpose, &["fsck"]), "");
        let required = hosted.calve(&["clone", "--require", "filter", "--for", purpose, &hosted.url(), "none"]);
        required.fails(3).says(&["the server would have sent everything; have it support filters (`uploadpack.allowFilter`), or leave out the requirement", "the required filter is not possible: the server ignored it"]);
    }
    // The depth is another matter, and the server cannot be required to do something that it was not asked for.
    hosted.calve(&["clone", "--require", "depth", "--for", "ci", &hosted.url(), "ci"]).succeeds();
    hosted
        .calve(&["clone", "--require", "depth", "--for", "dev", &hosted.url(), "none"])
        .fails(3)
        .says(&["the purpose `ci` asks for a depth, `history` and `blobs` for a filter; or leave out the requirement"]);
    hosted.spot.holds(&["a", "b", "history", "blobs", "ci"]);
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_nothing() {
    for bytes in [0, 100, 1_000] {
        let hosted = Hosted::with(HostFault::DiesAfter(bytes));
        for purpose in ["dev", "ci", "history"] {
            hosted.calve(&["clone", "--for", purpose, &hosted.url(), "new"]).fails(1).hints();
            hosted.spot.holds(&[]);
        }
    }
    let hosted = Hosted::with(HostFault::DiesAfter(5_000));
    let ran = hosted.calve(&["clone", "--for", "dev", &hosted.url(), "new"]).fails(1);
    ran.says(&["git clone failed", "early EOF", "hint: try again; if it persists, ask the server's administrator\n"]);
}

#[test]
fn a_server_that_dies_between_the_history_and_the_checkout_leaves_nothing() {
    // The first asks for the branches, the second for the history, the third for the contents to check out.
    let hosted = Hosted::with(HostFault::DiesAtPost(3));
    hosted.calve(&["clone", "--for", "history", &hosted.url(), "new"]).fails(1).says(&["git checkout failed"]).hints();
    hosted.spot.holds(&[]);
    let posts = hosted.host.requests().iter().filter(|request| request.starts_with("POST")).count();
    assert_eq!(posts, 3);
}

#[test]
fn who_is_not_let_in_is_told_and_what_he_said_is_not_repeated() {
    let hosted = Hosted::with(HostFault::Demands("me".into(), "s3cr3t/word".into()));
    let denied = hosted.calve(&["clone", &hosted.url(), "new"]).fails(1).says(&["hint: check that you may read it, and set up a credential helper (gitcredentials(7)) or an ssh key; git asks for a password only on a terminal\n"]);
    assert!(denied.stderr.contains("could not read Username"), "{}", denied.stderr);
    let wrong = hosted.calve(&["clone", &hosted.host.url_as("me:wr0ng", "project.git"), "new"]).fails(1).hints();
    assert!(wrong.stderr.contains("Authentication failed") && !wrong.stderr.contains("wr0ng"), "{}", wrong.stderr);
    hosted.spot.holds(&[]);
    let url = hosted.host.url_as("me:s3cr3t%2Fword", "project.git");
    for purpose in ["dev", "ci", "history"] {
        let ran = hosted.calve(&["clone", "--json", "--for", purpose, &url, purpose]).succeeds();
        assert!(!ran.stdout.contains("s3cr3t") && !ran.stderr.contains("s3cr3t"), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(hosted.git(purpose, &["remote", "get-url", "origin"]), hosted.url());
        let codes: Vec<_> =
            ran.json()["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].clone()).collect();
        assert_eq!(codes, ["credentials_not_stored", "credentials_unencrypted"]);
        let found = std::process::Command::new("grep").args(["-rl", "s3cr3t"]).arg(&*hosted.spot).output().unwrap();
        assert_eq!(found.stdout, b"", "stored in {}", String::from_utf8_lossy(&found.stdout));
    }
    let planned = hosted.calve(&["clone", "-n", &url]).succeeds();
    assert!(!planned.stdout.contains("s3cr3t"));
}

#[test]
fn credentials_of_a_url_are_not_handed_to_helpers_and_not_seen_in_the_process_list() {
    let hosted = Hosted::with(HostFault::Demands("me".into(), "s3cr3t".into()));
    let kept = hosted.spot.join("kept");
    let config = hosted.spot.join("config");
    let helper = format!("[credential]\n\thelper = store --file='{}'\n", kept.display());
    fs_err::write(&config, helper).unwrap();
    let url = hosted.host.url_as("me:s3cr3t", "project.git");
    hosted.calve(&["clone", "--for", "dev", &url, "new"]).env("GIT_CONFIG_GLOBAL", &config).succeeds();
    hosted.spot.holds(&["config", "new"]);
    // The user's own helper goes on working where the URL has nothing.
    fs_err::write(&kept, url.replace("/project.git", "\n")).unwrap();
    hosted.calve(&["clone", "--for", "dev", &hosted.url(), "other"]).env("GIT_CONFIG_GLOBAL", &config).succeeds();

    let slow = Hosted::with(HostFault::Stalls);
    let mut running =
        slow.calve(&["clone", "--for", "dev", &slow.host.url_as("me:s3cr3t", "project.git"), "new"]).start();
    eventually("git waits for an answer", || slow.host.requests().iter().any(|request| request.starts_with("POST")));
    let processes = processes_in(&slow.spot);
    assert!(!processes.is_empty() && !running.has_ended());
    // The user has typed it, and the system shows what he typed; git and what it starts must not.
    for id in processes.iter().filter(|id| **id != running.id()) {
        let line = fs_err::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("s3cr3t"), "{}", String::from_utf8_lossy(&line));
    }
    send(running.id(), Signal::TERM);
    running.wait().ended(130);
}

#[test]
fn an_unknown_branch_commit_repository_and_host_are_named() {
    let hosted = Hosted::new();
    let cases = [
        (
            vec!["--for", "dev", "--branch", "nope"],
            hosted.url(),
            "Remote branch nope not found",
            "git ls-remote --heads",
        ),
        (
            vec!["--for", "ci", "--branch", "nope"],
            hosted.url(),
            "Remote branch nope not found",
            "git ls-remote --heads",
        ),
        (
            vec!["--for", "ci", "--rev", LOST],
            hosted.url(),
            "not our ref",
            "hint: check that it is the id of a commit; many servers send only commits that a branch or tag reaches (`uploadpack.allowReachableSHA1InWant`)\n",
        ),
        (vec!["--for", "dev", "--rev", LOST], hosted.url(), "not our ref", "check that it is the id of a commit"),
        (vec!["--for", "history", "--rev", LOST], hosted.url(), "not our ref", "check that it is the id of a commit"),
        (vec!["--for", "dev"], hosted.host.url("nothing.git"), "not found", "check the spelling"),
        (vec!["--for", "dev"], "http://127.0.0.1:1/x.git".into(), "Failed to connect", "check the host"),
        (
            vec!["--for", "dev"],
            format!("file://{}/nothing", hosted.spot.display()),
            "does not appear to be a git repository",
            "check the spelling",
        ),
        // A name that reads like another failure.
        (
            vec!["--for", "dev"],
            format!("file://{}/early%20EOF/Connection%20refused", hosted.spot.display()),
            "Connection refused' does not appear to be a git repository",
            "check the spelling",
        ),
    ];
    for (options, url, said, hint) in cases {
        let args: Vec<_> = ["clone"].into_iter().chain(options.iter().copied()).chain([url.as_str(), "new"]).collect();
        let ran = hosted.calve(&args).fails(1).says(&[said, hint]).hints();
        assert!(!ran.stderr.contains("staging"), "{}", ran.stderr);
        hosted.spot.holds(&[]);
    }
}

#[test]
fn an_answer_of_the_host_decides_the_hint() {
    for (status, hint) in [
        ("403 Forbidden", "hint: check that you may read it"),
        ("404 Not Found", "hint: check the spelling of the URL"),
        ("500 Connection refused", "hint: see what git says above; `git ls-remote URL`"),
    ] {
        let hosted = Hosted::with(HostFault::Says(status));
        hosted.calve(&["clone", &hosted.url(), "new"]).fails(1).says(&[hint]);
        hosted.spot.holds(&[]);
    }
}

#[test]
fn malicious_urls_and_options_and_directories_in_use_are_refused() {
    let hosted = Hosted::new();
    let urls =
        ["ext::sh -c touch% bad", "fd::0", "ssh://-oProxyCommand=touch/x", "host:-a", "http://h/a\nb", "gopher://h/a"];
    for url in urls {
        hosted.calve(&["clone", url, "new"]).fails(2).says(&["give `https://HOST/PATH`, `ssh://USER@HOST/PATH`, `USER@HOST:PATH`, `git://HOST/PATH`, `file:///PATH` or a directory (`./PATH` when it begins with a dash)", "is not a repository to clone"]);
    }
    for url in ["--upload-pack=touch bad", "-x@host:a"] {
        hosted.calve(&["clone", "--", url, "new"]).fails(2).says(&["begins with a dash"]).hints();
    }
    hosted.calve(&["clone", "nothing/here", "new"]).fails(2).says(&["there is no such directory"]).hints();
    hosted.calve(&["clone", "--branch=--upload-pack=x", &hosted.url(), "new"]).fails(2).hints();
    hosted
        .calve(&["clone", "--rev", "HEAD", &hosted.url(), "new"])
        .fails(2)
        .says(&["40 or 64 hexadecimal digits"])
        .hints();
    hosted.calve(&["clone", "--sparse", "../x", &hosted.url(), "new"]).fails(2).hints();
    hosted.spot.holds(&[]);
    // A directory that is in use is left alone.
    hosted.spot.tree("full").file("kept", b"1");
    hosted.spot.tree("").file("file", b"2").symlink("link", "nowhere");
    for dst in ["full", "file", "link", ".", "full/.."] {
        hosted.calve(&["clone", &hosted.url(), dst]).fails(1).says(&["exists and is not an empty directory"]).hints();
    }
    hosted
        .calve(&["clone", &hosted.url(), "no/parent"])
        .fails(1)
        .says(&["create the parent directory first (`mkdir -p`)", "parent"]);
    assert!(hosted.host.requests().is_empty(), "nobody was asked");
    hosted.spot.holds(&["full", "file", "link"]);
    assert_eq!(names(hosted.spot.join("full")), ["kept"]);
}

const OF_CI: &str = "free some space; `--sparse` with fewer directories needs less";

#[test]
fn a_full_disk_leaves_room_again() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 4 << 20) else { return };
    let hosted = Hosted::new();
    let content: Vec<u8> = (0..8_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let work = tempfile::tempdir().unwrap();
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    git(work.path(), ["clone", "-q", hosted.repository.to_str().unwrap(), "."]);
    fs_err::write(work.path().join("large"), content).unwrap();
    git(work.path(), ["add", "."]);
    git(work.path(), identity.into_iter().chain(["commit", "-qm", "large"]));
    git(work.path(), ["push", "-q", "origin", "HEAD:main"]);
    let spot = Spot::at(volume);
    for purpose in ["dev", "ci", "history"] {
        let run = alone(calve(["git", "clone", "--for", purpose, &hosted.url(), "new"]).within(&spot));
        let less = if purpose == "ci" { OF_CI } else { "free some space; `--for ci` and `--sparse` need less" };
        run.fails(1).says(&["git checkout failed", &format!("hint: {less}\n")]);
        spot.holds(&[]);
    }
    // There is room for the index, and so git's checkout would end well without the file.
    let Some(image) = Volume::with_size(FileSystem::Ext4, 8 << 20) else { return };
    let spot = Spot::at(image);
    let revision = git(work.path(), ["rev-parse", "HEAD"]);
    for tip in [&[][..], &["--rev", &revision]] {
        let run = alone(calve(["git", "clone", "--for", "ci", "--json", &hosted.url(), "new"]).args(tip).within(&spot));
        let error = run.fails(1).json();
        assert_eq!(
            (&error["schema"], &error["code"]),
            (&json!("calve.error/1"), &json!("ERR_CALVE_NO_ROOM")),
            "{error}"
        );
        assert_eq!(error["hint"], OF_CI, "{error}");
        spot.holds(&[]);
    }
}

#[test]
fn an_interrupted_clone_ends_its_children_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let hosted = Hosted::with(HostFault::Stalls);
        let mut running = hosted.calve(&["clone", "--for", "dev", &hosted.url(), "new"]).start();
        eventually("git waits for an answer", || {
            hosted.host.requests().iter().any(|request| request.starts_with("POST"))
        });
        let processes = processes_in(&hosted.spot);
        assert!(processes.len() >= 3, "calve, git and its transport: {processes:?}");
        send(running.id(), signal);
        eventually("it ends, though the server does not", || running.has_ended());
        let ran = running.ends(130);
        ran.says(&["hint: run it again\n"]);
        eventually("no process is left", || processes_in(&hosted.spot).is_empty());
        hosted.spot.holds(&[]);
    }
}

#[test]
fn a_killed_clone_leaves_nothing_under_its_name_and_the_next_one_sweeps() {
    let hosted = Hosted::with(HostFault::Stalls);
    let running = hosted.calve(&["clone", "--for", "dev", &hosted.url(), "new"]).start();
    eventually("git waits for an answer", || hosted.host.requests().iter().any(|request| request.starts_with("POST")));
    let orphans = processes_in(&hosted.spot);
    send(running.id(), Signal::KILL);
    assert!(running.wait().was_killed());
    assert!(!hosted.spot.join("new").exists());
    assert!(names(&hosted.spot).iter().all(|name| name.starts_with(".calve-staging-")));
    // What calve can no longer end, this test does.
    orphans.iter().for_each(|id| send(*id, Signal::KILL));
    eventually("no process is left", || processes_in(&hosted.spot).is_empty());
    let path = hosted.repository.to_str().unwrap();
    hosted.calve(&["clone", "--for", "dev", path, "new"]).succeeds();
    nothing_left(&hosted.spot);
    hosted.spot.holds(&["new"]);
}

/// The processes whose current directory is in `dir`, or was.
fn processes_in(dir: &std::path::Path) -> Vec<u32> {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| fs_err::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir))).collect()
}

#[test]
fn what_failed_in_a_checkout_is_told_as_that() {
    const FILTER: &str = "install the program of that filter, such as git-lfs, or see what it says; \
        `git config --get-regexp '^filter'` shows its commands";
    let hosted = Hosted::new();
    let work = hosted.spot.join("work");
    git(&hosted.spot, ["clone", "-q", hosted.repository.to_str().unwrap(), "work"]);
    fs_err::write(work.join(".gitattributes"), "*.bin filter=lfs\n").unwrap();
    fs_err::write(work.join("a.bin"), "pointer\n").unwrap();
    git(&work, ["add", "-A"]);
    git(&work, ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "large"]);
    git(&work, ["push", "-q", "origin", "HEAD:main"]);
    fs_err::remove_dir_all(&work).unwrap();
    for command in ["no-such-lfs smudge -- %f", "echo 'batch request: Connection refused' >&2; false"] {
        for purpose in ["dev", "history"] {
            let ran = hosted.calve(&["clone", "--for", purpose, &hosted.url(), "new"]);
            let ran = ran.env("GIT_CONFIG_COUNT", "2").env("GIT_CONFIG_KEY_0", "filter.lfs.required");
            let ran = ran.env("GIT_CONFIG_VALUE_0", "true").env("GIT_CONFIG_KEY_1", "filter.lfs.smudge");
            let ran = ran.env("GIT_CONFIG_VALUE_1", command).fails(1);
            let ran = ran.says(&["git checkout failed", FILTER]);
            assert!(!ran.stderr.contains("spelling of the URL"), "{}", ran.stderr);
            // It ends before it has answered.
            let ran = hosted.calve(&["clone", "--for", purpose, &hosted.url(), "new"]);
            let ran = ran.env("GIT_CONFIG_COUNT", "2").env("GIT_CONFIG_KEY_0", "filter.lfs.required");
            let ran = ran.env("GIT_CONFIG_VALUE_0", "true").env("GIT_CONFIG_KEY_1", "filter.lfs.process");
            ran.env("GIT_CONFIG_VALUE_1", command).fails(1).says(&["git checkout failed", FILTER]);
            hosted.spot.holds(&[]);
        }
    }
}

#[test]
fn somebody_elses_repository_is_told_with_gits_command() {
    if !rustix::process::getuid().is_root() {
        return calve_testkit::skip("needs root, for a repository of another user");
    }
    let hosted = Hosted::new();
    std::os::unix::fs::chown(&hosted.repository, Some(12345), Some(12345)).unwrap();
    let url = format!("file://{}", hosted.repository.display());
    for purpose in ["dev", "history"] {
        let ran = hosted.calve(&["clone", "--for", purpose, &url, "new"]).fails(1);
        let ran = ran.says(&["dubious ownership", "git config --global --add safe.directory"]);
        assert!(!ran.stderr.contains("\\t") && !ran.stderr.contains("ls-remote"), "{}", ran.stderr);
        ran.says(&["hint: run the `git config` command that git names above if you trust the repository's owner"]);
    }
    hosted.spot.holds(&[]);
}
