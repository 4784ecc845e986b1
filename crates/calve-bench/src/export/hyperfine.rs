//! What `hyperfine --export-json` writes of a command, which every bench of commands begins with.

use serde_json::{Map, Value, json};

use crate::stats::Summary;

/// What counts of one run.
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    pub(crate) peak_memory_bytes: u64,
}

/// Hyperfine's names, as of its version 1.20, in its order. `summary` is of the runs' seconds; only runs that succeeded are among them.
pub(crate) fn fields(command: &str, summary: &Summary, runs: &[Run]) -> Value {
    let mean = |value: fn(&Run) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    json!({
        "command": command,
        "mean": summary.mean,
        "stddev": summary.stddev,
        "median": summary.median,
        "user": mean(|run| run.user_seconds),
        "system": mean(|run| run.system_seconds),
        "min": summary.min,
        "max": summary.max,
        "times": runs.iter().map(|run| run.seconds).collect::<Vec<_>>(),
        "memory_usage_byte": runs.iter().map(|run| run.peak_memory_bytes).collect::<Vec<_>>(),
        "exit_codes": vec![0; runs.len()],
    })
}

/// One object of the entries of several, in their order.
pub(crate) fn joined<const N: usize>(objects: [Value; N]) -> Value {
    let mut all = Map::new();
    for object in objects {
        if let Value::Object(entries) = object {
            all.extend(entries);
        }
    }
    Value::Object(all)
}
