//! Trees: clone, remove, probe.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use calve_core::{
    Cancel, Choice, CloneOptions, Durability, Error, Existing, Mounts, RemoveOptions, Verify, Wait, clone_tree, probe,
    remove_tree,
};
use napi::bindgen_prelude::{BufferSlice, Env, Object};
use napi_derive::napi;

use crate::running::start;
use crate::{Handle, failed, invalid, path};

/// As on the command line.
#[napi(object)]
pub struct CloneWish {
    /// One of the strategies' names.
    pub strategy: Option<String>,
    /// Properties that must hold.
    pub require: Vec<String>,
    /// Globs.
    pub exclude: Vec<String>,
    /// Exchange what is there.
    pub replace: bool,
    /// Leave other file systems out.
    pub one_file_system: bool,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Write to the disk first.
    pub sync: bool,
    /// Compare first.
    pub verify: bool,
    /// The source has to be something else than a directory.
    pub only_file: bool,
    /// The home directory, which is not replaced.
    pub home: String,
}

fn options(wish: CloneWish, handle: &Handle) -> napi::Result<CloneOptions> {
    let mut options = CloneOptions::default();
    if let Some(name) = &wish.strategy {
        options.strategy = Choice::Only(name.parse().map_err(invalid)?);
    }
    options.require = wish.require.iter().map(|name| name.parse().map_err(invalid)).collect::<napi::Result<_>>()?;
    options.exclude = wish.exclude;
    options.existing = if wish.replace { Existing::Replace } else { Existing::Refuse };
    options.mounts = if wish.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.durability = if wish.sync { Durability::Synced } else { Durability::Cached };
    options.verify = if wish.verify { Verify::Contents } else { Verify::No };
    options.threads = threads(wish.threads);
    options.protect = vec![wish.home.into()];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Ok(options)
}

pub(crate) fn threads(wanted: Option<u32>) -> Option<NonZeroUsize> {
    wanted.and_then(|threads| NonZeroUsize::new(threads as usize))
}

/// `[receipt, whether there is trash to delete beside the destination]`, as JSON.
fn clone(src: &Path, dst: &Path, only_file: bool, options: &CloneOptions) -> Result<String, Error> {
    if only_file && src.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        let source = std::io::ErrorKind::IsADirectory.into();
        return Err(Error::Io { operation: "clone the file", path: src.to_path_buf(), source });
    }
    let report = clone_tree(src, dst, options)?;
    Ok(format!("[{},{}]", calve_receipt::clone(&report), report.trash_waits))
}

/// Clones a tree or a file.
#[napi(ts_return_type = "Promise<string>")]
pub fn start_clone<'env>(
    env: &'env Env,
    src: BufferSlice,
    dst: BufferSlice,
    wish: CloneWish,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    let (src, dst, only_file) = (path(&src), path(&dst), wish.only_file);
    let options = options(wish, handle)?;
    start(env, handle.cancel.clone(), move || clone(&src, &dst, only_file, &options))
}

/// The same, and waits for it.
#[napi]
pub fn clone_sync(src: BufferSlice, dst: BufferSlice, wish: CloneWish) -> napi::Result<String> {
    let (src, dst, only_file) = (path(&src), path(&dst), wish.only_file);
    let options = options(wish, &Handle::default())?;
    clone(&src, &dst, only_file, &options).map_err(|error| failed(&error))
}

/// Removes a tree or a file. `[receipt, whether there is trash to delete beside it]`, as JSON.
#[napi(ts_return_type = "Promise<string>")]
pub fn start_remove<'env>(
    env: &'env Env,
    what: BufferSlice,
    wait: bool,
    home: String,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    let what = path(&what);
    let mut options = RemoveOptions::default();
    options.wait = if wait { Wait::Yes } else { Wait::No };
    options.protect = vec![home.into()];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    start(env, handle.cancel.clone(), move || {
        let report = remove_tree(&what, &options)?;
        Ok(format!("[{},{}]", calve_receipt::remove(&report), report.trashed.is_some()))
    })
}

/// What a pair of places can do.
#[napi(ts_return_type = "Promise<string>")]
pub fn start_probe<'env>(env: &'env Env, src: BufferSlice, dst: BufferSlice) -> napi::Result<Object<'env>> {
    let (src, dst) = (path(&src), path(&dst));
    start(env, Cancel::default(), move || Ok(calve_receipt::probe(&probe(&src, &dst)?).to_string()))
}

/// Starts a process that deletes the trash of a directory and that inherits nothing.
#[cfg(windows)]
#[napi]
pub fn start_reaper(program: BufferSlice, parent: BufferSlice) -> napi::Result<()> {
    calve_core::start_reaper(&path(&program), &path(&parent)).map_err(invalid)
}
