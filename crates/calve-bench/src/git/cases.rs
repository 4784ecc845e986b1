//! T1 to T10: a clone, and the fetches after it.

use std::str::FromStr;

use strum::{Display, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CloneKind {
    Full,
    Shallow,
    Treeless,
    Blobless,
}

impl CloneKind {
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::Shallow => Some("--depth=1"),
            Self::Treeless => Some("--filter=tree:0"),
            Self::Blobless => Some("--filter=blob:none"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    pub(crate) name: &'static str,
    pub(crate) clone: CloneKind,
    pub(crate) fetch: Option<CloneKind>,
}

const fn case(name: &'static str, clone: CloneKind, fetch: Option<CloneKind>) -> Case {
    Case { name, clone, fetch }
}

/// In the order of their numbers.
pub(crate) static CASES: [Case; 10] = [
    case("T1", CloneKind::Full, None),
    case("T2", CloneKind::Shallow, None),
    case("T3", CloneKind::Treeless, None),
    case("T4", CloneKind::Blobless, None),
    case("T5", CloneKind::Full, Some(CloneKind::Full)),
    case("T6", CloneKind::Full, Some(CloneKind::Shallow)),
    case("T7", CloneKind::Shallow, Some(CloneKind::Full)),
    case("T8", CloneKind::Shallow, Some(CloneKind::Shallow)),
    case("T9", CloneKind::Treeless, Some(CloneKind::Full)),
    case("T10", CloneKind::Blobless, Some(CloneKind::Full)),
];

impl Case {
    /// Describes a test: "full clone", "treeless clone, full fetch".
    pub(crate) fn in_words(&self) -> String {
        let fetch = self.fetch.map_or_else(String::new, |fetch| format!(", {fetch} fetch"));
        format!("{} clone{fetch}", self.clone)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseSelection(pub Vec<&'static Case>);

impl FromStr for CaseSelection {
    type Err = String;

    /// Parses a choice of tests such as "T1,T5-T10".
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |name: &str| {
            let found = CASES.iter().position(|case| case.name.eq_ignore_ascii_case(name.trim()));
            found.ok_or_else(|| format!("there is no test `{}`: they are T1 to T10, as in `T1,T5-T10`", name.trim()))
        };
        let mut wanted = [false; CASES.len()];
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("`{}` has the greater test first", part.trim()));
            }
            wanted[first..=last].fill(true);
        }
        Ok(Self(CASES.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(case, _)| case).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_selected_by_number_and_range() {
        let names = |text: &str| {
            let CaseSelection(cases) = text.parse().unwrap();
            cases.iter().map(|case| case.name).collect::<Vec<_>>()
        };
        assert_eq!(names("T1,T5-T7"), ["T1", "T5", "T6", "T7"]);
        assert_eq!(names("t10, T2,T2-T3"), ["T2", "T3", "T10"]);
        for wrong in ["", "T11", "T0", "T3-T1", "1", "T1;T2", "T1-"] {
            assert!(wrong.parse::<CaseSelection>().is_err(), "{wrong}");
        }
    }
}
