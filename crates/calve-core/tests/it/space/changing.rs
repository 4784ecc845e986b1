//! Other programs write, truncate, rename and replace files all the while: no reader ever sees a wrong byte.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use calve_core::Granularity;
use calve_testkit::{SplitMix64, Tree};
use fs_err as fs;

use super::{plain, volumes};

#[test]
fn writers_and_readers_never_notice() {
    const FILES: usize = 120;
    const BYTES: usize = 300_000;
    for volume in volumes() {
        let root = volume.path().join("tree");
        let content = SplitMix64::new(1).bytes(BYTES);
        let mut tree = Tree::new(&root);
        for number in 0..FILES {
            tree = tree.file(number.to_string(), &content);
        }
        drop(tree);
        let done = AtomicBool::new(false);
        // Each file as it has to be, in the hands of the one thread that changes it.
        std::thread::scope(|scope| {
            let writer = |first: usize| {
                let (root, content, done) = (&root, &content, &done);
                move || {
                    let mut random = SplitMix64::new(first as u64 + 10);
                    let mut model = vec![content.clone(); FILES];
                    let mut rounds = 0;
                    while !done.load(Ordering::Relaxed) {
                        let number = first + 2 * random.below(FILES as u64 / 2) as usize;
                        let path = root.join(number.to_string());
                        let wanted = &mut model[number];
                        match random.below(4) {
                            0 => {
                                let at = random.below(wanted.len() as u64 - 10) as usize;
                                let bytes = random.bytes(10);
                                wanted[at..at + 10].copy_from_slice(&bytes);
                                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                                file.write_all_at(&bytes, at as u64).unwrap();
                            }
                            1 => {
                                // Back to what the others hold, so that there is always something to share.
                                wanted.clone_from(content);
                                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                                file.write_all_at(content, 0).unwrap();
                                file.set_len(BYTES as u64).unwrap();
                            }
                            2 => {
                                wanted.truncate(BYTES - 100_000);
                                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                                file.set_len(wanted.len() as u64).unwrap();
                            }
                            _ => {
                                let new = root.join(format!("new-{number}"));
                                fs::write(&new, &*wanted).unwrap();
                                fs::rename(&new, &path).unwrap();
                            }
                        }
                        let found = fs::read(&path).unwrap();
                        assert!(found == *wanted, "{number}: a wrong byte after {rounds} rounds");
                        rounds += 1;
                        // So that some files stay as they are long enough to be shared.
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    for number in (first..FILES).step_by(2) {
                        assert!(
                            fs::read(root.join(number.to_string())).unwrap() == model[number],
                            "{number}: at the end"
                        );
                    }
                    rounds
                }
            };
            let writers = [scope.spawn(writer(0)), scope.spawn(writer(1))];
            let mut options = plain();
            let (mut shared, mut runs) = (0, 0);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(4);
            while std::time::Instant::now() < until {
                options.granularity = if runs % 3 == 2 { Granularity::Blocks } else { Granularity::Files };
                shared += calve_core::dedupe(&[&root], &options).unwrap().shared_files;
                runs += 1;
            }
            done.store(true, Ordering::Relaxed);
            let rounds: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            assert!(shared > 0 && rounds > 20 && runs > 2, "{shared} shared in {runs} runs, {rounds} changes");
        });
    }
}
