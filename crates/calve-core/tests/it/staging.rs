//! `verify` and `stable` hold on every public entry point that clones.

use std::path::Path;
use std::sync::Once;

use calve_core::error::StatedRequirement;
use calve_core::internal::{OverwriteRule, StagedTree, merge_tree, stage_in, supersede};
use calve_core::options::Decision;
use calve_core::{CloneOptions, CloneVerification, Error, Requirement, Selection, clone_tree, plan};
use calve_testkit::{FileSystem, Tree, Volume};
use fs_err as fs;

use crate::cloning::{assert_holds, options};

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

type Clone = dyn Fn(&Path, &Path, &CloneOptions) -> Result<(), Error>;

/// Clones by `make` what changes meanwhile and what does not, with both demands.
#[track_caller]
fn holds(make: &Clone) {
    let verified = |options: &mut CloneOptions| options.verify = CloneVerification::Contents;
    let stable = |options: &mut CloneOptions| options.require = vec![Requirement::Stable];
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [src, directory] = ["place/src", "place"].map(|name| volume.path().join(name));
    let dst = directory.join("dst");
    Tree::new(&src).file("a", "1").file("sub/b", "2");

    let mut demand = changing(&src);
    verified(&mut demand);
    let error = make(&src, &dst, &demand).unwrap_err();
    assert!(matches!(&error, Error::VerifyFailed { first, .. } if first.contains("`a`")), "{error}");
    assert_holds(&directory, &["src"]);

    let mut demand = changing(&src);
    stable(&mut demand);
    let error = make(&src, &dst, &demand).unwrap_err();
    let requirement = StatedRequirement::Property(Requirement::Stable);
    assert!(matches!(&error, Error::RequirementRefused { requirement: found, .. } if *found == requirement), "{error}");
    assert!(error.to_string().contains("a` changed while the clone was made"), "{error}");
    assert_holds(&directory, &["src"]);

    let quiet = options(|options| {
        verified(options);
        stable(options);
    });
    make(&src, &dst, &quiet).unwrap();
}

fn staged(dst: &Path, make: impl FnOnce(&mut StagedTree<'_>) -> Result<(), Error>) -> Result<(), Error> {
    stage_in(None, dst, &CloneOptions::default(), make).map(|_| ())
}

#[test]
fn a_clone_is_verified_and_stable() {
    holds(&|src, dst, options| clone_tree(src, dst, options).map(|_| ()));
}

#[test]
fn the_root_of_a_staged_tree_is_verified_and_stable() {
    holds(&|src, dst, options| staged(dst, |staged| staged.clone_root(src, options).map(|_| ())));
}

#[test]
fn a_clone_below_the_root_of_a_staged_tree_is_verified_and_stable() {
    holds(&|src, dst, options| {
        staged(dst, |staged| {
            staged.make_root()?;
            staged.clone_below(src, Path::new("some/where"), options).map(|_| ())
        })
    });
}

#[test]
fn a_tree_that_supersedes_its_source_is_verified_and_stable() {
    holds(&|src, _, demand| {
        let is_left = |_: &Path| Ok(());
        let make = |staged: &mut StagedTree<'_>| staged.clone_root(src, demand).map(|_| ());
        supersede(src, &CloneOptions::default(), make, is_left).map(|_| ())
    });
}

#[test]
fn a_merge_is_verified_and_stable() {
    holds(&|src, dst, options| {
        fs::create_dir(dst).unwrap();
        let merged = merge_tree(src, dst, options, OverwriteRule::No);
        if merged.is_err() {
            // It is as it was: empty.
            fs::remove_dir(dst).unwrap();
        }
        merged
    });
}

/// A plan compares nothing, as it clones nothing; where nothing can be stable it says so.
#[test]
#[cfg_attr(any(target_os = "macos", like_macos), ignore = "what macOS tells of stores through mappings is not known")]
fn a_plan_is_refused_where_a_clone_would_be() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let tree = Tree::new(volume.path()).file("src/a", "1");
    let [src, dst] = ["src", "dst"].map(|name| tree.path().join(name));
    let stable = options(|options| options.require = vec![Requirement::Stable]);
    let below = |options: &CloneOptions| {
        staged(&dst, |staged| {
            staged.make_root()?;
            staged.clone_below(&src, Path::new("below"), options).map(|_| ())
        })
    };
    let refusals = [plan(&src, &dst, &stable).map(|_| ()), below(&stable)];
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
    let any = CloneOptions::default();
    let root = staged(&dst, |staged| staged.clone_root(&src, &any).map(|_| ())).unwrap_err();
    let below = staged(&dst, |staged| {
        staged.make_root()?;
        staged.clone_below(&src, Path::new("below"), &any).map(|_| ())
    });
    for error in [root, below.unwrap_err()] {
        crate::cloning::assert_errno(&error, rustix::io::Errno::NOTDIR);
    }
    assert_holds(folder.path(), &["file"]);
}

/// An entry that was seen to change is not stable, even if the selection leaves it out at the second look.
#[test]
fn a_listed_change_is_never_stable() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let clones: [&Clone; 3] = [
        &|src, dst, options| clone_tree(src, dst, options).map(|_| ()),
        &|src, dst, options| staged(dst, |staged| staged.clone_root(src, options).map(|_| ())),
        &|src, dst, options| {
            staged(dst, |staged| {
                staged.make_root()?;
                staged.clone_below(src, Path::new("below"), options).map(|_| ())
            })
        },
    ];
    for (number, clone) in clones.into_iter().enumerate() {
        let directory = volume.path().join(format!("place-{number}"));
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
