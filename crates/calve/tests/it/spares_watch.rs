//! `calve spares watch` as a process: how it ends, and what a clone makes of it meanwhile.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use calve_testkit::{FileSystem, assert_same, require_program, unmount_whole};
use fs_err as fs;
use rustix::process::Signal;

use crate::process::send;
use crate::program::Reachable;
use crate::spares::Place;
use crate::spot::{Spot, eventually, names};

/// A watcher of its own, which ends with this.
struct Watcher {
    process: Child,
    told: BufReader<ChildStderr>,
    /// Its output until it answered.
    said: String,
}

impl Watcher {
    /// Returns when it answers.
    fn start(place: &Place) -> Self {
        Self::spawn(place.spares(&["watch"]).command())
    }

    /// Starts one in a user namespace that allows so many inotify watches.
    fn start_with_limit(place: &Place, watches: u32) -> Self {
        let limit = format!("echo {watches} > /proc/sys/user/max_inotify_watches &&");
        let watcher = place.spares(&["watch"]).in_shell(&limit, "");
        Self::spawn(watcher.under(&["unshare", "--user", "--map-root-user"]).command())
    }

    fn spawn(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(process.stderr.take().unwrap());
        let mut watcher = Self { process, told, said: String::new() };
        watcher.said = watcher.says("Ctrl-C ends it");
        watcher
    }

    /// Waits until it says so, and returns all that it has said until then.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        let mut said = String::new();
        while !said.contains(words) {
            assert!(self.told.read_line(&mut said).unwrap() > 0, "it ended without a word of `{words}`");
        }
        said
    }

    fn end(mut self) {
        self.send(Signal::TERM);
        self.process.wait().unwrap();
    }

    fn send(&self, signal: Signal) {
        send(self.process.id(), signal);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Place {
    /// A source with spares of it, of which no more are built.
    fn with_spares(count: &str) -> Option<Self> {
        let place = Self::on(FileSystem::Ext4)?;
        place.spares(&["add", "-q", "--count", count, "src"]).succeeds();
        place.spares(&["pause", "-q", "src"]).succeeds();
        Some(place)
    }

    /// Hands a spare over, and returns how it was checked.
    #[track_caller]
    fn checked(&self, dst: &str) -> String {
        let receipt = self.cp(&["-q", "--json", "-T", "src", dst]).succeeds().json();
        assert_same(self.spot.join("src"), self.spot.join(dst));
        receipt["spare"]["checked"].as_str().unwrap().to_owned()
    }

    fn socket(&self) -> std::path::PathBuf {
        self.home().join("spares/watch.sock")
    }
}

#[test]
fn a_watcher_ends_when_it_is_asked_to_and_is_not_believed_when_it_was_killed() {
    let Some(place) = Place::with_spares("5") else { return };
    for (signal, dst) in [(Signal::INT, "one"), (Signal::TERM, "two")] {
        let mut watcher = Watcher::start(&place);
        assert_eq!(place.checked(dst), "watched");
        watcher.send(signal);
        assert!(watcher.process.wait().unwrap().success(), "that is how it ends");
        assert!(!place.socket().exists());
    }
    assert_eq!(place.checked("three"), "walked");
    // One that was killed is not believed.
    let mut watcher = Watcher::start(&place);
    watcher.send(Signal::KILL);
    watcher.process.wait().unwrap();
    assert!(place.socket().exists());
    assert_eq!(place.checked("four"), "walked");
    // Another one takes its place.
    let _next = Watcher::start(&place);
    assert_eq!(place.checked("five"), "watched");
}

/// A watcher that does not answer is not waited for, and one whose queue was too short knows nothing.
#[test]
fn a_watcher_that_was_stopped_knows_of_what_it_missed() {
    let Some(place) = Place::with_spares("3") else { return };
    let most: u64 = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let mut watcher = Watcher::start(&place);
    watcher.send(Signal::STOP);
    assert_eq!(place.checked("one"), "walked");
    // No two in a row are equal, which would be one.
    let names = [place.spot.join("src/a"), place.spot.join("src/b")];
    for number in 0..most {
        fs::write(&names[usize::from(number % 2 == 1)], number.to_string()).unwrap();
    }
    watcher.send(Signal::CONT);
    watcher.says("too many changes at once");
    assert_eq!(place.checked("two"), "walked");
    watcher.says("watched");
}

#[test]
fn a_file_that_was_changed_by_a_name_that_is_left_out_is_found() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spot.tree("src").file("d/file", b"1").dir("sub");
    place.spares(&["add", "-q", "--exclude", "*.log", "src"]).succeeds();
    place.spares(&["pause", "-q", "src"]).succeeds();
    let _watcher = Watcher::start(&place);
    place.spot.tree("src").hard_link("sub/name.log", "d/file");
    fs::write(place.spot.join("src/sub/name.log"), b"2").unwrap();
    let receipt = place.cp(&["-q", "--json", "--exclude", "*.log", "-T", "src", "dst"]).succeeds().json();
    assert_eq!(receipt["spare"]["checked"], "watched");
    assert_eq!(fs::read(place.spot.join("dst/d/file")).unwrap(), b"2");
}

