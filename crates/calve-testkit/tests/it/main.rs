//! Tests of the test kit: an oracle that cannot fail, or a volume that is not what it claims, would make every other
//! test worthless.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod fingerprint;
mod fuse;
mod fuzz;
mod inject;
mod oracle;
mod program;
mod trees;
mod user;
mod volume;

/// A directory on whatever file system the machine has, for tests that do not care.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A copy by a program that is known to keep everything.
fn cp_a(src: &std::path::Path, dst: &std::path::Path) {
    let mut command = std::process::Command::new("cp");
    let output = command.args(["-a", "--sparse=always", "-T"]).arg(src).arg(dst).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
