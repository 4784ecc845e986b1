//! The report as one HTML file that needs nothing else: no script, no picture, no font of others.

use calve_receipt::bench::Side;

use super::plot;
use super::{Report, Section, Table};

const STYLE: &str = include_str!("report.css");

pub(super) fn page(report: &Report) -> String {
    let title = format!("calve bench {}", report.document.bench);
    let mut body = format!("<h1>{title}</h1>\n<p class=\"lead\">{}</p>\n", rich(&report.subject));
    body.push_str(&list("summary", &report.document.conclusions));
    let warnings = report.warnings();
    if !warnings.is_empty() {
        let open = if warnings.len() > 4 { "" } else { " open" };
        let how_many = super::counted(warnings.len() as u64, "warning");
        let list = list("", &warnings);
        body.push_str(&format!("<details class=\"warnings\"{open}><summary>{how_many}</summary>\n{list}</details>\n"));
    }
    body.extend(report.sections.iter().map(section));
    if !report.timeline.is_empty() {
        body.push_str("<h2>In the order in which they ran</h2>\n");
        body.push_str(&plot::drift(&report.timeline));
        body.push_str(
            "<p class=\"note\">Each run, as a multiple of the median of its own command. A slope, or a round that lies higher \
             than the others, is the machine and not a command.</p>\n",
        );
    }
    for (heading, lines) in report.lists() {
        if !lines.is_empty() {
            body.push_str(&format!("<h2>{heading}</h2>\n{}", list("", &lines)));
        }
    }
    body.push_str(&format!("<h2>Circumstances</h2>\n{}", definitions(&report.circumstances)));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn section(section: &Section) -> String {
    let mut html = format!("<h2>{}</h2>\n", rich(&section.title));
    if !section.lines.is_empty() {
        html.push_str(&definitions(&section.lines));
    }
    for chart in section.charts.iter().filter(|chart| !chart.bars.is_empty()) {
        html.push_str(&format!("<h3>{}</h3>\n{}", escaped(&chart.title), plot::bars(chart)));
    }
    for one in &section.tables {
        if !one.title.is_empty() {
            html.push_str(&format!("<h3>{}</h3>\n", escaped(one.title)));
        }
        html.push_str(&table(one));
    }
    if !section.note.is_empty() {
        html.push_str(&format!("<p class=\"note\">{}</p>\n", rich(section.note)));
    }
    html
}

fn table(table: &Table) -> String {
    let head: String = table.head.iter().map(|column| format!("<th>{}</th>", escaped(column))).collect();
    let mut html = format!("<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
    for (side, line) in &table.lines {
        let class = if *side == Side::Peer { "" } else { " class=\"ours\"" };
        let cells: String = line.iter().map(|cell| format!("<td>{}</td>", rich(cell))).collect();
        html.push_str(&format!("<tr{class}>{cells}</tr>\n"));
    }
    html + "</tbody>\n</table></div>\n"
}

fn definitions(lines: &[(&str, String)]) -> String {
    let items: String =
        lines.iter().map(|(label, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(label), rich(text))).collect();
    format!("<dl>\n{items}</dl>\n")
}

fn list(class: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", rich(line))).collect();
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<ul{class}>\n{items}</ul>\n")
}

/// Marks up text with `code` in it.
pub(super) fn rich(text: &str) -> String {
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

pub(super) fn escaped(text: &str) -> String {
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
