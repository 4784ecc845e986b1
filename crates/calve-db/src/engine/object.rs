//! The objects of a database, such as tables.

use serde::{Deserialize, Serialize};

/// A table, or something else that a database holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct DatabaseObject {
    pub database: String,
    /// The kind, such as `table` or `view`.
    pub kind: String,
    /// Its name, with that of its schema.
    pub name: String,
    /// Its definition, as the engine has it.
    pub definition: String,
    /// Its rows; `None` if it has none of its own.
    pub rows: Option<Rows>,
}

/// The rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct Rows {
    pub count: u64,
    /// The sum of their hashes, whatever their order.
    pub checksum: String,
}

impl Rows {
    /// Parses `sum`, the sum of the rows' hashes of up to 64 bits each, and turns it into a checksum. `None` if it is no number.
    pub(crate) fn new(count: u64, sum: &str) -> Option<Self> {
        let sum: i128 = sum.parse().ok()?;
        Some(Self { count, checksum: format!("{:016x}", sum & i128::from(u64::MAX)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_both_signs_become_checksums() {
        let checksum = |sum| Rows::new(1, sum).map(|rows| rows.checksum);
        assert_eq!(checksum("0").as_deref(), Some("0000000000000000"));
        assert_eq!(checksum("-1").as_deref(), Some("ffffffffffffffff"));
        assert_eq!(checksum("36893488147419103233").as_deref(), Some("0000000000000001"));
        assert_eq!(checksum("x"), None);
    }
}
