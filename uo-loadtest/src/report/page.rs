//! `report.html`: the report as one page that needs nothing from elsewhere.
//!
//! The verdict comes first, then a few figures, then plots over one time axis under the steps that were done, then tables.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt::Write as _;

use super::charts;
use super::figures::ms_text;
use super::plot::{self, Plot, escape, number};
use super::text::grouped;
use super::{Report, Spread};

/// What the page looks like, in light and in dark.
const STYLE: &str = include_str!("page.css");
/// Lines of a list that are shown.
const LINES_MAX: usize = 30;

/// The page.
pub fn html(report: &Report) -> String {
    let mut page = String::new();
    let verdict = if report.has_passed() {
        "passed"
    } else {
        "failed"
    };
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Felucca: {} bots, {verdict}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        grouped(report.bots)
    );
    header(&mut page, report);
    tiles(&mut page, report);
    plots(&mut page, report);
    page.push_str("<div class=\"tables\">\n");
    steps(&mut page, report);
    bars(&mut page, report);
    times(&mut page, report);
    costs(&mut page, report);
    violations(&mut page, report);
    notes(&mut page, report);
    page.push_str("</div>\n</body>\n</html>\n");
    page
}

fn header(page: &mut String, report: &Report) {
    let (class, verdict) = if report.has_passed() {
        ("good", "✓ passed")
    } else {
        ("bad", "✗ failed")
    };
    let what = format!("{} bots for {:.0} s", grouped(report.bots), report.seconds);
    let _ = writeln!(
        page,
        "<header>\n<h1><span class=\"{class}\">{verdict}</span> {what}</h1>"
    );
    let mut where_to = format!("{} gateways, seed {}", report.gateways, report.seed);
    if let (Some(sims), Some(store)) = (report.sims, &report.store) {
        where_to = format!("{sims} sims, {where_to}, store {store}");
    }
    let _ = writeln!(page, "<p class=\"faint\">{}</p>", escape(&where_to));
    list(page, "why", &report.failures);
    page.push_str("</header>\n");
}

/// A few figures that tell most.
fn tiles(page: &mut String, report: &Report) {
    page.push_str("<ul class=\"tiles\">\n");
    let ms = |value: Option<f64>| value.map_or("–".into(), |ms| format!("{} ms", number(ms)));
    tile(
        page,
        "",
        &ms(report.order_to_delta_ms.p99),
        "order to delta, p99",
    );
    let gaps = report.player_gap_ms.by_cause().map(|(_, gap)| gap.max);
    let longest = gaps.into_iter().flatten().reduce(f64::max);
    tile(page, "", &ms(longest), "longest gap of a player");
    let lost = report.sessions.lost;
    tile(page, judged(lost == 0), &grouped(lost), "sessions lost");
    if let Some((late, total)) = report.ticks.late.zip(report.ticks.total) {
        let what = format!("late ticks of {}", grouped(total));
        tile(page, "", &grouped(late), &what);
    }
    let invariants = &report.invariants;
    if invariants.samples > 0 {
        let count = invariants.violations.len() as u64;
        let what = format!("violations in {} looks", grouped(invariants.samples));
        tile(page, judged(count == 0), &grouped(count), &what);
    }
    let proof = &report.proof;
    let broken = [
        proof.coins_lost,
        proof.coins_duplicated,
        proof.saved_lost,
        proof.view_errors,
    ];
    if broken.iter().any(Option::is_some) {
        let broken: u64 = broken.iter().flatten().sum();
        let class = judged(broken == 0);
        tile(page, class, &grouped(broken), "promises broken");
    }
    page.push_str("</ul>\n");
}

fn judged(is_good: bool) -> &'static str {
    if is_good { "good" } else { "bad" }
}

fn tile(page: &mut String, class: &str, value: &str, what: &str) {
    let _ = writeln!(
        page,
        "<li class=\"{class}\"><b>{}</b><span>{}</span></li>",
        escape(value),
        escape(what)
    );
}

