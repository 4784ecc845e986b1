//! [`Requirement::Stable`]: detects changes of the source between the first look at it and the last.
//!
//! A change shows in an entry's change time, except for a store through a shared mapping (mmap(2)) to a page that is
//! already dirty: the kernel notices only the first store to a clean page. So [`begin`] writes everything back once,
//! which cleans the pages, after the moment from which changes count and before anything is read.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Stat};
use rustix::io::Errno;
use rustix::time::ClockId;

use super::exclude::Exclusions;
use super::fill::contents::open_contents;
use super::fill::metadata::same_version;
use super::node::full_path;
use super::pool::thread_count;
use super::walk::{Descent, Folder, Walker, walk, whole_tree};
use crate::error::{Error, IoContext, ShownPath, TemplateError};
use crate::options::internal::FrozenSince;
use crate::options::{CloneOptions, Mounts};
use crate::sys;
use crate::tree::source::Source;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::Requirement;

/// A moment in the time of the source's file system: no later change has an earlier change time (ctime).
///
/// Its clock ticks every 1 to 10 ms, or every second (ext3, ext4 with small inodes). The clock of a network file
/// system's server is assumed to agree with this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

impl Moment {
    /// Waits until the clock of the file system of `on` ticks. Returns the latest time that a change had before, and the
    /// earliest that one has from now on. Some kernels give some changes finer times than the ticks.
    pub(crate) fn tick(on: &Stat) -> [Self; 2] {
        let cut = |time: Self| if Self::of_change(on).is_whole() { Self { nanoseconds: 0, ..time } } else { time };
        let (first, now) = (Self::of_file_systems(), rustix::time::clock_gettime(ClockId::Realtime));
        let before = cut(Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec });
        loop {
            std::thread::sleep(Duration::from_micros(500));
            let now = Self::of_file_systems();
            // Or the clock was set back.
            if cut(now) > before || now < first {
                return [before, cut(now)];
            }
        }
    }

    /// Returns whether its file system may keep only whole seconds.
    fn is_whole(self) -> bool {
        self.nanoseconds == 0
    }

    /// Returns the time that a change would get now, by the ticking clock of this machine's file systems.
    pub(crate) fn of_file_systems() -> Self {
        let now = rustix::time::clock_gettime(sys::FILE_CLOCK);
        Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec }
    }

    /// Returns whether any change after this moment ([`Self::of_file_systems`]) alters the change time: the last one
    /// was in an earlier tick, or by another clock.
    pub(crate) fn shows_changes_of(&self, stat: &Stat) -> bool {
        const WHOLE_SECONDS: i64 = 2_000_000_000;
        const TWO_TICKS: i128 = 20_000_000;
        let changed = Self::of_change(stat);
        let nanoseconds = |moment: &Self| i128::from(moment.seconds) * 1_000_000_000 + i128::from(moment.nanoseconds);
        let tick = if changed.is_whole() { WHOLE_SECONDS } else { 0 };
        let passed = nanoseconds(self) - nanoseconds(&changed);
        passed > i128::from(tick) || -passed > TWO_TICKS
    }

    /// Returns whether a change since may have left the entry's change time: whole seconds hide it until they end.
    pub(crate) fn may_hide_in(&self, stat: &Stat) -> bool {
        let changed = Self::of_change(stat);
        if changed.is_whole() { changed.seconds >= self.seconds } else { changed >= *self }
    }

    pub(crate) fn seconds_since(&self, stat: &Stat) -> i64 {
        self.seconds.saturating_sub(Self::of_change(stat).seconds)
    }

    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    pub(crate) fn of_change(stat: &Stat) -> Self {
        Self { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as i64 }
    }

    pub(crate) fn parts(self) -> (i64, i64) {
        (self.seconds, self.nanoseconds)
    }
}

/// The beginning of a time in which changes count, as change times tell them.
///
/// A clock that is set back makes later changes look older than this. So every judgement compares it with a clock that
/// cannot be set: once it was set back, every entry counts as changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    pub(crate) moment: Moment,
    /// Lead of the file systems' clock over the other. `None`: the moment is a template's latest change itself.
    ahead: Option<i128>,
}

impl Since {
    /// Returns the present by this machine's clock, once ticks of the file system of `on` have passed it.
    pub(crate) fn now(on: &Stat) -> Self {
        let ahead = Some(Self::ahead_at_least());
        let [_, moment] = Moment::tick(on);
        Self { moment, ahead }
    }

    /// Returns whether the entry may have changed since the beginning, even on a file system with whole seconds.
    pub(crate) fn may_have_changed(&self, stat: &Stat) -> bool {
        match self.ahead {
            None => Moment::of_change(stat) > self.moment,
            Some(_) => self.moment.may_hide_in(stat) || self.was_set_back(),
        }
    }

