//! Adds and removes tables of a TOML text. Everything else keeps its comments, order and format.

use toml::Value;
use toml_edit::{DocumentMut, Item, Table};

use super::edit::{Edit, FileLeftReason};

/// Adds the values of `names` in `own` to a text. A name is a dotted path of tables.
pub(super) fn with(before: Option<&str>, own: &str, names: &[&str]) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Write(own.to_owned())) };
    let ((mut document, written), wanted) = (read(text)?, parsed(own)?);
    let (there, own) = (values(&document), values(&wanted));
    if differing(&there, &own, names).is_none() {
        return Ok(Edit::Fine);
    }
    let taken = names.iter().filter(|name| value(&there, name).is_some());
    if let Some(taken) = taken.max_by_key(|name| value(&there, name) != value(&own, name)) {
        return Err(FileLeftReason::Taken((*taken).to_owned()));
    }
    for name in names {
        insert(&mut document, &wanted, name)?;
    }
    Edit::write(text, written(&document))
}

/// Removes `names`, and tables that become empty.
pub(super) fn without(before: Option<&str>, own: &str, names: &[&str]) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Fine) };
    let ((mut document, written), wanted) = (read(text)?, parsed(own)?);
    let there = values(&document);
    // Other programs' files may have a `version` too. Only Calve's files have the last name.
    if names.last().is_none_or(|name| value(&there, name).is_none()) {
        return Ok(Edit::Fine);
    }
    if let Some(name) = differing(&there, &values(&wanted), names) {
        return Err(FileLeftReason::Taken(name.to_owned()));
    }
    names.iter().for_each(|name| remove(&mut document, name));
    // An inline table keeps it, for example.
    let after = values(&document);
    if let Some(name) = names.iter().find(|name| value(&after, name).is_some()) {
        return Err(FileLeftReason::Taken((*name).to_owned()));
    }
    Edit::leave(text, written(&document), document.is_empty(), &["#"])
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Parses a text. Also returns a function that restores its byte order mark and line endings, which the syntax tree
/// does not keep. Fails if an edit would change more than Calve's part.
fn read(text: &str) -> Result<(DocumentMut, impl Fn(&DocumentMut) -> String), FileLeftReason> {
    let has_crlf = has_crlf(text);
    let is_open = !text.is_empty() && !text.ends_with('\n');
    let mut plain = text.trim_start_matches(BYTE_ORDER_MARK).to_owned();
    if has_crlf {
        plain = plain.replace("\r\n", "\n");
    }
    if is_open {
        plain.push('\n');
    }
    let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
    let written = move |document: &DocumentMut| {
        let mut plain = document.to_string();
        if is_open && plain.ends_with('\n') {
            plain.pop();
        }
        let lines = if has_crlf { plain.replace('\n', "\r\n") } else { plain };
        format!("{mark}{lines}")
    };
    let document = parsed(&plain)?;
    if written(&document) == text { Ok((document, written)) } else { Err(FileLeftReason::Form) }
}

fn has_crlf(text: &str) -> bool {
    let line_ends = text.matches('\n').count();
    line_ends > 0 && text.matches("\r\n").count() == line_ends
}

fn parsed(text: &str) -> Result<DocumentMut, FileLeftReason> {
    text.parse().map_err(|error: toml_edit::TomlError| FileLeftReason::Mistake(error.message().to_owned()))
}

/// Returns the values alone, without formatting.
fn values(document: &DocumentMut) -> toml::Table {
    document.to_string().parse().expect("what was parsed once is parsed again")
}

fn value<'t>(table: &'t toml::Table, name: &str) -> Option<&'t Value> {
    match name.split_once('.') {
        None => table.get(name),
        Some((first, rest)) => value(table.get(first)?.as_table()?, rest),
    }
}

fn differing<'n>(there: &toml::Table, wanted: &toml::Table, names: &[&'n str]) -> Option<&'n str> {
    names.iter().find(|name| value(there, name) != value(wanted, name)).copied()
}

