//! `calve probe`.

use calve_core::{PlaceReport, ProbeReport, Shown, probe};

use crate::cli::ProbeArguments;
use crate::failure::Failure;
use crate::{output, receipt};

pub(crate) fn run(arguments: &ProbeArguments) -> Result<(), Failure> {
    let dst = arguments.dst.as_ref().unwrap_or(&arguments.src);
    let report = probe(&arguments.src, dst)?;
    if arguments.json {
        output::json(&receipt::probe(&report))?;
    } else {
        print_table(&report).map_err(Failure::Output)?;
    }
    Ok(())
}

/// The answer is the result of this command, so it goes to stdout.
fn print_table(report: &ProbeReport) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let place = |place: &PlaceReport| {
        let (major, minor) = place.device;
        format!("{} ({}, device {major}:{minor})", Shown(&place.path), place.file_system)
    };
    writeln!(out, "from  {}", place(&report.src))?;
    writeln!(out, "to    {}", place(&report.dst))?;
    for offer in &report.offers {
        match &offer.refused {
            None if offer.strategy == report.chosen => {
                writeln!(out, "  {:<10} available; would be used", offer.strategy)?
            }
            None => writeln!(out, "  {:<10} available", offer.strategy)?,
            Some(refused) => writeln!(out, "  {:<10} refused: {}", offer.strategy, refused.reason)?,
        }
        if let Some(remedy) = offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref()) {
            writeln!(out, "  {:<10} to have it: {remedy}", "")?;
        }
    }
    if report.copy_up_to_bytes > 0 {
        let limit = output::size(report.copy_up_to_bytes);
        writeln!(out, "reflink copies files up to {limit}, where that is cheaper; --require cow shares them too")?;
    }
    Ok(())
}
