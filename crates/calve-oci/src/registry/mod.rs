//! One repository of a registry, by the OCI distribution specification.

mod attempt;
mod certificates;
mod challenge;
mod multipart;

use std::io::{Read, Write as _};
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calve_core::template::TemplateOptions;
use serde::Deserialize;
use ureq::http::{Method, Request, Response, StatusCode, header};
use ureq::{Agent, Body, SendBody, Timeout};

use self::attempt::{ATTEMPTS, Answer, is_busy, pause, redirect, try_again};
use self::challenge::Challenge;
use self::multipart::Parts;
use crate::address::{Address, AddressFault, Transport};
use crate::arrivals::Arrivals;
use crate::credentials::{CredentialFiles, Credentials};
use crate::error::{Error, RegistryRefusal};
use crate::image::{Descriptor, MANIFEST_TYPE};
use crate::reference::{Reference, is_digest};
use crate::spool::{Spool, digest};
use crate::work::THREADS;

/// Most parts in one request. Their header has some 3 KB; servers take 8.
pub(crate) const PARTS: usize = 128;
/// The specification asks registries to accept this much.
const LARGEST_MANIFEST_BYTES: u64 = 4 << 20;
/// More in a row count as a loop.
const REDIRECTS: u32 = 5;
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// Directory of a pulled template, threads, progress and cancellation.
    pub template: TemplateOptions,
    pub credentials: CredentialFiles,
    /// Silence after which a connection counts as broken: a minute if not given.
    pub silence: Option<Duration>,
}

pub(crate) struct Registry<'a> {
    agent: Agent,
    pub(crate) reference: &'a Reference,
    pub(crate) options: &'a TemplateOptions,
    base: Address,
    credentials: Option<Credentials>,
    /// The value of the header `Authorization`, once one was asked for.
    authorization: Mutex<Option<String>>,
    silence: Duration,
    /// Set when the registry answers a request for several parts otherwise.
    has_single_parts: AtomicBool,
}

struct Asked {
    operation: &'static str,
    method: Method,
    url: Address,
    header: Option<(header::HeaderName, String)>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Registry<'a> {
    pub(crate) fn open(reference: &'a Reference, options: &'a RegistryOptions) -> Result<Self, Error> {
        let silence = options.silence.unwrap_or(SILENCE);
        let base = reference.address()?;
        let encrypted = reference.transport == Transport::Https;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(encrypted)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .timeout_per_write(Some(silence))
            .max_idle_connections_per_host(THREADS)
            .user_agent(concat!("calve/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity");
        // A registry on this machine is behind no proxy, and needs no certificates.
        let config = if encrypted { config.tls_config(certificates::tls()?) } else { config.proxy(None) };
        Ok(Self {
            agent: config.build().new_agent(),
            reference,
            options: &options.template,
            base,
            credentials: options.credentials.find(&reference.registry, &reference.repository)?,
            authorization: Mutex::default(),
            silence,
            has_single_parts: AtomicBool::new(false),
        })
    }

    /// Fetches the manifest of a tag or a digest. Returns its bytes as sent, and their digest.
    pub(crate) fn manifest(&self, version: &str) -> Result<(Vec<u8>, String), Error> {
        let accepted = format!(
            "{MANIFEST_TYPE}, application/vnd.oci.image.index.v1+json, \
             application/vnd.docker.distribution.manifest.v2+json"
        );
        let header = Some((header::ACCEPT, accepted));
        let asked = self.asked("read the image", Method::GET, &format!("manifests/{version}"), header)?;
        let mut response = self.send(&asked, None)?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(self.refused(asked.operation, RegistryRefusal::NoImage));
        }
        self.expect(asked.operation, &response, &[StatusCode::OK])?;
        let read = response.body_mut().with_config().limit(LARGEST_MANIFEST_BYTES).read_to_vec();
        let bytes = read.map_err(|error| self.network(asked.operation, &error))?;
        let digest = digest(&bytes);
        if is_digest(version) && digest != version {
            return Err(self.wrong("the image's manifest does not have the digest that was asked for"));
        }
        Ok((bytes, digest))
    }

