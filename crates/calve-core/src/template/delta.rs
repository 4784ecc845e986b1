//! The difference between two portable manifests, as it travels: the added and changed lines, and the removed paths.

use std::cmp::Ordering;

use super::manifest::{name, order};
use super::portable::{PORTABLE, PortabilityObstacle, PortableEntry, PortableKind, PortableTemplate};
use super::portable::{each_line, fields, first_name, is_same_file, position};

const DELTA: &str = "#mtree\n# calve portable delta 1\n# base ";
const UNREADABLE: &str = "is not a delta that this version can read";
const KEY_LENGTH: usize = 64;
const REMOVED: &str = "removed";

/// The difference between a template and its base.
#[derive(Debug, Clone)]
pub struct PortableDelta {
    /// The key of the base.
    pub base: String,
    /// The new and changed entries, in manifest order, with the delta's text. A further name of a file not among them
    /// is a file here.
    pub changed: PortableTemplate,
    /// The paths of the base that are gone, in the same order.
    pub removed: Vec<Vec<u8>>,
}

/// The paths and lines of a manifest, in order.
type Lines<'t> = Vec<(&'t [u8], &'t str)>;

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    order(a).cmp(order(b))
}

impl PortableDelta {
    /// Returns the delta from `base` to `new`. Fails as [`PortableDelta::parse`] does: never for two valid templates.
    pub fn between(base: &PortableTemplate, new: &PortableTemplate) -> Result<Self, PortabilityObstacle> {
        let mut text = format!("{DELTA}{}\n", base.key());
        let mut old = base.entries.iter().peekable();
        let gone = |entry: &PortableEntry, text: &mut String| {
            name(&entry.path, text);
            text.extend([" ", REMOVED, "\n"]);
        };
        for entry in &new.entries {
            while let Some(old) = old.next_if(|old| compare(&old.path, &entry.path).is_lt()) {
                gone(old, &mut text);
            }
            let line = &new.text[entry.line.clone()];
            let same = old.next_if(|old| old.path == entry.path);
            if same.is_none_or(|old| base.text[old.line.clone()] != *line) {
                text.push_str(line);
            }
        }
        old.for_each(|old| gone(old, &mut text));
        Self::parse(text)
    }

    /// Parses text from another machine, each line by itself. [`PortableTemplate::with`] checks the resulting tree.
    /// Fails if the text is not a delta, has a path twice, or has paths out of order.
    pub fn parse(text: String) -> Result<Self, PortabilityObstacle> {
        let unreadable = || PortabilityObstacle { path: Vec::new(), what: UNREADABLE };
        let base = text.strip_prefix(DELTA).and_then(|rest| rest.get(..KEY_LENGTH)).ok_or_else(unreadable)?.to_owned();
        let head = format!("{DELTA}{base}\n");
        let (mut changed, mut removed): (Vec<PortableEntry>, Vec<Vec<u8>>) = Default::default();
        each_line(&head, &text, UNREADABLE, |path, keywords, line| {
            if keywords == REMOVED {
                removed.push(path.to_vec());
                return Ok(());
            }
            let mut entry = fields(path, keywords, line).ok_or("has a line that is not valid")?;
            let first = first_name(keywords).and_then(|first| position(&changed, &first));
            if let Some(first) = first.filter(|&first| is_same_file(&changed[first], &entry)) {
                entry.kind = PortableKind::HardLink(first);
            }
            changed.push(entry);
            Ok(())
        })?;
        Ok(Self { base, changed: PortableTemplate { text, entries: changed }, removed })
    }

    fn apply<'t>(&'t self, base: Lines<'t>) -> Result<Lines<'t>, PortabilityObstacle> {
        let mut removed = self.removed.iter().peekable();
        let mut changed = self.changed.entries.iter().peekable();
        let line = |entry: &'t PortableEntry| (&*entry.path, &self.changed.text[entry.line.clone()]);
        let mut lines = Vec::with_capacity(base.len() + self.changed.entries.len());
        for (path, old) in base {
            while let Some(new) = changed.next_if(|new| compare(&new.path, path).is_lt()) {
                lines.push(line(new));
            }
            match changed.next_if(|new| new.path == path) {
                Some(new) => lines.push(line(new)),
                None if removed.next_if(|removed| *removed == path).is_some() => {}
                None => lines.push((path, old)),
            }
        }
        lines.extend(changed.map(line));
        match removed.next() {
            None => Ok(lines),
            Some(path) => Err(PortabilityObstacle { path: path.clone(), what: "is removed, and is not there" }),
        }
    }
}