fn plots(page: &mut String, report: &Report) {
    let charts = charts::charts(report);
    if charts.is_empty() {
        return;
    }
    let (marks, end_s) = (charts::marks(report), charts::end_s(report));
    page.push_str("<section class=\"plots\" aria-label=\"Plots over time\">\n");
    let strip = plot::strip(&marks, end_s);
    if !strip.is_empty() {
        let _ = write!(page, "<figure class=\"stick\">\n{strip}</figure>\n");
    }
    for chart in &charts {
        figure(page, chart, &plot::svg(chart, &marks, end_s));
    }
    page.push_str("</section>\n");
}

fn figure(page: &mut String, chart: &Plot, svg: &str) {
    let scale = if chart.scale.is_log() {
        ", logarithmic"
    } else {
        ""
    };
    let _ = write!(
        page,
        "<figure>\n<figcaption><b>{}</b> <span class=\"faint\">{}{scale} · {}</span></figcaption>\n{svg}</figure>\n",
        escape(&chart.title),
        chart.unit,
        escape(&chart.summary)
    );
}

fn steps(page: &mut String, report: &Report) {
    let rows = report.chaos.iter().enumerate().map(|(index, step)| {
        let at = format!("{:.1} s", step.at_s);
        let number = (index + 1).to_string();
        vec![number, at, step.step.clone(), step.outcome.clone()]
    });
    table(
        page,
        "What was done",
        &["#n", "#at", "step", "what came of it"],
        rows,
    );
}

fn bars(page: &mut String, report: &Report) {
    if report.bars.is_empty() {
        return;
    }
    page.push_str(
        "<section>\n<h2>Bars</h2>\n<table>\n\
         <tr><th>bar</th><th class=\"n\">measured</th><th>verdict</th></tr>\n",
    );
    for judged in &report.bars {
        let value = judged.value.map_or("not measured".into(), number);
        let (class, verdict) = if judged.is_met {
            ("met", "✓ met")
        } else {
            ("missed", "✗ not met")
        };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"n\">{value}</td><td class=\"{class}\">{verdict}</td></tr>",
            escape(&judged.bar)
        );
    }
    page.push_str("</table>\n</section>\n");
}

fn times(page: &mut String, report: &Report) {
    let row = |what: String, times: &Spread| {
        vec![
            what,
            grouped(times.count),
            ms_text(times.p50),
            ms_text(times.p99),
            ms_text(times.max),
        ]
    };
    let felt = report
        .player_gap_ms
        .by_cause()
        .into_iter()
        .map(|(cause, times)| (format!("gap of a player: {cause}"), times));
    let others = [
        ("resume of a session".to_owned(), &report.resume_ms),
        ("handoff between regions".to_owned(), &report.handoff_ms),
    ];
    let spreads = felt
        .chain(others)
        .filter(|(_, times)| times.count > 0)
        .map(|(what, times)| row(what, times));
    let lists = [
        ("regions held again after a loss", &report.failover_ms),
        ("drain of a node", &report.drain_ms),
        ("stop of a node", &report.stop_ms),
    ];
    let lists = lists
        .into_iter()
        .filter(|(_, times)| !times.is_empty())
        .map(|(what, times)| {
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            let spread = Spread {
                count: sorted.len() as u64,
                p50: sorted.get(sorted.len() / 2).copied(),
                p99: None,
                max: sorted.last().copied(),
            };
            row(what.into(), &spread)
        });
    let heads = ["times in ms", "#count", "#p50", "#p99", "#longest"];
    table(page, "How long things took", &heads, spreads.chain(lists));
}

fn costs(page: &mut String, report: &Report) {
    let (costs, swarm) = (&report.per_session, &report.swarm);
    let rows = [
        ("server CPU, us a second", costs.server_cpu_us_per_s),
        ("bytes received a second", costs.bytes_per_s),
        (
            "server memory, KiB",
            costs.rss_bytes.map(|bytes| bytes / 1024.0),
        ),
        (
            "orders a second",
            per(swarm.orders_per_s, swarm.sessions_mean),
        ),
        (
            "deltas a second",
            per(swarm.deltas_per_s, swarm.sessions_mean),
        ),
        (
            "frames a second",
            per(swarm.frames_per_s, swarm.sessions_mean),
        ),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(what, value)| Some(vec![what.to_owned(), number(value?)]));
    let title = format!(
        "What a session costs, of {:.0} on average",
        swarm.sessions_mean
    );
    table(page, &title, &["a session", "#"], rows);
}

