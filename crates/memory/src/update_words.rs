//! The words by which a statement says that it replaces an older one, in the languages with word lists, the verbs
//! that say nothing by themselves, and other words that tell the parts of a statement.

use std::ops::Range;

use sidenote_language::folding::is_unspaced;

/// Words and phrases that mark an update, in lower case. In a script without spaces they may be part of a longer run.
const UPDATES: &[&str] = &[
    // English.
    "now",
    "no longer",
    "not anymore",
    "any more",
    "anymore",
    "instead of",
    "instead",
    "since",
    "as of",
    "from now on",
    "moved to",
    "moved from",
    "moved",
    "has moved",
    "was moved",
    "switched to",
    "switched from",
    "switched",
    "migrated to",
    "migrated from",
    "migrated",
    "replaced by",
    "replaced",
    "replaces",
    "was replaced",
    "renamed to",
    "renamed",
    "changed to",
    "changed from",
    "changed",
    "changes to",
    "updated to",
    "updated",
    "update",
    "upgraded to",
    "upgraded",
    "downgraded",
    "correction",
    "formerly",
    "previously",
    "until recently",
    "effective",
    "currently",
    "took over from",
    "took over",
    "takes over",
    "supersedes",
    "went from",
    "rather than",
    "in place of",
    "these days",
    // German.
    "jetzt",
    "nun",
    "nicht mehr",
    "inzwischen",
    "mittlerweile",
    "seit",
    "statt",
    "anstelle von",
    "anstelle",
    "ab sofort",
    "gewechselt",
    "umgestellt",
    "umgezogen",
    "verlegt",
    "ersetzt",
    "umbenannt",
    "geändert",
    "aktualisiert",
    "neuerdings",
    "korrektur",
    "künftig",
    "stattdessen",
    "abgelöst",
    "wechselte",
    "zog um",
    // French.
    "maintenant",
    "désormais",
    "n'est plus",
    "ne sont plus",
    "n'a plus",
    "depuis",
    "au lieu de",
    "au lieu du",
    "à partir de",
    "remplacé",
    "remplacée",
    "remplace",
    "déplacé",
    "déplacée",
    "changé",
    "passé à",
    "passée à",
    "est passé",
    "est passée",
    "mis à jour",
    "dorénavant",
    "à présent",
    "plutôt que",
    "a migré vers",
    "a migré",
    // Spanish.
    "ahora",
    "ya no",
    "desde",
    "en lugar de",
    "en vez de",
    "a partir de",
    "reemplazado",
    "reemplaza",
    "sustituido",
    "cambiado",
    "cambió a",
    "cambió",
    "se trasladó",
    "se mudó",
    "migró",
    "actualizado",
    "actualmente",
    "pasó a",
    // Italian.
    "adesso",
    "non più",
    "invece di",
    "a partire da",
    "sostituito",
    "spostato",
    "cambiato",
    "aggiornato",
    "passato a",
    // Portuguese.
    "agora",
    "já não",
    "em vez de",
    "a partir de",
    "substituído",
    "mudou para",
    "mudou",
    "movido",
    "atualizado",
    // Dutch.
    "nu",
    "niet meer",
    "niet langer",
    "sinds",
    "in plaats van",
    "vanaf",
    "vervangen",
    "verplaatst",
    "gewijzigd",
    "overgestapt",
    "bijgewerkt",
    "verhuisd",
    // Polish.
    "teraz",
    "już nie",
    "zamiast",
    "zmieniono",
    "przeniesiono",
    "zastąpiono",
    "obecnie",
    "od teraz",
    // Russian.
    "теперь",
    "больше не",
    "вместо",
    "изменено",
    "перенесён",
    "перенесен",
    "заменён",
    "заменен",
    "отныне",
    "сейчас",
    "переехал",
    "перешли на",
    // Japanese.
    "現在は",
    "今は",
    "変更され",
    "変更し",
    "に変更",
    "移行し",
    "代わりに",
    "に変わ",
    "以降は",
    "ではなくな",
    // Chinese.
    "现在",
    "不再",
    "改为",
    "改成",
    "取代",
    "迁移到",
    "更换为",
    "目前",
    // Korean.
    "이제",
    "더 이상",
    "변경되",
    "변경했",
    "대신",
];

