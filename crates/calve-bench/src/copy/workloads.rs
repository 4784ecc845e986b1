//! Ways to copy a tree here: Calve's, and those of other programs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_core::{ProbeReport, Refusal, Strategy};
use calve_receipt::bench::NotRun;

use crate::comparison::{missing, refused};
use crate::programs;
use crate::remedy::ProgramSource;
use crate::workload::{Group, Role, Workload};

/// A write to one of the trees never shows in the other.
pub(crate) const INDEPENDENT: Group = Group { name: Cow::Borrowed("independent copies"), note: "" };

pub(crate) const LINKED: Group = Group {
    name: Cow::Borrowed("hard links"),
    note: "Both trees have the same files, and a write to one shows in the other. They are compared with each other only.",
};

pub(crate) struct Sources {
    pub(crate) tree: PathBuf,
    /// An empty CALVE_HOME, for commands that take no spares.
    pub(crate) home: PathBuf,
    /// A copy of the tree for commands that hard-link its files: further names would change the tree for the others.
    pub(crate) to_link: PathBuf,
}

struct Peer {
    /// As typed, with `SRC` and `DST` for the places.
    command: &'static str,
    /// The strategy that must work there.
    needs: Option<Strategy>,
    source: ProgramSource,
}

/// GNU cp shares extents by default since coreutils 9.0.
const CP_NEVER: &str = "cp -a --reflink=never SRC DST";

pub(super) const SPARE: &str = "calve cp --strategy spare SRC DST";

const PACKAGE: ProgramSource = ProgramSource::PackageManager;

#[cfg(not(target_os = "macos"))]
const PEERS: &[Peer] = &[
    Peer { command: "cp -r SRC DST", needs: None, source: PACKAGE },
    Peer { command: "cp -a SRC DST", needs: None, source: PACKAGE },
    Peer { command: "cp -a --reflink=always SRC DST", needs: Some(Strategy::Reflink), source: PACKAGE },
    Peer { command: CP_NEVER, needs: Some(Strategy::Reflink), source: PACKAGE },
    Peer { command: "cp -al SRC DST", needs: Some(Strategy::Hardlink), source: PACKAGE },
    Peer { command: "rsync -a SRC/ DST", needs: None, source: PACKAGE },
    Peer { command: "rsync -a --link-dest=SRC SRC/ DST", needs: Some(Strategy::Hardlink), source: PACKAGE },
    Peer { command: "cpz SRC DST", needs: None, source: ProgramSource::Crate("cpz") },
    Peer { command: "xcp -r --no-progress SRC DST", needs: None, source: ProgramSource::Crate("xcp") },
    Peer {
        command: "btrfs subvolume snapshot SRC DST",
        needs: Some(Strategy::Snapshot),
        source: ProgramSource::BtrfsProgs,
    },
];

#[cfg(target_os = "macos")]
const PEERS: &[Peer] = &[
    Peer { command: "cp -R SRC DST", needs: None, source: PACKAGE },
    Peer { command: "cp -cR SRC DST", needs: Some(Strategy::Clonefile), source: PACKAGE },
    Peer { command: "rsync -a SRC/ DST", needs: None, source: PACKAGE },
    Peer { command: "rsync -a --link-dest=SRC SRC/ DST", needs: Some(Strategy::Hardlink), source: PACKAGE },
    Peer { command: "cpz SRC DST", needs: None, source: ProgramSource::Crate("cpz") },
    Peer { command: "xcp -r --no-progress SRC DST", needs: None, source: ProgramSource::Crate("xcp") },
];

pub(crate) fn programs() -> Vec<&'static str> {
    let mut names: Vec<&str> = PEERS.iter().map(|peer| program_of(peer.command)).collect();
    names.dedup();
    names
}

/// Returns every command that works in some place on this system, as typed.
pub(crate) fn known_commands() -> Vec<String> {
    let ours = calves(None).into_iter().map(|(command, _)| command);
    PEERS.iter().map(|peer| peer.command.to_owned()).chain(ours).chain([SPARE.to_owned()]).collect()
}

/// Returns the commands that hard-link the source's files.
pub(super) fn linking() -> impl Iterator<Item = String> {
    let peers = PEERS.iter().filter(|peer| peer.needs == Some(Strategy::Hardlink)).map(|peer| peer.command.to_owned());
    peers.chain([format!("calve cp --strategy {} SRC DST", Strategy::Hardlink)])
}

