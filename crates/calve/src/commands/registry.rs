//! The common part of pushing and pulling directory and database templates.

use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_core::template::TemplateOptions;
use calve_oci::{CredentialFiles, PushReport, ReceivedBytes, Reference, RegistryOptions, Remedy, Transport};
use calve_receipt::human::{duration, size};
use calve_receipt::{ErrorCode, PullFields, PushFields};

use crate::cli::registry::{PullOptions, PushOptions};
use crate::failure::{Failure, REFUSED};
use crate::progress_bar::watched;
use crate::{output, wording};

pub(super) fn push(
    given: &PushOptions,
    cancel: &CancelToken,
    send: impl FnOnce(&Reference, &RegistryOptions) -> Result<PushReport, Failure>,
) -> Result<PushFields, Failure> {
    let reference = reference(&given.reference, &given.key, given.plain_http)?;
    let options = options(cancel);
    let started = Instant::now();
    let PushReport { digest, layers, kept_layers, sent_bytes, image_bytes } =
        watched("pushed", &options.template.progress, || send(&reference, &options))?;
    let elapsed = started.elapsed();
    let (sent, image, took) = (size(sent_bytes), size(image_bytes), duration(elapsed));
    let how = match kept_layers {
        0 => String::new(),
        kept => format!(", a delta on {kept} existing layers"),
    };
    let (name, reference, elapsed_ms) = (given.name.clone(), reference.to_string(), elapsed.into());
    output::note(&format!("pushed `{name}` to {reference}: sent {sent} of {image}{how}, in {took}"));
    Ok(PushFields { name, reference, digest, layers, kept_layers, sent_bytes, image_bytes, elapsed_ms })
}

pub(super) struct Pull<'a> {
    given: &'a PullOptions,
    pub(super) reference: Reference,
    pub(super) name: String,
    pub(super) options: RegistryOptions,
    started: Instant,
}

impl<'a> Pull<'a> {
    pub(super) fn start(given: &'a PullOptions, cancel: &CancelToken) -> Result<Self, Failure> {
        let reference = reference(&given.reference, &given.if_key, given.plain_http)?;
        let name = given.name.clone().unwrap_or_else(|| reference.name().to_owned());
        Ok(Self { given, reference, name, options: options(cancel), started: Instant::now() })
    }

    /// Converts an error. With `--if-key`, exit code 3 tells a script that no template was pushed for these files.
    pub(super) fn failure(&self, error: calve_oci::Error, push: &Remedy) -> Failure {
        if self.given.if_key.is_empty() || !error.is_missing_image() {
            return error.into();
        }
        let text = format!("there is no template for these files: `{}`", self.reference);
        Failure::in_words(REFUSED, ErrorCode::Other, text, Some(wording::oci::hint(push)), Some(push.into()))
    }

    /// Reports the result, with `amount` as the template's size, and the image's digest and whether it was here already.
    pub(super) fn end(&self, amount: &str, image: (String, bool), received: ReceivedBytes) -> PullFields {
        let (digest, up_to_date) = image;
        let ReceivedBytes { fetched_bytes, reused_bytes } = received;
        let elapsed = self.started.elapsed();
        let (name, reference, elapsed_ms) = (&self.name, self.reference.to_string(), elapsed.into());
        let text = if up_to_date {
            format!("the template `{name}` is up to date with {reference}")
        } else {
            let (fetched, took) = (size(fetched_bytes), duration(elapsed));
            format!("pulled the template `{name}`: {amount}, fetched {fetched}, in {took}")
        };
        output::note(&ShownPath(text).to_string());
        PullFields { reference, digest, fetched_bytes, reused_bytes, up_to_date, elapsed_ms }
    }
}

/// Parses a reference. Key files, if any, determine the tag.
fn reference(text: &str, key: &[PathBuf], plain_http: bool) -> Result<Reference, Failure> {
    let transport = if plain_http { Transport::PlainHttp } else { Transport::Https };
    let reference = Reference::parse(text, transport)?;
    if key.is_empty() {
        return Ok(reference);
    }
    let files = key.iter().map(fs_err::read).collect::<Result<Vec<_>, _>>()?;
    Ok(reference.with_key(&files)?)
}

fn options(cancel: &CancelToken) -> RegistryOptions {
    let template = TemplateOptions { cancel: cancel.clone(), ..TemplateOptions::default() };
    // Tests shorten the default of a minute.
    let silence = env::var("CALVE_TEST_SILENCE").ok().and_then(|seconds| seconds.parse().ok());
    RegistryOptions { template, credentials: credential_files(), silence: silence.map(Duration::from_secs) }
}

/// Returns the credential files of podman and docker, in podman's search order.
fn credential_files() -> CredentialFiles {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = env::home_dir();
    let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let config = named("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
    let files = [
        named("REGISTRY_AUTH_FILE"),
        named("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
        config.map(|directory| directory.join("containers/auth.json")),
        named("DOCKER_CONFIG").or_else(|| below_home(".docker")).map(|directory| directory.join("config.json")),
    ];
    CredentialFiles(files.into_iter().flatten().collect())
}
