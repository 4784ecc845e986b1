use std::path::Path;

use calve_env::Environment;
use calve_git::environment::{WorktreeId, linked_entry};

use crate::failure::Failure;
use crate::host::Program;
use crate::output;

pub(crate) fn run() -> Result<(), Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let root = here.ancestors().find(|above| above.join(".git").exists());
    match root.and_then(segment) {
        Some(text) => output::result(&(text + "\n")),
        None => Ok(()),
    }
}

fn segment(root: &Path) -> Option<String> {
    let head = text_of(&linked_entry(root)?.join("HEAD"))?;
    let head = head.trim_end();
    let branch = head.strip_prefix("ref: refs/heads/").unwrap_or(head.get(..12)?);
    let mut words = vec![branch.to_owned()];
    words.extend(environment(root).unwrap_or_default());
    // Shells interpret some characters in a prompt.
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:+@ ".contains(c);
    Some(words.join(" ").chars().map(|c| if is_plain(c) { c } else { '?' }).collect())
}

/// Reads one of git's small files. Skips a FIFO, which would block the shell.
fn text_of(path: &Path) -> Option<String> {
    fs_err::metadata(path).ok().filter(|found| found.is_file() && found.len() < 1 << 16)?;
    fs_err::read_to_string(path).ok()
}

fn environment(root: &Path) -> Result<Vec<String>, Failure> {
    let environment = Environment::of_root(&Program, root)?;
    let ports = environment.held_ports()?.into_iter().map(|port| format!("{}:{}", port.name, port.number));
    let mut words: Vec<String> = ports.collect();
    if WorktreeId::read(root)?.is_some() {
        let services = environment.services()?.receipts()?;
        words.extend(services.iter().map(|service| format!("{}:{}", service.name, service.state)));
    }
    Ok(words)
}
