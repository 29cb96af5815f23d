//! The limit of the refused calls of a person that the journal records, so that a person without a right cannot fill
//! the journal of a vault.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The most refused calls of a person that are recorded in a minute. They show what the person tries; more show nothing else.
const MOST: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The refused calls of the last minute, by person.
#[derive(Debug, Default)]
pub struct Refusals(HashMap<String, (Instant, u32)>);

impl Refusals {
    /// Counts a refused call of a person, and returns whether it is recorded. The first that is not is logged.
    pub(crate) fn admit(&mut self, who: &str) -> bool {
        self.0.retain(|_, (since, _)| since.elapsed() < MINUTE);
        let (_, count) = self.0.entry(who.to_owned()).or_insert_with(|| (Instant::now(), 0));
        *count += 1;
        if *count == MOST + 1 {
            tracing::warn!(
                "more than {MOST} calls of {who} were refused in a minute; the journal records no more of them"
            );
        }
        *count <= MOST
    }
}