#[test]
fn what_takes_more_than_a_quarter_of_the_watches_is_compared() {
    if !require_program("unshare") {
        return;
    }
    let Some(place) = Place::with_spares("2") else { return };
    for number in 0..20 {
        place.spot.tree("src").file(format!("d{number}/file"), b"1");
    }
    let watcher = Watcher::start_with_limit(&place, 40);
    // It tells that before it listens.
    assert!(watcher.said.contains("more directories than a quarter of the user's inotify watches"), "{}", watcher.said);
    place.spot.tree("src").file("d3/file", b"2");
    assert_eq!(place.checked("one"), "walked");
    watcher.end();
    let _more = Watcher::start_with_limit(&place, 10_000);
    assert_eq!(place.checked("two"), "watched");
}

/// The process that holds the watcher's lock, as the kernel tells (proc_locks(5)).
fn watching(place: &Place) -> Option<u32> {
    let lock = fs::metadata(place.home().join("spares/watch.lock")).ok()?;
    let (major, minor) = (rustix::fs::major(lock.dev()), rustix::fs::minor(lock.dev()));
    let lock = format!("{major:02x}:{minor:02x}:{}", lock.ino());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let of = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        (words[5] == lock && words[1] == "FLOCK").then(|| words[4].parse().unwrap())
    };
    locks.lines().filter(|line| !line.contains("->")).find_map(of)
}

/// On request, clones start the watcher, which ends with the spares.
#[test]
fn a_clone_starts_the_watcher_that_was_asked_for() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    place.cp(&["-q", "src", "unasked"]).succeeds();
    place.settle();
    assert_eq!(watching(&place), None);
    place.spares(&["add", "-q", "--count", "3", "--watch", "src"]).succeeds();
    let is_watched = || place.spares(&["list", "--json"]).succeeds().json()["sources"][0]["watched"] == true;
    assert!(is_watched());
    place.spares(&["add", "-q", "--count", "2", "src"]).succeeds();
    assert!(is_watched(), "nothing was said about it");
    let is_instant = |dst: &str| {
        let words = ["-q", "--strategy", "spare", "--require", "instant", "-T", "src", dst];
        place.cp(&words).run().status.success()
    };
    eventually("it watches at once", || is_instant("one"));
    let first = watching(&place).unwrap();
    // The refill after that clone may start one too.
    place.settle();
    // On a slow machine a refill that `settle` did not see yet may start another meanwhile.
    eventually("none is left", || watching(&place).inspect(|watcher| send(*watcher, Signal::KILL)).is_none());
    place.spares(&["refill", "-q", "src"]).succeeds();
    assert_eq!(place.checked("two"), "walked");
    eventually("the clone has started another", || watching(&place).is_some_and(|id| id != first));
    // It goes on while there are other spares that want none.
    place.spot.tree("other").file("a", b"1");
    place.spares(&["add", "-q", "other"]).succeeds();
    eventually("the refill is over, and it watches", || is_instant("three"));
    place.settle();
    place.spares(&["remove", "-q", "src"]).succeeds();
    eventually("it ends with the spares that wanted it", || watching(&place).is_none());
    assert!(!place.socket().exists());
    assert_eq!(names(place.home().join("spares")).iter().filter(|name| name.contains('-')).count(), 1);
}

