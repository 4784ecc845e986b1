//! The report as one HTML file that needs nothing else.

use super::report::{Report, Row};
use super::sample::Step;
use super::table::{Table, about, circumstances, tables};
use crate::export::html::{escaped, list, page, rich};
use crate::export::plot::{self, Bar};
use crate::report::shown;
use crate::stats::median;

pub(crate) fn document(report: &Report) -> String {
    let names: Vec<&str> = report.repositories.iter().map(|described| described.name.as_str()).collect();
    let mut body = format!(
        "<h1>calve bench git</h1>\n<p class=\"lead\">What each way to clone costs client and server: {}.</p>\n",
        escaped(&names.join(", "))
    );
    body.push_str(&list("summary", &report.conclusions()));
    if !report.warnings.is_empty() {
        let warnings: Vec<String> = report.warnings.iter().map(|warning| warning.message.clone()).collect();
        body.push_str("<details class=\"warnings\" open><summary>Warnings</summary>\n");
        body.push_str(&list("", &warnings));
        body.push_str("</details>\n");
    }
    for (index, described) in report.repositories.iter().enumerate() {
        body.push_str(&format!("<h2>{}</h2>\n", escaped(&described.name)));
        body.push_str(&definitions(&about(report, index)));
        let steps = [Step::Clone, Step::Fetch, Step::Reset, Step::Checkout, Step::Blame];
        for step in steps {
            let of_step = |row: &&Row| {
                row.repository == index && row.step == step && (step != Step::Clone || row.case.fetch.is_none())
            };
            let rows: Vec<&Row> = report.rows.iter().filter(of_step).collect();
            if rows.is_empty() {
                continue;
            }
            body.push_str(&format!("<h3>{}: time for the client</h3>\n", step.name()));
            body.push_str(&plot::bars(&rows.iter().map(|row| wall(row)).collect::<Vec<_>>(), shown));
            if rows.iter().any(|row| !row.server_cpu_ms().is_empty()) {
                body.push_str(&format!("<h3>{}: CPU of the server</h3>\n", step.name()));
                let bars: Vec<Bar> = rows.iter().filter_map(|row| server(row)).collect();
                body.push_str(&plot::bars(&bars, |ms| shown(ms / 1000.0)));
            }
        }
        for one in tables(report, index) {
            body.push_str(&format!("<h3>{}</h3>\n{}", escaped(one.title), table(&one)));
        }
    }
    body.push_str("<h2>Circumstances</h2>\n");
    body.push_str(&definitions(&circumstances(report)));
    page("calve bench git", &body)
}

fn definitions(lines: &[(&str, String)]) -> String {
    let items: String =
        lines.iter().map(|(label, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), rich(text))).collect();
    format!("<dl>\n{items}</dl>\n")
}

fn wall(row: &Row) -> Bar {
    let seconds = row.seconds();
    Bar {
        label: label(row),
        value: shown(seconds.median),
        explanation: format!("median {}, {} to {}", shown(seconds.median), shown(seconds.min), shown(seconds.max)),
        is_ours: !row.case.from_daemon,
        values: row.values(|sample| sample.seconds),
    }
}

fn server(row: &Row) -> Option<Bar> {
    let values = row.server_cpu_ms();
    let middle = shown(median(&values)? / 1000.0);
    let explanation = format!("median {middle}");
    Some(Bar { label: label(row), value: middle, explanation, is_ours: !row.case.from_daemon, values })
}

fn label(row: &Row) -> String {
    format!("{} {}", escaped(row.case.name), escaped(&row.case.in_words()))
}

fn table(table: &Table) -> String {
    let head: String = table.columns.iter().map(|column| format!("<th>{}</th>", escaped(column))).collect();
    let line = |line: &Vec<String>| {
        let cells: String = line.iter().map(|cell| format!("<td>{}</td>", rich(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let lines: String = table.lines.iter().map(line).collect();
    format!("<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}</tbody>\n</table></div>\n")
}
