//! Plots as SVG in percent of the width, so that they fit every screen and their text keeps its size.

use calve_receipt::bench::Side;

use super::html::{escaped, rich};
use super::{Chart, Run, shown};
use crate::stats::{Summary, median};

pub(super) fn bars(chart: &Chart) -> String {
    let Chart { bars, unit, .. } = chart;
    let most = bars.iter().flat_map(|bar| &bar.values).copied().fold(0.0, f64::max);
    let step = tick(most);
    // Room on the right for the whiskers' ends.
    let percent = |value: f64| 98.0 * value / most.max(f64::MIN_POSITIVE);
    let ticks: Vec<f64> = (0..).map(|n| f64::from(n) * step).take_while(|at| *at <= most && step > 0.0).collect();
    let grid: String = ticks.iter().map(|at| line("grid", percent(*at), "0", percent(*at), "100%")).collect();
    let mut html = String::from("<div class=\"chart\">\n");
    for bar in bars {
        let Some(summary) = Summary::of(&bar.values) else { continue };
        let (low, middle, high) = (percent(summary.min), percent(summary.median), percent(summary.max));
        let dots: String = bar.values.iter().map(|value| dot("run", percent(*value), "14", "2.5", "")).collect();
        let class = if bar.side == Side::Calve { "row ours" } else { "row" };
        html.push_str(&format!(
            "<div class=\"{class}\"><div class=\"label\">{}</div><svg role=\"img\" aria-label=\"{explanation}\">\
             <title>{explanation}</title>{grid}<rect class=\"bar\" x=\"0\" y=\"6\" width=\"{middle:.2}%\" height=\"16\" rx=\"2\"/>\
             {}{}{}{dots}</svg><div class=\"value\">{}</div></div>\n",
            label(&bar.label, &bar.tag),
            line("whisker", low, "14", high, "14"),
            line("whisker", low, "10", low, "18"),
            line("whisker", high, "10", high, "18"),
            escaped(&unit(summary.median)),
            explanation = escaped(&bar.explanation),
        ));
    }
    let labels: String = ticks
        .iter()
        .map(|at| {
            let anchor = match percent(*at) {
                0.0 => "start",
                near_the_end if near_the_end > 93.0 => "end",
                _ => "middle",
            };
            // Zero of what is plain from the others.
            let text = if *at == 0.0 { "0".to_owned() } else { unit(*at) };
            format!("<text x=\"{:.2}%\" y=\"12\" text-anchor=\"{anchor}\">{}</text>", percent(*at), escaped(&text))
        })
        .collect();
    html.push_str(&format!("<div class=\"row axis\"><svg aria-hidden=\"true\">{labels}</svg></div>\n</div>\n"));
    html
}

/// Returns a round number that goes three to six times into `most`.
fn tick(most: f64) -> f64 {
    if most <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf((most / 3.0).log10().floor());
    let step = [5.0, 2.0, 1.0].into_iter().map(|factor| factor * power).find(|step| *step <= most / 3.0);
    step.unwrap_or(power)
}

fn label(label: &str, tag: &str) -> String {
    let tag = if tag.is_empty() { String::new() } else { format!(" <span class=\"tag\">{}</span>", rich(tag)) };
    rich(label) + &tag
}

/// Draws every run in the order in which it happened, relative to the median of its command.
pub(super) fn drift(runs: &[Run]) -> String {
    let bounds = |bound: f64, pick: fn(f64, f64) -> f64| runs.iter().map(|run| run.relative).fold(bound, pick);
    let (low, high) = (bounds(0.9, f64::min), bounds(1.1, f64::max));
    let last = runs.iter().map(|run| run.position).max().unwrap_or(0).max(1);
    // A margin on the left for the numbers, and a little everywhere so that no dot is cut.
    let x = |position: f64| 9.0 + 89.0 * position / last as f64;
    let y = |relative: f64| 94.0 - 88.0 * (relative - low) / (high - low);
    let mut svg = String::new();
    let step = tick(high - low);
    let first = (low / step).ceil() as i64;
    for at in (first..).map(|n| n as f64 * step).take_while(|at| *at <= high + 1e-9) {
        let class = if (at - 1.0).abs() < 1e-9 { "one" } else { "grid" };
        let height = y(at);
        svg.push_str(&format!(
            "<line class=\"{class}\" x1=\"8%\" y1=\"{height:.2}%\" x2=\"100%\" y2=\"{height:.2}%\"/>\
             <text x=\"0\" y=\"{height:.2}%\" dy=\"4\">{at:.2}</text>"
        ));
    }
    for round in 1..=runs.iter().map(|run| run.round).max().unwrap_or(0) {
        let of_round = || runs.iter().filter(|run| run.round == round);
        let (Some(begin), Some(end)) =
            (of_round().map(|run| run.position).min(), of_round().map(|run| run.position).max())
        else {
            continue;
        };
        if round > 1 {
            svg.push_str(&line("round", x(begin as f64 - 0.5), "0", x(begin as f64 - 0.5), "100%"));
        }
        if let Some(middle) = median(&of_round().map(|run| run.relative).collect::<Vec<_>>()) {
            let (left, right, height) = (x(begin as f64), x(end as f64), y(middle));
            svg.push_str(&format!(
                "<line class=\"middle\" x1=\"{left:.2}%\" y1=\"{height:.2}%\" x2=\"{right:.2}%\" y2=\"{height:.2}%\">\
                 <title>round {round}: median {middle:.2}</title></line>"
            ));
        }
    }
    for run in runs {
        let class = if run.side == Side::Calve { "run ours" } else { "run" };
        let title = format!("round {}: {} {} ({:.2})", run.round, run.command, shown(run.seconds), run.relative);
        let height = format!("{:.2}%", y(run.relative));
        svg.push_str(&dot(class, x(run.position as f64), &height, "4", &title));
    }
    let words = "all runs in order, each as a multiple of the median of its command";
    format!(
        "<svg class=\"drift\" role=\"img\" aria-label=\"{words}\">{svg}</svg>\n\
         <p class=\"key\"><span class=\"ours\">●</span> Calve <span class=\"peer\">●</span> others <span class=\"mid\">━</span> median \
         of a round</p>\n"
    )
}

fn line(class: &str, x1: f64, y1: &str, x2: f64, y2: &str) -> String {
    format!("<line class=\"{class}\" x1=\"{x1:.2}%\" y1=\"{y1}\" x2=\"{x2:.2}%\" y2=\"{y2}\"/>")
}

fn dot(class: &str, x: f64, y: &str, radius: &str, title: &str) -> String {
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) };
    format!("<circle class=\"{class}\" cx=\"{x:.2}%\" cy=\"{y}\" r=\"{radius}\">{title}</circle>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (most, expected) in [(1.0, 0.2), (7.4, 2.0), (14.9, 2.0), (15.0, 5.0), (0.0101, 0.002), (3e8, 1e8)] {
            let step = tick(most);
            assert!((step / expected - 1.0).abs() < 1e-9, "{most}: {step}");
            assert!((3.0..=7.5).contains(&(most / step)), "{most}: {step}");
        }
        assert_eq!(tick(0.0), 0.0);
    }
}
