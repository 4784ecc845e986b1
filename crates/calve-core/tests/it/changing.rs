//! A source that changes while it is cloned: what changed is listed, and `stable` refuses it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use calve_core::error::StatedRequirement;
use calve_core::{Choice, CloneOptions, CloneReport, Error, Requirement, Strategy, clone_tree};
use calve_testkit::{BindMount, FileSystem, Tree, Volume, fingerprint, require_program};
use fs_err as fs;

use crate::cloning::{assert_holds, clone, clone_with, only, refused, stable};
use crate::rival::while_another;
use crate::script::{Script, python};

/// Clones until a clone has noticed a change of `change`, which is done over and over.
fn until_noticed(
    src: &Path,
    directory: &Path,
    strategy: Strategy,
    change: impl Fn() + Send,
) -> (Option<CloneReport>, Option<Error>) {
    const MOST_ROUNDS: usize = 2_000;
    let (mut stable, any) = (stable(), only(strategy));
    stable.strategy = Choice::Only(strategy);
    while_another(change, || {
        let (mut noticed, mut refused) = (None, None);
        for _ in 0..MOST_ROUNDS {
            let dst = directory.join("dst");
            if noticed.is_none() {
                let report = clone_tree(src, &dst, &any).unwrap();
                fs::remove_dir_all(&dst).unwrap();
                noticed = Some(report).filter(|report| !report.changed.is_empty());
            }
            match clone_tree(src, &dst, &stable) {
                Ok(report) => {
                    assert!(report.changed.is_empty(), "{:?}", report.changed);
                    fs::remove_dir_all(&dst).unwrap();
                }
                Err(error) => {
                    assert_holds(directory, &[]);
                    refused = Some(error);
                }
            }
            if noticed.is_some() && refused.is_some() {
                break;
            }
        }
        (noticed, refused)
    })
}

fn is_noticed(file_system: FileSystem, strategy: Strategy, expected: &[&str], change: impl Fn(&Path) + Sync) {
    let Some(volume) = Volume::new(file_system) else { return };
    let [src, directory] = ["src", "place"].map(|name| volume.path().join(name));
    fs::create_dir(&directory).unwrap();
    let tree = Tree::new(&src).file("large", vec![b'x'; 3 << 20]).file("sub/still", "1");
    for number in 0..30 {
        fs::write(tree.path().join(format!("file-{number:02}")), vec![b'y'; 5000]).unwrap();
    }
    let (noticed, refused) = until_noticed(&src, &directory, strategy, || change(&src));
    let noticed = noticed.unwrap_or_else(|| panic!("no change was noticed by {strategy}"));
    let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
    assert!(noticed.changed.iter().all(|path| expected.contains(path)), "{:?}", noticed.changed);
    match refused {
        Some(Error::RequirementRefused { requirement, detail, .. }) => {
            assert_eq!(requirement, StatedRequirement::Property(Requirement::Stable));
            assert!(detail.unwrap().contains("changed"));
        }
        other => panic!("`stable` was not refused: {other:?}"),
    }
    assert_holds(&directory, &[]);
}

fn on_both(expected: &[&str], change: impl Fn(&Path) + Sync) {
    is_noticed(FileSystem::Ext4, Strategy::Copy, expected, &change);
    is_noticed(FileSystem::Xfs, Strategy::Reflink, expected, &change);
}

#[test]
fn a_file_that_grows_is_listed() {
    on_both(&["large"], |src| {
        let mut file = fs::OpenOptions::new().append(true).open(src.join("large")).unwrap();
        file.write_all(b"more").unwrap();
        if file.metadata().unwrap().len() > 8 << 20 {
            file.set_len(3 << 20).unwrap();
        }
    });
}

#[test]
fn a_file_that_is_cut_is_listed() {
    on_both(&["large"], |src| {
        let file = fs::OpenOptions::new().write(true).open(src.join("large")).unwrap();
        file.set_len(1 << 20).unwrap();
        file.set_len(3 << 20).unwrap();
    });
}

#[test]
fn files_that_come_and_go_are_listed() {
    on_both(&["", "file-07", "file-15"], |src| {
        for name in ["file-07", "file-15"] {
            fs::remove_file(src.join(name)).unwrap();
            fs::write(src.join(name), vec![b'y'; 5000]).unwrap();
        }
    });
}

#[test]
fn a_file_that_turns_into_a_link_or_a_directory_is_listed() {
    let kinds = ["", "file-07", "file-15", "file-07/inside"];
    on_both(&kinds, |src| {
        fs::remove_file(src.join("file-07")).unwrap();
        fs::create_dir(src.join("file-07")).unwrap();
        fs::remove_file(src.join("file-15")).unwrap();
        fs_err::os::unix::fs::symlink("/etc/passwd", src.join("file-15")).unwrap();
        fs::remove_dir(src.join("file-07")).unwrap();
        fs::write(src.join("file-07"), "back").unwrap();
        fs::remove_file(src.join("file-15")).unwrap();
        fs::write(src.join("file-15"), "back").unwrap();
    });
}

