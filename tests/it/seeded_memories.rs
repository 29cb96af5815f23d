//! A generator of vaults with known faults: duplicates, contradictions and replaced facts among others that look like them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use sidenote::store::ProposalKind;

/// A fact about a subject: two ways to say it, ways to say that it was replaced, and values.
struct Attribute {
    says: [&'static str; 2],
    updates: &'static [&'static str],
    values: &'static [&'static str],
}

const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];
const CITIES: &[&str] = &["Bremen", "Oslo", "Lyon", "Porto", "Gdansk", "Utrecht", "Trieste"];
const PEOPLE: &[&str] =
    &["Anna Weber", "Tomas Novak", "Mireille Blanc", "Sanjay Patel", "Ingrid Holm", "Luca Ferri"];
const NUMBERS: &[&str] = &["12", "25", "40", "75", "90", "150", "365"];

/// Facts with one value at a time.
const ATTRIBUTES: &[Attribute] = &[
    Attribute {
        says: ["The staging database of {s} runs on {v}.", "{s}'s staging database uses {v}."],
        updates: &[
            "The staging database of {s} now runs on {v}.",
            "{s} moved its staging database from {o} to {v}.",
        ],
        values: &["PostgreSQL 14", "MariaDB 11", "SQLite", "MongoDB 7", "CockroachDB"],
    },
    Attribute {
        says: ["Releases of {s} are shipped on {v}.", "{s} ships its releases on {v}."],
        updates: &[
            "As of May, releases of {s} are shipped on {v} instead of {o}.",
            "{s} now ships its releases on {v}.",
        ],
        values: DAYS,
    },
    Attribute {
        says: [
            "The yearly budget of {s} is {v} thousand euros.",
            "{s} has a yearly budget of {v} thousand euros.",
        ],
        updates: &["The yearly budget of {s} was changed to {v} thousand euros."],
        values: NUMBERS,
    },
    Attribute {
        says: ["Billing questions of {s} go to {v}.", "For billing questions of {s}, ask {v}."],
        updates: &[
            "Billing questions of {s} no longer go to {o} but to {v}.",
            "Since March, billing questions of {s} go to {v}.",
        ],
        values: PEOPLE,
    },
    Attribute {
        says: [
            "Requests to the {s} gateway time out after {v} seconds.",
            "The {s} gateway ends requests after {v} seconds, a time out.",
        ],
        updates: &["Requests to the {s} gateway now time out after {v} seconds."],
        values: NUMBERS,
    },
    Attribute {
        says: ["Backups of {s} are kept for {v} days.", "{s} keeps its backups for {v} days."],
        updates: &[
            "Backups of {s} are now kept for {v} days.",
            "Correction: backups of {s} are kept for {v} days.",
        ],
        values: NUMBERS,
    },
    Attribute {
        says: ["The logo of {s} is painted {v}.", "{s} has a logo that is painted {v}."],
        updates: &["The logo of {s} was changed from {o} to {v} paint."],
        values: &["green", "orange", "violet", "turquoise", "crimson"],
    },
    Attribute {
        says: ["The archive of {s} is stored in {v}.", "{s} stores its archive in {v}."],
        updates: &[
            "The archive of {s} was moved from {o} to {v}.",
            "The archive of {s} is currently stored in {v}.",
        ],
        values: CITIES,
    },
    Attribute {
        says: ["Die Testdatenbank von {s} läuft auf {v}.", "Für die Testdatenbank nutzt {s} {v}."],
        updates: &[
            "Die Testdatenbank von {s} läuft jetzt auf {v}.",
            "Statt {o} nutzt {s} für die Testdatenbank inzwischen {v}.",
        ],
        values: &["Oracle 19", "Firebird 4", "Redis 7", "Informix 12"],
    },
    Attribute {
        says: ["Das Team von {s} trifft sich am {v}.", "Am {v} trifft sich das Team von {s}."],
        updates: &[
            "Das Team von {s} trifft sich nicht mehr am {o}, sondern am {v}.",
            "Seit Mai trifft sich das Team von {s} am {v}.",
        ],
        values: &["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag"],
    },
    Attribute {
        says: ["Le serveur de {s} se trouve à {v}.", "C'est à {v} que se trouve le serveur de {s}."],
        updates: &["Le serveur de {s} se trouve désormais à {v}."],
        values: CITIES,
    },
    Attribute {
        says: [
            "El equipo de {s} prepara los informes con {v}.",
            "Los informes del equipo de {s} se preparan con {v}.",
        ],
        updates: &[
            "El equipo de {s} ahora prepara los informes con {v}.",
            "El equipo de {s} ya no prepara los informes con {o} sino con {v}.",
        ],
        values: &["Grafana", "Metabase", "Superset", "Redash"],
    },
    Attribute {
        says: ["{s}の本番サーバーは{v}にある。", "{s}の本番サーバーは{v}にあります。"],
        updates: &["{s}の本番サーバーは現在は{v}にある。"],
        values: &["東京", "大阪", "札幌", "福岡", "名古屋"],
    },
];

