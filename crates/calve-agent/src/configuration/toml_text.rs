//! A table of a TOML text, added at its end and taken away again. Comments and everything else stay.

use toml::de::{DeTable, DeValue};

use super::file::{LeftAlone, Outcome};

/// Adds a text that defines `names`, each with dots between the tables that lead to it.
pub(super) fn with(before: Option<&str>, own: &str, names: &[&str]) -> Result<Outcome, LeftAlone> {
    let Some(text) = before else { return Ok(Outcome::Write(own.to_owned())) };
    let there = parsed(text)?;
    if text.contains(own) {
        return Ok(Outcome::Fine);
    }
    if let Some(taken) = names.iter().find(|name| has(&there, name)) {
        return Err(LeftAlone::Taken((*taken).to_owned()));
    }
    // A key without a table belongs to the table before it.
    if !own.starts_with('[') && !text.is_empty() {
        return Err(LeftAlone::Taken("its first table".into()));
    }
    let separator = if text.is_empty() { "" } else { "\n" };
    let after = format!("{text}{separator}{own}");
    // `mcp_servers = {…}` cannot be added to.
    parsed(&after)?;
    Ok(Outcome::Write(after))
}

/// Takes the text away, as it was added.
pub(super) fn without(before: Option<&str>, own: &str, names: &[&str]) -> Result<Outcome, LeftAlone> {
    let Some(text) = before else { return Ok(Outcome::Fine) };
    if text == own {
        return Ok(Outcome::Remove);
    }
    let there = parsed(text)?;
    let Some((ahead, behind)) = text.split_once(own) else {
        let own_table = names.iter().find(|name| name.ends_with(".calve") && has(&there, name));
        return own_table.map_or(Ok(Outcome::Fine), |name| Err(LeftAlone::Taken((*name).to_owned())));
    };
    // The line break before it: of an empty line, or one that the last line did not have.
    let is_added = behind.is_empty() || ahead.ends_with("\n\n");
    let ahead = ahead.strip_suffix('\n').filter(|_| is_added).unwrap_or(ahead);
    let left = format!("{ahead}{behind}");
    parsed(&left)?;
    Ok(Outcome::Write(left))
}

fn parsed(text: &str) -> Result<DeTable<'_>, LeftAlone> {
    let table = DeTable::parse(text).map_err(|error| LeftAlone::Mistake(error.message().to_owned()))?;
    Ok(table.into_inner())
}

fn has(table: &DeTable<'_>, name: &str) -> bool {
    match name.split_once('.') {
        None => table.contains_key(name),
        Some((first, rest)) => match table.get(first).map(|found| found.get_ref()) {
            Some(DeValue::Table(inner)) => has(inner, rest),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "[servers.calve]\ncommand = \"calve\"\n";

    #[test]
    fn what_was_added_is_taken_away_byte_for_byte() {
        for text in ["", "a = 1\n", "a = 1", "# mine\n[servers.other]\nx = 1 # y\n\n"] {
            let Ok(Outcome::Write(after)) = with(Some(text), OWN, &["servers.calve"]) else { panic!("{text}") };
            assert!(has(&parsed(&after).unwrap(), "servers.calve"), "{after}");
            assert_eq!(with(Some(&after), OWN, &["servers.calve"]), Ok(Outcome::Fine));
            let expected = if text.is_empty() { Outcome::Remove } else { Outcome::Write(text.to_owned()) };
            assert_eq!(without(Some(&after), OWN, &["servers.calve"]), Ok(expected), "{after:?}");
            let more = format!("{after}[later]\n");
            assert!(matches!(without(Some(&more), OWN, &["servers.calve"]), Ok(Outcome::Write(_))), "{more:?}");
        }
    }

    #[test]
    fn what_others_have_changed_or_what_cannot_be_read_is_left_alone() {
        let taken = LeftAlone::Taken("servers.calve".into());
        let edited = "[servers.calve]\ncommand = \"/opt/calve\"\n";
        assert_eq!(with(Some(edited), OWN, &["servers.calve"]), Err(taken.clone()));
        assert_eq!(without(Some(edited), OWN, &["servers.calve"]), Err(taken));
        for text in ["a =", "servers = {x = 1}\n"] {
            assert!(matches!(with(Some(text), OWN, &["servers.calve"]), Err(LeftAlone::Mistake(_))), "{text}");
        }
        assert_eq!(with(Some("[x]\n"), "version = 1\n", &["version"]), Err(LeftAlone::Taken("its first table".into())));
    }
}
