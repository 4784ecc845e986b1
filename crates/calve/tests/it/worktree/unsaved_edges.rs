//! Tests that work is kept where git, the file system or a name is unusual.

use std::os::unix::fs::MetadataExt as _;

use calve_testkit::{BindMount, FileSystem, require_root};
use serde_json::{Value, json};

use super::repo::{Repo, git, try_git, write};
use super::subvolume::is_subvolume;
use crate::program::{Calve, Reachable};

#[test]
fn a_git_that_looks_for_no_bare_repository_keeps_nothing_from_being_told() {
    let repo = Repo::anywhere();
    let explicit = |calve: Calve| {
        let calve = calve.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.bareRepository");
        calve.env("GIT_CONFIG_VALUE_0", "explicit").succeeds()
    };
    for names in [&["a"][..], &["b", "c"]] {
        for name in names {
            write(&repo.add([name]).join("notes.log"), name);
        }
        let mut removed = explicit(repo.calve(["remove", "-d"]).args(names));
        for name in names {
            let branch = format!("and the branch `{name}`");
            removed = removed.says(&[&branch, "`notes.log`", "7 days"]);
            assert_eq!(repo.git(["branch", "--list", name]), "");
        }
    }
    let merged = repo.add(["merged"]);
    git(&merged, ["commit", "-q", "--allow-empty", "-m", "own"]);
    write(&merged.join("notes.log"), "notes\n");
    repo.git(["merge", "-q", "merged"]);
    explicit(repo.calve(["prune", "--merged", "--yes"])).says(&["`notes.log`", "7 days"]);
    assert!(!merged.exists());
}

#[test]
fn what_fails_after_a_removal_does_not_hide_where_files_are() {
    let repo = Repo::anywhere();
    // git's own file, which Calve cannot remove then.
    let hook = "[hooks]\npre-remove = 'mkdir -p \"$(git rev-parse --git-dir)/locked/x\"'\n";
    repo.write(".calve.toml", hook);
    repo.commit("hook");
    let path = repo.add(["x"]);
    write(&path.join("notes.log"), "notes\n");
    let failed = repo.calve(["remove", "--yes", "--json", "x"]).fails(1).says(&["`notes.log`", "7 days"]);
    assert!(!path.exists());
    let kept = fs_err::read_dir(repo.join(".git/calve/kept")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs_err::read_to_string(kept.join("notes.log")).unwrap(), "notes\n");
    let said = failed.json();
    assert!(said["message"].as_str().unwrap().contains(kept.to_str().unwrap()), "{said}");
}

#[test]
fn a_branch_under_another_name_does_not_take_the_branch_with_it() {
    let repo = Repo::anywhere();
    git(&repo.add(["real"]), ["commit", "-q", "--allow-empty", "-m", "own"]);
    let own = repo.git(["rev-parse", "real"]);
    repo.calve(["remove", "real"]).succeeds();
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/real"]);
    for fate in ["-D", "-d"] {
        repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/real"]);
        repo.git(["worktree", "add", "-q", "../proj.alias", "alias"]);
        repo.calve(["remove", fate, "proj.alias"]).succeeds().says(&["the branch `alias`"]);
        assert_eq!(repo.git(["rev-parse", "real"]), own);
    }
    // Nor does the other name keep its commits, or count as where they are merged.
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/real"]);
    repo.git(["config", "branch.real.remote", "."]);
    repo.git(["config", "branch.real.merge", "refs/heads/alias"]);
    repo.add(["real"]);
    repo.calve(["remove", "-n", "-D", "real"]).succeeds().says(&["1 commit that no other branch has"]);
    repo.calve(["remove", "-d", "real"]).succeeds().says(&["stays"]);
    assert_eq!(repo.git(["rev-parse", "real"]), own);
    // Another worktree has checked out the one under the other name.
    repo.git(["worktree", "add", "-q", "--force", "../proj.alias", "alias"]);
    repo.git(["worktree", "add", "-q", "--force", "../proj.real", "real"]);
    repo.calve(["remove", "-D", "proj.real"]).succeeds().says(&["it changed or is in use"]);
    assert_eq!(repo.git(["rev-parse", "alias"]), own);
}