#[test]
fn a_user_has_one_watcher_and_another_user_has_another() {
    let Some(place) = Place::with_spares("1") else { return };
    let _watcher = Watcher::start(&place);
    let second = place.spares(&["watch"]).fails(1);
    assert!(second.stderr.contains("another `calve spares watch` is running"), "{}", second.stderr);
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    // Who may not look at the spares may not watch them either, nor ask.
    let theirs = place.spares(&["watch"]).by_somebody_else(&reachable).ends(1);
    assert!(theirs.stderr.contains("hint: "), "{}", theirs.stderr);
    assert_eq!(place.checked("one"), "watched");
}

#[test]
fn a_source_that_is_not_where_it_was_is_not_watched() {
    let Some(place) = Place::with_spares("2") else { return };
    let mut watcher = Watcher::start(&place);
    let (spot, elsewhere) = (place.spot.join("src"), place.spot.join("elsewhere"));
    fs::rename(&spot, &elsewhere).unwrap();
    watcher.says("it was moved, removed or unmounted");
    fs::rename(&elsewhere, &spot).unwrap();
    assert!(["walked", "watched"].contains(&&*place.checked("one")));
}

/// The directory above is moved, and another source comes to be at its path: the watched one is not asked about that.
#[test]
fn a_source_whose_parent_was_moved_is_another_one() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    fs::create_dir(place.spot.join("above")).unwrap();
    fs::rename(place.spot.join("src"), place.spot.join("above/src")).unwrap();
    place.spares(&["add", "-q", "above/src"]).succeeds();
    place.spares(&["pause", "-q", "above/src"]).succeeds();
    let _watcher = Watcher::start(&place);
    fs::rename(place.spot.join("above"), place.spot.join("moved")).unwrap();
    place.spot.tree("above/src").file("other", b"1");
    let clone = |dst: &str| place.cp(&["--json", "-T", "above/src", dst]).succeeds();
    let ran = clone("one");
    assert!(ran.stderr.contains("another directory than the one it was built from"), "{}", ran.stderr);
    assert_same(place.spot.join("above/src"), place.spot.join("one"));
    fs::remove_dir_all(place.spot.join("above")).unwrap();
    fs::write(place.spot.join("moved/src/changed"), "1").unwrap();
    fs::rename(place.spot.join("moved"), place.spot.join("above")).unwrap();
    clone("two");
    assert_same(place.spot.join("above/src"), place.spot.join("two"));
}

/// Nothing that the watcher has open keeps a file system mounted.
#[test]
fn a_watched_file_system_can_be_unmounted() {
    let (Some(place), Some(other)) = (Place::on(FileSystem::Ext4), calve_testkit::Volume::new(FileSystem::Ext4)) else {
        return;
    };
    let src = other.path().join("src");
    fs::create_dir(&src).unwrap();
    fs::write(src.join("file"), "1").unwrap();
    place.spares(&["add", "-q", path(&src)]).succeeds();
    let mut watcher = Watcher::start(&place);
    unmount_whole(other.path()).unwrap();
    watcher.says("it was moved, removed or unmounted");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_unit_in_the_documentation_is_one() {
    if !require_program("systemd-analyze") {
        return;
    }
    let spot = Spot::anywhere();
    let page = include_str!("../../../../docs/spares.md");
    let (unit, _) = page.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```")).unwrap();
    let file = spot.join("calve-spares.service");
    fs::write(&file, unit).unwrap();
    let said = Command::new("systemd-analyze").args(["--man=no", "verify"]).arg(&file).output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
}
