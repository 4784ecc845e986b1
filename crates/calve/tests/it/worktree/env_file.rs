//! `calve worktree add --env-file`: the ports where frameworks look for them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use calve_testkit::{BindMount, Tree, require_program, require_root, rounds};

use super::ports::{number, with_ports};
use super::repo::{Repo, acl, git, is_clean};

fn read(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(path.as_ref()).unwrap()
}

/// The last line of the file.
fn line(worktree: &Path, name: &str) -> String {
    read(worktree.join(name)).lines().last().unwrap().to_owned()
}

impl Repo {
    fn with_file(&self, branch: &str, file: &str) -> (PathBuf, String) {
        let ran = self.adding(branch).args(["--env-file", file]).succeeds();
        (PathBuf::from(ran.stdout.trim_end()), ran.stderr)
    }
}

#[test]
fn the_ports_are_written_and_follow_into_every_worktree_made_from_there() {
    let repo = with_ports(&format!("web = {}", number(140)));
    let (one, said) = repo.with_file("one", "./.env.local");
    assert!(said.contains("wrote the variables to `.env.local`\n"), "{said}");
    assert_eq!(line(&one, ".env.local"), format!("WEB_PORT={}", number(141)));
    is_clean(&one);
    // Made from there it would have the other one's port. It is ignored, so it is carried.
    repo.within(&one, &["worktree", "add", "two"]).succeeds().says(&["wrote the variables to `.env.local`"]);
    assert_eq!(line(&repo.spot.join("proj.two"), ".env.local"), format!("WEB_PORT={}", number(142)));
    let printed = repo.within(&repo.path, &["env", "--format", "dotenv"]).succeeds().stdout;
    repo.write(".env.main", &printed);
    assert_eq!(line(&repo.added("three"), ".env.main"), format!("WEB_PORT={}", number(143)));
    // One for mise is followed too, and written for it.
    let printed = repo.within(&one, &["env", "--format", "mise"]).succeeds().stdout;
    fs_err::write(one.join(".env.toml"), printed).unwrap();
    let words = ["worktree", "add", "mise", "--json"];
    let document = repo.within(&one, &words).succeeds().json();
    assert_eq!(document["env_files"].as_array().unwrap().len(), 2, "{document}");
    let mise = repo.spot.join("proj.mise");
    let port = line(&mise, ".env.local").replace("WEB_PORT=", "");
    assert_eq!(line(&mise, ".env.toml"), format!("WEB_PORT = \"{port}\""));
    let document = repo.adding("four").args(["--json", "--env-file", ".env.main"]).succeeds().json();
    let expected = serde_json::json!([{ "path": ".env.main", "outcome": "written", "ignored": true }]);
    assert_eq!(document["env_files"], expected);
}

#[test]
fn a_file_that_is_written_anew_stays_open_to_whom_it_was() {
    if !require_program("setfacl") {
        return;
    }
    let repo = with_ports(&format!("web = {}", number(170)));
    let (one, _) = repo.with_file("one", ".env.local");
    for (mode, entries) in [(0o600, "u:1001:r"), (0o640, "u:1001:---")] {
        let tree = Tree::new(&one).mode(".env.local", mode).acl(".env.local", entries);
        let before = acl(tree.path().join(".env.local"));
        let name = format!("with-{mode:o}");
        repo.within(&one, &["worktree", "add", &name]).succeeds().says(&["wrote the variables to `.env.local`"]);
        assert_eq!(acl(repo.spot.join(format!("proj.{name}/.env.local"))), before);
    }
}

#[test]
fn what_others_made_or_edited_is_left_alone() {
    let repo = with_ports(&format!("web = {}", number(160)));
    repo.write(".env.local", "KEY=1\n");
    let (one, said) = repo.with_file("one", ".env.local");
    assert!(said.contains("Calve did not make `.env.local`"), "{said}");
    assert_eq!(read(one.join(".env.local")), "KEY=1\n");
    let (two, _) = repo.with_file("two", ".env.ports");
    let edited = read(two.join(".env.ports")) + "KEY=2\n";
    fs_err::write(two.join(".env.ports"), &edited).unwrap();
    repo.within(&two, &["worktree", "add", "three", "--env-file", ".env.ports"]).succeeds().says(&["it was edited"]);
    assert_eq!(read(repo.spot.join("proj.three/.env.ports")), edited);
    // Nor is anything written through a link, to a directory, or to what cannot be read to its end.
    let outside = repo.spot.join("outside");
    fs_err::write(&outside, "outside\n").unwrap();
    fs_err::os::unix::fs::symlink(&outside, repo.join(".env.link")).unwrap();
    fs_err::create_dir(repo.join(".env.dir")).unwrap();
    repo.write(".env.dir/file", "");
    for name in [".env.link", ".env.dir"] {
        let (_, said) = repo.with_file(&format!("with{name}"), name);
        assert!(said.contains("was left alone"), "{said}");
    }
    assert_eq!(read(&outside), "outside\n");
}

