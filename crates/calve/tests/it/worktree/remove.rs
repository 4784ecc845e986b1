//! Removing, listing, pruning.

use std::path::Path;

use super::repo::{self, Repo, git, with_environment, write};
use crate::program::{Calve, Reachable, calve};
use crate::spot::eventually_nothing_left;

#[test]
fn what_would_be_lost_is_not_removed_unless_forced() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let refused = |words: &[&str]| {
        repo.calve(["remove", "x"]).fails(1).says(words).hints();
        assert!(path.exists());
    };
    write(&path.join("new"), "n\n");
    refused(&["uncommitted changes", "new"]);
    fs_err::remove_file(path.join("new")).unwrap();
    write(&path.join("src/main.ts"), "changed\n");
    refused(&["uncommitted changes", "src/main.ts"]);
    git(&path, ["checkout", "-q", "."]);
    repo.git(["worktree", "lock", "--reason", "on a stick", path.to_str().unwrap()]);
    refused(&["is locked: on a stick"]);
    repo.git(["worktree", "unlock", path.to_str().unwrap()]);
    repo.calve(["remove", "main"])
        .fails(1)
        .says(&["name a linked worktree; `calve worktree list` shows them", "main worktree"]);
    repo.calve(["remove", "nobody"]).fails(1).says(&["there is no worktree"]).hints();
    repo.calve(["remove", "x"]).succeeds();
    assert!(!path.exists());
    assert_eq!(repo.worktrees(), std::slice::from_ref(&repo.path));
    assert_ne!(repo.git(["branch", "--list", "x"]), "", "the branch stays");
    // A relative path is relative to where one is.
    let path = repo.add(["x"]);
    let given = repo.calve(["add", "y", "--from", "../../proj.x", "--path", "../../y"]).within(repo.join("src"));
    assert_eq!(given.succeeds().stdout.trim(), repo.spot.join("y").to_str().unwrap());
    repo.calve(["remove", "../../proj.x"]).within(repo.join("src")).succeeds();
    assert!(!path.exists());
    repo.calve(["remove", "../y"]).within(repo.join("src")).fails(1).says(&["there is no worktree"]).hints();
    eventually_nothing_left(&repo.spot);
}

#[test]
fn a_branch_goes_when_that_is_asked_for_unless_another_worktree_has_it() {
    let repo = Repo::anywhere();
    let path = repo.add(["merged"]);
    repo.calve(["remove", "-d"]).arg(&path).succeeds();
    assert_eq!(repo.git(["branch", "--list", "merged"]), "");
    let path = repo.add(["ahead"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "more"]);
    let kept = repo.calve(["remove", "-d", "ahead"]).succeeds().stderr;
    let stays = "; the branch `ahead` stays: it or its log has 1 commit that no other branch has";
    assert!(kept.find(" in ").unwrap() < kept.find(stays).unwrap(), "{kept}");
    repo.add(["ahead"]);
    let receipt = repo.calve(["remove", "-D", "--json", "ahead"]).succeeds().json();
    assert_eq!((&receipt["schema"], &receipt["branch_deleted"]), (&"calve.worktree-remove/1".into(), &true.into()));
    assert_eq!(repo.git(["branch", "--list", "ahead"]), "");
    // From inside the one that goes.
    let path = repo.add(["inside"]);
    repo.calve(["remove", "-f", "inside"]).within(path.join("src")).run();
    repo.calve(["remove", "-f", "inside"]).run();
    assert!(!path.exists());
    // One that another worktree has checked out stays.
    let head = repo.join(".git/HEAD");
    // As git writes it today, and as it once did (`core.preferSymlinkRefs`).
    for is_link in [false, true] {
        let path = repo.add(["x"]);
        repo.git(["checkout", "-q", "--ignore-other-worktrees", "x"]);
        if is_link {
            fs_err::remove_file(&head).unwrap();
            fs_err::os::unix::fs::symlink("refs/heads/x", &head).unwrap();
        }
        repo.calve(["remove", "-D"]).arg(&path).succeeds().says(&["it changed or is in use"]);
        assert_eq!(repo.git(["symbolic-ref", "HEAD"]), "refs/heads/x\n");
        repo.git(["checkout", "-q", "main"]);
    }
}

