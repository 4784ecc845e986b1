//! `calve probe`.

use std::path::Path;

use calve_core::{Cancel, MeasureOptions, PlaceReport, ProbeReport, Shown, identify, measure, probe};

use crate::cli::ProbeArguments;
use crate::failure::Failure;
use crate::measured::{self, Measured};
use crate::{output, receipt};

pub(crate) fn run(arguments: &ProbeArguments, cancel: &Cancel) -> Result<(), Failure> {
    let dst = arguments.dst.as_ref().unwrap_or(&arguments.src);
    let measured = if arguments.measure { measure_now(dst, cancel)? } else { Measurements::kept_for(dst) };
    let report = probe(&arguments.src, dst)?;
    // The answer is the result of this command, so it goes to stdout.
    match arguments.json {
        true => output::json(&receipt::probe(&report, &measured)),
        false => output::result(&(table(&report, &measured) + &measured.table())),
    }
}

/// What is known of the costs in the place to clone to.
pub(crate) enum Measurements {
    None,
    Known(Box<Measured>),
    /// There is one, which does not hold, for this reason.
    Ignored(String),
}

impl Measurements {
    fn kept_for(dst: &Path) -> Self {
        match identify(dst).map(|place| measured::load(&place)) {
            Ok(Ok(Some(measured))) => Self::Known(Box::new(measured)),
            Ok(Err(reason)) => Self::Ignored(reason),
            // What is wrong with the place the probe tells.
            Ok(Ok(None)) | Err(_) => Self::None,
        }
    }

    pub(crate) fn known(&self) -> Option<&Measured> {
        if let Self::Known(measured) = self { Some(measured) } else { None }
    }

    pub(crate) fn ignored(&self) -> Option<&str> {
        if let Self::Ignored(reason) = self { Some(reason) } else { None }
    }

    pub(crate) fn copy_up_to_bytes(&self) -> Option<u64> {
        self.known().and_then(|measured| measured.measurement.copy_up_to_bytes)
    }

    fn table(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Known(measured) => measured::table(measured),
            Self::Ignored(reason) => {
                format!("the kept measurement is not used: {reason}; `calve probe --measure` makes a new one\n")
            }
        }
    }
}

fn measure_now(dst: &Path, cancel: &Cancel) -> Result<Measurements, Failure> {
    let mut options = MeasureOptions::default();
    options.cancel = cancel.clone();
    let measured = Measured::now(measure(dst, &options)?);
    if let Err(reason) = measured::store(&measured) {
        output::say(&format!("warning: the measurement is not kept, so that `calve cp` cannot use it: {reason}"));
    }
    Ok(Measurements::Known(Box::new(measured)))
}

fn table(report: &ProbeReport, measured: &Measurements) -> String {
    let place = |place: &PlaceReport| {
        let (major, minor) = place.device;
        format!("{} ({}, device {major}:{minor})", Shown(&place.path), place.file_system)
    };
    let mut table = format!("from  {}\nto    {}\n", place(&report.src), place(&report.dst));
    for offer in &report.offers {
        let answer = match &offer.refused {
            None if Some(offer.strategy) == report.chosen => "available; would be used".to_owned(),
            None => "available".to_owned(),
            Some(refused) => format!("refused: {}", refused.reason),
        };
        table.push_str(&format!("  {:<10} {answer}\n", offer.strategy));
        if let Some(remedy) = offer.refused.as_ref().and_then(|refused| refused.remedy.as_ref()) {
            table.push_str(&format!("  {:<10} to have it: {remedy}\n", ""));
        }
    }
    let copy_up_to_bytes = measured.copy_up_to_bytes().unwrap_or(report.copy_up_to_bytes);
    if copy_up_to_bytes > 0 {
        let limit = output::size(copy_up_to_bytes);
        let what =
            format!("reflink copies files up to {limit}, where that is cheaper; --require cow shares them too\n");
        table.push_str(&what);
    }
    table
}
