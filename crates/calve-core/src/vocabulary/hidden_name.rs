//! The names of hidden siblings: `.calve-<purpose>-<user>-<machine>-<boot>-<random>`, with `.lock` added for the lock.

use strum::{Display, EnumString};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Purpose {
    /// A clone that is being made.
    Staging,
    /// A tree that waits to be deleted.
    Trash,
    /// The upper and work directories of an overlay mount.
    Overlay,
}

const PREFIX: &str = ".calve-";
pub(crate) const LOCK_SUFFIX: &str = ".lock";
const RANDOM_DIGITS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HiddenNameParts<'n> {
    pub(crate) purpose: Purpose,
    pub(crate) user: u32,
    pub(crate) machine: &'n str,
    pub(crate) boot: &'n str,
    /// Without the lock's suffix.
    pub(crate) name: &'n str,
}

impl<'n> HiddenNameParts<'n> {
    pub(crate) fn parse(name: &'n str) -> Option<Self> {
        let name = name.strip_suffix(LOCK_SUFFIX).unwrap_or(name);
        let mut fields = name.strip_prefix(PREFIX)?.split('-');
        let purpose = fields.next()?.parse().ok()?;
        let user = fields.next()?.parse().ok()?;
        let (machine, boot, random) = (fields.next()?, fields.next()?, fields.next()?);
        let whole = random.len() == RANDOM_DIGITS && fields.next().is_none();
        whole.then_some(Self { purpose, user, machine, boot, name })
    }
}

pub(crate) fn new_name(purpose: Purpose, user: u32, machine: &str, boot: &str, random: u64) -> String {
    format!("{PREFIX}{purpose}-{user}-{machine}-{boot}-{random:016x}")
}

/// Returns the name of this user's directory for templates outside of CALVE_HOME.
pub(crate) fn templates_directory() -> String {
    format!("{PREFIX}templates-{}", rustix::process::geteuid().as_raw())
}

/// Returns whether a name is Calve's own, of any user on any machine, and not to be cloned.
pub(crate) fn is_calves_own(name: &[u8]) -> bool {
    const KINDS: [&[u8]; 7] = [b"staging-", b"trash-", b"overlay-", b"spares-", b"templates-", b"write-", b"scratch-"];
    name.first() == Some(&b'.')
        && name.strip_prefix(b".calve-").is_some_and(|rest| KINDS.iter().any(|kind| rest.starts_with(kind)))
}

/// Returns whether a name is Calve's own and temporary: not a place of spares or templates.
pub(crate) fn is_passing(name: &[u8]) -> bool {
    is_calves_own(name) && !name.starts_with(b".calve-spares-") && !name.starts_with(b".calve-templates-")
}

pub fn is_trash(name: &[u8]) -> bool {
    name.starts_with(b".calve-trash-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_understood_as_it_was_made() {
        let name = new_name(Purpose::Trash, 7, "aaaaaaaa", "bbbbbbbb", 1);
        let hidden =
            HiddenNameParts { purpose: Purpose::Trash, user: 7, machine: "aaaaaaaa", boot: "bbbbbbbb", name: &name };
        assert_eq!(HiddenNameParts::parse(&name), Some(hidden));
        assert_eq!(HiddenNameParts::parse(&format!("{name}{LOCK_SUFFIX}")), Some(hidden));
        for other in [format!("{name}0"), format!("{name}-x"), ".calve-x".into(), name.replace("trash", "rubbish")] {
            assert_eq!(HiddenNameParts::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn calves_own_names_are_known() {
        for name in [c".calve-trash-0-a-b-c", c".calve-staging-7-x.lock", c".calve-overlay-1", c".calve-write-0"] {
            assert!(is_calves_own(name.to_bytes()), "{name:?}");
        }
        for name in [c".calve.toml", c".calve-notes", c"calve-trash-0", c".cargo", c".calve-trash"] {
            assert!(!is_calves_own(name.to_bytes()), "{name:?}");
        }
    }
}
