//! Option files that lead the clients to another server than the given one.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::directory::{Directory, SMALL_BYTES};

/// The option groups that all clients read, and those of the two shells.
const CLIENTS: &[&str] = &["client", "client-server", "client-mariadb", "mariadb-client", "mysql", "mariadb"];
/// The ends of the other clients' names, as in `mysqldump` and `mariadb-dump`.
const TOOLS: &[&str] = &["admin", "dump", "import", "check", "show", "slap"];
const WHERE: &[&str] = &["host", "port", "socket", "protocol", "pipe"];
const OF_THE_SYSTEM: &[&str] =
    &["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/local/etc/my.cnf", "/opt/homebrew/etc/my.cnf"];
/// The maximum depth of includes. Some files include themselves.
const DEEPEST: usize = 10;

/// Refuses option files that lead clients to another server, whatever their environment. `home`: has `.my.cnf`.
pub(super) fn check(home: Option<&Path>) -> Result<()> {
    // Clients read Calve's own file later than these. It overrides all but the protocol.
    for path in OF_THE_SYSTEM {
        check_file(Path::new(path), &["protocol", "pipe"], 0)?;
    }
    home.map_or(Ok(()), |home| check_file(&home.join(".my.cnf"), WHERE, 0))
}

fn check_file(path: &Path, options: &[&str], depth: usize) -> Result<()> {
    // Clients ignore files that they cannot read. A user may keep the file elsewhere, and link it.
    let Ok(path) = fs_err::canonicalize(path) else { return Ok(()) };
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let Ok(Some(text)) = Directory::open(above).and_then(|above| above.read_to_string(name, SMALL_BYTES)) else {
        return Ok(());
    };
    let mut is_for_clients = false;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_for_clients = is_of_clients(group.0.trim());
        } else if let Some(directive) = line.strip_prefix('!') {
            if depth < DEEPEST {
                included(directive).iter().try_for_each(|file| check_file(file, options, depth + 1))?;
            }
        } else if is_for_clients && let Some(option) = leads_elsewhere(line, options) {
            return Err(Error::OptionFile { path, option });
        }
    }
    Ok(())
}

fn is_of_clients(group: &str) -> bool {
    let tool = group.strip_prefix("mysql").or_else(|| group.strip_prefix("mariadb-"));
    CLIENTS.contains(&group) || tool.is_some_and(|tool| TOOLS.contains(&tool))
}

fn included(directive: &str) -> Vec<PathBuf> {
    if let Some(directory) = directive.strip_prefix("includedir") {
        let directory = Path::new(directory.trim());
        let entries = Directory::open(directory).and_then(|directory| directory.entries()).unwrap_or_default();
        let files = entries.into_iter().map(|entry| directory.join(entry.name));
        return files.filter(|file| file.extension().is_some_and(|end| end == "cnf")).collect();
    }
    directive.strip_prefix("include").map(|file| PathBuf::from(file.trim())).into_iter().collect()
}

/// Returns the member of `options` that a line sets to lead elsewhere. Names may be shortened, with `_` for `-`.
fn leads_elsewhere(line: &str, options: &[&str]) -> Option<String> {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim().replace('_', "-").to_ascii_lowercase();
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let value = value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    let option = options.iter().find(|option| name.len() > 1 && option.starts_with(name))?;
    // Clients use the socket for `localhost` and by default; by TCP, `localhost` is this machine.
    let is_here = match *option {
        "host" => value.eq_ignore_ascii_case("localhost"),
        "protocol" => value.eq_ignore_ascii_case("socket"),
        _ => false,
    };
    (!is_here).then(|| (*option).to_owned())
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn files_that_name_another_server_are_found() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(".my.cnf");
        let found = |text: &str| {
            fs::write(&file, text).unwrap();
            match check_file(&file, WHERE, 0) {
                Err(Error::OptionFile { option, .. }) => Some(option),
                other => other.map(|()| None).unwrap(),
            }
        };
        for (text, option) in [
            ("[client]\nhost = prod\n", "host"),
            ("[mysql]\n# no\nsocket=/run/mysqld/mysqld.sock", "socket"),
            ("[mysqld]\nport=1\n[client]\nuser=me\n  port = 3307 # dev\n", "port"),
            ("[mariadb-client]\nprotocol=tcp", "protocol"),
            ("[client]\nloose_host=prod", "host"),
            ("[client]\nhos=prod", "host"),
        ] {
            assert_eq!(found(text).as_deref(), Some(option), "{text}");
        }
        for text in [
            "",
            "host=prod",
            "[client]\nuser=me\npassword=secret\n",
            "[mysqld]\nsocket=/x\nport=3306\n",
            "[clientprod]\nhost=prod\n",
            "[client]\nhost=localhost\n#host=prod\n",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        let more = place.path().join("more");
        fs::create_dir(&more).unwrap();
        fs::write(more.join("a.cnf"), "[client]\nsocket=/x\n").unwrap();
        assert_eq!(found(&format!("!includedir {}\n", more.display())).as_deref(), Some("socket"));
        assert_eq!(found(&format!("!include {}\n", more.join("a.cnf").display())).as_deref(), Some("socket"));
        // One that includes itself ends too.
        assert_eq!(found(&format!("!include {}\n", file.display())), None);
    }
}
