//! `calve volume`: a btrfs in a file on a real ext4, mounted through real loop devices.

mod damaged;
mod in_use;
mod killed;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_testkit::{
    Aspect, BindMount, FileSystem, FuseVolume, UnprivilegedUser, Volume, assert_same, assert_same_except, git,
    isolate_mounts, node_modules_like, require_program, require_root, rounds,
};
use serde_json::Value;

use crate::program::{Calve, Reachable, calve, carry_environment};
use crate::spot::{eventually, names};
use crate::terminal::Terminal;

const MIB: u64 = 1 << 20;

/// An ext4 with Calve's home on it. Whatever is mounted in it goes with it.
struct Host {
    top: PathBuf,
    volume: Volume,
}

impl Host {
    /// `None` is a skip.
    #[track_caller]
    fn new(bytes: u64) -> Option<Self> {
        let volume = possible(FileSystem::Ext4, bytes)?;
        let host = Self { top: volume.path().into(), volume };
        fs_err::create_dir(host.path().join("home")).unwrap();
        Some(host)
    }

    fn path(&self) -> &Path {
        &self.top
    }

    fn calve<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Calve {
        calve(["volume"]).args(words).env("CALVE_HOME", self.path().join("home"))
    }

    fn image(&self, name: &str) -> PathBuf {
        self.path().join("home/volumes").join(name).join("image")
    }

    /// Attaches a volume, and returns its top directory.
    #[track_caller]
    fn attach(&self, name: &str) -> PathBuf {
        self.calve(["attach", name]).succeeds().stdout.trim_end().into()
    }

    #[track_caller]
    fn detach(&self, name: &str) {
        self.calve(["detach", name, "-q"]).succeeds();
        assert_eq!(self.devices(name), [""; 0]);
    }

    /// The loop devices that have its image, as the kernel says.
    fn devices(&self, name: &str) -> Vec<String> {
        let image = self.image(name).display().to_string();
        let has_it = |device: &String| {
            let file = fs_err::read_to_string(format!("/sys/block/{device}/loop/backing_file"));
            file.is_ok_and(|file| file.trim_end().trim_end_matches(" (deleted)") == image)
        };
        names("/sys/block").into_iter().filter(has_it).map(|name| format!("/dev/{name}")).collect()
    }

