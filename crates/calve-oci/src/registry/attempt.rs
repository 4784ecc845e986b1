use std::time::Duration;

use ureq::Body;
use ureq::http::{Response, StatusCode, header};

use crate::address::{Address, AddressFault};

pub(super) type Answer = Result<Response<Body>, ureq::Error>;

pub(super) const ATTEMPTS: u32 = 5;
/// A registry that wants a longer wait is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// Returns the wait before another attempt, if one is worth it.
pub(super) fn try_again(answer: &Answer, failures: u32) -> Option<Duration> {
    if failures >= ATTEMPTS {
        return None;
    }
    match answer {
        Ok(response) if is_busy(response.status()) => {
            let asked = response.headers().get(header::RETRY_AFTER);
            let seconds = asked.and_then(|asked| asked.to_str().ok()?.trim().parse().ok());
            let waits = seconds.map_or_else(|| pause(failures), Duration::from_secs);
            Some(waits).filter(|waits| *waits <= LONGEST_WAIT)
        }
        Ok(_) => None,
        Err(error) => is_passing(error).then(|| pause(failures)),
    }
}

pub(super) fn redirect(response: &Response<Body>, from: &Address) -> Option<Result<Address, AddressFault>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    Some(from.leads_to(response.headers().get(header::LOCATION)?.to_str().ok()?))
}

fn is_passing(error: &ureq::Error) -> bool {
    use ureq::Error::{ConnectionFailed, Io, Protocol, Timeout};
    match error {
        // A full disk or an untrusted certificate is not an error of the network.
        Io(error) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            !matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
                && error.raw_os_error().is_none_or(|code| code != rustix::io::Errno::NOSPC.raw_os_error())
        }
        Timeout(_) | ConnectionFailed | Protocol(_) => true,
        _ => false,
    }
}

/// Returns a quarter of a second for the first failure, then twice as long each time.
pub(super) fn pause(failures: u32) -> Duration {
    Duration::from_millis(125 << failures.min(6))
}
