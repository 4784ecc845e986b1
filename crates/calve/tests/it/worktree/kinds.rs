//! Repositories of which a checkout is more than its files: submodules, sparse checkouts, Git LFS, reftable.

use calve_testkit::{FileSystem, require_program};

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, opened_by_status, try_git, with_environment, write};
use crate::program::calve;
use crate::spot::{eventually_nothing_left, nothing_left};

fn submodules(repo: &Repo) {
    let inner = repo.spot.join("inner");
    repo.git(["clone", "-q", ".", inner.to_str().unwrap()]);
    repo.git(["-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    repo.commit("submodule");
    repo.settle();
    repo.write("sub/changed/inside", "x\n");
    let ran = repo.calve(["add", "x"]).succeeds();
    let path = repo.spot.join("proj.x");
    assert_eq!(fs_err::read_dir(path.join("sub")).unwrap().count(), 0);
    is_clean(&path);
    ran.says(&["git submodule update --init"]);
    git(&path, ["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init"]);
    assert!(path.join("sub/src/main.ts").exists());
    is_clean(&path);
    // Inside one, there is no main worktree that git would tell of.
    let inside = with_environment(calve(["worktree", "add", "y"])).within(repo.join("sub"));
    inside.fails(1).says(&["use `git worktree add`, then clone what git ignores", "core.worktree"]);
    assert_eq!(repo.worktrees().len(), 2);
    nothing_left(&repo.spot);
}

#[test]
fn submodules_are_left_to_git() {
    submodules(&Repo::anywhere());
}

#[test]
fn submodules_are_not_in_a_snapshot() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    repo.calve(["convert", repo.path.to_str().unwrap()]).within(&repo.spot).succeeds();
    eventually_nothing_left(&repo.spot);
    submodules(&repo);
}

/// Two commits, of which the second differs inside and outside of the sparse checkout.
fn sparse(arguments: &[&str]) -> Repo {
    let repo = Repo::anywhere();
    repo.write("lib/a.ts", "a\n");
    repo.write("lib/.gitignore", "*.tmp\n");
    repo.write("docs/page", "d\n");
    repo.commit("two");
    for path in ["src/main.ts", "src/new.ts", "lib/a.ts", "lib/b.ts"] {
        repo.write(path, "three\n");
    }
    repo.git(["switch", "-q", "-c", "other"]);
    repo.commit("three");
    repo.git(["switch", "-q", "main"]);
    repo.settle();
    repo.git(["sparse-checkout", "set"].iter().chain(arguments));
    repo.git(["status"]);
    repo
}

#[test]
fn a_sparse_checkout_gives_a_sparse_checkout() {
    for arguments in [&["--cone", "src"][..], &["--sparse-index", "--cone", "src"], &["--no-cone", "/*", "!/lib/"]] {
        let repo = sparse(arguments);
        let planned = repo.calve(["add", "-n", "--json", "x"]).succeeds().json();
        assert_eq!(planned["tracked"]["other"], 0, "{arguments:?}: {planned}");
        let written = repo.calve(["add", "--json", "x"]).succeeds().json();
        assert_eq!(written["tracked"]["written_by_git"], 0, "{arguments:?}: {written}");
        let path = repo.spot.join("proj.x");
        if require_program("strace") {
            assert_eq!(opened_by_status(&path), Vec::<String>::new());
        }
        for path in [path, repo.add(["other"])] {
            is_clean(&path);
            is_as_git_makes_it(&repo, &path);
            assert!(path.join("src/main.ts").exists() && !path.join("lib").exists(), "{arguments:?}");
            assert_eq!(git(&path, ["sparse-checkout", "list"]), repo.git(["sparse-checkout", "list"]));
            assert!(path.join("node_modules/dep/index.js").exists());
        }
    }
}

#[test]
fn what_is_sparse_is_the_donors_affair() {
    let repo = sparse(&["src"]);
    let part = repo.add(["part"]);
    repo.git(["sparse-checkout", "disable"]);
    // From here everything, from there a part; and changes come along as everywhere.
    let whole = repo.add(["whole"]);
    assert!(whole.join("lib/a.ts").exists());
    is_as_git_makes_it(&repo, &whole);
    write(&part.join("src/main.ts"), "changed\n");
    let path = repo.add(["--from", "part", "--dirty", "again"]);
    assert!(!path.join("lib").exists());
    assert_eq!(git(&path, ["status", "--porcelain"]), " M src/main.ts\n");
    assert_eq!(git(&path, ["sparse-checkout", "list"]), "src\n");
}

#[test]
fn files_in_git_lfs_are_cloned_where_they_are_there_and_fetched_where_not() {
    if !require_program("git-lfs") {
        return;
    }
    let repo = Repo::anywhere();
    repo.git(["lfs", "install", "--local"]);
    repo.git(["lfs", "track", "*.bin"]);
    repo.write("large.bin", &"data\n".repeat(30_000));
    repo.write("empty.bin", "");
    repo.commit("large");
    repo.settle();
    is_clean(&repo.path);
    assert!(repo.git(["cat-file", "-p", "HEAD:large.bin"]).starts_with("version https://git-lfs"));

    let whole = |path: &std::path::Path| {
        is_clean(path);
        assert_eq!(fs_err::metadata(path.join("large.bin")).unwrap().len(), 150_000);
        assert!(git(path, ["lfs", "ls-files"]).contains(" * large.bin"));
    };
    let receipt = repo.calve(["add", "--json", "x"]).succeeds().json();
    // The empty file is the one of which nothing says that it is what git would write.
    assert_eq!(receipt["tracked"]["written_by_git"], 1, "{receipt}");
    whole(&repo.spot.join("proj.x"));
    is_as_git_makes_it(&repo, &repo.spot.join("proj.x"));

    // Here is the pointer only, and git's filter has the file.
    fs_err::remove_file(repo.join("large.bin")).unwrap();
    repo.git(["-c", "filter.lfs.process=git-lfs filter-process --skip", "checkout", "-q", "large.bin"]);
    assert!(fs_err::metadata(repo.join("large.bin")).unwrap().len() < 1024);
    repo.settle();
    is_clean(&repo.path);
    whole(&repo.add(["y"]));

    // It exists nowhere: git's checkout fails, and so does this.
    fs_err::remove_dir_all(repo.join(".git/lfs/objects")).unwrap();
    let before = repo.worktrees();
    repo.calve(["add", "z"]).fails(1).says(&["large.bin"]).hints();
    assert_eq!((repo.worktrees(), repo.spot.join("proj.z").exists()), (before, false));
    assert_eq!(repo.git(["branch", "--list", "z"]), "");
    nothing_left(&repo.spot);
    // As it is, then.
    let path = repo.calve(["add", "z"]).env("GIT_LFS_SKIP_SMUDGE", "1").succeeds().stdout;
    is_clean(path.trim().as_ref());
}

#[test]
fn a_filter_that_fails_in_git_status_is_told_in_gits_words() {
    let repo = Repo::anywhere();
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.write("a.bin", "pointer\n");
    repo.commit("large");
    let x = repo.add(["x"]);
    repo.git(["config", "filter.lfs.required", "true"]);
    repo.git(["config", "filter.lfs.clean", "no-such-lfs clean -- %f"]);
    for worktree in [&repo.path, &x] {
        fs_err::write(worktree.join("a.bin"), "changed\n").unwrap();
    }
    for (words, place) in [(["add", "y"], &repo.path), (["remove", "x"], &x)] {
        let there = format!("failed in `{}`", place.display());
        repo.calve(words).fails(1).says(&["git status", &there, "no-such-lfs", "hint: that is git's own message"]);
    }
    assert_eq!(repo.worktrees().len(), 2);
    nothing_left(&repo.spot);
}

#[test]
fn references_that_are_not_files_are_refused() {
    let repo = Repo::anywhere();
    let place = repo.spot.join("tables");
    let made = try_git(&repo.spot, ["init", "-q", "-b", "main", "--ref-format=reftable", "tables"]);
    let words = if made.status.success() {
        git(&place, ["commit", "-q", "--allow-empty", "-m", "one"]);
        ["keeps its references as `reftable`"]
    } else {
        // A git that does not know it refuses by itself, and says so.
        git(&repo.spot, ["clone", "-q", "proj", "tables"]);
        git(&place, ["config", "core.repositoryFormatVersion", "1"]);
        git(&place, ["config", "extensions.refStorage", "reftable"]);
        ["unknown repository extension"]
    };
    with_environment(calve(["worktree", "add", "x"]))
        .within(&place)
        .fails(1)
        .says(&["this git is too old for the repository; `git --version` shows which one runs"])
        .says(&words);
    repo.spot.holds(&["proj", "tables"]);
    assert!(!place.join(".git/worktrees").exists());
}

#[test]
fn without_logs_that_can_be_read_nothing_is_removed_or_trusted() {
    let repo = Repo::anywhere();
    let place = repo.spot.join("tables");
    if try_git(&repo.spot, ["init", "-q", "-b", "main", "--ref-format=reftable", "tables"]).status.success() {
        git(&place, ["commit", "-q", "--allow-empty", "-m", "one"]);
    } else {
        // An older git takes no notice of the setting.
        git(&repo.spot, ["clone", "-q", "proj", "tables"]);
        git(&place, ["config", "extensions.refStorage", "reftable"]);
    }
    let path = repo.spot.join("linked");
    git(&place, ["worktree", "add", "-q", "-b", "linked", "../linked"]);
    let home = repo.spot.join("home");
    let within = |arguments: &[&str]| with_environment(calve(arguments)).within(&place).env("CALVE_HOME", &home);
    let untrusted = || {
        let listed = within(&["worktree", "list", "--json"]).succeeds().json();
        [0, 1].map(|at| listed["worktrees"][at]["untrusted"] == true)
    };
    assert_eq!(untrusted(), [false, true]);
    for arguments in [
        &["worktree", "remove", "linked"][..],
        &["worktree", "remove", "-n", "linked"],
        &["worktree", "remove", "-f", "-D", "linked"],
        &["worktree", "prune"],
        &["worktree", "prune", "--merged", "-n"],
        &["worktree", "prune", "--merged", "--yes"],
    ] {
        let said = ["keeps its references as `reftable`", "use `git worktree remove`, or `git worktree prune`"];
        within(arguments).fails(1).says(&said).hints();
    }
    assert!(path.join(".git").is_file());
    // Nothing but the user's word makes it trusted, and only for that commit.
    calve(["hook", "approve", "--trust"]).within(&path).succeeds();
    assert_eq!(untrusted(), [false, false]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "later"]);
    assert_eq!(untrusted(), [false, true]);
    // The main worktree's own commit is the user's, and a pull request's becomes so.
    write(&place.join(".calve.toml"), "hooks.post-add = 'true'\n");
    within(&["hook", "approve", "--yes"]).succeeds();
    git(&place, ["checkout", "-q", "--detach"]);
    git(&place, ["commit", "-q", "--allow-empty", "-m", "theirs"]);
    git(&place, ["update-ref", "refs/pull/7/head", "HEAD"]);
    fs_err::remove_dir_all(place.join(".git/logs")).ok();
    within(&["hook", "approve", "--yes"]).fails(3);
    within(&["hook", "approve", "--trust", "--yes"]).succeeds();
    within(&["hook", "approve", "--yes"]).succeeds();
    // No mark is written, because the references may be converted to files.
    assert!(!place.join(".git/worktrees/linked/calve-untrusted").exists());
}

