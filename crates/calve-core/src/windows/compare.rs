//! Comparing a staged tree with its source before it is published ([`CloneVerification::Contents`](crate::CloneVerification)).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::FILE_READ_ATTRIBUTES;

use super::file::{settable, special};
use super::location::below;
use crate::error::Error;
use crate::hidden::is_calves_own;
use crate::operation::Operation;
use crate::progress::CancelToken;
use crate::sys::{self, Info};
use crate::tree::exclude::Exclusions;

pub(super) struct Comparison<'a> {
    pub(super) src: &'a Path,
    pub(super) dst: &'a Path,
    pub(super) shown_src: &'a Path,
    pub(super) exclude: &'a Exclusions,
    pub(super) cancel: &'a CancelToken,
}

/// Compares everything below the two roots, or the one entry of that name: kinds, contents, attributes, times of writing, links.
pub(super) fn compare(comparison: &Comparison<'_>, single: Option<&OsStr>) -> Result<(), Error> {
    let mut differences = Vec::new();
    let mut waiting = vec![single.map(PathBuf::from).unwrap_or_default()];
    while let Some(relative) = waiting.pop() {
        if comparison.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        let failed = |error| Error::io(Operation::Compare, below(comparison.shown_src, &relative), error);
        match entry(comparison, &relative, &mut waiting) {
            Ok(None) => {}
            Ok(Some(what)) => differences.push(format!("`{}`: {what}", crate::error::ShownPath(&relative))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.push(format!("`{}`: only one side has it", crate::error::ShownPath(&relative)));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    match differences.first() {
        None => Ok(()),
        Some(first) => Err(Error::VerifyFailed {
            path: comparison.shown_src.to_path_buf(),
            count: differences.len(),
            first: first.clone(),
        }),
    }
}

fn entry(comparison: &Comparison<'_>, relative: &Path, waiting: &mut Vec<PathBuf>) -> io::Result<Option<&'static str>> {
    let (src, dst) = (below(comparison.src, relative), below(comparison.dst, relative));
    let (from, to) = (sys::look(&src)?, sys::look(&dst)?);
    if (from.is_directory(), from.is_link()) != (to.is_directory(), to.is_link()) {
        // A mounted volume becomes an empty directory.
        let mounted = from.is_link() && sys::read_link(&sys::open(&src, FILE_READ_ATTRIBUTES)?)?.is_mounted_volume();
        return Ok((!mounted).then_some("another kind"));
    }
    let settled = |info: &Info| (settable(info.attributes), info.times.written);
    if settled(&from) != settled(&to) {
        return Ok(Some("other attributes or another time"));
    }
    if from.is_link() {
        let link = |path: &Path| sys::read_link(&sys::open(path, FILE_READ_ATTRIBUTES)?);
        let same = link(&src)?.target() == link(&dst)?.target();
        return Ok((!same).then_some("another target"));
    }
    if from.is_directory() {
        let names = |path: &Path| {
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<BTreeSet<OsString>>>()
        };
        let (wanted, made) = (names(&src)?, names(&dst)?);
        let expected = wanted.into_iter().filter(|name| !is_left_out(comparison, &relative.join(name)));
        let all: BTreeSet<OsString> = expected.chain(made).collect();
        waiting.extend(all.into_iter().map(|name| relative.join(name)));
        return Ok(None);
    }
    Ok((from.size != to.size || !same_contents(&src, &dst, comparison.cancel)?).then_some("other contents"))
}

fn is_left_out(comparison: &Comparison<'_>, relative: &Path) -> bool {
    let name = relative.file_name().unwrap_or_default();
    let info = sys::look(&comparison.src.join(relative));
    let is_directory = info.as_ref().is_ok_and(|info| info.is_directory() && !info.is_link());
    is_calves_own(name.as_encoded_bytes())
        || comparison.exclude.matches(relative, is_directory)
        || info.is_ok_and(|info| special(info.tag).is_some())
}

fn same_contents(a: &Path, b: &Path, cancel: &CancelToken) -> io::Result<bool> {
    const PIECE_BYTES: usize = 1 << 20;
    let (a, b) = (sys::patiently(sys::PATIENCE, || File::open(a))?, File::open(b)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        (&a).take(PIECE_BYTES as u64).read_to_end(&mut left)?;
        (&b).take(PIECE_BYTES as u64).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        // The caller notices.
        if left.is_empty() || cancel.is_cancelled() {
            return Ok(true);
        }
    }
}