#[test]
fn the_settings_of_a_branch_go_with_it() {
    let repo = Repo::anywhere();
    let config = repo.join(".git/config");
    for (name, section) in [
        ("plain", "[branch \"plain\"]"),
        ("Two/Words", "[branch  \"Two/Words\"]"),
        ("quo\"ted", "[branch \"quo\\\"ted\"]"),
        ("old", "[branch.old]"),
    ] {
        repo.add([name]);
        let others = fs_err::read_to_string(&config).unwrap();
        fs_err::write(&config, format!("{others}{section}\n\tdescription = x\n")).unwrap();
        assert_eq!(repo.git(["config", &format!("branch.{name}.description")]), "x\n");
        repo.calve(["remove", "-q", "-D", name]).succeeds();
        assert_eq!(fs_err::read_to_string(&config).unwrap(), others);
    }
}

#[test]
fn the_list_tells_how_each_is() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "more"]);
    write(&path.join("new"), "n\n");
    let list = repo.calve(["list", "--json"]).succeeds().json();
    assert_eq!(list["schema"], "calve.worktrees/1");
    let (main, x) = (&list["worktrees"][0], &list["worktrees"][1]);
    assert_eq!((&main["main"], &main["current"], &main["dirty"]), (&true.into(), &true.into(), &false.into()));
    assert_eq!(
        (&x["branch"], &x["dirty"], &x["ahead"], &x["behind"]),
        (&"x".into(), &true.into(), &1.into(), &0.into())
    );
    assert_eq!(x["compared_with"], "main");
    assert!(x["age_s"].as_u64().unwrap() < 600);
    let short = repo.calve(["ls", "--json"]).succeeds().json();
    assert_eq!(short["worktrees"][1]["path"], x["path"]);
    let text = repo.calve(["list"]).succeeds().stdout;
    assert!(text.lines().nth(1).unwrap().contains("dirty +1"), "{text}");
}

