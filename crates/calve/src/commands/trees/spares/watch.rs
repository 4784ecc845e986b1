use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_core::spares::{UntrackedReason, WatchEnd, WatchNote, WatchOptions, WatchOutcome};
use calve_receipt::human::counted;

use super::store::store;
use crate::failure::{FAILED, Failure};
use crate::output;

pub(crate) fn run(cancel: &CancelToken) -> Result<(), Failure> {
    let mut told = |note: WatchNote<'_>| {
        if let Some(text) = sentence(note) {
            output::note(&text);
        }
    };
    let mut options = WatchOptions { notify: &mut told, end: WatchEnd::Never, cancel: cancel.clone() };
    match store()?.watch(&mut options)? {
        WatchOutcome::Elsewhere => {
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
            format!("`{}`: {} watched", ShownPath(source), counted(directories as u64, "directory"))
        }
        WatchNote::Lost { source, why } => format!("`{}`: {}", ShownPath(source), reason(why)),
        _ => return None,
    })
}

fn reason(why: UntrackedReason) -> &'static str {
    match why {
        UntrackedReason::TooManyDirectories => {
            "not watched, as it has more directories than a quarter of the user's inotify watches \
             (fs.inotify.max_user_watches)"
        }
        UntrackedReason::NoWatches => "not watched, as the system gives no more inotify watches",
        UntrackedReason::Removal => "a name was removed, so it will be compared anew",
        UntrackedReason::Overflow => "too much happened at a time, so it will be compared anew",
        UntrackedReason::Gone => "it was moved, removed or unmounted",
        UntrackedReason::Mounted => "not watched, as another file system is mounted in it",
        UntrackedReason::FileSystem => "not watched, as not every change on its file system is told",
        UntrackedReason::Unreadable => "not watched, as a directory in it cannot be read",
    }
}
