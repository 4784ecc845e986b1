//! The commands of the project that may run.

use calve_env::Consent;

pub(super) fn consent(no_hooks: bool, yes: bool) -> Consent {
    match (no_hooks, yes) {
        (true, _) => Consent::Nothing,
        (_, true) => Consent::Everything,
        _ => Consent::Approved,
    }
}