impl PortableTemplate {
    /// Applies the deltas in order, and checks the resulting manifest like any other. Fails if a delta has another base
    /// or removes a path that the base lacks, if the manifest would exceed `limit_bytes`, and as
    /// [`PortableTemplate::parse`] does.
    pub fn with(&self, deltas: &[PortableDelta], limit_bytes: u64) -> Result<Self, PortabilityObstacle> {
        let refused = |what| PortabilityObstacle { path: Vec::new(), what };
        let line = |entry: &PortableEntry| &self.text[entry.line.clone()];
        let mut lines: Lines<'_> = self.entries.iter().map(|entry| (&*entry.path, line(entry))).collect();
        for delta in deltas {
            if delta.base != key_of(&lines) {
                return Err(refused("is against another manifest"));
            }
            lines = delta.apply(lines)?;
        }
        let length = lines.iter().map(|(_, line)| line.len()).sum::<usize>() + PORTABLE.len();
        if length as u64 > limit_bytes {
            return Err(refused("makes a manifest that is too large"));
        }
        let mut text = String::with_capacity(length);
        text.push_str(PORTABLE);
        lines.iter().for_each(|(_, line)| text.push_str(line));
        Self::parse(text)
    }
}

fn key_of(lines: &Lines<'_>) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(PORTABLE.as_bytes());
    for (_, line) in lines {
        hash.update(line.as_bytes());
    }
    hash.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_BYTES: u64 = 1 << 20;

    fn file(path: &str, hash: &str, more: &str) -> String {
        format!("{path} type=file mode=0644 time=1.000000000 size=1 blake3digest={}{more}\n", hash.repeat(32))
    }

    fn directory(path: &str) -> String {
        format!("{path} type=dir mode=0755 time=1.000000000\n")
    }

    fn template(lines: &[String]) -> PortableTemplate {
        PortableTemplate::parse(format!("{PORTABLE}{}{}", directory("."), lines.concat())).unwrap()
    }

    fn refusal(base: &PortableTemplate, lines: &str) -> &'static str {
        let text = format!("{DELTA}{}\n{lines}", base.key());
        let delta = PortableDelta::parse(text);
        delta.and_then(|delta| base.with(&[delta], LIMIT_BYTES)).unwrap_err().what
    }

    #[test]
    fn deltas_make_the_new_templates_of_the_first() {
        let versions = [
            template(&[file("./a", "01", ""), directory("./d"), file("./d/x", "02", ""), file("./d/y", "02", "")]),
            // A directory becomes a file, a file a directory, and a file gets a further name.
            template(&[
                directory("./a"),
                file("./a/x", "03", ""),
                file("./d", "02", ""),
                file("./e", "02", " hardlink=./d"),
            ]),
            template(&[
                directory("./a"),
                file("./a/x", "04", ""),
                file("./d", "02", ""),
                file("./f", "02", " hardlink=./d"),
            ]),
        ];
        let deltas: Vec<_> =
            versions.windows(2).map(|pair| PortableDelta::between(&pair[0], &pair[1]).unwrap()).collect();
        for last in 0..=2 {
            assert_eq!(versions[0].with(&deltas[..last], LIMIT_BYTES).unwrap().text, versions[last].text);
        }
        assert_eq!(deltas[0].removed, [b"d/x", b"d/y"]);
        // The first name of `e` is in its own delta, that of `f` is not.
        let kinds = |delta: &PortableDelta| delta.changed.entries.last().unwrap().kind.clone();
        assert_eq!(kinds(&deltas[0]), PortableKind::HardLink(2));
        assert_eq!(kinds(&deltas[1]), PortableKind::File { size: 1, hash: [2; 32] });
        assert_eq!(versions[0].with(&deltas[1..], LIMIT_BYTES).unwrap_err().what, "is against another manifest");
        let nothing = PortableDelta::between(&versions[0], &versions[0]).unwrap();
        assert!(nothing.changed.entries.is_empty() && nothing.removed.is_empty());
    }

    #[test]
    fn a_delta_leads_to_no_tree_that_a_manifest_could_not_have() {
        let base = template(&[file("./a", "01", ""), directory("./d"), file("./d/x", "02", "")]);
        for (lines, what) in [
            (file("./../evil", "01", ""), "has a name that is not allowed"),
            (file(".//etc", "01", ""), "has a name that is not allowed"),
            (file("./a/x", "01", ""), "is not in a directory of the template"),
            ("./d removed\n".into(), "is not in a directory of the template"),
            (file("./d", "01", ""), "is not in a directory of the template"),
            ("./nothing removed\n".into(), "is removed, and is not there"),
            ("./../evil removed\n".into(), "is removed, and is not there"),
            (". removed\n".into(), "is not below a root"),
            ([file("./c", "01", ""), file("./b", "01", "")].concat(), "is not in order"),
            ([file("./c", "01", ""), "./c removed\n".into()].concat(), "is not in order"),
            (file("./a", "01", "").replace("0644", "4644"), "has a line that is not valid"),
            (file("./b", "01", " hardlink=./d/x"), "is a hard link to nothing"),
            (file("./b", "01", " hardlink=./nothing"), "is a hard link to nothing"),
            (directory("./b").replace("\n", " hardlink=./a\n"), "is a hard link to nothing"),
        ] {
            assert_eq!(refusal(&base, &lines), what, "{lines}");
        }
        let many: String = (0..20_000).map(|number| file(&format!("./b{number:05}"), "01", "")).collect();
        assert_eq!(refusal(&base, &many), "makes a manifest that is too large");
        for text in [DELTA, PORTABLE, "", &format!("{DELTA}{}", "é".repeat(40))] {
            assert!(PortableDelta::parse(text.into()).is_err(), "{text}");
        }
    }
}
