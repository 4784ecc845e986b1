//! The JSON of a measurement: in `calve probe --json`, and in the file that keeps it.

use std::num::NonZeroUsize;
use std::time::Duration;

use calve_core::{FileCost, Measurement, PlaceIdentity, Refusal, SmallCopies, Strategy, ThreadCost};
use serde_json::{Value, json};

use super::Measured;

const SCHEMA: &str = "calve.measured/1";

/// `measured` in `calve.probe/1`.
pub(crate) fn document(measured: &Measured) -> Value {
    let Measured { at_unix_s, measurement } = measured;
    let place = &measurement.place;
    json!({
        "at_unix_s": at_unix_s,
        "machine": place.machine,
        "kernel": place.kernel,
        "processors": place.processors,
        "file_system": place.file_system,
        "volume": place.volume,
        "mount_options": place.mount_options,
        "create_us": micros(measurement.create),
        "delete_us": measurement.delete.map(micros),
        "files": measurement.files.iter().map(|file| json!({
            "size_bytes": file.size_bytes,
            "copy_us": micros(file.copy),
            "reflink_us": file.reflink.map(micros),
        })).collect::<Vec<_>>(),
        "reflink_refused": measurement.reflink_refused.as_ref().map(refusal),
        "snapshot": cost(&measurement.snapshot),
        "overlay": cost(&measurement.overlay),
        "threads": measurement.threads.iter().map(|cost| json!({
            "threads": cost.threads,
            "file_us": micros(cost.per_file),
        })).collect::<Vec<_>>(),
        "small_copies": measurement.small_copies.map(|copies| json!({
            "up_to_bytes": copies.up_to_bytes,
            "ratio": (copies.ratio * 1000.0).round() / 1000.0,
        })),
        "copy_up_to_bytes": measurement.copy_up_to_bytes,
        "best_threads": measurement.best_threads,
        "written_bytes": measurement.written_bytes,
        "elapsed_ms": (measurement.elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0,
    })
}

/// What is written to the file.
pub(super) fn kept(measured: &Measured) -> String {
    let mut kept = json!({ "schema": SCHEMA });
    if let (Value::Object(all), Value::Object(fields)) = (&mut kept, document(measured)) {
        all.extend(fields);
    }
    format!("{kept:#}\n")
}

/// `None` for anything that [`kept`] does not write.
pub(super) fn parse(text: &str) -> Option<Measured> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value["schema"] != SCHEMA {
        return None;
    }
    let text = |name: &str| Some(value[name].as_str()?.to_owned());
    let list = |name: &str| value[name].as_array();
    let file = |file: &Value| {
        let reflink = optional(&file["reflink_us"], duration)?;
        Some(FileCost { size_bytes: file["size_bytes"].as_u64()?, copy: duration(&file["copy_us"])?, reflink })
    };
    let thread =
        |cost: &Value| Some(ThreadCost { threads: threads(&cost["threads"])?, per_file: duration(&cost["file_us"])? });
    let measurement = Measurement {
        place: PlaceIdentity {
            machine: text("machine")?,
            kernel: text("kernel")?,
            processors: usize::try_from(value["processors"].as_u64()?).ok()?,
            file_system: text("file_system")?,
            volume: text("volume")?,
            mount_options: text("mount_options")?,
        },
        create: duration(&value["create_us"])?,
        files: list("files")?.iter().map(file).collect::<Option<_>>()?,
        reflink_refused: optional(&value["reflink_refused"], |value| refused(value, Strategy::Reflink))?,
        delete: optional(&value["delete_us"], duration)?,
        snapshot: duration_or_refusal(&value["snapshot"], Strategy::Snapshot)?,
        overlay: duration_or_refusal(&value["overlay"], Strategy::Overlay)?,
        threads: list("threads")?.iter().map(thread).collect::<Option<_>>()?,
        small_copies: optional(&value["small_copies"], small_copies)?,
        copy_up_to_bytes: optional(&value["copy_up_to_bytes"], Value::as_u64)?,
        best_threads: optional(&value["best_threads"], threads)?,
        written_bytes: value["written_bytes"].as_u64()?,
        elapsed: duration(&value["elapsed_ms"])? * 1000,
    };
    Some(Measured { at_unix_s: value["at_unix_s"].as_u64()?, measurement })
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000_000.0).round() / 1000.0
}

