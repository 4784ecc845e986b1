//! Attaching and detaching: the commands for root, and running them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::mounted::{loops_of, refuse_keepers, unused, users_of};
use crate::problem::Problem;
use crate::programs::{RootCommand, WayToRoot, has_btrfs};
use crate::remedy::{KernelFeature, Program};
use crate::store::{Volume, VolumeState, Volumes, clone, mount_point};

/// The missing steps to attach or detach a volume. No other command changes volumes while it is held.
#[derive(Debug)]
pub struct VolumePlan<'a> {
    /// Commands for root, in this order; empty if nothing is to be done.
    pub commands: Vec<RootCommand>,
    volumes: &'a Volumes,
    volume: Volume,
    lock: OwnedFd,
    attaches: bool,
}

impl Volumes {
    /// Plans to mount a volume with the right options and its full size, owned by its user.
    pub fn attach(&self, name: &str) -> Result<VolumePlan<'_>> {
        let lock = self.lock()?;
        let volume = self.find(name)?;
        let image = volume.open(false)?;
        let resize = image.is_to_be_resized();
        let (at, options) = (&*volume.mount_point, volume.options());
        if image.is_trimmed(&volume) {
            self.preallocate_again(&volume)?;
        }
        drop(image);
        let mut commands = Vec::new();
        match volume.mount()? {
            None => {
                is_free(&volume)?;
                let options = format!("loop,{}", options.join(","));
                let options = ["-t", "btrfs", "-o", &options];
                commands.push(RootCommand::new(Program::Mount, &options, &[&volume.image, at])?);
            }
            Some(mount) if !loops_of(&volume.image)?.contains(&mount.device) => {
                return Err(Error::MountPoint { path: at.into(), why: "something else is mounted there" });
            }
            Some(mount) => {
                if !options.iter().all(|option| mount.has(option)) {
                    let options = format!("remount,{}", options.join(","));
                    commands.push(RootCommand::new(Program::Mount, &["-o", &options], &[at])?);
                }
                if resize {
                    commands.push(RootCommand::new(Program::Losetup, &["-c"], &[&mount.device])?);
                }
            }
        }
        if resize {
            commands.push(RootCommand::new(Program::Btrfs, &["filesystem", "resize", "max"], &[at])?);
        }
        if !volume.is_handed_over()? {
            let (user, group) = volume.record.owner;
            let [user, group, mode] = [user.to_string(), group.to_string(), format!("{:o}", volume.record.mode)];
            let options = ["-d", "-o", &user, "-g", &group, "-m", &mode];
            commands.push(RootCommand::new(Program::Install, &options, &[at])?);
        }
        Ok(VolumePlan { commands, volumes: self, volume, lock, attaches: true })
    }

    pub fn detach(&self, name: &str) -> Result<VolumePlan<'_>> {
        let lock = self.lock()?;
        let volume = self.find(name)?;
        let listed = self.look(volume.clone())?;
        let mut commands = Vec::new();
        if listed.is_attached {
            refuse_keepers(name, &listed.devices, volume.mount()?.as_ref())?;
            commands.push(RootCommand::new(Program::Umount, &[], &[&volume.mount_point])?);
        } else {
            released(&volume)?;
        }
        Ok(VolumePlan { commands, volumes: self, volume, lock, attaches: false })
    }
}

impl VolumePlan<'_> {
    /// Runs the commands, and checks the result. A plan without commands needs no way to root.
    pub fn carry_out(self, way: Option<WayToRoot>) -> Result<VolumeState> {
        if let Some(way) = way {
            for command in &self.commands {
                self.run(command, way).map_err(|error| self.explain(error))?;
            }
        }
        if !self.attaches {
            released(&self.volume)?;
        } else if !self.volume.record.is_handed_over {
            self.volumes.hand_over(&self.volume)?;
        }
        self.volumes.look(self.volumes.find(&self.volume.name)?)
    }

    /// Runs a command, and again if its failure will pass: mount(8) finds and claims a loop device in two steps, so
    /// another process can be faster, and the kernel releases a file a moment after its process has ended.
    fn run(&self, command: &RootCommand, way: WayToRoot) -> Result<()> {
        for _ in 0..20 {
            match command.run(way, clone(&self.lock, &self.volume.image)?) {
                Err(Error::Failed { said, .. }) if self.is_soon_over(&said) => sleep(Duration::from_millis(50)),
                ran => return ran,
            }
        }
        command.run(way, clone(&self.lock, &self.volume.image)?)
    }

    fn is_soon_over(&self, said: &str) -> bool {
        let is_unused =
            || users_of(&self.volume.mount_point).is_empty() && matches!(self.volume.mount_below(), Ok(None));
        said.contains(NO_LOOP_DEVICE) || said.contains(BUSY) && is_unused()
    }

    fn explain(&self, error: Error) -> Error {
        let Error::Failed { said, .. } = &error else { return error };
        if said.contains(BUSY) {
            let name = self.volume.name.clone();
            return match self.volume.mount_below() {
                Ok(Some(path)) => Error::MountBelow { name, path },
                _ => Error::Busy { name, processes: users_of(&self.volume.mount_point) },
            };
        }
        if self.attaches && !has_btrfs() { Error::Kernel(KernelFeature::Btrfs) } else { error }
    }
}

// From mount(8) and umount(8), which have one exit code for these and other failures.
const NO_LOOP_DEVICE: &str = ": failed to setup loop device for ";
const BUSY: &str = ": target is busy";

/// Fails unless the image can be mounted where it should be. Two loop devices on one btrfs would destroy it.
fn is_free(volume: &Volume) -> Result<()> {
    if !Path::new("/dev/loop-control").exists() {
        return Err(Error::Kernel(KernelFeature::LoopDevices));
    }
    released(volume)?;
    mount_point(&volume.mount_point).map(drop)
}

fn released(volume: &Volume) -> Result<()> {
    let devices = unused(&volume.name, &volume.image)?;
    if devices.is_empty() {
        return Ok(());
    }
    Err(Error::Unusable { name: volume.name.clone(), problem: Problem::AttachedElsewhere { devices } })
}