#[test]
fn commits_beyond_the_end_of_a_shallow_history_are_not_counted() {
    let up = Repo::anywhere();
    for number in 0..5 {
        up.git(["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
    }
    let place = tempfile::tempdir().unwrap();
    let url = format!("file://{}", up.path.display());
    git(place.path(), ["clone", "-q", "--depth=2", &url, "here"]);
    let here = place.path().join("here");
    let listed = || {
        let list = up.calve(["list", "--json"]).within(&here).succeeds().json();
        let main = &list["worktrees"][0];
        (main["ahead"].as_u64(), main["behind"].as_u64(), main["compared_with"].clone())
    };
    git(&here, ["commit", "-q", "--allow-empty", "-m", "own"]);
    assert_eq!(listed(), (Some(1), Some(0), "origin/main".into()));
    // What lies between is not there.
    for number in 5..9 {
        up.git(["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
    }
    git(&here, ["fetch", "-q", "--depth=2"]);
    assert_eq!(listed(), (None, None, "origin/main".into()));
    git(&here, ["fetch", "-q", "--unshallow"]);
    assert_eq!(listed(), (Some(1), Some(4), "origin/main".into()));
}

#[test]
fn what_is_gone_is_forgotten_unless_it_is_locked_or_on_an_unmounted_disk() {
    let repo = Repo::anywhere();
    let (gone, stick) = (repo.add(["gone"]), repo.add(["stick"]));
    repo.git(["worktree", "lock", stick.to_str().unwrap()]);
    for path in [&gone, &stick] {
        fs_err::remove_dir_all(path).unwrap();
    }
    let receipt = repo.calve(["prune", "--json"]).succeeds().json();
    assert_eq!(receipt["forgotten"], serde_json::json!([gone.to_str().unwrap()]));
    assert_eq!(repo.worktrees(), [repo.path.clone(), stick]);
    repo.add(["gone"]);
    // A container mounts what its host has at that path anyway.
    let path = repo.add(["x"]);
    fs_err::remove_dir_all(&path).unwrap();
    let (other, note) = (repo.spot.join("other"), repo.join(".git/worktrees/proj.x/calve-mount"));
    let listed_at = |point: &Path| {
        fs_err::write(&note, point.to_str().unwrap()).unwrap();
        repo.calve(["list", "--json"]).succeeds().json()["worktrees"][3]["standing"].clone()
    };
    assert_eq!(listed_at(&path), "unmounted");
    fs_err::create_dir(&path).unwrap();
    assert_eq!(listed_at(&path), "unmounted", "an empty directory");
    fs_err::remove_dir(&path).unwrap();
    assert_eq!([listed_at(&other), listed_at(&repo.spot)], ["gone"; 2]);
    repo.calve(["prune"]).succeeds().says(&["forgot `"]);
    repo.add(["x"]);
}

#[test]
fn a_worktree_with_another_one_inside_stays() {
    let repo = Repo::anywhere();
    let (outer, other) = (repo.add(["outer"]), repo.add(["other"]));
    let inner = outer.join(".worktrees/inner");
    repo.calve(["add", "inner", "--path", inner.to_str().unwrap()]).succeeds();
    let inside = inner.display().to_string();
    let ran = repo.calve(["remove", "outer"]).fails(1).says(&[&inside]);
    ran.says(&["`calve worktree remove` that one first, or pass `-f` to lose both"]);
    repo.calve(["remove", "-n", "outer"]).fails(1).says(&[&inside]);
    git(&outer, ["commit", "-q", "--allow-empty", "-m", "done"]);
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "outer"]);
    repo.calve(["prune", "--merged", "--yes"]).succeeds().says(&[&inside]);
    assert!(outer.exists() && inner.exists() && other.exists());
    // The one inside goes first.
    repo.calve(["remove", "-n", "outer", "inner"]).succeeds().says(&[&inside, "would remove"]);
    repo.calve(["remove", "outer", "inner"]).succeeds();
    assert!(!outer.exists());
}

#[test]
fn commits_that_only_a_submodule_has_are_not_lost() {
    let repo = Repo::anywhere();
    let inner = repo.spot.join("inner");
    repo.git(["clone", "-q", ".", inner.to_str().unwrap()]);
    let allowed = ["-c", "protocol.file.allow=always"];
    repo.git(allowed.into_iter().chain(["submodule", "add", "-q", inner.to_str().unwrap(), "lib/sub"]));
    repo.commit("submodule");
    let path = repo.add(["x"]);
    let sub = path.join("lib/sub");
    git(&path, allowed.into_iter().chain(["submodule", "update", "-q", "--init"]));
    git(&sub, ["switch", "-q", "-c", "work"]);
    git(&sub, ["commit", "-q", "--allow-empty", "-m", "only here"]);
    // A changed submodule is a change, also where the project does not want to see it.
    git(&path, ["config", "submodule.lib/sub.ignore", "all"]);
    repo.calve(["remove", "x"]).fails(1).says(&[
        "commit, push, finish or copy what you need of it; `-f` discards all of it",
        "uncommitted changes",
        "lib/sub",
    ]);
    git(&path, ["commit", "-q", "-a", "-m", "newer submodule"]);
    git(&path, ["-c", "submodule.lib/sub.ignore=none", "add", "-f", "lib/sub"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "newer submodule"]);
    repo.calve(["remove", "x"]).fails(1).says(&["`lib/sub`", "on none of its remotes"]).hints();
    git(&sub, ["push", "-q", "origin", "work"]);
    repo.calve(["remove", "x"]).succeeds();
    assert!(!path.exists());
    eventually_nothing_left(&repo.spot);
}

#[test]
fn a_worktree_whose_directory_cannot_be_renamed_is_not_emptied() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "merged"]);
    repo.git(["merge", "-q", "x"]);
    repo.give_away();
    write(&repo.join(".git/trusting"), "[safe]\ndirectory = *\n");
    let trusting = |calve: Calve| with_environment(calve).env("GIT_CONFIG_GLOBAL", repo.join(".git/trusting"));
    let run = |words: &[&str]| trusting(repo.calve(words)).by_somebody_else(&reachable);
    let question = repo.join(".git/question");
    let closed = "you need write permission on the directory that it is in";
    // In the second it may be written to, but only the owner of an entry may rename it.
    for (mode, hint) in [(0o555, closed), (0o1777, "run as its owner")] {
        rustix::fs::chmod(&*repo.spot, mode.into()).unwrap();
        if mode == 0o1777 {
            let root = (Some(rustix::fs::Uid::ROOT), Some(rustix::fs::Gid::ROOT));
            rustix::fs::chown(&*repo.spot, root.0, root.1).unwrap();
            rustix::fs::chown(&path, root.0, root.1).unwrap();
            rustix::fs::chmod(&path, 0o777.into()).unwrap();
        }
        for words in [&["remove", "-n", "x"] as &[&str], &["remove", "x"], &["remove", "-f", "x"]] {
            run(words).fails(1).says(&["move to the trash", hint]);
        }
        run(&["prune", "--merged", "--yes"]).succeeds().says(&["kept `", "move to the trash"]);
        write(&question, &serde_json::json!({ "cwd": repo.path, "worktree_path": path }).to_string());
        let hook = trusting(calve(["hook", "worktree-remove"]).within(&repo.path)).by_somebody_else(&reachable);
        let asked = hook.command().stdin(fs_err::File::open(&question).unwrap().into_file()).output().unwrap();
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(!asked.status.success() && said.contains("move to the trash"), "{said}");
        assert!(path.join("src/main.ts").exists() && path.join("node_modules/dep/index.js").exists());
        assert!(repo.join(".git/worktrees/proj.x/gitdir").exists());
    }
    rustix::fs::chmod(&*repo.spot, 0o777.into()).unwrap();
    run(&["remove", "x"]).succeeds();
    assert!(!path.exists());
}

