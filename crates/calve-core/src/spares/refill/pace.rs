//! Pauses a background refill while the machine is busy, and ends it when it is in the way.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::claim::store::{Home, Set, SpareSource};
use crate::error::{Error, IoContext};
use crate::progress::{CancelToken, Pace};
use crate::sys;
use crate::vocabulary::operation::Operation;

/// The longest wait before building a spare: it is still wanted after a long compilation.
pub(super) const LONGEST_BEFORE: Duration = Duration::from_secs(3600);
/// The longest pause while building one.
const LONGEST: Duration = Duration::from_secs(300);
const STEP: Duration = Duration::from_secs(1);
/// The machine is busy while some task waits for processor, memory or disk for more than these shares of the time.
const MOST: [f64; 3] = [0.4, 0.05, 0.4];

/// It is also busy while others use more of its processors: one job on each lets no task wait, but would be slowed.
const MOST_USED: f64 = 0.75;

#[derive(Debug)]
pub(super) struct LoadSample {
    at: Instant,
    stalled: Option<[u64; 3]>,
    processors: Option<[u64; 2]>,
    /// The processor time of this process.
    own: Duration,
}

impl LoadSample {
    pub(super) fn now() -> Self {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let own = Duration::try_from(own).unwrap_or_default();
        Self { at: Instant::now(), stalled: sys::stalled(), processors: sys::processor_ticks(), own }
    }

    /// Returns whether the machine was busy since this sample, and renews the sample.
    fn was_busy(&mut self) -> bool {
        let earlier = std::mem::replace(self, Self::now());
        self.is_used_since(&earlier) || self.is_stalled_since(&earlier)
    }

    fn is_used_since(&self, earlier: &Self) -> bool {
        let (Some(now), Some(before)) = (self.processors, earlier.processors) else { return false };
        let [used, all] = [0, 1].map(|which| now[which].saturating_sub(before[which]) as f64);
        let own = self.own.saturating_sub(earlier.own).as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
        used - own > MOST_USED * all
    }

    fn is_stalled_since(&self, earlier: &Self) -> bool {
        let (Some(now), Some(before)) = (self.stalled, earlier.stalled) else { return false };
        let micros = (self.at - earlier.at).as_micros() as f64;
        (0..MOST.len()).any(|which| now[which].saturating_sub(before[which]) as f64 > MOST[which] * micros)
    }
}

/// Waits until the machine has time. Returns false if it has none for `longest`, or if `may_go_on` is false.
pub(super) fn stand_still(last: &mut LoadSample, longest: Duration, may_go_on: impl Fn() -> bool) -> bool {
    let end = Instant::now() + longest;
    loop {
        std::thread::sleep(STEP);
        let is_busy = last.was_busy();
        if !may_go_on() || (is_busy && last.at > end) {
            return false;
        }
        if !is_busy {
            return true;
        }
    }
}

#[derive(Debug)]
pub(super) struct RefillPace {
    /// By path: the threads that clone have descriptor tables of their own.
    home: PathBuf,
    source: SpareSource,
    id: String,
    had_room: bool,
    cancel: CancelToken,
    longest: Duration,
    state: Mutex<PaceState>,
}

#[derive(Debug)]
struct PaceState {
    last: LoadSample,
    due: Instant,
    is_over: bool,
}

impl RefillPace {
    pub(super) fn new(home: &Home, set: &Set, cancel: &CancelToken) -> Result<Self, Error> {
        let home = home.path().to_path_buf();
        let state = PaceState { last: LoadSample::now(), due: Instant::now() + STEP, is_over: false };
        let (source, id) = (set.definition.source.clone(), set.id.clone());
        let (had_room, cancel) = (has_room(set)?, cancel.clone());
        Ok(Self { home, source, id, had_room, cancel, longest: LONGEST, state: Mutex::new(state) })
    }

    fn may_go_on(&self) -> bool {
        let Ok(Some(home)) = Home::open(&self.home) else { return false };
        if self.cancel.is_cancelled() || home.is_awaited() {
            return false;
        }
        let Ok(sets) = home.sets(Some(&self.source)) else { return false };
        let Some(set) = sets.iter().find(|set| set.id == self.id) else { return false };
        !set.paused && (!self.had_room || has_room(set).unwrap_or(false))
    }
}

impl Pace for RefillPace {
    fn keep(&self) -> bool {
        // Held during a pause, so that every thread pauses: each calls this.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over || Instant::now() < state.due {
            return !state.is_over;
        }
        // This build itself may be the load. A pause shows that, and the next one comes later.
        let is_busy = state.last.was_busy();
        let may_go_on = || self.may_go_on();
        let goes_on = if is_busy { stand_still(&mut state.last, self.longest, may_go_on) } else { may_go_on() };
        state.is_over = !goes_on;
        state.due = state.last.at + if is_busy { 4 * STEP } else { STEP };
        !state.is_over
    }
}