fn program_of(command: &'static str) -> &'static str {
    command.split(' ').next().unwrap_or(command)
}

pub(crate) fn choose(
    sources: &Sources,
    probe: &ProbeReport,
    calve: &Path,
    hint: fn(&calve_core::error::Remedy) -> String,
) -> (Vec<Workload>, Vec<NotRun>) {
    let (mut workloads, mut not_run) = (Vec::new(), Vec::new());
    for peer in PEERS {
        let program = program_of(peer.command);
        let obstacle = peer.needs.and_then(|strategy| refusal(probe, strategy));
        match (obstacle, programs::find(program)) {
            (Some(refusal), _) => {
                let mut entry = refused(peer.command, refusal, hint);
                if peer.command == CP_NEVER {
                    entry.reason = "nothing can be shared here, which makes this `cp -a`".into();
                    entry.remedy = None;
                }
                not_run.push(entry);
            }
            (None, None) => not_run.push(missing(peer.command, program, peer.source)),
            (None, Some(path)) => {
                let links = peer.needs == Some(Strategy::Hardlink);
                workloads.push(workload(peer.command.to_owned(), Role::Peer, links, path, sources));
            }
        }
    }
    for (command, strategy) in calves(probe.chosen) {
        let links = strategy == Some(Strategy::Hardlink);
        // The hard links of others are compared with Calve's.
        let role = if links || strategy.is_none() { Role::Reference } else { Role::Calve };
        match strategy.and_then(|strategy| refusal(probe, strategy)) {
            Some(refusal) => not_run.push(refused(command, refusal, hint)),
            None => workloads.push(workload(command, role, links, calve.to_path_buf(), sources)),
        }
    }
    (workloads, not_run)
}

/// Returns Calve's commands, each with its strategy (`None`: its own choice, which is not run twice).
fn calves(chosen: Option<Strategy>) -> Vec<(String, Option<Strategy>)> {
    let mut commands = vec![("calve cp SRC DST".to_owned(), None)];
    // An overlay is for callers of the library only.
    let others = Strategy::ALL.iter().filter(|strategy| !matches!(strategy, Strategy::Overlay | Strategy::Spare));
    for strategy in others.filter(|strategy| Some(**strategy) != chosen) {
        commands.push((format!("calve cp --strategy {strategy} SRC DST"), Some(*strategy)));
    }
    commands
}

fn refusal(probe: &ProbeReport, strategy: Strategy) -> Option<&Refusal> {
    probe.offers.iter().find(|offer| offer.strategy == strategy)?.refused.as_ref()
}

fn workload(command: String, role: Role, links: bool, program: PathBuf, sources: &Sources) -> Workload {
    let source = if links { sources.to_link.clone() } else { sources.tree.clone() };
    let words = command.clone();
    let environment = if role == Role::Peer { Vec::new() } else { vec![("CALVE_HOME", sources.home.clone())] };
    let argv = move |dst: &Path| {
        let arguments = words.split(' ').skip(1).map(|word| with_places(word, &source, dst));
        std::iter::once(program.as_os_str().to_owned()).chain(arguments).collect()
    };
    // Files with further names are treated differently, so they must go before the next run.
    let group = if links { LINKED } else { INDEPENDENT };
    Workload { environment, is_deleted_at_once: links, ..Workload::new(command, role, group, argv) }
}

/// Returns the command that takes a spare. The caller makes the spare.
pub(super) fn taking_a_spare(sources: &Sources, calve: &Path) -> Workload {
    workload(SPARE.to_owned(), Role::Calve, false, calve.to_path_buf(), sources)
}

/// Puts the paths into `SRC`, `SRC/`, `--link-dest=SRC` and `DST`.
fn with_places(word: &str, source: &Path, dst: &Path) -> OsString {
    for (name, path) in [("SRC", source), ("DST", dst)] {
        if let Some((before, after)) = word.split_once(name) {
            let mut whole = OsString::from(before);
            whole.push(path);
            whole.push(after);
            return whole;
        }
    }
    word.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_their_places() {
        let shown = |word| with_places(word, Path::new("/s"), Path::new("/d")).into_string().unwrap();
        let words = ["SRC", "SRC/", "--link-dest=SRC", "DST", "-a", "--reflink=always"];
        assert_eq!(words.map(shown), ["/s", "/s/", "--link-dest=/s", "/d", "-a", "--reflink=always"]);
    }
}
