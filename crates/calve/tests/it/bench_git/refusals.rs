//! Refusals, before anything is measured.

use std::io::Write as _;

use calve_testkit::{FileSystem, Volume, fingerprint};

use super::{bench_git, git, made_up, repository, tiny};
use crate::program::calve;
use crate::spot::Spot;

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let spot = Spot::anywhere();
    repository(spot.join("good"), 3);
    repository(spot.join("empty"), 0);
    fs_err::create_dir(spot.join("plain")).unwrap();
    fs_err::write(spot.join("file"), "").unwrap();
    git(&*spot, ["-C", "good", "config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}/good", spot.display());
    git(&*spot, ["clone", "-q", "--filter=blob:none", &url, "partial"]);
    git(&*spot, ["clone", "-q", "--depth=1", &url, "shallow"]);
    git(&*spot, ["clone", "-q", &url, "detached"]);
    git(&*spot, ["-C", "detached", "checkout", "-q", "--detach"]);
    git(&*spot, ["-C", "detached", "branch", "-D", "main"]);
    let names = ["good", "empty", "plain", "partial", "shallow", "detached"];
    let before = names.map(|name| (fingerprint(spot.join(name)), spot.join(name)));
    let refused = |repository: &str, more: &[&str], words: &[&str]| {
        let ran = bench_git(".", ["--repo", repository]).args(more).within(&spot).fails(1);
        ran.says(words).hints();
    };
    refused("plain", &[], &["plain` is not a git repository"]);
    refused("empty", &[], &["empty` has no commits"]);
    refused("partial", &[], &["partial` is a partial clone"]);
    refused("shallow", &[], &["shallow` is a shallow clone"]);
    refused("detached", &[], &["has no commits"]);
    // Nor is a shallow one asked by URL, without end.
    let shallow = format!("file://{}/shallow", spot.display());
    let hint = "name the repository that it was cloned from, or a full clone";
    refused(&shallow, &["--tests=T1,T4"], &["shallow` is a shallow clone", hint]);
    refused("file:///nonexistent/repository", &[], &["cannot be cloned"]);
    // All are checked before any is copied.
    refused("good", &["--repo", "partial"], &["partial` is a partial clone"]);
    before.iter().for_each(|(before, path)| before.assert_unchanged(path));
    spot.holds(&[&names[..], &["file"]].concat());
}

#[test]
fn a_source_without_a_branch_checked_out_is_refused() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 3);
    git(&*spot, ["-C", "source", "checkout", "-q", "--detach", "HEAD~2"]);
    bench_git(".", ["--repo=source", "--tests=T2"])
        .within(&spot)
        .fails(1)
        .says(&["has no branch checked out", "check out a branch there, or name a clone that has one checked out"]);
    git(&*spot, ["-C", "source", "checkout", "-q", "main"]);
    let report = bench_git(".", ["--repo=source", "--tests=T1,T7", "--json"]).within(&spot).succeeds().json();
    assert_eq!(report["repositories"][0]["branch"], "main");
}

#[test]
fn urls_that_make_no_sense_or_run_programs_are_refused() {
    let spot = Spot::anywhere();
    let marker = spot.join("marker");
    let evil = format!("ext::sh -c touch% {}", marker.display());
    for (url, words) in [
        ("missing", "no such directory"),
        (evil.as_str(), "any command"),
        ("fd::17", "any command"),
        ("--upload-pack=touch marker", "begins with a dash"),
        ("ssh://-oProxyCommand=touch/x", "begins with a dash"),
        ("ftp://host/repository", "https, http, ssh, git and file"),
    ] {
        let ran = bench_git(".", [format!("--repo={url}")])
            .within(&spot)
            .fails(2)
            .says(&["give a URL that git understands, or a directory"]);
        ran.says(&[words]).hints();
    }
    spot.holds(&[]);
    // A place that is missing, or no directory.
    fs_err::write(spot.join("file"), "").unwrap();
    let elsewhere = Spot::anywhere();
    let tiny = [tiny(&elsewhere)];
    bench_git("missing", &tiny).within(&spot).fails(1).says(&["`missing` does not exist"]).hints();
    bench_git("file", &tiny)
        .within(&spot)
        .fails(2)
        .says(&["name a directory on the file system to measure", "is not a directory"]);
    spot.holds(&["file"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 1);
    let refused = |arguments: &[&str], word: &str| {
        let ran = calve(["bench", "git"]).args(arguments).within(&spot).ends(2);
        ran.says(&[word]);
    };
    refused(&[], "--repo");
    refused(&["--repo=source", "--tests=T11"], "T1 to T10");
    refused(&["--repo=source", "--tests=T5-T2"], "greater test first");
    refused(&["--repo=source", "--runs=0"], "--runs");
    spot.holds(&["source"]);
    // A repository with one commit has no past to look at.
    let report = bench_git(".", ["--repo=source", "--tests=T1-T3,T8", "--json"]).within(&spot).succeeds().json();
    let operations: Vec<&str> =
        report["results"].as_array().unwrap().iter().map(|it| it["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["clone", "clone", "clone", "clone", "fetch", "reset"]);
}

#[test]
fn too_little_room_is_noticed_early() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 8 << 20) else { return };
    let spot = Spot::at(volume);
    let elsewhere = Spot::anywhere();
    // 4 MB in a pack, and 4 MB checked out: one file, as there is no difference to look for.
    let ran = bench_git(".", [made_up(&elsewhere, 1, 1, 4 << 20)]).within(&spot).fails(1);
    ran.says(&["a run needs", "are free", "--into"]).hints();
    spot.holds(&[]);
    // And what does not fit at all.
    let elsewhere = Spot::anywhere();
    bench_git(".", [made_up(&elsewhere, 1, 1, 20 << 20)]).within(&spot).fails(1).hints();
    spot.holds(&[]);
}

#[test]
fn a_disk_that_fills_up_meanwhile_is_told() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 40 << 20) else { return };
    let spot = Spot::at(volume);
    let elsewhere = Spot::anywhere();
    let mut running = calve(["bench", "git", "--into", ".", "--tests=T1", "--runs=100000"])
        .arg(made_up(&elsewhere, 1, 2, 1 << 20))
        .within(&spot)
        .start();
    crate::spot::eventually("it clones", || {
        let place = crate::spot::leftovers(&spot).pop();
        place.is_some_and(|place| {
            fs_err::read_dir(spot.join(place))
                .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() == "client")))
        })
    });
    let mut filler = fs_err::OpenOptions::new().create(true).append(true).open(spot.join("filler")).unwrap();
    let bytes = vec![0; 1 << 16];
    // And filled it stays: between two clones there is the room of one.
    crate::spot::eventually("it ends", || {
        while filler.write(&bytes).is_ok_and(|written| written > 0) {}
        running.has_ended()
    });
    let ran = running.ends(1);
    // A client's git has failed, or what the bench itself has written.
    let said = ["no space is left", "No space left on device"];
    assert!(said.iter().any(|words| ran.stderr.contains(words)), "{}", ran.stderr);
    ran.says(&["error: "]).hints();
    spot.holds(&["filler"]);
}