#[test]
fn what_git_tracks_is_never_changed_and_what_it_does_not_ignore_is_told() {
    let repo = with_ports(&format!("web = {}", number(180)));
    repo.write("ports.env", "TRACKED=1\n");
    repo.write("linked", "");
    fs_err::remove_file(repo.join("linked")).unwrap();
    fs_err::os::unix::fs::symlink("src", repo.join("linked")).unwrap();
    repo.commit("tracked");
    let (one, said) = repo.with_file("one", "ports.env");
    assert!(said.contains("git tracks `ports.env`"), "{said}");
    is_clean(&one);
    let (two, said) = repo.with_file("two", "src/ports.txt");
    assert!(said.contains("add it to .gitignore"), "{said}");
    assert_eq!(git(&two, ["status", "--porcelain"]), "?? src/ports.txt\n");
    // As long as it is Calve's alone, it holds up no removal.
    let remove = |name: &str| repo.within(&repo.path, &["worktree", "remove", name]);
    let (edited, _) = repo.with_file("edited", "ports.txt");
    fs_err::write(edited.join("ports.txt"), read(edited.join("ports.txt")) + "KEY=1\n").unwrap();
    remove("edited").fails(1).says(&["uncommitted changes"]);
    fs_err::write(two.join("src/new"), "").unwrap();
    remove("two").fails(1).says(&["uncommitted changes: `src/new`\n"]);
    fs_err::remove_file(two.join("src/new")).unwrap();
    remove("two").succeeds();
    assert!(!two.exists());
    // Not even in a directory that a link leads to, or that is not there.
    for (branch, file) in [("three", "linked/ports.txt"), ("four", "none/ports.txt")] {
        repo.adding(branch).args(["--env-file", file]).fails(3).says(&["no directory for", file]).hints();
    }
    assert!(!repo.spot.join("proj.three").exists());
}

#[test]
fn a_file_elsewhere_is_a_usage_error_before_anything_is_made() {
    let repo = with_ports(&format!("web = {}", number(200)));
    for file in ["/tmp/x", "../x", "a/../../x", "", ".", "a/", ".git", "a/.GIT/config"] {
        repo.adding("one").args(["--env-file", file]).fails(2).says(&["relative to its root"]);
    }
    assert!(!repo.spot.join("proj.one").exists());
    let none = Repo::anywhere();
    let (one, said) = none.with_file("one", ".env.local");
    assert!(said.contains("wrote nothing, because the worktree has no ports"), "{said}");
    assert!(!one.join(".env.local").exists());
}

#[test]
fn a_file_of_the_donors_is_not_followed_where_git_would_show_it_or_its_directory_is_missing() {
    let repo = with_ports(&format!("web = {}", number(220)));
    let printed = repo.within(&repo.path, &["env", "--format", "dotenv"]).succeeds().stdout;
    repo.write(".gitignore", "node_modules/\n");
    repo.commit("no rules");
    repo.git(["branch", "bare"]);
    repo.write(".gitignore", "node_modules/\n.env.a\nconfig/.env.b\n");
    repo.write("config/settings", "");
    repo.commit("rules and a directory");
    repo.write(".env.a", &printed);
    repo.write("config/.env.b", &printed);
    let ran = repo
        .adding("bare")
        .succeeds()
        .says(&["left out `.env.a`: git does not", "left out `config/.env.b`: there is no directory for it"]);
    let bare = PathBuf::from(ran.stdout.trim_end());
    is_clean(&bare);
    assert!(!bare.join("config").exists() && !bare.join(".env.a").exists());
    let one = repo.added("one");
    for file in [".env.a", "config/.env.b"] {
        assert_eq!(line(&one, file), format!("WEB_PORT={}", number(222)));
    }
}

