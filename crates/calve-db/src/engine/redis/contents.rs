//! The contents of a server: keys, grouped by what is before the first colon of their names, and libraries of functions.

use std::collections::BTreeMap;

use super::session::{Refusal, Reply, Session};
use crate::engine::{DatabaseObject, Rows};

/// Keys whose values are asked for at once.
const BATCH: usize = 512;
/// The longest beginning of a key that names a group.
const LONGEST_GROUP: usize = 64;

/// Reads all keys of all databases, and all functions.
pub(super) fn read(session: &mut Session) -> Result<Vec<DatabaseObject>, Refusal> {
    let mut objects = functions(session)?;
    let keyspace = session.ask(&["INFO", "keyspace"])?;
    let databases = keyspace.lines().filter_map(|line| line.split_once(':')?.0.strip_prefix("db"));
    for database in databases {
        session.ask(&["SELECT", database])?;
        objects.extend(keys(session, database)?);
    }
    Ok(objects)
}

fn keys(session: &mut Session, database: &str) -> Result<Vec<DatabaseObject>, Refusal> {
    let mut groups: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let names = session.ask_for(&["KEYS", "*"])?.list()?;
    let names: Vec<Vec<u8>> = names.into_iter().map(Reply::bytes).collect::<Result<_, _>>()?;
    for batch in names.chunks(BATCH) {
        // The digest of a value is the same in whichever order a set or a hash holds its members. It tells whether the key expires, and not when.
        let words: Vec<&[u8]> =
            [&b"DEBUG"[..], b"DIGEST-VALUE"].into_iter().chain(batch.iter().map(Vec::as_slice)).collect();
        let digests = session.ask_for(&words)?.list()?;
        for (name, digest) in batch.iter().zip(digests) {
            let digest = digest.bytes()?;
            // It has expired meanwhile.
            if digest.iter().all(|&digit| digit == b'0') {
                continue;
            }
            let mut hasher = blake3::Hasher::new();
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name).update(&digest);
            let mut hash = [0; 8];
            hasher.finalize_xof().fill(&mut hash);
            let (count, sum) = groups.entry(group(name)).or_default();
            *count += 1;
            *sum = sum.wrapping_add(u64::from_le_bytes(hash));
        }
    }
    let object = |(name, (count, sum))| DatabaseObject {
        database: database.to_owned(),
        kind: "keys".into(),
        name,
        definition: String::new(),
        rows: Some(Rows { count, checksum: format!("{sum:016x}") }),
    };
    Ok(groups.into_iter().map(object).collect())
}

/// Returns the group of a key: `session:*` of `session:17`. A beginning with digits is the name of one thing rather than of a group.
fn group(key: &[u8]) -> String {
    let beginning = key.split(|&byte| byte == b':').next().unwrap_or_default();
    let is_group = beginning.len() < key.len()
        && beginning.len() <= LONGEST_GROUP
        && beginning.iter().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_digit());
    if is_group { format!("{}:*", String::from_utf8_lossy(beginning)) } else { "*".into() }
}

fn functions(session: &mut Session) -> Result<Vec<DatabaseObject>, Refusal> {
    let libraries = session.ask_for(&["FUNCTION", "LIST", "WITHCODE"])?.list()?;
    let object = |library: Reply| {
        let mut fields = library.list()?.into_iter();
        let mut texts = BTreeMap::new();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            if let (Reply::Bytes(name), Reply::Bytes(value)) = (name, value) {
                texts.insert(name, String::from_utf8_lossy(&value).into_owned());
            }
        }
        let mut text = |name: &str| texts.remove(name.as_bytes()).unwrap_or_default();
        let (name, definition) = (text("library_name"), text("library_code"));
        Ok(DatabaseObject { database: String::new(), kind: "functions".into(), name, definition, rows: None })
    };
    libraries.into_iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_grouped_by_their_beginning() {
        assert_eq!(group(b"session:17"), "session:*");
        assert_eq!(group(b"session:a:b"), "session:*");
        for alone in [&b"greeting"[..], b"17:name", b"a1:x", b"a b:x", b"\xff:x"] {
            assert_eq!(group(alone), "*");
        }
    }
}