    #[track_caller]
    fn listed(&self, name: &str) -> Value {
        let list = self.calve(["list", "--json"]).succeeds().json();
        list["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == name).unwrap().clone()
    }

    fn allocated(&self, name: &str) -> u64 {
        fs_err::metadata(self.image(name)).unwrap().blocks() * 512
    }

    /// Returns what `doctor` finds: code and whether it was repaired.
    fn findings(&self, name: &str) -> Vec<(String, bool)> {
        let ran = self.calve(["doctor", "--json", name]).run();
        let document = ran.json();
        let problems = document["volumes"][0]["problems"].as_array().unwrap().iter();
        let found: Vec<_> = problems
            .map(|problem| (problem["code"].as_str().unwrap().to_owned(), problem["repaired"].as_bool().unwrap()))
            .collect();
        ran.ended(i32::from(found.iter().any(|(_, repaired)| !repaired)));
        found
    }
}

/// Mounts it in a namespace that no other process copies. `None` is a skip.
#[track_caller]
fn possible(file_system: FileSystem, bytes: u64) -> Option<Volume> {
    if !require_root("mounting") || !require_program("mkfs.btrfs") {
        return None;
    }
    isolate_mounts();
    Volume::with_size(file_system, bytes)
}

#[track_caller]
fn system(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_volume_is_made_used_and_removed() {
    let Some(host) = Host::new(2048 * MIB) else { return };
    let made = host.calve(["create", "work", "--size", "1G", "--sparse", "--json"]).succeeds().json();
    assert_eq!(made["volumes"][0]["size_bytes"], 1024 * MIB);
    assert!(host.allocated("work") < 16 * MIB);
    // A process that was killed while it wrote the record.
    let half_written = host.path().join("home/volumes/work/.new-0123456789abcdef");
    fs_err::write(&half_written, "{").unwrap();
    let top = host.attach("work");
    assert!(!half_written.exists());
    // Again is no mistake.
    assert_eq!(host.attach("work"), top);
    assert_eq!(host.devices("work").len(), 1);
    assert_eq!(host.listed("work")["attached"], true);
    assert_eq!(host.findings("work"), []);
    system(&["btrfs", "subvolume", "create", top.join("src").to_str().unwrap()]);
    node_modules_like(top.join("src/tree"), 400);
    let cloned = calve(["cp", "--json", "--require", "instant", "src", "dst"]).within(&top).succeeds().json();
    assert_eq!(cloned["strategy"], "snapshot");
    assert_same(top.join("src"), top.join("dst"));
    host.calve(["remove", "work", "--yes"]).fails(1).says(&[
        "is attached",
        "detach it first: calve volume detach work; `losetup -l` shows a loop device that Calve did not make",
    ]);
    host.detach("work");
    assert_eq!(host.listed("work")["attached"], false);
    assert_eq!(names(&top), [""; 0]);
    host.attach("work");
    assert_same(top.join("src"), top.join("dst"));
    host.detach("work");
    host.calve(["detach", "work"]).succeeds();
    fs_err::write(&half_written, "{").unwrap();
    // There is no terminal to ask on.
    host.calve(["remove", "work"]).fails(3).says(&["still there", "--yes"]);
    host.calve(["remove", "work", "--yes"]).succeeds();
    assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
}

#[test]
fn probe_proposes_a_volume_on_ext4() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    let proposes = |at: &Path| calve(["probe"]).arg(at).succeeds().stdout.contains("calve volume create NAME");
    assert!(proposes(host.path()));
    assert!(!proposes(&top));
}

#[test]
fn a_template_in_a_volume_is_a_subvolume() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "512M"]).succeeds();
    let top = host.attach("work");
    node_modules_like(host.path().join("deps"), 100);
    let home = host.path().join("home");
    let at = |line: &[&str]| calve(line).env("CALVE_HOME", &home).within(&top).succeeds();
    at(&["template", "create", "deps", host.path().join("deps").to_str().unwrap(), "--at", top.to_str().unwrap()]);
    let cloned = at(&["cp", "--json", "--require", "instant", "@deps", "deps"]).json();
    assert_eq!(cloned["strategy"], "snapshot");
    assert_same(host.path().join("deps"), top.join("deps"));
    host.detach("work");
    let refused = calve(["template", "remove", "deps"]).env("CALVE_HOME", &home).fails(1);
    refused.says(&["on a file system that is not mounted", "hint: attach the volume: calve volume attach work\n"]);
    host.attach("work");
    at(&["template", "remove", "deps"]);
    let is_gone = || names(&top).iter().all(|name| !name.starts_with(".calve-templates"));
    eventually("its files are deleted", is_gone);
}

