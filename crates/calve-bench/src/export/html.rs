//! The report as one HTML file that needs nothing else: no script, no picture, no font of others.

use super::markdown::{absent, cells, circumstances, columns, disk, notes};
use super::plot::{self, Bar};
use crate::report::{Disk, Report, shown};
use crate::stats::Summary;
use crate::workload::{Group, Row, Side};

const STYLE: &str = include_str!("report.css");

pub(crate) fn document(report: &Report) -> String {
    let title = format!("calve bench {}", report.bench);
    let mut body = format!("<h1>{title}</h1>\n<p class=\"lead\">{}</p>\n", rich(&report.subject));
    body.push_str(&list("summary", &report.conclusions()));
    if !report.warnings.is_empty() {
        let warnings: Vec<String> = report.warnings.iter().map(|warning| warning.message.clone()).collect();
        let open = if warnings.len() > 4 { "" } else { " open" };
        let how_many =
            if warnings.len() == 1 { "1 warning".to_owned() } else { format!("{} warnings", warnings.len()) };
        body.push_str(&format!("<details class=\"warnings\"{open}><summary>{how_many}</summary>\n"));
        body.push_str(&list("", &warnings));
        body.push_str("</details>\n");
    }
    for group in groups(report) {
        body.push_str(&format!("<h2>Time: {}</h2>\n", group.name));
        body.push_str(&times(report, group));
        if !group.note.is_empty() {
            body.push_str(&format!("<p class=\"note\">{}</p>\n", rich(group.note)));
        }
    }
    let (heading, how) = match report.disk {
        Disk::Taken => ("Disk space taken", "fuller"),
        Disk::Gained => ("Disk space gained", "emptier"),
    };
    body.push_str(&format!("<h2>{heading}</h2>\n"));
    body.push_str(&spaces(report));
    body.push_str(&format!(
        "<p class=\"note\">How much {how} the file system was after a run, everything written out, as <code>df</code> counts.</p>\n",
    ));
    body.push_str("<h2>In the order in which they ran</h2>\n");
    body.push_str(&plot::drift(report));
    body.push_str(
        "<p class=\"note\">Each run, as a multiple of the median of its own command. A slope, or a round that lies higher than the \
         others, is the machine and not a command.</p>\n",
    );
    body.push_str("<h2>All numbers</h2>\n");
    body.push_str(&table(report));
    for (heading, lines) in [
        ("Notes", notes(report)),
        ("Not installed", absent(report.missing())),
        ("Not possible here", absent(report.refused())),
    ] {
        if !lines.is_empty() {
            body.push_str(&format!("<h2>{heading}</h2>\n{}", list("", &lines)));
        }
    }
    body.push_str("<h2>Circumstances</h2>\n<dl>\n");
    for (label, text) in circumstances(report) {
        body.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), rich(&text)));
    }
    body.push_str("</dl>\n");
    page(&title, &body)
}

/// The whole file.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn groups(report: &Report) -> Vec<&'static Group> {
    let mut groups: Vec<&Group> = report.measured().map(|(row, _)| row.workload.group).collect();
    groups.dedup();
    groups
}

fn times(report: &Report, group: &Group) -> String {
    let rows = report.measured().filter(|(row, _)| row.workload.group == group);
    let bars: Vec<Bar> = rows
        .map(|(row, summary)| Bar {
            label: label(report, row),
            value: shown(summary.median),
            is_ours: row.workload.side != Side::Peer,
            explanation: format!(
                "median {}, {} to {}, {:.2} times the fastest",
                shown(summary.median),
                shown(summary.min),
                shown(summary.max),
                report.ratio(row)
            ),
            values: row.seconds(),
        })
        .collect();
    plot::bars(&bars, shown)
}

fn spaces(report: &Report) -> String {
    let sign = if report.disk == Disk::Gained { -1 } else { 1 };
    let words = |bytes: f64| disk(report, bytes as i64 * sign);
    let bars: Vec<Bar> = report
        .measured()
        .filter_map(|(row, _)| {
            let values: Vec<f64> = row.samples.iter().map(|sample| (sample.disk_bytes * sign).max(0) as f64).collect();
            let middle = Summary::of(&values)?.median;
            Some(Bar {
                label: format!("<code>{}</code>{}", escaped(&row.workload.command), row.workload.group.mark),
                value: words(middle),
                is_ours: row.workload.side != Side::Peer,
                explanation: format!("median {}", words(middle)),
                values,
            })
        })
        .collect();
    plot::bars(&bars, words)
}

fn label(report: &Report, row: &Row) -> String {
    let command = format!("<code>{}</code>{}", escaped(&row.workload.command), row.workload.group.mark);
    let tag = |ours: &str| format!(" <span class=\"tag\">faster than <code>{}</code></span>", escaped(ours));
    command + &report.beats(row).map_or_else(String::new, tag)
}

fn table(report: &Report) -> String {
    let columns = columns(report);
    let head: String = columns.iter().map(|column| format!("<th>{}</th>", escaped(column))).collect();
    let mut html = format!("<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
    for (row, summary) in report.measured() {
        let class = if row.workload.side == Side::Peer { "" } else { " class=\"ours\"" };
        let cells: String =
            cells(report, row, &summary).iter().map(|cell| format!("<td>{}</td>", rich(cell))).collect();
        html.push_str(&format!("<tr{class}>{cells}</tr>\n"));
    }
    for row in report.failed() {
        let reason = row.failed.as_ref().map_or("", |failed| failed.reason.as_str());
        let (command, span) = (escaped(&row.workload.command), columns.len() - 1);
        html.push_str(&format!(
            "<tr class=\"failed\"><td><code>{command}</code></td><td colspan=\"{span}\">failed: {}</td></tr>\n",
            rich(reason)
        ));
    }
    html + "</tbody>\n</table></div>\n"
}

pub(crate) fn list(class: &str, lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", rich(line))).collect();
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<ul{class}>\n{items}</ul>\n")
}

/// Text with `code` in it.
pub(crate) fn rich(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // Without a partner for each: names of files may have one.
        return escaped(text);
    }
    let wrapped = parts
        .iter()
        .enumerate()
        .map(|(number, part)| if number % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) });
    wrapped.collect()
}

pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(rich("a `<b>` & 'c'"), "a <code>&lt;b&gt;</code> &amp; &#39;c&#39;");
        assert_eq!(rich("one ` alone <"), "one ` alone &lt;");
        assert_eq!(escaped("\"<script>\""), "&quot;&lt;script&gt;&quot;");
    }
}
