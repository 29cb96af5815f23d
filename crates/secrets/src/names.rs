//! The judgement of names before an assignment: whether `access_key` or `Access point` means a key, and whether `pass`
//! means a ticket.

/// Names that keys are assigned to.
pub(super) const KEY_NAMES: &[&str] =
    &["access", "api", "auth", "credential", "creds", "key", "secret", "token"];

/// Words that contain the name of a key and mean something else.
const OTHER_WORDS: &[&str] = &[
    "accessib",
    "accession",
    "accessor",
    "accessed",
    "apiar",
    "authentic",
    "author",
    "donkey",
    "hockey",
    "jockey",
    "keybind",
    "keyboard",
    "keycap",
    "keychain",
    "keyed",
    "keyframe",
    "keyhole",
    "keying",
    "keyless",
    "keymap",
    "keynote",
    "keypad",
    "keypath",
    "keyring",
    "keyspace",
    "keystone",
    "keystroke",
    "keyword",
    "lackey",
    "mickey",
    "monkey",
    "okapi",
    "secretar",
    "secretion",
    "secretly",
    "tokenis",
    "tokeniz",
    "turkey",
    "turnkey",
    "whiskey",
];

/// Nouns that make something else of a name before them: an access point, a key result, a token limit.
const THINGS: &[&str] = &[
    "area",
    "art",
    "bridge",
    "budget",
    "card",
    "ceremony",
    "change",
    "class",
    "contact",
    "contract",
    "control",
    "count",
    "date",
    "dates",
    "design",
    "door",
    "economy",
    "event",
    "factor",
    "figure",
    "finding",
    "findings",
    "flow",
    "format",
    "garden",
    "gate",
    "gateway",
    "group",
    "groups",
    "guide",
    "hatch",
    "idea",
    "ingredient",
    "insight",
    "issue",
    "length",
    "level",
    "limit",
    "log",
    "map",
    "meeting",
    "method",
    "methods",
    "metric",
    "metrics",
    "mode",
    "model",
    "modes",
    "network",
    "owner",
    "partner",
    "person",
    "phrase",
    "place",
    "plan",
    "player",
    "point",
    "points",
    "policy",
    "protocol",
    "provider",
    "ramp",
    "result",
    "results",
    "review",
    "ring",
    "road",
    "role",
    "room",
    "route",
    "sale",
    "santa",
    "scheme",
    "scope",
    "server",
    "service",
    "signature",
    "size",
    "society",
    "spec",
    "standard",
    "supply",
    "symbol",
    "takeaway",
    "team",
    "theme",
    "time",
    "topic",
    "track",
    "type",
    "types",
    "usage",
    "window",
];

/// Words before `pass` with which it is a ticket, a way over mountains, or a run over something.
const TICKETS: &[&str] = &[
    "analysis",
    "annual",
    "area",
    "boarding",
    "bus",
    "camping",
    "city",
    "codegen",
    "compiler",
    "compute",
    "concert",
    "conference",
    "cruise",
    "culture",
    "cycling",
    "day",
    "eurail",
    "event",
    "family",
    "festival",
    "ferry",
    "final",
    "first",
    "forward",
    "fourth",
    "game",
    "geometry",
    "guest",
    "gym",
    "hall",
    "interrail",
    "last",
    "lift",
    "lighting",
    "lint",
    "llvm",
    "metro",
    "mlir",
    "monthly",
    "mountain",
    "museum",
    "next",
    "optimization",
    "optimizer",
    "paint",
    "park",
    "parking",
    "post",
    "press",
    "rail",
    "railway",
    "regional",
    "render",
    "rendering",
    "review",
    "season",
    "second",
    "shader",
    "shadow",
    "single",
    "ski",
    "student",
    "swiss",
    "theatre",
    "third",
    "tourist",
    "train",
    "transit",
    "travel",
    "type",
    "visitor",
    "visitors",
    "weekly",
    "wheel",
    "yearly",
    "zone",
];

/// Says whether the name before an assignment is one of a key: one of its words is, and no noun after it makes a thing
/// of another kind of it.
pub(super) fn names_key(before: &str) -> bool {
    let words = words(before);
    let mut keys = words.iter().enumerate().filter(|(_, word)| is_key_word(word));
    let Some((first, word)) = keys.next() else { return false };
    // A compound, such as `api key`, speaks of a key whatever follows.
    let is_compound =
        keys.next().is_some() || KEY_NAMES.iter().filter(|name| word.contains(**name)).count() > 1;
    let next = words.get(first + 1).map_or("", String::as_str);
    is_compound || first + 2 < words.len() || !THINGS.contains(&next)
}

/// Returns whether a name that ends with `pass` is that of a ticket or of a run. `word` precedes the name.
pub(super) fn names_ticket(before: &str, word: &str) -> bool {
    let words = words(before);
    let Some((last, rest)) = words.split_last() else { return false };
    let qualifier = rest.last().map_or(word, String::as_str).to_ascii_lowercase();
    last == "pass" && TICKETS.contains(&qualifier.as_str())
}

/// Returns the words of a name in small letters: signs, and a capital after a small letter, end one.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut was_small) = (vec![String::new()], false);
    for c in name.chars() {
        if (!c.is_alphanumeric() || was_small && c.is_uppercase())
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Says whether a word is the name of a key, alone or in a compound such as `apikeyprod`.
fn is_key_word(word: &str) -> bool {
    let bare = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let singular = bare.strip_suffix('s').unwrap_or(bare);
    let named = KEY_NAMES.iter().filter(|name| word.contains(**name)).count();
    named > 1
        || !OTHER_WORDS.iter().any(|other| word.contains(other))
            && KEY_NAMES
                .iter()
                .any(|name| bare.ends_with(name) || singular.ends_with(name) || word.starts_with(name))
}