#[test]
fn a_worktree_in_a_detached_volume_is_not_gone() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let (top, repository) = (host.attach("work"), host.path().join("repository"));
    fs_err::create_dir(&repository).unwrap();
    git(&repository, ["init", "-q", "-b", "main"]);
    git(&repository, ["commit", "-q", "--allow-empty", "-m", "one"]);
    let calve = |line: &[&str]| calve(line).within(&repository).env("CALVE_HOME", host.path().join("home"));
    let by_git = top.join("by-git");
    git(&repository, ["worktree", "add", "-q", by_git.to_str().unwrap()]);
    calve(&["hook", "worktree-setup"]).within(&by_git).succeeds();
    let path = top.join("new");
    let (add, list) = (["worktree", "add", "new", "--path", path.to_str().unwrap()], ["worktree", "list"]);
    calve(&add).succeeds();
    host.detach("work");
    let hint = "attach the volume: calve volume attach work";
    let listed = calve(&list).succeeds().says(&[hint]);
    assert_eq!(listed.stdout.matches("unmounted").count(), 2, "{}", listed.stdout);
    let link = host.path().join("link");
    fs_err::os::unix::fs::symlink(host.path(), &link).unwrap();
    calve(&list).env("CALVE_HOME", link.join("home")).succeeds().says(&[hint, "git worktree repair NEW-PATH"]);
    calve(&["worktree", "prune"]).succeeds().says(&[
        "kept the entry of",
        "is on a file system that is not mounted",
        hint,
    ]);
    calve(&["worktree", "remove", "-f", "new"]).fails(1).says(&[hint]);
    let failed = calve(&[&add[..], &["--json"]].concat()).fails(1).json();
    assert_eq!(failed["remedy"], "mount_place", "{failed}");
    host.attach("work");
    assert!(!calve(&list).succeeds().stdout.contains("unmounted"));
    host.detach("work");
    // As the hint says of a disk that is gone for good.
    fs_err::remove_file(repository.join(".git/worktrees/new/calve-mount")).unwrap();
    calve(&["worktree", "prune"]).succeeds().says(&["forgot `"]);
}

#[test]
fn attaching_and_detaching_leaves_no_loop_device() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    for round in 0..rounds(20) {
        let top = host.attach("work");
        fs_err::write(top.join("round"), round.to_string()).unwrap();
        host.detach("work");
    }
    assert_eq!(host.findings("work"), []);
}

#[test]
fn what_is_deleted_is_given_back_to_the_host() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "800M", "--sparse"]).succeeds();
    let top = host.attach("work");
    let sync = || system(&["sync", "-f", top.to_str().unwrap()]);
    let before = host.allocated("work");
    let large = vec![b'x'; usize::try_from(100 * MIB).unwrap()];
    for number in 0..4 {
        fs_err::write(top.join(format!("large{number}")), &large).unwrap();
        // What stays keeps each block group in use.
        fs_err::write(top.join(format!("small{number}")), vec![b'x'; 8192]).unwrap();
        sync();
    }
    let written = 400 * MIB;
    assert!(host.allocated("work") > before + written / 20 * 19);
    for number in 0..4 {
        fs_err::remove_file(top.join(format!("large{number}"))).unwrap();
    }
    sync();
    eventually("95 % of what was deleted are given back", || host.allocated("work") < before + written / 20);
}

#[test]
fn a_volume_grows_attached_and_detached() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let size = |top: &Path| {
        let found = rustix::fs::statvfs(top).unwrap();
        found.f_blocks * found.f_frsize / MIB
    };
    host.calve(["grow", "work", "--size", "320M"]).succeeds();
    let top = host.attach("work");
    assert_eq!(size(&top), 320);
    host.calve(["grow", "work", "--size", "400M"]).succeeds();
    assert_eq!(size(&top), 400);
    // As root has run the commands that the first one printed.
    host.calve(["grow", "work", "--size", "400M"]).succeeds();
    host.calve(["grow", "work", "--size", "320M"]).fails(1).says(&["the volume already has"]);
    host.calve(["grow", "work", "--size", "40G"]).fails(1).says(&["bytes free", "free some space"]);
    assert_eq!(host.findings("work"), []);
    // As if a grow had been killed after its first step.
    system(&["fallocate", "-l", "500M", host.image("work").to_str().unwrap()]);
    assert_eq!(host.findings("work"), [("not_resized".into(), true)]);
    assert_eq!(size(&top), 500);
}

