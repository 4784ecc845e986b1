use calve_core::internal::json::{As, Text};
use serde::Serialize;
use strum::{Display, VariantNames};

/// Something that the user should know and that is not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "GitWarning")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// A stable word for programs.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = NoticeCode::VARIANTS)))]
    pub code: NoticeCode,
    /// A sentence for people.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NoticeCode {
    FilterIgnored,
    DepthIgnored,
    CredentialsUnencrypted,
    CredentialsNotStored,
    QueryStored,
    NoHead,
    Empty,
    SourceShallow,
    SparseMissing,
    PathAsUrl,
    Local,
    Git,
}

impl NoticeCode {
    /// Returns whether the user may have to act.
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::CredentialsNotStored | Self::Empty | Self::PathAsUrl | Self::Local)
    }
}

impl Notice {
    pub(crate) fn new(code: NoticeCode, message: impl Into<String>) -> Notice {
        let remedy = match code {
            NoticeCode::FilterIgnored => {
                "; the server has to have `uploadpack.allowFilter` set; requiring `filter` fails instead"
            }
            NoticeCode::DepthIgnored => {
                "; the server, or a proxy before it, does not support shallow clones; requiring `depth` fails instead"
            }
            NoticeCode::NoHead => "; `git ls-remote` lists the branches",
            NoticeCode::CredentialsNotStored => "; later fetches need a credential helper (gitcredentials(7))",
            NoticeCode::QueryStored => ": if it is a token, use a credential helper instead (gitcredentials(7))",
            _ => "",
        };
        Notice { code, message: message.into() + remedy }
    }
}
