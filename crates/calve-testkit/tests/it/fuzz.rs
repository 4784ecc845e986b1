//! Mutated inputs reach what they are meant to reach.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_length_that_nobody_checks_is_found() {
    let parse = |input: &[u8]| {
        let Some((length, rest)) = input.split_first() else { return };
        assert!(usize::from(*length) <= rest.len());
    };
    assert!(catch_unwind(AssertUnwindSafe(|| calve_testkit::fuzz(&[b"\x04abcd"], parse))).is_err());
    calve_testkit::fuzz(&[b"\x04abcd"], |input| assert!(input.len() <= 64 << 10));
}
