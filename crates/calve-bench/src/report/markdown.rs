use calve_receipt::bench::{NotRun, NotRunReason};

use super::{Report, Table};

impl Report {
    /// Returns the report as Markdown, with aligned columns for terminals.
    pub fn markdown(&self) -> String {
        let mut text = format!("# calve bench {}\n\n", self.document.bench);
        text.push_str(&list(self.circumstances.iter().map(|(label, line)| format!("{label}: {line}"))));
        for section in &self.sections {
            text.push_str(&format!("\n## {}\n", section.title));
            if !section.lines.is_empty() {
                text.push('\n');
                text.push_str(&list(section.lines.iter().map(|(label, line)| format!("{label}: {line}"))));
            }
            for table in &section.tables {
                let title = if table.title.is_empty() { String::new() } else { format!("{}:\n\n", table.title) };
                text.push_str(&format!("\n{title}{}", aligned(table)));
            }
            if !section.note.is_empty() {
                text.push_str(&format!("\n{}\n", section.note));
            }
        }
        let in_words = |not_run: &NotRun| {
            let remedy = not_run.remedy.as_ref().map_or_else(String::new, |remedy| format!(" ({remedy})"));
            format!("`{}`: {}{remedy}", not_run.command, not_run.reason)
        };
        let not_run =
            |why| self.document.not_run.iter().filter(move |not_run| not_run.why == why).map(in_words).collect();
        let lists: [(&str, Vec<String>); 5] = [
            ("Notes", self.notes.clone()),
            ("Not installed", not_run(NotRunReason::Missing)),
            ("Not possible here", not_run(NotRunReason::Refused)),
            ("Warnings", self.document.warnings.iter().map(|warning| warning.message.clone()).collect()),
            ("In short", self.document.conclusions.clone()),
        ];
        for (title, lines) in lists {
            if !lines.is_empty() {
                text.push_str(&format!("\n{title}:\n\n{}", list(lines)));
            }
        }
        text
    }
}

fn list(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| format!("- {line}\n")).collect()
}

fn aligned(table: &Table) -> String {
    let is_text = |column: usize| column < table.text_columns || table.head[column].is_empty();
    let head = table.head.iter().map(|&column| column.to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(&table.lines).collect();
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..table.head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = line.get(column).map_or_else(String::new, |cell| cell.replace('|', "\\|"));
            // Numbers on the right, so that they can be compared.
            let padded = if is_text(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text.push_str(&format!("| {padded} "));
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                text.push_str(&if is_text(column) { format!("|{dashes}-") } else { format!("|{dashes}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}
