//! Requests as a build would send them that leaves out a rule of how they are formed.

use std::collections::BTreeMap;

use uo_server::Millis;
use uo_server::identity::{BootId, NodeName};
use uo_server::planted::{Planted, PlantedBug};
use uo_server::store::tables::Tables;
use uo_server::store::{ClaimRow, Life, Reply, Request, Right, Stamp, StoreError};

/// What such requests leave in the database that the right ones do not.
#[derive(Debug, Default)]
pub struct Lies {
    planted: Planted,
    /// The number in the row of a life, dead or not.
    lives: BTreeMap<BootId, u64>,
    /// The one row of each name: the stamp of its newest write, and which boot that was.
    names: BTreeMap<NodeName, (Millis, BootId)>,
}

impl Lies {
    pub fn new(planted: Planted) -> Lies {
        Lies {
            planted,
            ..Lies::default()
        }
    }

    /// Carries a request out, the way it was planted. `here` is the time of its coordinator, `stamp` that of its sender.
    pub fn apply(
        &mut self,
        tables: &mut Tables,
        here: Millis,
        stamp: Millis,
        request: &Request,
    ) -> Result<Reply, StoreError> {
        if self.planted == Planted::NONE {
            return tables.apply(here, request);
        }
        if self.planted.has(PlantedBug::LifeCasWithoutDead)
            && let Some(reply) = self.life_without_dead(tables, here, request)?
        {
            return Ok(reply);
        }
        let request = match request {
            Request::ClaimCas { right, seen, to }
                if self.planted.has(PlantedBug::CasWithoutNumber) =>
            {
                let row = read_claim(tables, *right);
                let is_there =
                    row.as_ref().map(|row| &row.holder) == seen.as_ref().map(|it| &it.holder);
                Request::ClaimCas {
                    right: *right,
                    seen: if is_there {
                        row.map(|row| row.seen())
                    } else {
                        seen.clone()
                    },
                    to: to.clone(),
                }
            }
            request => self
                .seal_otherwise(request)
                .unwrap_or_else(|| request.clone()),
        };
        if self.planted.has(PlantedBug::OneRowPerName) {
            return self.one_row(tables, here, stamp, &request);
        }
        tables.apply(here, &request)
    }

    /// `UPDATE node_life SET life = n + 1 IF life = n`, whether it is dead or not.
    fn life_without_dead(
        &mut self,
        tables: &mut Tables,
        here: Millis,
        request: &Request,
    ) -> Result<Option<Reply>, StoreError> {
        let Request::LifeCas {
            boot,
            from: Some(Life::Alive(from)),
            to,
        } = request
        else {
            return Ok(None);
        };
        let reply = tables.apply(here, request)?;
        let stands = match &reply {
            Reply::LifeCas { applied: true, .. } => *from,
            Reply::LifeCas {
                row: Some(Life::Dead),
                ..
            } => self.lives.get(boot).copied().unwrap_or(1),
            _ => return Ok(Some(reply)),
        };
        if stands != *from {
            return Ok(Some(reply));
        }
        let now = match to {
            Life::Alive(life) => *life,
            Life::Dead => *from,
        };
        self.lives.insert(*boot, now);
        Ok(Some(Reply::LifeCas {
            applied: true,
            row: None,
        }))
    }

    /// A seal without its tombstone, or with one that is as new as its rows and wins the tie.
    fn seal_otherwise(&self, request: &Request) -> Option<Request> {
        let has_no_tombstone = self.planted.has(PlantedBug::SealWithoutTombstone);
        if !has_no_tombstone && !self.planted.has(PlantedBug::TombstoneStampedLikeRows) {
            return None;
        }
        match request.clone() {
            Request::CharacterSeal {
                char_id,
                number,
                row: Some(row),
            } if has_no_tombstone => Some(Request::CharacterWrite {
                char_id,
                stamp: Stamp { number, n: 1 },
                row,
            }),
            Request::CharacterSeal {
                char_id, number, ..
            } => Some(Request::CharacterSeal {
                char_id,
                number,
                row: None,
            }),
            Request::ObjectsSeal {
                region,
                number,
                rows,
            } if has_no_tombstone => {
                let rows = rows.into_iter().map(|(key, row)| (key, Some(row)));
                Some(Request::ObjectsWrite {
                    region,
                    stamp: Stamp { number, n: 1 },
                    rows: rows.collect(),
                })
            }
            Request::ObjectsSeal { region, number, .. } => Some(Request::ObjectsSeal {
                region,
                number,
                rows: Vec::new(),
            }),
            _ => None,
        }
    }

    /// `nodes` with the name as its whole key, stamped with the time of day of whoever writes.
    fn one_row(
        &mut self,
        tables: &mut Tables,
        here: Millis,
        stamp: Millis,
        request: &Request,
    ) -> Result<Reply, StoreError> {
        if let Request::NodeBeat { node, boot, .. } = request {
            let newest = self.names.entry(node.clone()).or_insert((stamp, *boot));
            if stamp < newest.0 {
                return Ok(Reply::Done);
            }
            *newest = (stamp, *boot);
        }
        let reply = tables.apply(here, request)?;
        let Reply::Nodes(mut rows) = reply else {
            return Ok(reply);
        };
        rows.retain(|(node, boot, _)| self.names.get(node).is_none_or(|(_, it)| it == boot));
        Ok(Reply::Nodes(rows))
    }
}

pub fn read_claim(tables: &mut Tables, right: Right) -> Option<ClaimRow> {
    let request = Request::ClaimRead {
        right,
        serial: true,
    };
    match tables.apply(0, &request) {
        Ok(Reply::Claim(row)) => row,
        _ => None,
    }
}