fn per(value: f64, sessions: f64) -> Option<f64> {
    (sessions > 0.0).then(|| value / sessions)
}

fn violations(page: &mut String, report: &Report) {
    if !report.invariants.violations.is_empty() {
        page.push_str("<section>\n<h2>Violations</h2>\n");
        list(page, "why", &report.invariants.violations);
        page.push_str("</section>\n");
    }
}

fn notes(page: &mut String, report: &Report) {
    let notes = report.swarm.notes.iter();
    let rows = notes.map(|(note, times)| vec![grouped(*times), note.clone()]);
    table(page, "What bots noted", &["#times", "what"], rows);
}

fn list(page: &mut String, class: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(page, "<ul class=\"{class}\">");
    for line in lines.iter().take(LINES_MAX) {
        let _ = writeln!(page, "<li>{}</li>", escape(line));
    }
    if lines.len() > LINES_MAX {
        let _ = writeln!(page, "<li>and {} more</li>", lines.len() - LINES_MAX);
    }
    page.push_str("</ul>\n");
}

/// A table; nothing if it has no rows. Heads that begin with `#` are of numbers.
fn table(page: &mut String, title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let class = |at: usize| {
        let is_number = heads.get(at).is_some_and(|head| head.starts_with('#'));
        if is_number { " class=\"n\"" } else { "" }
    };
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = write!(page, "<section>\n<h2>{}</h2>\n<table>\n<tr>", escape(title));
    for (at, head) in heads.iter().enumerate() {
        let _ = write!(
            page,
            "<th{}>{}</th>",
            class(at),
            escape(head.trim_start_matches('#'))
        );
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(page, "<td{}>{}</td>", class(at), escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::sample;

    /// Opening and closing tags in their order; an element that is never closed, or in the wrong place, is told.
    fn unbalanced(page: &str) -> Option<String> {
        const VOID: [&str; 2] = ["meta", "!doctype"];
        let mut open: Vec<&str> = Vec::new();
        for part in page.split('<').skip(1) {
            let Some((tag, _)) = part.split_once('>') else {
                return Some(part.into());
            };
            let name = tag.split([' ', '/']).find(|name| !name.is_empty())?;
            if tag.starts_with('/') {
                if open.pop() != Some(name) {
                    return Some(tag.into());
                }
            } else if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
        open.pop().map(str::to_owned)
    }

    /// `UO_WRITE_PAGE=FILE` writes the page for people to look at.
    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_is_whole() {
        let page = html(&sample());
        if let Some(path) = std::env::var_os("UO_WRITE_PAGE") {
            std::fs::write(path, &page).expect("it is written");
        }
        for foreign in ["http", "<script", "src=", "href", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert_eq!(unbalanced(&page), None);
        assert_eq!(unbalanced("<p><b></p></b>"), Some("/p".into()));
        for part in ["kill:sim-3", "✓ passed", "5 nodes, no session lost"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("<svg").count(), 6);
        assert_eq!(page.matches("role=\"img\" aria-label=").count(), 6);
    }

    #[test]
    fn a_report_without_anything_is_a_page_too() {
        let page = html(&Report::default());
        assert_eq!(unbalanced(&page), None);
        assert!(!page.contains("<svg") && !page.contains("<table"));
    }

    /// Seen to fail with a cell that was not escaped.
    #[test]
    fn names_cannot_write_the_page() {
        let evil = "</table><script>alert(1)</script>";
        let mut report = sample();
        report.store = Some(evil.into());
        report.chaos[0].step = evil.into();
        report.chaos[1].outcome = evil.into();
        report.failures.push(evil.into());
        report.bars[0].bar = evil.into();
        report.invariants.violations.push(evil.into());
        report.swarm.notes.insert(evil.into(), 1);
        for second in &mut report.series {
            second.regions.insert(evil.into(), 1);
        }
        let page = html(&report);
        assert!(!page.contains("<script"));
        assert_eq!(unbalanced(&page), None);
        assert!(page.contains("✗ failed"));
    }
}