fn cost(cost: &Result<Duration, Refusal>) -> Value {
    match cost {
        Ok(time) => json!({ "us": micros(*time), "reason": null, "remedy": null }),
        Err(refusal) => json!({ "us": null, "reason": refusal.reason, "remedy": refusal.remedy }),
    }
}

fn refusal(refusal: &Refusal) -> Value {
    json!({ "reason": refusal.reason, "remedy": refusal.remedy })
}

/// Null is one thing, and nonsense is another.
fn optional<T>(value: &Value, parse: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { Some(Some(parse(value)?)) }
}

/// Microseconds.
fn duration(value: &Value) -> Option<Duration> {
    Duration::try_from_secs_f64(value.as_f64()? / 1_000_000.0).ok().filter(|time| *time < Duration::from_secs(3600))
}

fn small_copies(value: &Value) -> Option<SmallCopies> {
    Some(SmallCopies { up_to_bytes: value["up_to_bytes"].as_u64()?, ratio: value["ratio"].as_f64()? })
}

fn threads(value: &Value) -> Option<NonZeroUsize> {
    NonZeroUsize::new(usize::try_from(value.as_u64()?).ok()?).filter(|threads| threads.get() <= 64)
}

fn refused(value: &Value, strategy: Strategy) -> Option<Refusal> {
    let remedy = optional(&value["remedy"], |remedy| Some(remedy.as_str()?.to_owned()))?;
    Some(Refusal { strategy, reason: value["reason"].as_str()?.to_owned(), remedy })
}

fn duration_or_refusal(value: &Value, strategy: Strategy) -> Option<Result<Duration, Refusal>> {
    match duration(&value["us"]) {
        Some(time) => Some(Ok(time)),
        None => refused(value, strategy).map(Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let refused = |strategy| Refusal { strategy, reason: "no".into(), remedy: Some("yes".into()) };
        let one = NonZeroUsize::MIN;
        let place = PlaceIdentity {
            machine: "m".into(),
            kernel: "6.1".into(),
            processors: 2,
            file_system: "xfs".into(),
            volume: "v".into(),
            mount_options: "rw".into(),
        };
        let measurement = Measurement {
            place,
            create: Duration::from_nanos(8_123),
            files: vec![
                FileCost { size_bytes: 0, copy: Duration::from_micros(3), reflink: None },
                FileCost { size_bytes: 4096, copy: Duration::from_micros(4), reflink: Some(Duration::from_micros(5)) },
            ],
            reflink_refused: Some(refused(Strategy::Reflink)),
            delete: None,
            snapshot: Ok(Duration::from_millis(2)),
            overlay: Err(refused(Strategy::Overlay)),
            threads: vec![ThreadCost { threads: one, per_file: Duration::from_micros(7) }],
            small_copies: Some(SmallCopies { up_to_bytes: 4096, ratio: 0.8 }),
            copy_up_to_bytes: Some(4096),
            best_threads: Some(one),
            written_bytes: 12,
            elapsed: Duration::from_millis(1234),
        };
        Measured { at_unix_s: 1_000_000, measurement }
    }

    #[test]
    fn what_is_kept_is_read_again_as_it_was() {
        let mut measured = measured();
        assert_eq!(parse(&kept(&measured)), Some(measured.clone()));
        measured.measurement.small_copies = None;
        measured.measurement.copy_up_to_bytes = None;
        measured.measurement.best_threads = None;
        measured.measurement.reflink_refused = None;
        assert_eq!(parse(&kept(&measured)), Some(measured));
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let Ok(Value::Object(whole)) = serde_json::from_str(&kept(&measured())) else { panic!("no object") };
        for name in whole.keys() {
            let mut damaged = whole.clone();
            damaged[name] = json!({ "nonsense": -1 });
            assert_eq!(parse(&Value::Object(damaged).to_string()), None, "{name}");
        }
        for text in ["", "{}", "[]", "null", "{\"schema\": \"calve.measured/1\"}", "\u{0}\u{0}\u{0}\u{0}"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let cut = kept(&measured());
        assert_eq!(parse(&cut[..cut.len() / 2]), None);
    }
}
