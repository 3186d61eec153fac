//! What was said and how often it may be heard: each applied order shows once.

use std::collections::BTreeMap;

/// Lines by their text; a text names its speaker, session and order, so no two are alike.
#[derive(Debug, Default)]
pub struct Ledger {
    /// How many crashes a line survived while its speaker did not know it to be durable: an owner that forgot the order
    /// may apply it once more after each.
    crashes: BTreeMap<String, u32>,
}

impl Ledger {
    /// A line is sent for the first time.
    pub fn sent(&mut self, text: &str) {
        self.crashes.insert(text.to_owned(), 0);
    }

    /// The sim crashed, and this line was not known to be durable.
    pub fn may_repeat(&mut self, text: &str) {
        if let Some(crashes) = self.crashes.get_mut(text) {
            *crashes += 1;
        }
    }

    /// How often a listener may hear a line; none: nobody said it.
    pub fn times(&self, text: &str) -> Option<u32> {
        self.crashes.get(text).map(|crashes| crashes + 1)
    }
}
