//! `calve bench copy`: what it measures and reports, what it leaves (nothing), and what it does with everything that goes wrong.

mod accidents;
mod only;
mod report;
mod trouble;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use calve_testkit::write_program;
use serde_json::Value;

use crate::program::{Calve, calve};

fn bench() -> Calve {
    calve(["bench", "copy"])
}

/// `calve bench copy --tree TREE --into INTO`
fn bench_of(tree: impl AsRef<Path>, into: impl AsRef<Path>) -> Calve {
    bench().arg("--tree").arg(tree.as_ref()).arg("--into").arg(into.as_ref())
}

/// Programs of other people, as the tests want them: the only ones that `calve bench` finds, beside those of the system's
/// administrators.
pub(crate) struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    pub(crate) fn none() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// The program of that name that the machine really has.
    pub(crate) fn real(self, name: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file());
        fs_err::os::unix::fs::symlink(found.unwrap(), self.folder.path().join(name)).unwrap();
        self
    }

    /// A shell script. `$1` is the source and `$2` the destination, when it is called `cpz`. It tells its version as others do.
    pub(crate) fn script(self, name: &str, body: &str) -> Self {
        let version = format!("[ \"$1\" = --version ] && {{ echo {name} 7.8; exit; }}");
        self.plain(name, &format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{version}\n{body}\n"))
    }

    /// A script as it is.
    fn plain(self, name: &str, text: &str) -> Self {
        let path = self.folder.path().join(name);
        write_program(path, text);
        self
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }
}

/// The entry of a list with that `command`.
#[track_caller]
pub(crate) fn of_command<'a>(list: &'a Value, command: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|one| one["command"] == command);
    found.unwrap_or_else(|| panic!("no `{command}` in {list:#}"))
}

pub(crate) fn commands(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["command"].as_str().unwrap()).collect()
}

#[track_caller]
fn has_warning(report: &Value, code: &str) -> String {
    let found = report["warnings"].as_array().unwrap().iter().find(|warning| warning["code"] == code);
    let found = found.unwrap_or_else(|| panic!("no warning `{code}` in {:#}", report["warnings"]));
    found["message"].as_str().unwrap().to_owned()
}
