//! Service data, cloned while the worktree's files are.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use calve_core::CancelToken;
use calve_db::{Home, Service, ServiceData, ServiceOrigin};
use calve_git::ServiceConfig;

use crate::host::{Host, reap_trash};
use crate::template;

pub(crate) type DataRequest = (String, ServiceOrigin);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DonorRule {
    SameTemplate,
    /// The user named the worktree, or the data.
    Any,
}

impl DonorRule {
    /// Returns the data to clone for the service `name`, which wants `template`. `None` means the template's.
    pub(crate) fn donor<'d>(
        self,
        home: &Home,
        (name, config): (&str, &ServiceConfig),
        template: &str,
        donated: &'d [Service],
    ) -> Option<&'d Service> {
        let counts = |donor: &&Service| match self {
            Self::Any => template::other_engine(home, config, donor).is_none(),
            Self::SameTemplate => donor.template == template,
        };
        donated.iter().filter(|donor| donor.service == name).find(counts)
    }
}

pub(crate) fn origin_of(donor: Option<&Service>, template: &str) -> ServiceOrigin {
    match donor {
        Some(donor) => ServiceOrigin::Service(donor.name.clone()),
        None => ServiceOrigin::Template(template.to_owned()),
    }
}

type CloneOutcome = calve_db::Result<ServiceData>;

/// Clones in progress. Dropping it waits for those that were not taken, and removes them.
pub(crate) struct EarlyClones<'h> {
    host: &'h dyn Host,
    threads: BTreeMap<String, (ServiceOrigin, JoinHandle<CloneOutcome>)>,
    home: Home,
}

impl<'h> EarlyClones<'h> {
    pub(crate) fn begin(host: &'h dyn Host, home: Home, requests: Vec<DataRequest>, cancel: &CancelToken) -> Self {
        let begun = requests.into_iter().filter_map(|(name, source)| {
            let (home, service, from, cancel) = (home.clone(), name.clone(), source.clone(), cancel.clone());
            // Without a thread, the data is cloned later.
            let thread = std::thread::Builder::new()
                .spawn(move || ServiceData::clone_from(&home, &service, &from, &cancel))
                .ok()?;
            Some((name, (source, thread)))
        });
        Self { host, threads: begun.collect(), home }
    }

    /// Waits for a service's clone, and returns it if it comes from `source`.
    pub(crate) fn take(&mut self, name: &str, source: &ServiceOrigin) -> Option<CloneOutcome> {
        let (from, thread) = self.threads.remove(name)?;
        let cloned = thread.join().ok()?;
        (from == *source).then_some(cloned)
    }
}

impl Drop for EarlyClones<'_> {
    fn drop(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        for (_, (_, thread)) in std::mem::take(&mut self.threads) {
            let _ = thread.join();
        }
        let _ = reap_trash(self.host, &self.home);
    }
}
