//! The report as one HTML file that needs nothing else.

use super::Row;
use super::report::{KEY, Layout, Report, lines, trial_lines, trials_title};
use crate::export::html::{escaped, list, page, rich};
use crate::export::plot::{self, Bar};
use crate::report::shown;

pub(crate) fn document(report: &Report) -> String {
    let mut body = String::from("<h1>calve bench write</h1>\n");
    body.push_str("<p class=\"lead\">Many small files, by the ways that Node has and by Calve's.</p>\n");
    body.push_str(&list("summary", &[report.conclusion()]));
    let warnings: Vec<String> = report.warnings().into_iter().map(|(_, message)| message).collect();
    if !warnings.is_empty() {
        body.push_str("<details class=\"warnings\" open><summary>Warnings</summary>\n");
        body.push_str(&list("", &warnings));
        body.push_str("</details>\n");
    }
    for layout in &report.layouts {
        body.push_str(&format!("<h2>{}</h2>\n", escaped(&layout.title())));
        let times: Vec<Bar> = layout.rows.iter().filter_map(|row| time(layout, row)).collect();
        if !times.is_empty() {
            body.push_str(&format!("<h3>Time</h3>\n{}", plot::bars(&times, shown)));
        }
        let stalls: Vec<Bar> = layout.rows.iter().filter_map(stall).collect();
        if !stalls.is_empty() {
            body.push_str(&format!(
                "<h3>Longest stall of the event loop in each run</h3>\n{}",
                plot::bars(&stalls, shown)
            ));
        }
        body.push_str(&table(&lines(layout)));
    }
    body.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(KEY)));
    if let Some((task, trials)) = report.trials() {
        body.push_str(&format!("<h2>{}</h2>\n{}", trials_title(task), table(&trial_lines(task, trials))));
    }
    body.push_str("<h2>Circumstances</h2>\n<dl>\n");
    for (label, text) in report.circumstances() {
        body.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), rich(&text)));
    }
    body.push_str("</dl>\n");
    page("calve bench write", &body)
}

fn time(layout: &Layout, row: &Row) -> Option<Bar> {
    let summary = row.summary()?;
    let (middle, min, max) = (shown(summary.median), shown(summary.min), shown(summary.max));
    let ratio = layout.ratio(&summary).map_or_else(String::new, |ratio| format!(", {ratio:.2} of the loop"));
    Some(Bar {
        label: escaped(&row.way.name),
        explanation: format!("median {middle}, {min} to {max}{ratio}"),
        value: middle,
        is_ours: row.way.kind.is_ours(),
        values: row.of(|outcome| outcome.seconds),
    })
}

fn stall(row: &Row) -> Option<Bar> {
    let longest = row.longest_stall().filter(|_| row.failed.is_none())?;
    Some(Bar {
        label: escaped(&row.way.name),
        value: shown(longest),
        explanation: format!("at most {}", shown(longest)),
        is_ours: row.way.kind.is_ours(),
        values: row.samples.iter().filter_map(|outcome| outcome.stall_seconds).collect(),
    })
}

fn table(lines: &[Vec<String>]) -> String {
    let row = |line: &[String], cell: &str| {
        let cells: String = line.iter().map(|text| format!("<{cell}>{}</{cell}>", rich(text))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let Some((head, lines)) = lines.split_first() else { return String::new() };
    let body: String = lines.iter().map(|line| row(line, "td")).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead>{}</thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        row(head, "th")
    )
}
