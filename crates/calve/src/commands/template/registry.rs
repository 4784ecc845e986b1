//! `calve template push` and `calve template pull`.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use calve_core::{Cancel, Progress, Shown, TemplateOptions, Templates};
use calve_oci::{
    ConnectionOptions, CredentialFiles, PolicyFiles, PullOptions, PushOptions, Reference, Remedy, Transport,
};
use calve_receipt::human::{duration, entries, size};
use calve_receipt::{TemplatePullReceipt, TemplatePushReceipt, Transfer};

use super::clear_away;
use crate::cli::template::{PullArguments, PushArguments, TransferOptions};
use crate::failure::{Failure, REFUSED, USAGE};
use crate::progress_bar::Watch;
use crate::{output, wording};

pub(super) fn push(templates: &Templates, arguments: &PushArguments, cancel: &Cancel) -> Result<(), Failure> {
    let reference = reference(&arguments.reference, &arguments.key, &arguments.transfer)?;
    let mut options = PushOptions::default();
    options.template = template_options(&arguments.transfer, cancel);
    options.connection = connection()?;
    let started = Instant::now();
    let watch = Watch::start("pushed", &options.template.progress, arguments.transfer.quiet);
    let pushed = calve_oci::push(templates, &arguments.name, &reference, &options);
    drop(watch);
    let pushed = pushed?;
    let elapsed = started.elapsed();
    if !arguments.transfer.quiet {
        let (sent, image) = (size(pushed.sent_bytes), size(pushed.image_bytes));
        let elapsed = duration(elapsed);
        output::say(&format!("pushed `{}` to {reference}: sent {sent} of {image}, in {elapsed}", arguments.name));
    }
    if !arguments.json {
        return Ok(());
    }
    let transfer = Transfer { reference: reference.to_string(), digest: pushed.digest, portable_key: pushed.key };
    output::json(&TemplatePushReceipt {
        name: arguments.name.clone(),
        transfer,
        layers: pushed.layers,
        sent_bytes: pushed.sent_bytes,
        image_bytes: pushed.image_bytes,
        elapsed_ms: elapsed.into(),
    })
}

pub(super) fn pull(templates: &Templates, arguments: &PullArguments, cancel: &Cancel) -> Result<(), Failure> {
    let reference = reference(&arguments.reference, &arguments.if_key, &arguments.transfer)?;
    let mut options = PullOptions::default();
    options.template = template_options(&arguments.transfer, cancel);
    options.template.at.clone_from(&arguments.at);
    options.connection = connection()?;
    let name = arguments.name.as_deref().unwrap_or_else(|| reference.name());
    let started = Instant::now();
    let watch = Watch::start("pulled", &options.template.progress, arguments.transfer.quiet);
    let pulled = calve_oci::pull(templates, &reference, name, &options);
    drop(watch);
    let pulled = match pulled {
        Err(error) if error.is_missing_image() && !arguments.if_key.is_empty() => return Err(no_template(&reference)),
        other => other?,
    };
    let elapsed = started.elapsed();
    clear_away(&pulled.swept);
    if !arguments.transfer.quiet {
        let text = if pulled.is_up_to_date {
            format!("the template `{name}` is up to date with {reference}")
        } else {
            let (number, bytes) = (entries(pulled.template.entries), size(pulled.template.bytes));
            let (fetched, elapsed) = (size(pulled.fetched_bytes), duration(elapsed));
            format!("pulled the template `{name}`: {number}, {bytes}, fetched {fetched}, in {elapsed}")
        };
        output::say(&Shown(text).to_string());
    }
    if !arguments.json {
        return Ok(());
    }
    let transfer = Transfer { reference: reference.to_string(), digest: pulled.digest, portable_key: pulled.key };
    let (fetched, reused) = (pulled.fetched_bytes, pulled.reused_bytes);
    output::json(&TemplatePullReceipt::new(&pulled.template, transfer, fetched, reused, pulled.is_up_to_date, elapsed))
}

/// Reads a reference. If there are key files, they decide the tag.
pub(crate) fn reference(text: &str, key: &[PathBuf], options: &TransferOptions) -> Result<Reference, Failure> {
    let transport = if options.plain_http { Transport::PlainHttp } else { Transport::Https };
    let reference = Reference::parse(text, transport)?;
    if key.is_empty() {
        return Ok(reference);
    }
    let files = key.iter().map(fs_err::read).collect::<Result<Vec<_>, _>>()?;
    Ok(reference.with_key(&files)?)
}

/// Nothing has been pushed for the files of `--if-key`. A script sees by the code that it has to make the template.
pub(crate) fn no_template(reference: &Reference) -> Failure {
    let (text, remedy) = (format!("there is no template for these files: `{reference}`"), Remedy::PushWithKey);
    Failure::Stated { text, hint: wording::oci::hint(&remedy), code: REFUSED, remedy: Some(remedy.name()) }
}

pub(crate) fn template_options(given: &TransferOptions, cancel: &Cancel) -> TemplateOptions {
    let mut options = TemplateOptions::default();
    options.threads = given.threads;
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    options
}

/// How long a connection may be silent, in seconds.
const TIMEOUT: &str = "CALVE_REGISTRY_TIMEOUT";

pub(crate) fn connection() -> Result<ConnectionOptions, Failure> {
    let mut options = ConnectionOptions::default();
    options.credentials = credential_files();
    options.policy = policy_files();
    if let Some(seconds) = env::var_os(TIMEOUT).filter(|value| !value.is_empty()) {
        // As a clock can count, which `u64` is not.
        let parsed = seconds.to_str().and_then(|seconds| seconds.parse::<u32>().ok()).filter(|&seconds| seconds > 0);
        let silence = parsed.map(|seconds| Duration::from_secs(seconds.into()));
        let (text, hint) = (format!("`{TIMEOUT}` is not a number of seconds"), "set it to 60, or leave it unset");
        options.silence = Some(silence.ok_or_else(|| Failure::stated(USAGE, text, hint))?);
    }
    Ok(options)
}

/// Where podman and docker keep credentials, in the order in which podman looks for them.
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

/// Where podman and skopeo look for the policy, in their order.
fn policy_files() -> PolicyFiles {
    let own = env::home_dir().map(|home| home.join(".config/containers/policy.json"));
    PolicyFiles(own.into_iter().chain([PathBuf::from("/etc/containers/policy.json")]).collect())
}
