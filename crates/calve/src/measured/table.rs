//! A measurement as people read it.

use std::time::Duration;

use calve_core::{Measurement, Refusal};

use super::Measured;
use crate::output;

/// The costs of files in microseconds, and those of calls.
pub(crate) fn table(measured: &Measured) -> String {
    let Measured { measurement, .. } = measured;
    let place = &measurement.place;
    let mut table = format!(
        "measured {} on {} (volume {}, {}), {} {}, {} processors; medians, in us for a file:\n",
        age(measured.age()),
        place.file_system,
        place.volume,
        place.mount_options,
        system(),
        place.kernel,
        place.processors,
    );
    table.push_str(&format!("  {:<10} {:>9} {:>9}\n", "", "copy", "reflink"));
    for file in &measurement.files {
        let reflink = file.reflink.map_or_else(|| "-".into(), micros);
        table.push_str(&format!("  {:<10} {:>9} {reflink:>9}\n", size(file.size_bytes), micros(file.copy)));
    }
    if let Some(refused) = &measurement.reflink_refused {
        table.push_str(&format!("  no reflink: {}\n", refused.reason));
    }
    table.push_str(&format!("  create, empty {:>6}\n", micros(measurement.create)));
    if let Some(delete) = measurement.delete {
        table.push_str(&format!("  delete, 4 KiB {:>6}\n", micros(delete)));
    }
    table.push_str(&call("snapshot", &measurement.snapshot));
    table.push_str(&call("overlay mount", &measurement.overlay));
    if let Some(copies) = measurement.small_copies {
        let limit = output::size(copies.up_to_bytes);
        let verdict = if measurement.copy_up_to_bytes == Some(0) { "all are shared" } else { "they are copied" };
        table.push_str(&format!(
            "  a tree with files up to {limit} copied takes {:.2} of the time: {verdict}\n",
            copies.ratio
        ));
    }
    table.push_str(&threads(measurement));
    table.push_str(&format!(
        "  took {}, wrote {}\n",
        output::duration(measurement.elapsed),
        output::size(measurement.written_bytes)
    ));
    table
}

fn threads(measurement: &Measurement) -> String {
    let all = measurement.threads.iter().map(|cost| format!("{}: {}", cost.threads, micros(cost.per_file)));
    let best = measurement.best_threads.map(|best| format!(" (best: {best})")).unwrap_or_default();
    format!("  small files, by threads  {}{best}\n", all.collect::<Vec<_>>().join("  "))
}

fn call(what: &str, cost: &Result<Duration, Refusal>) -> String {
    match cost {
        Ok(time) => format!("  {what:<13} {:>6} ms\n", format!("{:.2}", time.as_secs_f64() * 1000.0)),
        Err(refused) => format!("  no {what}: {}\n", refused.reason),
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000_000.0)
}

/// The name that the kernel goes by. Measurements of other machines are not shown.
fn system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        // What it says of its version is Darwin's.
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

/// In units of 1,024, as the sizes are chosen.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "empty".into(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..60 => return "just now".into(),
        60..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}
