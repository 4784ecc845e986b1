//! Files of a worktree that `git status` does not show.

use std::path::Path;

use calve_testkit::Tree;
use serde_json::json;

use super::repo::{Repo, git, is_clean, with_environment, write};
use super::unsaved::Guarded;
use crate::program::calve;

/// A repository with the submodule `lib`, which no new worktree has initialised.
fn with_submodule() -> Repo {
    let repo = Repo::anywhere();
    let inner = repo.spot.join("inner");
    repo.git(["clone", "-q", ".", inner.to_str().unwrap()]);
    repo.git(["-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.to_str().unwrap(), "lib"]);
    repo.commit("submodule");
    repo
}

fn is_shown(worktree: &Path, status: &str) {
    assert_eq!(git(worktree, ["status", "--porcelain", "--untracked-files=all"]), status);
}

#[test]
fn files_and_hidden_changes_in_the_directory_of_a_submodule_are_kept() {
    let x = Guarded::of(with_submodule());
    write(&x.path.join("lib/notes"), "n\n");
    write(&x.path.join("lib/deep/x.log"), "n\n");
    is_shown(&x.path, "");
    let words = ["the directory of a submodule", "`lib/deep/x.log`", "`lib/notes`", "move it away"];
    x.is_kept("in_submodule", &words);
    let question = json!({"cwd": x.repo.path, "hook_event_name": "WorktreeRemove", "worktree_path": x.path});
    let asked = x.repo.spot.join("question");
    write(&asked, &question.to_string());
    let hook = with_environment(calve(["hook", "worktree-remove"]));
    hook.in_shell("", &format!("<{}", asked.display())).fails(1).says(&["`lib/notes`"]);
    // Also where the submodule was there once.
    fs_err::remove_dir_all(x.path.join("lib")).unwrap();
    x.git(["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init"]);
    x.git(["submodule", "deinit", "-q", "lib"]);
    write(&x.path.join("lib/notes"), "n\n");
    x.is_kept("in_submodule", &["`lib/notes`"]);
    fs_err::remove_file(x.path.join("lib/notes")).unwrap();
    // Changes that git was told not to look at.
    x.git(["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init"]);
    x.git(["update-index", "--skip-worktree", "lib"]);
    write(&x.path.join("lib/src/main.ts"), "changed\n");
    is_shown(&x.path, "");
    x.is_kept("uncommitted", &["in `lib`", "`src/main.ts`"]);
    git(&x.path.join("lib"), ["checkout", "-q", "."]);
    x.goes();
}

#[test]
fn a_directory_in_the_place_of_a_hidden_file_is_kept() {
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let x = Guarded::new();
        x.git(["update-index", mark, "run.sh"]);
        fs_err::remove_file(x.path.join("run.sh")).unwrap();
        // So is a FIFO, of which git would wait for a writer.
        Tree::new(&x.path).fifo("run.sh");
        x.is_kept("hidden", &["`run.sh`"]);
        fs_err::remove_file(x.path.join("run.sh")).unwrap();
        write(&x.path.join("run.sh/deep/in"), "only here\n");
        write(&x.path.join("run.sh/x.log"), "ignored\n");
        is_shown(&x.path, "?? run.sh/deep/in\n");
        x.is_kept("hidden", &["`run.sh`", mark]);
        // Where git ignores all that is in it, that is moved aside.
        fs_err::remove_dir_all(x.path.join("run.sh/deep")).unwrap();
        x.repo.calve(["remove", "proj.x"]).succeeds().says(&["`run.sh/x.log`", "7 days"]);
    }
}

#[test]
fn a_nested_repository_hides_nothing_either() {
    let x = Guarded::of(with_submodule());
    let nested = x.path.join("node_modules/nested");
    x.repo.git(["clone", "-q", ".", nested.to_str().unwrap()]);
    write(&nested.join("lib/notes"), "n\n");
    x.is_kept("in_submodule", &["`node_modules/nested`", "`lib/notes`"]);
    fs_err::remove_file(nested.join("lib/notes")).unwrap();
    git(&nested, ["update-index", "--skip-worktree", "run.sh"]);
    fs_err::remove_file(nested.join("run.sh")).unwrap();
    write(&nested.join("run.sh/in"), "only here\n");
    x.is_kept("hidden", &["`node_modules/nested`", "`run.sh`"]);
    // A copy that the main worktree has too.
    let main = x.repo.join("node_modules/nested");
    x.repo.git(["clone", "-q", ".", main.to_str().unwrap()]);
    fs_err::remove_file(main.join("run.sh")).unwrap();
    write(&main.join("run.sh/in"), "only here\n");
    x.goes();
}

#[test]
fn a_directory_in_the_place_of_a_file_comes_along_with_what_is_in_it() {
    let repo = Repo::anywhere();
    for file in ["run.sh", "src/main.ts"] {
        fs_err::remove_file(repo.join(file)).unwrap();
        repo.write(&format!("{file}/deep/in"), "in\n");
    }
    repo.write("run.sh/x.log", "ignored\n");
    let status = " D run.sh\n D src/main.ts\n?? run.sh/deep/in\n?? src/main.ts/deep/in\n";
    is_shown(&repo.path, status);
    repo.calve(["add", "clean"]).succeeds().says(&["4 uncommitted changes stay in"]);
    is_clean(&repo.spot.join("proj.clean"));
    let dirty = repo.add(["--dirty", "dirty"]);
    is_shown(&dirty, status);
    assert_eq!(fs_err::read_to_string(dirty.join("run.sh/deep/in")).unwrap(), "in\n");
    assert!(dirty.join("run.sh/x.log").exists());
    repo.calve(["remove", "dirty"]).fails(1).says(&["`run.sh`", "`run.sh/deep/in`"]);
}
