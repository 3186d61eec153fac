//! Which files are pure. The one list: `docs/architecture.md` tells it in prose.
//!
//! A new file in one of these folders is pure unless it is named here as a shell, with the reason.

/// A file, or a folder with everything in it, that is pure but for its shells.
pub struct Area {
    /// Relative to the root of the repository.
    pub path: &'static str,
    /// What is not pure in it: path relative to `path`, and why.
    pub shells: &'static [(&'static str, &'static str)],
}

const fn all(path: &'static str) -> Area {
    Area { path, shells: &[] }
}

/// Everything that must be pure.
pub const PURE: &[Area] = &[
    all("uo-proto/src"),
    all("uo-combat/src"),
    all("uo-world/src"),
    all("uo-server/src/crossing.rs"),
    all("uo-server/src/identity.rs"),
    all("uo-server/src/jitter.rs"),
    all("uo-server/src/limits.rs"),
    all("uo-server/src/planted.rs"),
    all("uo-server/src/cluster"),
    Area {
        path: "uo-server/src/sim",
        shells: &[
            ("mod.rs", "holds shells and pure modules"),
            ("loops.rs", "the tick thread"),
            ("mailbox.rs", "what reaches the tick thread"),
            ("report.rs", "logs"),
            ("schedule/mod.rs", "only holds a shell and a pure module"),
            ("schedule/precedence.rs", "asks the operating system"),
        ],
    },
    Area {
        path: "uo-server/src/gateway",
        shells: &[
            ("mod.rs", "holds shells and pure modules"),
            ("accept.rs", "accepts sockets"),
            ("connection.rs", "reads and writes sockets"),
            ("line.rs", "a socket, shared by a thread and a task"),
            ("loops.rs", "the gateway's thread"),
            ("mailbox.rs", "what reaches the gateway's thread"),
            ("watch.rs", "the thread of a process without a sim"),
        ],
    },
    Area {
        path: "uo-server/src/peer",
        shells: &[
            ("mod.rs", "holds shells and pure modules"),
            ("local.rs", "fills the inboxes of this process"),
            (
                "tcp.rs",
                "the listener, the dialer, and who tells the cores",
            ),
            ("socket.rs", "reads and writes sockets"),
            ("tcp/tests.rs", "opens sockets"),
            ("lane.rs", "is shared between threads"),
            ("flags.rs", "reads the file with the secret"),
        ],
    },
    all("uo-server/src/store/row.rs"),
    all("uo-server/src/store/tables"),
];
