//! Two sim cores that face each other over one store: what the store answers and when, and which messages arrive, is each
//! test's decision.

use uo_proto::ObjectState;

use super::super::others::Peer;
use super::*;

pub(super) const ONE: usize = 0;
pub(super) const TWO: usize = 1;

/// What becomes of what is asked by, or sent to, one of the two.
type Fates<T> = Box<dyn FnMut(usize, &T) -> Fate>;

/// Two sims, of which the first begins with every region.
pub(super) struct Pair {
    pub(super) cores: [SimCore; 2],
    pub(super) tables: Tables,
    pub(super) now: Millis,
    gateway: Holder,
    /// What the gateway was sent by whom, oldest first; feeds left out.
    pub(super) mail: Vec<(usize, ToGateway)>,
    fate_of_request: Fates<Request>,
    fate_of_message: Fates<ToSim>,
    kept_requests: VecDeque<(usize, Ticket, Request)>,
    kept_messages: VecDeque<(usize, Holder, ToSim)>,
    /// Every message between the two, and to whom it was.
    pub(super) posted: Vec<(usize, ToSim)>,
    pub(super) news: Vec<(usize, News)>,
    /// Those that are gone do nothing.
    pub(super) gone: [bool; 2],
}

pub(super) fn me(of: usize) -> Holder {
    holder(["one", "two"][of], of as u128 + 1)
}

impl Pair {
    pub(super) fn new() -> Pair {
        Pair::with_config(|_| {})
    }

    pub(super) fn with_config(change: impl Fn(&mut SimConfig)) -> Pair {
        let core = |of: usize| {
            let world = World::new(7, MAP).expect("the size is good");
            let mut config = SimConfig::alone(me(of), world);
            config.told = vec!["gate".into()];
            change(&mut config);
            SimCore::new(config)
        };
        let mut pair = Pair {
            cores: [core(ONE), core(TWO)],
            tables: Tables::default(),
            now: 1_000,
            gateway: holder("gate", 77),
            mail: Vec::new(),
            fate_of_request: Box::new(|_, _| Fate::Done),
            fate_of_message: Box::new(|_, _| Fate::Done),
            kept_requests: VecDeque::new(),
            kept_messages: VecDeque::new(),
            posted: Vec::new(),
            news: Vec::new(),
            gone: [false; 2],
        };
        for of in [ONE, TWO] {
            pair.input(of, Input::Fence { fallen: false });
            pair.meet(of, true);
        }
        for region in (0..4).map(RegionId) {
            pair.input(ONE, Input::Take { region, row: None });
        }
        pair.tick();
        assert!(pair.cores[ONE].holds_everything());
        pair.news.clear();
        pair
    }

    /// What `of` is told of the other; `takes_over`: that it takes regions and characters.
    pub(super) fn meet(&mut self, of: usize, takes_over: bool) {
        let other = Peer {
            holder: me(1 - of),
            is_gateway: false,
            takes_over,
        };
        let nodes = vec![me(1 - of).node, "gate".into()];
        self.input(of, Input::Linked { nodes });
        self.input(
            of,
            Input::Members {
                members: vec![other],
            },
        );
    }

    pub(super) fn input(&mut self, of: usize, input: Input) {
        let mut queue = VecDeque::new();
        self.give(of, input, &mut queue);
        while let Some((of, effect)) = queue.pop_front() {
            self.carry_out(of, effect, &mut queue);
        }
    }

    fn give(&mut self, of: usize, input: Input, queue: &mut VecDeque<(usize, Effect)>) {
        if self.gone[of] {
            return;
        }
        let mut effects = Vec::new();
        self.cores[of].handle(self.now, input, &mut effects);
        queue.extend(effects.into_iter().map(|effect| (of, effect)));
    }

