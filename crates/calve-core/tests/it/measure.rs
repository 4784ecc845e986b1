//! Measuring: sane numbers on every file system, and nothing left of it, however it ends.

use std::path::Path;
use std::time::Duration;

use calve_core::{Cancel, Error, MEASURE_WRITES_AT_MOST_BYTES, MeasureOptions, Measurement, identify, measure};
use calve_testkit::{FileSystem, FuseOptions, FuseVolume, Tree, Volume};
use fs_err as fs;
use rustix::io::Errno;

use crate::cloning::{assert_errno, assert_holds, clone_with, options};

const KIB: u64 = 1024;

/// Few rounds are enough to see that there are numbers.
fn briefly() -> MeasureOptions {
    let mut options = MeasureOptions::default();
    options.budget = Duration::from_millis(500);
    options
}

#[track_caller]
fn measured(place: &Path) -> Measurement {
    match measure(place, &briefly()) {
        Ok(measurement) => measurement,
        Err(error) => panic!("cannot measure `{}`: {error}", place.display()),
    }
}

#[test]
fn every_file_system_has_numbers_and_nothing_is_left() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let found = measured(volume.path());
        assert_holds(volume.path(), &[]);
        let name = file_system.name();
        assert_eq!(found.place, identify(volume.path()).unwrap());
        assert_eq!(found.place.file_system, name);
        let sizes: Vec<u64> = found.files.iter().map(|file| file.size_bytes).collect();
        assert_eq!(sizes, [0, KIB, 4 * KIB, 16 * KIB, 128 * KIB, 1024 * KIB], "{name}");
        let reflinks = FileSystem::REFLINKING.contains(&file_system);
        for file in &found.files {
            assert!(file.copy > Duration::ZERO, "{name}: {file:?}");
            assert_eq!(file.reflink.is_some(), reflinks && file.size_bytes > 0, "{name}: {file:?}");
            assert!(file.reflink.is_none_or(|time| time > Duration::ZERO), "{name}: {file:?}");
        }
        assert!(found.files[5].copy > found.files[1].copy, "{name}: a thousand times the bytes: {:?}", found.files);
        assert!(found.create > Duration::ZERO && found.delete.is_some_and(|time| time > Duration::ZERO), "{found:?}");
        match &found.reflink_refused {
            None => assert!(reflinks, "{name}"),
            Some(refused) => {
                assert!(!reflinks && refused.reason.contains("cannot share extents"), "{name}: {refused:?}");
                assert!(refused.remedy.is_some());
            }
        }
        assert_eq!(found.copy_up_to_bytes.is_some(), reflinks, "{name}");
        assert!(found.copy_up_to_bytes.is_none_or(|limit| limit <= 16 * KIB), "{found:?}");
        assert_eq!(found.snapshot.is_ok(), file_system == FileSystem::Btrfs, "{name}: {:?}", found.snapshot);
        assert!(found.overlay.as_ref().is_ok_and(|time| *time > Duration::ZERO), "{name}: {:?}", found.overlay);
        let threads: Vec<usize> = found.threads.iter().map(|cost| cost.threads.get()).collect();
        assert_eq!((threads[0], threads.last()), (1, Some(&found.place.processors)), "{name}");
        assert!(found.best_threads.is_some_and(|best| threads.contains(&best.get())), "{name}: {found:?}");
        assert!(found.written_bytes > 0 && found.written_bytes <= MEASURE_WRITES_AT_MOST_BYTES, "{found:?}");
    }
}

#[test]
fn a_slow_file_system_gets_fewer_trials_and_no_more_time() {
    for slowness in [Duration::from_micros(300), Duration::from_millis(3)] {
        let options = FuseOptions { slowness, ..FuseOptions::default() };
        let Some(volume) = FuseVolume::with_options(options) else { return };
        let mut found = measure(volume.path(), &MeasureOptions::default()).unwrap();
        // Something else may hold up a single one.
        for _ in 0..9 {
            if found.elapsed < Duration::from_secs(5) {
                break;
            }
            found = measure(volume.path(), &MeasureOptions::default()).unwrap();
        }
        assert!(found.elapsed < Duration::from_secs(5), "{slowness:?}: {found:?}");
        assert!(found.create > slowness && found.files.len() == 6 && found.delete.is_some(), "{slowness:?}: {found:?}");
        assert!(!found.threads.is_empty() && found.copy_up_to_bytes.is_none(), "{slowness:?}: {found:?}");
        assert_holds(volume.path(), &[]);
    }
}

