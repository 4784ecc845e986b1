//! Every remedy of the libraries, with the test that makes its situation, or with why none does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::git::CASES;

/// Who makes the situation in which a remedy is shown.
enum Shown {
    /// A test: its file below `crates`, and its name.
    By(&'static str, &'static str),
    /// None, for this reason.
    Nowhere(&'static str),
}
use Shown::{By, Nowhere};

const RACE: &str = "another process has to act between two calls, which nothing can hold apart";
const TROUBLE: &str = "calve/tests/it/git/trouble.rs";

const GIT: &[(&str, Shown)] = &[
    ("AllowReading", Nowhere("a directory that cannot be searched hides the worktree from git as well")),
    ("AskGitStatus", Nowhere("git is asked first, and no index is known that git reads and Calve does not")),
    ("CheckPath", Nowhere("each failure of the system that could be made has a remedy of its own")),
    ("CheckWorktree", Nowhere(RACE)),
    ("ChooseTransportOrDropRequirement", Nowhere("where a server has no shallow clones, git fails by itself")),
    ("CutShort", By(TROUBLE, "a_server_that_dies_in_the_middle_leaves_nothing")),
    ("DiskFull", By(TROUBLE, "a_full_disk_leaves_room_again")),
    ("GiveNewPath", Nowhere("a path without a name exists, which is found out first")),
    ("NoCommit", By(TROUBLE, "an_unknown_branch_commit_repository_and_host_are_named")),
    ("ReadHelp", By(TROUBLE, "malicious_urls_and_options_are_refused")),
    ("Refused", By(TROUBLE, "who_is_not_let_in_is_told_and_what_he_said_is_not_repeated")),
    ("RepairWorktree", Nowhere("the entry of a linked worktree has to change between two calls")),
    ("RunAgain", Nowhere(RACE)),
    ("RunAgainUnchanged", By(TROUBLE, "an_interrupted_clone_ends_its_children_and_leaves_nothing")),
    ("StopWriters", Nowhere(RACE)),
    ("Transfer", By(TROUBLE, "an_unknown_branch_commit_repository_and_host_are_named")),
    (
        "TrustOwner",
        By("calve/tests/it/worktree/partial.rs", "a_repository_of_somebody_else_is_refused_with_gits_remedy"),
    ),
    ("Unknown", Nowhere("it is for words of git that nobody has seen yet")),
    ("UpdateGitOrDoWithout", Nowhere("it takes an old git")),
    ("WaitOrChooseAnotherBranch", Nowhere(RACE)),
];

/// Returns the variants of an enum in a file below `crates`, by its source.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = fs_err::read_to_string(crates().join(file)).unwrap();
    let (_, body) = text.split_once(name).unwrap_or_else(|| panic!("{file} has no `{name}`"));
    let body = body.split_once("\n}").unwrap().0;
    let lines = body.lines().map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    let word = |line: &str| line.chars().take_while(|c| c.is_alphanumeric()).collect();
    lines.map(word).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn assert_listed(all: &BTreeSet<String>, made_here: &BTreeSet<String>, elsewhere: &[(&str, Shown)]) {
    for (remedy, shown) in elsewhere {
        assert!(all.contains(*remedy), "there is no remedy `{remedy}`");
        assert!(!made_here.contains(*remedy), "the situation of `{remedy}` is listed twice");
        match shown {
            By(file, test) => {
                let text = fs_err::read_to_string(crates().join(file)).unwrap();
                assert!(text.contains(&format!("#[test]\nfn {test}()")), "{file} has no test `{test}`");
            }
            Nowhere(reason) => assert!(!reason.is_empty()),
        }
    }
    let listed = made_here.iter().map(String::as_str).chain(elsewhere.iter().map(|(remedy, _)| *remedy));
    let listed: BTreeSet<_> = listed.collect();
    let missing: Vec<_> = all.iter().filter(|remedy| !listed.contains(remedy.as_str())).collect();
    assert!(missing.is_empty(), "no test makes the situations of these remedies: {missing:?}");
}

#[test]
fn every_remedy_of_git_has_its_situation() {
    let mut all = variants("calve-git/src/remedy.rs", "pub enum Remedy {");
    all.extend(variants("calve-git/src/remote/error.rs", "pub enum TransferFailure {"));
    let made_here = CASES.iter().map(|case| case.remedy.to_owned()).collect();
    assert_listed(&all, &made_here, GIT);
}
