use proptest::prelude::*;

use super::*;
use crate::identity::{NodeName, Nonce};

fn holder(node: &str, boot: u128) -> Holder {
    Holder {
        node: NodeName::from(node),
        boot: BootId(boot << 64),
    }
}

/// One node and its claim on one right.
struct Node {
    me: Holder,
    nonces: Nonces,
    claim: Claim,
    dead: Vec<BootId>,
}

impl Node {
    fn new(boot: u128) -> Node {
        let me = holder("node", boot);
        Node {
            nonces: Nonces::new(me.boot),
            me,
            claim: Claim::Free,
            dead: Vec::new(),
        }
    }

    fn give(&mut self, input: Input) -> Output {
        let dead = &self.dead;
        self.claim.handle(
            input,
            &mut Context {
                me: &self.me,
                is_dead: &|boot| dead.contains(&boot),
                nonces: &mut self.nonces,
                planted: crate::planted::Planted::NONE,
            },
        )
    }

    fn cas(&mut self, input: Input) -> Attempt {
        match self.give(input) {
            Output::Cas(attempt) => attempt,
            other => panic!("a compare-and-set is wanted, not {other:?}"),
        }
    }

    /// Through every step to `Held`.
    fn hold(&mut self) -> u64 {
        self.cas(Input::TakeSeen(None));
        assert_eq!(self.give(Input::Applied), Output::Load { number: 1 });
        assert_eq!(self.give(Input::Loaded(None)), Output::Seal { number: 1 });
        assert_eq!(self.give(Input::Sealed), Output::Serve { number: 1 });
        1
    }
}

fn row(holder: Option<Holder>, number: u64) -> ClaimRow {
    ClaimRow {
        holder,
        number,
        nonce: Nonce(number.into()),
    }
}

#[test]
fn claims_what_is_free_dead_or_its_own_and_nothing_else() {
    let me = holder("node", 1);
    let other = holder("other", 2);
    for (there, is_dead, is_claimed) in [
        (None, false, true),
        (Some(row(None, 4)), false, true),
        (Some(row(Some(me), 4)), false, true),
        (Some(row(Some(other.clone()), 4)), true, true),
        (Some(row(Some(other.clone()), 4)), false, false),
    ] {
        let mut node = Node::new(1);
        node.dead.extend(is_dead.then_some(other.boot));
        assert_eq!(node.give(Input::Take), Output::Read);
        match node.give(Input::Row(there.clone())) {
            Output::Cas(attempt) => {
                assert!(is_claimed, "{there:?}");
                assert_eq!(attempt.seen, there.as_ref().map(ClaimRow::seen));
                assert_eq!(attempt.to.number, there.map_or(1, |row| row.number + 1));
            }
            output => {
                assert!(!is_claimed);
                assert_eq!(output, Output::Gone(there));
            }
        }
    }
}

#[test]
fn an_unknown_attempt_keeps_its_nonce_until_the_row_shows_it() {
    let mut node = Node::new(1);
    let attempt = node.cas(Input::TakeSeen(None));
    assert_eq!(node.give(Input::Failed), Output::RetryLater);
    assert_eq!(node.give(Input::Retry), Output::Cas(attempt.clone()));
    // Refused, and yet the row is as it was: it may still apply.
    assert_eq!(node.give(Input::Refused(None)), Output::RetryLater);
    assert_eq!(node.give(Input::Retry), Output::Cas(attempt.clone()));
    assert_eq!(
        node.give(Input::Refused(Some(attempt.to))),
        Output::Load { number: 1 }
    );
}

#[test]
fn a_taking_may_try_again_after_a_change_an_offered_one_may_not() {
    let released = row(None, 9);
    let mut node = Node::new(1);
    let first = node.cas(Input::TakeSeen(None));
    let second = node.cas(Input::Refused(Some(released.clone())));
    assert_ne!(first.to.nonce, second.to.nonce);
    assert_eq!(second.to.number, 10);

    let mut node = Node::new(1);
    let source = Seen {
        holder: Some(holder("source", 3)),
        number: 4,
    };
    let attempt = node.cas(Input::TakeOffered(source.clone()));
    assert_eq!((attempt.seen, attempt.to.number), (Some(source), 5));
    assert_eq!(
        node.give(Input::Refused(Some(released.clone()))),
        Output::Gone(Some(released))
    );
    assert_eq!(node.claim, Claim::Free);
}