#[test]
fn a_file_that_the_configuration_names_is_written_where_git_ignores_it() {
    let repo = with_ports(&format!("web = {}\n[worktree]\nenv-file = \"./.env.local\"", number(280)));
    let one = repo.added("one");
    assert_eq!(line(&one, ".env.local"), format!("WEB_PORT={}", number(281)));
    is_clean(&one);
    // The option names another one. What the donor has is followed all the same.
    let document =
        repo.within(&one, &["worktree", "add", "two", "--env-file", ".env.mine", "--json"]).succeeds().json();
    let paths: Vec<_> = document["env_files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, [".env.mine", ".env.local"]);
    // As written by hand, behind a link, tracked, and where git would show it.
    repo.write(".env.local", "KEY=1\n");
    repo.adding("hand").succeeds().says(&["Calve did not make `.env.local`"]);
    let outside = repo.spot.join("outside");
    fs_err::write(&outside, "outside\n").unwrap();
    fs_err::remove_file(repo.join(".env.local")).unwrap();
    fs_err::os::unix::fs::symlink(&outside, repo.join(".env.local")).unwrap();
    repo.adding("link").succeeds().says(&["was left alone"]);
    assert_eq!(read(&outside), "outside\n");
    fs_err::remove_file(repo.join(".env.local")).unwrap();
    repo.write(".gitignore", "node_modules/\n/target/\n.env\n");
    repo.commit("shown");
    let shown = repo.added("shown");
    assert!(!shown.join(".env.local").exists());
    is_clean(&shown);
    // A path that leads elsewhere is a mistake in the file.
    repo.write(".calve.toml", "[worktree]\nenv-file = \"../x\"\n");
    repo.commit("elsewhere");
    repo.adding("elsewhere").fails(1).says(&["line 2, column 12", "relative to its root"]);
}

#[test]
fn a_carried_file_with_the_donors_values_is_named() {
    let repo = with_ports(&format!("web = {}\napi = {}", number(300), number(310)));
    repo.write(".env", &format!("SECRET=1\nexport WEB_PORT=\"{}\"\nAPI_PORT=1 # one\n", number(300)));
    repo.write("packages/a/.env.test", "WEB_PORT=1\n");
    // This one says what the new worktree's says, whatever it is.
    repo.write(".env.none", "PATH=/bin\n#WEB_PORT=1\n");
    let ran = repo.adding("one").succeeds();
    let read = "programs that read it do not use this worktree's; write `.env.local`, or start them with `calve exec`";
    let ran = ran.says(&[
        &format!("`.env` sets API_PORT and WEB_PORT: {read}"),
        &format!("`packages/a/.env.test` sets WEB_PORT: {read}"),
    ]);
    assert!(!ran.stderr.contains(".env.none") && !ran.stderr.contains("SECRET"), "{}", ran.stderr);
    let document = repo.adding("two").args(["--json", "--env-file", ".env.local"]).succeeds();
    let document = document.says(&[
        "`.env` sets API_PORT and WEB_PORT too: start programs that do not read `.env.local` with `calve exec`",
    ]);
    let expected = serde_json::json!([
        { "path": ".env", "variables": ["API_PORT", "WEB_PORT"] },
        { "path": "packages/a/.env.test", "variables": ["WEB_PORT"] },
    ]);
    assert_eq!(document.json()["other_values"], expected);
    // Where the values are the same, there is nothing to say.
    let [web, api] = [300, 310].map(|at| number(at + 3));
    repo.write(".env", &format!("WEB_PORT={web}\nAPI_PORT='{api}'\n"));
    fs_err::remove_dir_all(repo.join("packages")).unwrap();
    let ran = repo.adding("three").succeeds();
    assert!(!ran.stderr.contains("sets"), "{}", ran.stderr);
}

#[test]
fn commands_run_while_others_write_the_file_and_where_it_cannot_be_written() {
    let repo = with_ports(&format!("web = {}\n[worktree]\nenv-file = 'settings/.env.local'", number(320)));
    repo.write("settings/tracked", "");
    repo.commit("settings");
    let one = repo.added("one");
    let (settings, written) = (one.join("settings"), one.join("settings/.env.local"));
    let exec = |script: &str| repo.within(&one, &["exec", "sh", "-c", script]);
    let text = read(&written);
    for _ in 0..rounds(5) {
        fs_err::remove_file(&written).unwrap();
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| exec("true").succeeds())));
        });
        assert_eq!(read(&written), text);
    }
    if !require_root("mounting") {
        return;
    }
    fs_err::remove_file(&written).unwrap();
    let mounted = BindMount::new(&settings, &settings);
    let remounted = Command::new("mount").args(["-o", "remount,ro,bind"]).arg(mounted.path()).status().unwrap();
    assert!(remounted.success());
    let ran = exec("echo $WEB_PORT").succeeds().says(&["settings/.env.local`: Read-only file system"]);
    assert_eq!(ran.stdout, format!("{}\n", number(321)));
}
