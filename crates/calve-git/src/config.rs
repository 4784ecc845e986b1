//! The project's configuration: `.calve.toml` at the root of a worktree, and `.calve.local.toml` beside it for one machine.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// The file that a project keeps in its repository.
pub const SHARED: &str = ".calve.toml";
/// The file for one machine. What it sets holds instead of what the other one sets.
pub const LOCAL: &str = ".calve.local.toml";

/// A configuration is a page, not a book.
const LARGEST_BYTES: u64 = 256 * 1024;

/// Every table that the files may have, with its keys. Whoever reads more from them adds it here: what is not listed is a mistake.
const TABLES: [(&str, &[&str]); 5] = [
    ("worktree", &["path", "include", "exclude", "secrets", "spares"]),
    ("hooks", &["post-add", "pre-remove"]),
    (DATABASE, &["standby"]),
    // Its keys are names that the project chooses.
    ("ports", &[]),
    (SERVICE, &["template", "env"]),
];
const SERVICE: &str = "services.NAME";
const DATABASE: &str = "db.NAME";

/// A pull request's file must not use up what all worktrees share.
const MOST_PORTS: usize = 32;
const MOST_SERVICES: usize = 8;

/// The contents of the two files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// `[worktree] path`: where new worktrees go, with `{repo}` and `{branch}` in it; relative to the main worktree.
    pub path: Option<String>,
    /// `[worktree] include`: only ignored entries that match are carried; gitignore syntax.
    pub include: Vec<String>,
    /// `[worktree] exclude`: entries that match are never carried; gitignore syntax.
    pub exclude: Vec<String>,
    /// `[worktree] secrets`: whether secret-looking files are carried.
    pub secrets: Option<Secrets>,
    /// `[worktree] spares`: how many spares of the worktree should be ready, and whether the file for one machine says so.
    pub spares: Option<SparesRequest>,
    /// `[hooks]`.
    pub hooks: Hooks,
    /// `[db.NAME] standby`: how many servers of the template NAME should wait.
    pub standbys: BTreeMap<String, usize>,
    /// `[ports]`: for each name the number that the main worktree should have.
    pub ports: BTreeMap<String, u16>,
    /// `[services.NAME]`: databases that each worktree has one of its own of.
    pub services: BTreeMap<String, ServiceConfig>,
}

/// A database of which each worktree has one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// `template`: what its data is cloned from; by default the template of the service's name.
    pub template: String,
    /// `env`: the variable with its URL; by default `NAME_URL`.
    pub variable: String,
}

/// How many spares of a worktree should be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct SparesRequest {
    pub count: usize,
    /// The user wants them. A file that the project shares can only propose them.
    pub is_own: bool,
}

/// The fate of ignored files that look like secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are carried like others.
    Carry,
    /// They stay where they are.
    Leave,
}

/// Commands that a project wants to be run, each as the text of a shell script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hooks {
    /// `post-add`: when a worktree is there.
    pub post_add: Option<String>,
    /// `pre-remove`: before a worktree goes.
    pub pre_remove: Option<String>,
}

impl Config {
    /// Reads both files at the root of a worktree. A file that is not there says nothing.
    pub fn load(worktree: &Path) -> Result<Config> {
        let mut config = Config::default();
        for name in [SHARED, LOCAL] {
            let path = worktree.join(name);
            if let Some(text) = read(&path)? {
                config.add(&path, &text)?;
            }
        }
        Ok(config)
    }

    /// Takes over what `text` sets. `path` is for messages.
    fn add(&mut self, path: &Path, text: &str) -> Result<()> {
        let at = ConfigText { path, text };
        let document = DeTable::parse(text).map_err(|error| at.error(error.span(), error.message()))?;
        for (key, value) in document.get_ref() {
            match key.get_ref().as_ref() {
                "worktree" => self.add_worktree(&at, value)?,
                "hooks" => self.add_hooks(&at, value)?,
                "db" => self.add_databases(&at, value)?,
                "ports" => self.add_ports(&at, value)?,
                "services" => self.add_services(&at, value)?,
                other => return Err(at.unknown_table(key.span(), other)),
            }
        }
        Ok(())
    }

