//! The server's costs of requests, charged to the operation that they were made for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of an operation, which its requests carry.
pub(crate) type OperationNumber = u64;

/// The cost of all requests of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Charge {
    pub(crate) requests: u64,
    /// User and system time of the CGI child and of all that it waited for, without what the bench itself adds.
    pub(crate) cpu: Duration,
    /// The share of `git pack-objects`.
    pub(crate) pack_objects: Duration,
    /// The time that the bench adds to tell `git pack-objects` apart.
    pub(crate) own: Duration,
    /// The most of one process.
    pub(crate) peak_memory_bytes: u64,
    /// The bytes of the requests, heads included.
    pub(crate) bytes_in: u64,
    /// The bytes of the answers, heads included.
    pub(crate) bytes_out: u64,
}

impl Charge {
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.cpu += other.cpu;
        self.pack_objects += other.pack_objects;
        self.own += other.own;
        self.peak_memory_bytes = self.peak_memory_bytes.max(other.peak_memory_bytes);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    charges: Mutex<HashMap<OperationNumber, Charge>>,
}

impl Ledger {
    pub(super) fn charge(&self, operation: OperationNumber, charge: &Charge) {
        self.locked().entry(operation).or_default().add(charge);
    }

    /// Returns the cost of an operation. All its requests are in it as soon as the client has ended: the host keeps back the end of each answer
    /// until it has charged it.
    pub(crate) fn take(&self, operation: OperationNumber) -> Charge {
        self.locked().remove(&operation).unwrap_or_default()
    }

    /// Returns the cost that nobody took.
    pub(crate) fn rest(&self) -> Charge {
        let mut rest = Charge::default();
        self.locked().drain().for_each(|(_, charge)| rest.add(&charge));
        rest
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<OperationNumber, Charge>> {
        self.charges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
