//! What a suite is, what it may need, and the tables of all suites.
//!
//! A new kind of test is one more row in [`SUITES`]. What it needs beyond the pinned toolchain (a database, a browser,
//! a package) is a [`Need`]: how to see that it is there, and how to get it.

use crate::report::Tally;
use crate::suites::{cargo, docs, hygiene, purity, scylla};
use crate::workspace::Workspace;

/// How thorough a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// What a change must pass: minutes.
    Usual,
    /// Many more seeds: hours.
    Deep,
}

/// Something that a suite cannot run without.
pub struct Need {
    /// As it is called in messages.
    pub name: &'static str,
    /// Whether it is there.
    pub present: fn(&Workspace) -> bool,
    /// Gets it; the error says what was tried and what a person can do.
    pub get: fn(&Workspace) -> anyhow::Result<()>,
}

/// One group of tests that is run, counted and timed as a whole.
pub struct Suite {
    /// For `--only` and the summary.
    pub name: &'static str,
    /// What it proves, in a few words.
    pub about: &'static str,
    /// What it cannot run without.
    pub needs: &'static [Need],
    /// Runs it. An error means that it could not be run to its end, and counts as one failure.
    pub run: fn(&Workspace, Depth) -> anyhow::Result<Tally>,
}

const RUSTFMT: Need = Need {
    name: "rustfmt",
    present: |workspace| cargo::has_component(workspace, "fmt"),
    get: |workspace| cargo::add_component(workspace, "rustfmt"),
};

const CLIPPY: Need = Need {
    name: "clippy",
    present: |workspace| cargo::has_component(workspace, "clippy"),
    get: |workspace| cargo::add_component(workspace, "clippy"),
};

const MAVEN: Need = Need {
    name: "Maven and Java",
    present: scylla::has_maven,
    get: scylla::get_maven,
};

const CASSANDRA_5_0: Need = Need {
    name: "Apache Cassandra 5.0",
    present: |workspace| scylla::has_cassandra(workspace, "5.0"),
    get: |workspace| scylla::get_cassandra(workspace, "5.0"),
};

const CASSANDRA_4_1: Need = Need {
    name: "Apache Cassandra 4.1",
    present: |workspace| scylla::has_cassandra(workspace, "4.1"),
    get: |workspace| scylla::get_cassandra(workspace, "4.1"),
};

/// What `ci` looks at before it runs a test.
pub const LINTS: &[Suite] = &[
    Suite {
        name: "format",
        about: "the code is formatted",
        needs: &[RUSTFMT],
        run: cargo::format,
    },
    Suite {
        name: "clippy",
        about: "no warning of the compiler or of clippy",
        needs: &[CLIPPY],
        run: cargo::clippy,
    },
    Suite {
        name: "rustdoc",
        about: "the API documentation builds without a warning",
        needs: &[],
        run: cargo::rustdoc,
    },
];

/// Every test suite, quick ones first.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "hygiene",
        about: "no overlong file, no unfinished code",
        needs: &[],
        run: hygiene::run,
    },
    Suite {
        name: "docs",
        about: "links and commands in the documentation lead somewhere",
        needs: &[],
        run: docs::run,
    },
    Suite {
        name: "purity",
        about: "the purity rules bite, and every pure module is under them",
        needs: &[CLIPPY],
        run: purity::run,
    },
    Suite {
        name: "unit",
        about: "cargo test of every crate",
        needs: &[],
        run: cargo::test,
    },
    Suite {
        name: "planted",
        about: "simulator and models miss each rule that is left out on purpose",
        needs: &[],
        run: cargo::planted,
    },
    Suite {
        name: "scylla",
        about: "a cluster and the store's contract on a real Cassandra: one node, three, three less one, and an older version",
        needs: &[MAVEN, CASSANDRA_5_0, CASSANDRA_4_1],
        run: scylla::run_all,
    },
];

/// What only a nightly run does, after everything else, and a run that names it.
pub const NIGHTLY: &[Suite] = &[
    Suite {
        name: "models",
        about: "every state of the cluster core's machines within the deep bounds",
        needs: &[],
        run: cargo::models,
    },
    Suite {
        name: "crash",
        about: "what was saved survives fifty kills under load",
        needs: &[],
        run: cargo::crash,
    },
    Suite {
        name: "bench",
        about: "every benchmark runs to its end",
        needs: &[],
        run: cargo::bench_all,
    },
];