#[test]
fn names_sizes_and_places_are_checked() {
    let Some(host) = Host::new(512 * MIB) else { return };
    for name in ["../x", "a/b", ".hidden", "", "-x", "a b"] {
        let ran = host.calve(["create", "--size", "256M", "--", name]).fails(2);
        ran.says(&[
            "cannot be the name",
            "use at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
        ]);
    }
    host.calve(["remove", "a\x1b[31m"]).fails(2).says(&["`a\\u{1b}[31m` cannot be the name"]);
    host.calve(["create", "work", "--size", "100M"]).fails(1).says(&["too small", "name a larger size"]);
    host.calve(["create", "work", "--size", "500M"])
        .fails(1)
        .says(&["bytes free", "free some space there, or name a smaller size"]);
    for (place, why) in
        [("none", "no such directory"), ("file", "not a directory"), ("full", "not empty"), ("", "mounted")]
    {
        let at = host.path().join(place);
        match place {
            "file" => fs_err::write(&at, "").unwrap(),
            "full" => fs_err::create_dir_all(at.join("inside")).unwrap(),
            _ => {}
        }
        let ran = host.calve(["create", "work", "--size", "256M", "--at", at.to_str().unwrap()]).fails(1);
        ran.says(&[
            why,
            "it has to be an empty directory of its own: make or empty it, or create a volume with `--at DIR`",
        ]);
    }
    std::os::unix::fs::symlink("full", host.path().join("link")).unwrap();
    host.calve(["create", "work", "--size", "256M", "--at", host.path().join("link").to_str().unwrap()]).fails(1);
    for command in ["attach", "remove"] {
        let ran = host.calve([command, "work"]).fails(1);
        ran.says(&["no volume", "`calve volume list` shows the volumes"]);
    }
    assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
    host.calve(["create", "work"]).succeeds();
    host.calve(["create", "work"])
        .fails(1)
        .says(&["already", "choose another name, or mount that one: calve volume attach NAME"]);
}

#[test]
fn it_belongs_to_whoever_owns_the_mount_point() {
    let Some(host) = Host::new(512 * MIB) else { return };
    let at = host.path().join("at");
    fs_err::create_dir(&at).unwrap();
    rustix::fs::chown(&at, Some(rustix::fs::Uid::from_raw(65534)), Some(rustix::fs::Gid::from_raw(65534))).unwrap();
    host.calve(["create", "work", "--size", "256M", "--at", at.to_str().unwrap()]).succeeds();
    // By hand, as `--print` says.
    let lines = host.calve(["attach", "work", "--print"]).succeeds().stdout;
    assert_eq!(host.devices("work"), [""; 0]);
    system(&["sh", "-ec", &lines]);
    assert_eq!(fs_err::metadata(&at).unwrap().uid(), 65534);
    assert_eq!(host.attach("work"), at);
    // It stays so, whatever its owner does with it later.
    rustix::fs::chown(&at, Some(rustix::fs::Uid::ROOT), None).unwrap();
    assert_eq!(host.findings("work"), []);
}

#[test]
fn a_home_may_be_moved_and_its_copy_is_another_one() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M", "--sparse"]).succeeds();
    // A name that a shell and a terminal take for something else.
    let moved = host.path().join("mo\nved 'home");
    fs_err::rename(host.path().join("home"), &moved).unwrap();
    let there = |words: &[&str]| host.calve(words.iter().copied()).env("CALVE_HOME", &moved);
    let lines = there(&["attach", "work", "--print"]).succeeds().stdout;
    system(&["sh", "-ec", &lines]);
    there(&["attach", "work"]).succeeds();
    assert_eq!(there(&["list", "--json"]).succeeds().json()["volumes"][0]["attached"], true);
    let copy = host.path().join("copy");
    system(&["cp", "-ax", moved.to_str().unwrap(), copy.to_str().unwrap()]);
    host.calve(["detach", "work", "-q"]).env("CALVE_HOME", &copy).succeeds();
    assert_eq!(there(&["list", "--json"]).succeeds().json()["volumes"][0]["attached"], true);
    there(&["detach", "work", "-q"]).succeeds();
    assert_eq!(there(&["list", "--json"]).succeeds().json()["volumes"][0]["attached"], false);
}

