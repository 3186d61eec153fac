//! How much happened in a run, or in many: a run in which nothing happened proves nothing.

/// A struct of counts, each known by its name, that can be added up.
macro_rules! counts {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$what:meta])* pub $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name {
            $($(#[$what])* pub $field: u64,)*
        }

        impl $name {
            /// Each count by its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counts! {
    /// What players saw.
    pub struct Stats {
        pub welcomes,
        pub resumes,
        pub deltas,
        pub events,
        pub said,
        /// Lines that had to be heard.
        pub expected,
        pub privates,
        pub saved,
        pub missed,
        pub superseded,
        pub unauthorised,
        pub resent,
    }
}

counts! {
    /// What became of the nodes.
    pub struct Counted {
        pub crashes,
        pub stops,
        pub pauses,
        pub panics,
        /// Falls of a fence.
        pub fences,
        /// Boots that went on as others, having been declared dead.
        pub rebirths,
        /// Processes that ended because another had their name.
        pub names_taken,
        pub handoffs,
        pub reclaims,
        pub pins,
        /// Regions handed to others, and those that came to nothing.
        pub drains,
        pub drains_refused,
        pub drains_timed_out,
        pub drains_reclaimed,
        pub drains_lost,
        /// Orders that came twice.
        pub duplicates,
        pub renewals,
    }
}

counts! {
    /// What the store did.
    pub struct StoreCounts {
        pub unknowns,
        /// Outcomes of a life's register that its asker does not know.
        pub unknown_lives,
        /// Effects after the asker had given up.
        pub late_writes,
        pub deaths,
        pub thaws,
        /// Regions taken from the dead.
        pub takeovers,
        /// Claims of what a live holder offered.
        pub drained,
    }
}
