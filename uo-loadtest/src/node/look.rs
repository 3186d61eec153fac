//! What a node's `/state` says, as far as is judged here.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use uo_proto::RegionId;

/// A region that a node serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Under which lease.
    pub epoch: u64,
    /// Ticks since it was opened.
    pub ticks: u64,
}

/// A node at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// Which boot answered.
    pub boot: String,
    /// Which life of it, where nodes have one.
    pub life: Option<u64>,
    /// Whether its boot may not act: its fence is down, or its life has not begun.
    pub is_fenced: bool,
    /// What it serves.
    pub regions: BTreeMap<RegionId, Held>,
    /// What its sim counted.
    pub counters: BTreeMap<String, u64>,
}

/// A region in `/state`, and in `/state?full`, which names it otherwise.
#[derive(Deserialize)]
struct RegionEntry {
    #[serde(alias = "region")]
    id: RegionId,
    epoch: u64,
    #[serde(alias = "tick")]
    ticks: u64,
}

impl Look {
    /// Reads the page.
    pub fn parse(body: &str) -> anyhow::Result<Look> {
        Look::of(&serde_json::from_str(body).context("/state is not JSON")?)
    }

    /// Reads the page.
    pub fn of(state: &Value) -> anyhow::Result<Look> {
        let sim = &state["sim"];
        let regions: Vec<RegionEntry> = Vec::deserialize(&sim["regions"])
            .context("/state does not list regions as expected")?;
        Ok(Look {
            boot: state["boot"]
                .as_str()
                .context("/state names no boot")?
                .to_owned(),
            life: state["cluster"]["life"].as_u64(),
            is_fenced: sim["fenced"].as_bool().context("no `fenced` in /state")?,
            regions: regions
                .into_iter()
                .map(|RegionEntry { id, epoch, ticks }| (id, Held { epoch, ticks }))
                .collect(),
            counters: BTreeMap::deserialize(&sim["counters"]).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_page_are_read() {
        let summary = r#"{"boot":"ab","cluster":{"life":2},"sim":{"fenced":true,"counters":{"saved":3},
            "regions":[{"id":7,"epoch":3,"ticks":20,"players":0}]}}"#;
        let full = r#"{"boot":"ab","cluster":{"life":2},"sim":{"fenced":true,"counters":{"saved":3},
            "regions":[{"region":7,"epoch":3,"tick":20,"mobs":[]}]}}"#;
        let look = Look::parse(summary).expect("it is read");
        assert_eq!(look, Look::parse(full).expect("it is read"));
        let held = Held {
            epoch: 3,
            ticks: 20,
        };
        assert_eq!(look.regions, [(RegionId(7), held)].into());
        assert_eq!(look.life, Some(2));
        assert_eq!(look.counters["saved"], 3);
        assert!(Look::parse("{}").is_err());
    }
}