    fn carry_out(&mut self, of: usize, effect: Effect, queue: &mut VecDeque<(usize, Effect)>) {
        match effect {
            Effect::News(news) => self.news.push((of, news)),
            Effect::Store { ticket, request } => match (self.fate_of_request)(of, &request) {
                Fate::Kept => self.kept_requests.push_back((of, ticket, request)),
                fate => {
                    let lost = Err(StoreError::Unknown("by the test".into()));
                    let reply = match fate {
                        Fate::LostUnknown => lost,
                        Fate::DoneUnknown => self.tables.apply(self.now, &request).and(lost),
                        _ => self.tables.apply(self.now, &request),
                    };
                    self.give(of, Input::Store { ticket, reply }, queue);
                }
            },
            Effect::Send {
                message: Message::ToGateway(message),
                ..
            } => {
                let is_feed = matches!(
                    message,
                    ToGateway::FeedDelta(_) | ToGateway::FeedFull(_) | ToGateway::FeedsDone
                );
                if !is_feed {
                    self.mail.push((of, message));
                }
            }
            Effect::Send {
                message: Message::ToSim(message),
                to,
            } => {
                let to = usize::from(to == me(TWO).node);
                if to != of {
                    self.posted.push((to, message.clone()));
                }
                let from = me(of);
                match (self.fate_of_message)(to, &message) {
                    Fate::Kept => self.kept_messages.push_back((to, from, message)),
                    Fate::LostUnknown => {}
                    Fate::Done | Fate::DoneUnknown => {
                        self.give(to, Input::Peer { from, message }, queue);
                    }
                }
            }
        }
    }

    pub(super) fn requests_are(&mut self, fate: impl FnMut(usize, &Request) -> Fate + 'static) {
        self.fate_of_request = Box::new(fate);
    }

    pub(super) fn messages_are(&mut self, fate: impl FnMut(usize, &ToSim) -> Fate + 'static) {
        self.fate_of_message = Box::new(fate);
    }

    pub(super) fn all_is_well(&mut self) {
        self.requests_are(|_, _| Fate::Done);
        self.messages_are(|_, _| Fate::Done);
    }

    /// Carries out what was kept, in order.
    pub(super) fn release(&mut self) {
        for (of, ticket, request) in std::mem::take(&mut self.kept_requests) {
            let reply = self.tables.apply(self.now, &request);
            self.input(of, Input::Store { ticket, reply });
        }
        for (to, from, message) in std::mem::take(&mut self.kept_messages) {
            self.input(to, Input::Peer { from, message });
        }
    }

    /// The last request that was kept is carried out first.
    pub(super) fn turn_requests(&mut self) {
        self.kept_requests.make_contiguous().reverse();
    }

    pub(super) fn kept(&self) -> usize {
        self.kept_requests.len() + self.kept_messages.len()
    }

    pub(super) fn tick(&mut self) {
        self.now += TICK_MS;
        for of in [ONE, TWO] {
            self.input(of, Input::Tick { parallel: false });
        }
        self.check();
    }

