//! The programs that share what two copies hold alike: those of others and Calve's, as far as this machine has them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, Choice, CloneOptions, Strategy, clone_tree};

use calve_receipt::bench::NotRun;

use crate::comparison::missing;
use crate::error::BenchError;
use crate::process;
use crate::remedy::{ProgramSource, Remedy};
use crate::setup::check_cancelled;
use crate::workload::{Argv, Group, Leftovers, PrepareFunction, Role, Workload};

/// Nothing is shared before.
pub(super) const FIRST: Group = Group { name: "two copies that share nothing", note: "" };

/// Everything is shared before.
const AGAIN: Group = Group {
    name: "the same command again",
    note: "Run a second time, with what the first run has kept for it: there is nothing left to share. These are compared with each \
           other only.",
};

struct Candidate {
    /// As typed, with `A` and `B` for the copies and `KEPT` for a file that a second run uses. With `|` or `&&`, for a shell.
    command: &'static str,
    role: Role,
    group: &'static Group,
    /// The program that has to be installed.
    program: &'static str,
    /// How to get it.
    source: ProgramSource,
}

const PACKAGE: ProgramSource = ProgramSource::PackageManager;

const fn peer(command: &'static str, program: &'static str, group: &'static Group, source: ProgramSource) -> Candidate {
    Candidate { command, role: Role::Peer, group, program, source }
}

const fn calves(command: &'static str, role: Role, group: &'static Group) -> Candidate {
    Candidate { command, role, group, program: CALVE, source: PACKAGE }
}

const CALVE: &str = "calve";

const CANDIDATES: &[Candidate] = &[
    calves("calve dedupe A B", Role::Reference, &FIRST),
    calves("calve dedupe --blocks A B", Role::Calve, &FIRST),
    calves("calve reshare B --with A", Role::Calve, &FIRST),
    peer("jdupes -rBq A B", "jdupes", &FIRST, PACKAGE),
    peer("duperemove -rdq A B", "duperemove", &FIRST, PACKAGE),
    peer("duperemove -rdq -b 4096 A B", "duperemove", &FIRST, PACKAGE),
    // Hidden files too, as the others do; and whatever a `.gitignore` says.
    peer("fclones group --hidden --no-ignore A B | fclones dedupe", "fclones", &FIRST, ProgramSource::Crate("fclones")),
    peer("rmlint -T df --hidden -c sh:handler=clone -o sh:KEPT A B && sh KEPT -dq", "rmlint", &FIRST, PACKAGE),
    calves("calve dedupe A B", Role::Reference, &AGAIN),
    peer("jdupes -rBq A B", "jdupes", &AGAIN, PACKAGE),
    peer("duperemove -rdq --hashfile=KEPT A B", "duperemove", &AGAIN, PACKAGE),
    peer(
        "fclones group --cache --hidden --no-ignore A B | fclones dedupe",
        "fclones",
        &AGAIN,
        ProgramSource::Crate("fclones"),
    ),
];

/// Returns the programs that are looked for.
pub(super) fn programs() -> Vec<&'static str> {
    let mut names: Vec<&str> = CANDIDATES.iter().map(|one| one.program).filter(|name| *name != CALVE).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns every command that there is, as it is typed.
pub(super) fn known_commands() -> Vec<String> {
    CANDIDATES.iter().map(|one| one.command.to_owned()).collect()
}

/// The common trees and programs of all commands.
pub(super) struct Subjects {
    /// The tree that A and B are copies of.
    pub(super) trees: [PathBuf; 2],
    pub(super) calve: PathBuf,
    pub(super) cancel: CancelToken,
}

/// The files that are kept for a second run, below the path of a run: Calve's home, the cache of others, and the file KEPT.
const KEPT: [&str; 3] = ["home", "cache", "kept"];

/// The two copies below the path of a run.
pub(super) const COPIES: [&str; 2] = ["a", "b"];

/// Returns everything that can be run, and everything that cannot, with the reason. Programs in `without` are left out.
pub(super) fn choose(
    subjects: &Subjects,
    without: &[String],
    find: &dyn Fn(&str) -> Option<PathBuf>,
    hint: fn(&Remedy) -> String,
) -> (Vec<Workload>, Vec<NotRun>) {
    let (mut workloads, mut not_run) = (Vec::new(), Vec::new());
    for one in CANDIDATES {
        if without.iter().any(|name| name == one.program) {
            continue;
        }
        let program = if one.program == CALVE { Some(subjects.calve.clone()) } else { find(one.program) };
        match program {
            None => not_run.push(missing(one.command, one.program, one.source, hint)),
            Some(program) => workloads.push(workload(one, program, subjects)),
        }
    }
    (workloads, not_run)
}

