//! The superblock of a btrfs (btrfs(5), "On-disk format": struct btrfs_super_block).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const OFFSET: u64 = 64 << 10;
const MAGIC: &[u8; 8] = b"_BHRfS_M";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// As text, in the form of `/proc/sys/kernel/random/uuid`.
    pub(crate) uuid: String,
    pub(crate) total_bytes: u64,
}

pub(crate) fn read(image: &File) -> io::Result<Option<Superblock>> {
    let mut block = [0; 0x78];
    match image.read_exact_at(&mut block, OFFSET) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    Ok(parse(&block))
}

fn parse(block: &[u8; 0x78]) -> Option<Superblock> {
    if &block[0x40..0x48] != MAGIC {
        return None;
    }
    let mut uuid: String = block[0x20..0x30].iter().map(|byte| format!("{byte:02x}")).collect();
    for dash in [20, 16, 12, 8] {
        uuid.insert(dash, '-');
    }
    let total_bytes = u64::from_le_bytes(block[0x70..0x78].try_into().ok()?);
    Some(Superblock { uuid, total_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_its_place() {
        let mut block = [0; 0x78];
        assert_eq!(parse(&block), None);
        block[0x40..0x48].copy_from_slice(MAGIC);
        block[0x20] = 0xab;
        block[0x71] = 1;
        let expected = Superblock { uuid: "ab000000-0000-0000-0000-000000000000".into(), total_bytes: 256 };
        assert_eq!(parse(&block), Some(expected));
    }
}