    fn add_worktree(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (key, value) in at.table(value, "worktree")? {
            match key.get_ref().as_ref() {
                "path" => {
                    let template = at.string(value, "path")?;
                    check_template(&template).map_err(|reason| at.error(Some(value.span()), &reason))?;
                    self.path = Some(template);
                }
                "include" => self.include = at.strings(value, "include")?,
                "exclude" => self.exclude = at.strings(value, "exclude")?,
                "secrets" => {
                    self.secrets = Some(match at.string(value, "secrets")?.as_str() {
                        "carry" => Secrets::Carry,
                        "leave" => Secrets::Leave,
                        _ => return Err(at.error(Some(value.span()), "`secrets` is \"carry\" or \"leave\"")),
                    });
                }
                "spares" => {
                    let count = at.number(value, "spares")?;
                    self.spares = Some(SparesRequest { count, is_own: at.path.ends_with(LOCAL) });
                }
                other => return Err(at.unknown_key(key.span(), "worktree", other)),
            }
        }
        Ok(())
    }

    fn add_hooks(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (key, value) in at.table(value, "hooks")? {
            match key.get_ref().as_ref() {
                "post-add" => self.hooks.post_add = Some(at.string(value, "post-add")?),
                "pre-remove" => self.hooks.pre_remove = Some(at.string(value, "pre-remove")?),
                other => return Err(at.unknown_key(key.span(), "hooks", other)),
            }
        }
        Ok(())
    }

    fn add_databases(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (name, value) in at.table(value, DATABASE)? {
            for (key, value) in at.table(value, DATABASE)? {
                match key.get_ref().as_ref() {
                    "standby" => {
                        self.standbys.insert(name.get_ref().to_string(), at.number(value, "standby")?);
                    }
                    other => return Err(at.unknown_key(key.span(), DATABASE, other)),
                }
            }
        }
        Ok(())
    }

    fn add_ports(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (name, value) in at.table(value, "ports")? {
            let (span, name) = (name.span(), name.get_ref());
            if !is_plain_name(name) {
                return Err(
                    at.error(Some(span), "a port's name is small letters, digits and `-`, and begins with a letter")
                );
            }
            let number = at.number(value, name)?;
            let port = u16::try_from(number).ok().filter(|port| *port >= 1024);
            let port = port.ok_or_else(|| at.error(Some(value.span()), "a port is from 1024 to 65535"))?;
            self.ports.insert(name.to_string(), port);
            if self.ports.len() > MOST_PORTS {
                return Err(at.error(Some(span), &format!("`[ports]` has more than {MOST_PORTS} names")));
            }
        }
        Ok(())
    }

    fn add_services(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (name, value) in at.table(value, SERVICE)? {
            let (span, name) = (name.span(), name.get_ref());
            let wrong = |reason: &str| at.error(Some(span.clone()), reason);
            if !is_plain_name(name) || name.len() > 32 {
                return Err(wrong(
                    "a service's name is up to 32 small letters, digits and `-`, and begins with a letter",
                ));
            }
            let default = format!("{}_URL", name.to_ascii_uppercase().replace('-', "_"));
            let known = self.services.remove(name.as_ref());
            let mut service = known.unwrap_or_else(|| ServiceConfig { template: name.to_string(), variable: default });
            for (key, value) in at.table(value, SERVICE)? {
                match key.get_ref().as_ref() {
                    "template" => service.template = at.string(value, "template")?,
                    "env" => {
                        service.variable = at.string(value, "env")?;
                        if !is_url_variable(&service.variable) {
                            let reason = "`env` is capital letters, digits and `_`, and ends in _URL or _URI";
                            return Err(at.error(Some(value.span()), reason));
                        }
                    }
                    other => return Err(at.unknown_key(key.span(), SERVICE, other)),
                }
            }
            if let Some((other, _)) = self.services.iter().find(|(_, other)| other.variable == service.variable) {
                return Err(wrong(&format!("`{name}` has the same variable as `{other}`: {}", service.variable)));
            }
            self.services.insert(name.to_string(), service);
            if self.services.len() > MOST_SERVICES {
                return Err(wrong(&format!("there are more than {MOST_SERVICES} services")));
            }
        }
        Ok(())
    }
}

