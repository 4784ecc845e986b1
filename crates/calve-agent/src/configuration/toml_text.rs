//! Tables of a TOML text, added at its end and taken away again. Comments and everything else stay.
//!
//! Before anything is written, what the text then says is compared with what it said: a key that somebody added to one of these tables
//! would come to belong to another one.

use toml::{Table, Value};

use super::file::{Edit, FileLeftReason};

/// Adds a text that defines `names`, each with dots between the tables that lead to it.
pub(super) fn with(before: Option<&str>, own: &str, names: &[&str]) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Write(own.to_owned())) };
    let (there, wanted) = (parsed(text)?, parsed(own)?);
    if differing(&there, &wanted, names).is_none() {
        return Ok(Edit::Fine);
    }
    let taken = names.iter().filter(|name| value(&there, name).is_some());
    if let Some(taken) = taken.max_by_key(|name| value(&there, name) != value(&wanted, name)) {
        return Err(FileLeftReason::Taken((*taken).to_owned()));
    }
    // A key without a table belongs to the table before it.
    if !own.starts_with('[') && !text.is_empty() {
        return Err(FileLeftReason::Taken("its first table".into()));
    }
    let separator = if text.is_empty() { "" } else { "\n" };
    let after = format!("{text}{separator}{own}");
    // `mcp_servers = {…}` cannot be added to.
    parsed(&after)?;
    Ok(Edit::Write(after))
}

/// Takes the text away, as it was added.
pub(super) fn without(before: Option<&str>, own: &str, names: &[&str]) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Fine) };
    if text == own {
        return Ok(Edit::Remove);
    }
    let (there, wanted) = (parsed(text)?, parsed(own)?);
    // Others' files may have a `version` too.
    let is_own = |name: &&&str| name.ends_with(".calve") || text.contains(own);
    let Some(name) = names.iter().filter(is_own).find(|name| value(&there, name).is_some()) else {
        return Ok(Edit::Fine);
    };
    let taken = |name: &str| FileLeftReason::Taken(name.to_owned());
    if let Some(name) = differing(&there, &wanted, names) {
        return Err(taken(name));
    }
    let (ahead, behind) = text.split_once(own).ok_or_else(|| taken(name))?;
    // The line break before it: of an empty line, or one that the last line did not have.
    let is_added = behind.is_empty() || ahead.ends_with("\n\n");
    let ahead = ahead.strip_suffix('\n').filter(|_| is_added).unwrap_or(ahead);
    let left = format!("{ahead}{behind}");
    let rest = parsed(&left)?;
    let is_gone = names.iter().all(|name| value(&rest, name).is_none());
    match is_gone && others(rest, names) == others(there, names) {
        true => Ok(Edit::Write(left)),
        false => Err(taken(name)),
    }
}

fn parsed(text: &str) -> Result<Table, FileLeftReason> {
    text.parse().map_err(|error: toml::de::Error| FileLeftReason::Mistake(error.message().to_owned()))
}

fn value<'t>(table: &'t Table, name: &str) -> Option<&'t Value> {
    match name.split_once('.') {
        None => table.get(name),
        Some((first, rest)) => value(table.get(first)?.as_table()?, rest),
    }
}

/// Returns the first of these names that has another value than is wanted, or none.
fn differing<'n>(there: &Table, wanted: &Table, names: &[&'n str]) -> Option<&'n str> {
    names.iter().find(|name| value(there, name) != value(wanted, name)).copied()
}

/// Returns what is not below these names. A table that led only there is gone too.
fn others(mut table: Table, names: &[&str]) -> Table {
    names.iter().for_each(|name| take(&mut table, name));
    table
}

