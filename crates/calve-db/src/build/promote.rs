//! Makes the data of a service the template that it came from.

use std::path::PathBuf;

use calve_core::{CancelToken, RemovalWait};
use fs_err as fs;

use super::create::{of_other_engine, wait_for_others};
use super::{BuildEvent, publish};
use crate::engine::{self, ServerProgram, programs};
use crate::error::{AtPath as _, Result};
use crate::files::log;
use crate::registry::template::{DatabaseTemplate, read};
use crate::registry::{self, Home};
use crate::server::standby;
use crate::server::starter::Starter;
use crate::server::sweep;
use crate::service;

/// Clones a service's data into its template. A running service goes on, held as briefly as for a branch.
pub fn promote(
    home: &Home,
    service: &str,
    supervisor: &[PathBuf],
    say: &mut dyn FnMut(BuildEvent),
    cancel: &CancelToken,
) -> Result<DatabaseTemplate> {
    home.prepare()?;
    let found = service::find(home, service)?;
    let engine = engine::named(&found.program.engine)?;
    let program = programs::find(engine, Some(&found.program.path), &[])?;
    let name = &found.template;
    let _building = wait_for_others(home, name, say, cancel)?;
    let old = read(&home.templates.join(name))?;
    if let Some(old) = old.as_ref().filter(|old| old.program.engine != found.program.engine) {
        return Err(of_other_engine(old));
    }
    // Later writes may be missing from the template.
    let mut position = service::position(home, &found)?;
    let slot = registry::reserve_build(home, name)?;
    let path = slot.path.clone();
    // This process too holds the lock until the template is published.
    let held = slot.lock.try_clone().at("lock", &path)?;
    let starter = Starter { supervisor, cancel };
    let made = service::start_copy(home, service, slot, &starter).and_then(|server| {
        let notifies = server.record.found.as_ref().is_some_and(|found| found.program.notifies);
        if engine.log_tells_of_recovery(&String::from_utf8_lossy(&log::contents(&path))) {
            let lost = engine.lost_in_recovery(&found.data_directory())?;
            position = position.take().filter(|_| lost.is_none());
            lost.into_iter().for_each(|what| say(BuildEvent::Unfinished(format!("the template lacks {what}"))));
        }
        server.finish(cancel)?;
        registry::sign(&held);
        // The log tells that the copy was recovered. It was shut down cleanly since, so `publish` must not refuse it.
        fs::write(log::path(&path), "").at("empty", log::path(&path))?;
        let made_by = ServerProgram { notifies, ..program.recorded(engine, found.program.account) };
        let template = DatabaseTemplate {
            // Unchanged inputs do not rebuild it.
            key: old.as_ref().map(|old| old.key.clone()).unwrap_or_default(),
            base: old.as_ref().and_then(|old| old.base.clone()),
            promoted: true,
            ..DatabaseTemplate::new(name, made_by, &path)?
        };
        publish::publish(home, engine, &program.version, template, &|path| starter.sync(path))
    });
    drop(held);
    if made.is_err() {
        let _ = sweep::take_away(home, &path, RemovalWait::Yes);
    }
    if let Ok(template) = &made {
        // The template is there, whatever fails now.
        let promoted = service::set_promoted(home, service, template, position.as_deref());
        for done in [standby::empty(home, &template.name, Some(template)), promoted] {
            done.err().into_iter().for_each(|error| say(BuildEvent::Unfinished(error.to_string())));
        }
    }
    made
}
