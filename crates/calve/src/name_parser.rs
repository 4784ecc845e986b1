use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Names, and a parser that accepts one or explains the error. Completions offer those that it accepts.
#[derive(Clone, Copy)]
pub(crate) struct NameParser<T>(pub(crate) &'static [&'static str], pub(crate) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NameParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let parse = self.1;
        StringValueParser::new().try_map(move |name| parse(&name)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().filter(|name| self.1(name).is_ok()).map(PossibleValue::new)))
    }
}
