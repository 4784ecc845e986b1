//! `calve spares`, and what `calve cp` makes of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{
    BindMount, FileSystem, SplitMix64, Tree, Volume, assert_same, few_rounds, fingerprint, node_modules_like,
    require_program, require_root, rounds,
};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;

use crate::kill::Killer;
use crate::process::send;
use crate::program::{Calve, Reachable, RunResult, calve, cp};
use crate::spot::{Spot, eventually, leftovers, names, nothing_left};

/// A place with a store of its own.
pub(crate) struct Place {
    pub(crate) spot: Spot,
    home: PathBuf,
}

impl Place {
    pub(crate) fn on(file_system: FileSystem) -> Option<Self> {
        let place = Self::at(Spot::on(file_system)?);
        node_modules_like(place.spot.join("src"), 300);
        Some(place)
    }

    fn at(spot: Spot) -> Self {
        Self { home: spot.join("home"), spot }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    fn with_home(&self, command: Calve) -> Calve {
        command.env("CALVE_HOME", self.home()).within(&self.spot)
    }

    pub(crate) fn spares(&self, words: &[&str]) -> Calve {
        self.with_home(calve(["spares"]).args(words))
    }

    pub(crate) fn cp(&self, words: &[&str]) -> Calve {
        self.with_home(cp().args(words))
    }

    fn sets(&self) -> usize {
        self.list()["sources"].as_array().unwrap().len()
    }

    fn list(&self) -> Value {
        self.spares(&["list", "--json"]).succeeds().json()
    }

    /// The states of the spares of the only source.
    fn states(&self) -> Vec<String> {
        let list = self.list();
        let spares = list["sources"][0]["spares"].as_array().unwrap();
        spares.iter().map(|spare| spare["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until no process works on the spares, which would keep the file system mounted.
    pub(crate) fn settle(&self) {
        for source in self.list()["sources"].as_array().unwrap() {
            self.spares(&["pause", "-q", source["source"].as_str().unwrap()]).succeeds();
        }
        eventually("the refill is over", || self.is_free(".lock") && self.is_free(".waiting"));
    }

    /// Returns whether a lock of the store is free.
    fn is_free(&self, name: &str) -> bool {
        let Ok(lock) = fs_err::File::open(self.home().join("spares").join(name)) else { return true };
        flock(lock.file(), FlockOperation::NonBlockingLockExclusive).is_ok()
    }
}

fn strategy(ran: &RunResult) -> String {
    ran.json()["strategy"].as_str().unwrap().to_owned()
}

#[test]
fn a_spare_is_asked_for_handed_over_and_built_again() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(place) = Place::on(file_system) else { return };
        let added = place.spares(&["add", "--json", "--count", "2", "src"]).succeeds();
        assert!(added.stderr.contains("2 of 2 spares ready"), "{}", added.stderr);
        assert_eq!((added.json()["built"].as_u64(), place.states().len()), (Some(2), 2));
        let ran = place.cp(&["--json", "src", "dst"]).succeeds();
        let receipt = ran.json();
        assert_eq!(receipt["strategy"], "spare");
        assert_eq!((&receipt["spare"]["checked"], &receipt["spare"]["entries_updated"]), (&"walked".into(), &0.into()));
        assert!(ran.stderr.contains(" by spare: "), "{}", ran.stderr);
        assert_same(place.spot.join("src"), place.spot.join("dst"));
        // A refill begins to build the next one, or has built it.
        eventually("another spare is being built", || place.states().len() == 2 || !place.is_free(".waiting"));
        place.spot.tree("src").file("package-000/changed", b"1");
        let ran = place.cp(&["--json", "src", "dst-2"]).succeeds();
        assert_eq!(strategy(&ran), "spare");
        assert!(ran.json()["spare"]["entries_updated"].as_u64().unwrap() > 0);
        assert_same(place.spot.join("src"), place.spot.join("dst-2"));
        place.settle();
        place.spares(&["remove", "src"]).succeeds();
        assert_eq!(place.list()["sources"], Value::Array(Vec::new()));
        assert_eq!(names(place.home().join("spares")), [".lock", ".waiting"]);
        place.spares(&["remove", "src"]).fails(1);
        place.spot.holds(&["dst", "dst-2", "home", "src"]);
    }
}

#[test]
fn a_source_on_another_file_system_than_the_home_has_its_spares_beside_it() {
    let (Some(place), Some(other)) = (Place::on(FileSystem::Ext4), Spot::on(FileSystem::Ext4)) else { return };
    calve_testkit::git(&*other, ["init", "-q", "."]);
    other.tree("src").file("a", b"1");
    fs_err::write(other.join(".gitignore"), "/src/\n/dst/\n/.gitignore\n").unwrap();
    let src = other.join("src");
    let src = src.to_str().unwrap();
    place.spares(&["add", "-q", src]).succeeds();
    place.spares(&["pause", "-q", src]).succeeds();
    assert_eq!(leftovers(&other).len(), 1);
    let status = calve_testkit::git(&*other, ["status", "--porcelain"]);
    assert_eq!(status, "", "the spares show in git");
    let dst = other.join("dst");
    assert_eq!(strategy(&place.cp(&["-q", "--json", src, dst.to_str().unwrap()]).succeeds()), "spare");
    place.spares(&["remove", "-q", src]).succeeds();
    nothing_left(&other);
}

/// It sees an overlay at the directory's path.
#[test]
fn a_command_in_a_private_copy_of_the_source_costs_no_spares() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    let program = calve_testkit::calve_binary();
    let script = format!("{} cp --json . ../dst", program.display());
    let run = place.with_home(calve(["run", "-q", "--", "sh", "-c", script.as_str()])).within(place.spot.join("src"));
    assert_ne!(strategy(&run.succeeds()), "spare");
    assert_same(place.spot.join("src"), place.spot.join("dst"));
    place.settle();
    assert_eq!(place.states(), ["ready"]);
    assert_eq!(strategy(&place.cp(&["--json", "src", "dst-2"]).succeeds()), "spare");
}

#[test]
fn spares_below_the_home_move_with_it() {
    let Some(mut place) = Place::on(FileSystem::Ext4) else { return };
    place.spot.tree("home/work").dir("");
    let at = place.home().join("work");
    place.spares(&["add", "-q", "--count", "2", "--at", at.to_str().unwrap(), "src"]).succeeds();
    place.settle();
    fs_err::rename(place.home(), place.spot.join("moved")).unwrap();
    place.home = place.spot.join("moved");
    assert_eq!(place.states(), ["ready", "ready"]);
    assert_eq!(strategy(&place.cp(&["-q", "--json", "src", "dst"]).succeeds()), "spare");
    // It is the same set as before.
    place.spares(&["add", "-q", "--count", "2", "--at", "moved/work", "src"]).succeeds();
    assert_eq!(place.list()["sources"].as_array().unwrap().len(), 1);
    place.settle();
    place.spares(&["remove", "-q", "src"]).succeeds();
    assert_eq!(names(place.home.join("work")), [""; 0]);
}

#[test]
fn a_set_with_the_name_of_an_earlier_version_is_continued() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spot.tree("home/work").dir("");
    place.spares(&["add", "-q", "--at", "home/work", "src"]).succeeds();
    place.settle();
    let spares = format!("work/.calve-spares-{}", rustix::process::geteuid().as_raw());
    let is_set = |name: &String| place.home().join("spares").join(name).join("set").exists();
    let name = names(place.home().join("spares")).into_iter().find(is_set).unwrap();
    let earlier = format!("{}-00000000", name.rsplit_once('-').unwrap().0);
    for directory in ["spares", &spares].map(|directory| place.home().join(directory)) {
        fs_err::rename(directory.join(&name), directory.join(&earlier)).unwrap();
    }
    place.spares(&["add", "-q", "--count", "2", "--at", "home/work", "src"]).succeeds();
    place.settle();
    assert_eq!((place.list()["sources"].as_array().unwrap().len(), place.states()), (1, vec!["ready".into(); 2]));
}

