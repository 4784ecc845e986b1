//! What only a worktree has: each thing is named before it goes, and none goes unasked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{FileSystem, Volume};
use serde_json::json;

use super::repo::{Repo, git, is_clean, write};
use crate::spot::{Spot, eventually_nothing_left};

/// The worktree `x`, which must not go.
pub(super) struct Guarded {
    pub(super) repo: Repo,
    pub(super) path: PathBuf,
}

impl Guarded {
    pub(super) fn new() -> Self {
        Self::of(Repo::anywhere())
    }

    pub(super) fn of(repo: Repo) -> Self {
        let path = repo.add(["x"]);
        Self { repo, path }
    }

    pub(super) fn git<const N: usize>(&self, words: [&str; N]) -> String {
        git(&self.path, words)
    }

    /// `remove`, `remove -n` and JSON refuse it, and name the kind and the words.
    #[track_caller]
    pub(super) fn is_kept(&self, kind: &str, words: &[&str]) {
        for more in [&[][..], &["-n"]] {
            self.repo.calve(["remove", "proj.x"]).args(more).fails(1).says(words).hints();
        }
        let refused = self.repo.calve(["remove", "--json", "proj.x"]).fails(1).json();
        let items = refused["unsaved"].as_array().unwrap_or_else(|| panic!("no list: {refused}"));
        assert!(items.iter().any(|item| item["kind"] == kind && item["needs_force"] == true), "{kind}: {refused}");
        assert!(self.path.join("src").exists());
    }

    #[track_caller]
    pub(super) fn goes(&self) {
        self.repo.calve(["remove", "proj.x"]).succeeds();
        assert!(!self.path.exists());
        eventually_nothing_left(&self.repo.spot);
    }
}

#[test]
fn staged_contents_are_kept_whatever_the_directory_has() {
    let x = Guarded::new();
    let commit = x.git(["rev-parse", "HEAD"]);
    let reset = || x.git(["reset", "-q", "--hard", commit.trim()]);
    // Staged, and deleted from the directory.
    write(&x.path.join("s/new"), "important\n");
    x.git(["add", "s"]);
    fs_err::remove_dir_all(x.path.join("s")).unwrap();
    x.is_kept("uncommitted", &["uncommitted changes", "`s/new`"]);
    x.repo.calve(["prune", "--merged", "--older-than", "0h", "--yes"]).succeeds().says(&["kept", "`s/new`"]);
    reset();
    // Staged, and put back in the directory.
    write(&x.path.join("src/main.ts"), "staged\n");
    x.git(["add", "."]);
    write(&x.path.join("src/main.ts"), "export {}\n");
    x.is_kept("uncommitted", &["`src/main.ts`"]);
    reset();
    // A mode that is staged only.
    x.git(["update-index", "--chmod=+x", "src/main.ts"]);
    x.is_kept("uncommitted", &["`src/main.ts`"]);
    reset();
    // A removal that is staged, with the file there.
    x.git(["rm", "-q", "--cached", "run.sh"]);
    x.is_kept("uncommitted", &["`run.sh`"]);
    reset();
    is_clean(&x.path);
    x.goes();
}

#[test]
fn everything_is_named_at_once() {
    let x = Guarded::new();
    x.git(["update-index", "--skip-worktree", "run.sh"]);
    write(&x.path.join("run.sh"), "mine\n");
    write(&x.path.join("new"), "n\n");
    write(&x.path.join(".env"), "SECRET=2\n");
    let words = ["`new`", "uncommitted changes", "`run.sh`", "told to ignore", "`-f` discards all of it"];
    x.is_kept("hidden", &words);
    x.is_kept("uncommitted", &words);
    // Ignored files need no force.
    let refused = x.repo.calve(["remove", "x"]).fails(1);
    assert!(!refused.stderr.contains(".env"), "{}", refused.stderr);
    let planned = x.repo.calve(["remove", "-nf", "--json", "x"]).succeeds().says(&["would lose", "`new`", "`.env`"]);
    let kinds: Vec<_> = planned.json()["unsaved"].as_array().unwrap().iter().map(|item| item["kind"].clone()).collect();
    assert_eq!(kinds, ["uncommitted", "hidden", "ignored"]);
    x.repo.calve(["remove", "-f", "x"]).succeeds();
    assert!(!x.path.exists());
}

