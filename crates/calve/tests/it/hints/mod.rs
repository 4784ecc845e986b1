//! Tests the hints whose situations no other test creates, and that a command named in a hint helps when run as printed. The other hints
//! are asserted by the tests of their situations, which `list` checks.

mod bench;
mod case;
mod core;
mod db;
mod git;
mod list;

#[test]
fn what_the_engine_advises_helps() {
    case::check(core::CASES);
}

#[test]
fn what_is_advised_about_git_helps() {
    case::check(git::CASES);
}

#[test]
fn what_is_advised_about_servers_helps() {
    case::check(db::CASES);
}

#[test]
fn what_is_advised_about_benches_helps() {
    case::check(bench::CASES);
}
