//! What breaks, and what then starts again.

use uo_server::Millis;
use uo_server::gateway::core as gateway;
use uo_server::identity::BootId;
use uo_server::sim::member;
use uo_server::store::Right;

use super::node::{Lane, Node, SIMS_MAX, TWIN};
use super::plan::{Fault, Lost, Outage};
use super::shard::{Event, Shard};

/// A stopped process is given up by those that are linked to it after about this long, if at all.
const SILENCE_MS: (Millis, Millis) = (500, 4_000);
/// Outages of one that comes and goes.
const FLAPS: u64 = 4;
/// After something was done to a node, how long it may be declared dead for it.
const EXCUSED_MS: Millis = 8_000;
/// How long after a panic a sim is started again.
const AFTER_PANIC_MS: Millis = 700;

impl Shard {
    pub(super) fn fault(&mut self, fault: Fault) {
        if self.is_recovering {
            return;
        }
        self.note(|| format!("fault: {fault:?}"));
        match fault {
            Fault::KillAll => {
                for node in self.plan.nodes() {
                    let down = self.dice.between(200, 1_500);
                    self.kill(node, down);
                }
            }
            Fault::Kill(node, down) => self.kill(node, down),
            Fault::Stop(node, down) => self.stop(node, down),
            Fault::Panic(index) => self.panic(index),
            Fault::Pause(node, length) => self.pause(node, length),
            Fault::PauseSims(length) => {
                for index in 0..SIMS_MAX {
                    let more = self.dice.below(length / 2);
                    self.pause(Node::Sim(index), length + more);
                }
            }
            Fault::Cut(a, b, length) => self.cut(a, b, length),
            Fault::Isolate(node, length) => {
                for other in self.others(node) {
                    self.cut(node, other, length);
                }
            }
            Fault::Outage(outage, length) => {
                self.store.go_out(self.now + length, outage);
                match outage.of {
                    Some(node) => self.excuse(node, length),
                    None => self.excuse_longer(length),
                }
            }
            Fault::Flap(node, length) => self.flap(node, length),
            Fault::Twin(length) => {
                if length > 0 {
                    self.pause(Node::Sim(0), length);
                }
                let at = self.now + self.dice.below(2_000);
                self.queue.push(at, Event::Start(Node::Sim(TWIN)));
            }
            Fault::LateAnswers(length, late) => {
                self.store.answer_late(self.now + length, late);
            }
            #[cfg(feature = "planted-bugs")]
            Fault::Sicken(region) => self.sicken(region),
            #[cfg(feature = "planted-bugs")]
            Fault::Mend => {
                if let Err(why) = self.mend() {
                    self.broken.get_or_insert(why);
                }
            }
            Fault::Stall(length) => self.network.stalled_until = self.now + length,
        }
    }

    /// Just when it is well again, it is not; or just before.
    fn flap(&mut self, node: Node, length: Millis) {
        let mut at = self.now;
        for _ in 0..FLAPS {
            let length = self.dice.between(length, length + 1_500);
            let lost = self
                .dice
                .pick(&[Lost::Requests, Lost::Answers, Lost::Writes]);
            let of = Some(node);
            let fault = match self.dice.below(3) {
                0 => Fault::Pause(node, length),
                _ => Fault::Outage(Outage { of, lost }, length),
            };
            self.queue.push(at, Event::Fault(fault));
            at += self.dice.between(length / 2, length + 1_500);
        }
    }

    /// Whatever is done to a node alone may be the end of it.
    pub(super) fn excuse(&mut self, node: Node, length: Millis) {
        let until = self.now + length + EXCUSED_MS;
        let machine = self.machine(node);
        machine.excused_until = machine.excused_until.max(until);
    }

    /// Whoever could not recover from what was done to it alone before this came may still end of that.
    fn excuse_longer(&mut self, length: Millis) {
        for node in self.plan.nodes() {
            if self.now < self.machines[&node].excused_until {
                self.excuse(node, length);
            }
        }
    }

    /// Everything that was broken is whole again, and whoever was stopped goes on.
    pub(super) fn heal(&mut self) {
        self.store.come_back();
        self.network.heal();
        for node in self.plan.nodes() {
            self.go_on(node);
            self.dial_all(node);
        }
    }

    /// A process dies with everything it knew, and is started again.
    fn kill(&mut self, node: Node, down: Millis) {
        if !self.is_up(node) {
            return;
        }
        let boot = self.boot(node);
        self.down_with(node, down);
        if let (Node::Sim(_), Some(boot)) = (node, boot) {
            self.counted.crashes += 1;
            self.note_loss(boot);
        }
    }

    fn stop(&mut self, node: Node, down: Millis) {
        if self.is_paused(node) {
            return;
        }
        self.machine(node).starts_after = down;
        match node {
            Node::Sim(index) => self.give_sim(index, member::Input::Stop),
            Node::Gateway(index) => self.give_gateway(index, gateway::Input::Stop),
        }
    }