#[test]
fn a_spare_that_is_paused_is_handed_over_and_not_built_again() {
    let Some(place) = Place::on(FileSystem::Xfs) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    let paused = place.spares(&["pause", "src"]).succeeds();
    assert!(paused.stderr.contains("1 of 1 spare ready, paused"), "{}", paused.stderr);
    assert_eq!(strategy(&place.cp(&["-q", "--json", "src", "dst"]).succeeds()), "spare");
    let ran = place.cp(&["--json", "src", "dst-2"]).succeeds();
    assert_eq!(strategy(&ran), "reflink");
    assert!(ran.stderr.contains("no spare: no spare is ready"), "{}", ran.stderr);
    assert!(place.states().is_empty() && place.is_free(".waiting"));
    let refilled = place.spares(&["refill", "--json", "src"]).succeeds().json();
    assert_eq!((&refilled["built"], &refilled["sources"][0]["paused"]), (&1.into(), &false.into()));
    let listed = place.spares(&["list"]).succeeds().stdout;
    assert!(listed.contains("1 of 1 spare ready") && listed.contains("  ready, "), "{listed}");
    place.settle();
}

#[test]
fn what_the_next_spare_costs_is_told_before_it_is_built() {
    for (file_system, words) in
        [(FileSystem::Ext4, "the next one takes "), (FileSystem::Btrfs, "the next one shares its data")]
    {
        let Some(place) = Place::on(file_system) else { continue };
        place.spot.tree("src").file("large", vec![1; 3 << 20]);
        place.spares(&["add", "-q", "--count", "2", "--exclude", "small", "src"]).succeeds();
        assert_eq!(place.list()["sources"][0]["next_bytes"], Value::Null);
        place.spares(&["pause", "-q", "src"]).succeeds();
        place.cp(&["-q", "--exclude", "small", "src", "dst"]).succeeds();
        let bytes = place.list()["sources"][0]["next_bytes"].as_u64().unwrap();
        let written = place.list()["sources"][0]["spares"][0]["written_bytes"].as_u64().unwrap();
        let fits = if file_system == FileSystem::Ext4 { (3 << 20..5 << 20).contains(&bytes) } else { bytes == 0 };
        assert!(fits && bytes >= written, "{bytes}, {written}");
        let listed = place.spares(&["list"]).succeeds().stdout;
        assert!(listed.contains("1 of 2 spares ready, paused") && listed.contains(words), "{listed}");
        // Its source is gone.
        fs_err::rename(place.spot.join("src"), place.spot.join("moved")).unwrap();
        assert_eq!(place.list()["sources"][0]["next_bytes"], Value::Null);
    }
}

