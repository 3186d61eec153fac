//! `/metrics`: everything a node counts and measures, as OpenMetrics text.

use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

use super::Admin;
use super::meters::Timing;
use crate::peer::tcp::TcpTransport;

/// The text for one scrape; `member` and `gateway` are what the cores answered to an observer.
pub fn render(admin: &Admin, member: &Value, gateway: &Value) -> String {
    let mut registry = Registry::with_prefix("uo");
    let meters = &admin.meters;
    timing(
        &mut registry,
        "tick",
        "Work of one tick of all regions",
        &meters.tick,
    );
    timing(
        &mut registry,
        "handoff",
        "From leaving one battle to entering the next",
        &meters.handoff,
    );
    timing(
        &mut registry,
        "drain",
        "From the freeze of a region until another node serves it",
        &meters.drain,
    );
    timing(
        &mut registry,
        "flush",
        "One flush of all sessions",
        &meters.flush,
    );
    registry.register_with_unit(
        "player_gap",
        "From the last frame that showed a player its character to the first of the next owner, battle or connection",
        Unit::Seconds,
        meters.crossings.gaps.clone(),
    );
    registry.register_with_unit(
        "crossing",
        "Phases of crossings between battles",
        Unit::Seconds,
        meters.crossings.phases.clone(),
    );
    registry.register_with_unit(
        "store",
        "One store call",
        Unit::Seconds,
        meters.store.histogram.clone(),
    );
    count(
        &mut registry,
        "ticks",
        "Ticks",
        meters.ticks.load(Ordering::Relaxed),
    );
    count(
        &mut registry,
        "ticks_late",
        "Ticks that began over 10 ms late",
        meters.ticks_late.load(Ordering::Relaxed),
    );
    count(
        &mut registry,
        "ticks_skipped",
        "Ticks left out",
        meters.ticks_skipped.load(Ordering::Relaxed),
    );
    registry.register(
        "connections_closed",
        "Connections the gateway closed",
        meters.closes.clone(),
    );
    let hub = &admin.hub;
    gauge(
        &mut registry,
        "connections",
        "Open connections",
        hub.open.load(Ordering::Relaxed) as u64,
    );
    count(
        &mut registry,
        "client_bytes_in",
        "Bytes of client messages",
        hub.bytes_in.load(Ordering::Relaxed),
    );
    count(
        &mut registry,
        "client_bytes_out",
        "Bytes of server messages",
        hub.bytes_out.load(Ordering::Relaxed),
    );
    count(
        &mut registry,
        "client_frames_out",
        "Server messages",
        hub.frames_out.load(Ordering::Relaxed),
    );
    count(
        &mut registry,
        "peer_messages_dropped",
        "Messages between cores that were dropped",
        admin.local.dropped(),
    );
    if let Some(links) = &admin.links {
        peers(&mut registry, links);
    }
    count(
        &mut registry,
        "beats_failed",
        "Beats that were not acknowledged in time",
        meters.beats_failed.load(Ordering::Relaxed),
    );
    let cores = [
        ("sim", &member["sim"]),
        ("cluster", &member["cluster"]),
        ("gateway", gateway),
    ];
    for (core, state) in cores {
        for (name, value) in numbers(&state["counters"]) {
            count(
                &mut registry,
                &name,
                &format!("Counted by the {core} core"),
                value,
            );
        }
        for (name, value) in numbers(&state["gauges"]) {
            gauge(
                &mut registry,
                &name,
                &format!("As the {core} core sees it now"),
                value,
            );
        }
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("writing to a string cannot fail");
    text
}

/// What is counted of the links to other nodes.
fn peers(registry: &mut Registry, links: &TcpTransport) {
    let (counts, made) = (links.counts(), links.link_counters());
    gauge(
        registry,
        "peers_linked",
        "Nodes to which there is a link",
        made.linked - made.lost,
    );
    for (name, help, value) in [
        ("peer_dials", "Links that this node tried", made.dialed),
        ("peer_calls", "Links that others tried", made.accepted),
        ("peer_links_made", "Links made", made.linked),
        ("peer_links_lost", "Links lost", made.lost),
        ("peer_refusals", "Links that came to nothing", made.refused),
    ] {
        count(registry, name, help, value);
    }
    for (name, help, counter) in [
        ("peer_messages_out", "Messages written", &counts.sent),
        ("peer_messages_in", "Messages read", &counts.received),
        ("peer_bytes_out", "Bytes to other nodes", &counts.bytes_out),
        ("peer_bytes_in", "Bytes of other nodes", &counts.bytes_in),
        (
            "peer_messages_combined",
            "Messages that were combined with one that waited",
            &counts.combined,
        ),
        (
            "peer_queue_drops",
            "Messages that a full queue dropped; their receivers notice",
            &counts.dropped,
        ),
        (
            "peer_messages_not_linked",
            "Messages for nodes without a link",
            &counts.not_linked,
        ),
        (
            "peer_messages_too_new",
            "Messages that their receiver's version does not know",
            &counts.too_new,
        ),
        (
            "peer_messages_too_long",
            "Messages that no frame can hold",
            &counts.too_long,
        ),
        (
            "peer_overflows",
            "Links cut because their node did not read",
            &counts.overflows,
        ),
        (
            "peer_frames_unknown",
            "Frames of kinds that this version does not know",
            &counts.unknown,
        ),
        (
            "peer_frames_unreadable",
            "Frames that this version cannot read",
            &counts.unreadable,
        ),
    ] {
        count(registry, name, help, counter.load(Ordering::Relaxed));
    }
}

fn timing(registry: &mut Registry, name: &str, help: &str, timing: &Timing) {
    registry.register_with_unit(name, help, Unit::Seconds, timing.histogram.clone());
    let quantiles = timing.quantiles();
    for (suffix, value) in [
        ("p50", quantiles.p50),
        ("p99", quantiles.p99),
        ("max", quantiles.max),
    ] {
        let gauge: Gauge<f64, std::sync::atomic::AtomicU64> = Gauge::default();
        gauge.set(value);
        registry.register_with_unit(
            format!("{name}_{suffix}"),
            format!("{help}: {suffix} of the last minute"),
            Unit::Seconds,
            gauge,
        );
    }
}

fn count(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge: Gauge<i64> = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

/// The whole numbers of an object, with nested objects joined by underscores.
fn numbers(value: &Value) -> Vec<(String, u64)> {
    let Some(fields) = value.as_object() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, field) in fields {
        if let Some(number) = field.as_u64() {
            found.push((name.clone(), number));
        }
        found.extend(
            numbers(field)
                .into_iter()
                .map(|(inner, number)| (format!("{name}_{inner}"), number)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_numbers_get_joined_names() {
        let value =
            serde_json::json!({"fights": 3, "handoffs": {"offered": 2, "note": "no number"}});
        let expected = vec![("fights".to_owned(), 3), ("handoffs_offered".to_owned(), 2)];
        assert_eq!(numbers(&value), expected);
    }
}
