use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use calve_core::internal::ShownPath;
use calve_core::options::{Background, SpareUse};
use calve_core::spares::{
    Readiness, RefillOptions, RefillReport, SpareOptions, SpareOrigin, SpareSet, SpareSource, SpareState, Spares,
    UntrackedReason, WatchEnd, WatchNote, WatchOptions, WatchOutcome,
};
use calve_core::template::{Templates, template_name};
use calve_core::{CancelToken, Mounts};
use calve_git::worktree::AddReport;
use calve_receipt::SparesReceipt;
use calve_receipt::human::{age, counted, entries, size};

use crate::cli::spares::{AddArguments, Output, SourceArguments, SparesCommand};
use crate::failure::{FAILED, Failure};
use crate::host::Program;
use crate::progress_bar::watched;
use crate::wording::word;
use crate::{home, output, reaper, sys};

pub(crate) fn run(command: &SparesCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        SparesCommand::Add(arguments) => add(arguments, cancel),
        SparesCommand::List { json } => list(*json),
        SparesCommand::Refill { src, output } => {
            let source = src.as_deref().map(source).transpose()?;
            if let Some(source) = &source {
                known(store()?.pause(source, false)?, source)?;
            }
            refill(source, None, output, cancel)
        }
        SparesCommand::Pause(SourceArguments { src, output }) => {
            let source = source(src)?;
            known(store()?.pause(&source, true)?, &source)?;
            tell(&RefillReport::default(), Some(&source), output)
        }
        SparesCommand::Remove(SourceArguments { src, output: Output { json: as_json } }) => {
            let source = source(src)?;
            known(store()?.remove(&source, cancel)?, &source)?;
            output::note(&format!("removed the spares of `{}`", ShownPath(source.name())));
            output::json_if(*as_json, &SparesReceipt { sources: &[], built: 0, removed: 0 })
        }
        SparesCommand::Watch => watch(cancel),
    }
}

pub(crate) fn store() -> Result<Spares, Failure> {
    let home = calve_env::required_home(&Program, "spares")?;
    home::make(&home)?;
    Ok(Spares::at(SpareUse::in_home(&home).home))
}

/// Refills the spares, in a process started by a clone. Prints nothing.
pub(crate) fn refill_in_background(cancel: &CancelToken) -> Result<(), Failure> {
    sys::leave_terminal();
    let store = store()?;
    // Before lowering this process's priority, which a child would inherit. Spares work without a watcher too.
    if store.want_watcher().unwrap_or(false) {
        reaper::start_background(reaper::WATCH);
    }
    let (background, progress, cancel) = (Background::Yes, Arc::default(), cancel.clone());
    store.refill(&RefillOptions { resolve: directory, only: None, background, progress, cancel })?;
    Ok(())
}

/// Watches, in a process started by a clone. Prints nothing, and ends at once if there is another watcher.
pub(crate) fn watch_in_background(cancel: &CancelToken) -> Result<(), Failure> {
    sys::leave_terminal();
    let (end, cancel) = (WatchEnd::Unwanted, cancel.clone());
    store()?.watch(&mut WatchOptions { notify: &mut |_| (), end, cancel })?;
    Ok(())
}

fn add(arguments: &AddArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = SpareOptions::default();
    options.count = Some(arguments.count.get());
    options.at.clone_from(&arguments.at);
    options.watched = arguments.watch;
    options.like.exclude.clone_from(&arguments.exclude);
    options.like.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    let store = store()?;
    let src = arguments.src.as_deref().unwrap_or(Path::new("."));
    let origin = match template_name(src) {
        _ if arguments.worktree => SpareOrigin::Directory(calve_git::worktree::spare_of_worktree(src, &mut options)?),
        Some(name) => SpareOrigin::Template(Box::new(
            Templates::open(&calve_env::required_home(&Program, "spares")?).hold(&name)?,
        )),
        None => SpareOrigin::Directory(src.to_path_buf()),
    };
    let set = store.add(&origin, &options)?;
    if arguments.watch {
        reaper::start_background(reaper::WATCH);
    }
    refill(Some(set.source.clone()), Some(&set), &arguments.output, cancel)
}