#[test]
fn probe_and_dry_runs_tell_of_spares() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    let probe = |place: &Place| place.with_home(calve(["probe", "src"])).succeeds().stdout;
    let told = probe(&place);
    assert!(
        told.contains("refused: there is no spare of this source")
            && told.contains("keep clones of it ready, which are handed over in milliseconds: calve spares add src\n"),
        "{told}"
    );
    place.spares(&["add", "-q", "src"]).succeeds();
    place.spares(&["pause", "-q", "src"]).succeeds();
    // Clones of it into itself are no use of a spare; beside it they are.
    let told = place.with_home(calve(["probe", "src", "."])).succeeds().stdout;
    assert!(told.contains("spare      available; would be used"), "{told}");
    assert_eq!(strategy(&place.cp(&["-n", "-q", "--json", "src", "dst"]).succeeds()), "spare");
    place.cp(&["-q", "src", "dst"]).succeeds();
    let planned = place.cp(&["-n", "--json", "src", "dst-2"]).succeeds();
    assert_eq!(strategy(&planned), "copy");
    assert!(planned.stderr.contains("no spare: no spare is ready"), "{}", planned.stderr);
}

#[test]
fn the_name_that_list_prints_is_understood_whatever_is_there_now() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    place.settle();
    let src = place.spot.join("src");
    fs_err::rename(&src, place.spot.join("real")).unwrap();
    std::os::unix::fs::symlink("real", &src).unwrap();
    let named = place.list()["sources"][0]["source"].as_str().unwrap().to_owned();
    place.spares(&["add", "-q", "real"]).succeeds();
    place.spares(&["remove", "-q", &named]).succeeds();
    assert_eq!(place.list()["sources"][0]["source"].as_str(), place.spot.join("real").to_str());
    // Now that is what it leads to.
    place.settle();
    place.spares(&["remove", "-q", "src"]).succeeds();
    assert_eq!(place.list()["sources"].as_array().unwrap().len(), 0);
}

