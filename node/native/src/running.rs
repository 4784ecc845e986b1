//! Work on threads of its own, and what becomes of it when its environment ends: the process exits, or a worker thread does.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use calve_core::{Cancel, Error};
use napi::bindgen_prelude::{Env, Object, ToNapiValue};
use napi::{JsDeferred, Status};
use napi_derive::napi;

use crate::failed;

type Settled<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;

/// The threads that one environment has started.
#[derive(Default)]
struct Running(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    started: Vec<(Cancel, JoinHandle<()>)>,
    /// The environment ends: nobody waits for what is started now.
    ending: bool,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing half made is left, and no thread runs code that is being unloaded.
    fn end(&self) {
        let threads = {
            let mut running = self.lock();
            running.ending = true;
            std::mem::take(&mut running.started)
        };
        for (cancel, _) in &threads {
            cancel.cancel();
        }
        for (_, thread) in threads {
            let _ = thread.join();
        }
    }
}

thread_local! {
    static RUNNING: OnceCell<Arc<Running>> = const { OnceCell::new() };
}

fn of_this_environment(env: &Env) -> napi::Result<Arc<Running>> {
    RUNNING.with(|cell| {
        if let Some(running) = cell.get() {
            return Ok(Arc::clone(running));
        }
        let running = Arc::new(Running::default());
        env.add_env_cleanup_hook(Arc::clone(&running), |running| running.end())?;
        Ok(Arc::clone(cell.get_or_init(|| running)))
    })
}

/// Ends all work of this environment, and returns when it has ended; none is begun any more. For when the process exits, which runs no
/// clean-up hook.
#[napi]
pub fn end_all(env: &Env) -> napi::Result<()> {
    of_this_environment(env)?.end();
    Ok(())
}

/// Runs `work` on a thread of its own; the promise is settled when it returns.
pub(crate) fn start<'env, T: ToNapiValue + Send + 'static>(
    env: &'env Env,
    cancel: Cancel,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> napi::Result<Object<'env>> {
    let running = of_this_environment(env)?;
    if running.lock().ending {
        cancel.cancel();
    }
    let (deferred, promise): (JsDeferred<T, Settled<T>>, _) = env.create_deferred()?;
    let given_up = cancel.clone();
    // What has been given up before it begins touches nothing.
    let work = move || if given_up.is_cancelled() { Err(Error::Interrupted) } else { work() };
    let settle = move || match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => deferred.resolve(Box::new(move |_| Ok(value))),
        Ok(Err(error)) => deferred.reject(failed(&error)),
        Err(_) => deferred.reject(napi::Error::new(Status::GenericFailure, "a thread of calve panicked")),
    };
    let thread = std::thread::Builder::new().name("calve".into()).spawn(settle);
    let thread = thread
        .map_err(|source| failed(&Error::Io { operation: "start a thread to work in", path: ".".into(), source }))?;
    let started = &mut running.lock().started;
    started.retain(|(_, thread)| !thread.is_finished());
    started.push((cancel, thread));
    Ok(promise)
}
