//! A compact list of entry names: one allocation, in which a million names take little more than their own bytes.

use std::ffi::CStr;

use rustix::fs::FileType;

/// Names with their types, taken from the front.
#[derive(Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    start: usize,
}

impl Names {
    pub(crate) fn push(&mut self, kind: FileType, name: &CStr) {
        self.bytes.push(code(kind));
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start >= self.bytes.len()
    }

    pub(crate) fn are_several(&self) -> bool {
        let rest = &self.bytes[self.start.min(self.bytes.len())..];
        rest.iter().position(|&byte| byte == 0).is_some_and(|end| end + 1 < rest.len())
    }

    /// Takes the first one, copying its name into `name` (a buffer to be used again).
    pub(crate) fn take<'n>(&mut self, name: &'n mut Vec<u8>) -> Option<(FileType, &'n CStr)> {
        let kind = kind(*self.bytes.get(self.start)?);
        let rest = CStr::from_bytes_until_nul(&self.bytes[self.start + 1..]).ok()?;
        name.clear();
        name.extend_from_slice(rest.to_bytes_with_nul());
        self.start += 1 + name.len();
        Some((kind, CStr::from_bytes_with_nul(name).ok()?))
    }

    /// Adds the names of another list, and empties that.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.bytes.extend_from_slice(other.bytes.get(other.start..).unwrap_or_default());
        *other = Self::default();
    }

    /// Gives the second half away.
    pub(crate) fn split(&mut self) -> Self {
        let remaining = &self.bytes[self.start..];
        let middle = remaining.len() / 2;
        // The next name's end at or after the middle.
        let cut =
            remaining[middle..].iter().position(|&byte| byte == 0).map_or(remaining.len(), |end| middle + end + 1);
        let given = remaining[cut..].to_vec();
        self.bytes.truncate(self.start + cut);
        if given.is_empty() {
            // One name, or one long one at the end: all of it.
            return std::mem::take(self);
        }
        Self { bytes: given, start: 0 }
    }
}

/// The code of a type is its place here, from 1 on: names can be told apart by their NULs alone.
const KINDS: [FileType; 7] = {
    use FileType::{BlockDevice, CharacterDevice, Directory, Fifo, RegularFile, Socket, Symlink};
    [Directory, RegularFile, Symlink, Fifo, Socket, CharacterDevice, BlockDevice]
};

pub(crate) fn code(kind: FileType) -> u8 {
    KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len()) as u8 + 1
}

fn kind(code: u8) -> FileType {
    KINDS.get(usize::from(code).wrapping_sub(1)).copied().unwrap_or(FileType::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(mut names: Names) -> Vec<String> {
        let mut buffer = Vec::new();
        let mut all = Vec::new();
        while let Some((_, name)) = names.take(&mut buffer) {
            all.push(name.to_str().unwrap().to_owned());
        }
        all
    }

    #[test]
    fn splitting_at_any_time_loses_and_repeats_nothing() {
        for count in 0..20usize {
            for taken in 0..=count {
                let mut names = Names::default();
                let mut expected: Vec<String> =
                    (0..count).map(|i| "n".repeat(i * i % 7 + 1) + &i.to_string()).collect();
                for name in &expected {
                    names.push(FileType::RegularFile, &std::ffi::CString::new(name.as_str()).unwrap());
                }
                let mut buffer = Vec::new();
                for _ in 0..taken {
                    names.take(&mut buffer);
                }
                expected.drain(..taken);
                let given = names.split();
                let mut both = drain(names);
                both.extend(drain(given));
                assert_eq!(both, expected, "{count} names, {taken} taken");
            }
        }
    }
}
