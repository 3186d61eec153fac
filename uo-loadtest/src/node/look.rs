//! What a node's `/state` says, as far as is judged here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use uo_proto::{CharId, RegionId};

/// A region that a node serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Under which lease.
    pub epoch: u64,
    /// Ticks since it was opened.
    pub ticks: u64,
}

/// A character, as its owner knows it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs, reason = "the names of /state")]
pub struct Character {
    pub id: CharId,
    pub name: String,
    pub generation: u64,
    pub phase: String,
    pub session: u64,
    pub last_order: u64,
    pub saved: u64,
}

impl Character {
    /// Whether it is in a battle here.
    pub fn is_playing(&self) -> bool {
        self.phase == "playing"
    }
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
    /// Those of them that are being moved away, and do not tick.
    pub draining: BTreeSet<RegionId>,
    /// Everybody it owns, lets in or lets go, where the page lists them.
    pub characters: Vec<Character>,
    /// What its sim counted.
    pub counters: BTreeMap<String, u64>,
    /// Boots that are not presumed gone, its own among them.
    pub members: BTreeSet<String>,
    /// Other boots that it found dead since its process began.
    pub deaths: u64,
    /// How often its fence fell.
    pub fence_falls: u64,
}

#[derive(Deserialize)]
struct MemberEntry {
    boot: String,
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

static NO_SIM: LazyLock<Value> =
    LazyLock::new(|| json!({"fenced": false, "regions": [], "counters": {}}));

impl Look {
    /// Reads the page.
    pub fn parse(body: &str) -> anyhow::Result<Look> {
        Look::of(&serde_json::from_str(body).context("/state is not JSON")?)
    }

    /// Reads the page. A node without a sim serves nothing.
    pub fn of(state: &Value) -> anyhow::Result<Look> {
        let sim = match &state["sim"] {
            Value::Null if state["role"] == "gateway" => &NO_SIM,
            sim => sim,
        };
        let regions: Vec<RegionEntry> = Vec::deserialize(&sim["regions"])
            .context("/state does not list regions as expected")?;
        let list = |name: &str| sim.get(name).cloned().unwrap_or_else(|| json!([]));
        let cluster = &state["cluster"];
        let members: Vec<MemberEntry> = Vec::deserialize(&cluster["members"])
            .context("/state does not list members as expected")?;
        let counters = &cluster["counters"];
        let counted = |name: &str| counters[name].as_u64().unwrap_or_default();
        Ok(Look {
            boot: state["boot"]
                .as_str()
                .context("/state names no boot")?
                .to_owned(),
            life: cluster["life"].as_u64(),
            is_fenced: sim["fenced"].as_bool().context("no `fenced` in /state")?,
            regions: regions
                .into_iter()
                .map(|RegionEntry { id, epoch, ticks }| (id, Held { epoch, ticks }))
                .collect(),
            draining: BTreeSet::deserialize(list("draining"))
                .context("/state does not list drains as expected")?,
            characters: Vec::deserialize(list("characters"))
                .context("/state does not list characters as expected")?,
            counters: BTreeMap::deserialize(&sim["counters"])
                .context("/state does not list counters as expected")?,
            members: members.into_iter().map(|member| member.boot).collect(),
            deaths: counted("deaths_learned"),
            fence_falls: counted("fence_falls"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_page_are_read() {
        let page = |region: &str| {
            format!(
                r#"{{"boot":"ab","sim":{{"fenced":true,"counters":{{"saved":3}},"regions":[{region}]}},
                "cluster":{{"life":2,"members":[{{"node":"sim-1","boot":"ab"}}],"counters":{{"deaths_learned":1}}}}}}"#
            )
        };
        let summary = page(r#"{"id":7,"epoch":3,"ticks":20,"players":0}"#);
        let full = page(r#"{"region":7,"epoch":3,"tick":20,"mobs":[]}"#);
        let look = Look::parse(&summary).expect("it is read");
        assert_eq!(look, Look::parse(&full).expect("it is read"));
        let held = Held {
            epoch: 3,
            ticks: 20,
        };
        assert_eq!(look.regions, [(RegionId(7), held)].into());
        assert_eq!((look.life, look.deaths), (Some(2), 1));
        assert_eq!(look.members, ["ab".to_owned()].into());
        assert_eq!(look.counters["saved"], 3);
        assert!(Look::parse("{}").is_err());
        let gateway = r#"{"boot":"cd","role":"gateway","sim":null,"cluster":{"members":[]}}"#;
        assert_eq!(Look::parse(gateway).expect("it is read").regions, [].into());
    }
}
