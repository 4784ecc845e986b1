//! Resets the data of a service to its template's.

use calve_core::{CancelToken, RemovalWait};

use super::create::{StagedData, from_template};
use super::data::{Service, TURN, find, take_turn, write};
use super::{LossRule, run};
use crate::error::{Error, Remedy, Result, unless_cancelled};
use crate::files::{private, trash};
use crate::registry::{Home, unix_now};

/// Replaces the data by a new clone of `template`. A running server ends first, and none is started. The URL stays the
/// same, unless the template is of another engine, which must be `other_engine`. `written`: the fate of changed data.
pub fn reset(
    home: &Home,
    name: &str,
    template: &str,
    other_engine: Option<&str>,
    written: LossRule,
    cancel: &CancelToken,
) -> Result<Service> {
    home.prepare()?;
    let staged = StagedData::make(home, name)?;
    let (_turn, former) = take_turn(home, name, cancel)?;
    let cloned = from_template(home, template, &staged.slot, cancel)?;
    if cloned.program.engine != former.program.engine && other_engine != Some(&cloned.program.engine) {
        // The worktree has not agreed to that engine.
        let (service, was) = (former.service, former.program.engine);
        let (template, now) = (cloned.template, cloned.program.engine);
        let text = format!(
            "the template `{template}` is now of the engine {now}, and the service `{service}` of {was}; it stays as it is"
        );
        return Err(Error::failed(text, Remedy::NameServiceAnew));
    }
    let service = Service {
        name: former.name.clone(),
        service: former.service.clone(),
        worktree: former.worktree.clone(),
        runtime: former.runtime.clone(),
        made_unix_s: unix_now(),
        ..cloned
    };
    private::open(&staged.slot.join(TURN))?;
    write(&staged.slot, service)?;
    unless_cancelled(cancel)?;
    // Not cancelled from here on: a server that ended without writing everything must not be left with its former data.
    run::end(home, &former, written, &CancelToken::default())?;
    // Held until the former data is out of the way: it must not look like a leftover of a killed run.
    let _held = run::take_data(home, &former, &CancelToken::default())?;
    run::check_written(home, &former, written)?;
    // Without an exchange, a command in between finds no data, and clones it from the template.
    private::exchange(&staged.slot, &former.slot, || trash::remove(&former.slot, RemovalWait::No))?;
    // Removes the former data, which has the hidden name now.
    drop(staged);
    find(home, name)
}
