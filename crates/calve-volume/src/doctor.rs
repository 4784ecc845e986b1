use std::process::Command;

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::remedy::Program;
use crate::store::{Volumes, mount_point};

impl Volumes {
    /// Returns all faults of a volume, without changing anything.
    pub fn examine(&self, name: &str) -> Result<Vec<Problem>> {
        let volume = match self.find(name) {
            Err(Error::Unusable { problem, .. }) => return Ok(vec![problem]),
            volume => volume?,
        };
        let mut problems = Vec::new();
        match volume.open(false) {
            Err(Error::Unusable { problem, .. }) => problems.push(problem),
            image => {
                let image = image?;
                problems.extend(image.is_to_be_resized().then_some(Problem::NotResized));
                problems.extend(image.is_trimmed(&volume).then_some(Problem::Trimmed));
            }
        }
        let listed = self.look(volume.clone())?;
        match (&listed.devices[..], listed.is_attached) {
            ([], _) => match mount_point(&volume.mount_point) {
                Err(Error::MountPoint { path, why }) => problems.push(Problem::MountPoint { path, why }),
                found => found.map(drop)?,
            },
            ([_], true) => {}
            ([_], false) => problems.push(Problem::AttachedElsewhere { devices: listed.devices.clone() }),
            _ => problems.push(Problem::AttachedTwice { devices: listed.devices.clone() }),
        }
        if let Some(mount) = volume.mount()?.filter(|_| listed.is_attached) {
            let missing: Vec<_> = volume.options().into_iter().filter(|option| !mount.has(option)).collect();
            problems.extend((!missing.is_empty()).then_some(Problem::Options(missing)));
            problems.extend(mount.has("ro").then_some(Problem::ReadOnly));
            problems.extend((!volume.is_handed_over()?).then_some(Problem::NotHandedOver));
            problems.extend(device_errors(&volume.mount_point).filter(|count| *count > 0).map(Problem::DeviceErrors));
        }
        let (free, demand) = (listed.host_free_bytes, listed.demand_bytes());
        problems.extend((demand > free).then_some(Problem::HostShort { free, demand }));
        Ok(problems)
    }
}

/// Returns the errors that btrfs has counted; `None` if it does not tell this user.
fn device_errors(at: &std::path::Path) -> Option<u64> {
    let output = Command::new(Program::Btrfs.find().ok()?).args(["device", "stats"]).arg(at).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.lines().filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum())
}
