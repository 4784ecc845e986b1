//! Values of reports as JSON documents have them: paths as text, times as numbers, errors by their names.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::io::Errno;
use serde::{Serialize, Serializer};

// Writes a report's field as `T`: `#[serde(with = "As::<T>")]`. A doc comment would describe the fields in the schema.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
pub struct As<T>(pub T);

/// A value of a document, made from a `V` of a report.
pub trait FromReport<V> {
    fn from_report(value: &V) -> Self;
}

impl<T: Serialize> As<T> {
    pub fn serialize<V, S: Serializer>(value: &V, to: S) -> Result<S::Ok, S::Error>
    where
        T: FromReport<V>,
    {
        T::from_report(value).serialize(to)
    }
}

impl<V, T: FromReport<V>> FromReport<Option<V>> for Option<T> {
    fn from_report(value: &Option<V>) -> Self {
        value.as_ref().map(T::from_report)
    }
}

/// True if there is a value.
impl<V> FromReport<Option<V>> for bool {
    fn from_report(value: &Option<V>) -> Self {
        value.is_some()
    }
}

impl<V, T: FromReport<V>> FromReport<Vec<V>> for Vec<T> {
    fn from_report(values: &Vec<V>) -> Self {
        values.iter().map(T::from_report).collect()
    }
}

/// A path as text. A path that is not UTF-8 is given as its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ReceiptPath {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Undecodable(Undecodable),
}

/// A path that is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undecodable {
    /// The bytes of the path in Base64.
    bytes_base64: String,
}

impl ReceiptPath {
    /// Converts a path. A tree's root, relative to itself, is `.`.
    pub fn new(path: &Path) -> Self {
        let path = named(path);
        match path.to_str() {
            Some(text) => Self::Text(text.into()),
            None => {
                Self::Undecodable(Undecodable { bytes_base64: STANDARD.encode(path.as_os_str().as_encoded_bytes()) })
            }
        }
    }
}

impl FromReport<PathBuf> for ReceiptPath {
    fn from_report(path: &PathBuf) -> Self {
        Self::new(path)
    }
}

/// Returns `.` for a tree's root, whose path relative to itself is empty.
pub fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A duration in milliseconds, rounded to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Milliseconds(f64);

impl From<Duration> for Milliseconds {
    fn from(elapsed: Duration) -> Self {
        Self((elapsed.as_secs_f64() * 1e6).round() / 1e3)
    }
}

impl FromReport<Duration> for Milliseconds {
    fn from_report(elapsed: &Duration) -> Self {
        Self::from(*elapsed)
    }
}

/// A duration in seconds, rounded to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Seconds(f64);

impl FromReport<f64> for Seconds {
    fn from_report(seconds: &f64) -> Self {
        Self((seconds * 1e6).round() / 1e6)
    }
}

impl FromReport<SystemTime> for Seconds {
    fn from_report(moment: &SystemTime) -> Self {
        Self::from_report(&moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
    }
}

impl FromReport<SystemTime> for u64 {
    fn from_report(moment: &SystemTime) -> Self {
        moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

/// The words of a value.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Text(String);

impl<V: Display> FromReport<V> for Text {
    fn from_report(value: &V) -> Self {
        Self(value.to_string())
    }
}

/// The name of an error number ("EXDEV"). Of two names for one number, it is the one that the kernel's manual pages prefer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ErrorName(pub String);

impl FromReport<i32> for ErrorName {
    fn from_report(errno: &i32) -> Self {
        let known = NAMES.iter().chain(&OTHER_NAMES).find(|(number, _)| number.raw_os_error() == *errno);
        Self(known.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned()))
    }
}

macro_rules! names {
    ($($name:ident)*) => { &[$((Errno::$name, concat!("E", stringify!($name)))),*] };
}

/// Errors of calls on files. Of two with one number, the first counts.
const NAMES: &[(Errno, &str)] = names! {
    PERM NOENT INTR IO NXIO BADF AGAIN NOMEM BUSY EXIST XDEV NODEV NOTDIR ISDIR INVAL NFILE MFILE NOTTY TXTBSY FBIG NOSPC SPIPE ROFS MLINK
    RANGE NAMETOOLONG NOSYS NOTEMPTY LOOP OVERFLOW ILSEQ OPNOTSUPP NOTSUP TIMEDOUT STALE DQUOT CANCELED
};

/// Errors with other names in rustix.
const OTHER_NAMES: [(Errno, &str); 2] = [(Errno::TOOBIG, "E2BIG"), (Errno::ACCESS, "EACCES")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_printed_as_nothing() {
        let text = |text: &str| ReceiptPath::Text(text.into());
        assert_eq!((ReceiptPath::new(Path::new("")), ReceiptPath::new(Path::new("a/b"))), (text("."), text("a/b")));
    }

    #[test]
    fn an_error_number_is_always_text() {
        let name = |errno: i32| ErrorName::from_report(&errno).0;
        assert_eq!(name(Errno::XDEV.raw_os_error()), "EXDEV");
        assert_eq!(name(Errno::OPNOTSUPP.raw_os_error()), "EOPNOTSUPP");
        assert_eq!(name(Errno::ACCESS.raw_os_error()), "EACCES");
        assert_eq!(name(9999), "errno 9999");
    }
}
