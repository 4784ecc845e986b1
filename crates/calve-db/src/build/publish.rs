//! From a data directory whose server was stopped to a template: verified, scrubbed, written to the disk, frozen, named.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err as fs;

use crate::engine::{Engine, Version};
use crate::error::{Error, Result, UnusableData};
use crate::files::private;
use crate::log;
use crate::operation::Operation;
use crate::registry::Home;
use crate::sweep;
use crate::sys;
use crate::template::manifest;
use crate::template::{DatabaseTemplate, aside, put_aside, write};

/// Makes the place of a finished build the template of its name.
pub(super) fn publish(
    home: &Home,
    engine: &dyn Engine,
    version: &Version,
    template: DatabaseTemplate,
) -> Result<DatabaseTemplate> {
    let place = template.place.clone();
    let data = place.join("data");
    engine.scrub(&data)?;
    engine.examine(&data, version)?;
    check_log(engine, &place)?;
    sweep::forget_run(&place)?;
    let size = manifest::write(&place)?;
    let mut template = DatabaseTemplate { files: size.files, bytes: size.bytes, ..template };
    write(&template, &place)?;
    sys::sync_file_system(&place).map_err(|error| Error::io(Operation::Sync, &place, error))?;
    let target = home.templates().join(&template.name);
    name_it(home, &place, &target, &template.name)?;
    // Only now: a directory that may not be written to may not be moved to another one.
    freeze(&target)?;
    sys::sync_file_system(&target).map_err(|error| Error::io(Operation::Sync, &target, error))?;
    template.place = target;
    Ok(template)
}

/// Refuses data that its server had to recover.
pub(super) fn check_log(engine: &dyn Engine, place: &Path) -> Result<()> {
    match engine.log_tells_of_recovery(&String::from_utf8_lossy(&log::contents(place))) {
        true => Err(Error::not_usable(&place.join("data"), UnusableData::NotShutDown)),
        false => Ok(()),
    }
}

/// Gives a place the name of a template. There is one of that name all the time, if there was one.
fn name_it(home: &Home, place: &Path, target: &Path, name: &str) -> Result<()> {
    if !target.is_dir() {
        return private::rename(place, target);
    }
    let aside = aside(home, name)?;
    private::rename(place, &aside)?;
    private::exchange(&aside, target, || put_aside(home, target, name))
}

/// Makes a template's directory read-only, so that nothing is added beside the data by mistake. The data keep their modes, which clones
/// have too.
fn freeze(place: &Path) -> Result<()> {
    let frozen = std::fs::Permissions::from_mode(0o500);
    fs::set_permissions(place, frozen).map_err(|error| Error::io(Operation::SetMode, place, error))
}