#[test]
fn a_directory_that_vanishes_is_listed_and_leaves_no_empty_one() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [src, directory] = ["src", "place"].map(|name| volume.path().join(name));
    Tree::new(volume.path()).dir("place").file("src/sub/file", "1").file("src/zone/file", "1").mtime("src/sub", 1, 1);
    for number in 0..300 {
        fs::write(src.join(format!("file-{number}")), "1").unwrap();
    }
    let away = volume.path().join("away");
    let (noticed, refused) = until_noticed(&src, &directory, Strategy::Copy, || {
        fs::rename(src.join("sub"), &away).unwrap();
        fs::rename(&away, src.join("sub")).unwrap();
    });
    assert!(noticed.is_some() && refused.is_some());
}

/// ENXIO ended the clone when the file was cut between looking for data and looking for the hole behind it.
#[test]
fn a_sparse_file_that_is_cut_is_listed() {
    on_both(&["large"], |src| {
        let file = fs::OpenOptions::new().write(true).open(src.join("large")).unwrap();
        file.set_len(0).unwrap();
        file.set_len(64 << 20).unwrap();
        for piece in 0..64 {
            std::os::unix::fs::FileExt::write_all_at(file.file(), b"data", piece << 20).unwrap();
        }
    });
}

/// Takes a lease of a file, in another process. When the file is opened, which has to wait meanwhile, that process does `then` with
/// `argument` (`sys.argv[2]`), lets go, and ends.
fn lease(file: &Path, then: &str, argument: &OsStr) -> Script {
    lease_after("", file, then, argument)
}

/// As [`lease`], and does `first` beforehand.
fn lease_after(first: &str, file: &Path, then: &str, argument: &OsStr) -> Script {
    let program = format!(
        "import fcntl, mmap, os, signal, sys, time\n\
         {first}\n\
         told = []\n\
         signal.signal(signal.SIGIO, lambda *_: told.append(1))\n\
         fd = os.open(sys.argv[1], os.O_RDWR)\n\
         fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
         print('held', flush=True)\n\
         while not told: time.sleep(0.01)\n\
         {then}\n\
         fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n"
    );
    let mut holder = Script::start(python(&program).arg(file).arg(argument));
    holder.wait_for("held");
    holder
}

/// Every entry may be as it was while it was cloned, and the clone may still be of no single moment.
#[test]
fn stable_is_about_the_whole_clone() {
    if !require_program("python3") {
        return;
    }
    // Small inodes keep whole seconds.
    let coarse = || Volume::builder(FileSystem::Ext4).mkfs_args(["-I", "128"]).mount();
    let volumes =
        [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs].map(|kind| [(); 2].map(|()| Volume::new(kind)));
    for volumes in volumes.into_iter().chain([[coarse(), coarse()]]) {
        for (volume, other) in volumes.into_iter().zip([None, Volume::new(FileSystem::Tmpfs)]) {
            let Some(volume) = volume else { return };
            let src = volume.path().join("src");
            calve_testkit::wide(src.join("many"), 2_000);
            let tree = Tree::new(&src).file("a", "1").symlink("b", "x").dir("c");
            let directory = other.as_ref().map_or(volume.path(), Volume::path);
            // Right after it was written: a write before the clone is no change.
            tree.file("a", "2");
            clone_with(&stable(), &src, directory.join("quiet"));
            for changed in ["a", "b", "c"] {
                let mut stable = stable();
                stable.threads = std::num::NonZeroUsize::new(1);
                // The root comes first, so all three are done when one of the others is opened.
                let change = "os.chown(sys.argv[2], 7, -1, follow_symlinks=False)";
                let leased = src.join("many/entry-0001000");
                let holder = lease(&leased, change, src.join(changed).as_os_str());
                let error = refused(&stable, &src, directory.join("dst"));
                holder.end();
                // A directory may be noticed when its turn comes: its entries are made after the root's.
                let whole = format!("src/{changed}` changed while the clone was made");
                let noticed = if changed == "c" { "changed while" } else { &whole };
                assert!(error.to_string().contains(noticed), "{error}");
            }
        }
    }
}

/// A store to a page that is dirty already changes no time, so that torn copies were accepted.
#[test]
fn stores_through_a_mapping_are_noticed() {
    if !require_program("python3") {
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        for (strategy, below) in [(None, ""), (Some(Strategy::Copy), ""), (None, "bind/")] {
            let (Some(volume), Some(other)) = (Volume::new(file_system), Volume::new(file_system)) else { return };
            let src = volume.path().join("src");
            calve_testkit::wide(src.join("many"), 2_000);
            let bind = (!below.is_empty()).then(|| {
                Tree::new(volume.path()).dir("src/bind");
                // mkfs gives it a time of whole seconds, which proves nothing until the second is over.
                let _ = fs::remove_dir(other.path().join("lost+found"));
                BindMount::new(other.path(), src.join("bind"))
            });
            Tree::new(&src).file(format!("{below}mapped"), vec![b'1'; 5000]);
            let mut stable = stable();
            stable.threads = std::num::NonZeroUsize::new(1);
            stable.strategy = strategy.map_or(Choice::Fastest, Choice::Only);
            // The file is mapped and its page dirty before the clone begins.
            let map = "fd = os.open(sys.argv[2], os.O_RDWR)\nm = mmap.mmap(fd, 5000)\nm[0] = 50";
            let leased = src.join("many/entry-0001000");
            let mapped = src.join(below).join("mapped");
            let holder = lease_after(map, &leased, "m[0] = 51", mapped.as_os_str());
            let error = refused(&stable, &src, volume.path().join("dst"));
            holder.end();
            assert!(error.to_string().contains("mapped` changed while"), "{file_system:?} {strategy:?}: {error}");
            assert_holds(volume.path(), &["src"]);
            // One that was mapped and dirty, and is left alone, is stable.
            let holder = lease_after(map, &leased, "", mapped.as_os_str());
            let report = clone_with(&stable, &src, volume.path().join("dst"));
            holder.end();
            assert_eq!(report.changed, Vec::<PathBuf>::new());
            assert_eq!(fs::read(volume.path().join("dst").join(below).join("mapped")).unwrap()[..2], *b"21");
            drop(bind);
        }
    }
}