/// Returns whether it can be a variable with a URL. The ending keeps a project from setting variables that programs heed, like `PATH`.
fn is_url_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
        && (name.ends_with("_URL") || name.ends_with("_URI"))
        && name.len() <= 64
}

/// Returns whether it is made of a letter, and then letters, digits and `-`, all small: names that make different variables.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && name.len() <= 64
}

/// Fails for anything but `{repo}` and `{branch}` in braces, and without `{branch}`: every worktree would get the same place.
fn check_template(template: &str) -> std::result::Result<(), String> {
    if !template.contains("{branch}") {
        return Err("`path` needs `{branch}` in it: each worktree gets a place of its own".into());
    }
    let rest = template.replace("{branch}", "").replace("{repo}", "");
    if rest.contains(['{', '}']) {
        return Err("`path` may have `{repo}` and `{branch}` in braces, and nothing else".into());
    }
    if rest.contains(|c: char| c.is_control()) {
        return Err("`path` has a control character in it".into());
    }
    Ok(())
}

/// Finds the known name that differs from `name` by a slip or two. `None` if no name does.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known.iter().map(|known| (distance(&name.to_lowercase().replace('_', "-"), known), *known));
    near.filter(|(distance, known)| *distance <= 2 && *distance < known.len()).min().map(|(_, known)| known)
}

/// Returns how many characters have to be added, removed or changed (Wagner and Fischer, 1974).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    // A text that is longer than any name is far from all of them.
    for (at, c) in from.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (other, known) in to.iter().enumerate() {
            let changed = diagonal + usize::from(c != *known);
            diagonal = row[other + 1];
            row[other + 1] = changed.min(diagonal + 1).min(row[other] + 1);
        }
    }
    row[to.len()]
}

/// Reads the file, or returns `None` when there is none. Refuses anything that is no regular file before it is read.
fn read(path: &Path) -> Result<Option<String>> {
    let invalid = |reason: &str| Error::Config { path: path.to_path_buf(), line: 1, column: 1, reason: reason.into() };
    match fs_err::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(invalid("it is not a regular file")),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(LARGEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(invalid("it is larger than 256 KiB"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let text = String::from_utf8_lossy(&bytes[..valid]).into_owned();
            Err(ConfigText { path, text: &text }.error(Some(valid..valid), "it is not UTF-8"))
        }
    }
}

/// A file's text, to tell places in it.
struct ConfigText<'t> {
    path: &'t Path,
    text: &'t str,
}