#[test]
fn commits_that_only_the_log_of_a_worktree_has_are_kept() {
    let x = Guarded::new();
    x.git(["checkout", "-q", "--detach"]);
    x.git(["commit", "-q", "--allow-empty", "-m", "tried"]);
    let tried = x.git(["rev-parse", "HEAD"]);
    x.git(["checkout", "-q", "x"]);
    is_clean(&x.path);
    x.is_kept("reflog", &["only in HEAD's reflog", &tried[..12]]);
    // Also where the directory is gone.
    let away = x.repo.spot.join("away");
    fs_err::rename(&x.path, &away).unwrap();
    x.repo.calve(["prune"]).succeeds().says(&["kept", &tried[..12], "git worktree repair"]);
    fs_err::rename(&away, &x.path).unwrap();
    // An amended commit, and those in the course of a rebase, were given up.
    x.git(["branch", "tried", tried.trim()]);
    x.git(["checkout", "-q", "--detach"]);
    x.git(["commit", "-q", "--allow-empty", "-m", "a draft"]);
    x.git(["commit", "-q", "--amend", "--allow-empty", "-m", "the text"]);
    let text = x.git(["rev-parse", "HEAD"]);
    x.is_kept("commits", &["on no branch or tag", &text[..12]]);
    x.git(["branch", "text", text.trim()]);
    x.git(["checkout", "-q", "x"]);
    // What a branch's own log has stays.
    x.git(["commit", "-q", "--allow-empty", "-m", "own"]);
    x.git(["reset", "-q", "--hard", "HEAD~1"]);
    x.goes();
}

