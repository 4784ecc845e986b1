use std::io::Write as _;

use calve_core::internal::ShownPath;
use calve_db::EngineKind;
use calve_git::environment::root_of;
use calve_git::{Config, SHARED_CONFIG};

use crate::cli::db::engine;
use crate::cli::setting_up::InitArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{consent, output, real_path, sys};

const PORTS: &str = "web=3000";
const NONE: &str = "none";

pub(crate) fn run(arguments: &InitArguments) -> Result<(), Failure> {
    let path = root_of(&real_path::here()?)?.join(SHARED_CONFIG);
    if path.symlink_metadata().is_ok() {
        let hint = "change it in an editor; `calve worktree add --help` lists the tables and keys that it may have";
        return Err(Failure::stated(FAILED, format!("`{}` already exists", ShownPath(&path)), hint));
    }
    let answers = answers(arguments)?;
    check_ports(&answers[0]).map_err(|wrong| Failure::stated(USAGE, wrong, "name each as in `--port web=3000`"))?;
    let text = text(&answers);
    Config::check(&text)?;
    let mut file = fs_err::File::create_new(&path)?;
    if let Err(error) = file.write_all(text.as_bytes()) {
        // A partial file would count as the configuration.
        let _ = fs_err::remove_file(&path);
        return Err(error.into());
    }
    output::note(&text);
    // `:/` works from any directory of the worktree.
    output::note(&format!(
        "wrote `{SHARED_CONFIG}`; commit it, so that new worktrees have it: git add :/{SHARED_CONFIG} && git commit -m 'calve init'"
    ));
    Ok(())
}

/// Returns ports, engine and filling command from the options. Without any, asks on a terminal.
fn answers(arguments: &InitArguments) -> Result<[String; 3], Failure> {
    let has_answers = !arguments.ports.is_empty() || arguments.engine.is_some();
    if has_answers || !consent::can_ask() {
        let ports = if has_answers { arguments.ports.join(" ") } else { PORTS.to_owned() };
        let [engine, create] = [&arguments.engine, &arguments.create].map(|one| one.clone().unwrap_or_default());
        return Ok([ports, engine, create]);
    }
    let mut answers = sys::Answers::new()?;
    // Repeats a question after a wrong answer. An empty answer takes the default in brackets, `none` nothing.
    let mut ask = |question: &str, usual: &str, check: fn(&str) -> Result<(), String>| loop {
        output::prompt(&format!("{question} [{}]:", if usual.is_empty() { NONE } else { usual }));
        let answer = answers.line()?.ok_or(Failure::interrupted("nothing was written; run it again"))?;
        let answer = match answer.trim() {
            "" => usual,
            NONE => "",
            answer => answer,
        };
        match check(answer) {
            Ok(()) => return Ok::<_, Failure>(answer.to_owned()),
            Err(wrong) => output::prompt(&wrong),
        }
    };
    let ports = ask("Ports of the programs that you run, as NAME=NUMBER", PORTS, check_ports)?;
    let known = |named: &str| if named.is_empty() { Ok(()) } else { engine(named).map(drop) };
    let engine = ask(&format!("Database ({})", EngineKind::NAMES.join(", ")), "", known)?;
    let create = match engine.as_str() {
        "" => String::new(),
        engine => ask(&format!("Command that fills it, with its URL in {}", variable(engine)), "", |_| Ok(()))?,
    };
    Ok([ports, engine, create])
}

fn check_ports(ports: &str) -> Result<(), String> {
    Config::check(&text(&[ports.to_owned(), String::new(), String::new()])).map_err(|error| match error {
        calve_git::Error::Config { reason, .. } => reason,
        other => other.to_string(),
    })
}

fn variable(engine: &str) -> &'static str {
    engine.parse().map_or("DATABASE_URL", EngineKind::url_variable)
}

fn text([ports, engine, create]: &[String; 3]) -> String {
    let mut text = String::new();
    if !ports.is_empty() {
        text += "[ports]                       # each worktree gets ports of its own\n";
    }
    for port in ports.split_whitespace() {
        let (name, number) = port.split_once('=').unwrap_or((port, "''"));
        text += &format!("{name} = {number}\n");
    }
    if !engine.is_empty() {
        let (engine, variable) = (quoted(engine), variable(engine));
        text += &format!(
            "[services.db]                 # and a database of its own\nengine = {engine}\nenv = \"{variable}\"\n"
        );
    }
    if !create.is_empty() {
        let create = quoted(create);
        text += &format!("create = {create}\n# inputs = [\"migrations/**\"]   # run again when these change\n");
    }
    text
}

/// Quotes a text for TOML, which shares JSON's escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