    /// The tick thread panicked: its shell declares the boot dead, and ends.
    fn panic(&mut self, index: usize) {
        let node = Node::Sim(index);
        if self.is_up(node) && !self.is_paused(node) {
            self.counted.panics += 1;
            self.declare_dead(index);
            self.kill(node, AFTER_PANIC_MS);
        }
    }

    /// It stopped in order.
    pub(super) fn stopped(&mut self, node: Node) {
        if let Node::Sim(_) = node {
            self.counted.stops += 1;
        }
        let down = self.machine(node).starts_after;
        self.down_with(node, down);
    }

    pub(super) fn down_with(&mut self, node: Node, down: Millis) {
        self.note(|| format!("{} is down", node.name()));
        self.collect_counters(node);
        self.store.forget((node, self.life(node)));
        match node {
            Node::Sim(index) => {
                self.sims[index] = None;
                self.watch.sim_is_down(index);
            }
            Node::Gateway(index) => {
                self.lose_conns(index);
                self.gateways[index] = None;
            }
        }
        let machine = self.machine(node);
        machine.paused_since = None;
        machine.held.clear();
        self.part_all(node);
        if node != Node::Sim(TWIN) {
            self.queue.push(self.now + down, Event::Start(node));
        }
    }

    /// A process is stopped. Others may notice, and give its links up.
    fn pause(&mut self, node: Node, length: Millis) {
        if !self.is_up(node) || self.is_paused(node) {
            return;
        }
        let now = self.now;
        self.excuse(node, length);
        let machine = self.machine(node);
        machine.pauses += 1;
        let pause = machine.pauses;
        machine.paused_since = Some(now);
        self.counted.pauses += 1;
        self.queue
            .push(self.now + length, Event::GoOn { node, pause });
        if self.dice.chance(60) {
            for other in self.others(node) {
                let at = self.now + self.dice.between(SILENCE_MS.0, SILENCE_MS.1);
                self.queue.push(at, Event::Silence { node, other, pause });
            }
        }
    }

    /// Nothing was heard of a stopped process for so long that its link is given up.
    pub(super) fn silence(&mut self, node: Node, other: Node, pause: u32) {
        if self.is_paused(node) && self.machine(node).pauses == pause {
            self.part(node, other);
        }
    }

    /// A stopped process goes on: everything that came meanwhile is there at once, in any order.
    pub(super) fn go_on(&mut self, node: Node) {
        let (now, mut dice) = (self.now, self.dice.fork(self.now));
        let machine = self.machine(node);
        let Some(since) = machine.paused_since.take() else {
            return;
        };
        let held = machine.release(&mut dice);
        self.note(|| format!("{} goes on", node.name()));
        for event in held {
            if let Err(why) = self.handle(event) {
                self.broken.get_or_insert(why);
            }
        }
        if let Node::Gateway(_) = node {
            let clients = self.clients.iter_mut();
            clients.for_each(|client| client.note_delay(since, now));
        }
        self.dial_all(node);
    }

    /// Whatever a boot had in memory only is lost: with its process, or with its right to tell anybody.
    pub(super) fn note_loss(&mut self, boot: BootId) {
        if !self.lost.insert(boot) {
            return;
        }
        for index in 0..self.clients.len() {
            let row = self
                .store
                .claim(Right::Character(self.clients[index].char_id));
            let holder = row.and_then(|row| row.holder);
            if holder.is_some_and(|holder| holder.boot == boot) {
                self.note_loss_of(index);
            }
        }
    }

    pub(super) fn note_loss_of(&mut self, player: usize) {
        let now = self.now;
        self.clients[player].note_crash(now, &mut self.ledger);
    }

    /// By which way an event comes to a node; none: it does not concern one, or not while it is stopped.
    pub(super) fn lane(&self, event: &Event) -> Option<(Node, Lane)> {
        let of_conn = |conn: &uo_server::gateway::core::ConnId| {
            let known = self.conns.get(conn)?;
            Some((Node::Gateway(known.gateway), Lane::Conn(conn.0)))
        };
        match event {
            Event::Tick(node, _) => Some((*node, Lane::Tick)),
            Event::Wake(index, _) => Some((Node::Gateway(*index), Lane::Alarm)),
            Event::Deliver { link, .. } => Some((link.1, Lane::Link(link.0))),
            Event::Lost { at, gone } => Some((*at, Lane::Link(*gone))),
            Event::Up(conn, _) | Event::Writable(conn) => of_conn(conn),
            Event::Store(super::store::Step::Answer(id)) => {
                let (node, _) = self.store.asker(*id)?;
                Some((node, Lane::Alone(*id)))
            }
            _ => None,
        }
    }
}