#[test]
fn what_only_references_of_a_worktree_have_is_kept() {
    for name in ["refs/worktree/mine", "refs/bisect/good-1"] {
        let x = Guarded::new();
        let made = x.git(["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "only here"]);
        x.git(["update-ref", name, made.trim()]);
        x.is_kept("reference", &[name, &made[..12]]);
        x.repo.git(["branch", "kept", made.trim()]);
        x.goes();
    }
    let x = Guarded::new();
    let blob = x.git(["hash-object", "-w", "run.sh"]);
    x.git(["update-ref", "refs/worktree/file", blob.trim()]);
    x.is_kept("reference", &["refs/worktree/file"]);
    x.git(["update-ref", "-d", "refs/worktree/file"]);
    x.goes();
}

/// Where `remove` has put what only the worktree had.
fn kept(repo: &Repo) -> Vec<PathBuf> {
    let all = fs_err::read_dir(repo.join(".git/calve/kept")).map(|all| all.map(|one| one.unwrap().path()).collect());
    all.unwrap_or_default()
}

#[test]
fn ignored_files_that_only_it_has_are_moved_aside() {
    let x = Guarded::new();
    write(&x.path.join(".env"), "SECRET=edited\n");
    write(&x.path.join(".env.d/h.md"), "notes\n");
    write(&x.path.join("target/debug/more.o"), "made again\n");
    write(&x.path.join("node_modules/dep/cache"), "made again\n");
    fs_err::os::unix::fs::symlink("h.md", x.path.join(".env.d/link")).unwrap();
    is_clean(&x.path);
    let planned = x.repo.calve(["remove", "-n", "--json", "x"]).succeeds().says(&["`.env`", "`.env.d/h.md`", "7 days"]);
    let item = &planned.json()["unsaved"][0];
    assert_eq!((&item["kind"], &item["needs_force"]), (&"ignored".into(), &false.into()));
    assert_eq!(item["paths"], json!([".env", ".env.d/h.md", ".env.d/link"]));
    let removed = x.repo.calve(["remove", "--json", "x"]).succeeds().says(&["3 ignored files", "7 days"]).json();
    let place = PathBuf::from(removed["kept"]["directory"].as_str().unwrap());
    assert_eq!(kept(&x.repo), std::slice::from_ref(&place));
    assert_eq!(fs_err::read_to_string(place.join(".env")).unwrap(), "SECRET=edited\n");
    assert_eq!(fs_err::read_to_string(place.join(".env.d/h.md")).unwrap(), "notes\n");
    assert!(place.join(".env.d/link").is_symlink() && !place.join("target").exists());
    assert!(!x.path.exists());
    // After a week they go.
    let touch = |age: &str| assert!(Command::new("touch").args(["-d", age]).arg(&place).status().unwrap().success());
    touch("6 days ago");
    x.repo.calve(["list"]).succeeds();
    assert!(place.exists());
    touch("8 days ago");
    x.repo.calve(["list"]).succeeds();
    assert!(!place.exists());
    eventually_nothing_left(&x.repo.spot);
}

#[test]
fn a_file_that_differs_is_moved_aside_whatever_its_size_and_time_are() {
    for changed in ["nothing", "the worktree", "its source", "the main worktree"] {
        let repo = Repo::anywhere();
        let write_at_a_time = |root: &Path, text: &str| {
            write(&root.join(".env.own"), text);
            let touched = Command::new("touch").args(["-d", "2020-01-01"]).arg(root.join(".env.own")).status();
            assert!(touched.unwrap().success());
        };
        write_at_a_time(&repo.path, "AAAA\n");
        let one = repo.add(["one"]);
        if changed == "the main worktree" {
            write_at_a_time(&one, "BBBB\n");
        }
        let two = repo.add(["two", "--from", "one"]);
        match changed {
            "the worktree" => write_at_a_time(&two, "BBBB\n"),
            "its source" => [&repo.path, &one].into_iter().for_each(|root| write_at_a_time(root, "BBBB\n")),
            _ => _ = repo.calve(["remove", "one"]).succeeds(),
        }
        let removed = repo.calve(["remove", "--json", "two"]).succeeds().json();
        let expected = if changed == "nothing" { json!(null) } else { json!([".env.own"]) };
        assert_eq!(removed["kept"]["files"], expected, "{changed}");
    }
}

#[test]
fn force_loses_only_the_ignored_files_that_cannot_be_moved_aside() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 24 << 20) else { return };
    let repo = Repo::at(Spot::at(volume));
    let elsewhere = Spot::anywhere();
    let path = elsewhere.join("x");
    repo.add([OsStr::new("x"), OsStr::new("--path"), path.as_os_str()]);
    write(&path.join("large.log"), &"x".repeat(40 << 20));
    write(&path.join("small.log"), "notes\n");
    repo.calve(["remove", "x"]).fails(1).hints();
    assert!(path.join("small.log").exists() && kept(&repo).is_empty());
    let removed = repo.calve(["remove", "-f", "--json", "x"]).succeeds().says(&["lost ignored", "`large.log`"]).json();
    assert_eq!((&removed["kept"]["files"], &removed["kept"]["bytes"]), (&json!(["small.log"]), &json!(6)));
    assert_eq!(removed["lost"][0]["paths"], json!(["large.log"]));
    assert_eq!(fs_err::read_to_string(kept(&repo)[0].join("small.log")).unwrap(), "notes\n");
    assert!(!path.exists());
}

