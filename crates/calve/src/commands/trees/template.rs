use std::time::Instant;

use calve_core::error::{self, TemplateError};
use calve_core::internal::ShownPath;
use calve_core::spares::SpareSource;
use calve_core::template::{CreatedTemplate, Difference, DifferenceKind, Template, TemplateOptions, Templates};
use calve_core::{CancelToken, Error};
use calve_oci::{PushedImage, Remedy};
use calve_receipt::human::{count, duration, entries, size};
use calve_receipt::{
    ListedTemplate, TemplateCreateReceipt, TemplatePullReceipt, TemplatePushReceipt, TemplateReceipt,
    TemplateRemoveReceipt, TemplateState, TemplatesReceipt, paths,
};

use super::spares;
use crate::cli::template::{MakeOptions, PullArguments, PushArguments, TemplateCommand};
use crate::commands::registry::{self, Pull};
use crate::failure::{FAILED, Failure};
use crate::progress_bar::watched;
use crate::reaper::clear_away;
use crate::{home, operands, output, wording};

pub(crate) fn run(command: &TemplateCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home::directory().map_err(|why| Error::from(TemplateError::NoHome(why)))?;
    let templates = Templates::open(&home);
    clear_away(&templates.sweep()?);
    match command {
        TemplateCommand::Create { name, source, options } => {
            make("created", options, cancel, |options| templates.create(name, source, options))
        }
        TemplateCommand::List { json } => list(&templates, *json),
        TemplateCommand::Show { name, json } => show(&templates, name, *json),
        TemplateCommand::Verify { name, json } => verify(&templates, name, *json, cancel),
        TemplateCommand::Refresh { name, source, options } => {
            if source.is_none() {
                has_a_source(&templates.find(name)?)?;
            }
            make("refreshed", options, cancel, |options| templates.refresh(name, source.as_deref(), options))
        }
        TemplateCommand::Remove { names, json } => remove(&templates, names, *json, cancel),
        TemplateCommand::Push(arguments) => push(&templates, arguments, cancel),
        TemplateCommand::Pull(arguments) => pull(&templates, arguments, cancel),
    }
}

fn has_a_source(template: &Template) -> Result<(), Failure> {
    let name = &template.name;
    if let Some(origin) = calve_oci::origin(template) {
        let text = format!("the template `{name}` was pulled, and not made of a directory");
        return Err(Failure::stated(FAILED, text, wording::pull_again("calve template pull", name, origin)));
    }
    if !template.source.exists() {
        let text = format!("`{}`, of which the template was made, does not exist", ShownPath(&template.source));
        let hint = format!("if you moved it, name its new place: calve template refresh {name} DIR");
        return Err(Failure::stated(FAILED, text, hint));
    }
    Ok(())
}

fn make(
    done: &str,
    given: &MakeOptions,
    cancel: &CancelToken,
    make: impl FnOnce(&TemplateOptions) -> Result<CreatedTemplate, Error>,
) -> Result<(), Failure> {
    let mut options = TemplateOptions::default();
    options.exclude.clone_from(&given.exclude);
    options.at.clone_from(&given.at);
    options.cancel = cancel.clone();
    let started = Instant::now();
    let created = watched("cloned", &options.progress, || make(&options))?;
    clear_away(&created.swept);
    let Template { name, strategy, bytes, .. } = &created.template;
    let (number, bytes) = (entries(created.template.entries), size(*bytes));
    let elapsed = duration(started.elapsed());
    output::note(&format!("{done} the template `{name}` by {strategy}: {number}, {bytes}, in {elapsed}"));
    let CreatedTemplate { template, clone, .. } = &created;
    wording::clone::attention(clone).iter().for_each(|line| output::warn(line));
    let receipt = TemplateCreateReceipt {
        template,
        refused: &clone.refused,
        skipped: &clone.skipped,
        changed: paths(&clone.changed),
        warnings: &clone.warnings,
        clone_ms: clone.elapsed.into(),
        elapsed_ms: started.elapsed().into(),
    };
    output::json_if(given.json, &receipt)
}

