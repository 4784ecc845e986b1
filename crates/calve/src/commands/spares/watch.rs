//! `calve spares watch`.

use calve_core::{Cancel, Shown, Untracked, WatchEnd, WatchNote, WatchOptions, Watching};
use calve_receipt::human::counted;

use super::{store, unit};
use crate::cli::spares::WatchArguments;
use crate::failure::{FAILED, Failure};
use crate::output;

pub(crate) fn run(arguments: &WatchArguments, cancel: &Cancel) -> Result<(), Failure> {
    if arguments.print_unit {
        return output::result(&unit::text()?);
    }
    if arguments.install {
        return unit::install(arguments.quiet);
    }
    if arguments.uninstall {
        return unit::uninstall(arguments.quiet);
    }
    let mut told = |note: WatchNote<'_>| {
        if !arguments.quiet
            && let Some(text) = sentence(note)
        {
            output::say(&text);
        }
    };
    let mut options = WatchOptions { told: &mut told, end: WatchEnd::Never, cancel: cancel.clone() };
    match store()?.watch(&mut options)? {
        Watching::Elsewhere => {
            let hint = "one watcher is enough for all spares of a user";
            Err(Failure::stated(FAILED, "another `calve spares watch` is running", hint))
        }
        // Ctrl-C is how it ends.
        _ => Ok(()),
    }
}

fn sentence(note: WatchNote<'_>) -> Option<String> {
    Some(match note {
        WatchNote::Listening => "watching the sources of spares; Ctrl-C ends it".into(),
        WatchNote::Watching { source, directories } => {
            format!("`{}`: {} watched", Shown(source), counted(directories as u64, "directory"))
        }
        WatchNote::Lost { source, why } => format!("`{}`: {}", Shown(source), reason(why)),
        _ => return None,
    })
}

fn reason(why: Untracked) -> &'static str {
    match why {
        Untracked::TooManyDirectories => {
            "not watched, as it has more directories than a quarter of the user's inotify watches \
             (fs.inotify.max_user_watches)"
        }
        Untracked::NoWatches => "not watched, as the system gives no more inotify watches",
        Untracked::Removal => "a name was removed, so it will be compared anew",
        Untracked::Overflow => "too much happened at a time, so it will be compared anew",
        Untracked::Gone => "it was moved, removed or unmounted",
        Untracked::Mounted => "not watched, as another file system is mounted in it",
        Untracked::FileSystem => "not watched, as not every change on its file system is told",
        Untracked::Unreadable => "not watched, as a directory in it cannot be read",
        _ => "not watched",
    }
}
