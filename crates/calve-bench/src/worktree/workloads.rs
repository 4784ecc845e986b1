//! Ways to get a complete worktree. Each is one shell script, from nothing to the first `git status`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use calve_core::CancelToken;
use calve_receipt::bench::NotRun;

use crate::comparison::missing;
use crate::error::BenchError;
use crate::programs;
use crate::remedy::ProgramSource;
use crate::scratch::Scratch;
use crate::spares;
use crate::workload::{Group, Role, Workload};

pub(crate) const COMPLETE: Group = Group { name: Cow::Borrowed("complete worktrees"), note: "" };

/// As shown, and as run: `$1` is the repository, `$2` the new path, `$3` the program.
struct WorktreeVariant {
    shown: &'static str,
    script: &'static str,
    program: &'static str,
    source: ProgramSource,
}

const ADD: &str = "cd \"$1\" && \"$3\" worktree add -q --no-hooks --detach HEAD --path \"$2\" >/dev/null";
/// Fails unless the receipt says that a spare was taken.
const TAKE_SPARE: &str = "cd \"$1\" && \"$3\" worktree add --json --no-hooks --detach HEAD --path \"$2\" | grep -q '\"strategy\": *\"spare\"'";
const STATUS: &str = " && git -C \"$2\" status --porcelain >/dev/null";

const VARIANTS: [WorktreeVariant; 3] = [
    WorktreeVariant {
        shown: "git worktree add DST; cp -a --reflink=auto IGNORED DST; git status",
        script: "git -C \"$1\" worktree add -q --detach \"$2\" && cd \"$1\" && while IFS= read -r path; do \
                 cp -a --reflink=auto --parents -- \"$path\" \"$2\" || exit 1; done <\"$4\"",
        program: "cp",
        source: ProgramSource::PackageManager,
    },
    WorktreeVariant {
        shown: "git worktree add DST; npm ci --offline; git status",
        script: "git -C \"$1\" worktree add -q --detach \"$2\" && \"$3\" --prefix \"$2\" ci --offline --no-audit --no-fund >/dev/null",
        program: "npm",
        source: ProgramSource::Node,
    },
    WorktreeVariant {
        shown: "git worktree add DST; wt step copy-ignored; git status",
        script: "git -C \"$1\" worktree add -q --detach \"$2\" && cd \"$2\" && \"$3\" step copy-ignored >/dev/null",
        program: "wt",
        source: ProgramSource::Crate("worktrunk"),
    },
];

pub(crate) fn choose(source: &Path, calve: &Path) -> Result<(Vec<Workload>, Vec<NotRun>), BenchError> {
    let list = source.with_file_name("ignored");
    fs_err::write(&list, ignored(source)?)?;
    let (mut workloads, mut not_run) = (Vec::new(), Vec::new());
    for variant in &VARIANTS {
        if variant.program == "npm" && !source.join("package-lock.json").is_file() {
            continue;
        }
        match programs::find(variant.program) {
            Some(program) => {
                workloads.push(workload(variant.shown, Role::Peer, variant.script, source, &program, &list))
            }
            None => not_run.push(missing(variant.shown, variant.program, variant.source)),
        }
    }
    workloads.push(workload("calve worktree add --path DST; git status", Role::Reference, ADD, source, calve, &list));
    Ok((workloads, not_run))
}

pub(crate) fn add_with_spare(
    source: &Path,
    calve: &Path,
    scratch: &Scratch<'_>,
    cancel: &CancelToken,
    lists: (&mut Vec<Workload>, &mut Vec<NotRun>),
) -> Result<(), BenchError> {
    const SHOWN: &str = "calve worktree add --path DST; git status (with a spare)";
    let plain = workload(SHOWN, Role::Calve, TAKE_SPARE, source, calve, &source.with_file_name("ignored"));
    spares::add(plain, (calve, source), &["--worktree".as_ref()], scratch, cancel, lists)
}

fn workload(shown: &str, role: Role, script: &str, source: &Path, program: &Path, list: &Path) -> Workload {
    let script = OsString::from(format!("{script}{STATUS}"));
    let (source, program, list) = (source.to_path_buf(), program.to_path_buf(), list.to_path_buf());
    let argv = move |dst: &Path| {
        let words = ["sh", "-c"].map(OsString::from).into_iter();
        let places =
            [OsString::from("sh"), source.clone().into(), dst.into(), program.clone().into(), list.clone().into()];
        words.chain([script.clone()]).chain(places).collect()
    };
    // git would take longer with each worktree that it knows.
    Workload { is_deleted_at_once: true, ..Workload::new(shown, role, COMPLETE, argv) }
}

pub(super) fn git(at: &Path, arguments: &[&str]) -> Result<String, BenchError> {
    Ok(String::from_utf8_lossy(&calve_git::Git::at(at).run(arguments)?).into_owned())
}

/// Lists ignored directories and files, one on a line, for programs that need a list.
fn ignored(source: &Path) -> Result<String, BenchError> {
    let listed = git(source, &["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])?;
    let names = listed.split('\0').map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty());
    Ok(names.map(|name| format!("{name}\n")).collect())
}
