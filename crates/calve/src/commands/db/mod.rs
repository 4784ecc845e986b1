mod copies;
mod data;
mod gc;
pub(crate) mod home;
mod list;
mod logs;
mod mark;
pub(crate) mod pool;
mod promote;
mod registry;
mod reset;
pub(crate) mod run;
mod start;
mod stop;
mod template;
mod url;

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
        DbCommand::Reset(arguments) => reset::run(arguments, cancel),
        DbCommand::Stop(arguments) => stop::run(arguments, cancel),
        DbCommand::List(arguments) => list::run(arguments),
        DbCommand::Logs(arguments) => logs::run(arguments),
        DbCommand::Promote(arguments) => promote::run(arguments, cancel),
        DbCommand::Url(arguments) => url::run(arguments),
        DbCommand::Gc(arguments) => gc::run(arguments, cancel),
    }
}