#[test]
fn links_that_calve_has_redirected_are_no_files_of_a_worktree() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "*.ln\n.env\nnode_modules\n/target\n");
    repo.commit("links");
    let link = |target: &Path, at: &Path| fs_err::os::unix::fs::symlink(target, at).unwrap();
    link(&repo.join("package-lock.json"), &repo.join("absolute.ln"));
    link(&repo.join("nowhere"), &repo.join("dangling.ln"));
    link(&repo.join("src/main.ts"), &repo.join("file.ln"));
    link(Path::new("../proj/src"), &repo.join("leaving.ln"));
    let path = repo.add(["x", "--path", "../deep/er/x"]);
    assert_eq!(fs_err::read_link(path.join("absolute.ln")).unwrap(), path.join("package-lock.json"));
    assert_eq!(fs_err::read_link(path.join("dangling.ln")).unwrap(), repo.join("nowhere"));
    assert_ne!(fs_err::read_link(path.join("leaving.ln")).unwrap(), Path::new("../proj/src"));
    link(&path.join("src/deep"), &path.join("own.ln"));
    fs_err::remove_file(path.join("file.ln")).unwrap();
    link(&path.join("run.sh"), &path.join("file.ln"));
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!(["file.ln", "own.ln"]));
}

#[test]
fn ignored_files_that_others_have_go_and_those_of_nested_repositories_are_moved_aside() {
    let repo = Repo::anywhere();
    // Files that others have go without a word.
    repo.write(".env.local", "1\n");
    let one = repo.add(["one"]);
    write(&one.join(".env.own"), "only in one\n");
    let two = repo.add(["two", "--from", "one"]);
    // The same contents, written anew.
    write(&two.join(".env.local"), "1\n");
    repo.calve(["remove", "two"]).succeeds();
    assert!(kept(&repo).is_empty() && !two.exists());
    let removed = repo.calve(["remove", "--json", "one"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!([".env.own"]));
    // By a link in the main worktree, it is the same file.
    let three = repo.add(["three"]);
    write(&three.join(".env.d/note"), "only here\n");
    fs_err::os::unix::fs::symlink(three.join(".env.d"), repo.join(".env.d")).unwrap();
    let removed = repo.calve(["remove", "--json", "three"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!([".env.d/note"]));
    let path = repo.add(["x"]);
    let inner = path.join(".worktrees/inner");
    repo.git(["clone", "-q", ".", inner.to_str().unwrap()]);
    write(&inner.join(".env"), "only here\n");
    write(&inner.join("node_modules/x"), "made again\n");
    // It has a `.git`, and is no repository.
    write(&path.join(".worktrees/plain/.git/note"), "only here\n");
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!([".worktrees/inner/.env", ".worktrees/plain/.git/note"]));
}

#[test]
fn the_database_of_a_journal_is_moved_aside_with_it() {
    let repo = Repo::anywhere();
    repo.write(".env.db", "the database\n");
    let path = repo.add(["x"]);
    write(&path.join(".env.db-wal"), "what is not in it yet\n");
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!([".env.db", ".env.db-wal"]));
    for (changed, other) in [(".env.db", ".env.db-shm"), (".env.db-journal", ".env.db-wal")] {
        let repo = Repo::anywhere();
        for name in [".env.db", changed, other] {
            repo.write(name, "the same\n");
        }
        let path = repo.add(["x"]);
        write(&path.join(changed), "changed here\n");
        let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
        let files: Vec<_> = removed["kept"]["files"].as_array().unwrap().iter().map(|name| name.as_str()).collect();
        for name in [".env.db", changed, other] {
            assert!(files.contains(&Some(name)), "{name}: {files:?}");
        }
    }
}

#[test]
fn force_moves_ignored_files_aside_and_names_what_is_lost() {
    let x = Guarded::new();
    write(&x.path.join(".env"), "SECRET=edited\n");
    write(&x.path.join("src/main.ts"), "changed\n");
    let planned = x.repo.calve(["remove", "-n", "-f", "x"]).succeeds();
    planned.says(&["would lose uncommitted changes", "`src/main.ts`", "would keep for 7 days ignored files", "`.env`"]);
    let removed = x.repo.calve(["remove", "-f", "--json", "x"]).succeeds();
    let removed = removed.says(&["lost uncommitted changes", "`src/main.ts`", "1 ignored file", "7 days"]).json();
    assert_eq!(removed["lost"][0]["paths"], json!(["src/main.ts"]));
    assert_eq!(removed["lost"].as_array().unwrap().len(), 1);
    let place = PathBuf::from(removed["kept"]["directory"].as_str().unwrap());
    assert_eq!(fs_err::read_to_string(place.join(".env")).unwrap(), "SECRET=edited\n");
    // What git cannot read, and what cannot be moved aside, still goes by force.
    let broken = x.repo.add(["broken"]);
    fs_err::write(x.repo.join(".git/worktrees/proj.broken/index"), "no index").unwrap();
    let listed = x.repo.calve(["list"]).succeeds().stdout;
    let line = listed.lines().find(|line| line.contains("proj.broken")).unwrap();
    assert!(line.contains("unreadable") && listed.matches("unreadable").count() == 1, "{listed}");
    x.repo.calve(["remove", "broken"]).fails(1);
    x.repo.calve(["remove", "-f", "broken"]).succeeds().says(&["lost"]);
    assert!(!broken.exists());
}