fn list(templates: &Templates, json: bool) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for (name, found) in templates.list()? {
        let template = match found {
            Ok(template) => Some(template),
            // It has been removed meanwhile.
            Err(Error::Template(TemplateError::Unknown(_))) => continue,
            Err(_) => None,
        };
        let checked = template.as_ref().map(|template| templates.check(template));
        let state = checked.map_or(TemplateState::Damaged, |checked| TemplateState::from_check(&checked));
        listed.push(ListedTemplate { name, state, template });
    }
    let row = |ListedTemplate { name, state, template }: &ListedTemplate| {
        let what = template.as_ref().map_or_else(String::new, |template| {
            let (entries, bytes) = (count(template.entries), size(template.bytes));
            format!("{entries} entries, {bytes}, of {}", ShownPath(&template.source))
        });
        (name.clone(), format!("{state:<9}  {what}"))
    };
    let text = output::table(listed.iter().map(row));
    output::json_or(json, &TemplatesReceipt { templates: listed }, &text)
}

fn show(templates: &Templates, name: &str, json: bool) -> Result<(), Failure> {
    let template = templates.find(name)?;
    let state = TemplateState::from_check(&templates.check(&template));
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("{what:<9} {value}\n"));
    line("name", template.name.clone());
    line("state", state.to_string());
    line("key", template.key.clone());
    line("source", ShownPath(&template.source).to_string());
    for pattern in &template.exclude {
        line("exclude", ShownPath(pattern).to_string());
    }
    line("entries", count(template.entries));
    line("bytes", size(template.bytes));
    line("strategy", template.strategy.to_string());
    line("tree", ShownPath(&template.tree).to_string());
    line("manifest", ShownPath(&template.manifest).to_string());
    output::json_or(json, &TemplateReceipt { template: &template, state }, &text)
}

fn verify(templates: &Templates, name: &str, json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let report = templates.verify(name, cancel)?;
    output::json_or(json, &report, &report.differences.iter().map(difference_line).collect::<String>())?;
    let number = entries(report.entries);
    if report.differences.is_empty() {
        output::note(&format!("the template `{name}` is unchanged: {number}, in {}", duration(report.elapsed)));
        return Ok(());
    }
    let different = report.differences.len() as u64;
    let text = format!("the template `{name}` was changed after it was made: {} of {number}", count(different));
    Err(Failure::stated(FAILED, text, wording::core::hint(&error::Remedy::RefreshTemplate(name.into()))))
}

fn difference_line(difference: &Difference) -> String {
    let detail = match difference.code {
        DifferenceKind::Changed => format!(" ({})", difference.keywords.join(", ")),
        DifferenceKind::Unreadable => format!(" ({})", difference.reason.unwrap_or_default()),
        _ => String::new(),
    };
    format!("{:<10} {}{detail}\n", difference.code, ShownPath(&difference.path))
}

fn remove(templates: &Templates, names: &[String], json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let mut removed = TemplateRemoveReceipt { names: Vec::new() };
    let ended = operands::each(names, |name| {
        // Either one may be on an unmounted file system.
        templates.check_removable(name)?;
        spares::store()?.remove(&SpareSource::Template(name.clone()), cancel)?;
        clear_away(&templates.remove(name)?);
        output::note(&format!("removed the template `{name}`"));
        removed.names.push(name.clone());
        Ok(())
    })?;
    output::json_if(json, &removed)?;
    ended
}

fn push(templates: &Templates, arguments: &PushArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut portable_key = String::new();
    let push = registry::push(&arguments.push, cancel, |reference, options| {
        let base = arguments.base.as_deref();
        let image = if arguments.full { PushedImage::Full } else { PushedImage::DeltaOrFull { base } };
        let (pushed, key) = calve_oci::push(templates, &arguments.push.name, reference, image, options)?;
        portable_key = key;
        Ok(pushed)
    })?;
    if let Some(base) = arguments.base.as_ref().filter(|_| push.kept_layers == 0 && push.sent_bytes > 0) {
        output::note(&format!("a full image was sent: there is no image `{base}`, or a delta would save too little"));
    }
    output::json_if(arguments.json, &TemplatePushReceipt { push, portable_key })
}

fn pull(templates: &Templates, arguments: &PullArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut pull = Pull::start(&arguments.pull, cancel)?;
    pull.options.template.at.clone_from(&arguments.at);
    let receive = || calve_oci::pull(templates, &pull.reference, &pull.name, &pull.options);
    let pulled = watched("pulled", &pull.options.template.progress, receive);
    let pulled = pulled.map_err(|error| pull.failure(error, &Remedy::PushWithKey))?;
    clear_away(&pulled.swept);
    let template = &pulled.template;
    let amount = format!("{}, {}", entries(template.entries), size(template.bytes));
    let fields = pull.end(&amount, (pulled.digest, pulled.is_up_to_date), pulled.received);
    output::json_if(arguments.json, &TemplatePullReceipt { template, pull: fields, portable_key: pulled.key })
}
