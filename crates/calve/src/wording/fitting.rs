//! Fits hints to the running command: the shared wordings mention options that some commands lack.

use std::sync::OnceLock;

use calve_agent::mcp::HINTS_FOR_AGENT;
use clap::{ArgMatches, Command};

/// The running command's options, as typed.
static OPTIONS: OnceLock<Vec<String>> = OnceLock::new();

const LOSING: &[&str] = &["-f", "--force", "--lose-data"];

/// Records the command's options, but none for an agent: its hints must not teach it to bypass a refusal.
pub(crate) fn note_options(parser: &Command, matches: &ArgMatches) {
    let for_agent = std::env::var_os(HINTS_FOR_AGENT).is_some() || is_hook_of_agent(matches);
    let _ = OPTIONS.set(if for_agent { vec![] } else { options_of(parser, matches) });
}

fn is_hook_of_agent(matches: &ArgMatches) -> bool {
    let hook = matches.subcommand_matches("hook").and_then(ArgMatches::subcommand_name);
    hook.is_some_and(|name| name.starts_with("worktree-"))
}

fn options_of(parser: &Command, matches: &ArgMatches) -> Vec<String> {
    match matches.subcommand().and_then(|(name, inner)| Some((parser.find_subcommand(name)?, inner))) {
        Some((command, inner)) => options_of(command, inner),
        None => typed(parser),
    }
}

fn typed(command: &Command) -> Vec<String> {
    let long = command.get_arguments().flat_map(|one| one.get_long_and_visible_aliases().unwrap_or_default());
    let short = command.get_arguments().flat_map(|one| one.get_short_and_visible_aliases().unwrap_or_default());
    long.map(|name| format!("--{name}")).chain(short.map(|name| format!("-{name}"))).collect()
}

/// Drops clauses of a hint that name options which the command lacks. The result may be empty.
pub(crate) fn fitting(hint: String) -> String {
    match OPTIONS.get() {
        Some(options) => without_others(&hint, options),
        None => hint,
    }
}

fn without_others(hint: &str, options: &[String]) -> String {
    let kept: String = clauses(hint).into_iter().filter(|clause| fits(clause, options)).collect();
    let begins = kept.trim_start_matches([';', ',', ' ']);
    begins.strip_prefix("or ").unwrap_or(begins).to_owned()
}

