/// Formats 1234567 as "1,234,567".
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Formats a count with its noun: "1 file", "2,000 files", "3 directories".
pub fn counted(number: u64, one: &str) -> String {
    match one.strip_suffix("ory") {
        Some(stem) if number != 1 => format!("{} {stem}ories", count(number)),
        _ => format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" }),
    }
}

/// Formats a number of entries: "1 entry", "2,000 entries".
pub fn entries(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "entry" } else { "entries" })
}

/// Formats a size in units of 1,000, as disks are labelled and `du --si` prints.
pub fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// Formats a duration: in milliseconds below a second, otherwise in seconds.
pub fn duration(elapsed: std::time::Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1000.0) } else { format!("{seconds:.2} s") }
}

/// Formats an age in the largest unit that fits: "40 seconds", "3 days".
pub fn age(age: std::time::Duration) -> String {
    let seconds = age.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length).unwrap_or((1, "second"));
    counted(seconds / unit.0, unit.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!(
            ["0 files", "1 file", "1,000 files"],
            [0, 1, 1000].map(|number| counted(number, "file")).each_ref().map(|s| s.as_str())
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1000, 1_234_567].map(count).each_ref().map(|s| s.as_str())
        );
        assert_eq!(
            ["0 B", "999 B", "1.0 kB", "1.0 MB", "1.2 GB"],
            [0, 999, 1000, 999_990, 1_234_000_000].map(size).each_ref().map(|s| s.as_str())
        );
    }
}
