//! A proof fits one connection, one direction and one pair.

use super::*;
use crate::peer::samples::hello;

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

#[test]
fn every_part_of_a_transcript_counts() {
    let key = secret("correct horse battery staple");
    let (dialer, acceptor) = (hello("gw-1", 1), hello("sim-1", 2));
    let base = Transcript {
        dialer: &dialer,
        dialer_nonce: &[1; 32],
        acceptor: &acceptor,
        acceptor_nonce: &[2; 32],
    };
    let proof = base.prove(&key, Side::Dialer);
    assert!(base.is_proof(&key, Side::Dialer, &proof));
    assert!(!base.is_proof(&key, Side::Acceptor, &proof), "mirrored");
    let other = secret("correct horse battery stable");
    assert!(!base.is_proof(&other, Side::Dialer, &proof));

    type Change = fn(&mut Hello);
    let changes: [Change; 6] = [
        |it| it.cluster = "feluccb".into(),
        |it| it.version_min = 0,
        |it| it.version_max = 1,
        |it| it.holder.node = "sim-9".into(),
        |it| it.holder.boot.0 = 9,
        |it| it.role = Role::All,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (mut of_dialer, mut of_acceptor) = (dialer.clone(), acceptor.clone());
        change(&mut of_dialer);
        change(&mut of_acceptor);
        for changed in [
            Transcript {
                dialer: &of_dialer,
                ..base.clone()
            },
            Transcript {
                acceptor: &of_acceptor,
                ..base.clone()
            },
        ] {
            assert!(
                !changed.is_proof(&key, Side::Dialer, &proof),
                "change {number}"
            );
        }
    }
    for changed in [
        Transcript {
            dialer_nonce: &[3; 32],
            ..base.clone()
        },
        Transcript {
            acceptor_nonce: &[3; 32],
            ..base.clone()
        },
        Transcript {
            dialer_nonce: &[2; 32],
            acceptor_nonce: &[1; 32],
            ..base.clone()
        },
    ] {
        assert!(!changed.is_proof(&key, Side::Dialer, &proof));
    }
}

#[test]
fn nothing_moves_from_one_name_into_the_next() {
    let key = secret("correct horse battery staple");
    let mut one = hello("b-sim", 1);
    one.cluster = "a".into();
    let mut two = hello("-sim", 1);
    two.cluster = "ab".into();
    let acceptor = hello("sim-1", 2);
    let of = |dialer| Transcript {
        dialer,
        dialer_nonce: &[1; 32],
        acceptor: &acceptor,
        acceptor_nonce: &[2; 32],
    };
    let proof = of(&one).prove(&key, Side::Dialer);
    assert!(!of(&two).is_proof(&key, Side::Dialer, &proof));
}

#[test]
fn a_secret_is_long_enough_and_never_shown() {
    assert_eq!(Secret::parse("  fifteen bytes..\n"), Err(SecretTooShort));
    let secret = secret("\tsixteen bytes ..\n");
    assert_eq!(secret, self::secret("sixteen bytes .."));
    assert_eq!(format!("{secret:?}"), "Secret(..)");
}

#[test]
fn the_newest_common_version_is_spoken() {
    let with = |version_min, version_max| Hello {
        version_min,
        version_max,
        ..hello("sim-1", 1)
    };
    for (ours, theirs, want) in [
        ((1, 2), (1, 2), Some(2)),
        ((1, 2), (2, 3), Some(2)),
        ((2, 3), (1, 2), Some(2)),
        ((1, 2), (3, 4), None),
        ((3, 4), (1, 2), None),
    ] {
        let found = with(ours.0, ours.1).common_version(&with(theirs.0, theirs.1));
        assert_eq!(found, want, "{ours:?} {theirs:?}");
    }
}
