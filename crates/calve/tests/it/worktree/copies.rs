//! Copies of a worktree's directory: no command in one acts on the ports, data and servers of the original.

use super::ports::{number, with_ports};
use super::repo::{self, git};
use super::services::{POSTGRES, Shop};

#[test]
fn a_copy_of_a_worktree_does_not_reach_the_originals_data() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (original, copy) = (shop.repo.added("one"), shop.repo.spot.join("copy"));
    shop.sql(&original, "INSERT INTO t VALUES (4)");
    repo::copy(&original, &copy);
    let refused = format!("`{}` is a copy of the worktree `{}`", copy.display(), original.display());
    let hint = "if you moved the worktree here, run `git worktree repair`; otherwise make a new one";
    for words in [
        &["reset", "--yes"] as &[&str],
        &["down"],
        &["up"],
        &["status"],
        &["logs"],
        &["env"],
        &["env", "--renew"],
        &["exec", "true"],
        &["hook", "approve", "--trust"],
        &["hook", "worktree-setup"],
    ] {
        shop.within(copy.join("src"), words).fails(1).says(&[&refused, hint]);
    }
    let prompt = shop.within(&copy, &["prompt"]).succeeds().stdout;
    assert_eq!((&*prompt, &*shop.state(&original)), ("one\n", "running"));
    assert_eq!(shop.rows(&original), [1, 2, 3, 4]);
    let listed = shop.within(&copy, &["worktree", "list"]).succeeds().stdout;
    assert!(listed.lines().all(|line| line.starts_with("  ")), "{listed}");
    // One that was moved is the worktree itself.
    let moved = shop.repo.spot.join("moved");
    fs_err::remove_dir_all(&copy).unwrap();
    fs_err::rename(&original, &moved).unwrap();
    shop.within(&moved, &["reset", "--yes"]).succeeds();
    assert_eq!(shop.rows(&moved), [1, 2, 3]);
}

#[test]
fn a_worktree_in_use_where_git_does_not_know_it_is_not_forgotten() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (main, original, moved) = (&shop.repo.path, shop.repo.added("one"), shop.repo.spot.join("moved"));
    fs_err::rename(&original, &moved).unwrap();
    shop.sql(&moved, "INSERT INTO t VALUES (4)");
    let known =
        format!("the worktree `{}` was moved to `{}`, and git does not know it", original.display(), moved.display());
    let kept = format!("kept the entry of `{}`: {known}; run `git worktree repair` in it", original.display());
    shop.within(main, &["worktree", "prune", "--lose-data"]).succeeds().says(&[&kept]);
    shop.remove("one", &["--lose-data"]).fails(1).says(&[&known]);
    shop.within(main, &["worktree", "list"]).succeeds().says(&[&known]);
    assert_eq!(shop.rows(&moved), [1, 2, 3, 4]);
    // Another one may be there by now.
    let elsewhere = shop.repo.spot.join("elsewhere");
    fs_err::rename(&moved, &elsewhere).unwrap();
    fs_err::create_dir(&moved).unwrap();
    git(main, ["worktree", "repair", elsewhere.to_str().unwrap()]);
    assert_eq!(shop.rows(&elsewhere), [1, 2, 3, 4]);
    shop.remove("one", &["--lose-data"]).succeeds();
    // Deleted where it was moved to, it is gone.
    let other = shop.repo.added("other");
    fs_err::remove_dir(&moved).unwrap();
    fs_err::rename(&other, &moved).unwrap();
    shop.within(&moved, &["env"]).succeeds();
    fs_err::remove_dir_all(&moved).unwrap();
    shop.within(main, &["worktree", "prune"]).succeeds().says(&["forgot `", "removed the data of the service `db`"]);
}

#[test]
fn a_copy_of_a_worktree_that_was_moved_does_not_reach_its_ports() {
    let repo = with_ports(&format!("web = {}", number(40)));
    let (moved, linked) = (repo.spot.join("moved"), repo.spot.join("linked"));
    fs_err::rename(repo.added("one"), &moved).unwrap();
    let by_link = repo.added("two");
    fs_err::rename(&by_link, &linked).unwrap();
    fs_err::os::unix::fs::symlink(&linked, &by_link).unwrap();
    for original in [&moved, &linked] {
        let ports = || repo.within(original, &["env"]).succeeds().stdout;
        let (before, copy) = (ports(), original.with_extension("copy"));
        repo::copy(original, &copy);
        let refused = format!("`{}` is a copy of the worktree `{}`", copy.display(), original.display());
        for words in [&["env"] as &[&str], &["env", "--renew"]] {
            repo.within(&copy, words).fails(1).says(&[&refused]);
        }
        assert_eq!(ports(), before);
        let known = format!("was moved to `{}`", moved.display());
        repo.within(&copy, &["worktree", "list"]).succeeds().says(&[&known]);
        fs_err::remove_dir_all(&copy).unwrap();
        repo.within(&repo.path, &["worktree", "prune"]).succeeds().says(&[&known]);
    }
}

#[test]
fn a_worktree_that_was_moved_is_known_when_another_has_its_place() {
    let repo = with_ports(&format!("web = {}", number(50)));
    // Before and after the other in the alphabet.
    for (branch, other) in [("b", "a"), ("c", "d")] {
        let (path, moved) = (repo.added(branch), repo.spot.join(format!("{branch}-moved")));
        fs_err::rename(&path, &moved).unwrap();
        repo.within(&moved, &["env"]).succeeds();
        let known = format!("the worktree `{}` was moved to `{}`", path.display(), moved.display());
        // It has its branch.
        let refused = repo.adding(branch).fails(1);
        refused.says(&[&known, "`git worktree repair`"]).hints();
        repo.adding(other).arg("--path").arg(&path).fails(1).says(&[&known]).hints();
        fs_err::rename(repo.added(other), &path).unwrap();
        repo.git(["worktree", "repair", path.to_str().unwrap()]);
        repo.calve(["remove", branch]).fails(1).says(&[&known]).hints();
        repo.calve(["remove"]).arg(&moved).fails(1).says(&[&known]).hints();
        assert!(moved.join("src/main.ts").exists());
    }
}