#[test]
fn a_restored_row_is_claimed_past() {
    let mut node = Node::new(1);
    node.cas(Input::TakeSeen(None));
    node.give(Input::Applied);
    let past = node.cas(Input::Loaded(Some(41)));
    assert_eq!(past.to.number, 42);
    assert_eq!(node.give(Input::Applied), Output::Load { number: 42 });
    assert_eq!(
        node.give(Input::Loaded(Some(41))),
        Output::Seal { number: 42 }
    );
}

#[test]
fn nothing_is_held_before_the_seal_nor_after_the_release_began() {
    let mut node = Node::new(1);
    node.cas(Input::TakeSeen(None));
    node.give(Input::Applied);
    node.give(Input::Loaded(None));
    assert_eq!(node.claim.held(), None);
    assert_eq!(node.give(Input::Failed), Output::RetryLater);
    assert_eq!(node.give(Input::Retry), Output::Seal { number: 1 });
    node.give(Input::Sealed);
    assert_eq!(node.claim.held(), Some(1));
    let release = node.cas(Input::Release);
    assert_eq!(node.claim.held(), None);
    assert_eq!((release.to.holder, release.to.number), (None, 2));
    assert_eq!(node.give(Input::Applied), Output::Released { number: 2 });
}

#[test]
fn an_offer_is_taken_back_for_free_or_reclaimed_by_compare_and_set() {
    let mut node = Node::new(1);
    let number = node.hold();
    node.give(Input::HandOver);
    assert_eq!(node.claim.held(), None);
    node.give(Input::TakeBack);
    assert_eq!(node.claim.held(), Some(number));

    node.give(Input::HandOver);
    let reclaim = node.cas(Input::Reclaim);
    assert_eq!(reclaim.to.number, number + 1);
    assert_eq!(node.give(Input::TakeBack), Output::Nothing, "too late");
    assert_eq!(node.give(Input::Applied), Output::Seal { number: 2 });
    assert_eq!(node.give(Input::Sealed), Output::Serve { number: 2 });

    node.give(Input::HandOver);
    node.cas(Input::Reclaim);
    let taken = row(Some(node.me.clone()), 3);
    assert_eq!(
        node.give(Input::Refused(Some(taken.clone()))),
        Output::Gone(Some(taken)),
        "it names this very boot, but not this attempt"
    );
}

#[test]
fn only_a_higher_number_takes_it_away() {
    let mut node = Node::new(1);
    let number = node.hold();
    assert_eq!(node.give(Input::Lost(number)), Output::Nothing);
    assert_eq!(node.give(Input::Lost(number + 1)), Output::Gone(None));
    assert_eq!(node.claim.held(), None);
}

/// What the exploration may do next.
#[derive(Clone, Debug)]
enum Move {
    /// Node `who` begins something.
    Begin(usize, u8),
    /// The `at`th request in the air is carried out; whether its sender hears of it.
    Carry(usize, bool),
    /// The `at`th request in the air is lost.
    Lose(usize),
    /// Node `who` repeats what it has no answer to.
    Retry(usize),
    /// The fence of node `who` fell for ever, and everybody knows.
    Die(usize),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => (0..3usize, 0..8u8).prop_map(|(who, what)| Move::Begin(who, what)),
        12 => (0..8usize, any::<bool>()).prop_map(|(at, heard)| Move::Carry(at, heard)),
        2 => (0..8usize).prop_map(Move::Lose),
        4 => (0..3usize).prop_map(Move::Retry),
        1 => (0..3usize).prop_map(Move::Die),
    ]
}

/// A register that carries compare-and-sets out late, twice and unheard, and three nodes that fight for it.
#[derive(Default)]
struct Exploration {
    register: Option<ClaimRow>,
    nodes: Vec<Node>,
    dead: Vec<bool>,
    /// Compare-and-sets under way; they outlive whoever sent them.
    air: Vec<(usize, Attempt)>,
    /// Which node waits for an answer to which attempt.
    waits: Vec<Option<Attempt>>,
}

impl Exploration {
    fn new() -> Exploration {
        Exploration {
            nodes: (1..=3).map(Node::new).collect(),
            dead: vec![false; 3],
            waits: vec![None; 3],
            ..Exploration::default()
        }
    }