#[test]
fn commits_that_only_the_log_of_a_branch_has_are_counted() {
    let repo = Repo::anywhere();
    for (name, after) in [
        ("amended", &["commit", "-q", "--amend", "--allow-empty", "-m", "new"][..]),
        ("reset", &["reset", "-q", "--hard", "HEAD^"]),
    ] {
        let path = repo.add([name]);
        git(&path, ["commit", "-q", "--allow-empty", "-m", "old"]);
        let lost = git(&path, ["rev-parse", "HEAD"]);
        assert!(Command::new("git").arg("-C").arg(&path).args(after).status().unwrap().success());
        repo.git(["merge", "-q", "--no-edit", name]);
        repo.calve(["remove", "-n", "-D", name]).succeeds().says(&["1 commit that no other branch has"]);
        repo.calve(["remove", "-d", name]).succeeds().says(&["stays", "its log has 1 commit"]);
        assert!(repo.git(["log", "-g", "--format=%H", name]).contains(lost.trim()));
        repo.add([name]);
        repo.calve(["remove", "-D", name]).succeeds().says(&["1 commit that no other branch has"]);
        assert!(repo.git(["branch", "--list", name]).is_empty());
    }
    // Nothing of its own: `-d` deletes it.
    repo.add(["plain"]);
    repo.calve(["remove", "-d", "plain"]).succeeds().says(&["and the branch `plain`"]);
}

#[test]
fn a_branch_stays_if_a_hook_commits_to_it_or_a_rebase_goes_back_to_it() {
    let repo = Repo::anywhere();
    let (rebasing, other) = (repo.add(["rebasing"]), repo.add(["other"]));
    write(&repo.join(".git/worktrees/proj.other/rebase-merge/head-name"), "refs/heads/rebasing\n");
    repo.calve(["remove", "-D", "rebasing"]).succeeds().says(&["it changed or is in use"]);
    assert!(!rebasing.exists() && other.exists() && !repo.git(["branch", "--list", "rebasing"]).is_empty());
    repo.write(".calve.toml", "[hooks]\npre-remove = \"git commit -q --allow-empty -m late\"\n");
    repo.git(["add", "-f", ".calve.toml"]);
    repo.git(["commit", "-q", "-m", "hook"]);
    repo.add(["x"]);
    repo.calve(["remove", "--yes", "-D", "x"]).succeeds().says(&["was kept", "it changed or is in use"]);
    assert_eq!(repo.git(["log", "-1", "--format=%s", "x"]).trim(), "late");
}

#[test]
fn directories_with_plain_names_count_as_outputs_only_where_a_build_made_them() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "/bin/\nbuild/\nout/\n*.local\n");
    // git has a part of it.
    repo.write("tools/bin/tool", "tracked\n");
    repo.git(["add", ".gitignore", "tools"]);
    repo.git(["commit", "-q", "-m", "ignored"]);
    repo.write("build/here", "built in the main worktree\n");
    let path = repo.add(["x"]);
    for name in [
        "bin/mine.sh",
        "tools/bin/secret.local",
        "sub/out/notes",
        "cmake/build/CMakeCache.txt",
        "cmake/build/a.out",
        "build/other",
    ] {
        write(&path.join(name), "only here\n");
    }
    let removed = repo.calve(["remove", "--json", "x"]).succeeds().json();
    assert_eq!(removed["kept"]["files"], json!(["bin/mine.sh", "sub/out/notes", "tools/bin/secret.local"]));
}

