mod data;
mod gc;
pub(crate) mod home;
mod mark;
pub(crate) mod pool;
mod promote;
mod registry;
pub(crate) mod run;
mod servers;
mod start;
mod template;

use calve_core::CancelToken;

use crate::cli::db::{DbCommand, TemplateCommand};
use crate::failure::Failure;

pub(crate) fn run(command: &DbCommand, cancel: &CancelToken) -> Result<(), Failure> {
    match command {
        DbCommand::Template { command: TemplateCommand::Create(arguments) } => template::create(arguments, cancel),
        DbCommand::Template { command: TemplateCommand::List(arguments) } => template::list(arguments),
        DbCommand::Template { command: TemplateCommand::Remove(arguments) } => template::remove(arguments),
        DbCommand::Template { command: TemplateCommand::Push(arguments) } => registry::push(arguments, cancel),
        DbCommand::Template { command: TemplateCommand::Pull(arguments) } => registry::pull(arguments, cancel),
        DbCommand::Pool(arguments) => pool::run(arguments, cancel),
        DbCommand::Mark(arguments) => mark::add(arguments, cancel),
        DbCommand::Marks(arguments) => mark::list(arguments),
        DbCommand::Unmark(arguments) => mark::remove(arguments, cancel),
        DbCommand::Start(arguments) => start::run(arguments, cancel),
        DbCommand::Run(arguments) => run::run(arguments, cancel),
        DbCommand::Reset(arguments) => servers::reset(arguments, cancel),
        DbCommand::Stop(arguments) => servers::stop(arguments, cancel),
        DbCommand::List(arguments) => servers::list(arguments),
        DbCommand::Logs(arguments) => servers::logs(arguments),
        DbCommand::Promote(arguments) => promote::run(arguments, cancel),
        DbCommand::Url(arguments) => servers::url(arguments),
        DbCommand::Gc(arguments) => gc::run(arguments, cancel),
    }
}
