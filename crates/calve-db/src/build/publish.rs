//! Turns the data directory of a stopped server into a template: scrubbed, verified, synced, named, frozen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err as fs;

use crate::engine::{Engine, Version};
use crate::error::{AtPath as _, Error, Result, UnusableData};
use crate::files::log;
use crate::files::private;
use crate::registry::template::{DOCUMENT, DatabaseTemplate, aside, manifest, put_aside};
use crate::registry::{DATA, Home};
use crate::server::sweep;

/// Publishes a finished build under its template's name. `sync` writes the slot's file system to the disk.
pub(super) fn publish(
    home: &Home,
    engine: &dyn Engine,
    version: &Version,
    template: DatabaseTemplate,
    sync: &dyn Fn(&Path) -> Result<()>,
) -> Result<DatabaseTemplate> {
    let slot = template.slot.clone();
    let data = slot.join(DATA);
    engine.scrub(&data)?;
    engine.examine(&data, version)?;
    check_log(engine, &slot)?;
    sweep::forget_run(&slot)?;
    let (files, bytes) = manifest::write(&slot)?;
    let mut template = DatabaseTemplate { files, bytes, ..template };
    private::write_json(&slot.join(DOCUMENT), &template)?;
    sync(&slot)?;
    let target = home.templates.join(&template.name);
    name_it(home, &slot, &target, &template.name)?;
    // Only after the rename: a read-only directory cannot be moved to another parent.
    freeze(&target)?;
    match sync(&target) {
        // The template is there, and only a crash of the machine can still take its name away.
        Ok(()) | Err(Error::Interrupted) => {}
        Err(error) => return Err(error),
    }
    template.slot = target;
    Ok(template)
}

/// Refuses data that its server had to recover.
pub(super) fn check_log(engine: &dyn Engine, slot: &Path) -> Result<()> {
    match engine.log_tells_of_recovery(&String::from_utf8_lossy(&log::contents(slot))) {
        true => Err(Error::not_usable(&slot.join(DATA), UnusableData::NotShutDown)),
        false => Ok(()),
    }
}

/// Renames a slot to a template's name. An existing template is exchanged, so the name is never free.
fn name_it(home: &Home, slot: &Path, target: &Path, name: &str) -> Result<()> {
    if !target.is_dir() {
        return private::rename(slot, target);
    }
    let aside = aside(home, name)?;
    private::rename(slot, &aside)?;
    private::exchange(&aside, target, || put_aside(home, target, name))
}

/// Makes the template's directory read-only against stray files. The data keep their modes, which clones inherit.
fn freeze(slot: &Path) -> Result<()> {
    let frozen = std::fs::Permissions::from_mode(0o500);
    fs::set_permissions(slot, frozen).at("set the mode of", slot)
}
