//! The engine's remedies, as commands and options of the program.

use std::path::Path;

use calve_core::error::Remedy;
use calve_core::template::Templates;
use calve_volume::Volumes;

use super::{LARGER_HOME, is_below_home, reworded, word};

/// Returns the user's hint, as one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    if let Some(pull) = pull_again(remedy) {
        return pull;
    }
    match remedy {
        Remedy::FreeSpaceOrShare(path) if is_below_home(path) => LARGER_HOME.into(),
        Remedy::RefreshOrRemoveTemplate(name) => {
            format!(
                "rebuild it with `calve template refresh {name}`, or remove it with `calve template remove {name}`"
            )
        }
        Remedy::RefreshTemplate(name) => format!("rebuild it: calve template refresh {name}"),
        Remedy::RemoveTemplate(name) => format!("remove it, and create it again: calve template remove {name}"),
        Remedy::MountPlace { mount_point, record } => match volume_at(mount_point) {
            Some(name) => format!("attach the volume: calve volume attach {name}"),
            None => format!("mount it again; if it is gone for good, delete its record: rm {}", word(record)),
        },
        Remedy::VerifyTemplate(name) => {
            format!("`calve template verify {name}` shows what differs; `calve template refresh {name}` rebuilds it")
        }
        Remedy::KeepSpares(source) => format!("{remedy}: calve spares add {}", word(source)),
        Remedy::ChooseAnotherDestinationOrReplace => reworded(remedy, "`replace`", "`--replace`"),
        Remedy::FreeSpaceOrShare(_) => {
            "free some space, or clone within one file system that shares data (`calve probe SRC DST` shows whether it does)".into()
        }
        Remedy::KeepSourceStill => reworded(remedy, "drop `require`", "leave out `--require stable`"),
        Remedy::ProbeOrDropRequirement => reworded(remedy, "call `probe(src, dst)`", "run `calve probe SRC DST`"),
        Remedy::ListTemplates => reworded(remedy, "check its name", "`calve template list` shows the templates"),
        Remedy::LeaveOutOfTemplate => reworded(remedy, "out", "out with `calve template refresh NAME --exclude GLOB`"),
        Remedy::ProbeFileSystem => reworded(remedy, "`probe(src, dst)`", "`calve probe SRC DST`"),
        other => other.to_string(),
    }
}

fn volume_at(mount_point: &Path) -> Option<String> {
    let volumes = Volumes::at(&crate::home::directory().ok()?);
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let is_there =
        |name: &String| volumes.find(name).is_ok_and(|volume| real(&volume.mount_point) == real(mount_point));
    volumes.names().ok()?.into_iter().find(is_there)
}

/// Returns the hint for a pulled template, which no other command can recreate.
fn pull_again(remedy: &Remedy) -> Option<String> {
    let (Remedy::RefreshTemplate(name) | Remedy::VerifyTemplate(name)) = remedy else { return None };
    let template = Templates::open(&crate::home::directory().ok()?).find(name).ok()?;
    Some(super::pull_again("calve template pull", name, calve_oci::origin(&template)?))
}