/// Keeps the spares that the user's own configuration requests. Returns a hint if only the project proposes them.
pub(crate) fn keep_requested(added: &AddReport) -> Option<String> {
    let request = added.details.spares_request?;
    let keep = || {
        let store = store()?;
        let mut wanted = SpareOptions::default();
        let root = calve_git::worktree::spare_of_worktree(&added.worktree.donor, &mut wanted)?;
        if store.are_wanted(&root, &wanted.like.exclude)? {
            return Ok(None);
        }
        if !request.is_own {
            let command = format!("calve spares add --worktree --count {} {}", request.count, word(&root));
            return Ok(Some(format!(
                "the project proposes spares, for which new worktrees need not wait: `{command}`"
            )));
        }
        wanted.count = Some(request.count);
        store.add(&SpareOrigin::Directory(root), &wanted).map(|_| None).map_err(Failure::from)
    };
    keep().unwrap_or_else(|failure: Failure| {
        output::failure(&failure);
        output::warn("no spares are kept; the worktree is complete all the same");
        None
    })
}

fn refill(
    source: Option<SpareSource>,
    added: Option<&SpareSet>,
    output: &Output,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    let (store, only, progress, cancel) = (store()?, source.clone(), Arc::default(), cancel.clone());
    let options = RefillOptions { resolve: directory, only, background: Background::No, progress, cancel };
    let mut report = watched("cloned", &options.progress, || store.refill(&options))?;
    if let Some(added) = added {
        store.forget_unbuilt(added, &report.failures)?;
    }
    let failure = report.failures.pop();
    for (_, error) in report.failures.drain(..) {
        output::failure(&error.into());
    }
    tell(&report, source.as_ref(), output)?;
    failure.map_or(Ok(()), |(_, error)| Err(error.into()))
}

/// Finds the directory of a source. `None` if it no longer exists.
fn directory(source: &SpareSource) -> Option<SpareOrigin> {
    match source {
        SpareSource::Directory(path) => Some(SpareOrigin::Directory(path.clone())),
        SpareSource::Template(name) => {
            let held = Templates::open(&home::directory().ok()?).hold(name);
            held.ok().map(|held| SpareOrigin::Template(Box::new(held)))
        }
    }
}

/// Returns the source for a path: the one listed under that name, else the canonical directory, which may be missing.
fn source(path: &Path) -> Result<SpareSource, Failure> {
    if let Some(name) = template_name(path) {
        return Ok(SpareSource::Template(name));
    }
    let named = SpareSource::Directory(std::path::absolute(path)?);
    if store()?.list(|_| None)?.iter().any(|set| set.source == named) {
        return Ok(named);
    }
    Ok(fs_err::canonicalize(path).map_or(named, SpareSource::Directory))
}

fn known(sets: usize, source: &SpareSource) -> Result<(), Failure> {
    if sets > 0 {
        return Ok(());
    }
    let text = format!("there are no spares of `{}`", ShownPath(source.name()));
    Err(Failure::stated(FAILED, text, "`calve spares list` shows the directories that have spares"))
}

fn list(as_json: bool) -> Result<(), Failure> {
    let store = store()?;
    store.unreadable()?.iter().for_each(|set| output::warn_of_record(set));
    let sets = store.list(directory)?;
    let lines = |set: &SpareSet| {
        let spares = set.spares.iter().map(|spare| format!("  {}\n", sentence_of(spare)));
        format!("{}\n{}", sentence(set), spares.collect::<String>())
    };
    let text: String = sets.iter().map(lines).collect();
    output::json_or(as_json, &SparesReceipt { sources: &sets, built: 0, removed: 0 }, &text)
}

