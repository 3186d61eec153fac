use super::*;

const ANNA: &str = "Anna";

fn anna() -> CharId {
    CharId::of_name(ANNA)
}

fn only(kind: fn(&Request) -> bool, fate: Fate) -> impl FnMut(&Request) -> Fate {
    move |request| if kind(request) { fate } else { Fate::Done }
}

#[test]
fn a_changed_character_is_written_in_its_turn_and_then_saved() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.order(ANNA, 1, 1, look_around());
    shard.requests_are(only(is_character_write, Fate::Kept));
    shard.pass(15_000);
    assert_eq!(shard.saved(), [] as [u64; 0], "not before it is durable");
    shard.release_requests();
    shard.pass(100);
    assert_eq!(shard.saved(), [1]);
    assert_eq!(shard.row(anna()).map(|row| row.last_order), Some(1));
}

#[test]
fn an_unchanged_character_is_not_written() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    // Coming into the battle is a change.
    shard.pass(16_000);
    shard.requests.clear();
    shard.pass(60_000);
    let writes = shard.requests.iter().filter(|it| is_character_write(it));
    assert_eq!(writes.count(), 0);
}

#[test]
fn a_failed_write_is_repeated_under_a_new_stamp() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.order(ANNA, 1, 1, look_around());
    let mut failures = 2;
    shard.requests_are(move |request| {
        let fails = is_character_write(request) && failures > 0;
        failures -= u32::from(fails);
        if fails { Fate::LostUnknown } else { Fate::Done }
    });
    shard.pass(16_000);
    assert_eq!(shard.saved(), [1]);
    let stamps: Vec<u32> = shard
        .requests
        .iter()
        .filter_map(|request| match request {
            Request::CharacterWrite { stamp, .. } => Some(stamp.n),
            _ => None,
        })
        .collect();
    assert_eq!(stamps, [2, 3, 4]);
}

// Goes red without the look at the journals in `tell_everyone_saved`.
#[test]
fn nothing_is_saved_while_object_writes_are_outstanding() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    let object = shard.core.config.world.content(WEST).objects[0];
    shard.requests_are(only(
        |request| matches!(request, Request::ObjectsWrite { .. }),
        Fate::Kept,
    ));
    shard.order(ANNA, 1, 1, look_around());
    shard.run(|core, _, effects| {
        let slot = core.slot_mut(WEST).expect("it is on the map");
        let journal = slot.journal.as_mut().expect("it is held");
        let write = journal.record(1, &[object]);
        core.write_objects(write);
        effects.append(&mut core.effects);
    });
    shard.pass(16_000);
    assert!(shard.requests.iter().any(is_character_write));
    assert_eq!(shard.saved(), [] as [u64; 0]);
    shard.release_requests();
    shard.pass(100);
    assert_eq!(shard.saved(), [1]);
}

#[test]
fn an_old_sessions_promise_is_not_told_to_the_new_one() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    for seq in 1..=5 {
        shard.order(ANNA, 1, seq, look_around());
    }
    shard.requests_are(only(is_character_write, Fate::Kept));
    shard.pass(15_000);
    shard.login(ANNA, 2);
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    shard.pass(16_000);
    assert!(
        shard.saved().iter().all(|&seq| seq == 0),
        "{:?}",
        shard.saved()
    );
}

#[test]
fn when_the_stamps_run_out_the_next_generation_is_claimed() {
    let mut shard = Shard::with_config(Tables::default(), 1, |config| config.stamps_max = 3);
    shard.begin();
    let first = shard.login(ANNA, 1);
    for seq in 1..=6 {
        shard.order(ANNA, 1, seq, look_around());
        shard.pass(15_000);
    }
    let generation = shard.generation_of(anna()).expect("it is still here");
    assert!(generation > first.generation);
    assert_eq!(
        shard.row(anna()).map(|row| row.generation),
        Some(generation)
    );
    shard.pass(16_000);
    let mut shard = shard.restarted();
    let again = shard.login(ANNA, 1);
    assert!(again.generation > generation);
    assert_eq!(again.session, 2);
}

#[test]
fn turns_are_bounded_in_number() {
    let mut shard = Shard::running();
    let names: Vec<String> = (0..400).map(|index| format!("crowd-{index}")).collect();
    for name in &names {
        shard.login(name, 1);
        shard.order(name, 1, 1, look_around());
    }
    shard.requests_are(only(is_character_write, Fate::Kept));
    shard.pass(30_000);
    assert_eq!(shard.kept_requests.len(), 256);
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    shard.pass(31_000);
    let saved: std::collections::BTreeSet<CharId> = shard
        .mail
        .iter()
        .filter_map(|it| match it {
            ToGateway::Saved { char_id, seq, .. } if *seq == 1 => Some(*char_id),
            _ => None,
        })
        .collect();
    assert_eq!(saved.len(), names.len());
}