    /// Returns whether the clock was set back, so that change times tell nothing. Misses it once set forward again.
    pub(crate) fn was_set_back(&self) -> bool {
        self.ahead.is_some_and(|before| is_set_back(before, Self::ahead_at_most()))
    }

    /// Reads the clocks in the order in which a pause between them cannot look like a clock set back later.
    fn ahead_at_least() -> i128 {
        let of_files = Self::of_files();
        of_files - nanoseconds(sys::BOOT_CLOCK)
    }

    /// Reads the clocks in the order in which a pause between them cannot look like a clock set back earlier.
    fn ahead_at_most() -> i128 {
        let of_boot = nanoseconds(sys::BOOT_CLOCK);
        Self::of_files() - of_boot
    }

    fn of_files() -> i128 {
        const HOUR: i128 = 3_600_000_000_000;
        let is_set_back = SETS_CLOCK_BACK.get().is_some_and(|file| file.exists());
        nanoseconds(ClockId::Realtime) - if is_set_back { HOUR } else { 0 }
    }
}

static SETS_CLOCK_BACK: OnceLock<PathBuf> = OnceLock::new();

/// Pretends that the clock is set back by an hour once `file` exists. For tests, which cannot set the machine's clock.
#[doc(hidden)]
pub fn set_clock_back_with(file: PathBuf) {
    let _ = SETS_CLOCK_BACK.set(file);
}

/// Returns whether a clock that was `before`, then `now` nanoseconds ahead of an unsettable one was set back between.
///
/// Slewing (adjtime(3), NTP) changes the pace of both alike, so any other difference is rounding: up to a few
/// microseconds on macOS. A clock set back by less than the tolerance hides only changes that close to the beginning.
fn is_set_back(before: i128, now: i128) -> bool {
    const TOLERANCE: i128 = 100_000;
    before - now > TOLERANCE
}

fn nanoseconds(clock: ClockId) -> i128 {
    let now = rustix::time::clock_gettime(clock);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// Returns the moment from which every change shows, through mappings too. Writes back dirty pages, altering nothing.
pub(crate) fn begin(source: &Source, mounts: Mounts) -> Result<Since, Error> {
    let file_systems = watchable(source, mounts)?;
    let since = Since::now(source.stat());
    for (file_system, path) in &file_systems {
        match source.single() {
            Some(_) => sys::sync_file(file_system.as_fd()),
            None => sys::write_back_stores(file_system.as_fd()),
        }
        .io(Operation::WriteBack, path)?;
    }
    Ok(since)
}

/// Opens what [`begin`] writes back: the source's file systems, or a source that is a file. Fails for file systems
/// where stores through a mapping may leave no trace.
pub(crate) fn watchable(source: &Source, mounts: Mounts) -> Result<Vec<(OwnedFd, PathBuf)>, Error> {
    let failed = |path: &Path, errno| Error::io(Operation::Open, path, errno);
    let mut found = Vec::new();
    match source.single() {
        Some((name, FileType::RegularFile)) => {
            let file = open_contents(source.directory(), name, || false).map_err(|e| failed(source.path(), e))?;
            found.push((file, source.path().to_path_buf()));
        }
        // Nothing else has contents to map.
        Some(_) => {}
        None => {
            let root = rustix::io::fcntl_dupfd_cloexec(source.directory(), 3);
            found.push((root.map_err(|errno| failed(source.path(), errno))?, source.path().to_path_buf()));
            if mounts == Mounts::Cross {
                let points = sys::mounts_below(source.directory()).io(Operation::LookForMounts, source.path())?;
                // A mount that cannot be opened is not cloned either.
                let open = |point: PathBuf| Some((sys::open_at(CWD, &point, sys::FILE).ok()?, point));
                found.extend(points.into_iter().filter_map(open));
            }
        }
    }
    for (file_system, path) in &found {
        if !sys::shows_stores(file_system.as_fd()).map_err(|errno| failed(path, errno))? {
            let detail = format!(
                "`{}` is on {}, where programs can change files through a mapping (mmap) without a trace",
                ShownPath(path),
                sys::file_system_name(file_system.as_fd()),
            );
            return Err(Error::unmet(Requirement::Stable, detail));
        }
    }
    Ok(found)
}

pub(crate) struct StabilityCheck<'a> {
    pub(crate) source: &'a Source,
    pub(crate) since: Since,
    pub(crate) exclude: &'a Exclusions,
    pub(crate) options: &'a CloneOptions,
    /// The root before the source was renamed, because a rename changes its change time.
    pub(crate) renamed: Option<&'a Stat>,
}

