use super::*;

fn leases(shard: &mut Shard) -> Vec<ClaimRow> {
    (0..4)
        .map(|region| {
            shard
                .claim_row(Right::Region(RegionId(region)))
                .expect("every region has a row")
        })
        .collect()
}

#[test]
fn a_start_takes_every_region_whatever_the_store_does() {
    let mut shard = Shard::cold(Tables::default(), 1);
    let mut requests = 0;
    shard.requests_are(move |_| {
        requests += 1;
        match requests % 3 {
            0 => Fate::Done,
            1 => Fate::DoneUnknown,
            _ => Fate::LostUnknown,
        }
    });
    shard.begin();
    shard.pass(10_000);
    assert!(shard.core.holds_everything());
    let me = shard.me.clone();
    assert!(
        leases(&mut shard)
            .iter()
            .all(|row| row.holder.as_ref() == Some(&me))
    );
}

#[test]
fn claims_of_regions_are_bounded_in_number() {
    let world = World::new(7, 1024).expect("the size is good");
    let mut shard = Shard::with_config(Tables::default(), 1, |config| config.world = world);
    shard.requests_are(|request| {
        if is_cas(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.begin();
    assert_eq!(shard.kept_requests.len(), 64);
    assert!(!shard.core.holds_everything());
}

#[test]
fn a_restart_after_a_crash_claims_past_the_dead_boot() {
    let mut shard = Shard::running();
    let before = leases(&mut shard);
    shard.login("Anna", 1);
    let mut shard = shard.restarted();
    let after = leases(&mut shard);
    for (before, after) in before.iter().zip(&after) {
        assert!(after.number > before.number);
        assert_eq!(after.holder.as_ref(), Some(&shard.me));
    }
    assert_eq!(shard.login("Anna", 1).generation, 2);
}

#[test]
fn a_stop_writes_and_releases_everything_and_a_restart_finds_it() {
    let mut shard = Shard::running();
    let names: Vec<String> = (0..20).map(|index| format!("crowd-{index}")).collect();
    for name in &names {
        shard.login(name, 1);
        shard.order(name, 1, 1, look_around());
    }
    shard.pass(1_000);
    let places: Vec<_> = names
        .iter()
        .map(|name| shard.core.fighter(CharId::of_name(name)).map(|it| it.pos))
        .collect();
    shard.stop();
    shard.attach("Late", 1, None, 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotNow]);
    shard.pass(2_000);
    assert!(shard.stopped);
    assert!(leases(&mut shard).iter().all(|row| row.holder.is_none()));
    for name in &names {
        let owner = shard.owner(CharId::of_name(name)).expect("a row");
        assert_eq!(owner.holder, None);
    }
    let mut shard = shard.restarted();
    for (name, place) in names.iter().zip(places) {
        shard.attach(name, 1, Some(1), 1);
        let attached = shard.attached().expect("it is attached");
        assert_eq!(attached.last_order, 1);
        assert_eq!(Some(attached.pos), place);
        assert!(
            !shard
                .mail
                .iter()
                .any(|it| matches!(it, ToGateway::PrivateLost { .. })),
            "nothing is lost in a stop"
        );
    }
}

#[test]
fn a_stop_is_as_fast_as_its_store() {
    let world = World::new(7, 1024).expect("the size is good");
    let mut shard = Shard::with_config(Tables::default(), 1, |config| config.world = world);
    shard.begin();
    assert!(shard.core.holds_everything());
    shard.login("Anna", 1);
    shard.stop();
    shard.tick();
    assert!(shard.stopped);
}

#[test]
fn a_stop_waits_for_object_writes() {
    let mut shard = Shard::running();
    let object = shard.core.config.world.content(WEST).objects[0];
    shard.requests_are(|request| match request {
        Request::ObjectsWrite { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.run(|core, _, effects| {
        let slot = core.slot_mut(WEST).expect("it is on the map");
        let journal = slot.journal.as_mut().expect("it is held");
        let write = journal.record(1, &[object]);
        core.write_objects(write);
        effects.append(&mut core.effects);
    });
    shard.stop();
    shard.pass(1_000);
    assert!(!shard.stopped);
    assert!(leases(&mut shard)[0].holder.is_some());
    shard.release_requests();
    shard.pass(1_000);
    assert!(shard.stopped);
}

#[test]
fn a_stop_ends_even_if_the_store_does_not_answer() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    shard.requests_are(|_| Fate::LostUnknown);
    shard.stop();
    shard.pass(29_000);
    assert!(!shard.stopped);
    shard.pass(2_000);
    assert!(shard.stopped);
}

#[test]
fn a_stop_in_the_middle_of_everything_comes_to_its_end() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.requests_are(|request| {
        if is_cas(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.begin();
    shard.stop();
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    shard.pass(1_000);
    assert!(shard.stopped);
    assert!(leases(&mut shard).iter().all(|row| row.holder.is_none()));
}

// Goes red when `handle` does not ask for the fence first.
#[test]
fn a_fenced_sim_does_nothing_and_forgets_nothing() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    shard.pass(100);
    let ticks = shard.core.ticks;
    shard.input(Input::Fence { fallen: true });
    shard.order("Anna", 1, 1, look_around());
    shard.attach("Bert", 2, None, 0);
    shard.pass(60_000);
    assert_eq!(shard.core.ticks, ticks);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotNow]);
    assert!(shard.privates().is_empty());
    shard.input(Input::Fence { fallen: false });
    assert_eq!(shard.private_numbers(), [1], "the order was kept");
    shard.attach("Bert", 3, None, 0);
    assert!(shard.attached().is_some());
}

#[test]
fn no_acknowledgement_counts_while_fenced() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    shard.order("Anna", 1, 1, look_around());
    shard.requests_are(|request| {
        if is_character_write(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.pass(15_000);
    shard.input(Input::Fence { fallen: true });
    shard.release_requests();
    shard.pass(1_000);
    assert_eq!(shard.saved(), [] as [u64; 0]);
    shard.input(Input::Fence { fallen: false });
    shard.pass(200);
    assert_eq!(shard.saved(), [1]);
}

#[test]
fn the_gateway_hears_which_regions_are_held() {
    let mut shard = Shard::running();
    shard.tick();
    let told: usize = shard
        .mail
        .iter()
        .map(|it| match it {
            ToGateway::Leases(leases) => leases.changes.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(told, 4);
}

/// Goes red when what is known of a link is undone by the loss of the one before, which was kept until the thaw.
#[test]
fn a_link_that_comes_back_while_fenced_is_there_after_the_thaw() {
    let mut shard = Shard::running();
    shard.input(Input::Fence { fallen: true });
    let node = shard.gateway.node.clone();
    shard.input(Input::PeerLost { node: node.clone() });
    assert!(!shard.core.others.is_linked(&node));
    let nodes = vec![node.clone()];
    shard.input(Input::Linked { nodes });
    shard.input(Input::Fence { fallen: false });
    assert!(shard.core.others.is_linked(&node));
}