/// Splits a hint before each droppable clause.
fn clauses(hint: &str) -> Vec<&str> {
    let is_quoted = |at: usize| hint[..at].matches('`').count() % 2 == 1;
    let starts = ["; ", ", or "].into_iter().flat_map(|between| hint.match_indices(between)).map(|(at, _)| at);
    let mut cuts: Vec<_> = starts.filter(|&at| !is_quoted(at)).chain([0, hint.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &hint[pair[0]..pair[1]]).collect()
}

/// Returns whether the command has every option that the clause names alone, not after another command's name.
fn fits(clause: &str, options: &[String]) -> bool {
    let quoted = || clause.split('`').skip(1).step_by(2);
    let named = quoted()
        .filter(|text| text.starts_with('-') && !text.trim_matches('-').is_empty())
        .filter_map(|text| text.split([' ', '=']).next());
    // An agent would also follow another command's `-f`.
    let is_forced =
        options.is_empty() && clause.split(|c: char| c.is_whitespace() || c == '`').any(|word| LOSING.contains(&word));
    !is_forced && named.into_iter().all(|option| options.iter().any(|one| one == option))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;

    fn fitting(hint: &str, options: &[&str]) -> String {
        without_others(hint, &options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_clause_with_an_option_that_the_command_lacks_is_left_out() {
        let forced = "commit or stash them, or pass `-f` to lose them";
        assert_eq!(fitting(forced, &["-f"]), forced);
        assert_eq!(fitting(forced, &["--json"]), "commit or stash them");
        assert_eq!(fitting("`-f` discards it; keep it, or `git commit`", &[]), "keep it, or `git commit`");
        assert_eq!(fitting("run `git a; -f`; or leave out `--require x`", &["--into"]), "run `git a; -f`");
        assert_eq!(
            fitting("`calve worktree remove -f` forgets it", &["--json"]),
            "`calve worktree remove -f` forgets it"
        );
        assert_eq!(fitting("look; `calve worktree remove -f` forgets it", &[]), "look");
        assert_eq!(fitting("keep it, or lose it: add `--lose-data` to this command", &[]), "keep it");
        assert_eq!(fitting("check the command after `--`", &[]), "check the command after `--`");
        assert_eq!(fitting("no `..`, and no `-` at the front", &[]), "no `..`, and no `-` at the front");
        assert_eq!(fitting("`--older-than AGE`, such as 0h, removes it", &[]), "");
    }

    /// Files with words of remedies that are not called `remedy.rs` and not below `wording`.
    const OTHER_WORDS: &[&str] = &[
        "calve-git/src/escape/report.rs",
        "calve-git/src/remote/notice.rs",
        "calve-git/src/transfer_failure.rs",
        "calve/src/failure.rs",
        "calve/src/output.rs",
    ];

    /// Returns the words of all remedies, and the hints that commands state themselves.
    fn worded() -> Vec<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let (mut hints, mut ahead) = (Vec::new(), vec![crates.to_path_buf()]);
        while let Some(path) = ahead.pop() {
            let below = path.strip_prefix(crates).unwrap();
            if path.is_dir() && !path.ends_with("tests") {
                ahead.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(file!()) {
                let source = fs_err::read_to_string(&path).unwrap();
                let is_wording =
                    below.starts_with("calve/src/wording") || OTHER_WORDS.iter().any(|one| below.ends_with(one));
                if is_wording || path.ends_with("remedy.rs") {
                    // A string that begins with a dash is an argument of another command in the hint.
                    hints.extend(strings(&source).into_iter().filter(|text| !text.starts_with('-')));
                } else {
                    assert!(!source.contains("enum Remedy {"), "`{}` is not looked at", path.display());
                    hints.extend(source.split("Failure::stated(").skip(1).filter_map(|rest| strings(call(rest)).pop()));
                }
            }
        }
        hints
    }

    /// Returns the arguments of a call, up to its closing parenthesis.
    fn call(rest: &str) -> &str {
        let (mut depth, mut is_string, mut before) = (1, false, ' ');
        let end = rest.find(|c: char| {
            match c {
                '"' if before != '\\' => is_string = !is_string,
                '(' if !is_string => depth += 1,
                ')' if !is_string => depth -= 1,
                _ => {}
            }
            before = c;
            depth == 0
        });
        &rest[..end.unwrap()]
    }

    /// Returns the strings in a source, without those of its tests.
    fn strings(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = source.lines().map(|line| line.trim_start()).filter(|line| !line.starts_with("//"));
        let source = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "").replace("\\\"", "");
        source.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Returns the options that a hint means for the command that prints it: those that follow no name of a program.
    fn own_options(hint: &str) -> Vec<String> {
        const PROGRAMS: &[&str] = &[
            "calve", "chattr", "chmod", "df", "docker", "git", "losetup", "ls", "mkdir", "sudo", "truncate", "ulimit",
            "usermod",
        ];
        let mut found = Vec::new();
        for (at, part) in hint.split('`').enumerate() {
            let parts: Vec<&str> =
                if at % 2 == 1 { vec![part] } else { part.split(['(', ')', ',', ';', ':']).collect() };
            for words in parts.iter().map(|part| part.split_whitespace()) {
                let is_another = |word: &&str| PROGRAMS.contains(word) || at % 2 == 1 && !word.starts_with('-');
                let own = words.clone().next().filter(|word| !is_another(word)).map(|_| words);
                let options = own.into_iter().flatten().map(|word| word.split('=').next().unwrap_or_default());
                found.extend(options.filter(|word| word.starts_with('-') && !word.trim_matches('-').is_empty()));
            }
        }
        found.into_iter().map(str::to_owned).collect()
    }

    fn all_commands(parser: &Command) -> Vec<&Command> {
        let below = parser.get_subcommands().flat_map(all_commands);
        std::iter::once(parser).chain(below).collect()
    }

    /// Every remedy with every command, as no table says which can meet.
    #[test]
    fn no_hint_names_an_option_that_the_command_lacks() {
        assert_eq!(own_options("name it with --a, or `-b=1`: calve x --c; (ls -l) and `git d -e`"), ["--a", "-b"]);
        let mut parser = crate::cli::with_all_commands(crate::cli::Arguments::command());
        parser.build();
        let hints = worded();
        let with_options = hints.iter().filter(|hint| !own_options(hint).is_empty()).count();
        assert!(hints.len() > 300 && with_options > 40, "{} hints, {with_options} with options", hints.len());
        for command in all_commands(&parser) {
            let options = typed(command);
            for hint in &hints {
                let shown = without_others(hint, &options);
                let lacking: Vec<_> = own_options(&shown).into_iter().filter(|one| !options.contains(one)).collect();
                assert!(lacking.is_empty(), "{} has no {lacking:?}: {shown}", command.get_name());
            }
        }
    }

    #[test]
    fn options_are_those_of_the_innermost_command() {
        let parser = crate::cli::with_all_commands(crate::cli::Arguments::command());
        let options = |line: &str| {
            let matches = parser.clone().try_get_matches_from(line.split(' ')).unwrap();
            options_of(&parser, &matches)
        };
        let has = |line: &str, option: &str| options(line).iter().any(|one| one == option);
        assert!(has("calve worktree remove x", "-f") && has("calve worktree remove x", "--force"));
        let parsed = |line: &str| parser.clone().try_get_matches_from(line.split(' ')).unwrap();
        assert!(is_hook_of_agent(&parsed("calve hook worktree-remove --force")));
        assert!(!is_hook_of_agent(&parsed("calve hook approve")));
        assert!(has("calve cp a b", "--replace") && !has("calve worktree add x", "--replace"));
    }
}