#[test]
fn what_a_repository_inside_has_is_not_lost_for_want_of_logs() {
    let repo = Repo::anywhere();
    let path = repo.add(["outer"]);
    let inside = path.join("inside");
    git(&repo.spot, ["clone", "-q", "--bare", "proj", "server"]);
    git(&path, ["clone", "-q", repo.spot.join("server").to_str().unwrap(), "inside"]);
    git(&inside, ["commit", "-q", "--allow-empty", "-m", "made here"]);
    git(&inside, ["fetch", "-q", ".", "main"]);
    git(&inside, ["tag", "kept"]);
    fs_err::remove_dir_all(inside.join(".git/logs")).unwrap();
    for reset in [false, true] {
        // Only FETCH_HEAD and the tag have it, as if it came from the server.
        if reset {
            git(&inside, ["reset", "-q", "--hard", "origin/main"]);
            fs_err::remove_dir_all(inside.join(".git/logs")).unwrap();
        }
        fs_err::create_dir_all(inside.join(".git/reftable")).unwrap();
        repo.calve(["remove", "outer"]).fails(1).says(&["inside", "commit"]);
        assert!(inside.join(".git").is_dir(), "{reset}");
    }
}

#[test]
fn a_worktree_of_a_hidden_bare_repository_is_beside_the_others() {
    let repo = Repo::anywhere();
    let project = repo.spot.join("project");
    fs_err::create_dir(&project).unwrap();
    repo.git(["clone", "-q", "--bare", ".", project.join(".bare").to_str().unwrap()]);
    write(&project.join(".git"), "gitdir: ./.bare\n");
    git(&project, ["worktree", "add", "-q", "main"]);
    let add =
        |arguments: &[&str]| with_environment(calve(["worktree", "add"]).args(arguments)).within(project.join("main"));
    let path = add(&["feature/x"]).succeeds().stdout;
    assert_eq!(path.trim_end(), project.join("feature-x").to_str().unwrap());
    is_clean(path.trim_end().as_ref());
    // A name of the user's own has the project's name in it.
    write(&project.join("main/.calve.local.toml"), "[worktree]\npath = \"../{repo}-{branch}\"\n");
    assert_eq!(add(&["y"]).succeeds().stdout.trim_end(), project.join("project-y").to_str().unwrap());
    let removed = with_environment(calve(["worktree", "remove"])).within(project.join("feature-x")).succeeds();
    assert_eq!(removed.stdout.trim_end(), project.to_str().unwrap());
}

