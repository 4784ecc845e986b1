//! The report as Markdown, which is also what a terminal shows.

use super::report::Report;
use super::table::{Table, about, circumstances, tables};

pub(crate) fn document(report: &Report) -> String {
    let mut text = String::from("# calve bench git\n\n");
    for (label, line) in circumstances(report) {
        text.push_str(&format!("- {label}: {line}\n"));
    }
    for (index, described) in report.repositories.iter().enumerate() {
        text.push_str(&format!("\n## {}\n\n", described.name));
        for (label, line) in about(report, index) {
            text.push_str(&format!("- {label}: {line}\n"));
        }
        for one in tables(report, index) {
            text.push_str(&format!("\n{}:\n\n{}", one.title, table(&one)));
        }
    }
    let warnings: Vec<String> = report.warnings.iter().map(|warning| warning.message.clone()).collect();
    for (title, lines) in [("Warnings", warnings), ("In short", report.conclusions())] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}:\n\n"));
            lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        }
    }
    text
}

fn table(table: &Table) -> String {
    let head: Vec<String> = table.columns.iter().map(|column| (*column).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(&table.lines).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = line[column].replace('|', "\\|");
            // Numbers on the right, so that they can be compared.
            let padded = if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text.push_str(&format!("| {padded} "));
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                text.push_str(&if column < 2 { format!("|{dashes}-") } else { format!("|{dashes}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}
