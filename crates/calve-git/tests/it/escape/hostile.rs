//! Trees made to have an audit write where it must not, or never end.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_git::escape::{Action, AuditOptions, ReferenceKind, audit};
use calve_testkit::{Tree, fingerprint, git_command};

use super::{Pair, fixing, outline};

#[test]
fn nothing_is_written_through_a_symlink() {
    let pair = Pair::new();
    let outside = pair.folder().join("outside");
    for (path, text) in [
        ("bin/x", "#!{old}/x\n"),
        ("pyvenv.cfg", "home = {old}\n"),
        ("cache/webpack/a", "{old}"),
        ("CMakeCache.txt", "A={old}\n"),
        ("CMakeFiles/a", "{old}"),
        ("debug/.fingerprint/a-0123456789abcdef/lib-a", ""),
    ] {
        Tree::new(&outside).file(path, pair.spelled(text).as_bytes());
    }
    // The directory, the file, and what a repair would go through.
    pair.link(".venv", "../outside").link("bin", "../outside/bin").link("sub/pyvenv.cfg", "../../outside/pyvenv.cfg");
    pair.link(".next", "../outside").link("target", "../outside");
    pair.file("build/CMakeCache.txt", "A={old}\n")
        .link("build/CMakeFiles", "../../outside/CMakeFiles")
        .link("build/sub", "../../outside");
    let before = fingerprint(&outside);
    let found = pair.audited(&fixing());
    assert_eq!(outline(&found.findings), [(ReferenceKind::CMake, "build/CMakeCache.txt", Action::Repaired)]);
    let mut below = fixing();
    below.scan.below = ["bin/x", ".venv/bin", ".venv/pyvenv.cfg", "../outside/bin", "/etc", "target/debug"]
        .map(PathBuf::from)
        .to_vec();
    assert_eq!(outline(&pair.audited(&below).findings), []);
    before.assert_unchanged(&outside);
}

#[test]
fn a_name_that_a_shell_would_run_is_not_written_into_scripts() {
    let pair = Pair::at("main", "main.$(touch ran)");
    pair.file("bin/activate", "VIRTUAL_ENV=\"{old}/.venv\"\n").file("bin/x", "#!/bin/sh\nexec \"{old}/y\"\n");
    pair.file("site-packages/a.pth", "{old}/src\n").file("build/CMakeCache.txt", "A={old}\n");
    let found = pair.fixed();
    let expected = [
        (ReferenceKind::Activate, "bin/activate", Action::Reported),
        (ReferenceKind::Shebang, "bin/x", Action::Reported),
        (ReferenceKind::CMake, "build/CMakeCache.txt", Action::Repaired),
        (ReferenceKind::Editable, "site-packages/a.pth", Action::Repaired),
    ];
    assert_eq!(outline(&found), expected);
    pair.has("bin/activate", "VIRTUAL_ENV=\"{old}/.venv\"\n");
}

#[test]
fn what_is_no_file_is_not_opened() {
    let pair = Pair::new();
    let new = pair.new_tree();
    Tree::new(&new).dir("bin").dir("a/pyvenv.cfg").dir("b/CMakeCache.txt").dir("c/RECORD");
    for fifo in ["pyvenv.cfg", "bin/activate", "bin/x", ".git"] {
        assert!(Command::new("mkfifo").arg(new.join(fifo)).status().unwrap().success());
    }
    assert_eq!(outline(&pair.audited(&fixing()).findings), []);
}

#[test]
fn a_file_too_large_for_its_kind_is_left_alone() {
    let pair = Pair::new();
    pair.file("bin/x", "#!{old}/x\n");
    let large = fs_err::OpenOptions::new().write(true).open(pair.new_tree().join("bin/x")).unwrap();
    large.set_len(10 << 30).unwrap();
    assert_eq!(outline(&pair.audited(&fixing()).findings), []);
}

#[test]
fn what_git_tracks_is_only_reported() {
    let pair = Pair::new();
    let new = pair.new_tree();
    let git = |args: &[&str]| {
        assert!(git_command(&new).args(args).status().unwrap().success());
    };
    pair.link("tracked", "{old}/a")
        .file("bin/tool", "#!{old}/x\n")
        .file("bin/ignored", "#!{old}/x\n")
        .file(".gitignore", "ignored\n");
    pair.file("CMakeCache.txt", "A={old}\n").file("Makefile", "A={old}\n").file("CMakeFiles/x", "");
    git(&["init", "-q"]);
    git(&["add", "tracked", "bin/tool", "Makefile"]);
    let found = pair.fixed();
    let expected = [
        (ReferenceKind::CMake, "CMakeCache.txt", Action::Repaired),
        (ReferenceKind::Shebang, "bin/ignored", Action::Repaired),
        (ReferenceKind::Shebang, "bin/tool", Action::Reported),
        (ReferenceKind::AbsoluteLink, "tracked", Action::Reported),
    ];
    assert_eq!(outline(&found), expected);
    pair.has("bin/tool", "#!{old}/x\n");
    pair.has("Makefile", "A={old}\n");
    assert!(!new.join("CMakeFiles").exists());
}

#[test]
fn hard_links_of_the_donor_are_not_written_through() {
    let pair = Pair::new();
    Tree::new(pair.old()).file("bin/x", pair.spelled("#!{old}/x\n").as_bytes());
    fs_err::create_dir(pair.new_tree().join("bin")).unwrap();
    fs_err::hard_link(pair.old().join("bin/x"), pair.new_tree().join("bin/x")).unwrap();
    assert_eq!(pair.audited(&fixing()).findings.len(), 1);
    assert_eq!(fs_err::read_to_string(pair.old().join("bin/x")).unwrap(), pair.spelled("#!{old}/x\n"));
    pair.has("bin/x", "#!{new}/x\n");
}

#[test]
fn a_tree_that_is_not_there_is_an_error_with_its_path() {
    let error = audit(Path::new("/nonexistent/tree"), Path::new("/old"), &AuditOptions::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/tree"), "{error}");
}
