use std::path::Path;

use calve_core::error::Remedy;
use calve_core::internal::ShownPath;
use calve_core::report::FileSystemReport;
use calve_core::spares::Spares;
use calve_core::{ProbeReport, Strategy, probe};

use crate::failure::Failure;
use crate::{home, output, real_path, wording};
use calve_receipt::ProbeReceipt;

pub(crate) fn run(src: &Path, dst: &Path, json: bool) -> Result<(), Failure> {
    let mut report = probe(src, dst)?;
    let place = if dst.is_dir() { dst } else { real_path::parent(dst) };
    if let Some(offer) = home::spares().and_then(|spares| Spares::at(spares.home).offer(src, place).ok()) {
        if offer.refused.is_none() {
            report.chosen = report.chosen.map(|_| offer.strategy);
        }
        report.offers.insert(0, offer);
    }
    let text = table(&report);
    output::json_or(json, &ProbeReceipt::new(report, wording::core::hint), &text)
}

fn table(report: &ProbeReport) -> String {
    let place = |place: &FileSystemReport| {
        format!("{} ({}, device {})", ShownPath(&place.path), place.file_system, place.device)
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
            table.push_str(&format!("  {:<10} to have it: {}\n", "", wording::core::hint(remedy)));
        }
    }
    let mut remedies = report.offers.iter().filter_map(|offer| offer.refused.as_ref()?.remedy.as_ref());
    let needs_sharing = remedies.any(|remedy| *remedy == Remedy::ShareOneFileSystem);
    if needs_sharing && report.chosen == Some(Strategy::Copy) && calve_volume::is_possible() {
        table.push_str(
            "to have copy-on-write on this disk: calve volume create NAME (btrfs in a file, which takes up its size from the start; root mounts it)\n",
        );
    }
    table
}
