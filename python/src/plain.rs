//! What stands in for functions of `shutil`. Whatever is not done here, the package leaves to those.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use calve_core::{
    CloneOptions, Decision, InlinedBytes, Keep, KeptLinks, KeptTimes, KeptXattrs, Latency, Plain, RemoveOptions,
    Selection,
};
use pyo3::prelude::*;

use crate::{Handle, Work, path};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(copy_plain, module)?)?;
    module.add_function(wrap_pyfunction!(delete_tree, module)?)
}

/// Begins to copy a tree as `shutil.copytree` does with `symlinks=True`, without the entries at `left_out`, relative to the root.
/// Fails, with nothing made, where an entry is no directory, regular file or symlink.
#[pyfunction]
fn copy_plain(src: Vec<u8>, dst: Vec<u8>, left_out: Vec<Vec<u8>>, handle: &Handle) -> PyResult<Work> {
    let (src, dst) = (path(src), path(dst));
    let mut options = CloneOptions::default();
    options.keep = Keep::Plain(Plain { times: KeptTimes::OfAll, xattrs: KeptXattrs::Yes, links: KeptLinks::Verbatim });
    // Nobody is told.
    options.inlined = InlinedBytes::WithShared;
    if !left_out.is_empty() {
        let left_out: HashSet<PathBuf> = left_out.into_iter().map(path).collect();
        let decide = move |path: &std::path::Path, _| match left_out.contains(path) {
            true => Decision::Leave,
            false => Decision::Take,
        };
        options.select = Some(Selection::new(decide));
    }
    options.latency = Latency::Low;
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Work::start(handle, move || calve_core::clone_tree(&src, &dst, &options).map(|_| "[null,false]".to_owned()))
}

/// Begins to delete a directory where it is. What cannot be deleted stays, with the directories that lead there.
#[pyfunction]
fn delete_tree(what: Vec<u8>, handle: &Handle) -> PyResult<Work> {
    let what = path(what);
    let mut options = RemoveOptions::default();
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Work::start(handle, move || calve_core::delete_in_place(&what, &options).map(|()| "[null,false]".to_owned()))
}