    /// Gives `input`, and answers reads, loads and seals at once: those cannot be told apart from later ones.
    fn give(&mut self, who: usize, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            next = match self.nodes[who].give(input) {
                Output::Read => Some(Input::Row(self.register.clone())),
                Output::Load { .. } => Some(Input::Loaded(None)),
                Output::Seal { .. } => Some(Input::Sealed),
                Output::Cas(attempt) => {
                    self.waits[who] = Some(attempt.clone());
                    self.air.push((who, attempt));
                    None
                }
                Output::RetryLater
                | Output::Nothing
                | Output::Serve { .. }
                | Output::Released { .. }
                | Output::Gone(_) => None,
            };
        }
    }

    fn step(&mut self, next: Move) {
        match next {
            Move::Begin(who, _) | Move::Retry(who) if self.dead[who] => {}
            Move::Begin(who, what) => {
                let input = match what {
                    0 => Some(Input::Take),
                    1 | 2 => Some(Input::HandOver),
                    3 => Some(Input::Reclaim),
                    4 => Some(Input::Release),
                    5 | 6 => self.offer_for(who),
                    _ => self.accept_for(who),
                };
                if let Some(input) = input {
                    self.give(who, input);
                }
            }
            Move::Carry(at, heard) if !self.air.is_empty() => {
                let at = at % self.air.len();
                let (who, attempt) = self.air[at].clone();
                let there = self.register.clone();
                let applies = there.as_ref().map(ClaimRow::seen) == attempt.seen;
                if applies {
                    self.register = Some(attempt.to.clone());
                }
                if heard {
                    self.air.remove(at);
                    let is_awaited = self.waits[who].as_ref() == Some(&attempt);
                    if is_awaited && !self.dead[who] {
                        self.waits[who] = None;
                        let answer = if applies {
                            Input::Applied
                        } else {
                            Input::Refused(there)
                        };
                        self.give(who, answer);
                    }
                }
            }
            Move::Lose(at) if !self.air.is_empty() => {
                self.air.remove(at % self.air.len());
            }
            Move::Retry(who) => {
                self.give(who, Input::Failed);
                self.give(who, Input::Retry);
            }
            Move::Die(who) => {
                self.dead[who] = true;
                let boot = self.nodes[who].me.boot;
                for node in &mut self.nodes {
                    node.dead.push(boot);
                }
            }
            Move::Carry(..) | Move::Lose(_) => {}
        }
    }

    /// What another node offers, if one does.
    fn offer_for(&self, who: usize) -> Option<Input> {
        let source = (0..3).find(|&other| {
            let is_outgoing = matches!(self.nodes[other].claim, Claim::Outgoing { .. });
            other != who && !self.dead[other] && is_outgoing
        })?;
        let holder = Some(self.nodes[source].me.clone());
        let number = self.nodes[source].claim.number()?;
        Some(Input::TakeOffered(Seen { holder, number }))
    }

    /// The acceptance by whoever serves what this node offered, if somebody does.
    fn accept_for(&self, who: usize) -> Option<Input> {
        let offered = self.nodes[who].claim.number()?;
        let is_taken = self.serving().iter().any(|&(_, held)| held > offered);
        is_taken.then_some(Input::Given)
    }

    /// Whether the row names a live node that knows nothing of it.
    fn is_limbo(&self) -> bool {
        let holder = self.register.as_ref().and_then(|row| row.holder.as_ref());
        (0..3).any(|who| {
            let is_named = Some(&self.nodes[who].me) == holder;
            is_named && !self.dead[who] && self.nodes[who].claim == Claim::Free
        })
    }

    /// The live nodes that serve, with their numbers.
    fn serving(&self) -> Vec<(usize, u64)> {
        let live = (0..3).filter(|&who| !self.dead[who]);
        live.filter_map(|who| Some((who, self.nodes[who].claim.held()?)))
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // Goes red when a repeated attempt takes a new nonce, and when a live holder's row is taken.
    #[test]
    fn at_most_one_live_node_serves_and_the_row_says_so(
        moves in proptest::collection::vec(moves(), 1..120),
    ) {
        let mut exploration = Exploration::new();
        let mut highest = 0;
        for next in moves {
            exploration.step(next);
            let serving = exploration.serving();
            prop_assert!(serving.len() <= 1, "{serving:?}");
            prop_assert!(!exploration.is_limbo(), "{:?}", exploration.register);
            let row = exploration.register.clone();
            let number = row.as_ref().map_or(0, |row| row.number);
            prop_assert!(number >= highest, "numbers never go down");
            highest = number;
            if let [(who, held)] = serving[..] {
                let row = row.expect("whoever serves has a row");
                prop_assert_eq!(held, row.number);
                prop_assert_eq!(row.holder.as_ref(), Some(&exploration.nodes[who].me));
            }
        }
    }
}