impl ConfigText<'_> {
    fn error(&self, span: Option<Range<usize>>, reason: &str) -> Error {
        let (line, column) = self.line_and_column(span.map_or(0, |span| span.start));
        let path: PathBuf = self.path.to_path_buf();
        Error::Config { path, line, column, reason: reason.lines().collect::<Vec<_>>().join(", ") }
    }

    fn unknown_table(&self, span: Range<usize>, name: &str) -> Error {
        let shown: String = name.chars().flat_map(char::escape_debug).collect();
        let owner = TABLES.iter().find(|(_, keys)| keys.contains(&name));
        let tables = TABLES.map(|(table, _)| table);
        let instead = match (owner, nearest(name, &tables)) {
            (Some((table, _)), _) => format!("it belongs below `[{table}]`"),
            (None, Some(near)) => format!("did you mean `[{near}]`?"),
            (None, None) => format!("there are: {}", tables.map(|table| format!("[{table}]")).join(", ")),
        };
        self.error(Some(span), &format!("there is no `{shown}` at the top of the file; {instead}"))
    }

    fn unknown_key(&self, span: Range<usize>, table: &str, key: &str) -> Error {
        let shown: String = key.chars().flat_map(char::escape_debug).collect();
        let keys = TABLES.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, keys)| keys);
        let owner = TABLES.iter().find(|(_, keys)| keys.contains(&key));
        let instead = match (owner, nearest(key, keys)) {
            (Some((table, _)), _) => format!("`[{table}]` has"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => format!("it has: {}", keys.join(", ")),
        };
        self.error(Some(span), &format!("`[{table}]` has no `{shown}`; {instead}"))
    }

    /// Returns the line and the column of a byte, both from 1; columns count characters.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    fn table<'v, 'd>(&self, value: &'v Spanned<DeValue<'d>>, name: &str) -> Result<&'v DeTable<'d>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.error(Some(value.span()), &format!("`{name}` is a table: write `[{name}]` above its keys"))),
        }
    }

    fn string(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.error(Some(value.span()), &format!("`{name}` is a text in quotes"))),
        }
    }

    fn number(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<usize> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.error(Some(value.span()), &format!("`{name}` is a whole number")))
    }

    fn strings(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| self.string(value, name)).collect(),
            _ => Err(self.error(Some(value.span()), &format!("`{name}` is a list of texts: [\"a\", \"b\"]"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        let mut config = Config::default();
        config.add(Path::new(SHARED), text)?;
        Ok(config)
    }

    #[test]
    fn what_is_set_is_taken_over() {
        let text = "[worktree]\npath = \"../{repo}-wt/{branch}\"\ninclude = ['.env', \"/x\"]\nsecrets = 'leave'\n[hooks]\npost-add = '''\nnpm ci\n'''\n";
        let mut config = parse(text).unwrap();
        assert_eq!(config.path.as_deref(), Some("../{repo}-wt/{branch}"));
        assert_eq!(config.include, [".env", "/x"]);
        assert_eq!(config.secrets, Some(Secrets::Leave));
        assert_eq!(config.hooks.post_add.as_deref(), Some("npm ci\n"));
        for (file, count, is_own) in [(SHARED, 2, false), (LOCAL, 0, true)] {
            config.add(Path::new(file), &format!("worktree.spares = {count}")).unwrap();
            assert_eq!(config.spares, Some(SparesRequest { count, is_own }));
        }
        config.add(Path::new(SHARED), "db.shop.standby = 4\n[db.'a b']\nstandby = 0x2").unwrap();
        config.add(Path::new(LOCAL), "[db.shop]\nstandby = 0").unwrap();
        assert_eq!(config.standbys, BTreeMap::from([("a b".into(), 2), ("shop".into(), 0)]));
        config.add(Path::new(SHARED), "[ports]\nweb = 3000\nadmin-2 = 8_000").unwrap();
        config.add(Path::new(LOCAL), "ports.web = 4000").unwrap();
        assert_eq!(config.ports, BTreeMap::from([("admin-2".into(), 8000), ("web".into(), 4000)]));
        config
            .add(Path::new(SHARED), "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n[services.job-queue]")
            .unwrap();
        config.add(Path::new(LOCAL), "services.db.template = 'small'").unwrap();
        let service =
            |template: &str, variable: &str| ServiceConfig { template: template.into(), variable: variable.into() };
        assert_eq!(config.services["db"], service("small", "DATABASE_URL"));
        assert_eq!(config.services["job-queue"], service("job-queue", "JOB_QUEUE_URL"));
        config.add(Path::new(LOCAL), "worktree.include = []\nhooks.pre-remove = 'true'").unwrap();
        assert!(config.include.is_empty());
        assert_eq!(config.secrets, Some(Secrets::Leave));
        assert_eq!(config.hooks.pre_remove.as_deref(), Some("true"));
    }

    #[test]
    fn mistakes_are_told_with_line_and_column() {
        for (text, line, column, word) in [
            ("[worktree]\npath = ", 2, 8, "quoted"),
            ("[worktree]\n\"ä\" = 1\n", 2, 1, "has no"),
            ("[worktree]\n  path = 'x'", 2, 10, "{branch}"),
            ("[worktree]\npath = '{branch}{user}'", 2, 8, "nothing else"),
            ("[worktree]\ninclude = ['a', 7]", 2, 17, "text"),
            ("[worktree]\nspares = 'two'", 2, 10, "whole number"),
            ("spares = 1", 1, 1, "below `[worktree]`"),
            ("hooks = 7", 1, 9, "table"),
            ("[hooks]\n\npost_add = 'x'", 3, 1, "did you mean `post-add`?"),
            ("[hooks]\npost-remove = 'x'", 2, 1, "has no"),
            ("[hooks]\npost-add = ['x']", 2, 12, "text in quotes"),
            ("[hooks.post-add]\nrun = 'x'", 1, 1, "text in quotes"),
            ("secrets = 'leave'\n", 1, 1, "below `[worktree]`"),
            ("[worktrees]\nsecrets = 'leave'", 1, 2, "did you mean `[worktree]`?"),
            ("[hook]\npost-add = 'x'", 1, 2, "did you mean `[hooks]`?"),
            ("[worktree]\n[[data]]\nport = 1", 2, 3, "[worktree], [hooks], [db.NAME], [ports]"),
            ("[worktree]\n[[db]]\nport = 1", 2, 1, "table"),
            ("[db]\nstandby = 1", 2, 11, "table"),
            ("[db.shop]\nstandbys = 1", 2, 1, "did you mean `standby`?"),
            ("[db.shop]\nstandby = -1", 2, 11, "whole number"),
            ("[db.shop]\nstandby = '4'", 2, 11, "whole number"),
            ("standby = 1", 1, 1, "below `[db.NAME]`"),
            ("services = 1", 1, 12, "table"),
            ("[services]\ndb = 'shop'", 2, 6, "table"),
            ("[services.db]\ntemplates = 'shop'", 2, 1, "did you mean `template`?"),
            ("[services.db]\ntemplate = 7", 2, 12, "text in quotes"),
            ("[services.db]\nenv = 'PATH'", 2, 7, "ends in _URL or _URI"),
            ("[services.db]\nenv = 'database_URL'", 2, 7, "capital letters"),
            ("[services.Db]", 1, 11, "small letters"),
            ("[services.a]\nenv = 'A_URL'\n[services.b]\nenv = 'A_URL'", 3, 11, "same variable as `a`"),
            ("template = 'shop'", 1, 1, "below `[services.NAME]`"),
            ("ports = 3000", 1, 9, "table"),
            ("[port]\nweb = 3000", 1, 2, "did you mean `[ports]`?"),
            ("[ports]\nweb = '3000'", 2, 7, "whole number"),
            ("[ports]\nweb = 80", 2, 7, "1024 to 65535"),
            ("[ports]\nweb = 65536", 2, 7, "1024 to 65535"),
            ("[ports]\nweb_a = 3000", 2, 1, "small letters"),
            ("[ports]\n'a b' = 3000", 2, 1, "small letters"),
            ("[worktree]\npost-add = 'x'", 2, 1, "`[hooks]` has"),
            ("[worktree]\nsecret = 'leave'", 2, 1, "did you mean `secrets`?"),
            ("[worktree]\nSecrets = 'leave'", 2, 1, "did you mean `secrets`?"),
            ("[worktree]\nsecrets.env = 'leave'", 2, 1, "text in quotes"),
            ("[[worktree]]\nsecrets = 'leave'", 1, 1, "table"),
            ("worktree = { secret = 'x' }", 1, 14, "secrets"),
            ("\"\" = 1", 1, 1, "[hooks]"),
            ("[worktree]\nsecrets = 'maybe'", 2, 11, "carry"),
        ] {
            match parse(text) {
                Err(Error::Config { line: l, column: c, reason, .. }) => {
                    assert_eq!((l, c), (line, column), "{text:?}: {reason}");
                    assert!(reason.contains(word), "{text:?}: {reason}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_configuration() {
        let all = b"[worktree]\npath = \"../{repo}-wt/{branch}\"\ninclude = ['.env', \"/x\"]\nsecrets = 'leave'\n[hooks]\npost-add = \'\'\'\nnpm ci\n\'\'\'\n";
        calve_testkit::fuzz(
            &[
                all,
                b"worktree.include = []\nhooks.pre-remove = 'true'",
                b"[db.x]\nstandby = 1",
                b"[ports]\nweb-1 = 3000",
                b"[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'",
            ],
            |input| {
                if let Ok(text) = std::str::from_utf8(input) {
                    drop(parse(text));
                }
            },
        );
    }
}
