//! Errors that name the fault and the command that helps, which is run here.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::ports::{number, with_ports};
use super::repo::{Repo, git, is_clean, with_environment, write};
use crate::program::{PROGRAM, calve, carry_environment};
use crate::spot::Spot;

#[test]
fn a_directory_that_is_not_there_is_no_missing_git() {
    let spot = Spot::anywhere();
    fs_err::write(spot.join("file"), "").unwrap();
    for words in [&["git", "fetch", "-C"][..], &["hook", "approve"], &["worktree", "check"], &["worktree", "convert"]] {
        for path in ["missing", "file"].map(|name| spot.join(name)) {
            let ran = with_environment(calve(words).arg(&path)).within(&spot).fails(1);
            let ran = ran.says(&[&format!("there is no directory `{}`", path.display()), "spelling"]).hints();
            assert!(!ran.stderr.contains("install"), "{}", ran.stderr);
        }
    }
    write(&spot.join("broken/git"), "#!/missing\n");
    fs_err::set_permissions(spot.join("broken/git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for path in ["nothing", "broken"] {
        let mut list = Command::new(PROGRAM);
        list.args(["worktree", "list"]).current_dir(&spot).env("PATH", spot.join(path));
        let said = String::from_utf8(list.output().unwrap().stderr).unwrap();
        let (error, hint) = said.split_once('\n').unwrap();
        assert_eq!(error, "error: cannot run git: No such file or directory (os error 2)");
        assert_eq!(hint, "hint: install git, and check that it is in PATH\n");
    }
}

#[test]
fn too_few_open_files_are_told_with_the_command_that_permits_more() {
    let repo = Repo::anywhere();
    let list = |before: &str| repo.calve(["list"]).in_shell(before, "");
    let ran = list("ulimit -S -n 6;").fails(1).says(&[
        "the limit of open files is too low: raise it with `ulimit -n 1024`",
        "Too many open files",
        "`ulimit -n 1024`",
    ]);
    assert!(!ran.stderr.contains("install"), "{}", ran.stderr);
    list("ulimit -S -n 6; ulimit -n 1024;").succeeds();
}

#[test]
fn outside_of_a_repository_no_command_prints_what_git_says() {
    let spot = Spot::anywhere();
    let question = spot.join("question");
    fs_err::write(&question, format!("{{\"cwd\": \"{}\", \"name\": \"x\"}}", spot.display())).unwrap();
    let question = format!("< '{}'", question.display());
    for (words, redirection) in [
        (&["hook", "approve"][..], ""),
        (&["git", "fetch"], ""),
        (&["worktree", "list"], ""),
        (&["worktree", "remove"], ""),
        (&["worktree", "prune"], ""),
        (&["worktree", "convert"], ""),
        (&["hook", "worktree-create"], &question),
    ] {
        let ran = with_environment(calve(words)).within(&spot).env("GIT_CEILING_DIRECTORIES", spot.parent().unwrap());
        let ran = ran.in_shell("", redirection).fails(1).says(&["is not in a git repository", "`git init`"]).hints();
        assert!(!ran.stderr.contains("fatal:") && !ran.stderr.contains("rev-parse"), "{}", ran.stderr);
    }
    git(&spot, ["init", "-q", "--bare", "bare.git"]);
    let ran = with_environment(calve(["hook", "approve"]))
        .within(spot.join("bare.git"))
        .fails(1)
        .says(&["name the path of a worktree; `calve worktree list` shows them"]);
    let ran = ran.says(&["not in a worktree of it"]).hints();
    assert!(!ran.stderr.contains("fatal:"), "{}", ran.stderr);
}

#[test]
fn a_pull_request_that_is_not_there_is_told_in_plain_words() {
    let repo = Repo::anywhere();
    repo.calve(["add", "pr/9"]).fails(1).says(&[
        "`git remote add origin URL` first",
        "the repository has none",
        "git remote add",
    ]);
    let other = repo.spot.join("other");
    repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
    repo.git(["remote", "add", "origin", other.to_str().unwrap()]);
    let ran = repo.calve(["add", "pr/9"]).fails(1).says(&["the remote `origin` has no pull request 9"]).hints();
    assert!(!ran.stderr.contains("fatal:") && !ran.stderr.contains("refs/calve"), "{}", ran.stderr);
    // The command that it names lists what there is.
    git(&other, ["update-ref", "refs/pull/7/head", "main"]);
    let command = ran.stderr.split('`').find(|text| text.starts_with("git ls-remote")).unwrap();
    let listed = Command::new("sh").args(["-c", command]).current_dir(&repo.path).output().unwrap();
    assert!(String::from_utf8(listed.stdout).unwrap().contains("refs/pull/7/head"));
    is_clean(&repo.add(["pr/7"]));
    repo.git(["remote", "set-url", "origin", repo.spot.join("nowhere").to_str().unwrap()]);
    let ran = repo.calve(["add", "pr/8"]).fails(1).says(&["cannot fetch pull request 8 from `origin`"]).hints();
    assert!(!ran.stderr.contains("fatal:") && !ran.stderr.contains("refspec"), "{}", ran.stderr);
}

#[test]
fn no_hint_names_a_page_that_is_not_installed() {
    let repo = Repo::anywhere();
    repo.write(".calve.toml", "[worktree]\nwhat = 1\n");
    let ran = repo.calve(["add", "x"]).fails(1).says(&["`calve worktree add --help`"]).hints();
    assert!(!ran.stderr.contains("docs/"), "{}", ran.stderr);
    let help = repo.calve(["add", "--help"]).succeeds().stdout;
    for key in ["[worktree]", "path", "include", "exclude", "secrets", "[hooks]", "post-add", "pre-remove"] {
        assert!(help.contains(key), "{key}: {help}");
    }
    let ran = with_environment(calve(["hook", "worktree-create"])).within(&repo.path).fails(2).hints();
    assert!(!ran.stderr.contains("docs/") && ran.stderr.contains("\"cwd\""), "{}", ran.stderr);
}

#[test]
fn a_place_that_is_another_worktrees_is_not_taken() {
    let repo = Repo::anywhere();
    repo.add(["feat/foo"]);
    let taken = "proj.feat-foo` already exists: it is the worktree of the branch `feat/foo`";
    for options in [&[][..], &["-n"]] {
        repo.calve(["add", "feat-foo"]).args(options).fails(1).says(&[taken, "hint: name another place with `--path`"]);
    }
    fs_err::create_dir(repo.spot.join("proj.plain")).unwrap();
    let ran = repo.calve(["add", "plain"]).fails(1).says(&["proj.plain` already exists\n"]).hints();
    assert!(!ran.stderr.contains("the worktree of"), "{}", ran.stderr);
    let path = repo.add(["x"]);
    let moved = repo.spot.join("moved");
    fs_err::rename(&path, &moved).unwrap();
    let shown = path.to_str().unwrap();
    for words in [&["add", "--path", shown, "y"][..], &["add", "-n", "--path", shown, "y"]] {
        let gone = format!("the worktree `{shown}` is gone");
        repo.calve(words).fails(1).says(&[&gone, "if you moved the worktree, run `git worktree repair NEW-PATH`"]);
    }
    repo.git(["worktree", "repair", moved.to_str().unwrap()]);
    assert_eq!(repo.worktrees().len(), 3);
    is_clean(&moved);
    repo.calve(["add", "--path", shown, "y"]).succeeds();
}

/// In each of them git ends without an error.
#[test]
fn what_git_and_its_filters_say_of_files_is_passed_on() {
    let repo = Repo::anywhere();
    let smudge = repo.spot.join("smudge");
    write(
        &smudge,
        "#!/bin/sh\ncase $(git rev-parse --git-dir) in */worktrees/*) echo 'no key'>&2; exit 1;; esac\ncat\n",
    );
    fs_err::set_permissions(&smudge, std::fs::Permissions::from_mode(0o755)).unwrap();
    let smudge = smudge.to_str().unwrap().to_owned();
    repo.git(["config", "filter.z.smudge", &smudge]);
    repo.git(["config", "filter.z.clean", "cat"]);
    repo.write(".gitattributes", "*.s filter=z\n");
    repo.write("a.s", "hello\n");
    repo.commit("filtered");
    let added = |branch: &str| {
        let ran = repo.calve(["add", "--json", branch]).succeeds();
        let warnings = ran.json()["warnings"].to_string();
        (warnings, ran.stderr)
    };
    // It fails; it is not there; it works, and warns.
    for (branch, command, words) in [
        ("one", smudge.as_str(), &["no key", "external filter"][..]),
        ("two", "no-such-program", &["no-such-program", "failed"]),
        ("three", "cat; echo 'the key \t is old' >&2", &["the key", "is old"]),
    ] {
        repo.git(["config", "filter.z.smudge", command]);
        let (warnings, said) = added(branch);
        for word in words {
            assert!(warnings.contains(word) && said.contains(word), "{branch}: {word}: {warnings} {said}");
        }
        assert!(said.contains("warning: git says of the files that it wrote: "), "{said}");
    }
    repo.git(["config", "filter.z.smudge", "cat"]);
    assert_eq!(added("four").0, "[]");
    // One that is required and fails: git ran in a directory under a hidden name, which is gone.
    repo.git(["config", "filter.z.smudge", "echo no key >&2; false"]);
    repo.git(["config", "filter.z.required", "true"]);
    let ran = repo.calve(["add", "new"]).fails(1).says(&["no key", "proj.new`: ", "hint: git's own message"]);
    assert!(!ran.stderr.contains(".calve-staging"), "{}", ran.stderr);
    assert!(!repo.spot.join("proj.new").exists());
}

#[test]
fn hints_name_what_helps() {
    let repo = Repo::anywhere();
    let one = repo.add(["one"]);
    repo.write(".calve.toml", "[services.db]\n");
    let reset = repo.within(&repo.path, &["reset", "--yes"]).fails(1);
    reset.says(&["this worktree has no data of any service", "`calve up` clones it, or says why it cannot"]);
    // The second time, the shell is in no worktree any more.
    let calve = repo.calve(["rm"]).command();
    let mut twice = Command::new("sh");
    twice.args(["-c", "\"$0\" worktree rm >&2; \"$0\" worktree rm"]).arg(calve.get_program());
    carry_environment(&calve, &mut twice);
    let said = String::from_utf8(twice.current_dir(&one).output().unwrap().stderr).unwrap();
    assert!(said.contains("hint: change to a directory that exists") && !said.contains("repair"), "{said}");
    let two = repo.add(["two"]);
    fs_err::remove_dir_all(&two).unwrap();
    let would = format!("would forget `{}`, which is gone", two.display());
    repo.calve(["prune", "-n"]).succeeds().says(&[&would]);
    let planned = repo.calve(["prune", "-n", "--json"]).succeeds().json();
    assert_eq!((&planned["forgotten"][0], repo.worktrees().len()), (&two.to_str().unwrap().into(), 2));
}

#[test]
fn a_file_of_variables_of_the_worktrees_own_was_not_left_out() {
    let repo = with_ports(&format!("web = {}", number(230)));
    let head = repo.git(["commit-tree", "-p", "HEAD", "-m", "request", "HEAD^{tree}"]);
    repo.git(["update-ref", "refs/pull/1/head", head.trim()]);
    let theirs = repo.spot.join("theirs");
    let words = ["--path", "../theirs", "--env-file", ".env.local"];
    repo.adding("refs/pull/1/head").args(words).succeeds().says(&["not trusted"]);
    let from = repo.within(&theirs, &["worktree", "add", "--from", ".", "two"]).succeeds();
    assert!(!from.stderr.contains("left out `.env.local`"), "{}", from.stderr);
    from.says(&["wrote the variables to `.env.local`"]);
}
