//! The project's configuration: `.calve.toml` at a worktree's root, and `.calve.local.toml` beside it for one machine.

mod keys;
mod path;
mod recipe;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::keys::{DATABASE, SERVICE};
use crate::config::text::{ConfigText, read};
use crate::environment::env_file_inside;
use crate::error::Result;
use crate::paths::is_missing;
use crate::place::Place;
use crate::repository::provenance::provenance_of;
use crate::repository::{Repository, Worktree};
use crate::trust;

pub(crate) use keys::Author;
pub use keys::{LOCAL, SHARED};
use path::PathTemplate;
pub use recipe::{ENGINES, TemplateRecipe};
pub(crate) use text::read_bytes;

/// Keeps a pull request's file from using up what all worktrees share.
const MOST_PORTS: usize = 32;
const MOST_SERVICES: usize = 8;
/// The largest standby pool of `calve-db`.
pub const MOST_STANDBYS: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    pub(crate) path: Option<PathTemplate>,
    /// `[worktree] include`: carries only matching ignored entries; gitignore syntax.
    pub include: Vec<String>,
    /// `[worktree] exclude`: never carries matching entries; gitignore syntax.
    pub exclude: Vec<String>,
    pub(crate) is_exclude_local: bool,
    pub secrets: Option<Secrets>,
    pub spares: Option<SparesRequest>,
    /// `[worktree] env-file`: the file in each new worktree that gets its variables.
    pub env_file: Option<PathBuf>,
    pub hooks: Hooks,
    /// `[db.NAME] standby`: number of servers of the template NAME to keep waiting.
    pub standbys: BTreeMap<String, usize>,
    /// `[ports]`: the main worktree's number for each name.
    pub ports: BTreeMap<String, u16>,
    /// `[services.NAME]`: databases, one of its own for each worktree.
    pub services: BTreeMap<String, ServiceConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// `template`: the source of its data, by default the template with the service's name.
    pub template: String,
    /// `env`: the variable for its URL, by default `NAME_URL`.
    pub variable: String,
    /// `engine`, `create` and `inputs`: how to make its template, unless it is made by hand.
    pub recipe: Option<TemplateRecipe>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparesRequest {
    pub count: usize,
    /// The user asks for them. A file that the project shares can only propose them.
    pub is_own: bool,
}

/// The fate of ignored files that look like secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    #[default]
    Carry,
    Leave,
}

/// A project's commands, each the text of a shell script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    pub post_add: Option<String>,
    pub pre_remove: Option<String>,
}

impl Config {
    /// Loads a worktree's configuration, or where a pull request could have written it, the main one's. Bare: none.
    pub fn of_worktree(root: &Path) -> Result<Config> {
        // Asking git for the provenance is slow, and makes no difference then. Nothing of the tree runs either.
        if has_file_of_main(root) || !provenance_of(root)?.is_untrusted() {
            return Config::load(root);
        }
        Repository::open(root)?.main().map_or_else(|| Ok(Config::default()), Config::load)
    }

    /// Does the same as [`Config::of_worktree`], for a listed worktree, whose provenance is known.
    pub fn of_listed(worktree: &Worktree) -> Result<Config> {
        match worktree.provenance.is_untrusted() {
            true => Config::of_worktree(&worktree.path),
            false => Config::load(&worktree.path),
        }
    }

    /// Reads both files at a worktree's root. A missing file says nothing; a repository's file, only what it may.
    pub fn load(worktree: &Path) -> Result<Config> {
        let mut config = Config::default();
        config.add_file(worktree, SHARED)?;
        config.add_file(worktree, LOCAL)?;
        Ok(config)
    }

    /// Fails if the text is not a valid file for a project's repository.
    pub fn check(text: &str) -> Result<()> {
        Config::default().add(&ConfigText { path: Path::new(SHARED), text, author: Author::Repository })
    }

    /// Reads a commit's shared file, and the user's file at a worktree's root.
    pub(crate) fn of_commit(shared: Option<&str>, worktree: &Path) -> Result<Config> {
        let mut config = Config::default();
        if let Some(text) = shared {
            config.add(&ConfigText { path: Path::new(SHARED), text, author: Author::Repository })?;
        }
        config.add_file(worktree, LOCAL)?;
        Ok(config)
    }

    fn add_file(&mut self, worktree: &Path, name: &str) -> Result<()> {
        let path = worktree.join(name);
        if fs_err::symlink_metadata(&path).is_ok()
            && let author = Author::find(worktree, name)?
            && let Some(text) = read(&path, author)?
        {
            self.add(&ConfigText { path: &path, text: &text, author })?;
        }
        Ok(())
    }