#[test]
fn a_worktree_whose_entry_or_ignored_files_cannot_be_moved_is_not_emptied() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    write(&path.join(".env"), "SECRET=2\n");
    repo.give_away();
    for closed in [".git/worktrees", ".git/worktrees/proj.x"].map(|closed| repo.join(closed)) {
        rustix::fs::chmod(&closed, 0o555.into()).unwrap();
        for words in [&["remove", "-n", "x"][..], &["remove", "x"], &["remove", "-f", "x"]] {
            let refused = repo.calve(words).by_somebody_else(&reachable).fails(1).hints();
            refused.says(&[
                "git's entry `",
                "/.git/worktrees/proj.x` of the worktree cannot be removed: Permission denied",
            ]);
        }
        assert!(path.join("src/main.ts").exists() && path.join("node_modules/dep/index.js").exists());
        rustix::fs::chmod(&closed, 0o755.into()).unwrap();
    }
    // Nor is one whose ignored files cannot be kept.
    fs_err::create_dir_all(repo.join(".git/calve")).unwrap();
    rustix::fs::chmod(repo.join(".git/calve"), 0o555.into()).unwrap();
    for words in [["remove", "-n", "x"], ["remove", "--no-hooks", "x"]] {
        let refused = repo.calve(words).by_somebody_else(&reachable).fails(1);
        refused.says(&[&format!("cannot make `{}`: Permission denied", repo.join(".git/calve/kept").display())]);
    }
    assert!(path.join(".env").exists());
    repo.calve(["remove", "-f", "x"]).by_somebody_else(&reachable).succeeds().says(&["lost ignored files"]);
    assert!(!path.exists());
}

#[test]
fn calve_rm_leaves_worktrees_to_this_command() {
    let repo = Repo::anywhere();
    let (one, copy) = (repo.add(["one"]), repo.spot.join("copy"));
    let rm = |words: &[&str]| with_environment(calve(["rm"])).args(words).within(&repo.spot);
    let refused = "refusing to remove `proj.one`: it is a git worktree";
    for options in [&["-n"][..], &["-r"], &["--wait"]] {
        rm(options).arg("proj.one").fails(1).says(&[refused, "`calve worktree remove proj.one`"]);
    }
    // Neither the copy of one nor a link to one is the worktree.
    repo::copy(&one, &copy);
    fs_err::os::unix::fs::symlink(&one, repo.spot.join("link")).unwrap();
    rm(&["copy", "link"]).succeeds();
    assert!(one.join("src").is_dir() && !copy.exists());
    // One that was moved is.
    fs_err::rename(&one, repo.spot.join("moved")).unwrap();
    rm(&["moved"]).fails(1).says(&["it is a git worktree"]);
    rm(&["-rf", "moved"]).succeeds();
    assert!(!repo.spot.join("moved").exists());
}
