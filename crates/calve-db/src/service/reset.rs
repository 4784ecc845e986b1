//! The data of a service, put back to what its template has.

use calve_core::{CancelToken, RemovalWait};

use super::create::{StagedData, from_template};
use super::data::{Service, TURN, find, take_turn, write};
use super::{LossRule, run};
use crate::error::{Error, Remedy, Result, unless_cancelled};
use crate::files::{private, trash};
use crate::registry::{Home, unix_now};

/// Replaces the data by a new clone of `template`. A server that runs ends first, and none is started. Its URL stays the same, unless the
/// template is of another engine, which has to be `other_engine`.
pub fn reset(
    home: &Home,
    name: &str,
    template: &str,
    other_engine: Option<&str>,
    cancel: &CancelToken,
) -> Result<Service> {
    home.prepare()?;
    let staged = StagedData::make(home, name)?;
    let (_turn, former) = take_turn(home, name, cancel)?;
    let cloned = from_template(home, template, &staged.slot, cancel)?;
    if cloned.program.engine != former.program.engine && other_engine != Some(&cloned.program.engine) {
        // Nobody has agreed to that engine in this worktree.
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
    // From here on it goes through: a server that has ended without what it could not write is not left with its former data.
    run::end(home, &former, LossRule::Accept, &CancelToken::default())?;
    // Until the former data is out of the way, so that it is not taken for a leftover of a killed run.
    let _held = run::take_data(home, &former, &CancelToken::default())?;
    // Where that is not possible, a command that comes between finds no data, and clones it from the template.
    private::exchange(&staged.slot, &former.slot, || trash::remove(&former.slot, RemovalWait::No))?;
    // It takes away the former data, which has its hidden name now.
    drop(staged);
    find(home, name)
}
