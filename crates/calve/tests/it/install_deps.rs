//! The scripts that install packages: they wait for a package manager that is busy, install what their purpose needs, and name the rest.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use calve_testkit::{require_program, require_root, write_program};
use rustix::fs::FlockOperation;

use crate::packaging::repository;
use crate::spot::Spot;

/// An apt and a dpkg of their own below a directory. Their only source has one package, `calve-test`.
fn private_apt() -> Option<Spot> {
    let programs = ["apt-get", "dpkg-deb", "dpkg-scanpackages"];
    if !require_root("installing packages") || !programs.iter().all(|program| require_program(program)) {
        return None;
    }
    let spot = Spot::anywhere();
    let root = spot.to_str().unwrap();
    let control = "Package: calve-test\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n\
                   Description: nothing\n";
    let conf = format!(
        "Dir \"{root}\";\n\
         Dir::State::status \"{root}/var/lib/dpkg/status\";\n\
         Dir::Bin::methods \"/usr/lib/apt/methods\";\n\
         Dir::Bin::dpkg \"/usr/bin/dpkg\";\n\
         DPkg::Options {{ \"--root={root}\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         #clear DPkg::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n"
    );
    let sources = format!("deb [trusted=yes] file:{root}/source ./\n");
    let folders = ["lib/apt/lists/partial", "cache/apt/archives/partial", "lib/dpkg/info", "lib/dpkg/updates"];
    let tree = spot.tree("").file("package/DEBIAN/control", control).dir("source").dir("var/log/apt");
    let tree = folders.iter().fold(tree, |tree, folder| tree.dir(format!("var/{folder}")));
    let tree = tree.dir("etc/apt/preferences.d").dir("etc/apt/trusted.gpg.d").file("etc/apt/sources.list", sources);
    tree.file("var/lib/dpkg/status", "").file("apt.conf", conf);
    let built =
        Command::new("dpkg-deb").args(["--build", "package", "source/calve-test.deb"]).current_dir(&*spot).output();
    assert!(built.unwrap().status.success());
    let list = Command::new("dpkg-scanpackages").arg(".").current_dir(spot.join("source")).output().unwrap();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    fs_err::write(spot.join("source/Packages"), list.stdout).unwrap();
    Some(spot)
}

/// `apt_install PACKAGE` of `scripts/shared/apt`.
fn apt_install(apt: &Spot, package: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euc", "source scripts/shared/apt; apt_install \"$1\"", "bash", package]).current_dir(repository());
    command.env("APT_CONFIG", apt.join("apt.conf")).env_remove("LD_LIBRARY_PATH");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn is_installed(apt: &Spot) -> bool {
    fs_err::read_to_string(apt.join("var/lib/dpkg/status")).unwrap().contains("Package: calve-test")
}

#[test]
fn a_package_manager_that_is_busy_is_waited_for() {
    for lock in ["apt/lists/lock", "../cache/apt/archives/lock", "dpkg/lock-frontend", "dpkg/lock"] {
        let Some(apt) = private_apt() else { return };
        let held = fs_err::File::create(apt.join("var/lib").join(lock)).unwrap();
        rustix::fs::fcntl_lock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let mut running = apt_install(&apt, "calve-test").spawn().unwrap();
        let mut said = BufReader::new(running.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("another process is using the package manager; waiting") {
            assert!(said.read_line(&mut lines).unwrap() > 0, "{lock}: it did not wait: {lines}");
        }
        assert!(!is_installed(&apt), "{lock}");
        drop(held);
        said.read_to_string(&mut lines).unwrap();
        assert!(running.wait().unwrap().success(), "{lock}: {lines}");
        assert!(is_installed(&apt), "{lock}: {lines}");
        assert_eq!(lines.matches("waiting").count(), 1, "{lines}");
    }
}

#[test]
fn what_waiting_cannot_mend_fails_at_once() {
    let Some(apt) = private_apt() else { return };
    let output = apt_install(&apt, "no-such-package").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Unable to locate package no-such-package"), "{said}");
    assert!(!said.contains("waiting"), "{said}");
}

/// `scripts/install/deps PURPOSE` where nothing is installed but these, which fail, and nothing can be: it lists what it would install.
fn wanted_for(purpose: &str, failing: &[&str]) -> Output {
    let few = Spot::anywhere();
    for program in ["bash", "dirname", "id"] {
        fs_err::os::unix::fs::symlink(Path::new("/usr/bin").join(program), few.join(program)).unwrap();
    }
    failing.iter().for_each(|program| write_program(few.join(program), "#!/bin/bash\nexit 1\n"));
    let script = repository().join("scripts/install/deps");
    Command::new(script).arg(purpose).env("PATH", &*few).env_remove("LD_LIBRARY_PATH").output().unwrap()
}

/// As without a network: each is named, and all others are tried.
#[test]
fn what_no_registry_sends_is_named_and_ends_nothing() {
    if !require_root("installing packages") {
        return;
    }
    let output = wanted_for("test", &["npm", "python3"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for program in ["pnpm", "yarn", "bun", "yarn-berry", "uv", "poetry", "pdm", "pipenv"] {
        assert!(said.contains(&format!("installing {program}\nnot installed: {program} (")), "{program}: {said}");
    }
    let output = wanted_for("demo", &["apt-get"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("not installed, because apt-get failed; this is skipped:\n"), "{said}");
    assert!(said.contains("  npm (npm): "), "{said}");
}

#[test]
fn what_is_not_tested_is_listed_and_fails_in_ci_unless_no_such_machine_has_it() {
    let spot = Spot::anywhere();
    let log = spot.join("log");
    for (line, ci, is_allowed) in
        [("skip one", "", true), ("skip 'one: two'", "true", false), ("not_here three", "true", true)]
    {
        let mut command = Command::new("bash");
        command.args(["-euc", &format!("source scripts/shared/skip; {line}")]).current_dir(repository());
        let output = command.env("CI", ci).env("CALVE_SKIP_LOG", &log).output().unwrap();
        assert_eq!(output.status.success(), is_allowed, "{line}: {output:?}");
    }
    let listed = fs_err::read_to_string(log).unwrap();
    assert_eq!(listed, "skipped: one\nskipped: one: two\nnot here: three\n");
}

#[test]
fn the_demo_installs_only_what_it_needs() {
    let output = wanted_for("demo", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // Those of /usr/sbin may be there.
    let needed = ["  mkfs.btrfs (btrfs-progs): ", "  mkfs.xfs (xfsprogs): ", "  npm (npm): ", "  python3 (python3): "];
    let (_, list) = said.split_once("this is skipped:\n").unwrap();
    for line in list.lines() {
        assert!(needed.iter().any(|start| line.starts_with(start)), "{line}");
    }
    assert!(needed[2..].iter().all(|start| list.contains(start)), "{list}");
    // What the tests want beyond packages cannot be had with these few programs.
    let output = wanted_for("test", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    for program in ["npm (npm)", "zsh (zsh)", "psql (postgresql)"] {
        assert!(said.contains(program), "{program}: {said}");
    }
    for unknown in ["", "all"] {
        let output = wanted_for(unknown, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: scripts/install/deps demo|test|bench"));
    }
}
