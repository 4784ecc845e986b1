use calve_core::CancelToken;
use calve_core::template::Templates;
use calve_oci::{PushedImage, Remedy};
use calve_receipt::human::{entries, size};
use calve_receipt::{TemplatePullReceipt, TemplatePushReceipt};

use crate::cli::template::{PullArguments, PushArguments};
use crate::commands::registry::{self, Pull};
use crate::failure::Failure;
use crate::output;
use crate::progress_bar::watched;
use crate::reaper::clear_away;

pub(super) fn push(templates: &Templates, arguments: &PushArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut portable_key = String::new();
    let push = registry::push(&arguments.push, cancel, |reference, options| {
        let base = arguments.base.as_deref();
        let image = if arguments.full { PushedImage::Full } else { PushedImage::DeltaOrFull { base } };
        let (pushed, key) = calve_oci::push(templates, &arguments.push.name, reference, image, options)?;
        portable_key = key;
        Ok(pushed)
    })?;
    output::json_if(arguments.json, &TemplatePushReceipt { push, portable_key })
}

pub(super) fn pull(templates: &Templates, arguments: &PullArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut pull = Pull::start(&arguments.pull, cancel)?;
    pull.options.template.at.clone_from(&arguments.at);
    let receive = || calve_oci::pull(templates, &pull.reference, &pull.name, &pull.options);
    let pulled = watched("pulled", &pull.options.template.progress, receive);
    let pulled = pulled.map_err(|error| pull.failure(error, &Remedy::PushWithKey))?;
    clear_away(&pulled.swept);
    let template = &pulled.template;
    let amount = format!("{}, {}", entries(template.entries), size(template.bytes));
    let image = (pulled.digest, pulled.is_up_to_date);
    let fields = pull.end(&amount, image, pulled.fetched_bytes, pulled.reused_bytes);
    output::json_if(arguments.json, &TemplatePullReceipt { template, pull: fields, portable_key: pulled.key })
}