fn insert(to: &mut Table, from: &Table, name: &str) -> Result<(), FileLeftReason> {
    let Some((first, rest)) = name.split_once('.') else {
        let mut item = from[name].clone();
        if let Item::Table(table) = &mut item {
            // Append it at the end, below an empty line.
            table.set_position(None);
            table.decor_mut().clear();
        }
        to.insert(name, item);
        return Ok(());
    };
    let above = to.entry(first).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let taken = || FileLeftReason::Taken(first.to_owned());
    insert(above.as_table_mut().ok_or_else(taken)?, from[first].as_table().ok_or_else(taken)?, rest)
}

fn remove(table: &mut Table, name: &str) {
    let Some((first, rest)) = name.split_once('.') else {
        table.remove(name);
        return;
    };
    let Some(inner) = table.get_mut(first).and_then(Item::as_table_mut) else { return };
    remove(inner, rest);
    // A table with its own header is the user's.
    if inner.is_empty() && inner.is_implicit() {
        table.remove(first);
    }
}

#[cfg(test)]
mod tests {
    use calve_testkit::SplitMix64;

    use super::*;

    const OWN: &str = "[servers.calve]\ncommand = \"calve\"\n";
    const NAMES: &[&str] = &["servers.calve"];

    fn table(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    #[test]
    fn what_was_added_is_taken_away_byte_for_byte() {
        for text in [
            "a = 1\n",
            "# mine\n[servers.other]\nx = 1 # y\n\n[later]\nz = [\n  1, # one\n]\n",
            "[servers]\n\n[servers.other]\n",
            "# mine\n[servers]\n",
            "[servers]\n\n[later]\n",
            "# only a comment\n",
            "[[x]]\na=1\n# end\n",
        ] {
            let Ok(Edit::Write(after)) = with(Some(text), OWN, NAMES) else { panic!("{text}") };
            assert_eq!(value(&table(&after), "servers.calve"), value(&table(OWN), "servers.calve"), "{after}");
            assert_eq!(with(Some(&after), OWN, NAMES), Ok(Edit::Fine));
            assert_eq!(without(Some(&after), OWN, NAMES), Ok(Edit::Write(text.to_owned())), "{after:?}");
            let more = format!("{after}\n[more]\n");
            assert_eq!(without(Some(&more), OWN, NAMES), Ok(Edit::Write(format!("{text}\n[more]\n"))), "{more:?}");
        }
        for nothing in [None, Some("")] {
            let Ok(Edit::Write(new)) = with(nothing, OWN, NAMES) else { panic!() };
            assert_eq!(without(Some(&new), OWN, NAMES), Ok(Edit::Remove), "{new}");
        }
    }

    /// Returns a text of random lines with random line endings.
    fn random_text(random: &mut SplitMix64) -> String {
        const LINES: [&str; 12] = [
            "",
            "  ",
            "# mine",
            "a.b = 1 # why",
            "c = [",
            "  1, 2 ]",
            "d = \"x\\ny\"",
            "e = '''",
            "text '''",
            "[servers.other]",
            "[[list]]",
            "\tf = {g = 1}",
        ];
        let mut pick = |most: usize| usize::try_from(random.below(most as u64)).unwrap();
        let mut text = String::from(["", "", "", "\u{feff}"][pick(4)]);
        let ends = [&["\n"][..], &["\r\n"], &["\n", "\r\n"], &["\r\n", "\n", "\r"]][pick(4)];
        for _ in 0..pick(7) {
            // Nothing occurs twice where the first try parses.
            text += LINES[pick(LINES.len())];
            text += ends[pick(ends.len())];
        }
        text + ["", "z = 1", "# end"][pick(3)]
    }

    #[test]
    fn what_is_not_calves_stays_byte_for_byte_however_lines_end() {
        let mut random = SplitMix64::new(7);
        let (mut edited, mut refused) = (0, 0);
        for _ in 0..5_000 {
            let text = random_text(&mut random);
            let after = match with(Some(&text), OWN, NAMES) {
                Ok(Edit::Write(after)) => after,
                Err(FileLeftReason::Form) => {
                    refused += 1;
                    continue;
                }
                Err(FileLeftReason::Mistake(_)) => continue,
                other => panic!("{text:?}: {other:?}"),
            };
            edited += usize::from(text.contains("\r\n"));
            let own = if has_crlf(&text) { OWN.trim_end().replace('\n', "\r\n") } else { OWN.trim_end().to_owned() };
            let (before, behind) = after.split_once(&own).unwrap_or_else(|| panic!("{text:?}: {after:?}"));
            // An empty line is above it, and nothing of the others' is in another place.
            let others = [before, behind].concat();
            let line_ends = |text: &str| text.replace(['\r', '\n'], "");
            assert_eq!(line_ends(&others), line_ends(&text), "{after:?}");
            let left = match without(Some(&after), OWN, NAMES) {
                Ok(Edit::Write(left)) => left,
                Ok(Edit::Remove) => text.trim_matches(['\u{feff}', ' ', '\r', '\n']).to_owned(),
                other => panic!("{after:?}: {other:?}"),
            };
            assert!(left == text || left.is_empty(), "{text:?}: {after:?}, {left:?}");
        }
        assert!(edited > 50 && refused > 20, "{edited} edited, {refused} refused");
    }

    #[test]
    fn what_others_have_changed_or_what_cannot_be_read_is_left_alone() {
        let taken = FileLeftReason::Taken("servers.calve".into());
        let edited = "[servers.calve]\ncommand = \"/opt/calve\"\n";
        assert_eq!(with(Some(edited), OWN, NAMES), Err(taken.clone()));
        assert_eq!(without(Some(edited), OWN, NAMES), Err(taken));
        assert!(matches!(with(Some("a ="), OWN, NAMES), Err(FileLeftReason::Mistake(_))));
        for text in ["servers = {x = 1}\n", "servers = 1\n", "[[servers]]\n"] {
            assert_eq!(with(Some(text), OWN, NAMES), Err(FileLeftReason::Taken("servers".into())), "{text}");
        }
    }

    #[test]
    fn no_key_and_no_comment_of_others_goes() {
        let taken = Err(FileLeftReason::Taken("servers.calve".into()));
        for text in [
            format!("[servers.other]\nx = 1\n\n{OWN}timeout = 20\n"),
            format!("{OWN}timeout = 20\n"),
            format!("{OWN}\n[servers.calve.env]\nA = \"1\"\n"),
            "servers.calve = { command = \"calve\", more = 1 }\n".to_owned(),
        ] {
            assert_eq!(without(Some(&text), OWN, NAMES), taken, "{text}");
            assert_eq!(with(Some(&text), OWN, NAMES), taken, "{text}");
        }
        for text in [format!("[a]\n\n# why\n{OWN}"), OWN.replace("\"\n", "\" # why\n")] {
            assert_eq!(without(Some(&text), OWN, NAMES), Err(FileLeftReason::Comments), "{text}");
        }
        // Calve's values, in other words.
        let inline = "servers.calve = { command = 'calve' }\na = 1\n";
        assert_eq!(with(Some(inline), OWN, NAMES), Ok(Edit::Fine));
        assert_eq!(without(Some(inline), OWN, NAMES), Ok(Edit::Write("a = 1\n".into())));
        let nested = "servers = { calve = { command = 'calve' } }\n";
        assert_eq!(without(Some(nested), OWN, NAMES), taken);
        // Its text is in a comment and in a string: it is not there.
        for text in [format!("#{OWN}"), format!("a = '''\n{OWN}'''\n")] {
            let is_there = value(&table(&text), "servers.calve").is_some();
            assert_eq!(matches!(with(Some(&text), OWN, NAMES), Ok(Edit::Write(_))), !is_there, "{text}");
        }
    }

    #[test]
    fn a_file_that_is_calves_alone() {
        let own = "version = 1\n\n[setup]\nscript = \"calve\"\n";
        let names = ["version", "setup"];
        assert_eq!(with(Some(own), own, &names), Ok(Edit::Fine));
        assert_eq!(without(Some(own), own, &names), Ok(Edit::Remove));
        let more = format!("{own}cache = true\n");
        assert_eq!(with(Some(&more), own, &names), Err(FileLeftReason::Taken("setup".into())));
        assert_eq!(without(Some(&more), own, &names), Err(FileLeftReason::Taken("setup".into())));
        let left = without(Some(&format!("{own}\n[later]\nx = 1\n")), own, &names);
        assert_eq!(left, Ok(Edit::Write("\n[later]\nx = 1\n".into())));
        assert_eq!(without(Some("version = 1\n"), own, &names), Ok(Edit::Fine));
        assert_eq!(with(Some("version = 1\n"), own, &names), Err(FileLeftReason::Taken("version".into())));
    }
}