/// Facts that hold or not: how it is said, how the opposite is said, and how it ended.
const SWITCHES: &[[&str; 3]] = &[
    [
        "{s} supports the offline mode.",
        "{s} does not support the offline mode.",
        "{s} no longer supports the offline mode.",
    ],
    [
        "Guests may edit pages of {s}.",
        "Guests may not edit pages of {s}.",
        "Guests may no longer edit pages of {s}.",
    ],
    [
        "{s} unterstützt den Dunkelmodus.",
        "{s} unterstützt den Dunkelmodus nicht.",
        "{s} unterstützt den Dunkelmodus nicht mehr.",
    ],
];

/// Facts of which several hold at the same time, and reports of different times.
const OPEN: &[&str] = &[
    "{p} likes {v}.",
    "{p} visited {v} in {y}.",
    "{s} had {v} visitors in {m} {y}.",
    "We talked with {p} about {s} and the harbour of {v}.",
    "The {m} review of {s} took {n} hours.",
    "{p} booked {v} for the {s} workshop of {m}.",
];

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below as u64).unwrap()
    }

    fn of<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.next(items.len())]
    }
}

/// How many notes of each kind a seeded vault has.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) duplicates: usize,
    pub(crate) contradictions: usize,
    pub(crate) supersessions: usize,
    pub(crate) all: usize,
}

/// A vault with known faults.
pub(crate) struct Seeded {
    /// The path, the text and the day of each note.
    pub(crate) notes: Vec<(String, String, u64)>,
    /// The two notes of each fault.
    pub(crate) pairs: BTreeMap<ProposalKind, BTreeSet<(String, String)>>,
}

const SUBJECTS: [&str; 12] = [
    "Falcon", "Heron", "Osprey", "Plover", "Curlew", "Dunlin", "Avocet", "Gannet", "Merlin", "Petrel",
    "Siskin", "Wigeon",
];
const PARTS: [&str; 12] = [
    "", " Core", " Edge", " Lab", " Mobile", " Portal", " Desk", " Bridge", " Field", " Studio", " Works",
    " Cloud",
];

impl Seeded {
    pub(crate) fn new(sizes: Sizes) -> Self {
        let mut numbers = Numbers(61);
        let mut seeded = Self { notes: Vec::new(), pairs: BTreeMap::new() };
        let subjects: Vec<String> =
            SUBJECTS.iter().flat_map(|name| PARTS.iter().map(move |part| format!("{name}{part}"))).collect();
        let mut facts: Vec<(usize, usize)> = (0..subjects.len())
            .flat_map(|subject| (0..ATTRIBUTES.len() + SWITCHES.len()).map(move |fact| (subject, fact)))
            .collect();
        for at in (1..facts.len()).rev() {
            facts.swap(at, numbers.next(at + 1));
        }
        let mut facts = facts.into_iter();
        let faults = [
            (ProposalKind::Duplicate, sizes.duplicates),
            (ProposalKind::Contradiction, sizes.contradictions),
            (ProposalKind::Superseded, sizes.supersessions),
        ];
        for (kind, count) in faults {
            for number in 0..count {
                let (subject, fact) = facts.next().unwrap();
                seeded.add_pair(kind, number, &subjects[subject], fact, &mut numbers);
            }
        }
        // Other facts about the same subjects, each said once.
        while seeded.notes.len() < sizes.all * 3 / 5 {
            let Some((subject, fact)) = facts.next() else { break };
            let (text, _) = said(&subjects[subject], fact, 0, &mut numbers);
            seeded.add(&text, &mut numbers);
        }
        let mut known: BTreeSet<String> = seeded.notes.iter().map(|(_, text, _)| text.clone()).collect();
        while seeded.notes.len() < sizes.all {
            let subject = &subjects[numbers.next(subjects.len())];
            let text = numbers
                .of(OPEN)
                .replace("{s}", subject)
                .replace("{p}", numbers.of(PEOPLE))
                .replace("{y}", numbers.of(&["2019", "2020", "2021", "2022", "2023", "2024", "2025"]))
                .replace("{m}", numbers.of(&["January", "March", "April", "June", "August", "October"]))
                .replace("{n}", numbers.of(NUMBERS))
                .replace(
                    "{v}",
                    numbers.of(&["Bremen", "Oslo", "Lyon", "Porto", "tea", "chess", "sailing", "jazz"]),
                );
            // Two reports of the same time would contradict each other.
            if known.insert(text.replace(|c: char| c.is_ascii_digit(), "")) {
                let more =
                    numbers.of(&["", " It was short.", " Nothing else came up.", " We go on next week."]);
                seeded.add(&format!("{text}{more}"), &mut numbers);
            }
        }
        seeded
    }

