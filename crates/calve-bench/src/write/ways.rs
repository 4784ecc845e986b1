use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_receipt::human::{count, counted, size};
use serde_json::Value;

use super::node::{NODE, Node};
use crate::scratch::Room;
use crate::workload::{CheckFunction, Group, OwnTimes, Role, Workload};

#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) directories: u64,
}

impl Task {
    /// Counts whole blocks, an inode and a name for each file.
    pub(super) fn needs(&self) -> Room {
        let each = self.bytes.div_ceil(4096) * 4096 + 1024;
        Room { bytes: self.files.saturating_mul(each) + (1 << 20), inodes: self.files + self.directories + 100 }
    }

    fn group(&self) -> Group {
        const NOTE: &str = "`median`, `min`, `max` and the ratios are those of the writing alone; CPU and memory are those of the whole process. Stall: the longest time that the event loop was blocked, in all runs.";
        let directories =
            if self.directories == 1 { "one directory".to_owned() } else { counted(self.directories, "directory") };
        let name = format!("{} files of {}, in {directories}", count(self.files), size(self.bytes));
        Group { name: Cow::Owned(name), note: NOTE }
    }
}

/// Returns the ways, each with the script's word for it.
fn all(processors: usize) -> Vec<(String, String, Role)> {
    let workers = processors.clamp(2, 8);
    let mut ways = vec![
        ("writeFileSync in a loop".to_owned(), "loop".to_owned(), Role::Peer),
        ("Promise.all of writeFile".into(), "all".into(), Role::Peer),
        ("await writeFile in a loop".into(), "await".into(), Role::Peer),
        (format!("{workers} worker threads, running already"), format!("threads:{workers}"), Role::Peer),
        (format!("{workers} worker threads, with their start"), format!("threads-started:{workers}"), Role::Peer),
        ("calve.writeFilesSync".into(), "sync".into(), Role::Calve),
        ("calve.writeFiles".into(), "async".into(), Role::Reference),
    ];
    for threads in thread_counts(processors) {
        let name = format!("calve.writeFiles, {}", counted(threads as u64, "thread"));
        ways.push((name, format!("async:{threads}"), Role::Calve));
    }
    ways
}

/// Returns 1, 2, 4 and 8, up to twice the processors: more threads than processors help where writing waits.
fn thread_counts(processors: usize) -> Vec<usize> {
    [1, 2, 4, 8].into_iter().filter(|&count| count <= (2 * processors).clamp(2, 8)).collect()
}

/// Returns the workloads of a task. `script` runs each way, and writes its times to `result`.
pub(super) fn workloads(task: Task, processors: usize, node: &Node, script: &Path, result: &Path) -> Vec<Workload> {
    let workload = |(command, word, role): (String, String, Role)| {
        let (script, result, package) = (script.to_owned(), result.to_owned(), node.package.clone());
        let written = result.clone();
        let numbers = [task.files, task.bytes, task.directories].map(|number| OsString::from(number.to_string()));
        let argv = move |root: &Path| {
            let first = [NODE.into(), script.clone().into(), word.clone().into(), root.into()];
            let last = [result.clone().into(), package.clone().into()];
            first.into_iter().chain(numbers.clone()).chain(last).collect()
        };
        let check: CheckFunction = Box::new(move |root| times(&task, root, &written));
        Workload { check: Some(check), ..Workload::new(command, role, task.group(), argv) }
    };
    all(processors).into_iter().map(workload).collect()
}

/// Reads a run's times, and checks that its files are there: a way that does nothing would be fast.
fn times(task: &Task, root: &Path, result: &PathBuf) -> Result<OwnTimes, String> {
    let text = fs_err::read_to_string(result).map_err(|error| error.to_string())?;
    let _ = fs_err::remove_file(result);
    let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let error = &answer["error"];
    if let Some(what) = error["code"].as_str().or_else(|| error["message"].as_str()) {
        return Err(what.to_owned());
    }
    let directories = (0..task.directories).map(|number| root.join("files").join(format!("d{number}")));
    let files: u64 = directories.map(|directory| fs_err::read_dir(directory).map_or(0, Iterator::count) as u64).sum();
    if files != task.files {
        return Err(format!("it wrote {} of {} files", count(files), count(task.files)));
    }
    Ok(OwnTimes { seconds: answer["seconds"].as_f64(), stall_seconds: answer["stall_seconds"].as_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_what_the_machine_can_use() {
        assert_eq!(thread_counts(1), [1, 2]);
        assert_eq!(thread_counts(2), [1, 2, 4]);
        assert_eq!(thread_counts(64), [1, 2, 4, 8]);
    }
}
