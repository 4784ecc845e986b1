//! The manual pages: one for each command, without a warning from the programs that show them.

use std::process::Command;

use calve_testkit::require_program;

use crate::program::calve;
use crate::spot::{Spot, names};

/// The commands below a command, as its `--help` lists them.
pub(crate) fn commands_below(path: &[String]) -> Vec<String> {
    let help = calve(path).arg("--help").succeeds().stdout;
    // All of Calve's are in groups.
    let heading = if path.is_empty() { "Trees:" } else { "Commands:" };
    let listed = help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    // What goes over several lines is indented more.
    let commands = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    commands.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// The names of the pages that there must be, for a command and all below it.
fn pages_of(path: &[String]) -> Vec<String> {
    let mut pages = vec![[&["calve".to_owned()], path].concat().join("-") + ".1"];
    for command in commands_below(path) {
        pages.extend(pages_of(&[path, &[command]].concat()));
    }
    pages
}

fn manual() -> Spot {
    let spot = Spot::anywhere();
    calve(["__man", "."]).within(&spot).succeeds();
    spot
}

#[test]
fn every_command_has_a_page() {
    let mut expected = pages_of(&[]);
    expected.sort();
    assert!(expected.contains(&"calve-cp.1".to_owned()), "{expected:?}");
    let spot = manual();
    assert_eq!(names(&spot), expected);
    // Examples stay lines.
    let page = fs_err::read_to_string(spot.join("calve-cp.1")).unwrap();
    assert!(page.contains("\n\\&  calve cp node_modules ../feature/node_modules\n"), "{page}");
    calve(["__man", "missing"]).within(&spot).fails(1).says(&["`missing/", "hint: check the spelling"]);
}

#[test]
fn pages_render_without_a_warning() {
    if !require_program("groff") {
        return;
    }
    let spot = manual();
    for page in names(&spot) {
        // Text alone, with no bold and no underlined letters.
        let mut groff = Command::new("groff");
        let output = groff.args(["-man", "-ww", "-Tutf8", "-P-cbou"]).arg(&page).current_dir(&spot).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{page}: {stderr}");
        // Lines are justified.
        let shown = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let name = page.trim_end_matches(".1");
        assert!(shown.contains("SYNOPSIS") && shown.contains(&format!("{name} - ")), "{shown}");
    }
}
