//! What a release consists of, made from this build: archive, Debian package, formula, checksums, and the installer.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use calve_testkit::{require_program, skip, write_program};

use crate::manual::commands_below;
use crate::program::PROGRAM;
use crate::spot::{Spot, names};

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// `dist` in it is a release's directory, as `scripts/release/dist` makes one, without a Debian package; `None` is a skip.
#[track_caller]
fn release() -> Option<Spot> {
    // The licences of the crates are found with it.
    if !Command::new("cargo").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("this user has no cargo");
        return None;
    }
    let programs = ["python3", "curl", "dpkg-deb"];
    if !programs.iter().all(|program| require_program(program)) {
        return None;
    }
    let spot = Spot::anywhere();
    fs_err::create_dir(spot.join("dist")).unwrap();
    // The program of this build would take long to compress.
    let small = spot.join("calve");
    write_program(&small, format!("#!/bin/sh\nexec '{PROGRAM}' \"$@\"\n"));
    succeeds(python("archive.py").arg(target()).arg(small).arg(spot.join("dist")));
    succeeds(python("release.py").arg(spot.join("dist")));
    Some(spot)
}

/// The same with a Debian package.
#[track_caller]
fn whole_release() -> Option<Spot> {
    let spot = release()?;
    succeeds(python("debian.py").arg(target()).arg(spot.join("calve")).arg(spot.join("dist")));
    succeeds(python("release.py").arg(spot.join("dist")));
    Some(spot)
}

fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    // Nothing is written beside the sources.
    command.arg(repository().join("packaging").join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("CALVE_REPOSITORY", "https://releases.invalid/somebody/calve").env_remove("LD_LIBRARY_PATH");
    command
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A release's directory, served on loopback.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn new(dir: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(dir);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1).unwrap();
        Self { url: format!("http://127.0.0.1:{port}"), process }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the installer of a release, with a home and a directory for temporary files in `spot`.
fn install(spot: &Spot, url: Option<&str>, args: &[&str]) -> Output {
    fs_err::create_dir_all(spot.join("tmp")).unwrap();
    let mut command = Command::new("sh");
    command.arg(spot.join("dist/install.sh")).args(args).env("HOME", spot).env("TMPDIR", spot.join("tmp"));
    command.env_remove("CALVE_INSTALL_DIR").env_remove("CALVE_DOWNLOAD_URL").env_remove("LD_LIBRARY_PATH");
    if let Some(url) = url {
        command.env("CALVE_DOWNLOAD_URL", url);
    }
    let output = command.output().unwrap();
    assert!(names(spot.join("tmp")).is_empty(), "left behind: {:?}", names(spot.join("tmp")));
    output
}

#[track_caller]
fn refused(output: &Output, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: ") && stderr.contains("hint: ") && stderr.contains(words), "{words}: {stderr}");
}

#[test]
fn the_installer_installs_for_this_user_and_nothing_that_it_cannot_trust() {
    let Some(spot) = release() else { return };
    let server = Server::new(&spot.join("dist"));
    installs_again_over_it(&spot, &server);
    fs_err::remove_dir_all(spot.join(".local")).unwrap();
    installs_nothing_that_it_cannot_trust(&spot, &server);
}

fn installs_again_over_it(spot: &Spot, server: &Server) {
    for _ in 0..2 {
        let output = install(spot, Some(&server.url), &[]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
        assert!(stdout.contains(&format!("({})", target())) && stdout.contains("not on your PATH"), "{stdout}");
        assert_eq!(names(spot.join(".local/bin")), ["calve"]);
    }
    let version = succeeds(Command::new(spot.join(".local/bin/calve")).arg("--version"));
    assert_eq!(version.trim(), format!("calve {}", env!("CARGO_PKG_VERSION")));
    let help = install(spot, None, &["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("CALVE_INSTALL_DIR"));
}

fn installs_nothing_that_it_cannot_trust(spot: &Spot, server: &Server) {
    refused(&install(spot, Some(&server.url), &["--target", "x86_64-unknown-beos"]), "x86_64-unknown-beos");
    refused(&install(spot, Some(&format!("{}/nowhere", server.url)), &[]), "/nowhere/SHA256SUMS");
    refused(&install(spot, Some(&server.url), &["--colour"]), "`--colour` is no option");
    refused(&install(spot, Some(&server.url), &["--version"]), "--version needs a value");
    refused(&install(spot, None, &[]), "made without an address");
    let archive = spot.join("dist").join(format!("calve-{}.tar.gz", target()));
    let mut bytes = fs_err::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(&archive, bytes).unwrap();
    refused(&install(spot, Some(&server.url), &[]), "checksum");
    fs_err::remove_file(&archive).unwrap();
    refused(&install(spot, Some(&server.url), &[]), "download");
    assert!(!spot.join(".local").exists());
}

#[test]
fn the_packages_have_everything_and_the_formula_names_them() {
    if !require_program("ruby") {
        return;
    }
    // Made twice: the same build must give the same bytes.
    let (Some(spot), Some(again)) = (whole_release(), whole_release()) else { return };
    let dist = spot.join("dist");
    for name in names(&dist) {
        let [one, other] = [&spot, &again].map(|spot| fs_err::read(spot.join("dist").join(&name)).unwrap());
        assert!(one == other, "{name} differs");
    }
    let archive = format!("calve-{}.tar.gz", target());
    let listed = succeeds(Command::new("tar").arg("-tzf").arg(dist.join(&archive)));
    let deb = names(&dist).into_iter().find(|name| name.ends_with(".deb")).unwrap();
    let installed = succeeds(Command::new("dpkg-deb").arg("--contents").arg(dist.join(&deb)));
    for name in ["calve", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt", "README.md", "CHANGELOG.md"] {
        assert!(listed.lines().any(|line| line == format!("calve-{}/{name}", target())), "{name}: {listed}");
    }
    for name in ["completions/_calve", "completions/calve.bash", "completions/calve.fish"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    for command in commands_below(&[]) {
        assert!(listed.contains(&format!("man/calve-{command}.1\n")), "{command}: {listed}");
        assert!(installed.contains(&format!("./usr/share/man/man1/calve-{command}.1.gz\n")), "{command}: {installed}");
    }
    succeeds(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&dist));
    let sums = fs_err::read_to_string(dist.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), names(&dist).len() - 1);
    let digest = sums.lines().find_map(|line| line.strip_suffix(&format!("  {archive}"))).unwrap();
    succeeds(Command::new("ruby").arg("-c").arg(dist.join("calve.rb")));
    let formula = fs_err::read_to_string(dist.join("calve.rb")).unwrap();
    let url = format!("/somebody/calve/releases/download/v{}/{archive}", env!("CARGO_PKG_VERSION"));
    assert!(formula.contains(digest) && formula.contains(&url), "{formula}");
    // Of what there is no archive, there is no block.
    assert_eq!((formula.matches("url \"").count(), formula.matches("#if").count()), (1, 0), "{formula}");
}

#[test]
fn the_scripts_are_sound() {
    if !require_program("shellcheck") {
        return;
    }
    for script in [
        "packaging/install.sh",
        "scripts/release/dist",
        "scripts/release/check-dist",
        "scripts/release/packages",
        "scripts/test",
        "scripts/long-tests",
        "scripts/steps/packages",
        "scripts/release/check-packages",
        "scripts/steps/use-packages",
        "scripts/install/deps",
        "scripts/demo",
        "scripts/release/perl-distribution",
    ] {
        succeeds(Command::new("shellcheck").args(["-x", script]).current_dir(repository()));
    }
    succeeds(Command::new("sh").args(["-n", "packaging/install.sh"]).current_dir(repository()));
}

#[test]
fn the_packages_have_the_program_s_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("node/package.json", format!("\"version\": \"{version}\"")),
        ("node/native/Cargo.toml", format!("version = \"{version}\"")),
        ("python/Cargo.toml", format!("version = \"{version}\"")),
        ("python/pyproject.toml", format!("version = \"{version}\"")),
        ("perl/lib/Test/Calve.pm", format!("our $VERSION = '{version}';")),
        ("perl/lib/App/Prove/Plugin/Calve.pm", format!("our $VERSION = '{version}';")),
        ("perl/lib/App/Prove/Plugin/Calve/Harness.pm", format!("our $VERSION = '{version}';")),
        ("go/calvetest/calvetest.go", format!("const Version = \"{version}\"")),
    ] {
        let text = fs_err::read_to_string(repository().join(file)).unwrap();
        assert!(text.lines().any(|one| one.trim().trim_end_matches(',') == line), "{file} lacks {line}");
    }
}