#[test]
fn a_spare_is_not_lost_to_another_mount_or_one_that_is_read_only() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    place.settle();
    let mounted = place.spot.parent().unwrap().to_str().unwrap();
    let remount = |how: &str| {
        assert!(Command::new("mount").args(["-o", how, mounted]).status().unwrap().success(), "{how}");
    };
    remount("remount,ro");
    let told = place.with_home(calve(["probe", "src", "."])).run().stdout;
    remount("remount,rw");
    assert!(told.contains("refused: the destination's file system is mounted read-only"), "{told}");
    place.spot.tree("same").dir("below");
    place.spot.tree("mount");
    let mount = BindMount::new(place.spot.join("same"), place.spot.join("mount"));
    let why = "its spares are seen through another mount than the destination";
    assert!(place.with_home(calve(["probe", "src", "mount"])).succeeds().stdout.contains(&format!("refused: {why}")));
    let copied = place.cp(&["-q", "--json", "-T", "src", "mount/copy"]).succeeds();
    assert_ne!(strategy(&copied), "spare");
    assert_eq!(place.states(), ["ready"]);
    drop(mount);
    assert_eq!(strategy(&place.cp(&["-q", "--json", "-T", "src", "same/below/copy"]).succeeds()), "spare");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    let refused = place.spares(&["add", "missing"]).fails(1);
    assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
    place.spot.tree("").file("file", b"1");
    let refused = place.spares(&["add", "file"]).fails(1).says(&["clone it without a spare"]);
    assert!(refused.stderr.contains("no spare can be made of `file`: it is not a directory"), "{}", refused.stderr);
    for command in ["pause", "refill", "remove"] {
        let refused = place.spares(&[command, "src"]).fails(1);
        assert!(refused.stderr.contains("there are no spares of `"), "{}", refused.stderr);
    }
    // A store inside the source would be in every clone.
    let inside = calve(["spares", "add", "src"]).env("CALVE_HOME", place.spot.join("src/home")).within(&place.spot);
    assert!(inside.fails(1).stderr.contains("the spare would be inside it"));
    for words in [&["src", "dst"][..], &["-n", "src", "dst"], &["-n", "file", "dst"]] {
        let refused = place.cp(&[&["--strategy", "spare"], words].concat()).fails(3);
        refused.says(&["the strategy `spare` cannot be used here\n  spare: there is no spare of this source"]);
    }
    place.spares(&["add", "--count", "0", "src"]).run().ended(2);
    // Patterns of included entries are compared.
    let added = place.spares(&["add", "--exclude", "*.log", "--exclude", "!keep.log", "src"]).succeeds();
    added.says(&["1 of 1 spare ready, without `*.log`, with `keep.log`, in"]);
}

#[test]
fn two_users_have_stores_of_their_own() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    place.spares(&["pause", "-q", "src"]).succeeds();
    // The other one may not even look at it, and clones as ever.
    let ran = place.cp(&["--json", "-T", "src", "theirs"]).by_somebody_else(&reachable).ends(0);
    assert_eq!(strategy(&ran), "copy");
    assert!(ran.stderr.contains("no spare: the spares cannot be reached"), "{}", ran.stderr);
    assert_eq!(place.states(), ["ready"]);
}

/// The scheduling policy of a process (sched(7)), and its class for the disk.
fn priority(id: u32) -> Option<(u32, String)> {
    let stat = fs_err::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let policy = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(38)?.parse().ok()?;
    let class = Command::new("ionice").args(["-p", &id.to_string()]).output().ok()?;
    Some((policy, String::from_utf8_lossy(&class.stdout).trim().to_owned()))
}

#[test]
fn a_refill_in_the_background_runs_when_nothing_else_does() {
    const SCHED_IDLE: u32 = 5;
    if !require_program("ionice") {
        return;
    }
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spares(&["add", "-q", "src"]).succeeds();
    // It waits for processes that work on the spares.
    let lock = fs_err::File::open(place.home().join("spares/.lock")).unwrap();
    flock(lock.file(), FlockOperation::LockExclusive).unwrap();
    let refill = place.with_home(calve(["__refill"])).start();
    eventually("it has the lowest priority", || priority(refill.id()) == Some((SCHED_IDLE, "idle".into())));
    send(refill.id(), Signal::KILL);
    assert!(refill.wait().was_killed());
}

