//! Makes the situation of a hint, and does what the hint says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use calve_testkit::few_rounds;

use crate::program::PROGRAM;
use crate::spot::Spot;

/// A hint, with a situation that shows it. All lines are the shell's, in a repository `r` of one commit.
pub(super) struct Case {
    pub(super) remedy: &'static str,
    setup: &'static str,
    /// What fails, with this hint.
    command: &'static str,
    /// The line, with `ID` for the first digits of a commit.
    hint: &'static str,
    /// What the hint says, which is in `HINT`. It succeeds.
    helps: &'static str,
}

pub(super) const fn case(
    remedy: &'static str,
    setup: &'static str,
    command: &'static str,
    hint: &'static str,
    helps: &'static str,
) -> Case {
    Case { remedy, setup, command, hint, helps }
}

const REPOSITORY: &str = "git init -q -b main r; cd r; echo one >file; git add file; git commit -qm first";

/// Makes all situations, and fails with each hint that is another one or does not help. With few rounds, what helps against several is
/// tried once.
pub(super) fn check(cases: &[Case]) {
    let mut tried = BTreeSet::new();
    let check = |case: &Case| Some((case.remedy, case.check(tried.insert(case.helps) || !few_rounds()).err()?));
    let wrong: Vec<_> = cases.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

impl Case {
    fn check(&self, tries_help: bool) -> Result<(), String> {
        let spot = Spot::anywhere();
        let prepared = shell(&spot, &format!("set -e; {REPOSITORY}; {}", self.setup), &spot, "");
        if !prepared.status.success() {
            return Err(format!("its situation cannot be made: {prepared:?}"));
        }
        let failed = shell(&repository(&spot), self.command, &spot, "");
        let said = String::from_utf8_lossy(&failed.stderr);
        let hint = said.lines().rev().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        if failed.status.success() || without_id(hint) != self.hint {
            return Err(format!("`{}` ended with {} and said {said}", self.command, failed.status));
        }
        if !tries_help {
            return Ok(());
        }
        let helped = shell(&repository(&spot), &format!("set -e; {}", self.helps), &spot, hint);
        if helped.status.success() { Ok(()) } else { Err(format!("`{}` does not help: {helped:?}", self.helps)) }
    }
}

/// The repository, unless the situation is that it was moved.
fn repository(spot: &Spot) -> PathBuf {
    Some(spot.join("r")).filter(|repository| repository.exists()).unwrap_or_else(|| spot.to_path_buf())
}

/// The hint with `ID` for the first digits of a commit.
fn without_id(hint: &str) -> String {
    let is_id = |word: &str| word.len() == 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = hint.split(|c: char| !c.is_alphanumeric()).find(|word| is_id(word));
    id.map_or_else(|| hint.to_owned(), |id| hint.replace(id, "ID"))
}

fn shell(directory: &Path, line: &str, spot: &Spot, hint: &str) -> Output {
    let folder = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(directory).env("PATH", path).env("HINT", hint);
    command.env("CALVE_HOME", spot.join("home")).env("GIT_EDITOR", "true").env_remove("LD_LIBRARY_PATH");
    // With it clones are for builds.
    command.env_remove("CI");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    command.output().unwrap()
}