/// The same, when the source is one file.
#[test]
fn stores_to_a_single_file_are_noticed() {
    if !require_program("python3") {
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("mapped");
        fs::write(&src, vec![b'1'; 5000]).unwrap();
        let map = "fd = os.open(sys.argv[1], os.O_RDWR)\nm = mmap.mmap(fd, 5000)\nm[0] = 50\n\
                   print('held', flush=True)\nsys.stdin.readline()\nm[0] = 51\nprint('stored', flush=True)\nsys.stdin.readline()";
        let mut writer = Script::start(python(&format!("import mmap, os, sys\n{map}")).arg(&src));
        writer.wait_for("held");
        // It begins by making the page clean, so that the next store shows.
        clone_with(&stable(), &src, volume.path().join("dst"));
        let before = fs::metadata(&src).unwrap();
        writer.tell(b"go");
        writer.wait_for("stored");
        let after = fs::metadata(&src).unwrap();
        assert!((after.ctime(), after.ctime_nsec()) > (before.ctime(), before.ctime_nsec()), "{file_system:?}");
        writer.end();
    }
}

#[test]
fn where_stores_leave_no_trace_nothing_is_stable() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    Tree::new(volume.path()).file("src/a", "1").file("file", "2");
    let stable = stable();
    for name in ["src", "file"] {
        let (src, dst) = (volume.path().join(name), volume.path().join("dst"));
        let planned = calve_core::plan(&src, &dst, &stable).map(|_| ()).unwrap_err();
        for error in [planned, refused(&stable, &src, &dst)] {
            assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
            assert!(error.to_string().contains("is on tmpfs, where"), "{error}");
            assert_eq!(error.remedy(), Some(calve_core::error::Remedy::KeepSourceStill));
        }
        assert_holds(volume.path(), &["src", "file"]);
    }
    // Mounted below a source on another file system.
    let Some(disk) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(disk.path().join("src")).dir("mounted").file("a", "1");
    let bind = BindMount::new(volume.path(), tree.path().join("mounted"));
    let error = refused(&stable, tree.path(), disk.path().join("dst"));
    assert!(error.to_string().contains("mounted` is on tmpfs, where"), "{error}");
    let mut alone = stable;
    alone.mounts = calve_core::Mounts::Stay;
    clone_with(&alone, tree.path(), disk.path().join("dst"));
    drop(bind);
}

/// A file under a lease is cloned when its holder has let go, and a caller that cancels does not wait.
#[test]
fn a_lease_is_waited_for() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(volume.path().join("src")).file("leased", "1").file("other", "2");
    let hold =
        |seconds: &str| lease(&tree.path().join("leased"), "time.sleep(float(sys.argv[2]))", OsStr::new(seconds));
    if !require_program("python3") {
        return;
    }
    let holder = hold("0.3");
    let report = clone(tree.path(), volume.path().join("dst"));
    holder.end();
    assert!(report.elapsed.as_millis() >= 250, "{:?}", report.elapsed);
    assert_eq!(fs::read(volume.path().join("dst/leased")).unwrap(), b"1");

    let holder = hold("30");
    let options = CloneOptions::default();
    let cancel = options.cancel.clone();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            cancel.cancel();
        });
        refused(&options, tree.path(), volume.path().join("dst-2"))
    });
    assert!(matches!(error, Error::Interrupted), "{error}");
    drop(holder);
    assert_holds(volume.path(), &["src", "dst"]);
}

#[test]
fn a_quiet_source_is_stable_but_hard_links_promise_nothing() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let tree = Tree::new(volume.path().join("src")).file("a/b", "1").symlink("c", "d").fifo("e");
        let before = fingerprint(tree.path());
        clone_with(&stable(), tree.path(), volume.path().join("dst"));
        before.assert_unchanged(tree.path());
        let mut linked = stable();
        linked.strategy = Choice::Only(Strategy::Hardlink);
        let error = refused(&linked, tree.path(), volume.path().join("linked"));
        assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
        assert_holds(volume.path(), &["src", "dst"]);
    }
}