pub(crate) fn changed(check: &StabilityCheck<'_>) -> Result<Option<PathBuf>, Error> {
    let (source, since) = (check.source, check.since);
    let differs = |now: &Stat| since.may_have_changed(now) || !same_version(source.stat(), now);
    if let Some((name, _)) = source.single() {
        return match sys::stat_at(source.directory(), name) {
            Ok(now) => Ok(differs(&now).then(PathBuf::new)),
            Err(Errno::NOENT) => Ok(Some(PathBuf::new())),
            Err(errno) => Err(Error::io(Operation::Stat, source.path(), errno)),
        };
    }
    let root = rustix::fs::fstat(source.directory()).io(Operation::Stat, source.path())?;
    let is_other = match check.renamed {
        Some(before) => !is_same_but_for_name(before, &root),
        None => differs(&root),
    };
    if is_other {
        return Ok(Some(PathBuf::new()));
    }
    let worker = || StabilityWorker { check, root: &root, found: None, failure: None };
    let (threads, cancel) = (thread_count(check.options.threads), &check.options.cancel);
    let mut first = None;
    for StabilityWorker { found, failure, .. } in
        walk(&[source.directory()], vec![whole_tree(0)], threads, cancel, worker)?
    {
        if let Some((path, errno)) = failure {
            return Err(Error::io(Operation::Stat, full_path(source.path(), &path), errno));
        }
        first = first.into_iter().chain(found).min();
    }
    Ok(first)
}

fn is_same_but_for_name(before: &Stat, now: &Stat) -> bool {
    let seen = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec, stat.st_size, stat.st_mode, stat.st_uid, stat.st_gid);
    seen(before) == seen(now)
}

struct StabilityWorker<'a> {
    check: &'a StabilityCheck<'a>,
    root: &'a Stat,
    found: Option<PathBuf>,
    failure: Option<(PathBuf, Errno)>,
}

impl Walker for StabilityWorker<'_> {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, _kind: FileType) -> Descent {
        if is_calves_own(name.to_bytes()) {
            return Descent::No;
        }
        let stat = match sys::stat_at(folder.directory, name) {
            Ok(stat) => stat,
            Err(errno) => {
                self.failed(folder.tree, folder.node.path_of(name), errno);
                return Descent::No;
            }
        };
        let StabilityCheck { exclude, options, since, .. } = self.check;
        let kind = sys::kind(stat);
        let is_left_out =
            || !exclude.is_empty() && exclude.matches(&folder.node.path_of(name), kind == FileType::Directory);
        // Neither is cloned.
        if kind == FileType::Socket || is_left_out() {
            return Descent::No;
        }
        if since.may_have_changed(&stat) {
            self.found = Some(folder.node.path_of(name));
            return Descent::No;
        }
        let stays_out = options.mounts == Mounts::Stay && stat.st_dev != self.root.st_dev;
        if stays_out { Descent::No } else { Descent::Yes }
    }

    fn is_over(&self) -> bool {
        self.found.is_some()
    }

    fn failed(&mut self, _tree: usize, path: PathBuf, errno: Errno) {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => _ = self.found.get_or_insert(path),
            errno => _ = self.failure.get_or_insert((path, errno)),
        }
    }
}

/// Fails if the source is a template and this entry of it, at `path`, was changed.
pub(crate) fn check_frozen(
    frozen: Option<&FrozenSince>,
    stat: &Stat,
    path: impl FnOnce() -> PathBuf,
) -> Result<(), Error> {
    match frozen {
        Some(frozen) if Moment::of_change(stat).parts() > frozen.changed => {
            Err(TemplateError::Changed { name: frozen.name.clone(), path: path() }.into())
        }
        _ => Ok(()),
    }
}

/// Fails if the source is a template and anything that a clone would contain was changed.
pub(crate) fn check_all_frozen(source: &Source, exclude: &Exclusions, options: &CloneOptions) -> Result<(), Error> {
    let Some(frozen) = &options.internal.frozen else { return Ok(()) };
    let (seconds, nanoseconds) = frozen.changed;
    let since = Since { moment: Moment { seconds, nanoseconds }, ahead: None };
    match changed(&StabilityCheck { source, since, exclude, options, renamed: None })? {
        Some(path) => Err(TemplateError::Changed { name: frozen.name.clone(), path: source.path().join(path) }.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn a_clock_that_is_set_back_is_noticed() {
        for before in [-5 * SECOND, 0, 1_700_000_000 * SECOND] {
            assert!(!is_set_back(before, before), "nobody set it");
            assert!(!is_set_back(before, before + 1), "rounding");
            assert!(!is_set_back(before, before - 1), "rounding");
            assert!(!is_set_back(before, before + 3600 * SECOND), "a clock that is set forward hides nothing");
            for step in [SECOND / 500, SECOND, 3600 * SECOND] {
                assert!(is_set_back(before, before - step), "by {step} ns");
            }
        }
    }

    #[test]
    fn once_the_clock_was_set_back_every_entry_counts_as_changed() {
        let old = rustix::fs::stat(c"/").unwrap();
        let mut since = Since::now(&old);
        assert!(!since.was_set_back() && !since.may_have_changed(&old));
        since.ahead = since.ahead.map(|ahead| ahead + 2 * SECOND);
        assert!(since.was_set_back() && since.may_have_changed(&old));
    }
}
