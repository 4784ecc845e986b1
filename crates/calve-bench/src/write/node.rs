//! The measured Node, and the npm package `calve` that it finds.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::report::Report;

pub(super) const NODE: &str = "node";

pub(super) struct Node {
    /// "Node v22.1.0", "Bun 1.2.0".
    version: String,
    /// The file of the npm package `calve` that `require` takes.
    pub(super) package: String,
    package_version: String,
}

/// Prints the versions and the package's file, looking from each directory given.
const ASK: &str = "\
const { createRequire } = require('module');
const path = require('path');
const places = [...process.argv.slice(1), path.join(path.dirname(process.execPath), '..', 'lib')];
let found = null;
for (const place of places) {
  try {
    const from = createRequire(path.join(place, 'from.js'));
    const file = from.resolve('calve');
    if (typeof from(file).writeFiles !== 'function') continue;
    found = { file, version: from('calve/package.json').version };
    break;
  } catch {}
}
const { node, bun } = process.versions;
console.log(JSON.stringify({ node, bun, found }));";

impl Node {
    pub(super) fn find() -> Result<Self, BenchError> {
        let mut command = Command::new(NODE);
        command.arg("-e").arg(ASK).args(places()).stdin(Stdio::null());
        let output = command.output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                BenchError::failed("`node` is not installed, or not in a directory of the PATH", Remedy::InstallNode)
            }
            _ => BenchError::usage(format!("`node` cannot be started: {error}"), Remedy::InstallNode),
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer: Option<Value> = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let Some(answer) = answer.filter(|answer| answer["node"].is_string()) else {
            return Err(BenchError::usage("`node` is not Node: it does not run JavaScript", Remedy::InstallNode));
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let version = match text(&answer["bun"]) {
            Some(bun) => format!("Bun {bun}"),
            None => format!("Node v{}", text(&answer["node"]).unwrap_or_default()),
        };
        if is_too_old(answer["node"].as_str().unwrap_or_default()) {
            return Err(BenchError::failed(format!("`node` is {version}, which is too old"), Remedy::InstallNode));
        }
        let found = &answer["found"];
        let Some(package) = text(&found["file"]) else {
            let text = "`node` does not find the npm package `calve` from here";
            return Err(BenchError::failed(text, Remedy::InstallNpmPackage));
        };
        let package_version = text(&found["version"]).unwrap_or_else(|| "unknown".into());
        Ok(Self { version, package, package_version })
    }

    pub(super) fn describe(&self, report: &mut Report) {
        let (calve, package) = (env!("CARGO_PKG_VERSION"), &self.package_version);
        report.circumstance("npm package calve", format!("{package}, with calve {calve}"));
        report.document.facts.npm_package = Some(package.clone());
        report.versions([("node".into(), self.version.clone()), ("calve".into(), calve.into())]);
        if package != calve {
            report.warn("other_version", format!("the npm package is {package}, and this program {calve}"));
        }
    }
}

/// Returns the places of packages: the starting script's, the current directory, and beside this program.
fn places() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_path_buf()));
    let script = std::env::var_os("CALVE_NPM_PACKAGE").map(PathBuf::from);
    [script, std::env::current_dir().ok(), own].into_iter().flatten().collect()
}

/// 18.17 is the first version that has everything the script uses.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) < (Some(18), Some(17))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_too_old("9.99.0") && is_too_old("18.9.1") && is_too_old("16.20.2") && is_too_old(""));
        assert!(!is_too_old("18.17.0") && !is_too_old("20.0.0") && !is_too_old("100.1.0"));
    }
}