    pub(crate) fn put_manifest(&self, manifest: &mut Spool) -> Result<(), Error> {
        let header = Some((header::CONTENT_TYPE, MANIFEST_TYPE.to_owned()));
        let path = format!("manifests/{}", self.reference.version);
        let asked = self.asked("store the image", Method::PUT, &path, header)?;
        let response = self.send(&asked, Some(manifest))?;
        self.expect(asked.operation, &response, &[StatusCode::CREATED, StatusCode::OK, StatusCode::ACCEPTED])
    }

    pub(crate) fn has_blob(&self, digest: &str) -> Result<bool, Error> {
        let asked = self.asked("look for a part of the image", Method::HEAD, &format!("blobs/{digest}"), None)?;
        let response = self.send(&asked, None)?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        self.expect(asked.operation, &response, &[StatusCode::OK]).map(|()| true)
    }

    pub(crate) fn put_blob(&self, blob: &mut Spool) -> Result<(), Error> {
        let operation = "store a part of the image";
        let digest = blob.digest();
        let response = self.send(&self.asked(operation, Method::POST, "blobs/uploads/", None)?, None)?;
        self.expect(operation, &response, &[StatusCode::ACCEPTED])?;
        let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| self.wrong("it does not say where to upload"))?;
        let url = self.base.leads_to(location);
        let url = url.and_then(|url| url.with_query(&format!("digest={}", digest.replace(':', "%3A"))));
        let url = url.map_err(|fault| self.refused_address(operation, fault))?;
        let header = Some((header::CONTENT_TYPE, "application/octet-stream".to_owned()));
        let response = self.send(&Asked { operation, method: Method::PUT, url, header }, Some(blob))?;
        self.expect(operation, &response, &[StatusCode::CREATED, StatusCode::NO_CONTENT])
    }

    /// Fetches the rest of a blob, and checks its digest.
    pub(crate) fn blob(&self, wanted: &Descriptor, arrivals: &Arrivals) -> Result<Spool, Error> {
        let spool = arrivals.spool(wanted, &(0..wanted.size))?;
        let is_right = &mut |blob: &mut Spool| Ok(blob.digest() == wanted.digest);
        let wrong = format!("the blob `{}` has the wrong digest", wanted.digest);
        let fetched = self.checked_part(wanted, &(0..wanted.size), spool, is_right, &wrong)?;
        fetched.ok_or_else(|| self.wrong("another part of a blob than was asked for"))
    }

    /// Fetches and checks the rest of these bytes, all if leftovers are damaged. `None`: the registry ignores ranges.
    pub(crate) fn checked_part(
        &self,
        of: &Descriptor,
        bytes: &Range<u64>,
        mut spool: Spool,
        is_right: &mut dyn FnMut(&mut Spool) -> Result<bool, Error>,
        wrong: &str,
    ) -> Result<Option<Spool>, Error> {
        loop {
            let Some(mut part) = self.part(of, bytes, spool)? else { return Ok(None) };
            if is_right(&mut part)? {
                return Ok(Some(part));
            }
            let is_all_theirs = part.kept == 0;
            part.restart()?;
            if is_all_theirs {
                return Err(self.wrong(wrong));
            }
            spool = part;
        }
    }

    /// Fetches the bytes that `spool` lacks, unchecked, past broken connections. `None`: the registry ignores ranges.
    pub(crate) fn part(&self, of: &Descriptor, bytes: &Range<u64>, mut spool: Spool) -> Result<Option<Spool>, Error> {
        let operation = "fetch a part of the image";
        let (size, is_whole) = (bytes.end - bytes.start, *bytes == (0..of.size));
        if spool.size > size {
            spool.restart()?;
        }
        let mut good = vec![StatusCode::OK, StatusCode::PARTIAL_CONTENT];
        good.extend((!is_whole).then_some(StatusCode::RANGE_NOT_SATISFIABLE));
        let mut failures = 0;
        while spool.size < size {
            let have = bytes.start + spool.size;
            let is_rest = !is_whole || have > 0;
            let range = is_rest.then(|| (header::RANGE, format!("bytes={have}-{}", bytes.end - 1)));
            let asked = self.asked(operation, Method::GET, &format!("blobs/{}", of.digest), range)?;
            let mut response = self.send(&asked, None)?;
            self.expect(operation, &response, &good)?;
            match response.status() {
                StatusCode::PARTIAL_CONTENT if continues(&response, have) => {}
                StatusCode::OK if is_whole => spool.restart()?,
                _ => return Ok(None),
            }
            let mut reader = response.body_mut().with_config().limit(u64::MAX).reader();
            let broken = match self.read_to_end(&mut reader, &mut spool, size)? {
                None if spool.size == size => break,
                None => "the connection ended early".to_owned(),
                Some(reason) => reason,
            };
            failures += 1;
            if failures == ATTEMPTS {
                return Err(self.broken(operation, broken));
            }
            self.wait(pause(failures))?;
        }
        Ok(Some(spool))
    }

    /// Asks for several parts of a blob: `receive` gets numbers and unchecked bytes. Returns false if only one is sent.
    pub(crate) fn parts(
        &self,
        of: &Descriptor,
        parts: &[Range<u64>],
        receive: &mut dyn FnMut(usize, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if parts.len() > PARTS || self.has_single_parts.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let ranges: Vec<_> = parts.iter().map(|bytes| format!("{}-{}", bytes.start, bytes.end - 1)).collect();
        let range = Some((header::RANGE, format!("bytes={}", ranges.join(","))));
        let asked = self.asked("fetch parts of the image", Method::GET, &format!("blobs/{}", of.digest), range)?;
        let mut response = self.send(&asked, None)?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = kind.and_then(multipart::boundary).map(str::to_owned);
        let Some(boundary) = boundary.filter(|_| response.status() == StatusCode::PARTIAL_CONTENT) else {
            self.has_single_parts.store(true, Ordering::Relaxed);
            return Ok(false);
        };
        let mut sent = Parts::new(response.body_mut().with_config().limit(u64::MAX).reader(), &boundary);
        // Reads no more parts than it asked for. The caller can ask for missing ones one by one.
        for _ in parts {
            self.options.cancel.check()?;
            let Ok(Some(bytes)) = sent.next() else { break };
            let Some(number) = parts.iter().position(|part| *part == bytes) else { break };
            receive(number, sent.contents())?;
        }
        Ok(true)
    }

    /// Reads an answer to its end. Returns the reason if the connection broke.
    pub(crate) fn read_to_end(
        &self,
        reader: &mut dyn Read,
        spool: &mut Spool,
        size: u64,
    ) -> Result<Option<String>, Error> {
        let mut buffer = vec![0; 128 << 10];
        loop {
            self.options.cancel.check()?;
            let length = match reader.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => length,
                Err(error) => return Ok(Some(self.reason(&error.into()))),
            };
            if spool.size + length as u64 > size {
                return Err(self.wrong("a blob that is longer than its description says"));
            }
            if let Err(error) = spool.write_all(&buffer[..length]) {
                return Err(spool.failed(error));
            }
        }
    }

    fn asked(
        &self,
        operation: &'static str,
        method: Method,
        path: &str,
        header: Option<(header::HeaderName, String)>,
    ) -> Result<Asked, Error> {
        let url = self.base.leads_to(&format!("/v2/{}/{path}", self.reference.repository));
        let url = url.map_err(|fault| self.refused_address(operation, fault))?;
        Ok(Asked { operation, method, url, header })
    }

    /// Sends a request until it is answered, and authorizes it if the registry asks for that.
    fn send(&self, asked: &Asked, mut sent: Option<&mut Spool>) -> Result<Response<Body>, Error> {
        let mut is_authorized = false;
        self.persist(asked.operation, || {
            let answer = self.once(asked, sent.as_deref_mut())?;
            if let Ok(response) = &answer
                && response.status() == StatusCode::UNAUTHORIZED
                && !mem::replace(&mut is_authorized, true)
                && asked.url.is_same_server(&self.base)
                && self.authorize(asked.operation, response)?
            {
                // Frees the connection: a server may have one at a time.
                drop(answer);
                self.options.cancel.check()?;
                return self.once(asked, sent.as_deref_mut());
            }
            Ok(answer)
        })
    }

    /// Asks again while the registry is busy, or the connection breaks.
    fn persist(
        &self,
        operation: &'static str,
        mut ask: impl FnMut() -> Result<Answer, Error>,
    ) -> Result<Response<Body>, Error> {
        let mut failures = 0;
        loop {
            self.options.cancel.check()?;
            let answer = ask()?;
            failures += 1;
            match try_again(&answer, failures) {
                Some(time) => self.wait(time)?,
                None => return answer.map_err(|error| self.network(operation, &error)),
            }
        }
    }

    /// Sends a request once, and follows redirects, which get no authorization.
    fn once(&self, asked: &Asked, mut sent: Option<&mut Spool>) -> Result<Answer, Error> {
        let authorization = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // An upload may go to another host, which must not see it.
        let mut authorization = authorization.filter(|_| asked.url.is_same_server(&self.base));
        let mut to = asked.url.clone();
        let mut redirects = 0;
        loop {
            let mut request = Request::builder().method(&asked.method).uri(to.uri().clone());
            if let Some((name, value)) = &asked.header {
                request = request.header(name, value);
            }
            if let Some(authorization) = authorization.take() {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            // Not every proxy takes a chunked body.
            if let Some(length) = sent.as_ref().map(|blob| blob.size).or((asked.method == Method::POST).then_some(0)) {
                request = request.header(header::CONTENT_LENGTH, length);
            }
            let refused = |fault| self.refused_address(asked.operation, fault);
            let invalid = |_| refused(AddressFault::Invalid);
            let answer = match sent.as_deref_mut().map(Spool::reader).transpose()? {
                Some(mut reader) => self.agent.run(request.body(SendBody::from_reader(&mut reader)).map_err(invalid)?),
                None => self.agent.run(request.body(()).map_err(invalid)?),
            };
            let next = match (&answer, &sent) {
                (Ok(response), None) if redirects < REDIRECTS => redirect(response, &to),
                _ => None,
            };
            let Some(next) = next else { return Ok(answer) };
            to = next.map_err(refused)?;
            redirects += 1;
        }
    }

    fn refused_address(&self, operation: &'static str, fault: AddressFault) -> Error {
        match fault {
            AddressFault::Invalid => self.wrong(&format!("an address that is not valid, to {operation}")),
            AddressFault::HasUserName => self.wrong(&format!("an address with a user name, to {operation}")),
            AddressFault::Unencrypted(host) => Error::NotLoopback(host),
        }
    }

    /// Answers a challenge. Returns true if there is a new authorization to try.
    fn authorize(&self, operation: &'static str, response: &Response<Body>) -> Result<bool, Error> {
        let challenges = response.headers().get_all(header::WWW_AUTHENTICATE);
        let challenges: Vec<_> = challenges.iter().filter_map(|value| Challenge::parse(value.to_str().ok()?)).collect();
        let bearer = challenges.iter().find(|challenge| challenge.scheme == "bearer");
        let value = match (bearer, &self.credentials) {
            (Some(bearer), _) => self.token(operation, bearer)?.map(|token| format!("Bearer {token}")),
            (None, Some(credentials)) if challenges.iter().any(|challenge| challenge.scheme == "basic") => {
                basic(credentials)
            }
            _ => None,
        };
        let mut authorization = self.authorization.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = value.is_some() && (bearer.is_some() || *authorization != value);
        *authorization = value;
        Ok(is_new)
    }

    fn token(&self, operation: &'static str, challenge: &Challenge) -> Result<Option<String>, Error> {
        let realm = challenge.value("realm").ok_or_else(|| self.wrong("it does not say where tokens are to be had"))?;
        // The credentials go there, so the address is checked.
        let place = self.base.leads_to(&realm).map_err(|fault| self.refused_address(operation, fault))?;
        let named = |name: &'static str| Some((name, challenge.value(name).filter(|value| !value.is_empty())?));
        let asked: Vec<_> = ["service", "scope"].into_iter().filter_map(named).collect();
        let ask = || match &self.credentials {
            Some(Credentials::IdentityToken(token)) => {
                let grant = [("grant_type", "refresh_token"), ("client_id", "calve"), ("refresh_token", token)];
                let asked = asked.iter().map(|(name, value)| (*name, &**value));
                self.agent.post(place.uri()).send_form(asked.chain(grant))
            }
            credentials => {
                let mut request = self.agent.get(place.uri()).query_pairs(asked.clone());
                if let Some(value) = credentials.as_ref().and_then(basic) {
                    request = request.header(header::AUTHORIZATION, value);
                }
                request.call()
            }
        };
        let mut answer = self.persist(operation, || Ok(ask()))?;
        if [StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&answer.status()) {
            return Ok(None);
        }
        self.expect(operation, &answer, &[StatusCode::OK])?;
        let bytes = answer.body_mut().with_config().limit(1 << 20).read_to_vec();
        let bytes = bytes.map_err(|error| self.network(operation, &error))?;
        let token: Token = serde_json::from_slice(&bytes).map_err(|_| self.wrong("a token that is not valid"))?;
        Ok(token.token.or(token.access_token))
    }

    fn expect(&self, operation: &'static str, response: &Response<Body>, good: &[StatusCode]) -> Result<(), Error> {
        let status = response.status();
        if good.contains(&status) {
            return Ok(());
        }
        let refusal = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                RegistryRefusal::Unauthorized { with_credentials: self.credentials.is_some() }
            }
            StatusCode::NOT_FOUND => RegistryRefusal::NotFound,
            status if is_busy(status) => RegistryRefusal::Busy(status.as_u16()),
            status => RegistryRefusal::Status(status.as_u16()),
        };
        Err(self.refused(operation, refusal))
    }

    fn refused(&self, operation: &'static str, refusal: RegistryRefusal) -> Error {
        Error::Refused { registry: self.reference.registry.clone(), operation, refusal }
    }

    fn wait(&self, time: Duration) -> Result<(), Error> {
        const STEP: Duration = Duration::from_millis(50);
        let mut left = time;
        while !left.is_zero() {
            self.options.cancel.check()?;
            std::thread::sleep(left.min(STEP));
            left = left.saturating_sub(STEP);
        }
        Ok(())
    }

    fn network(&self, operation: &'static str, error: &ureq::Error) -> Error {
        self.broken(operation, self.reason(error))
    }

    fn reason(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Timeout(Timeout::PerRead | Timeout::PerWrite | Timeout::RecvResponse) => {
                format!("nothing came for {} s", self.silence.as_secs())
            }
            // Without the library's prefix.
            ureq::Error::Io(error) => error.to_string(),
            other => other.to_string(),
        }
    }

    fn broken(&self, operation: &'static str, reason: String) -> Error {
        // The message may have characters that a registry chose.
        let reason = reason.escape_debug().to_string();
        Error::Network { registry: self.reference.registry.clone(), operation, reason }
    }

    pub(crate) fn wrong(&self, what: &str) -> Error {
        Error::BadAnswer { registry: self.reference.registry.clone(), what: what.into() }
    }
}

fn basic(credentials: &Credentials) -> Option<String> {
    let Credentials::Password { user, secret } = credentials else { return None };
    Some(format!("Basic {}", STANDARD.encode(format!("{user}:{secret}"))))
}

fn continues(response: &Response<Body>, have: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.and_then(multipart::content_range).is_some_and(|bytes| bytes.start == have)
}