#[test]
fn not_as_root_the_commands_are_printed() {
    let Some(host) = Host::new(512 * MIB) else { return };
    rustix::fs::chmod(host.path().join("home"), 0o777.into()).unwrap();
    let reachable = Reachable::new();
    let as_user = |words: &[&str]| host.calve(words.iter().copied()).by_somebody_else(&reachable);
    as_user(&["create", "work", "--size", "256M"]).succeeds();
    as_user(&["attach", "work"]).fails(3).says(&["mount -t btrfs -o loop,nosuid,nodev", "needs root", "as root"]);
    let lines = as_user(&["attach", "work", "--print"]).succeeds().stdout;
    system(&["sh", "-ec", &lines]);
    let top = as_user(&["attach", "work"]).succeeds().stdout;
    assert_eq!(fs_err::metadata(top.trim_end()).unwrap().uid(), UnprivilegedUser::UID);
    as_user(&["detach", "work"]).fails(3).says(&["umount", "needs root"]);
    system(&["sh", "-ec", &as_user(&["detach", "work", "--print"]).succeeds().stdout]);
    as_user(&["detach", "work"]).succeeds();
    as_user(&["remove", "work", "--yes"]).succeeds();
}

/// In a mount namespace where the user has an account, and may become root without a password.
const WITH_SUDO: &str = "mount --bind \"$1\" /etc/passwd; mount -t tmpfs -o mode=755 tmpfs /etc/sudoers.d; shift
    echo '#12345 ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/test; chmod 440 /etc/sudoers.d/test
    \"$@\" attach work || echo \"refused: $?\"
    test -z \"$(losetup -j \"$IMAGE\")\"
    \"$@\" attach work
    setpriv --reuid=12345 touch \"$(\"$@\" attach work)/file\"
    \"$@\" detach work";

/// `script`, which gets a program and its arguments for `calve volume`, on a terminal, where the volume `work` is not attached yet.
fn with_sudo(host: &Host, reachable: &Reachable, script: &str) -> Option<Terminal> {
    assert_eq!(UnprivilegedUser::UID, 12345);
    if !require_program("sudo") {
        return None;
    }
    rustix::fs::chmod(host.path().join("home"), 0o777.into()).unwrap();
    host.calve(["create", "work", "--size", "256M"]).by_somebody_else(reachable).succeeds();
    let accounts = fs_err::read_to_string("/etc/passwd").unwrap() + "somebody:*:12345:12345::/nonexistent:/bin/sh\n";
    fs_err::write(host.path().join("passwd"), accounts).unwrap();
    let calve = host.calve([]).by_somebody_else(reachable).command();
    let mut inside = Command::new("unshare");
    inside.args(["-m", "sh", "-ec", script, "sh"]).arg(host.path().join("passwd"));
    inside.arg(calve.get_program()).args(calve.get_args()).env("IMAGE", host.image("work"));
    carry_environment(&calve, &mut inside);
    Some(Terminal::new(&inside))
}

