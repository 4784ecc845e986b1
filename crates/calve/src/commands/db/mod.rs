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
        DbCommand::Template { command: TemplateCommand::List { json } } => template::list(*json),
        DbCommand::Template { command: TemplateCommand::Remove { names } } => template::remove(names),
        DbCommand::Template { command: TemplateCommand::Push { push, json } } => registry::push(push, *json, cancel),
        DbCommand::Template { command: TemplateCommand::Pull(arguments) } => registry::pull(arguments, cancel),
        DbCommand::Pool(arguments) => pool::run(arguments, cancel),
        DbCommand::Mark { server, name, json } => mark::add(server, name, *json, cancel),
        DbCommand::Marks { server, json } => mark::list(server, *json),
        DbCommand::Unmark { server, names } => mark::remove(server, names, cancel),
        DbCommand::Start(arguments) => start::run(arguments, cancel),
        DbCommand::Run(arguments) => run::run(arguments, cancel),
        DbCommand::Reset { names, to, json } => servers::reset(names, to.as_deref(), *json, cancel),
        DbCommand::Stop(arguments) => servers::stop(arguments, cancel),
        DbCommand::List(arguments) => servers::list(arguments),
        DbCommand::Logs { name } => servers::logs(name),
        DbCommand::Promote(arguments) => promote::run(arguments, cancel),
        DbCommand::Url { name, format } => servers::url(name, format),
        DbCommand::Gc(arguments) => gc::run(arguments, cancel),
    }
}