#[test]
fn what_cannot_be_moved_aside_needs_force() {
    let x = Guarded::new();
    let large = |name: &str, bytes: u64| fs_err::File::create(x.path.join(name)).unwrap().set_len(bytes).unwrap();
    large("a.log", 40_000_000);
    large("b.log", 60_000_000);
    x.repo.calve(["remove", "-n", "x"]).succeeds().says(&["`a.log`", "`b.log`"]);
    large("b.log", 70_000_000);
    x.is_kept("ignored", &["110 MB", "the largest: `b.log`, 70 MB"]);
    assert!(kept(&x.repo).is_empty());
    x.repo.calve(["remove", "-f", "x"]).succeeds();
    assert!(!x.path.exists());
    x.repo.calve(["add", "-q", "x"]).succeeds();
    // Nothing can be moved aside.
    write(&x.path.join(".env"), "SECRET=edited\n");
    x.repo.write(".git/calve", "in the way\n");
    x.repo.calve(["remove", "x"]).fails(1).hints();
    assert_eq!(fs_err::read_to_string(x.path.join(".env")).unwrap(), "SECRET=edited\n");
    is_clean(&x.path);
    fs_err::remove_file(x.repo.join(".git/calve")).unwrap();
    x.goes();
}

#[test]
fn a_branch_is_named_with_its_commits_before_it_goes() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "only here"]);
    let commit = git(&path, ["rev-parse", "HEAD"]);
    let said = format!("`x` (was {}, 1 commit that no other branch has)", &commit[..7]);
    let planned = repo.calve(["remove", "-n", "-D", "--json", "x"]).succeeds().says(&["would remove", &said]).json();
    assert_eq!((&planned["branch_commit"], &planned["branch_own_commits"]), (&commit.trim().into(), &1.into()));
    let removed = repo.calve(["remove", "-D", "--json", "x"]).succeeds().says(&["removed", &said]).json();
    assert_eq!((&removed["branch_commit"], &removed["branch_own_commits"]), (&commit.trim().into(), &1.into()));
    repo.git(["branch", "again", commit.trim()]);
    // Another branch has them; a tag, too.
    for (name, keeping) in [("y", "branch"), ("z", "tag")] {
        let path = repo.add([name]);
        git(&path, ["commit", "-q", "--allow-empty", "-m", name]);
        repo.git([keeping, &format!("{name}-kept"), name]);
        let removed = repo.calve(["remove", "-D", "--json", name]).succeeds().json();
        assert_eq!(removed["branch_own_commits"], 0, "{name}");
    }
}

fn standing(repo: &Repo, within: &Path) -> (String, bool) {
    let list = repo.calve(["list", "--json"]).within(within).succeeds().json();
    let x = list["worktrees"].as_array().unwrap().iter().find(|one| one["branch"] == "x").unwrap();
    (x["standing"].as_str().unwrap().to_owned(), x["current"] == true)
}

