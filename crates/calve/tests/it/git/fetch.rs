//! Fetching in the way that costs least.

use serde_json::{Value, json};

use super::Hosted;
use crate::program::keys_in_order;

#[test]
fn each_clone_is_fetched_into_in_its_way() {
    let hosted = Hosted::new();
    for purpose in ["dev", "ci", "history", "blobs"] {
        hosted.calve(&["clone", "-q", "--for", purpose, &hosted.url(), purpose]).succeeds();
    }
    hosted.push();
    for (purpose, commits) in [("dev", "31"), ("ci", "2"), ("history", "31"), ("blobs", "31")] {
        let before = hosted.host.requests().len();
        let ran = hosted.calve(&["fetch", "--json", "-C", purpose]).succeeds();
        let receipt = ran.json();
        assert_eq!(receipt["purpose"], purpose);
        assert_eq!(receipt["commands"], json!(["git fetch origin"]));
        assert_eq!(receipt["requests"], hosted.host.requests().len() - before);
        let updated = receipt["updated"].as_array().unwrap();
        assert!(
            updated.len() == 1 && updated[0].as_str().unwrap().ends_with("main       -> origin/main"),
            "{updated:?}"
        );
        // Few objects git takes apart as they come, and does not count; a partial clone keeps them as a pack.
        let bytes = receipt["bytes_received"].as_u64();
        let partial = ["history", "blobs"].contains(&purpose);
        assert!(
            if partial { bytes.is_some_and(|bytes| (50..2000).contains(&bytes)) } else { bytes.is_none() },
            "{purpose}: {bytes:?}"
        );
        assert_eq!(hosted.git(purpose, &["rev-list", "--count", "origin/main"]), commits, "{purpose}");
        let ran = ran.says(&["fetched: 1 updated"]);
        assert!(!ran.stderr.contains("published"), "{}", ran.stderr);
        let again = hosted.calve(&["fetch", "--json", "-C", purpose]).succeeds().says(&["nothing new"]).json();
        assert_eq!((&again["updated"], &again["bytes_received"]), (&json!([]), &json!(0)));
        let kept = hosted.spot.join(purpose).join(".git");
        let traces = fs_err::read_dir(kept)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("trace"));
        assert_eq!(traces.count(), 0);
    }
}

/// Each reference is updated by itself: those before the one that fails have moved.
#[test]
fn a_fetch_that_fails_in_part_does_not_claim_to_have_done_nothing() {
    let hosted = Hosted::new();
    calve_testkit::git(&hosted.repository, ["branch", "feature"]);
    hosted.calve(&["clone", "-q", "--for", "dev", &hosted.url(), "dev"]).succeeds();
    calve_testkit::git(&hosted.repository, ["branch", "-m", "feature", "feature/below"]);
    hosted.push();
    let before = hosted.git("dev", &["rev-parse", "origin/main"]);
    let failed = hosted.calve(&["fetch", "-C", "dev"]).fails(1).says(&["cannot lock ref"]).hints();
    assert_ne!(hosted.git("dev", &["rev-parse", "origin/main"]), before);
    assert!(!failed.stderr.contains("left behind"), "{}", failed.stderr);
}

#[test]
fn a_clone_of_one_commit_wants_to_know_what_to_fetch() {
    let hosted = Hosted::new();
    let old = calve_testkit::git(&hosted.repository, ["rev-parse", "main~5"]);
    hosted.calve(&["clone", "-q", "--for", "ci", "--rev", &old, &hosted.url(), "one"]).succeeds();
    hosted.calve(&["fetch", "-C", "one"]).fails(2).says(&["name the branch or commit"]).hints();
    hosted.calve(&["fetch", "-C", "one", "main"]).succeeds();
    assert_eq!(
        hosted.git("one", &["rev-list", "--count", "FETCH_HEAD"]),
        "6",
        "from the commit that is there to the newest"
    );
    // A dry run and a wrong place send no request.
    hosted.calve(&["clone", "-q", "--for", "dev", &hosted.url(), "dev"]).succeeds();
    let before = hosted.host.requests().len();
    let plan = hosted.calve(&["fetch", "-n", "--json", "-C", "dev"]).succeeds().json();
    assert_eq!(keys_in_order(&plan), ["schema", "purpose", "shallow", "filter", "commands", "reason"]);
    assert_eq!((&plan["schema"], &plan["filter"]), (&json!("calve.git-fetch-plan/1"), &Value::Null));
    hosted.calve(&["fetch", "-C", "nowhere"]).fails(1).hints();
    hosted.calve(&["fetch", "-C", "."]).fails(1).says(&[
        "run it inside a git repository that has a commit, or make one with `git init`",
        "is not in a git repository",
    ]);
    hosted.calve(&["fetch", "-C", "dev", "--", "--upload-pack=x"]).fails(2).hints();
    hosted
        .calve(&["fetch", "-C", "dev", "nope"])
        .fails(1)
        .says(&["see what is there: git ls-remote --heads --tags URL"])
        .says(&["couldn't find remote ref nope", "git ls-remote"]);
    assert_eq!(hosted.host.requests().len(), before + 2, "only for the branch that is not there");
}
