//! Work on threads of its own. It ends with its environment: the process exits, or a worker thread does.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use calve_core::Error;
use calve_core::error::Operation;
use calve_receipt::{ErrorCode, ErrorReceipt};
use napi::JsDeferred;
use napi::bindgen_prelude::{Either, Env, FnArgs, Function, JsObjectValue, Object, ToNapiValue, Unknown};
use napi_derive::napi;

use crate::stop::StopSwitch;
use crate::{Failure, Outcome, outcome};

type CompletionCallback<T> = Box<dyn FnOnce(Env) -> napi::Result<Outcome<T>> + Send>;

/// Arguments of `process.on`.
type ListenArguments<'a> = FnArgs<(&'static str, Function<'a, (), ()>)>;

/// The threads that one environment has started.
#[derive(Default)]
struct RunningThreads(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    started: Vec<(StopSwitch, JoinHandle<()>)>,
    /// The environment ends: work that starts now is cancelled.
    ending: bool,
    /// The end of the process has a listener.
    watched: bool,
}

impl RunningThreads {
    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all work: nothing half made is left, and no thread runs code that is being unloaded.
    fn end(&self) {
        let threads = {
            let mut running = self.lock();
            running.ending = true;
            std::mem::take(&mut running.started)
        };
        for (stop, _) in &threads {
            stop.cancel();
        }
        for (_, thread) in threads {
            let _ = thread.join();
        }
    }
}

thread_local! {
    static RUNNING: OnceCell<Arc<RunningThreads>> = const { OnceCell::new() };
}

fn of_this_environment(env: &Env) -> napi::Result<Arc<RunningThreads>> {
    RUNNING.with(|cell| {
        if let Some(running) = cell.get() {
            return Ok(Arc::clone(running));
        }
        let running = Arc::new(RunningThreads::default());
        env.add_env_cleanup_hook(Arc::clone(&running), |running| running.end())?;
        Ok(Arc::clone(cell.get_or_init(|| running)))
    })
}

/// Ends all work of this environment when the process exits, which runs no clean-up hook, and returns when it has ended; none is
/// begun any more. Listens once, to the process itself: each realm of Jest has another object of that name, which never exits.
#[napi]
pub fn watch_exit(env: &Env) -> napi::Result<()> {
    let running = of_this_environment(env)?;
    if std::mem::replace(&mut running.lock().watched, true) {
        return Ok(());
    }
    let process: Object = env.get_global()?.get_named_property("process")?;
    let on: Function<ListenArguments, Unknown> = process.get_named_property("on")?;
    let end = env.create_function_from_closure("endAll", move |_| {
        running.end();
        Ok(())
    })?;
    on.apply(process, ("exit", end).into())?;
    Ok(())
}

/// Runs `work` on a thread of its own; the promise is settled when it returns.
pub(crate) fn start<'env, T: ToNapiValue + Send + 'static>(
    env: &'env Env,
    stop: StopSwitch,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> napi::Result<Object<'env>> {
    let running = of_this_environment(env)?;
    if running.lock().ending {
        stop.cancel();
    }
    let (deferred, promise): (JsDeferred<Outcome<T>, CompletionCallback<T>>, _) = env.create_deferred()?;
    let given_up = stop.clone();
    // Work cancelled before it begins touches nothing.
    let work = move || if given_up.is_cancelled() { Err(Error::Interrupted) } else { work() };
    // Taken by the thread, or here if none could be started.
    let deferred = Arc::new(Mutex::new(Some(deferred)));
    let settle = {
        let deferred = Arc::clone(&deferred);
        move || resolve(&deferred, catch_unwind(AssertUnwindSafe(work)).map_or_else(|_| Either::B(panicked()), outcome))
    };
    match std::thread::Builder::new().name("calve".into()).spawn(settle) {
        Ok(thread) => {
            let started = &mut running.lock().started;
            started.retain(|(_, thread)| !thread.is_finished());
            started.push((stop, thread));
        }
        Err(source) => {
            let error = Error::Io { operation: Operation::StartThread, path: ".".into(), source };
            resolve(&deferred, outcome(Err(error)));
        }
    }
    Ok(promise)
}

fn resolve<T: ToNapiValue + Send + 'static>(
    deferred: &Mutex<Option<JsDeferred<Outcome<T>, CompletionCallback<T>>>>,
    outcome: Outcome<T>,
) {
    if let Some(deferred) = deferred.lock().unwrap_or_else(PoisonError::into_inner).take() {
        deferred.resolve(Box::new(move |_| Ok(outcome)));
    }
}

fn panicked() -> Failure {
    let hint = "please report this, with what was being done".to_owned();
    let receipt = ErrorReceipt::new(ErrorCode::Internal, "a thread of calve panicked".into(), Some(hint));
    Failure { failure: calve_receipt::json(&receipt) }
}