#[test]
fn what_a_killed_build_has_left_goes_with_the_spares() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    let at = place.spot.join("at");
    fs_err::create_dir(&at).unwrap();
    let building = place.spares(&["add", "-q", "--count", "9", "--at", "at", "src"]).start();
    eventually("it builds", || !place.is_free(".lock"));
    send(building.id(), Signal::STOP);
    let mut removing = place.spares(&["remove", "-q", "src"]).start();
    eventually("it waits for the build", || removing.has_ended() || !place.is_free(".awaited"));
    send(building.id(), Signal::KILL);
    assert!(building.wait().was_killed());
    removing.wait().ended(0);
    assert_eq!(names(&at), [] as [String; 0]);
}

#[test]
fn what_a_process_was_killed_at_writing_goes_with_the_spares() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    let (at, store) = (place.spot.join("at"), place.home().join("spares"));
    fs_err::create_dir(&at).unwrap();
    for strangers in [false, true] {
        place.spares(&["add", "-q", "--at", "at", "src"]).succeeds();
        let above = at.join(&names(&at)[0]);
        let set = names(&above).into_iter().find(|name| name != ".gitignore").unwrap();
        fs_err::write(above.join(".new-0123456789abcdef"), "").unwrap();
        fs_err::write(store.join(&set).join(".new-0123456789abcdef"), "").unwrap();
        if strangers {
            fs_err::write(above.join("a"), "").unwrap();
        }
        if strangers {
            let half_written = store.join(&set).join(".new-0123456789abcdef");
            place.spares(&["refill", "-q"]).succeeds();
            assert!(!half_written.exists());
            fs_err::write(half_written, "").unwrap();
        }
        place.spares(&["remove", "-q", "src"]).succeeds();
        assert!(!store.join(&set).exists());
        assert_eq!(above.exists(), strangers);
    }
}

#[test]
fn a_process_that_is_killed_at_any_moment_harms_neither_source_nor_clones() {
    for (seed, file_system) in [(1, FileSystem::Ext4), (2, FileSystem::Xfs)] {
        let Some(place) = Place::on(file_system) else { return };
        let (mut building, mut handing_over) = (Killer::new(seed), Killer::new(seed + 10));
        let mut random = SplitMix64::new(seed);
        place.spares(&["add", "-q", "src"]).succeeds();
        // Killed while it checked, and while it brought a spare up to date that was under the destination's hidden name.
        let (mut handed_over, mut checking, mut updating) = (0, 0, 0);
        for round in 0..rounds(40) {
            let before = fingerprint(place.spot.join("src"));
            building.let_run(place.spares(&["refill", "-q", "src"]));
            place.spares(&["pause", "-q", "src"]).succeeds();
            before.assert_unchanged(place.spot.join("src"));
            edit(&place.spot.join("src"), &mut random);
            let before = fingerprint(place.spot.join("src"));
            let ready = place.states();
            let ran = handing_over.let_run(place.cp(&["-q", "--json", "src", "dst"]));
            before.assert_unchanged(place.spot.join("src"));
            let dst = place.spot.join("dst");
            if dst.exists() {
                assert_same(place.spot.join("src"), &dst);
                fs_err::remove_dir_all(&dst).unwrap();
            }
            if ran.was_killed() && !dst.exists() && ready.contains(&"ready".to_owned()) {
                let count = if place.states() == ready { &mut checking } else { &mut updating };
                *count += 1;
            }
            handed_over += usize::from(!ran.was_killed() && strategy(&ran) == "spare");
            let left = leftovers(&place.spot);
            assert!(left.len() <= 4, "seed {seed}, round {round}: {left:?}");
        }
        place.spares(&["refill", "-q", "src"]).succeeds();
        assert_eq!(place.states(), ["ready"], "something is left, or nothing was built");
        place.settle();
        let last = place.cp(&["-q", "--json", "src", "dst"]).succeeds();
        assert_eq!(strategy(&last), "spare", "{}", last.stdout);
        assert_same(place.spot.join("src"), place.spot.join("dst"));
        nothing_left(&place.spot);
        let killed = (building.killed(), checking, updating);
        let all_came_up = killed.0 > 0 && checking + updating > 0 && handed_over > 0;
        assert!(few_rounds() || all_came_up, "{handed_over} handed over, {killed:?}");
    }
}

