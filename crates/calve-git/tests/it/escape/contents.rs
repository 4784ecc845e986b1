//! Files that name the old tree.

use std::time::{Duration, SystemTime};

use calve_git::escape::{Action, Explanation, ReferenceKind};

use super::{Pair, outline};

#[test]
fn files_that_name_the_old_tree_name_the_new_one() {
    let cases: &[(ReferenceKind, &str, &str, &str)] = &[
        (
            ReferenceKind::Shebang,
            ".venv/bin/tool",
            "#!{old}/.venv/bin/python\nimport tool\n",
            "#!{new}/.venv/bin/python\nimport tool\n",
        ),
        (
            ReferenceKind::Shebang,
            "node_modules/.bin/x",
            "#!/bin/sh\nexport NODE_PATH=\"{old}/node_modules/a:{old}/node_modules\"\n",
            "#!/bin/sh\nexport NODE_PATH=\"{new}/node_modules/a:{new}/node_modules\"\n",
        ),
        (ReferenceKind::Activate, ".venv/bin/activate", "VIRTUAL_ENV={old}/.venv\n", "VIRTUAL_ENV={new}/.venv\n"),
        (
            ReferenceKind::Activate,
            ".venv/bin/activate.fish",
            "set -gx VIRTUAL_ENV '{old}/.venv'",
            "set -gx VIRTUAL_ENV '{new}/.venv'",
        ),
        (
            ReferenceKind::PyvenvCfg,
            ".venv/pyvenv.cfg",
            "command = python -m venv {old}/.venv\n",
            "command = python -m venv {new}/.venv\n",
        ),
        (ReferenceKind::Editable, ".venv/lib/site-packages/a.pth", "{old}/src\nimport x\n", "{new}/src\nimport x\n"),
        (ReferenceKind::Editable, ".venv/lib/site-packages/a.egg-link", "{old}\n.", "{new}\n."),
        (
            ReferenceKind::Editable,
            ".venv/lib/site-packages/__editable___a_finder.py",
            "M = {'a': '{old}/src/a'}",
            "M = {'a': '{new}/src/a'}",
        ),
        (
            ReferenceKind::DistInfo,
            ".venv/lib/site-packages/a-1.dist-info/direct_url.json",
            r#"{"url": "file://{old}", "dir_info": {"editable": true}}"#,
            r#"{"url": "file://{new}", "dir_info": {"editable": true}}"#,
        ),
        (
            ReferenceKind::Pnpm,
            "node_modules/.modules.yaml",
            "virtualStoreDir: {old}/node_modules/.pnpm\n",
            "virtualStoreDir: {new}/node_modules/.pnpm\n",
        ),
        (ReferenceKind::WebCache, ".next/required-server-files.json", r#"{"appDir":"{old}"}"#, r#"{"appDir":"{new}"}"#),
        (
            ReferenceKind::CMake,
            "build/CMakeCache.txt",
            "CMAKE_HOME_DIRECTORY:INTERNAL={old}\n",
            "CMAKE_HOME_DIRECTORY:INTERNAL={new}\n",
        ),
    ];
    let pair = Pair::new();
    for (_, path, before, _) in cases {
        pair.file(path, before);
    }
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for (_, path, ..) in cases {
        fs_err::File::open(pair.new_tree().join(path)).unwrap().set_modified(time).unwrap();
    }
    let found = pair.fixed();
    let mut expected: Vec<_> = cases.iter().map(|(kind, path, ..)| (*kind, *path, Action::Repaired)).collect();
    expected.sort_by(|a, b| std::path::Path::new(a.1).cmp(std::path::Path::new(b.1)));
    assert_eq!(outline(&found), expected);
    for (kind, path, _, after) in cases {
        pair.has(path, after);
        let now = fs_err::metadata(pair.new_tree().join(path)).unwrap().modified().unwrap();
        // Python would take what it compiled of a module for current.
        assert_eq!(now == time, !path.ends_with("finder.py"), "{kind:?}: {path}");
    }
}

/// A first line that names a tree with a long path, whatever it has beside the interpreter.
#[test]
fn scripts_with_long_first_lines_run() {
    const NEW: &str = "main.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    if !calve_testkit::require_program("python3") {
        return;
    }
    let pair = Pair::at("main", NEW);
    pair.link(".venv/bin/python", "/usr/bin/python3");
    let body = "import sys; print(sys.executable, sys.flags.isolated, sys.argv[1:], len('\u{e9}'))\n";
    let scripts = [
        ("a", "#!{old}/.venv/bin/python\n", "0"),
        ("b", "#!{old}/.venv/bin/python -I\n", "1"),
        ("c", "#!/usr/bin/env -S {old}/.venv/bin/python -I\n", "1"),
        ("d", "#!{old}/.venv/bin/python\n# -*- coding: latin-1 -*-\n", "0"),
    ];
    for (name, head, _) in scripts {
        let latin: Vec<u8> = body.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let body = if name == "d" { latin } else { body.into() };
        for tree in [pair.old(), pair.new_tree()] {
            let script = [pair.spelled(head).into_bytes(), body.clone()].concat();
            calve_testkit::Tree::new(tree).file(format!(".venv/bin/{name}"), &script);
        }
    }
    pair.file("node_modules/.bin/r", "#!{old}/ruby\n");
    let found = pair.fixed();
    let left = |found: &calve_git::escape::Finding| found.action == Action::Reported;
    let left: Vec<_> = found.iter().filter(|one| left(one)).map(|one| (&*one.path, &one.explanation)).collect();
    assert_eq!(left, [(std::path::Path::new("node_modules/.bin/r"), &Explanation::LineTooLong)]);
    for (name, _, isolated) in scripts {
        let script = pair.new_tree().join(".venv/bin").join(name);
        let ran = std::process::Command::new("sh").arg(&script).args(["x y", "z"]).output().unwrap();
        let expected = format!("{} {isolated} ['x y', 'z'] 1\n", pair.new_tree().join(".venv/bin/python").display());
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{name}: {ran:?}");
    }
}

