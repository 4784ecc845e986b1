//! `calve spares watch`.

use std::path::Path;

use calve_core::{Cancel, Shown, Untracked, WatchNote, WatchOptions, Watching};
use calve_receipt::human::counted;

use super::store;
use crate::cli::spares::WatchArguments;
use crate::failure::{FAILED, Failure};
use crate::{home, output};

pub(crate) fn run(arguments: &WatchArguments, cancel: &Cancel) -> Result<(), Failure> {
    if arguments.print_unit {
        return output::result(&unit()?);
    }
    let mut told = |note: WatchNote<'_>| {
        if !arguments.quiet
            && let Some(text) = sentence(note)
        {
            output::say(&text);
        }
    };
    let mut options = WatchOptions { told: &mut told, cancel: cancel.clone() };
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

/// The unit for systemd's manager of the user's services.
fn unit() -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let home = home::directory()
        .map_err(|why| Failure::stated(FAILED, format!("there is no place for spares: {why}"), "set CALVE_HOME"))?;
    Ok(format!(
        "[Unit]\nDescription=Watches the directories that calve keeps spares of\n\n[Service]\nEnvironment={}\n\
         ExecStart={} spares watch --quiet\nRestart=on-failure\nNice=5\n\n[Install]\nWantedBy=default.target\n",
        quoted(&format!("CALVE_HOME={}", home.display())),
        quoted(&text(&program)),
    ))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// As systemd reads it: in quotes, and with `%` and `$` doubled.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}