#[test]
fn a_place_that_is_no_directory_is_measured_beside_it() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    assert_eq!(measured(&volume.path().join("new")).place.file_system, "tmpfs");
    assert_holds(volume.path(), &[]);
    let missing = measure(&volume.path().join("missing/new"), &briefly()).unwrap_err();
    assert!(matches!(missing, Error::ParentMissing(_)), "{missing}");
}

#[test]
fn a_read_only_file_system_is_an_error() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        volume.remount_read_only();
        assert_errno(&measure(volume.path(), &briefly()).unwrap_err(), Errno::ROFS);
        volume.remount_writable();
        assert_holds(volume.path(), &[]);
    }
}

#[test]
fn too_little_room_is_found_out_before_anything_is_made() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 64 << 20) else { return };
    let error = measure(volume.path(), &briefly()).unwrap_err();
    assert!(matches!(error, Error::NoRoom { unit: "bytes", .. }), "{error}");
    assert_holds(volume.path(), &[]);
    let few = Volume::builder(FileSystem::Tmpfs).mount_option("nr_inodes=5000").mount();
    let Some(volume) = few else { return };
    let error = measure(volume.path(), &briefly()).unwrap_err();
    assert!(matches!(error, Error::NoRoom { unit: "inodes", .. }), "{error}");
    assert_holds(volume.path(), &[]);
}

#[test]
fn it_can_be_cancelled_at_any_moment() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        // As long as the whole takes here.
        let whole = measured(volume.path()).elapsed;
        let mut interrupted = 0;
        for after in [0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.0, 0.0, 0.0] {
            if after == 0.0 && interrupted > 1 {
                break;
            }
            let mut options = briefly();
            options.cancel = Cancel::default();
            let cancel = options.cancel.clone();
            let canceller = std::thread::spawn(move || {
                std::thread::sleep(whole.mul_f64(after));
                cancel.cancel();
            });
            let ended = measure(volume.path(), &options);
            canceller.join().unwrap();
            match ended {
                Err(Error::Interrupted) => interrupted += 1,
                // The signal came too late.
                Ok(_) => {}
                Err(other) => panic!("{} after {after}: {other}", file_system.name()),
            }
            assert_holds(volume.path(), &[]);
        }
        assert!(interrupted > 0, "{}", file_system.name());
    }
}

#[test]
fn a_file_system_is_known_again_and_not_mistaken_for_another() {
    for file_system in FileSystem::ALL {
        let (Some(one), Some(other)) = (Volume::new(file_system), Volume::new(file_system)) else { return };
        let before = identify(one.path()).unwrap();
        Tree::new(one.path().join("d/e")).file("f", b"1");
        assert_eq!(identify(one.path()).unwrap(), before);
        assert_eq!(identify(&one.path().join("d/e")).unwrap(), before);
        assert_eq!(identify(&one.path().join("d/new")).unwrap(), before, "beside it");
        assert_ne!(identify(other.path()).unwrap().volume, before.volume, "{}", file_system.name());
        one.remount_read_only();
        assert_ne!(identify(one.path()).unwrap().mount_options, before.mount_options);
    }
}

#[test]
fn the_size_up_to_which_files_are_copied_can_be_given() {
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("src");
        Tree::new(&src).file("small", vec![1; 3000]).file("middle", vec![2; 9000]).file("large", vec![3; 100_000]);
        for (limit, written) in [(Some(0), 0), (Some(3000), 3000), (Some(16384), 12000)] {
            let mut seen = Vec::new();
            // Files that are not in memory are shared whatever their size, and anybody may empty the caches at any time.
            while !seen.contains(&(written, 112_000 - written)) {
                assert!(seen.len() < 50, "{}: {written} are to be written, but {seen:?}", file_system.name());
                let dst = volume.path().join(format!("dst-{written}-{}", seen.len()));
                for name in ["small", "middle", "large"] {
                    fs::read(src.join(name)).unwrap();
                }
                let report = clone_with(&options(|options| options.copy_up_to_bytes = limit), &src, &dst);
                let bytes = report.bytes.unwrap();
                seen.push((bytes.written, bytes.shared));
                assert_eq!(fs::read(dst.join("middle")).unwrap(), vec![2; 9000]);
            }
        }
        let cow = options(|options| {
            options.copy_up_to_bytes = Some(16384);
            options.require = vec![calve_core::Requirement::Cow];
        });
        assert_eq!(clone_with(&cow, &src, volume.path().join("cow")).bytes.unwrap().written, 0);
    }
}
