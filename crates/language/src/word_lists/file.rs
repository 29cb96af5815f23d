//! The form of a language's file in `crates/language/languages`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The words of one language. Every list may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LanguageFile {
    /// Whether all nouns have capitals, so that a capital does not tell a name.
    pub(super) capitalises_nouns: bool,
    pub(super) prompts: Prompts,
    pub(super) names: Names,
    /// Words that tell the type of a memory, by type.
    pub(super) types: BTreeMap<String, Vec<String>>,
    pub(super) capture: Capture,
    pub(super) duplicates: Duplicates,
    /// How dates are put in words.
    pub(super) dates: Dates,
}

/// The words of prompts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Prompts {
    pub(super) small_talk: Vec<String>,
    pub(super) again: Vec<String>,
    pub(super) orders: Vec<String>,
    pub(super) before_orders: Vec<String>,
    pub(super) after_orders: Vec<String>,
    pub(super) requests: Vec<String>,
    pub(super) final_orders: Vec<String>,
    pub(super) questions: Vec<String>,
}

/// The words around names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Names {
    pub(super) address: Vec<String>,
    pub(super) particles: Vec<String>,
    pub(super) endings: Vec<String>,
}

/// The words of sentences that are worth a note.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Capture {
    pub(super) decisions: Vec<String>,
    pub(super) fixes: Vec<String>,
    pub(super) preferences: Vec<String>,
    pub(super) discoveries: Vec<String>,
    pub(super) procedures: Vec<String>,
    pub(super) places: Vec<String>,
    pub(super) important: Vec<String>,
}

/// The words in which two texts that say the same agree.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Duplicates {
    pub(super) negations: Vec<String>,
    pub(super) modals: Vec<String>,
    pub(super) stages: Vec<String>,
    pub(super) times: Vec<String>,
}

/// The words of dates. The list of twelve months, that of seven days from Monday on and that of numbers from one on have one
/// entry for each, with `|` between its forms.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Dates {
    pub(super) months: Vec<String>,
    pub(super) weekdays: Vec<String>,
    pub(super) numbers: Vec<String>,
    /// The patterns that `{point}` means.
    pub(super) points: Vec<String>,
    /// Patterns by what they mean, such as `last_week`.
    pub(super) phrases: BTreeMap<String, Vec<String>>,
}
