//! The ways to write: Node's own, and Calve's.

use std::ffi::OsString;
use std::path::Path;

use calve_receipt::bench::Side;

use super::node::{NODE, Node};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The way that others are compared with.
    Loop,
    PromiseAll,
    Await,
    /// Node's worker threads, so many, running before the clock starts.
    Threads(usize),
    /// The same, with their start.
    ThreadsWithStart(usize),
    WriteFilesSync,
    WriteFiles,
    /// `writeFiles` with so many threads.
    WriteFilesWith(usize),
    /// The engine without Node, where the package is not installed.
    Engine(usize),
}

/// The files that one run writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) directories: u64,
}

pub(super) fn all(processors: usize, package: bool) -> Vec<Way> {
    let way = |name: String, kind| Way { name, kind };
    let workers = processors.clamp(2, 8);
    let mut ways = vec![
        way("writeFileSync in a loop".into(), Kind::Loop),
        way("Promise.all of writeFile".into(), Kind::PromiseAll),
        way("await writeFile in a loop".into(), Kind::Await),
        way(format!("{workers} worker threads, running already"), Kind::Threads(workers)),
        way(format!("{workers} worker threads, with their start"), Kind::ThreadsWithStart(workers)),
    ];
    if package {
        ways.push(way("calve.writeFilesSync".into(), Kind::WriteFilesSync));
        ways.push(way("calve.writeFiles".into(), Kind::WriteFiles));
    }
    for threads in thread_counts(processors) {
        ways.push(match package {
            true => way(format!("calve.writeFiles, {}", in_words(threads)), Kind::WriteFilesWith(threads)),
            false => way(format!("calve's engine, {}", in_words(threads)), Kind::Engine(threads)),
        });
    }
    ways
}

/// Returns 1, 2, 4 and so on, up to twice the processors but no more than 8: more than there are processors can help where writing waits.
fn thread_counts(processors: usize) -> Vec<usize> {
    [1, 2, 4, 8].into_iter().filter(|&count| count <= (2 * processors).clamp(2, 8)).collect()
}

pub(super) fn in_words(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

impl Way {
    /// Returns its name for `--only`: without the comma that would end the name there, and the same on every machine.
    pub(super) fn label(&self) -> String {
        let name = match self.kind {
            Kind::Threads(count) | Kind::ThreadsWithStart(count) => {
                self.name.strip_prefix(&format!("{count} ")).unwrap_or(&self.name)
            }
            _ => &self.name,
        };
        name.replace(',', "")
    }
}

impl Kind {
    /// Returns the number of threads that Calve was told to use.
    pub(super) fn threads(self) -> Option<usize> {
        if let Self::WriteFilesWith(threads) | Self::Engine(threads) = self { Some(threads) } else { None }
    }

    fn is_ours(self) -> bool {
        matches!(self, Self::WriteFilesSync | Self::WriteFiles | Self::WriteFilesWith(_) | Self::Engine(_))
    }

    pub(super) fn side(self) -> Side {
        if self.is_ours() { Side::Calve } else { Side::Peer }
    }

    /// Returns the script's name for it.
    fn word(self) -> String {
        match self {
            Self::Loop => "loop".into(),
            Self::PromiseAll => "all".into(),
            Self::Await => "await".into(),
            Self::Threads(count) => format!("threads:{count}"),
            Self::ThreadsWithStart(count) => format!("threads-started:{count}"),
            Self::WriteFilesSync => "sync".into(),
            Self::WriteFiles => "async".into(),
            Self::WriteFilesWith(threads) => format!("async:{threads}"),
            Self::Engine(threads) => threads.to_string(),
        }
    }

    /// Returns the command that writes `task` below `root`, which it makes, and its JSON to `result`.
    pub(super) fn argv(self, task: &Task, root: &Path, result: &Path, script: &Path, node: &Node) -> Vec<OsString> {
        let numbers = [task.files, task.bytes, task.directories].map(|number| OsString::from(number.to_string()));
        let mut argv: Vec<OsString> = match self {
            Self::Engine(_) => {
                let program = std::env::current_exe().map_or_else(|_| "calve".into(), Into::into);
                vec![program, "__write".into(), self.word().into(), root.into()]
            }
            _ => vec![NODE.into(), script.into(), self.word().into(), root.into()],
        };
        argv.extend(numbers);
        argv.push(result.into());
        if let (true, Some(package)) = (self.is_ours(), &node.package) {
            argv.push((&package.file).into());
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_what_the_machine_can_use() {
        assert_eq!(thread_counts(1), [1, 2]);
        assert_eq!(thread_counts(2), [1, 2, 4]);
        assert_eq!(thread_counts(64), [1, 2, 4, 8]);
        let labels: Vec<String> = all(3, true).iter().map(Way::label).collect();
        assert!(labels.contains(&"worker threads with their start".into()), "{labels:?}");
        assert!(labels.contains(&"calve.writeFiles 2 threads".into()), "{labels:?}");
        let kinds: Vec<Kind> = all(2, false).into_iter().map(|way| way.kind).collect();
        assert!(kinds.contains(&Kind::Engine(1)) && !kinds.contains(&Kind::WriteFiles));
    }
}
