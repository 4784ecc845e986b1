//! Replacements for functions of Node's own `fs`. The package leaves everything else to those.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::{
    InlinedBytes, KeptLinks, KeptTimes, KeptXattrs, Latency, OverwriteRule, PlainCopy, merge_tree, move_to_trash,
};
use calve_core::options::Decision;
use calve_core::{CloneOptions, Error, RemoveOptions, Selection, clone_tree};
use napi::bindgen_prelude::{BufferSlice, Env, Object};
use napi_derive::napi;

use crate::running::start;
use crate::{Failure, Handle, path};

/// A recursive `fs.cp` without a filter.
#[napi(object)]
pub struct CopyRequest {
    /// Links stay as they are.
    pub verbatim_symlinks: bool,
    /// A link is a reason to leave it to Node.
    pub dereference: bool,
    /// Files keep their times.
    pub preserve_timestamps: bool,
    /// Files that are there are replaced.
    pub force: bool,
    /// Nothing may be there.
    pub must_be_new: bool,
}

/// `base` is the absolute path of `src`.
fn options(base: PathBuf, request: &CopyRequest, handle: &Handle) -> CloneOptions {
    let mut options = CloneOptions::default();
    let links = match (request.dereference, request.verbatim_symlinks) {
        (true, _) => KeptLinks::Refuse,
        (_, true) => KeptLinks::Verbatim,
        _ => KeptLinks::Absolute(base),
    };
    let times = if request.preserve_timestamps { KeptTimes::OfFiles } else { KeptTimes::None };
    options.internal.plain = Some(PlainCopy { times, xattrs: KeptXattrs::No, links });
    // No receipt needs the count, which takes a look at each small file.
    options.internal.inlined = InlinedBytes::WithShared;
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.stop.token();
    // Node knows no other names.
    let not_text = handle.stop.token();
    options.select = Some(Selection::new(move |path, _| {
        if path.to_str().is_none() {
            not_text.cancel();
        }
        Decision::Take
    }));
    options
}

fn copy(src: &Path, dst: &Path, request: &CopyRequest, options: &CloneOptions) -> Result<(), Error> {
    // With a slash at the end, this is a link's target.
    let is_directory = src.symlink_metadata().is_ok_and(|data| data.is_dir());
    if !is_directory {
        return Err(Error::NotClonable { path: src.to_path_buf(), kind: "single file" });
    }
    if request.must_be_new || dst.symlink_metadata().is_err() {
        return clone_tree(src, dst, options).map(|_| ());
    }
    merge_tree(src, dst, options, if request.force { OverwriteRule::Yes } else { OverwriteRule::No })
}

/// Copies a tree, or fails: then it is as if nothing had been done.
#[napi(ts_return_type = "Promise<void | Failure>")]
pub fn start_copy<'env>(
    env: &'env Env,
    src: BufferSlice,
    dst: BufferSlice,
    base: BufferSlice,
    request: CopyRequest,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    let (src, dst) = (path(&src), path(&dst));
    let mut options = options(path(&base), &request, handle);
    // The event loop goes on meanwhile.
    options.internal.latency = Latency::Low;
    start(env, handle.stop.clone(), move || copy(&src, &dst, &request, &options))
}

/// Copies as [`start_copy`] does, and waits for it.
#[napi]
pub fn copy_sync(src: BufferSlice, dst: BufferSlice, base: BufferSlice, request: CopyRequest) -> Option<Failure> {
    let options = options(path(&base), &request, &Handle::default());
    copy(&path(&src), &path(&dst), &request, &options).err().as_ref().map(Failure::from)
}

/// Below this, Node deletes a tree faster than a process for that starts.
const SMALL_ENTRIES: usize = 256;

/// Returns true if a directory has so many entries that deleting them takes long.
fn is_large(directory: &Path) -> bool {
    let mut found = 0;
    let mut unread = vec![directory.to_path_buf()];
    while let Some(directory) = unread.pop() {
        // The deletion reports unreadable directories.
        #[expect(clippy::disallowed_methods)]
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            found += 1;
            if found >= SMALL_ENTRIES {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                unread.push(entry.path());
            }
        }
    }
    false
}

fn discard(what: &Path, home: String, handle: &Handle) -> impl FnOnce() -> Result<(), Error> + use<> {
    let what = what.to_path_buf();
    let mut options = RemoveOptions::default();
    options.protect = vec![home.into()];
    options.cancel = handle.stop.token();
    move || {
        if !what.symlink_metadata().is_ok_and(|data| data.is_dir()) || !is_large(&what) {
            return Err(Error::NotClonable { path: what, kind: "small tree" });
        }
        move_to_trash(&what, &options)
    }
}

/// Moves a large directory out of sight, or fails, and has done nothing.
#[napi(ts_return_type = "Promise<void | Failure>")]
pub fn start_discard<'env>(
    env: &'env Env,
    what: BufferSlice,
    home: String,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    start(env, handle.stop.clone(), discard(&path(&what), home, handle))
}

/// Moves a directory out of sight as [`start_discard`] does, and waits for it.
#[napi]
pub fn discard_sync(what: BufferSlice, home: String) -> Option<Failure> {
    discard(&path(&what), home, &Handle::default())().err().as_ref().map(Failure::from)
}