fn has_room(set: &Set) -> Result<bool, Error> {
    let directory = set.create_directory()?;
    let status = rustix::fs::fstatvfs(directory.as_fd()).io(Operation::Stat, set.directory_path())?;
    Ok(status.f_bavail >= status.f_blocks / 5)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Child, Command};
    use std::sync::Arc;

    use calve_testkit::{FileSystem, Volume, node_modules_like};
    use fs_err as fs;

    use super::super::turn;
    use super::*;
    use crate::options::Background;
    use crate::progress::Progress;
    use crate::spares::{RefillOptions, SpareOptions, SpareOrigin, Spares};

    /// A source of which there are to be spares, on a volume of its own.
    struct PaceFixture {
        volume: Volume,
        spares: Spares,
    }

    impl PaceFixture {
        fn new() -> Option<Self> {
            let volume = Volume::with_size(FileSystem::Ext4, 64 << 20)?;
            node_modules_like(volume.path().join("src"), 50);
            fs::create_dir(volume.path().join("home")).unwrap();
            let spares = Spares::at(volume.path().join("home/spares"));
            let source = SpareOrigin::Directory(volume.path().join("src"));
            spares.add(&source, &SpareOptions::default()).unwrap();
            Some(Self { volume, spares })
        }

        fn home(&self) -> Home {
            Home::open(&self.spares.home).unwrap().unwrap()
        }

        fn set(&self) -> Set {
            self.home().sets(None).unwrap().remove(0)
        }

        fn pace(&self, longest: Duration) -> RefillPace {
            let pace = RefillPace::new(&self.home(), &self.set(), &CancelToken::default()).unwrap();
            RefillPace { longest, ..pace }
        }
    }

    /// Asks until the answer is no.
    fn keep_on(pace: &RefillPace) {
        while pace.keep() {
            std::thread::yield_now();
        }
        assert!(!pace.keep(), "it stays over");
    }

    fn options(background: Background) -> RefillOptions {
        RefillOptions {
            resolve: |source| match source {
                SpareSource::Directory(path) => Some(SpareOrigin::Directory(path.clone())),
                SpareSource::Template(_) => None,
            },
            only: None,
            background,
            progress: Arc::new(Progress::default()),
            cancel: CancelToken::default(),
        }
    }

    /// Processes that keep every processor busy, and have others wait for one.
    struct Load(Vec<Child>);

    impl Load {
        /// Starts four busy processes per processor. Returns `None` where the system does not report how long tasks wait.
        fn new() -> Option<Self> {
            sys::stalled()?;
            let count = std::thread::available_parallelism().unwrap().get() * 4;
            let one = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            Some(Self((0..count).map(one).collect()))
        }
    }

    impl Drop for Load {
        fn drop(&mut self) {
            for one in &mut self.0 {
                let _ = one.kill();
                let _ = one.wait();
            }
        }
    }

    #[test]
    fn a_refill_gives_up_when_the_machine_stays_busy() {
        let (Some(fixture), Some(_load)) = (PaceFixture::new(), Load::new()) else { return };
        keep_on(&fixture.pace(STEP));
        // And does not begin.
        assert!(!stand_still(&mut LoadSample::now(), STEP, || true));
    }

    #[test]
    fn a_refill_goes_on_when_the_machine_has_time_again() {
        let (Some(fixture), Some(load)) = (PaceFixture::new(), Load::new()) else { return };
        let pace = fixture.pace(LONGEST);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                while pace.state.lock().unwrap().due < Instant::now() + 2 * STEP && pace.keep() {
                    std::thread::yield_now();
                }
                pace.keep()
            });
            // It holds the lock while it stands still, and for no other second.
            let mut since = Instant::now();
            while since.elapsed() < STEP / 2 {
                if pace.state.try_lock().is_ok() {
                    since = Instant::now();
                }
                std::thread::yield_now();
            }
            drop(load);
            // Other tests may keep the machine busy.
            while !worker.is_finished() {
                std::thread::sleep(STEP / 10);
                if since.elapsed() > 10 * STEP {
                    pace.cancel.cancel();
                }
            }
            assert!(worker.join().unwrap() || pace.cancel.is_cancelled());
        });
    }

    #[test]
    fn a_thread_with_descriptors_of_its_own_goes_on() {
        let Some(fixture) = PaceFixture::new() else { return };
        let pace = fixture.pace(LONGEST);
        let worker = || {
            sys::private_descriptors(&[]);
            pace.may_go_on()
        };
        assert!(std::thread::scope(|scope| scope.spawn(worker).join().unwrap()));
    }

    #[test]
    fn a_refill_that_nobody_wants_any_more_ends() {
        let Some(fixture) = PaceFixture::new() else { return };
        let source = fixture.set().definition.source;
        let pace = fixture.pace(LONGEST);
        fixture.spares.pause(&source, true).unwrap();
        keep_on(&pace);
        fixture.spares.pause(&source, false).unwrap();
        let pace = fixture.pace(LONGEST);
        fixture.spares.remove(&source, &CancelToken::default()).unwrap();
        keep_on(&pace);
    }

    /// It has the store open, and the machine has no time for it.
    #[test]
    fn a_refill_that_waits_ends_when_its_store_has_gone() {
        let (Some(fixture), Some(_load)) = (PaceFixture::new(), Load::new()) else { return };
        let home = fixture.home();
        fs::rename(home.path(), fixture.volume.path().join("moved")).unwrap();
        assert_eq!(home.sets(None).unwrap().len(), 1);
        assert!(turn(&home, &options(Background::Yes)).unwrap().is_none());
    }

    #[test]
    fn a_refill_makes_way_for_somebody_who_waits() {
        let Some(fixture) = PaceFixture::new() else { return };
        let pace = fixture.pace(LONGEST);
        let held = fixture.home().lock().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| fixture.spares.refill(&options(Background::No)).unwrap());
            keep_on(&pace);
            drop(held);
            assert_eq!(waiting.join().unwrap().built, 1);
        });
    }

    #[test]
    fn a_refill_ends_when_the_disk_gets_short() {
        let Some(fixture) = PaceFixture::new() else { return };
        let pace = fixture.pace(LONGEST);
        let ballast = fs::File::create(fixture.volume.path().join("ballast")).unwrap();
        let status = rustix::fs::fstatvfs(&ballast).unwrap();
        let bytes = (status.f_bavail - status.f_blocks / 6) * status.f_frsize;
        rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
        keep_on(&pace);
        // One that began like this had better reason to.
        drop(ballast);
        assert!(!fixture.pace(LONGEST).had_room);
    }
}
