use super::home::home;
use crate::cli::db::LogsArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &LogsArguments) -> Result<(), Failure> {
    let log = calve_db::log(&home()?, &arguments.name)?;
    if let Some(ending) = &log.ending {
        output::note(&format!("`{}` {}", ending.name, ending.reason));
    }
    // Clients choose part of what is in it.
    let is_plain = |c: &char| !c.is_control() || "\n\t".contains(*c);
    output::result(&log.text.chars().filter(is_plain).collect::<String>())
}
