/// A requirement that the server has to honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Property {
    Filter,
    Depth,
}
