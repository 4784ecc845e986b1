//! `verify` and `stable` hold on every public entry point that clones.

use std::path::Path;
use std::sync::Once;

use calve_core::error::StatedRequirement;
use calve_core::internal::{OverwriteRule, StagedTree, merge_tree, stage_in, supersede};
use calve_core::options::Decision;
use calve_core::{CloneOptions, CloneVerification, Error, Requirement, Selection, clone_tree, plan};
use calve_testkit::{FileSystem, Tree, Volume};
use fs_err as fs;

use crate::cloning::{assert_holds, options, stable};

/// Options under which the file `a` of the source changes when it has been cloned: entries of a directory are made before those of the
/// directories in it.
fn changing(src: &Path) -> CloneOptions {
    let (file, once) = (src.join("a"), Once::new());
    options(|options| {
        options.threads = std::num::NonZeroUsize::new(1);
        options.select = Some(Selection::new(move |path, _| {
            if path == Path::new("sub/b") {
                once.call_once(|| fs::write(&file, "changed").unwrap());
            }
            Decision::Take
        }));
    })
}

type Clone = fn(&Path, &Path, &CloneOptions) -> Result<(), Error>;

/// The public entry points that clone, of which the first three make a tree that is not there.
const CLONES: [(&str, Clone); 5] = [
    ("a clone", |src, dst, options| clone_tree(src, dst, options).map(|_| ())),
    ("the root of a staged tree", |src, dst, options| {
        staged(dst, |staged| staged.clone_root(src, options).map(|_| ()))
    }),
    ("below the root of a staged tree", |src, dst, options| {
        staged(dst, |staged| {
            staged.make_root()?;
            staged.clone_below(src, Path::new("some/where"), options).map(|_| ())
        })
    }),
    ("what supersedes its source", |src, _, demand| {
        let is_left = |_: &Path| Ok(());
        let make = |staged: &mut StagedTree<'_>| staged.clone_root(src, demand).map(|_| ());
        supersede(src, &CloneOptions::default(), make, is_left).map(|_| ())
    }),
    ("a merge", |src, dst, options| {
        fs::create_dir(dst).unwrap();
        let merged = merge_tree(src, dst, options, OverwriteRule::No);
        if merged.is_err() {
            // It is as it was: empty.
            fs::remove_dir(dst).unwrap();
        }
        merged
    }),
];

fn staged(dst: &Path, make: impl FnOnce(&mut StagedTree<'_>) -> Result<(), Error>) -> Result<(), Error> {
    stage_in(None, dst, &CloneOptions::default(), make).map(|_| ())
}

/// Clones what changes meanwhile and what does not, with both demands.
#[test]
fn every_clone_is_verified_and_stable() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    for (name, make) in CLONES {
        let [src, directory] = ["src", ""].map(|below| volume.path().join(name).join(below));
        let dst = directory.join("dst");
        Tree::new(&src).file("a", "1").file("sub/b", "2");

        let mut demand = changing(&src);
        demand.verify = CloneVerification::Contents;
        let error = make(&src, &dst, &demand).unwrap_err();
        assert!(matches!(&error, Error::VerifyFailed { first, .. } if first.contains("`a`")), "{name}: {error}");
        assert_holds(&directory, &["src"]);

        let mut demand = changing(&src);
        demand.require = vec![Requirement::Stable];
        let error = make(&src, &dst, &demand).unwrap_err();
        let requirement = StatedRequirement::Property(Requirement::Stable);
        assert!(matches!(&error, Error::RequirementRefused { requirement: found, .. } if *found == requirement));
        assert!(error.to_string().contains("a` changed while the clone was made"), "{name}: {error}");
        assert_holds(&directory, &["src"]);

        let mut quiet = stable();
        quiet.verify = CloneVerification::Contents;
        make(&src, &dst, &quiet).unwrap();
    }
}

/// A plan compares nothing, as it clones nothing; where nothing can be stable it says so.
#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "what macOS tells of stores through mappings is not known")]
fn a_plan_is_refused_where_a_clone_would_be() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let tree = Tree::new(volume.path()).file("src/a", "1");
    let [src, dst] = ["src", "dst"].map(|name| tree.path().join(name));
    let (_, below) = CLONES[2];
    let refusals = [plan(&src, &dst, &stable()).map(|_| ()), below(&src, &dst, &stable())];
    for error in refusals.map(Result::unwrap_err) {
        assert!(error.to_string().contains("is on tmpfs, where"), "{error}");
    }
    assert_holds(volume.path(), &["src"]);
    let verified = options(|options| options.verify = CloneVerification::Contents);
    plan(&src, &dst, &verified).unwrap();
    assert_holds(volume.path(), &["src"]);
}

/// Only directories can be parts of a staged tree.
#[test]
fn a_file_is_no_part_of_a_staged_tree() {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new(folder.path()).file("file", "1");
    let [src, dst] = ["file", "dst"].map(|name| tree.path().join(name));
    for (_, clone) in &CLONES[1..3] {
        let error = clone(&src, &dst, &CloneOptions::default()).unwrap_err();
        crate::cloning::assert_errno(&error, rustix::io::Errno::NOTDIR);
    }
    assert_holds(folder.path(), &["file"]);
}

/// An entry that was seen to change is not stable, even if the selection leaves it out at the second look.
#[test]
fn a_listed_change_is_never_stable() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    for (name, clone) in &CLONES[..3] {
        let directory = volume.path().join(name);
        let [src, dst] = ["src", "dst"].map(|name| directory.join(name));
        Tree::new(&src).file("a", "1").file("sub/b", "2");
        let gone = src.join("sub/b");
        let options = options(|options| {
            options.require = vec![Requirement::Stable];
            options.select = Some(Selection::new(move |path, _| {
                if path == Path::new("sub/b") {
                    fs::remove_file(&gone).unwrap();
                }
                if gone.exists() || path != Path::new("sub") { Decision::Take } else { Decision::Leave }
            }));
        });
        let error = clone(&src, &dst, &options).unwrap_err();
        assert!(error.to_string().contains("entries changed while they were cloned"), "{error}");
        assert_holds(&directory, &["src"]);
    }
}
