//! The report as one HTML file that needs nothing else.

use super::report::{Report, TIMES, shown};
use crate::export::html::{escaped, list, page, rich};
use crate::export::plot::{self, Bar};
use crate::stats::Summary;

pub(crate) fn document(report: &Report) -> String {
    let mut body = String::from("<h1>calve bench db</h1>\n");
    body.push_str("<p class=\"lead\">What a server on a clone of a template costs, by strategy.</p>\n");
    body.push_str(&table(&report.table()));
    for time in &TIMES {
        let bars: Vec<Bar> = report
            .measured()
            .filter_map(|row| {
                let values = row.values(time);
                let summary = Summary::of(&values)?;
                let (middle, min, max) = (shown(summary.median), shown(summary.min), shown(summary.max));
                Some(Bar {
                    label: escaped(&row.strategy.to_string()),
                    explanation: format!("median {middle}, {min} to {max}"),
                    value: middle,
                    is_ours: true,
                    values,
                })
            })
            .collect();
        if !bars.is_empty() {
            body.push_str(&format!("<h2>{}</h2>\n{}", escaped(time.title), plot::bars(&bars, shown)));
        }
    }
    if let Some(timeline) = report.timeline() {
        body.push_str("<h2>Worst latency in each second of the write load, of all runs</h2>\n");
        body.push_str(&table(&timeline));
    }
    if !report.absent().is_empty() {
        body.push_str(&format!("<h2>Not measured</h2>\n{}", list("", &report.absent())));
    }
    body.push_str("<h2>Circumstances</h2>\n<dl>\n");
    for (label, text) in report.circumstances() {
        body.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), rich(&text)));
    }
    body.push_str("</dl>\n");
    page("calve bench db", &body)
}

fn table(lines: &[Vec<String>]) -> String {
    let row = |line: &Vec<String>, cell: &str| {
        line.iter().map(|text| format!("<{cell}>{}</{cell}>", rich(text))).collect::<String>()
    };
    let Some((head, lines)) = lines.split_first() else { return String::new() };
    let body: String = lines.iter().map(|line| format!("<tr>{}</tr>\n", row(line, "td"))).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        row(head, "th")
    )
}
