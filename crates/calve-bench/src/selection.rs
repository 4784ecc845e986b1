//! `--only`: some of the commands, by name.

use std::fmt::Display;

use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::report::Report;

pub(super) struct Selection {
    /// Without the places. `None`: all.
    names: Option<Vec<String>>,
}

impl Selection {
    /// Chooses by name: a command without its places (`cp -a`, `calve cp --strategy copy`), or a whole program.
    pub(super) fn new(names: &[String], known: &[String]) -> Result<Self, BenchError> {
        let known = distinct(known.iter().map(|command| label(command)));
        let mut wanted = Vec::new();
        for name in names {
            let words = name.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_command = known.contains(&words);
            let is_meant = |label: &&String| if is_command { **label == words } else { program(label) == words };
            let found: Vec<String> = known.iter().filter(is_meant).cloned().collect();
            if found.is_empty() {
                let text = format!("`{}` names no command of this bench", name.escape_debug());
                let names = distinct(known.iter().flat_map(|label| [program(label), label]));
                return Err(BenchError::usage(text, Remedy::NameCommand(quoted(&names))));
            }
            wanted.extend(found);
        }
        Ok(Self { names: (!names.is_empty()).then_some(wanted) })
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        let Some(names) = &self.names else { return };
        report.circumstance("Commands", format!("only those asked for: {}", quoted(names)));
        report.document.facts.commands_chosen = Some(names.clone());
    }

    pub(super) fn takes(&self, command: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(&label(command)))
    }
}

fn label(command: &str) -> String {
    command.split(' ').filter(|word| !["SRC", "SRC/", "DST", "A", "B"].contains(word)).collect::<Vec<_>>().join(" ")
}

fn program(label: &str) -> &str {
    label.split(' ').next().unwrap_or(label)
}

fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

fn quoted(names: &[impl Display]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::known_commands;

    fn taken(names: &[&str]) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::new(&names, &known_commands()).unwrap();
        known_commands().into_iter().filter(|command| selection.takes(command)).collect()
    }

    #[test]
    fn a_command_is_named_without_its_places_and_a_program_means_all_of_its_commands() {
        assert_eq!(taken(&[]), known_commands());
        assert_eq!(taken(&["calve cp", "cpz"]), ["cpz SRC DST", "calve cp SRC DST"]);
        assert_eq!(taken(&[" calve  cp --strategy copy "]), ["calve cp --strategy copy SRC DST"]);
        let of_rsync = taken(&["rsync"]);
        assert!(of_rsync.len() == 2 && of_rsync.iter().all(|command| command.starts_with("rsync ")), "{of_rsync:?}");
        assert!(taken(&["calve"]).len() >= 6);
    }

    #[test]
    fn every_known_command_has_a_name_of_its_own() {
        let labels: Vec<String> = known_commands().iter().map(|command| label(command)).collect();
        for (index, one) in labels.iter().enumerate() {
            assert!(!labels[..index].contains(one), "{one}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in ["cq", "", "cp -x", "calve cp --strategy overlay"] {
            let Err(BenchError::Usage { remedy: Remedy::NameCommand(names), .. }) =
                Selection::new(&["cp".into(), name.into()], &known_commands())
            else {
                panic!("{name}")
            };
            for known in ["`cp`", "`rsync -a`", "`calve cp --strategy hardlink`", "`cpz`"] {
                assert!(names.contains(known), "{names}");
            }
        }
    }
}