    pub(crate) fn place(&self, repository: &Repository, branch: &str) -> Result<Place> {
        let template = self.path.clone().unwrap_or_else(|| PathTemplate::usual(repository));
        template.place(repository, branch)
    }

    fn add(&mut self, at: &ConfigText<'_>) -> Result<()> {
        let document =
            DeTable::parse(at.text).map_err(|error| at.error(error.span().unwrap_or_default(), error.message()))?;
        for (key, value) in document.get_ref() {
            match key.get_ref().as_ref() {
                "worktree" => self.add_worktree(at, value)?,
                "hooks" => self.add_hooks(at, value)?,
                "db" => self.add_databases(at, value)?,
                "ports" => self.add_ports(at, value)?,
                "services" => self.add_services(at, value)?,
                other => return Err(at.unknown_table(key.span(), other)),
            }
        }
        Ok(())
    }

    fn add_worktree(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (key, value) in at.table(value, "worktree")? {
            match key.get_ref().as_ref() {
                "path" => {
                    let text = at.checked(value, "path", path::check_template)?;
                    let position = || at.position(value.span());
                    let said_by_repository = (at.author != Author::User).then(position);
                    self.path = Some(PathTemplate { text, said_by_repository });
                }
                "include" => self.include = at.patterns(value, "include", check_pattern)?,
                "exclude" => {
                    self.exclude = at.patterns(value, "exclude", check_pattern)?;
                    self.is_exclude_local = at.path.ends_with(LOCAL);
                }
                "secrets" => {
                    self.secrets = Some(match at.string(value, "secrets")?.as_str() {
                        "carry" => Secrets::Carry,
                        "leave" => Secrets::Leave,
                        _ => return Err(at.error(value.span(), "`secrets` is \"carry\" or \"leave\"")),
                    });
                }
                "spares" => {
                    let count = at.number(value, "spares")?;
                    self.spares = Some(SparesRequest { count, is_own: at.author == Author::User });
                }
                "env-file" => {
                    let inside = |text: &str| env_file_inside(text).map_err(|reason| format!("`env-file`: {reason}"));
                    self.env_file = Some(at.parsed(value, "env-file", inside)?);
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
            recipe::check_template(name.get_ref()).map_err(|wrong| at.error(name.span(), &wrong))?;
            for (key, value) in at.table(value, DATABASE)? {
                match key.get_ref().as_ref() {
                    "standby" => {
                        let count = at.number(value, "standby")?;
                        if count > MOST_STANDBYS {
                            return Err(at.error(value.span(), &format!("`standby` is at most {MOST_STANDBYS}")));
                        }
                        self.standbys.insert(name.get_ref().to_string(), count);
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
                let rule = "a port's name is small letters, digits and `-`, and begins with a letter";
                let example = "`web` gives WEB_PORT, from which a command sets PORT: `PORT=$WEB_PORT npm start`";
                return Err(at.error(span, &format!("{rule}; {example}")));
            }
            let number = at.number(value, name)?;
            let port = u16::try_from(number).ok().filter(|port| *port >= 1024);
            let port = port.ok_or_else(|| at.error(value.span(), "a port is from 1024 to 65535"))?;
            self.ports.insert(name.to_string(), port);
            if self.ports.len() > MOST_PORTS {
                return Err(at.error(span, &format!("`[ports]` has more than {MOST_PORTS} names")));
            }
        }
        Ok(())
    }

    fn add_services(&mut self, at: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        for (name, value) in at.table(value, SERVICE)? {
            let (span, name) = (name.span(), name.get_ref());
            let wrong = |reason: &str| at.error(span.clone(), reason);
            if !is_plain_name(name) || name.len() > 32 {
                return Err(wrong(
                    "a service's name is up to 32 small letters, digits and `-`, and begins with a letter",
                ));
            }
            let default = format!("{}_URL", name.to_ascii_uppercase().replace('-', "_"));
            let known = self.services.remove(name.as_ref());
            let mut service =
                known.unwrap_or_else(|| ServiceConfig { template: name.to_string(), variable: default, recipe: None });
            let former = service.recipe.take().map(|former| (Some(former.engine), former.command, former.inputs));
            let (mut engine, mut command, mut inputs) = former.unwrap_or_default();
            let (mut is_named, mut is_described) = (false, false);
            for (key, value) in at.table(value, SERVICE)? {
                is_described |= !matches!(key.get_ref().as_ref(), "template" | "env");
                match key.get_ref().as_ref() {
                    "template" => {
                        (service.template, is_named) = (at.checked(value, "template", recipe::check_template)?, true);
                    }
                    "engine" => engine = Some(at.checked(value, "engine", recipe::check_engine)?),
                    "create" => command = Some(at.string(value, "create")?),
                    "inputs" => inputs = at.patterns(value, "inputs", recipe::check_input)?,
                    "env" => service.variable = at.checked(value, "env", check_url_variable)?,
                    other => return Err(at.unknown_key(key.span(), SERVICE, other)),
                }
            }
            // A named template exists, or is made by hand.
            service.recipe = match (is_named, is_described) {
                (true, true) => return Err(wrong("set `template` (existing) or `engine` (new), not both")),
                (true, false) => None,
                (false, _) => TemplateRecipe::new(engine, command, inputs).map_err(wrong)?,
            };
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

/// Returns whether the worktree's shared file equals the main worktree's, and neither has a local file.
fn has_file_of_main(root: &Path) -> bool {
    let Ok(Some(entry)) = trust::entry_of(root) else { return root.join(".git").is_dir() };
    // `/project/.git/worktrees/ID`.
    let common = entry.parent().and_then(Path::parent).filter(|common| common.ends_with(".git"));
    let Some(main) = common.and_then(Path::parent) else { return false };
    let shared = |root: &Path| read(&root.join(SHARED), Author::Repository).ok();
    is_missing(&root.join(LOCAL))
        && is_missing(&main.join(LOCAL))
        && shared(root).is_some_and(|text| shared(main) == Some(text))
}

/// Requires the ending of a URL's variable, so that a project cannot set variables that programs heed, like `PATH`.
fn check_url_variable(name: &str) -> std::result::Result<(), String> {
    let is_one = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
        && (name.ends_with("_URL") || name.ends_with("_URI"))
        && name.len() <= 64;
    if is_one { Ok(()) } else { Err("`env` is capital letters, digits and `_`, and ends in _URL or _URI".into()) }
}

fn check_pattern(pattern: &str) -> std::result::Result<(), String> {
    calve_core::Patterns::new([pattern]).map(drop).map_err(|error| error.to_string())
}

/// Allows only lower-case letters, digits and `-`, so that different names make different variables.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && name.len() <= 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    const SHARED: Author = Author::Repository;
    const LOCAL: Author = Author::User;

    fn parse(text: &str) -> Result<Config> {
        let mut config = Config::default();
        config.take(SHARED, text)?;
        Ok(config)
    }

    impl Config {
        fn take(&mut self, author: Author, text: &str) -> Result<()> {
            self.add(&ConfigText { path: Path::new("file"), text, author })
        }
    }

    #[test]
    fn what_is_set_is_taken_over() {
        let text = "[worktree]\npath = \"../{repo}-wt/{branch}\"\ninclude = ['.env', \"/x\"]\nsecrets = 'leave'\n[hooks]\npost-add = '''\nnpm ci\n'''\n";
        let mut config = parse(text).unwrap();
        let text = "../{repo}-wt/{branch}".to_owned();
        let said_by_repository = Some("`file`, line 2, column 8".to_owned());
        assert_eq!(config.path, Some(PathTemplate { text: text.clone(), said_by_repository }));
        config.take(LOCAL, "worktree.path = '../{repo}-wt/{branch}'").unwrap();
        assert_eq!(config.path, Some(PathTemplate { text, said_by_repository: None }));
        assert_eq!(config.include, [".env", "/x"]);
        assert_eq!(config.secrets, Some(Secrets::Leave));
        assert_eq!(config.hooks.post_add.as_deref(), Some("npm ci\n"));
        for (file, count, is_own) in [(SHARED, 2, false), (LOCAL, 0, true)] {
            config.take(file, &format!("worktree.spares = {count}")).unwrap();
            assert_eq!(config.spares, Some(SparesRequest { count, is_own }));
        }
        config.take(SHARED, "worktree.env-file = './.env.local'").unwrap();
        assert_eq!(config.env_file.as_deref(), Some(Path::new(".env.local")));
        config.take(SHARED, "db.shop.standby = 4\n[db.'a.b']\nstandby = 0x2").unwrap();
        config.take(LOCAL, "[db.shop]\nstandby = 0").unwrap();
        assert_eq!(config.standbys, BTreeMap::from([("a.b".into(), 2), ("shop".into(), 0)]));
        config.take(SHARED, "[ports]\nweb = 3000\nadmin-2 = 8_000").unwrap();
        config.take(LOCAL, "ports.web = 4000").unwrap();
        assert_eq!(config.ports, BTreeMap::from([("admin-2".into(), 8000), ("web".into(), 4000)]));
        config.take(SHARED, "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n[services.job-queue]").unwrap();
        config.take(LOCAL, "services.db.template = 'small'").unwrap();
        let service = |template: &str, variable: &str| ServiceConfig {
            template: template.into(),
            variable: variable.into(),
            recipe: None,
        };
        assert_eq!(config.services["db"], service("small", "DATABASE_URL"));
        assert_eq!(config.services["job-queue"], service("job-queue", "JOB_QUEUE_URL"));
        config.take(LOCAL, "worktree.include = []\nhooks.pre-remove = 'true'").unwrap();
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
            ("[worktree]\ninclude = ['a', 7]", 2, 17, "string"),
            ("[worktree]\nspares = 'two'", 2, 10, "whole number"),
            ("[worktree]\nenv-file = '../x'", 2, 12, "relative to its root"),
            ("[worktree]\nenv-file = '.git/x'", 2, 12, "relative to its root"),
            ("spares = 1", 1, 1, "below `[worktree]`"),
            ("hooks = 7", 1, 9, "table"),
            ("[hooks]\n\npost_add = 'x'", 3, 1, "did you mean `post-add`?"),
            ("[hooks]\npost-remove = 'x'", 2, 1, "has no"),
            ("[hooks]\npost-add = ['x']", 2, 12, "quoted string"),
            ("[hooks.post-add]\nrun = 'x'", 1, 1, "quoted string"),
            ("secrets = 'leave'\n", 1, 1, "below `[worktree]`"),
            ("[worktrees]\nsecrets = 'leave'", 1, 2, "did you mean `[worktree]`?"),
            ("[hook]\npost-add = 'x'", 1, 2, "did you mean `[hooks]`?"),
            ("[worktree]\n[[data]]\nport = 1", 2, 3, "[worktree], [hooks], [db.NAME], [ports]"),
            ("[worktree]\n[[db]]\nport = 1", 2, 1, "table"),
            ("[db]\nstandby = 1", 2, 11, "table"),
            ("[db.shop]\nstandbys = 1", 2, 1, "did you mean `standby`?"),
            ("[db.shop]\nstandby = -1", 2, 11, "whole number"),
            ("[db.shop]\nstandby = '4'", 2, 11, "whole number"),
            ("[db.'a/b']", 1, 5, "a template's name is"),
            ("[db.shop]\nstandby = 65", 2, 11, "at most 64"),
            ("standby = 1", 1, 1, "below `[db.NAME]`"),
            ("services = 1", 1, 12, "table"),
            ("[services]\ndb = 'shop'", 2, 6, "table"),
            ("[services.db]\ntemplates = 'shop'", 2, 1, "did you mean `template`?"),
            ("[services.db]\ntemplate = 7", 2, 12, "quoted string"),
            ("[services.db]\nenv = 'PATH'", 2, 7, "ends in _URL or _URI"),
            ("[services.db]\nenv = 'database_URL'", 2, 7, "capital letters"),
            ("[services.Db]", 1, 11, "small letters"),
            ("[services.a]\nenv = 'A_URL'\n[services.b]\nenv = 'A_URL'", 3, 11, "same variable as `a`"),
            ("template = 'shop'", 1, 1, "below `[services.NAME]`"),
            ("[services.db]\nengine = \"mongo\"", 2, 10, "postgres, mariadb, mysql, redis, valkey"),
            ("[services.db]\nengine = ''", 2, 10, "postgres, mariadb"),
            ("[services.db]\ntemplate = '../x'", 2, 12, "letters, digits"),
            ("[services.db]\nengine = 'redis'\ncreate = 'x'\ninputs = ['a', '../b']", 4, 16, "inside the worktree"),
            ("[services.db]\nengine = 'redis'\ncreate = 'x'\ninputs = ['a', '{b']", 4, 16, "`{b`"),
            ("[worktree]\ninclude = ['a', '[']", 2, 17, "`[`"),
            ("[worktree]\nexclude = ['//']", 2, 12, "names nothing"),
            ("ports = 3000", 1, 9, "table"),
            ("[port]\nweb = 3000", 1, 2, "did you mean `[ports]`?"),
            ("[ports]\nweb = '3000'", 2, 7, "whole number"),
            ("[ports]\nweb = 80", 2, 7, "1024 to 65535"),
            ("[ports]\nweb = 65536", 2, 7, "1024 to 65535"),
            ("[ports]\nweb_a = 3000", 2, 1, "small letters"),
            ("[ports]\nPORT = 3000", 2, 1, "`PORT=$WEB_PORT npm start`"),
            ("[ports]\n'a b' = 3000", 2, 1, "small letters"),
            ("[worktree]\npost-add = 'x'", 2, 1, "`[hooks]` has"),
            ("[worktree]\nsecret = 'leave'", 2, 1, "did you mean `secrets`?"),
            ("[worktree]\nSecrets = 'leave'", 2, 1, "did you mean `secrets`?"),
            ("[worktree]\nsecrets.env = 'leave'", 2, 1, "quoted string"),
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