    pub(super) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(TICK_MS) {
            self.tick();
        }
    }

    /// No region runs twice, nobody plays twice, and each where the rows say.
    fn check(&mut self) {
        for id in (0..4).map(RegionId) {
            let row = self.claim_row(Right::Region(id));
            for of in [ONE, TWO] {
                if !self.gone[of] && !self.cores[of].is_fenced() && self.cores[of].serves(id) {
                    let holder = row.as_ref().and_then(|row| row.holder.clone());
                    assert_eq!(holder, Some(me(of)), "{id:?} runs at {of}");
                }
            }
        }
        let both = |id: &&CharId| self.cores[TWO].characters.contains_key(id);
        if !self.gone[ONE] && !self.gone[TWO] {
            assert_eq!(self.cores[ONE].characters.keys().find(both), None);
        }
    }

    pub(super) fn claim_row(&mut self, right: Right) -> Option<ClaimRow> {
        let request = Request::ClaimRead {
            right,
            serial: true,
        };
        match self.tables.apply(self.now, &request) {
            Ok(Reply::Claim(row)) => row,
            other => panic!("a claim is read: {other:?}"),
        }
    }

    pub(super) fn drain(&mut self, region: RegionId) {
        let to = me(TWO);
        let is_wished = false;
        self.input(
            ONE,
            Input::Drain {
                region,
                to,
                is_wished,
            },
        );
    }

    pub(super) fn send(&mut self, of: usize, message: ToSim) {
        let from = self.gateway.clone();
        self.input(of, Input::Peer { from, message });
    }

    /// Logs in a character in `region`.
    pub(super) fn login(&mut self, name: &str, region: RegionId) -> CharId {
        let world = self.cores[ONE].config.world.clone();
        let corner = Pos::new(region.0 as u16 % 2 * 64, region.0 as u16 / 2 * 64);
        let taken = self.cores[ONE].characters.len() as u16;
        let pos = (0..64)
            .map(|x| Pos::new(corner.x + x, corner.y + 30 + taken))
            .find(|&pos| is_open(world.clone(), pos))
            .expect("some tile is open");
        let char_id = put_character(&mut self.tables, name, pos);
        self.attach(ONE, name, None);
        assert!(self.cores[ONE].characters.contains_key(&char_id));
        char_id
    }

    pub(super) fn attach(&mut self, of: usize, name: &str, session: Option<u64>) {
        let attach = Attach {
            char_id: CharId::of_name(name),
            name: name.into(),
            session,
            attach: 1,
            gateway: self.gateway.clone(),
            last_private: 0,
        };
        self.send(of, ToSim::Attach(attach));
    }

    /// Has `of` write objects of `region`.
    pub(super) fn write_objects(&mut self, of: usize, region: RegionId, objects: &[ObjectState]) {
        let core = &mut self.cores[of];
        let slot = &mut core.slots[region.0 as usize];
        let journal = slot.journal.as_mut().expect("it is held");
        let write = journal.record(1, objects);
        core.write_objects(write);
        let effects = std::mem::take(&mut core.effects);
        let mut queue: VecDeque<_> = effects.into_iter().map(|it| (of, it)).collect();
        while let Some((of, effect)) = queue.pop_front() {
            self.carry_out(of, effect, &mut queue);
        }
    }

    pub(super) fn order(&mut self, of: usize, char_id: CharId, seq: u64, order: Order) {
        let order = RoutedOrder {
            char_id,
            generation: 0,
            session: 1,
            order: NumberedOrder { seq, order },
            target_region: None,
        };
        self.send(of, ToSim::Order(order));
    }

    pub(super) fn holds(&self, of: usize, region: RegionId) -> bool {
        self.cores[of].serves(region)
    }

    pub(super) fn plays(&self, of: usize, char_id: CharId) -> bool {
        let core = &self.cores[of];
        core.characters.get(&char_id).is_some_and(|character| {
            let region = core.region(character.region);
            region.is_some_and(|region| region.contains(char_id))
        })
    }

    pub(super) fn last_order(&self, of: usize, char_id: CharId) -> u64 {
        self.cores[of].characters[&char_id].last_order
    }

    /// The numbers of the private messages that its gateway was sent.
    pub(super) fn privates(&self, char_id: CharId) -> Vec<u64> {
        let of_it = self.mail.iter().filter_map(|(_, it)| match it {
            ToGateway::ToPlayer {
                char_id: id,
                message,
                ..
            } if *id == char_id => message.private(),
            _ => None,
        });
        let mut numbers: Vec<u64> = of_it.collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// How many regions were offered.
    pub(super) fn offers(&self) -> usize {
        let is_offer = |(_, message): &&(usize, ToSim)| matches!(message, ToSim::DrainOffer(_));
        self.posted.iter().filter(is_offer).count()
    }

    pub(super) fn served(&self, of: usize, region: RegionId) -> usize {
        let is_it = |(by, news): &&(usize, News)| {
            *by == of && matches!(news, News::Served { region: id, .. } if *id == region)
        };
        self.news.iter().filter(is_it).count()
    }

    pub(super) fn given(&self, region: RegionId) -> Option<ClaimRow> {
        self.news.iter().find_map(|(_, news)| match news {
            News::Given { region: id, row } if *id == region => Some(row.clone()),
            _ => None,
        })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.cores.iter().enumerate().all(|(of, core)| {
            self.gone[of]
                || core.outgoing.is_empty()
                    && core.arrivals.is_empty()
                    && core.entering.is_empty()
                    && core.leaving.is_empty()
                    && core.drains.is_empty()
        })
    }
}
