//! The database engines: one file each, and one list.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod container;
mod interface;
pub(crate) mod memory;
mod mysql_family;
mod postgres;
pub(crate) mod programs;
mod redis;

pub use interface::ServerProgram;
pub(crate) use interface::{Engine, Instance, Purpose, Refusal, URL_VARIABLE, Version, numbers, setting};
use mysql_family::MysqlFamily;
pub use mysql_family::Session as MysqlSession;
pub use postgres::Session as PostgresSession;

use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::error::{Error, Remedy, Result};

/// All engines. A new one is a file beside this, a line here, and a line in [`EngineKind`].
pub(crate) const ENGINES: &[&dyn Engine] =
    &[&postgres::Postgres, &MysqlFamily::Mariadb, &MysqlFamily::Mysql, &redis::REDIS, &redis::VALKEY];

/// The engines, for code that has a case for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum EngineKind {
    Postgres,
    Mariadb,
    Mysql,
    Redis,
    Valkey,
}

impl EngineKind {
    pub const NAMES: &[&str] = Self::VARIANTS;

    pub fn url_variable(self) -> &'static str {
        named(self.into()).map_or(URL_VARIABLE, Engine::url_variable)
    }
}

/// Fails with the known names if there is no such engine.
pub(crate) fn named(name: &str) -> Result<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name).ok_or_else(|| {
        let known = EngineKind::NAMES.join(" and ");
        Error::usage(format!("unknown engine `{}`; the engines are {known}", name.escape_default()), Remedy::ReadHelp)
    })
}