fn edit(src: &Path, random: &mut SplitMix64) {
    let number = random.below(20);
    let tree = Tree::new(src).file(format!("new-{number}"), random.bytes(100));
    // As many as may differ, so that bringing a spare up to date takes a while.
    (0..30).fold(tree, |tree, file| tree.file(format!("d-{number}/{file}"), random.bytes(3000)));
}

#[test]
fn a_request_that_fails_is_not_kept() {
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    for (at, why, hint) in [
        ("/proc", "create directory `/proc/.calve-spares-", "this file system cannot do that"),
        ("none", "`none` does not exist", "check the spelling of the path"),
    ] {
        place.spares(&["add", "--at", at, "src"]).fails(1).says(&[why, hint]);
    }
    // A socket cannot be cloned.
    let _socket = std::os::unix::net::UnixListener::bind(place.spot.join("src/socket")).unwrap();
    place.spares(&["add", "src"]).fails(1).says(&["it has a socket in it"]);
    assert_eq!(place.list()["sources"], Value::Array(Vec::new()));
    fs_err::remove_file(place.spot.join("src/socket")).unwrap();
    place.spares(&["add", "src"]).succeeds();
    place.cp(&["src", "dst"]).succeeds();
    place.settle();
    // An earlier request stays.
    let _socket = std::os::unix::net::UnixListener::bind(place.spot.join("src/socket")).unwrap();
    place.spares(&["add", "--count", "3", "src"]).fails(1);
    assert_eq!(place.list()["sources"].as_array().unwrap().len(), 1);
}

#[test]
fn a_request_that_waits_for_room_is_kept() {
    let volume = Volume::with_size(FileSystem::Ext4, 64 << 20);
    let Some(place) = volume.map(|volume| Place::at(Spot::at(volume))) else { return };
    place.spot.tree("src").file("large", vec![1; 20 << 20]).file("more", vec![1; 10 << 20]);
    place.spares(&["add", "src"]).fails(1).says(&["less than a fifth of the disk would stay free"]);
    assert_eq!(place.list()["sources"].as_array().unwrap().len(), 1);
}

#[test]
fn spares_on_a_file_system_that_is_not_mounted_are_not_forgotten() {
    if !require_root("mounting") {
        return;
    }
    let Some(place) = Place::on(FileSystem::Ext4) else { return };
    place.spot.tree("").dir("disk").dir("at");
    let mounted = BindMount::new(place.spot.join("disk"), place.spot.join("at"));
    place.spares(&["add", "--at", "at", "src"]).succeeds();
    drop(mounted);
    let at = place.spot.join("at");
    let why = format!("are on a file system that is not mounted: `{}`", at.display());
    let id = names(place.home().join("spares")).into_iter().find(|name| name.contains('-')).unwrap();
    let record = place.home().join("spares").join(id).join("mount");
    let hint = format!("hint: mount it again; if it is gone for good, delete its record: rm {}\n", record.display());
    for line in [&["refill", "src"][..], &["add", "--at", "at", "src"], &["remove", "src"]] {
        place.spares(line).fails(1).says(&[&why, &hint]);
        assert_eq!((place.sets(), names(&at)), (1, Vec::new()), "{line:?}");
    }
    let listed = place.spares(&["list"]).succeeds().stdout;
    assert!(listed.contains("`, on a file system that is not mounted\n"), "{listed}");
    let _mounted = BindMount::new(place.spot.join("disk"), place.spot.join("at"));
    let listed = place.spares(&["list"]).succeeds().stdout;
    assert!(!listed.contains("not mounted"), "{listed}");
    place.spares(&["remove", "src"]).succeeds();
    assert_eq!((place.sets(), names(&at)), (0, Vec::new()));
}
