//! `calve db template push` and `calve db template pull`.

use std::env;
use std::time::{Duration, Instant};

use calve_core::{Cancel, Shown, Templates};
use calve_db::{BuildEvent, ImageOrigin, ReceiveOptions, Received, Room, Template};
use calve_oci::{
    DataDescription, DataImage, DataSource, OldData, PullOptions, PushOptions, ReceivedData, Reference, Transport,
};
use calve_receipt::human::{count, duration, size};
use calve_receipt::{DbTemplatePullReceipt, DbTemplatePushReceipt};

use super::{home, pool, reap_trash};
use crate::cli::db::{TemplatePullArguments, TemplatePushArguments};
use crate::commands::template::registry::{connection, no_template, reference, template_options};
use crate::db_receipt;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::progress_bar::Watch;

pub(super) fn push(arguments: &TemplatePushArguments, cancel: &Cancel) -> Result<(), Failure> {
    let reference = reference(&arguments.reference, &arguments.key, &arguments.transfer)?;
    let home = home()?;
    let held = calve_db::hold_to_send(&home, &arguments.name)?;
    let mut options = PushOptions::default();
    options.template = template_options(&arguments.transfer, cancel);
    options.connection = connection()?;
    let template = &held.template;
    let about = DataDescription {
        engine: template.engine.clone(),
        version: template.version.clone(),
        architecture: env::consts::ARCH.into(),
        key: template.key.clone(),
        files: template.files,
        bytes: template.bytes,
    };
    let started = Instant::now();
    let watch = Watch::start("pushed", &options.template.progress, arguments.transfer.quiet);
    let source =
        DataSource { data: &template.data_directory(), spool: held.beside(), is_current: &|| held.is_current() };
    let pushed = calve_oci::push_data(&source, &about, &reference, &options);
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
    output::json(&DbTemplatePushReceipt {
        name: arguments.name.clone(),
        reference: reference.to_string(),
        digest: pushed.digest,
        layers: pushed.layers,
        sent_bytes: pushed.sent_bytes,
        image_bytes: pushed.image_bytes,
        elapsed_ms: elapsed.into(),
    })
}

pub(super) fn pull(arguments: &TemplatePullArguments, cancel: &Cancel) -> Result<(), Failure> {
    let reference = reference(&arguments.reference, &arguments.if_key, &arguments.transfer)?;
    let name = arguments.name.as_deref().unwrap_or_else(|| reference.name());
    let directory = crate::home::directory()
        .map_err(|why| Failure::stated(FAILED, why, "set CALVE_HOME to a directory of your own"))?;
    let mut options = PullOptions::default();
    options.template = template_options(&arguments.transfer, cancel);
    options.connection = connection()?;
    let home = home()?;
    let started = Instant::now();
    let templates = Templates::open(&directory);
    let image = match DataImage::open(&templates, &reference, &options) {
        Err(error) if error.is_missing_image() && !arguments.if_key.is_empty() => return Err(no_template(&reference)),
        other => other?,
    };
    let receive = receive_options(arguments, name, &reference, &image)?;
    let mut say = |said: BuildEvent| say(arguments, name, said);
    let may_replace = |old: &Template| may_replace(old, &reference);
    let mut received = ReceivedData::default();
    let watch = Watch::start("pulled", &options.template.progress, arguments.transfer.quiet);
    let fill = |room: &Room<'_>| {
        let old = room.old.as_ref().map(|(data, index)| OldData { data, index });
        received = image.receive(room.data, room.index, old)?;
        Ok(())
    };
    let made = calve_db::receive(&home, &receive, (&mut say, cancel), may_replace, fill);
    drop(watch);
    let made = made?;
    // What it replaces.
    reap_trash(&home)?;
    if matches!(made, Received::New(_)) {
        pool::refill(&home, name);
    }
    report(arguments, &receive.origin, &made, received, started.elapsed())
}

fn receive_options(
    arguments: &TemplatePullArguments,
    name: &str,
    reference: &Reference,
    image: &DataImage<'_>,
) -> Result<ReceiveOptions, Failure> {
    let about = image.about().clone();
    let directory = env::current_dir()?;
    Ok(ReceiveOptions {
        name: name.to_owned(),
        engine: about.engine,
        version: about.version,
        architecture: about.architecture,
        key: about.key,
        origin: ImageOrigin { reference: reference.to_string(), digest: image.digest().to_owned() },
        server_bin: arguments.server_bin.as_ref().map(|path| directory.join(path)),
        search: env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
    })
}

/// Whatever was not pulled from the same repository may be nowhere else.
fn may_replace(old: &Template, reference: &Reference) -> Result<(), Failure> {
    let origin = old.origin().and_then(|origin| Reference::parse(&origin.reference, Transport::Https).ok());
    if origin.is_some_and(|origin| origin.place() == reference.place()) {
        return Ok(());
    }
    Err(calve_oci::Error::NameTaken { name: old.name.clone(), place: reference.place() }.into())
}

fn say(arguments: &TemplatePullArguments, name: &str, said: BuildEvent) {
    let text = match said {
        BuildEvent::Waiting => format!("waiting for another process that makes the template `{name}`"),
        BuildEvent::Unfinished(what) => format!("warning: {what}"),
        BuildEvent::Neutralised(what) => format!("in the template: {what}"),
    };
    if !arguments.transfer.quiet {
        output::say(&text);
    }
}

fn report(
    arguments: &TemplatePullArguments,
    origin: &ImageOrigin,
    made: &Received,
    received: ReceivedData,
    elapsed: Duration,
) -> Result<(), Failure> {
    let (template, up_to_date) = match made {
        Received::UpToDate(template) => (template, true),
        Received::New(template) => (template, false),
    };
    let name = &template.name;
    if !arguments.transfer.quiet {
        let text = if up_to_date {
            format!("the template `{name}` is up to date with {}", origin.reference)
        } else {
            let (files, bytes) = (count(template.files), size(template.bytes));
            let (fetched, elapsed) = (size(received.fetched_bytes), duration(elapsed));
            format!("pulled the template `{name}`: {files} files, {bytes}, fetched {fetched}, in {elapsed}")
        };
        output::say(&Shown(text).to_string());
    }
    if !arguments.json {
        return Ok(());
    }
    output::json(&DbTemplatePullReceipt {
        template: db_receipt::template(template),
        reference: origin.reference.clone(),
        digest: origin.digest.clone(),
        fetched_bytes: received.fetched_bytes,
        reused_bytes: received.reused_bytes,
        up_to_date,
        elapsed_ms: elapsed.into(),
    })
}