#[test]
fn sudo_runs_the_commands_if_the_user_agrees() {
    let Some(host) = Host::new(512 * MIB) else { return };
    let reachable = Reachable::new();
    let Some(mut terminal) = with_sudo(&host, &reachable, WITH_SUDO) else { return };
    terminal.after("mount -t btrfs -o loop,nosuid,nodev", "");
    terminal.after("Run this by sudo? [y/N]", "n\n");
    terminal.after("attaching a volume needs root", "");
    terminal.after("refused: 3", "");
    terminal.after("Run this by sudo? [y/N]", "y\n");
    terminal.after("umount", "");
    terminal.after("Run this by sudo? [y/N]", "y\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("detached the volume work"), "{seen}");
    assert_eq!(host.devices("work"), [""; 0]);
    let attach = |words: &[&str]| host.calve([&["attach", "work"], words].concat()).by_somebody_else(&reachable);
    system(&["sh", "-ec", &attach(&["--print"]).succeeds().stdout]);
    let top = PathBuf::from(attach(&[]).succeeds().stdout.trim_end());
    assert_eq!(fs_err::metadata(top.join("file")).unwrap().uid(), UnprivilegedUser::UID);
}

/// In a mount namespace where the user has an account, and may run something else as root.
const WITHOUT_SUDO: &str = "mount --bind \"$1\" /etc/passwd; mount -t tmpfs -o mode=755 tmpfs /etc/sudoers.d; shift
    echo '#12345 ALL=(ALL) NOPASSWD: /bin/true' > /etc/sudoers.d/test
    echo 'Defaults !authenticate' >> /etc/sudoers.d/test; chmod 440 /etc/sudoers.d/test
    exec \"$@\" attach work";

#[test]
fn sudo_that_refuses_changes_nothing() {
    let Some(host) = Host::new(512 * MIB) else { return };
    let reachable = Reachable::new();
    let Some(mut terminal) = with_sudo(&host, &reachable, WITHOUT_SUDO) else { return };
    terminal.after("Run this by sudo? [y/N]", "y\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(3), "{seen}");
    assert!(seen.contains("`sudo` refused to run a command as root: "), "{seen}");
    assert!(
        seen.contains("have those commands run as root (`--print` prints them for a shell), then run this one again")
    );
    assert_eq!(host.devices("work"), [""; 0]);
    host.calve(["doctor", "work"]).by_somebody_else(&reachable).succeeds().says(&["nothing is wrong"]);
}

#[test]
fn a_full_host_leaves_a_volume_writable() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "400M"]).succeeds();
    host.calve(["grow", "work", "--size", "500M"]).succeeds();
    assert!(host.allocated("work") >= 500 * MIB);
    let top = host.attach("work");
    assert_eq!(host.findings("work"), []);
    // A trim gives room back, which is taken again.
    system(&["fstrim", top.to_str().unwrap()]);
    assert!(host.allocated("work") < 400 * MIB);
    assert_eq!(host.findings("work"), [("trimmed".into(), true)]);
    assert!(host.allocated("work") >= 500 * MIB);
    // As root takes the blocks that ext4 keeps for root, too.
    let hog = ["if=/dev/zero", "bs=64k"].map(str::to_owned);
    let full = Command::new("dd").args(hog).arg(format!("of={}", host.path().join("hog").display())).output().unwrap();
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"));
    let sync = || Command::new("sync").arg("-f").arg(&top).status().unwrap().success();
    for name in ["one", "two"] {
        node_modules_like(top.join(name), 200);
        assert!(sync());
        // Until it is full itself, which is no error of the disk.
        let mut large = fs_err::File::create(top.join("large")).unwrap();
        let written = (0..).find_map(|_| large.write_all(&vec![b'x'; 1 << 20]).err()).unwrap();
        assert_eq!(written.kind(), std::io::ErrorKind::StorageFull);
        drop(large);
        assert!(sync());
        fs_err::remove_file(top.join("large")).unwrap();
        assert!(sync());
        // Deleted blocks are free again when the transaction is on the disk.
        assert!(sync());
    }
    assert_same_except(top.join("one"), top.join("two"), &[Aspect::Times]);
    assert_eq!(host.findings("work"), []);
    fs_err::write(top.join("more"), "more").unwrap();
    host.detach("work");
    system(&["btrfs", "check", host.image("work").to_str().unwrap()]);
    host.calve(["grow", "work", "--size", "600M"]).fails(1).says(&["bytes free"]).hints();
}

#[test]
fn where_no_room_can_be_kept_a_volume_must_be_sparse() {
    let Some(btrfs) = possible(FileSystem::Btrfs, 512 * MIB) else { return };
    let Some(fuse) = FuseVolume::new() else { return };
    let homes = [btrfs.path(), fuse.path()].map(|host| host.join("home"));
    for home in &homes {
        fs_err::create_dir(home).unwrap();
        let create = || calve(["volume", "create", "work", "--size", "256M"]).env("CALVE_HOME", home);
        create().fails(1).says(&[
            "cannot reserve space for a file",
            "on btrfs and ZFS, clone without a volume; else keep it on ext4 or XFS (set CALVE_HOME), or pass `--sparse`: a full disk then makes it read-only",
        ]);
        assert_eq!(names(home.join("volumes")), [".lock"]);
    }
    calve(["volume", "create", "work", "--size", "256M", "--sparse"]).env("CALVE_HOME", &homes[0]).succeeds();
}

