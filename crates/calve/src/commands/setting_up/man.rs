use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Arguments;
use crate::failure::Failure;

pub(crate) fn run(directory: &Path) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    pages(&command, directory)
}

/// Writes the pages of a command and its subcommands: `calve.1`, `calve-cp.1`.
fn pages(command: &Command, directory: &Path) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        pages(below, directory)?;
    }
    let man = Man::new(command.clone()).source(concat!("calve ", env!("CARGO_PKG_VERSION"))).manual("Calve");
    fs_err::write(directory.join(man.get_filename()), page(&man, command)?)?;
    Ok(())
}

fn page(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        // Keep the lines of examples and tables.
        page.extend_from_slice(b".SH NOTES\n.nf\n");
        for line in after.to_string().lines() {
            page.extend_from_slice(format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")).as_bytes());
        }
        page.extend_from_slice(b".fi\n");
    }
    Ok(page)
}
