//! Data of services, cloned while the files of their worktree are.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use calve_core::CancelToken;
use calve_db::{Home, Service, ServiceData, ServiceOrigin};

use crate::host::{Host, reap_trash};

/// The name of a service, and where its data comes from.
pub(crate) type DataRequest = (String, DataSource);

/// The source of data: a template of this name, or the service of which the servers have this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataSource {
    Template(String),
    Service(String),
}

/// Which data of another worktree counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DonorRule {
    SameTemplate,
    /// The user has named the worktree, or the data.
    Any,
}

impl DataSource {
    pub(crate) fn choose(name: &str, template: &str, donated: &[Service], rule: DonorRule) -> Self {
        let counts = |donor: &&Service| rule == DonorRule::Any || donor.template == template;
        match donated.iter().filter(counts).find(|donor| donor.service == name) {
            Some(donor) => Self::Service(donor.name.clone()),
            None => Self::Template(template.to_owned()),
        }
    }

    pub(crate) fn is(&self, service: &Service) -> bool {
        matches!(self, Self::Service(name) if *name == service.name)
    }

    pub(crate) fn clone_data(&self, home: &Home, service: &str, cancel: &CancelToken) -> CloneOutcome {
        let origin = match self {
            Self::Template(name) => ServiceOrigin::Template(name),
            Self::Service(name) => ServiceOrigin::Service(name),
        };
        ServiceData::clone_from(home, service, origin, cancel)
    }
}

type CloneOutcome = calve_db::Result<ServiceData>;

/// Data that is being cloned. Dropping it waits for the clones that were not taken, and removes them.
pub(crate) struct EarlyClones<'h> {
    host: &'h dyn Host,
    threads: BTreeMap<String, (DataSource, JoinHandle<CloneOutcome>)>,
    home: Option<Home>,
}

impl<'h> EarlyClones<'h> {
    pub(crate) fn none(host: &'h dyn Host) -> Self {
        Self { host, threads: BTreeMap::new(), home: None }
    }

    pub(crate) fn begin(host: &'h dyn Host, home: &Home, requests: Vec<DataRequest>, cancel: &CancelToken) -> Self {
        let begun = requests.into_iter().filter_map(|(name, source)| {
            let (home, service, from, cancel) = (home.clone(), name.clone(), source.clone(), cancel.clone());
            // Without a thread it is cloned later.
            let thread = std::thread::Builder::new().spawn(move || from.clone_data(&home, &service, &cancel)).ok()?;
            Some((name, (source, thread)))
        });
        Self { host, threads: begun.collect(), home: Some(home.clone()) }
    }

    /// Waits for the data of a service, if that is being cloned from there.
    pub(crate) fn take(&mut self, name: &str, source: &DataSource) -> Option<CloneOutcome> {
        let (from, thread) = self.threads.remove(name)?;
        let cloned = thread.join().ok()?;
        (from == *source).then_some(cloned)
    }
}

impl Drop for EarlyClones<'_> {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.threads);
        let Some(home) = self.home.as_ref().filter(|_| !left.is_empty()) else { return };
        for (_, (_, thread)) in left {
            let _ = thread.join();
        }
        let _ = reap_trash(self.host, home);
    }
}
