//! Groups all commands for `calve --help`, on one screen.

use std::fmt::Write as _;

use clap::Command;

/// Each group lists its most used commands first.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Trees", &["cp", "rm", "run", "template", "spares", "dedupe", "du", "probe", "volume"]),
    ("Worktrees and their services", &["worktree", "env", "exec", "up", "down", "status", "logs", "reset"]),
    ("Databases", &["db"]),
    ("Git", &["git"]),
    ("Measuring", &["bench"]),
    ("Setting up", &["init", "hook", "mcp", "shell-init", "prompt", "completions"]),
];

/// Builds the deferred subcommands, so that the help lists them all.
pub(crate) fn with_all_commands(mut parser: Command) -> Command {
    parser.build();
    let mut text = "{about}\n\nUsage: {usage}\n\n".to_owned();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for command in names.iter().filter_map(|name| parser.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let alias = command.get_visible_aliases().map(|alias| format!(" [{alias}]")).collect::<String>();
            let _ = writeln!(text, "  {:<12} {about}{alias}", command.get_name());
        }
    }
    text += "\n`calve COMMAND --help` shows its options, `calve --version` the version. Every command takes --quiet (-q). Switches are off by default.{after-help}";
    parser.help_template(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;
    use clap::builder::StyledStr;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn every_command_is_in_a_group_and_all_fit_on_a_screen() {
        let parser = Arguments::command();
        let all = parser.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all.collect());
        let help = with_all_commands(Arguments::command()).render_help().to_string();
        assert!(help.lines().count() <= 40, "{} lines", help.lines().count());
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(grouped.iter().all(|name| help.matches(&format!("\n  {name} ")).count() == 1), "{help}");
    }

    #[test]
    fn summaries_are_short_and_every_option_says_its_default() {
        let mut parser = Arguments::command();
        parser.build();
        let wrong = wrong_summaries(&parser);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn wrong_summaries(parser: &Command) -> Vec<String> {
        let commands = parser.get_subcommands().filter(|command| !command.is_hide_set());
        let summary = |text: Option<&StyledStr>| text.map(ToString::to_string).unwrap_or_default();
        let is_short =
            |text: &str| (1..=70).contains(&text.split(" [default").next().unwrap_or_default().chars().count());
        let is_noun = |text: &str| ["The ", "A ", "An "].iter().any(|noun| text.starts_with(noun));
        commands.fold(Vec::new(), |mut wrong, command| {
            wrong.extend(Some(summary(command.get_about())).filter(|about| !is_short(about) || is_noun(about)));
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let help = summary(argument.get_help());
                let says_default = argument.is_required_set()
                    || help.contains("[default")
                    || !argument.get_default_values().is_empty() && !argument.is_hide_default_value_set();
                let says_all = !is_noun(&help) && (says_default || !argument.get_action().takes_values());
                let is_right = is_short(&help) && (argument.is_positional() || says_all);
                wrong.extend((!is_right).then(|| format!("{} {}: {help}", command.get_name(), argument.get_id())));
            }
            wrong.extend(wrong_summaries(command));
            wrong
        })
    }
}