#[test]
fn a_repository_apart_from_its_main_worktree_is_not_taken_for_it() {
    let repo = Repo::anywhere();
    let apart = repo.spot.join("apart.git");
    repo.git(["init", "-q", "--separate-git-dir", apart.to_str().unwrap()]);
    let path = repo.add(["x"]);
    assert_eq!(path, repo.spot.join("proj.x"));
    let y = repo.calve(["add", "y"]).within(&path).succeeds();
    assert_eq!(y.stdout.trim(), repo.spot.join("proj.y").to_str().unwrap());
    for (within, is_main) in [(&repo.path, true), (&path, false)] {
        let listed = repo.calve(["list", "--json"]).within(within).succeeds().json();
        let main = &listed["worktrees"][0];
        assert_eq!((&main["path"], &main["current"]), (&repo.path.to_str().unwrap().into(), &is_main.into()));
        let gone = repo.calve(["cd", "main"]).within(within).succeeds();
        assert_eq!(gone.stdout.trim(), repo.path.to_str().unwrap());
    }
    repo.calve(["remove", "."]).fails(1).says(&["is the main worktree"]).hints();
    // The main worktree has the ignored files too, with the same contents.
    let removed = repo.calve(["remove"]).within(&path).succeeds();
    assert_eq!(removed.stdout.trim(), repo.path.to_str().unwrap());
    assert!(!apart.join("calve/kept").exists() && !path.exists());
}
