//! Made-up repositories are as asked for, and the same each time.

use std::path::Path;

use calve_bench::git::{SyntheticRepository, SyntheticShape};
use calve_core::CancelToken;
use calve_git::Git;

fn small(shape: SyntheticShape) -> SyntheticRepository {
    let mut wanted = SyntheticRepository::new(shape);
    (wanted.commits, wanted.files, wanted.file_bytes) = (30, 25, 2_000);
    wanted
}

fn line(repository: &Path, arguments: &[&str]) -> String {
    git(repository).line(arguments).unwrap().into_string().unwrap()
}

/// The repository is named, for who has told git to look for no bare one by itself.
fn git(repository: &Path) -> Git {
    Git::at(repository).with("GIT_DIR", ".")
}

#[test]
fn all_shapes_have_the_commits_and_files_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for shape in SyntheticShape::ALL {
        let dst = folder.path().join(shape.name());
        small(shape).write(&dst, &CancelToken::default()).unwrap();
        assert_eq!(line(&dst, &["rev-list", "--count", "main"]), "30");
        assert_eq!(line(&dst, &["symbolic-ref", "HEAD"]), "refs/heads/main");
        let files = git(&dst).run(&["ls-tree", "-r", "--name-only", "main"]).unwrap();
        assert_eq!(files.split(|byte| *byte == b'\n').count() - 1, 25, "{}", shape.name());
        let objects = line(&dst, &["count-objects", "-v"]);
        assert!(objects.contains("count: 0") && objects.contains("packs: 1"), "{objects}");
        git(&dst).run(&["fsck", "--strict"]).unwrap();
        // Every commit changes something.
        let empty = git(&dst).run(&["log", "--format=%H", "--shortstat", "main"]).unwrap();
        assert_eq!(String::from_utf8(empty).unwrap().matches("changed").count(), 30);
    }
}

#[test]
fn the_same_options_give_the_same_commits() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, wanted: &SyntheticRepository| {
        let dst = folder.path().join(name);
        wanted.write(&dst, &CancelToken::default()).unwrap();
        line(&dst, &["rev-parse", "main"])
    };
    let mut wanted = small(SyntheticShape::Small);
    let first = made("first", &wanted);
    assert_eq!(made("second", &wanted), first);
    wanted.seed = 2;
    assert_ne!(made("third", &wanted), first);
}

#[test]
fn the_newest_version_of_a_file_is_whole_and_older_ones_are_deltas() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("repository");
    small(SyntheticShape::Small).write(&dst, &CancelToken::default()).unwrap();
    let path = line(&dst, &["log", "-1", "--format=", "--name-only", "main"]);
    let path = path.lines().next().unwrap();
    let base = |revision: &str| {
        let question = folder.path().join("question");
        fs_err::write(&question, format!("{revision}:{path}\n")).unwrap();
        let mut command = git(&dst).command();
        command.args(["cat-file", "--batch-check=%(deltabase)"]);
        command.stdin(std::fs::File::from(fs_err::File::open(&question).unwrap()));
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let before = line(&dst, &["log", "-1", "--skip=1", "--format=%H", "main", "--", path]);
    let newest = line(&dst, &["rev-parse", &format!("main:{path}")]);
    assert!(base("main").chars().all(|digit| digit == '0'), "the newest has no base");
    assert_eq!(base(&before), newest);
}

#[test]
fn a_directory_that_holds_something_is_an_error_of_git() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("file");
    fs_err::write(&dst, "").unwrap();
    assert!(small(SyntheticShape::Small).write(&dst, &CancelToken::default()).is_err());
}