    fn add(&mut self, text: &str, numbers: &mut Numbers) -> String {
        // A memory is named after the beginning of its text.
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(8).collect();
        let name = words.join(" ");
        let is_taken = |path: &str| self.notes.iter().any(|(own, ..)| own.eq_ignore_ascii_case(path));
        let mut path = format!("Memories/{name}.md");
        let mut number = 2;
        while is_taken(&path) {
            path = format!("Memories/{name} {number}.md");
            number += 1;
        }
        let day = numbers.next(300) as u64;
        self.notes.push((path.clone(), text.to_owned(), day));
        path
    }

    fn add_pair(
        &mut self,
        kind: ProposalKind,
        number: usize,
        subject: &str,
        fact: usize,
        numbers: &mut Numbers,
    ) {
        let (first, old) = said(subject, fact, 0, numbers);
        let second = match (kind, ATTRIBUTES.get(fact)) {
            (ProposalKind::Duplicate, attribute) => match number % 5 {
                0 => first.clone(),
                1 => first.to_uppercase().replace('.', ""),
                2 => format!("Note: {first}"),
                3 => match attribute {
                    Some(attribute) => filled(attribute.says[1], subject, &old, ""),
                    None => format!("- {first}"),
                },
                _ => {
                    let long = long_text(&first, number);
                    let a = self.add(&long, numbers);
                    let changed =
                        long.replace("careful", "very careful").replace("Monday talk", "talk on Monday");
                    let b = self.add(&changed, numbers);
                    self.pairs.entry(kind).or_default().insert(ordered(a, b));
                    return;
                }
            },
            (ProposalKind::Contradiction, Some(attribute)) => {
                let new = other_value(attribute, &old, numbers);
                let form = if number % 4 == 3 { 1 } else { 0 };
                filled(attribute.says[form], subject, &new, &old)
            }
            (ProposalKind::Contradiction, None) => {
                SWITCHES[fact - ATTRIBUTES.len()][1].replace("{s}", subject)
            }
            (_, Some(attribute)) => {
                let new = other_value(attribute, &old, numbers);
                filled(attribute.updates[number % attribute.updates.len()], subject, &new, &old)
            }
            (_, None) => SWITCHES[fact - ATTRIBUTES.len()][2].replace("{s}", subject),
        };
        let a = self.add(&first, numbers);
        let b = self.add(&second, numbers);
        // The second one is newer.
        let last = self.notes.len() - 1;
        self.notes[last].2 = 305 + (number % 30) as u64;
        self.pairs.entry(kind).or_default().insert(ordered(a, b));
    }

    pub(crate) fn write(&self, root: &Path) {
        fs::create_dir_all(root.join("Memories")).unwrap();
        for (path, text, day) in &self.notes {
            let (month, day) = (day / 28 % 12 + 1, day % 28 + 1);
            let text =
                format!("---\ntype: fact\ncreated_at: 2025-{month:02}-{day:02}T09:00:00Z\n---\n{text}\n");
            fs::write(root.join(path), text).unwrap();
        }
    }
}

fn said(subject: &str, fact: usize, form: usize, numbers: &mut Numbers) -> (String, String) {
    match ATTRIBUTES.get(fact) {
        Some(attribute) => {
            let value = numbers.of(attribute.values);
            (filled(attribute.says[form], subject, value, ""), value.to_owned())
        }
        None => (SWITCHES[fact - ATTRIBUTES.len()][0].replace("{s}", subject), String::new()),
    }
}

fn other_value(attribute: &Attribute, old: &str, numbers: &mut Numbers) -> String {
    let others: Vec<&str> = attribute.values.iter().copied().filter(|value| *value != old).collect();
    numbers.of(&others).to_owned()
}

fn filled(form: &str, subject: &str, value: &str, old: &str) -> String {
    form.replace("{s}", subject).replace("{v}", value).replace("{o}", old)
}

fn long_text(first: &str, number: usize) -> String {
    let parts = [
        "The crew was careful with the ropes and checked each knot before the boat left the pier.",
        "On the way back they wrote down what has to be repaired before the winter comes.",
        "Nobody wants to spend another evening in the cold shed without the heater from last year.",
        "The Monday talk with the neighbours is about the fence, the gate and the old apple tree.",
        "Somebody should ask the shop whether the paint for the hull can be ordered in small cans.",
    ];
    let mut text = format!("{first}\n\n");
    for at in 0..4 {
        text.push_str(parts[(number / 5 + at) % parts.len()]);
        text.push_str(&format!(" Item {number}-{at} stays open.\n\n"));
    }
    text.trim_end().to_owned()
}

pub(crate) fn ordered(a: String, b: String) -> (String, String) {
    if a < b { (a, b) } else { (b, a) }
}
