//! Replacements for functions of `shutil`. The package leaves everything else to those.

use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::{InlinedBytes, KeptLinks, KeptTimes, KeptXattrs, Latency, LeftLinks, PlainCopy};
use calve_core::options::Decision;
use calve_core::{CloneOptions, RemoveOptions, Selection};
use calve_receipt::json;
use pyo3::prelude::*;

use crate::{Handle, Work, path};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(copy_plain, module)?)?;
    module.add_function(wrap_pyfunction!(delete_tree, module)?)
}

/// Begins to copy a tree as `shutil.copytree` does, without the entries at `left_out` (relative to the root), and without symlinks unless
/// `symlinks` is set. The work returns JSON, `[LINKS, false]`: the symlinks that are left to follow, relative to the root, one character
/// for each byte. The directories that lead to them are without metadata. Fails, with nothing made, if an entry is not a directory,
/// regular file or symlink.
#[pyfunction]
fn copy_plain(src: Vec<u8>, dst: Vec<u8>, symlinks: bool, left_out: Vec<Vec<u8>>, handle: &Handle) -> PyResult<Work> {
    let (src, dst) = (path(src), path(dst));
    let mut options = CloneOptions::default();
    let followed = LeftLinks::default();
    let links = if symlinks { KeptLinks::Verbatim } else { KeptLinks::Listed(followed.clone()) };
    options.internal.plain = Some(PlainCopy { times: KeptTimes::OfAll, xattrs: KeptXattrs::Yes, links });
    // No receipt needs the count, which takes a look at each small file.
    options.internal.inlined = InlinedBytes::WithShared;
    if !left_out.is_empty() {
        let left_out: HashSet<PathBuf> = left_out.into_iter().map(path).collect();
        let decide = move |path: &std::path::Path, _| match left_out.contains(path) {
            true => Decision::Leave,
            false => Decision::Take,
        };
        options.select = Some(Selection::new(decide));
    }
    options.internal.latency = Latency::Low;
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Work::start(handle, move || {
        calve_core::clone_tree(&src, &dst, &options)?;
        // One further up may have its mode already, and attributes can only be set where the owner may write. The standard
        // library reports a directory that cannot have them.
        for above in followed.lock().iter().flat_map(|link| link.ancestors().skip(1)) {
            let directory = dst.join(above);
            if let Ok(found) = fs_err::metadata(&directory) {
                let _ = fs_err::set_permissions(&directory, Permissions::from_mode(found.permissions().mode() | 0o700));
            }
        }
        let texts: Vec<String> = followed.lock().iter().map(|path| characters(path)).collect();
        Ok(format!("[{},false]", json(&texts)))
    })
}

fn characters(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().map(|&byte| char::from(byte)).collect()
}

/// Begins to delete a directory where it is. What cannot be deleted stays, with the directories that lead there.
#[pyfunction]
fn delete_tree(what: Vec<u8>, handle: &Handle) -> PyResult<Work> {
    let what = path(what);
    let mut options = RemoveOptions::default();
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Work::start(handle, move || {
        calve_core::internal::delete_in_place(&what, &options).map(|()| "[null,false]".to_owned())
    })
}
