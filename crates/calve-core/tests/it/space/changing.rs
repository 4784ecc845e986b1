//! Other programs write, truncate, rename and replace files all the while: no reader ever sees a wrong byte.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use calve_testkit::{SplitMix64, Tree};
use fs_err as fs;

use super::{plain, volumes};

const FILES: usize = 120;
const BYTES: usize = 300_000;

/// The files as they have to be. Who holds the lock of one may change it, or look at it.
struct Model {
    wanted: Vec<Mutex<Vec<u8>>>,
    common: Vec<u8>,
    done: AtomicBool,
    changes: AtomicU64,
    looks: AtomicU64,
    /// How long a writer rests after a change. Longer where the machine is too busy for anything to be shared in between.
    pause_ms: AtomicU64,
}

impl Model {
    fn new() -> Self {
        let common = SplitMix64::new(1).bytes(BYTES);
        let wanted = (0..FILES).map(|_| Mutex::new(common.clone())).collect();
        let (changes, looks) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { wanted, common, done: AtomicBool::new(false), changes, looks, pause_ms: AtomicU64::new(1) }
    }

    fn write(&self, root: &Path, seed: u64) {
        let mut random = SplitMix64::new(seed);
        while !self.done.load(Ordering::Relaxed) {
            let number = random.below(FILES as u64) as usize;
            let path = root.join(number.to_string());
            let mut wanted = self.wanted[number].lock().unwrap();
            let open = || fs::OpenOptions::new().write(true).open(&path).unwrap();
            match random.below(5) {
                0 => {
                    let at = random.below(wanted.len() as u64 - 10) as usize;
                    let bytes = random.bytes(10);
                    wanted[at..at + 10].copy_from_slice(&bytes);
                    open().file().write_all_at(&bytes, at as u64).unwrap();
                }
                1 => {
                    // Back to what the others hold, so that there is always something to share.
                    wanted.clone_from(&self.common);
                    open().file().write_all_at(&self.common, 0).unwrap();
                    open().set_len(BYTES as u64).unwrap();
                }
                2 => {
                    wanted.truncate(BYTES - 100_000);
                    open().set_len(wanted.len() as u64).unwrap();
                }
                3 => {
                    let away = root.join(format!("away-{number}"));
                    fs::rename(&path, &away).unwrap();
                    fs::rename(&away, &path).unwrap();
                }
                _ => {
                    let new = root.join(format!("new-{number}"));
                    fs::write(&new, &*wanted).unwrap();
                    fs::rename(&new, &path).unwrap();
                }
            }
            self.look(root, number, &wanted);
            drop(wanted);
            self.changes.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(self.pause_ms.load(Ordering::Relaxed)));
        }
    }

    fn read(&self, root: &Path) {
        let mut random = SplitMix64::new(99);
        while !self.done.load(Ordering::Relaxed) {
            let number = random.below(FILES as u64) as usize;
            self.look(root, number, &self.wanted[number].lock().unwrap());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn look(&self, root: &Path, number: usize, wanted: &[u8]) {
        let found = fs::read(root.join(number.to_string())).unwrap();
        let changes = self.changes.load(Ordering::Relaxed);
        assert!(found == wanted, "{number}: a wrong byte after {changes} changes");
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn writers_and_readers_never_notice() {
    for volume in volumes() {
        let root = volume.path().join("tree");
        let model = Model::new();
        for number in 0..FILES {
            Tree::new(&root).file(number.to_string(), &model.common);
        }
        let options = plain();
        let (mut shared, mut runs) = (0, 0);
        std::thread::scope(|scope| {
            for seed in [10, 11] {
                let (root, model) = (&root, &model);
                scope.spawn(move || model.write(root, seed));
            }
            scope.spawn(|| model.read(&root));
            let begin = Instant::now();
            // On a busy machine a run takes long.
            let enough = |runs, shared| runs > 3 && shared > 0 && begin.elapsed() > Duration::from_secs(4);
            while !enough(runs, shared) && begin.elapsed() < Duration::from_secs(300) {
                shared += calve_core::space::dedupe(&[&root], &options).unwrap().shared.files;
                runs += 1;
                if shared == 0 {
                    let pause = model.pause_ms.load(Ordering::Relaxed);
                    model.pause_ms.store((2 * pause).min(200), Ordering::Relaxed);
                }
            }
            model.done.store(true, Ordering::Relaxed);
        });
        // As they are in memory, and as they are on the disk.
        for _ in 0..2 {
            for number in 0..FILES {
                model.look(&root, number, &model.wanted[number].lock().unwrap());
            }
            volume.settle();
            crate::cloning::run("sh", |command| command.args(["-c", "echo 1 > /proc/sys/vm/drop_caches || true"]));
        }
        let (changes, looks) = (model.changes.into_inner(), model.looks.into_inner());
        assert!(shared > 0 && changes > 20 && looks > 40 && runs > 3, "{shared} {changes} {looks} {runs}");
    }
}