fn workload(one: &'static Candidate, program: PathBuf, subjects: &Subjects) -> Workload {
    let again = one.group == &AGAIN;
    Workload {
        command: one.command.to_owned(),
        role: one.role,
        group: one.group,
        argv: argv(one.command, program.clone()),
        environment: Vec::new(),
        prepare: Some(prepare(subjects, again.then(|| argv(one.command, program)))),
        kept: &KEPT,
        // Everything that was made would be read from memory that the next run needs.
        leftovers: Leftovers::DeleteAtOnce,
    }
}

/// Returns the arguments of a run, in an environment that keeps what is kept for a second run in the run's own directory.
fn argv(command: &'static str, program: PathBuf) -> Argv {
    Box::new(move |run| {
        let place = |name: &str| match name {
            "A" => Some(run.join(COPIES[0])),
            "B" => Some(run.join(COPIES[1])),
            "KEPT" => Some(run.join(KEPT[2])),
            _ => None,
        };
        let mut words: Vec<OsString> = vec!["/usr/bin/env".into()];
        for (name, kept) in ["CALVE_HOME", "XDG_CACHE_HOME"].iter().zip(KEPT) {
            let mut word = OsString::from(format!("{name}="));
            word.push(run.join(kept));
            words.push(word);
        }
        if command.contains(['|', '&']) {
            words.extend(["/bin/sh".into(), "-c".into(), script(command).into(), "sh".into()]);
            words.extend(["A", "B", "KEPT"].iter().filter_map(|name| place(name)).map(PathBuf::into_os_string));
            words.push(program.clone().into_os_string());
            return words;
        }
        words.push(program.clone().into_os_string());
        words.extend(command.split(' ').skip(1).map(|word| {
            let (before, name) =
                word.split_once('=').map_or(("", word), |(_, name)| (&word[..=word.len() - name.len() - 1], name));
            place(name).map_or_else(
                || word.into(),
                |path| {
                    let mut whole = OsString::from(before);
                    whole.push(path);
                    whole
                },
            )
        }));
        words
    })
}

/// Returns the command for a shell that is given the places and the program.
fn script(command: &str) -> String {
    let name = command.split(' ').next().unwrap_or_default();
    let word = |word: &str| match word {
        "A" => "\"$1\"".to_owned(),
        "B" => "\"$2\"".to_owned(),
        "KEPT" => "\"$3\"".to_owned(),
        "sh:KEPT" => "sh:\"$3\"".to_owned(),
        word if word == name => "\"$4\"".to_owned(),
        word => word.to_owned(),
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Makes the two copies, which share nothing, and, for a second run, runs `first` on them.
fn prepare(subjects: &Subjects, first: Option<Argv>) -> PrepareFunction {
    let (trees, cancel) = (subjects.trees.clone(), subjects.cancel.clone());
    Box::new(move |run| {
        fs_err::create_dir(run)?;
        for (tree, copy) in trees.iter().zip(COPIES) {
            let mut options = CloneOptions::default();
            options.strategy = Choice::Only(Strategy::Copy);
            options.cancel = cancel.clone();
            clone_tree(tree, &run.join(copy), &options)?;
        }
        let Some(first) = &first else { return Ok(None) };
        // Data that are not on the disk yet are slow to share.
        rustix::fs::sync();
        ran(&first(run), &cancel)
    })
}

/// Returns why it went wrong, if it did.
fn ran(words: &[OsString], cancel: &CancelToken) -> Result<Option<String>, BenchError> {
    let ended = process::measure(words, &[], std::process::Stdio::null(), cancel)?;
    check_cancelled(cancel)?;
    Ok((!ended.status.success()).then(|| format!("the first of its two runs: {}", ended.in_words())))
}

/// Returns where the copies of a run are.
pub(super) fn copies(run: &Path) -> [PathBuf; 2] {
    COPIES.map(|copy| run.join(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_their_places() {
        let shown = |command| {
            let words = argv(command, "/bin/it".into())(Path::new("/r"));
            words[3..].iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("it -rBq A B"), "/bin/it -rBq /r/a /r/b");
        assert_eq!(shown("it --hashfile=KEPT --x=y A"), "/bin/it --hashfile=/r/kept --x=y /r/a");
        assert_eq!(
            shown("it -o sh:KEPT A B && sh KEPT -dq"),
            "/bin/sh -c \"$4\" -o sh:\"$3\" \"$1\" \"$2\" && sh \"$3\" -dq sh /r/a /r/b /r/kept /bin/it"
        );
    }
}
