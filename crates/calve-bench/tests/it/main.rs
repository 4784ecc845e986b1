//! Tests of what the bench makes up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod synthetic;