fn tell(report: &RefillReport, source: Option<&SpareSource>, output: &Output) -> Result<(), Failure> {
    let mut sets = store()?.list(directory)?;
    sets.retain(|set| source.is_none_or(|source| set.source == *source));
    sets.iter().for_each(|set| output::note(&sentence(set)));
    output::json_if(output.json, &SparesReceipt { sources: &sets, built: report.built, removed: report.removed })
}

fn sentence(set: &SpareSet) -> String {
    let ready = set.spares.iter().filter(|spare| spare.state == Readiness::Ready).count();
    let paused = if set.is_paused { ", paused" } else { "" };
    let watched = if set.is_watched { ", watched" } else { "" };
    let left_out = set.exclude.iter().map(|pattern| match pattern.strip_prefix('!') {
        Some(taken) => format!(", with `{taken}`"),
        None => format!(", without `{pattern}`"),
    });
    let left_out: String = left_out.collect();
    let next = match set.next_bytes {
        None => String::new(),
        Some(0) => ", the next one shares its data".into(),
        Some(bytes) => format!(", the next one takes {}", size(bytes)),
    };
    let away = if set.is_away { ", on a file system that is not mounted" } else { "" };
    let source = set.source.name();
    let (source, directory) = (ShownPath(source), ShownPath(&set.directory));
    format!(
        "`{source}`: {ready} of {} ready{paused}{watched}{left_out}{next}, in `{directory}`{away}",
        counted(set.count, "spare")
    )
}

fn sentence_of(spare: &SpareState) -> String {
    let reason = spare.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let state = format!("{}{reason}", spare.state);
    let (Some(built), Some(number), Some(apparent), Some(written)) =
        (spare.built, spare.entries, spare.apparent_bytes, spare.written_bytes)
    else {
        return state;
    };
    let built = age(SystemTime::now().duration_since(built).unwrap_or_default());
    let cost = if written == 0 { "shared".into() } else { format!("{} written", size(written)) };
    format!("{state}, {built} old, {}, {}, {cost}", entries(number), size(apparent))
}

fn watch(cancel: &CancelToken) -> Result<(), Failure> {
    let mut notify = |note: WatchNote<'_>| text_of(note).iter().for_each(|text| output::note(text));
    let mut options = WatchOptions { notify: &mut notify, end: WatchEnd::Never, cancel: cancel.clone() };
    // It ends with Ctrl-C otherwise.
    if store()?.watch(&mut options)? == WatchOutcome::Elsewhere {
        let hint = "one watcher is enough for all spares of a user";
        return Err(Failure::stated(FAILED, "another `calve spares watch` is running", hint));
    }
    Ok(())
}

fn text_of(note: WatchNote<'_>) -> Option<String> {
    Some(match note {
        WatchNote::Listening => "watching the sources of spares; Ctrl-C ends it".into(),
        WatchNote::Watching { source, directories } => {
            format!("`{}`: {} watched", ShownPath(source), counted(directories as u64, "directory"))
        }
        WatchNote::Lost { source, why } => format!("`{}`: {}", ShownPath(source), untracked(why)),
        _ => return None,
    })
}

fn untracked(why: UntrackedReason) -> &'static str {
    match why {
        UntrackedReason::TooManyDirectories => {
            "not watched, as it has more directories than a quarter of the user's inotify watches \
             (fs.inotify.max_user_watches)"
        }
        UntrackedReason::NoWatches => "not watched: the inotify limit is reached",
        UntrackedReason::Removal => "a name was removed, so it will be compared again",
        UntrackedReason::Overflow => "too many changes at once, so it will be compared again",
        UntrackedReason::Gone => "it was moved, removed or unmounted",
        UntrackedReason::Mounted => "not watched, as another file system is mounted in it",
        UntrackedReason::FileSystem => "not watched: its file system does not report every change",
        UntrackedReason::Unreadable => "not watched, as a directory in it cannot be read",
    }
}
