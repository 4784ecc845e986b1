//! Sources whose history is cut off. In a partial clone of one, git starts git without end to fetch commits that exist nowhere.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_testkit::git;
use serde_json::Value;

use super::host::{GitHost, HostFault};
use super::{Hosted, alone};
use crate::program::{Calve, RunResult, calve};
use crate::spot::eventually;

/// Should it not end, it is interrupted, and ends what it started.
const AT_MOST: [&str; 5] = ["timeout", "-s", "INT", "-k", "5"];

/// Much less than it takes to fill a machine with processes.
const SOON: Duration = Duration::from_secs(20);

fn ends(command: Calve) -> RunResult {
    let started = Instant::now();
    let ran = command.under(&[&AT_MOST[..], &["30"]].concat()).run();
    assert!(started.elapsed() < SOON, "{:?}: {}", started.elapsed(), ran.stderr);
    ran
}

/// Waits until no process names a file in `place`, and works on none there.
#[track_caller]
fn nobody_is_left_in(place: &Path) {
    let names_it = |process: &Path| {
        let words = fs_err::read(process.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let at = fs_err::read_link(process.join("cwd")).unwrap_or_default();
        at.starts_with(place) || words.contains(place.to_str().unwrap())
    };
    eventually("all processes have ended", || {
        let processes = fs_err::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.filter(|process| names_it(process)).count() == 0
    });
}

/// Makes `name` below `hosted`'s place a shallow repository.
fn shallow(hosted: &Hosted, name: &str) -> String {
    let repository = format!("file://{}", hosted.repository.display());
    git(&hosted.spot, ["clone", "-q", "--bare", "--depth", "1", &repository, name]);
    let made = hosted.spot.join(name);
    git(&made, ["config", "uploadpack.allowFilter", "true"]);
    made.to_str().unwrap().to_owned()
}

fn codes(ran: &RunResult) -> Vec<String> {
    let warnings = ran.json()["warnings"].as_array().unwrap().clone();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_shallow_directory_is_cloned_in_full() {
    let hosted = Hosted::new();
    let plain = shallow(&hosted, "plain");
    let spaced = shallow(&hosted, "with space");
    let ending = shallow(&hosted, "ending.git");
    let escaped = format!("file://{}", spaced.replace(' ', "%20"));
    // git adds the ending by itself.
    let shortened = format!("file://{}", ending.strip_suffix(".git").unwrap());
    let linked = hosted.spot.join("linked").to_str().unwrap().to_owned();
    git(Path::new(&plain), ["worktree", "add", "-q", "--detach", &linked]);
    let sources = [plain.clone(), format!("file://{plain}"), spaced, escaped, shortened, linked];
    let ways: [&[&str]; 5] =
        [&["dev"], &["history"], &["blobs"], &["history", "--sparse", "docs"], &["dev", "--sparse", "docs"]];
    for (number, source) in sources.iter().enumerate() {
        for (way, words) in ways.iter().enumerate() {
            let dst = format!("{number}-{way}");
            let arguments = [&["clone", "--json", "--for"], *words, &[source, &dst]].concat();
            let ran = ends(hosted.calve(&arguments));
            ran.ended(0);
            assert!(codes(&ran).contains(&"source_shallow".to_owned()), "{source} {words:?}: {}", ran.stderr);
            assert_eq!((&ran.json()["recipe"]["filter"], &ran.json()["objects_missing"]), (&Value::Null, &0.into()));
            assert_eq!(hosted.git(&dst, &["rev-parse", "--is-shallow-repository"]), "true");
            assert_eq!(hosted.git(&dst, &["fsck"]), "");
        }
    }
    // A dry run says the same, and a requirement is not given up.
    let plan = hosted.calve(&["clone", "-n", "--json", "--for", "history", &plain, "x"]).succeeds().json();
    assert_eq!(plan["recipe"]["filter"], Value::Null);
    let required = ends(hosted.calve(&["clone", "--require", "filter", "--for", "history", &plain, "x"]));
    required.ended(3);
    required.says(&["is shallow", "hint: `git fetch --unshallow` there fetches the missing history"]);
    // With a depth git knows where the history ends.
    let ci = ends(hosted.calve(&["clone", "--json", "--for", "ci", "--sparse", "docs", &plain, "ci"]));
    ci.ended(0);
    assert_eq!(ci.json()["recipe"]["filter"], "blob:none");
    nobody_is_left_in(&hosted.spot);
}

#[test]
fn a_shallow_source_that_cannot_be_looked_at_is_given_up() {
    let hosted = Hosted::new();
    let plain = shallow(&hosted, "plain");
    let host = GitHost::with(&*hosted.spot, HostFault::None);
    let elsewhere = |command: Calve| {
        let command =
            command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", format!("url.file://{plain}.insteadOf"));
        command.env("GIT_CONFIG_VALUE_0", "ssh://nowhere.invalid/plain")
    };
    let dst = hosted.spot.join("new");
    for (url, is_on_terminal) in [
        (host.url("plain"), false),
        ("ssh://nowhere.invalid/plain".to_owned(), false),
        ("ssh://nowhere.invalid/plain".to_owned(), true),
    ] {
        for words in [&["history"][..], &["dev", "--sparse", "docs"]] {
            let arguments = [&["clone", "--for"], words, &[&url, "new"]].concat();
            let command = elsewhere(hosted.calve(&arguments));
            let ran = if is_on_terminal { ends(command.on_a_terminal()) } else { ends(command) };
            assert_eq!(ran.status.code(), Some(1), "{url} {words:?}: {}", ran.stderr);
            if !is_on_terminal {
                let hint = "`git fetch --unshallow` there fetches the missing history; new clones with `--for dev` or `--for ci` do without it";
                ran.says(&["git kept asking the shallow source", hint]).hints();
            }
            assert!(!dst.exists());
            nobody_is_left_in(&hosted.spot);
        }
    }
    // As the hint says.
    let ran = ends(elsewhere(hosted.calve(&["clone", "--json", "--for", "dev", &host.url("plain"), "new"])));
    ran.ended(0);
    assert_eq!(codes(&ran), ["source_shallow"]);
}

/// Makes `partial`, a clone from a time when its origin had its whole history, and has `then` change it. Returns the origin.
fn cut_off(hosted: &Hosted, purpose: &str, then: impl FnOnce(&Path)) -> PathBuf {
    let origin = hosted.spot.join("origin");
    fs_err::rename(&hosted.repository, &origin).unwrap();
    let url = format!("file://{}", origin.display());
    hosted.calve(&["clone", "-q", "--for", purpose, &url, "partial"]).succeeds();
    then(&hosted.spot.join("partial"));
    fs_err::rename(&origin, &hosted.repository).unwrap();
    hosted.push();
    hosted.push();
    shallow(hosted, "origin");
    origin
}

#[test]
fn a_partial_clone_is_not_fetched_into_without_end() {
    let hosted = Hosted::new();
    let origin = cut_off(&hosted, "history", |_| ());
    let before = hosted.git("partial", &["for-each-ref"]);
    let tip = git(&origin, ["rev-parse", "main"]);
    git(&origin, ["update-ref", "refs/pull/7/head", &tip]);
    for arguments in [&["fetch", "-C", "partial"][..], &["fetch", "-C", "partial", "main"]] {
        let ran = ends(hosted.calve(arguments));
        ran.ended(1);
        ran.says(&["git fetch failed: git kept asking the shallow source", "git fetch --unshallow"]).hints();
        nobody_is_left_in(&hosted.spot);
    }
    let partial = hosted.spot.join("partial");
    let ran = ends(alone(calve(["worktree", "add", "pr/7"]).within(&partial)));
    ran.ended(1);
    ran.says(&["git kept asking the shallow source"]).hints();
    nobody_is_left_in(&hosted.spot);
    assert_eq!(hosted.git("partial", &["for-each-ref"]), before);
    assert_eq!(hosted.git("partial", &["status", "--porcelain"]), "");
    // The hint: with its whole history it is fetched.
    git(&origin, ["fetch", "-q", "--unshallow", hosted.repository.to_str().unwrap()]);
    ends(hosted.calve(&["fetch", "-C", "partial"])).ended(0);
    assert_eq!(hosted.git("partial", &["rev-parse", "origin/main"]), tip);
}

/// Contents and trees are fetched by themselves. A commit at which the origin's history is cut off asks for itself without end.
#[test]
fn what_a_partial_clone_lacks_is_not_fetched_without_end() {
    let hosted = Hosted::new();
    let origin = cut_off(&hosted, "history", |_| ());
    let tip = git(&origin, ["rev-parse", "main"]);
    let run = |words: &[&str]| {
        let command = alone(calve(["worktree"]).args(words).within(hosted.spot.join("partial")));
        let ran = ends(command.env("CALVE_HOME", hosted.spot.join("home")));
        nobody_is_left_in(&hosted.spot);
        ran
    };
    for words in [&["add", "--base", &tip, "new"][..], &["add", "--detach", "--path", "../new", &tip]] {
        let ran = run(words);
        ran.ended(1);
        ran.says(&["git kept asking the shallow source"]).hints();
        assert!(!hosted.spot.join("new").exists());
    }
    for words in [&["add", "same"][..], &["list"], &["prune", "--merged", "-n"], &["remove", "--yes", "same"]] {
        run(words).ended(0);
    }
    assert_eq!(hosted.git("partial", &["worktree", "list"]).lines().count(), 1);
}