#[test]
fn names_that_people_use_too_are_not_passed_over_for_their_names() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "vendor/\ndist/\ntarget/\nobj/\ncoverage/\npackages/\nbuild/\n*.log\n");
    repo.write("web/package.json", "{}\n");
    repo.write("rust/Cargo.toml", "\n");
    repo.git(["rm", "-q", "--cached", "-r", "."]);
    repo.commit("names");
    let path = repo.add(["x"]);
    let mine =
        ["coverage/plan", "dist/notes", "lib/vendor/mine.patch", "obj/teapot", "packages/own/x", "sub/target/todo"];
    let made =
        ["web/dist/app.js", "rust/target/a", "go/vendor/modules.txt", "go/vendor/a.go", "cmake/build/CMakeCache.txt"];
    mine.iter().chain(&made).for_each(|name| write(&path.join(name), "only here\n"));
    // The same holds for files around a repository inside.
    for place in ["build/nested", "cmake/build/nested"] {
        repo.git(["clone", "-q", ".", path.join(place).to_str().unwrap()]);
        write(&path.join(place).join("x.log"), "only here\n");
    }
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    let mut expected = mine.to_vec();
    expected.insert(0, "build/nested/x.log");
    assert_eq!(removed["kept"]["files"], json!(expected));
}

#[test]
fn force_names_and_moves_aside_all_that_can_be_read() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    let path = repo.add(["x"]);
    write(&path.join("notes.log"), "notes\n");
    write(&path.join("src/main.ts"), "changed\n");
    for closed in ["closed", "node_modules/closed", ".env.d/closed"] {
        write(&path.join(closed).join("file"), "?\n");
    }
    repo.give_away();
    for closed in ["closed", "node_modules/closed", ".env.d/closed"] {
        rustix::fs::chmod(path.join(closed), 0.into()).unwrap();
    }
    let calve = |arguments: &[&str]| repo.calve(arguments).by_somebody_else(&reachable);
    let refused = calve(&["remove", "--json", "x"]).fails(1).json();
    let unread = |items: &Value| -> Vec<Value> {
        let items = items.as_array().unwrap().iter();
        items.filter(|item| item["kind"] == "unreadable").map(|item| item["inside"].clone()).collect()
    };
    assert_eq!(unread(&refused["unsaved"]), [".env.d/closed", "closed"], "{refused}");
    let removed = calve(&["remove", "-f", "--json", "x"]).succeeds();
    let removed = removed.says(&["lost", "`src/main.ts`", "`closed`", "`notes.log`", "7 days"]).json();
    assert_eq!(unread(&removed["lost"]), [".env.d/closed", "closed"], "{removed}");
    assert_eq!(removed["kept"]["files"], json!(["notes.log"]));
    assert!(!path.exists());
}

#[test]
fn a_plan_refuses_what_the_removal_does() {
    if !require_root("mounts and owners") {
        return;
    }
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    let (path, reachable) = (repo.add(["x"]), Reachable::new());
    let inside = path.join("node_modules/mount");
    fs_err::create_dir(&inside).unwrap();
    let mount = BindMount::new(repo.join("src"), &inside);
    let refused = |calve: &dyn Fn(&[&str]) -> Calve, words: &[&str]| {
        for arguments in [&["remove", "-n", "x"][..], &["remove", "x"], &["remove", "-f", "x"]] {
            calve(arguments).fails(1).says(words).hints();
        }
    };
    refused(&|arguments| repo.calve(arguments), &["mount", "umount"]);
    drop(mount);
    // Somebody else's: root's own removal does all of it.
    let trusting = |arguments: &[&str]| {
        let calve = repo.calve(arguments).env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.directory");
        calve.env("GIT_CONFIG_VALUE_0", "*").by_somebody_else(&reachable)
    };
    refused(&trusting, &["another user owns it; root may remove it\n"]);
    repo.calve(["remove", "-n"]).within(&path).succeeds();
    repo.calve(["remove", "x"]).succeeds();
}