fn take(table: &mut Table, name: &str) {
    let Some((first, rest)) = name.split_once('.') else {
        table.remove(name);
        return;
    };
    let Some(inner) = table.get_mut(first).and_then(Value::as_table_mut) else { return };
    take(inner, rest);
    if inner.is_empty() {
        table.remove(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "[servers.calve]\ncommand = \"calve\"\n";

    #[test]
    fn what_was_added_is_taken_away_byte_for_byte() {
        for text in ["", "a = 1\n", "a = 1", "# mine\n[servers.other]\nx = 1 # y\n\n"] {
            let Ok(Edit::Write(after)) = with(Some(text), OWN, &["servers.calve"]) else { panic!("{text}") };
            assert!(value(&parsed(&after).unwrap(), "servers.calve").is_some(), "{after}");
            assert_eq!(with(Some(&after), OWN, &["servers.calve"]), Ok(Edit::Fine));
            let expected = if text.is_empty() { Edit::Remove } else { Edit::Write(text.to_owned()) };
            assert_eq!(without(Some(&after), OWN, &["servers.calve"]), Ok(expected), "{after:?}");
            let more = format!("{after}[later]\n");
            assert!(matches!(without(Some(&more), OWN, &["servers.calve"]), Ok(Edit::Write(_))), "{more:?}");
        }
    }

    #[test]
    fn what_others_have_changed_or_what_cannot_be_read_is_left_alone() {
        let taken = FileLeftReason::Taken("servers.calve".into());
        let edited = "[servers.calve]\ncommand = \"/opt/calve\"\n";
        assert_eq!(with(Some(edited), OWN, &["servers.calve"]), Err(taken.clone()));
        assert_eq!(without(Some(edited), OWN, &["servers.calve"]), Err(taken));
        for text in ["a =", "servers = {x = 1}\n"] {
            assert!(matches!(with(Some(text), OWN, &["servers.calve"]), Err(FileLeftReason::Mistake(_))), "{text}");
        }
        assert_eq!(
            with(Some("[x]\n"), "version = 1\n", &["version"]),
            Err(FileLeftReason::Taken("its first table".into()))
        );
    }

    #[test]
    fn no_key_of_others_comes_into_another_table_or_goes() {
        let taken = Err(FileLeftReason::Taken("servers.calve".into()));
        for text in [
            format!("[servers.other]\nx = 1\n\n{OWN}timeout = 20\n"),
            format!("{OWN}timeout = 20\n"),
            format!("{OWN}\n[servers.calve.env]\nA = \"1\"\n"),
            // Calve's values, in other words: nothing is to be done, but it cannot be found either.
            "servers.calve = { command = \"calve\", more = 1 }\n".to_owned(),
        ] {
            assert_eq!(without(Some(&text), OWN, &["servers.calve"]), taken, "{text}");
            assert_eq!(with(Some(&text), OWN, &["servers.calve"]), taken, "{text}");
        }
        let inline = "servers.calve = { command = 'calve' }\n";
        assert_eq!(with(Some(inline), OWN, &["servers.calve"]), Ok(Edit::Fine));
        assert_eq!(without(Some(inline), OWN, &["servers.calve"]), taken);
        // Its text is in a comment and in a string: it is not there.
        for text in [format!("#{OWN}"), format!("a = '''\n{OWN}'''\n")] {
            assert!(matches!(with(Some(&text), OWN, &["servers.calve"]), Ok(Edit::Write(_))), "{text}");
            assert_eq!(without(Some(&text), OWN, &["servers.calve"]), Ok(Edit::Fine), "{text}");
        }
    }

    #[test]
    fn a_file_of_calves_alone_with_another_script_is_left_alone() {
        let own = "version = 1\n\n[setup]\nscript = \"calve\"\n";
        let names = ["version", "setup"];
        assert_eq!(with(Some(own), own, &names), Ok(Edit::Fine));
        let more = format!("{own}cache = true\n");
        assert_eq!(with(Some(&more), own, &names), Err(FileLeftReason::Taken("setup".into())));
        assert_eq!(without(Some(&more), own, &names), Err(FileLeftReason::Taken("setup".into())));
        let Ok(Edit::Write(left)) = without(Some(&format!("{own}\n[later]\nx = 1\n")), own, &names) else { panic!() };
        assert_eq!(left, "\n[later]\nx = 1\n");
        assert_eq!(without(Some("version = 1\n"), own, &names), Ok(Edit::Fine));
    }
}
