use std::env;

use calve_core::CancelToken;
use calve_core::template::Templates;
use calve_db::{BuiltTemplate, DatabaseTemplate, ImageOrigin, NameLock, ReceiveOptions, ReceivePaths};
use calve_env::Host as _;
use calve_oci::{DataDescription, DataImage, DataSource, OldData, ReceivedBytes, Remedy};
use calve_receipt::human::{counted, size};
use calve_receipt::{DbTemplatePullReceipt, DbTemplatePushReceipt};

use super::home::home;
use super::pool;
use crate::cli::db::TemplatePullArguments;
use crate::cli::registry::PushOptions;
use crate::commands::registry::{self, Pull};
use crate::failure::Failure;
use crate::host::{Program, say_building};
use crate::progress_bar::watched;
use crate::{output, real_path};

pub(super) fn push(given: &PushOptions, json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let push = registry::push(given, cancel, |reference, options| {
        let held = calve_db::hold_to_send(&home()?, &given.name)?;
        let template = &held.template;
        let about = DataDescription {
            engine: template.program.engine.clone(),
            version: template.program.version.clone(),
            architecture: env::consts::ARCH.into(),
            key: template.key.clone(),
            files: template.files,
            bytes: template.bytes,
        };
        let data = &template.data_directory();
        let source = DataSource { data, spool: held.beside(), is_current: &|| held.is_current() };
        Ok(calve_oci::push_data(&source, &about, reference, options)?)
    })?;
    output::json_if(json, &DbTemplatePushReceipt { push })
}

pub(super) fn pull(arguments: &TemplatePullArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let pull = Pull::start(&arguments.pull, cancel)?;
    let directory = calve_env::required_home(&Program, "templates")?;
    let home = home()?;
    let mut say = |event| say_building(&pull.name, event);
    // Lock before looking up the image: another pull that the lock waits for may install a newer one.
    let lock = NameLock::wait(&home, &pull.name, &mut say, cancel)?;
    let templates = Templates::open(&directory);
    let image = DataImage::open(&templates, &pull.reference, &pull.options);
    let image = image.map_err(|error| pull.failure(error, &Remedy::PushDatabaseWithKey))?;
    let receive = receive_options(arguments, &pull, &image)?;
    let may_replace = |old: &DatabaseTemplate| -> Result<(), Failure> {
        let origin = old.origin.as_ref().map(|origin| &*origin.reference);
        Ok(pull.reference.check_replaces(&old.name, origin)?)
    };
    let mut received = ReceivedBytes::default();
    let fill = |room: &ReceivePaths<'_>| {
        let old = room.old.as_ref().map(|(data, index)| OldData { data, index });
        received = image.receive(room.data, room.index, old)?;
        Ok(())
    };
    let made = watched("pulled", &pull.options.template.progress, || {
        calve_db::receive(&home, &lock, &receive, (&mut say, cancel), may_replace, fill)
    });
    let BuiltTemplate { template, reused: up_to_date, .. } = made?;
    // The replaced template.
    calve_env::reap_trash(&Program, &home)?;
    if !up_to_date {
        pool::refill(&home, &pull.name);
    }
    let amount = format!("{}, {}", counted(template.files, "file"), size(template.bytes));
    let fields = pull.end(&amount, (receive.origin.digest, up_to_date), received);
    output::json_if(arguments.json, &DbTemplatePullReceipt { template: template.into(), pull: fields })
}

fn receive_options(
    arguments: &TemplatePullArguments,
    pull: &Pull<'_>,
    image: &DataImage<'_>,
) -> Result<ReceiveOptions, Failure> {
    let DataDescription { engine, version, architecture, key, .. } = image.about.clone();
    let origin = ImageOrigin { reference: pull.reference.to_string(), digest: image.digest.clone() };
    let directory = real_path::here()?;
    let (server_bin, search) = (arguments.server_bin.as_ref().map(|path| directory.join(path)), Program.search());
    Ok(ReceiveOptions { engine, version, architecture, key, origin, server_bin, search })
}