/// Verbs and nouns that name a relation which other words name as well, by themselves or by their stems.
const LIGHT: &[&str] = &[
    "use",
    "uses",
    "using",
    "used",
    "run",
    "runs",
    "running",
    "live",
    "lives",
    "sit",
    "sits",
    "locat",
    "located",
    "host",
    "hosted",
    "call",
    "called",
    "keep",
    "kept",
    "keeps",
    "store",
    "stored",
    "stores",
    "happen",
    "happens",
    "take",
    "takes",
    "get",
    "gets",
    "make",
    "makes",
    "go",
    "goes",
    "hold",
    "holds",
    "handl",
    "handled",
    "handles",
    "listen",
    "listens",
    "set",
    "sets",
    "need",
    "needs",
    "requir",
    "requires",
    "resid",
    "resides",
    "serv",
    "served",
    "serves",
    "configur",
    "configured",
    "läuft",
    "lauft",
    "lauf",
    "liegt",
    "lieg",
    "nutzt",
    "nutz",
    "verwendet",
    "verwend",
    "benutzt",
    "benutz",
    "heißt",
    "heiss",
    "findet",
    "befindet",
    "befind",
    "utilise",
    "utilis",
    "trouve",
    "trouv",
    "tourne",
    "tourn",
    "usa",
    "utiliza",
    "utiliz",
    "funciona",
    "funcion",
    "encuentra",
    "encuentr",
    "draait",
    "gebruikt",
    "gebruik",
];

/// The phrases of an update that only say from when it holds.
const DATING: &[&str] = &[
    "since",
    "as of",
    "effective",
    "seit",
    "ab sofort",
    "depuis",
    "à partir de",
    "desde",
    "a partir de",
    "sinds",
    "vanaf",
];

/// Stems of verbs of which several things can be true at the same time.
const OPEN: &[&str] = &[
    "like", "love", "enjoy", "visit", "know", "meet", "met", "buy", "bought", "read", "watch", "book",
    "attend", "eat", "drink", "play", "talk", "want", "tri", "try", "support", "speak", "own", "includ",
    "contain", "mag", "mog", "lieb", "besuch", "kenn", "kauf", "les", "spricht", "sprech", "trink", "aim",
    "conn", "achet", "gust", "conoc", "compr",
];

/// Words before a noun that is no name, in a language that writes nouns with capitals.
pub(crate) const GERMAN_ARTICLES: [&str; 24] = [
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "kein",
    "keine", "im", "am", "zum", "zur", "vom", "beim", "ins", "unser", "unsere", "jede",
];

/// Words before a noun to which what is said before belongs, without accents.
pub(crate) const GENITIVES: [&str; 12] =
    ["of", "von", "des", "de", "du", "del", "della", "di", "do", "da", "van", "dla"];

/// Numbers in words, without accents.
pub(crate) const NUMBER_WORDS: [&str; 36] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty",
    "thirty", "hundred", "thousand", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun",
    "zehn", "elf", "zwolf", "deux", "trois", "quatre", "cinq", "huit", "dos", "tres", "cuatro", "cinco",
    "ocho",
];

/// Returns whether a phrase of an update only says from when it holds.
pub(crate) fn is_dating(phrase: &str) -> bool {
    DATING.contains(&phrase)
}

/// Returns whether several things can be true of a verb at the same time, given by its stem.
pub(crate) fn is_open(stem: &str) -> bool {
    OPEN.contains(&stem)
}

/// Returns whether a word or stem says nothing by itself.
pub(crate) fn is_light(word: &str) -> bool {
    LIGHT.contains(&word)
}

/// Finds the phrases of a text that mark an update: the bytes of each, and its name.
pub(crate) fn update_spans(text: &str) -> Vec<(Range<usize>, &'static str)> {
    // A lower-case form of the same length keeps the places.
    let lower: String = text
        .chars()
        .map(|c| {
            let mut small = c.to_lowercase();
            match (small.next(), small.next()) {
                (Some(small), None) if small.len_utf8() == c.len_utf8() => small,
                _ => c,
            }
        })
        .collect();
    let lower = lower.replace('’', "'  ");
    let mut found = Vec::new();
    if lower.len() != text.len() {
        return found;
    }
    for phrase in UPDATES {
        let is_run = phrase.chars().any(is_unspaced);
        for (at, _) in lower.match_indices(phrase) {
            let end = at + phrase.len();
            let is_word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
            let before = lower.get(..at).and_then(|text| text.chars().next_back());
            let after = lower.get(end..).and_then(|text| text.chars().next());
            if is_run || !before.is_some_and(is_word) && !after.is_some_and(is_word) {
                found.push((at..end, *phrase));
            }
        }
    }
    found
}
