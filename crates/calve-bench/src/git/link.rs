//! A link that is slower than loopback: so many bits a second each way, and so long there and back.

use std::str::FromStr;
use std::time::Duration;

/// The rate and delay of each connection, in each direction. TCP's behaviour at the start of a connection, beyond its handshake, is not imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// `None`: as fast as loopback.
    pub(crate) bits_per_second: Option<u64>,
    pub(crate) round_trip: Duration,
}

impl Link {
    /// Returns how long so many bytes take to be sent.
    pub(crate) fn sending(&self, bytes: usize) -> Duration {
        let seconds = self.bits_per_second.map_or(0.0, |rate| bytes as f64 * 8.0 / rate as f64);
        Duration::from_secs_f64(seconds)
    }

    /// Returns the bytes on their way when the link is full.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        let rate = self.bits_per_second.unwrap_or(10_000_000_000);
        (rate as f64 / 8.0 * self.round_trip.as_secs_f64()) as u64
    }

    pub(crate) fn document(&self) -> calve_receipt::bench::Link {
        let round_trip_ms = self.round_trip.as_secs_f64() * 1000.0;
        calve_receipt::bench::Link { bits_per_second: self.bits_per_second, round_trip_ms }
    }

    pub(crate) fn in_words(&self) -> String {
        let rate = self.bits_per_second.map_or("as fast as loopback".to_owned(), |rate| match rate {
            rate if rate >= 1_000_000 => format!("{} Mbit/s each way", rate as f64 / 1e6),
            rate => format!("{} kbit/s each way", rate as f64 / 1e3),
        });
        format!("{rate}, {} ms there and back, for each connection", self.round_trip.as_secs_f64() * 1000.0)
    }
}

impl FromStr for Link {
    type Err = String;

    /// Parses a link such as "100mbit,20ms", or one of the two.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut link = Self { bits_per_second: None, round_trip: Duration::ZERO };
        for part in text.split(',') {
            let part = part.trim().to_ascii_lowercase();
            let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
            let (digits, unit) = part.split_at(end);
            let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            match (number, unit) {
                (Some(number), "kbit" | "mbit" | "gbit") => {
                    let factor = match unit {
                        "kbit" => 1e3,
                        "mbit" => 1e6,
                        _ => 1e9,
                    };
                    // Slower than any modem: a mistake, and no clone would end.
                    if number * factor < 1000.0 {
                        return Err("a link has at least 1kbit".into());
                    }
                    link.bits_per_second = Some((number * factor) as u64);
                }
                (Some(number), "ms" | "s") => {
                    let seconds = if unit == "s" { number } else { number / 1000.0 };
                    if seconds > 60.0 {
                        return Err("a round trip takes at most 60s".into());
                    }
                    link.round_trip = Duration::from_secs_f64(seconds);
                }
                _ => return Err("a link is a rate and a round trip, as in `100mbit,20ms`".into()),
            }
        }
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_rate_and_a_round_trip() {
        let link: Link = "100mbit,20ms".parse().unwrap();
        assert_eq!(link, Link { bits_per_second: Some(100_000_000), round_trip: Duration::from_millis(20) });
        assert_eq!("1.5s".parse::<Link>().unwrap().round_trip, Duration::from_millis(1500));
        assert_eq!("56kbit".parse::<Link>().unwrap().bits_per_second, Some(56_000));
        // 12,500 bytes are 100,000 bits, a thousandth of what passes in a second; and 20 ms hold 250,000 bytes.
        assert_eq!(link.sending(12_500), Duration::from_millis(1));
        assert_eq!(link.bytes_in_flight(), 250_000);
        for wrong in ["", "fast", "100", "100mbit,", "-1ms", "100mbit;20ms", "0mbit", "90s", "nanms"] {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        }
    }
}
