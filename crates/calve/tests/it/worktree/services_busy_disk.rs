//! Services on a disk that takes no writes.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{FileSystem, Volume, require_program, require_root};
use rustix::process::{Pid, Signal, kill_process};

use super::repo::{Repo, with_environment};
use crate::program::calve;
use crate::spot::eventually;

/// A file system on an image, and the file system that has the image.
struct Disk {
    at: tempfile::TempDir,
    below: Volume,
}

impl Disk {
    fn new() -> Option<Self> {
        let below = Volume::with_size(FileSystem::Ext4, 800 << 20)?;
        let disk = Self { at: tempfile::tempdir().unwrap(), below };
        rustix::fs::chmod(disk.at.path(), 0o755.into()).unwrap();
        let image = disk.below.path().join("image");
        fs_err::File::create(&image).unwrap().set_len(500 << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(disk.at.path()));
        Some(disk)
    }

    /// Lets no write reach the disk until this is dropped.
    fn freeze(&self) -> Frozen {
        run(Command::new("fsfreeze").arg("-f").arg(self.below.path()));
        Frozen(self.below.path().to_path_buf())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The write that was left behind is about to end.
        let mut umount = Command::new("umount");
        umount.arg(self.at.path());
        eventually("no process has the disk open", || umount.status().unwrap().success());
    }
}

struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        run(Command::new("fsfreeze").arg("-u").arg(&self.0));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns whether a child of the process waits for a disk, which no signal ends.
fn has_child_at_the_disk(pid: u32) -> bool {
    let children = fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_ascii_whitespace().any(|child| {
        let stat = fs_err::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
    })
}

fn on_disk(home: &Path) -> PathBuf {
    let service = fs_err::read_dir(home.join("db/services")).unwrap().next().unwrap().unwrap();
    service.path().join("on-disk")
}

#[test]
fn an_interrupted_up_does_not_wait_for_the_disk() {
    if !["redis-server", "fsfreeze", "mkfs.ext4"].iter().all(|program| require_program(program)) {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let repo = Repo::anywhere();
    repo.write(".calve.toml", "[services.db]\nengine = 'redis'\n");
    repo.commit("services");
    let home = disk.at.path().join("home");
    let within = |words: &[&str]| with_environment(calve(words)).within(&repo.path).env("CALVE_HOME", &home);
    within(&["up"]).succeeds();
    // As a killed command leaves it that had not written the clone to the disk.
    fs_err::remove_file(on_disk(&home)).unwrap();
    disk_has_to_write(&disk);
    let frozen = disk.freeze();
    let mut up = within(&["up"]).start();
    eventually("the clone is written to the disk by a process of its own", || has_child_at_the_disk(up.id()));
    kill_process(Pid::from_raw(i32::try_from(up.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    eventually("an interrupted command ends", || up.has_ended());
    up.wait().ended(130);
    drop(frozen);
    within(&["up"]).succeeds();
    assert!(on_disk(&home).exists());
    within(&["down"]).succeeds();
}

/// Leaves bytes in memory that the next sync has to write.
fn disk_has_to_write(disk: &Disk) {
    run(Command::new("sync").arg("-f").arg(disk.at.path()));
    fs_err::write(disk.at.path().join("new"), vec![1; 20 << 20]).unwrap();
}

#[test]
fn an_agents_worktree_is_taken_back_though_its_data_and_its_entry_cannot_be_removed() {
    if !require_root("a mount") || !require_program("redis-server") {
        return;
    }
    let repo = Repo::anywhere();
    rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
    // In a mount namespace that ends with the command.
    let hook = "busy=$(git rev-parse --git-dir)/busy && mkdir $busy && mount -t tmpfs none $busy && \
        mount --bind $CALVE_HOME $CALVE_HOME && mount -o remount,bind,ro $CALVE_HOME && exit 7";
    repo.write(".calve.toml", &format!("[services.db]\nengine = 'redis'\n[hooks]\npost-add = '{hook}'\n"));
    repo.commit("a hook that fails");
    let add = repo.adding("one").args(["--for-agent=claude", "--yes"]).under(&["unshare", "--mount"]);
    let failed = add.fails(1).says(&["exit status: 7", "the worktree was removed again"]);
    failed.says(&["Device or resource busy", "Read-only file system"]);
    assert!(!repo.spot.join("proj.one").exists());
    assert_eq!((repo.worktrees().len(), repo.git(["branch", "--list", "one"])), (1, String::new()));
}

/// The server has the mounts that there were, and lets go of one that is unmounted outside, even where mounts are private.
#[test]
fn a_running_server_does_not_keep_a_disk_busy() {
    if !require_root("a mount") || !["redis-server", "mkfs.ext4"].iter().all(|program| require_program(program)) {
        return;
    }
    let repo = Repo::anywhere();
    rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
    repo.write(".calve.toml", "[services.db]\nengine = 'redis'\n");
    fs_err::File::create(repo.spot.join("image")).unwrap().set_len(8 << 20).unwrap();
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(repo.spot.join("image")));
    fs_err::create_dir(repo.spot.join("disk")).unwrap();
    for propagation in ["private", "shared"] {
        let script = format!(
            "mount --make-r{propagation} / && mount -o loop ../image ../disk && \"$0\" \"$@\" && umount ../disk
            for i in $(seq 100); do [ -n \"$(losetup -j ../image)\" ] || break; sleep 0.1; done
            losetup -j ../image; \"$0\" exec sh -c 'redis-cli -s ${{DB_URL#unix://}} ping'; \"$0\" down -q"
        );
        let up = with_environment(calve(["up", "-q"])).within(&repo.path).env("CALVE_HOME", repo.spot.join("home"));
        let ran = up.under(&["unshare", "--mount", "--propagation", "private", "sh", "-c", &script]).succeeds();
        assert_eq!(ran.stdout, "PONG\n", "{propagation}: {}", ran.stderr);
    }
}