#[test]
fn somebody_elses_hidden_image_is_told() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    host.attach("work");
    rustix::fs::chmod(host.path().join("home"), 0o700.into()).unwrap();
    let his = host.path().join("his");
    fs_err::create_dir(&his).unwrap();
    rustix::fs::chmod(&his, 0o777.into()).unwrap();
    let create = host.calve(["create", "his", "--size", "256M"]).env("CALVE_HOME", &his);
    let ran = create.by_somebody_else(&Reachable::new()).fails(1);
    ran.says(&["an image that another user mounted", "have its owner unmount it for a moment, or let everybody search its directories: `chmod o+x`; `losetup -l` shows where it is"]);
    assert_eq!(names(his.join("volumes")), [".lock"]);
}

/// On a terminal, but with nothing that makes a user root.
const NO_SUDO: &str = "mount --bind \"$1\" /etc/passwd; shift
    for way in /usr/bin/sudo /usr/bin/pkexec; do test ! -e $way || mount --bind /dev/null $way; done
    exec \"$@\" attach work";

#[test]
fn without_sudo_the_commands_are_printed_and_nobody_is_asked() {
    let Some(host) = Host::new(512 * MIB) else { return };
    let reachable = Reachable::new();
    let Some(terminal) = with_sudo(&host, &reachable, NO_SUDO) else { return };
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(3), "{seen}");
    assert!(seen.contains("mount -t btrfs -o loop,nosuid,nodev") && seen.contains("needs root"), "{seen}");
    assert!(!seen.contains("[y/N]"), "{seen}");
    assert_eq!(host.devices("work"), [""; 0]);
}

/// As in a container that has the home of its host at another place.
#[test]
fn a_volume_is_the_same_by_another_path() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    let (home, other) = (host.path().join("home"), host.path().join("other"));
    fs_err::create_dir(&other).unwrap();
    let _mount = calve_testkit::BindMount::new(&home, &other);
    let by_other = |words: &[&str]| host.calve(words.iter().copied()).env("CALVE_HOME", &other);
    by_other(&["remove", "work", "--yes"]).fails(1).says(&["is attached"]);
    assert_eq!(Path::new(by_other(&["attach", "work"]).succeeds().stdout.trim_end()), top);
    assert_eq!(host.devices("work").len(), 1);
    by_other(&["detach", "work"]).succeeds();
    assert_eq!(host.devices("work"), [""; 0]);
}

#[test]
fn a_volume_that_is_interrupted_is_not_made() {
    if !require_program("strace") {
        return;
    }
    let Some(host) = Host::new(512 * MIB) else { return };
    // As the terminal does: to calve, and to mkfs.btrfs, which is at its first byte.
    let inject = "inject=pwrite64:signal=INT:when=1";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64,fallocate", "-e", inject];
    let both = [&strace[..], &["-e", "inject=fallocate:signal=INT:when=1"]].concat();
    host.calve(["create", "work", "--size", "256M"]).under(&both).fails(130).says(&["interrupted", "run it again"]);
    assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
    host.calve(["create", "work", "--size", "256M"]).succeeds();
}

#[test]
fn mount_options_are_repaired() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    system(&["mount", "-o", "remount,suid,dev,relatime", top.to_str().unwrap()]);
    assert_eq!(host.findings("work"), [("mount_options".into(), true)]);
    assert_eq!(host.findings("work"), []);
}

#[test]
fn without_loop_devices_it_says_so() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    // A container's /dev: in a mount namespace of its own.
    let script = "mount -t tmpfs none /dev; exec \"$0\" \"$@\"";
    let ran = host.calve(["attach", "work"]).under(&["unshare", "-m", "--propagation", "private", "sh", "-c", script]);
    ran.fails(3).says(&[
        "offers no loop devices",
        "as root, load the module: `modprobe loop`; a container has the kernel and the devices of its host",
    ]);
}