#[test]
fn modes_and_times_of_directories_stay() {
    use std::os::unix::fs::PermissionsExt;
    let pair = Pair::new();
    pair.file("bin/x", "#!{old}/x\n");
    let (folder, script) = (pair.new_tree().join("bin"), pair.new_tree().join("bin/x"));
    fs_err::set_permissions(&script, PermissionsExt::from_mode(0o754)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    std::fs::OpenOptions::new().read(true).open(&folder).unwrap().set_modified(time).unwrap();
    assert_eq!(pair.fixed().len(), 1);
    assert_eq!(fs_err::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o754);
    assert_eq!(fs_err::metadata(&folder).unwrap().modified().unwrap(), time);
}

#[test]
#[cfg(target_os = "linux")]
fn access_control_lists_stay() {
    use calve_testkit::Tree;
    if !calve_testkit::require_program("setfacl") {
        return;
    }
    let pair = Pair::new();
    pair.file("bin/x", "#!{old}/x\n").file("bin/y", "#!{old}/y\n");
    let tree = Tree::new(pair.new_tree()).mode("bin/x", 0o700).acl("bin/x", "u:1001:rx").mode("bin/y", 0o750);
    let tree = tree.acl("bin", "d:u:1002:rwx");
    let acls = || {
        let mut getfacl = std::process::Command::new("getfacl");
        String::from_utf8(getfacl.args(["-cnE", "bin/x", "bin/y"]).current_dir(tree.path()).output().unwrap().stdout)
    };
    let before = acls();
    assert_eq!(pair.fixed().len(), 2);
    assert_eq!(acls(), before);
}

#[test]
fn a_longer_name_is_another_name() {
    let pair = Pair::new();
    for (number, text) in
        ["{old}-2/bin/x", "{old}2/x", "/backup{old}/x", "{old}.bak", "{new}/bin/x", "{old}_/x", "x{old}"]
            .iter()
            .enumerate()
    {
        pair.file(&format!("bin/{number}"), &format!("#!{text}\n"));
    }
    assert_eq!(outline(&pair.fixed()), []);
    for (number, text) in
        ["-I{old}/include", "A={old}:{new}:{old}", "file://{old}/x", "({old})", "{old}"].iter().enumerate()
    {
        pair.file(&format!("bin/{number}"), &format!("#!/bin/sh\n{text}\n"));
    }
    assert_eq!(pair.fixed().len(), 5);
    pair.has("bin/0", "#!/bin/sh\n-I{new}/include\n");
    pair.has("bin/1", "#!/bin/sh\nA={new}:{new}:{new}\n");
}

#[test]
fn one_tree_may_be_inside_the_other() {
    let pair = Pair::at("main", "main/.worktrees/b");
    for tree in [pair.new_tree(), pair.old()] {
        calve_testkit::Tree::new(tree)
            .file("bin/x", pair.spelled("#!/bin/sh\n{old}/a {new}/b {old}/.worktrees/bb\n").as_bytes());
    }
    assert_eq!(
        outline(&pair.audited(&super::fixing()).findings),
        [(ReferenceKind::Shebang, "bin/x", Action::Repaired)]
    );
    pair.has("bin/x", "#!/bin/sh\n{new}/a {new}/b {new}/.worktrees/bb\n");
    assert_eq!(outline(&pair.audited(&super::fixing()).findings), []);
}

#[test]
fn a_path_with_spaces_is_found_as_it_is_written() {
    let pair = Pair::at("my main", "main.b");
    let url = pair.old().display().to_string().replace(' ', "%20");
    pair.file("a-1.dist-info/direct_url.json", &format!("{{\"url\":\"file://{url}\"}}"));
    assert_eq!(pair.fixed().len(), 1);
    pair.has("a-1.dist-info/direct_url.json", "{\"url\":\"file://{new}\"}");
}

#[test]
fn hashes_of_changed_files_are_left_out_of_the_record() {
    let pair = Pair::new();
    let site = ".venv/lib/python3/site-packages";
    pair.file(&format!("{site}/a.pth"), "{old}/src\n").file(&format!("{site}/b.py"), "b\n");
    pair.file(".venv/bin/a", "#!{old}/.venv/bin/python\n");
    let record = "a.pth,sha256=x,9\nb.py,sha256=y,2\n../../../bin/a,sha256=z,9\na-1.dist-info/RECORD,,\n";
    pair.file(&format!("{site}/a-1.dist-info/RECORD"), record)
        .file(&format!("{site}/b-1.dist-info/RECORD"), "b.py,sha256=y,2\n");
    let found = pair.fixed();
    assert_eq!(found.iter().filter(|found| found.kind == ReferenceKind::DistInfo).count(), 1, "{found:?}");
    pair.has(
        &format!("{site}/a-1.dist-info/RECORD"),
        "a.pth,,\nb.py,sha256=y,2\n../../../bin/a,,\na-1.dist-info/RECORD,,\n",
    );
    pair.has(&format!("{site}/b-1.dist-info/RECORD"), "b.py,sha256=y,2\n");
}

#[test]
fn what_was_compiled_of_a_finder_goes() {
    let pair = Pair::new();
    pair.file("site-packages/__editable___a_finder.py", "M = '{old}'");
    pair.file("site-packages/__pycache__/__editable___a_finder.cpython-311.pyc", "compiled");
    pair.file("site-packages/__pycache__/b.cpython-311.pyc", "compiled");
    assert_eq!(pair.fixed().len(), 1);
    assert!(!pair.new_tree().join("site-packages/__pycache__/__editable___a_finder.cpython-311.pyc").exists());
    assert!(pair.new_tree().join("site-packages/__pycache__/b.cpython-311.pyc").exists());
}

#[test]
fn caches_that_name_the_old_tree_are_dropped() {
    let pair = Pair::new();
    pair.file(".next/cache/webpack/client/0.pack.gz", "packed").file(".next/cache/images/a", "image");
    pair.file("node_modules/.cache/babel/x/y.json", "\0{old}/src/a.js\0").file("node_modules/.cache/terser/x", "min");
    pair.file("web/node_modules/.vite/deps/_metadata.json", "{\"root\":\"{old}/web\"}")
        .file(".eslintcache", "[\"{old}/a.js\"]");
    let found = pair.fixed();
    let dropped = ["node_modules/.cache/babel", "web/node_modules/.vite"];
    let mut expected = vec![".eslintcache", ".next/cache/webpack"];
    expected.extend(dropped);
    assert_eq!(
        outline(&found),
        expected.iter().map(|path| (ReferenceKind::WebCache, *path, Action::Dropped)).collect::<Vec<_>>()
    );
    for path in expected {
        assert!(!pair.new_tree().join(path).exists(), "{path}");
    }
    assert!(
        pair.new_tree().join("node_modules/.cache/terser/x").exists()
            && pair.new_tree().join(".next/cache/images/a").exists()
    );
}

#[test]
fn copied_git_pointers_go_and_own_ones_stay() {
    let pair = Pair::new();
    pair.file("nested/.git", "gitdir: {old}/.git/worktrees/nested\n").file("nested/file", "kept");
    pair.file("sub/.git", "gitdir: ../.git/modules/sub\n");
    pair.file("elsewhere/.git", "gitdir: /somewhere/else/.git\n");
    pair.file("own/.git/HEAD", "ref: refs/heads/main\n").file("own/bin/.git/x", "");
    pair.file("borrows/.git/objects/info/alternates", "{old}/.git/objects\n");
    let found = pair.fixed();
    let expected = [
        (ReferenceKind::GitPointer, "borrows/.git/objects/info/alternates", Action::Reported),
        (ReferenceKind::GitPointer, "nested/.git", Action::Dropped),
        (ReferenceKind::GitPointer, "sub/.git", Action::Dropped),
    ];
    assert_eq!(outline(&found), expected);
    assert!(pair.new_tree().join("nested/file").exists() && !pair.new_tree().join("nested/.git").exists());
    assert!(pair.new_tree().join("elsewhere/.git").exists());
}