#[test]
fn a_link_to_something_else_is_no_worktree_and_no_hint_makes_it_one() {
    let repo = Repo::anywhere();
    let (path, real) = (repo.add(["x"]), repo.spot.join("real"));
    fs_err::rename(&path, &real).unwrap();
    let photos = repo.spot.join("photos");
    write(&photos.join("cat.jpg"), "1\n");
    let pointer = format!("gitdir: {}\n", repo.spot.join("no/.git/worktrees/other").display());
    let put: [&dyn Fn(); 4] = [
        &|| fs_err::os::unix::fs::symlink("photos", &path).unwrap(),
        &|| fs_err::rename(&photos, &path).unwrap(),
        // A worktree of a repository that is not there, by a link and by itself.
        &|| {
            write(&photos.join(".git"), &pointer);
            fs_err::os::unix::fs::symlink("photos", &path).unwrap();
        },
        &|| fs_err::rename(&photos, &path).unwrap(),
    ];
    for put in put {
        put();
        assert_eq!(standing(&repo, &repo.path), ("replaced".into(), false));
        for words in [&["remove", "x"][..], &["remove", "-f", "x"]] {
            let ran = repo.calve(words).fails(1).says(&["no longer the worktree", "`git worktree repair NEW-PATH`"]);
            assert!(!ran.stderr.contains("repair` in"), "{}", ran.stderr);
        }
        let is_link = path.is_symlink();
        match is_link {
            true => fs_err::remove_file(&path).unwrap(),
            false => fs_err::rename(&path, &photos).unwrap(),
        }
        assert!(photos.join("cat.jpg").exists());
    }
    // The hint leads to the worktree.
    repo.git(["worktree", "repair", real.to_str().unwrap()]);
    repo.calve(["remove", "x"]).succeeds();
    assert!(!real.exists() && photos.join("cat.jpg").exists());
}

#[test]
fn a_moved_worktree_that_one_is_in_is_not_gone() {
    let repo = Repo::anywhere();
    let (path, moved) = (repo.add(["x"]), repo.spot.join("moved"));
    write(&path.join("work"), "w\n");
    fs_err::rename(&path, &moved).unwrap();
    assert_eq!(standing(&repo, &moved), ("moved".into(), true));
    assert_eq!(standing(&repo, &moved.join("src")), ("moved".into(), true));
    repo.calve(["list"]).within(&moved).succeeds().says(&["was moved to", "`git worktree repair` in it"]);
    for words in [&["prune"][..], &["prune", "--merged", "--older-than", "0h", "--yes"]] {
        repo.calve(words).within(&moved).succeeds().says(&["kept the entry", "`git worktree repair` in it"]);
        git(&moved, ["status"]);
    }
    for words in [&["remove"][..], &["remove", "-f"], &["remove", "-f", "x"], &["remove", "-f", "."]] {
        repo.calve(words).within(&moved).fails(1).says(&["run `git worktree repair` in it", "was moved to"]);
    }
    assert!(moved.join("work").exists());
    // From elsewhere it is gone, and the hint has both halves.
    assert_eq!(standing(&repo, &repo.path), ("gone".into(), false));
    repo.calve(["list"]).succeeds().says(&["is gone", "calve worktree prune", "`git worktree repair NEW-PATH`"]);
    // Also where something else has taken its place.
    write(&path.join("notes"), "n\n");
    assert_eq!(standing(&repo, &moved), ("moved".into(), true));
    repo.calve(["prune"]).within(&moved).succeeds().says(&["kept the entry"]);
    fs_err::remove_dir_all(&path).unwrap();
    git(&moved, ["worktree", "repair"]);
    assert_eq!(standing(&repo, &moved), ("intact".into(), true));
}

#[test]
fn an_error_is_no_proof_that_nothing_would_be_lost() {
    let repo = Repo::anywhere();
    let entry = |name: &str| repo.join(format!(".git/worktrees/proj.{name}"));
    let staged = repo.add(["staged"]);
    write(&staged.join("staged"), "only here\n");
    git(&staged, ["add", "staged"]);
    fs_err::remove_dir_all(&staged).unwrap();
    // git takes it for broken.
    fs_err::remove_file(entry("staged").join("gitdir")).unwrap();
    fs_err::remove_file(entry("staged").join("HEAD")).unwrap();
    fs_err::create_dir(entry("staged").join("HEAD")).unwrap();
    repo.calve(["prune"]).succeeds();
    assert!(entry("staged").join("index").exists());
    let referenced = repo.add(["referenced"]);
    let _ = fs_err::remove_dir_all(entry("referenced").join("refs"));
    // Unreadable for root, too.
    fs_err::os::unix::fs::symlink("refs", entry("referenced").join("refs")).unwrap();
    repo.calve(["remove", "referenced"]).fails(1);
    assert!(referenced.exists());
}