#[test]
fn files_are_moved_aside_with_all_their_metadata() {
    if !require_root("owners") {
        return;
    }
    // Each worktree is a subvolume there, and no name of a file leads to another one.
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let path = repo.add(["x"]);
    assert!(is_subvolume(&path));
    let notes = ["own.log", "notes/deep/one.log"];
    for name in notes {
        write(&path.join(name), "only here\n");
        rustix::fs::setxattr(path.join(name), "user.a", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        std::os::unix::fs::chown(path.join(name), Some(1000), Some(1000)).unwrap();
        rustix::fs::chmod(path.join(name), 0o755.into()).unwrap();
    }
    fs_err::hard_link(path.join("notes/deep/one.log"), path.join("notes/two.log")).unwrap();
    fs_err::os::unix::fs::symlink("src", path.join("link.log")).unwrap();
    write(&path.join("notes/tracked"), "t\n");
    git(&path, ["add", "notes/tracked"]);
    git(&path, ["commit", "-q", "-m", "beside"]);
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    let place = std::path::PathBuf::from(removed["kept"]["directory"].as_str().unwrap());
    assert_eq!(removed["kept"]["files"], json!(["link.log", "notes/deep/one.log", "notes/two.log", "own.log"]));
    let of = |name: &str| fs_err::symlink_metadata(place.join(name)).unwrap();
    for name in notes {
        let mut value = [0; 8];
        assert_eq!(
            rustix::fs::getxattr(place.join(name), "user.a", &mut value).map(|length| value[..length].to_vec()),
            Ok(b"1".to_vec())
        );
        assert_eq!((of(name).uid(), of(name).gid(), of(name).mode() & 0o7777), (1000, 1000, 0o755));
    }
    assert_eq!(of("notes/two.log").ino(), of("notes/deep/one.log").ino());
    assert_eq!(of("").mode() & 0o7777, 0o700);
    assert!(of("link.log").is_symlink() && !place.join("notes/tracked").exists());
}

#[test]
fn a_filter_of_the_users_own_runs_for_a_nested_repository() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let nested = path.join("node_modules/nested");
    repo.git(["clone", "-q", ".", nested.to_str().unwrap()]);
    let (mine, theirs) = (repo.spot.join("mine"), repo.spot.join("theirs"));
    let says = |ran: &std::path::Path| format!("touch {}; cat", ran.display());
    git(&nested, ["config", "filter.theirs.clean", &says(&theirs)]);
    write(&nested.join(".git/info/attributes"), "main.ts filter=mine\nrun.sh filter=theirs\n");
    // As long as before: git has to read them.
    write(&nested.join("src/main.ts"), "export []\n");
    write(&nested.join("run.sh"), "#!/bin/ls\n");
    let global = repo.spot.join("gitconfig");
    write(&global, &format!("[filter \"mine\"]\n\tclean = \"{}\"\n", says(&mine)));
    repo.calve(["remove", "x"]).env("GIT_CONFIG_GLOBAL", &global).fails(1).says(&["node_modules/nested"]);
    assert!(mine.exists() && !theirs.exists());
}

#[test]
fn a_converted_worktree_has_all_that_only_it_had() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let path = repo.spot.join("proj.x");
    repo.git(["worktree", "add", "-q", "-b", "x", path.to_str().unwrap()]);
    assert!(!is_subvolume(&path));
    write(&path.join("src/main.ts"), "changed\n");
    write(&path.join("new"), "untracked\n");
    write(&path.join("staged"), "staged\n");
    git(&path, ["add", "staged"]);
    fs_err::remove_file(path.join("staged")).unwrap();
    git(&path, ["update-index", "--skip-worktree", "run.sh"]);
    write(&path.join("run.sh"), "hidden\n");
    write(&path.join("notes.log"), "ignored\n");
    let nested = path.join("node_modules/nested");
    repo.git(["clone", "-q", ".", nested.to_str().unwrap()]);
    git(&nested, ["commit", "-q", "--allow-empty", "-m", "unpushed"]);
    write(&nested.join("x.log"), "ignored\n");
    let tried = git(&path, ["commit-tree", "HEAD^{tree}", "-m", "only a reference"]);
    git(&path, ["update-ref", "refs/worktree/mine", tried.trim()]);
    let list = || repo.calve(["remove", "--json", "x"]).fails(1).json()["unsaved"].clone();
    let before = list();
    let kinds: Vec<_> = before.as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    for kind in ["uncommitted", "hidden", "reference", "unpushed", "ignored"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    repo.calve(["convert", path.to_str().unwrap()]).within(&repo.spot).succeeds();
    assert!(is_subvolume(&path));
    assert_eq!(list(), before);
    assert!(try_git(&path, ["show", ":staged"]).status.success());
}
