//! Folding: the one form of a word in which it is indexed and looked up, whatever its case, its diacritics, and the code
//! points that write it. Nothing here splits text into words.

use unicode_normalization::UnicodeNormalization;

/// Appends `raw` in lower case, in compatibility form and without diacritics.
///
/// Combining marks of Latin, Greek and Cyrillic letters (U+0300–U+036F), Arabic vowel signs, Hebrew points and
/// invisible characters are removed. Marks that are letters of their script (Devanagari vowels, kana voicing) and those
/// that make another letter of the alphabet (Russian й, Ukrainian ї) are kept. Variants of Arabic letters become one
/// letter, and digits of every script ASCII digits.
pub fn fold_into(raw: &str, out: &mut String) {
    if raw.is_ascii() {
        let start = out.len();
        out.push_str(raw);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    if raw.chars().all(folds_to_itself) {
        out.push_str(raw);
        return;
    }
    let mut base = '\0';
    let bare = raw.nfkd().filter(|&c| {
        let is_kept = !is_removed(base, c);
        if is_kept && !is_diacritic(c) {
            base = c;
        }
        is_kept
    });
    for c in bare.nfc() {
        match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'ø' | 'Ø' => out.push('o'),
            'ł' | 'Ł' => out.push('l'),
            'đ' | 'Đ' | 'ð' | 'Ð' => out.push('d'),
            'þ' | 'Þ' => out.push_str("th"),
            'ı' | 'İ' => out.push('i'),
            'ς' => out.push('σ'),
            'ё' | 'Ё' => out.push('е'),
            'ٱ' => out.push('ا'),
            'ة' | 'ہ' | 'ە' | 'ھ' | 'ۃ' => out.push('ه'),
            'ى' | 'ی' | 'ې' => out.push('ي'),
            'ک' => out.push('ك'),
            _ => match ascii_digit(c) {
                Some(digit) => out.push(digit),
                None => out.extend(c.to_lowercase().map(|low| if low == 'ς' { 'σ' } else { low })),
            },
        }
    }
}

/// Returns a text in the form of [`fold_into`].
pub fn folded(raw: &str) -> String {
    let mut folded = String::with_capacity(raw.len());
    fold_into(raw, &mut folded);
    folded
}

/// Returns whether folding removes a character that follows the letter `base`, both in decomposed form.
fn is_removed(base: char, c: char) -> bool {
    match c {
        // й, ў, ї, ѓ and ќ are letters of their own; ё is written as е as well, and other marks show the stress.
        '\u{0300}'..='\u{036F}' => !matches!(
            (base, c),
            ('и' | 'И' | 'у' | 'У', '\u{0306}')
                | ('і' | 'І', '\u{0308}')
                | ('г' | 'Г' | 'к' | 'К', '\u{0301}')
        ),
        '\u{0591}'..='\u{05BD}'
        | '\u{05BF}'
        | '\u{05C1}'..='\u{05C2}'
        | '\u{05C4}'..='\u{05C5}'
        | '\u{05C7}' => true,
        '\u{0610}'..='\u{061A}' | '\u{0640}' | '\u{064B}'..='\u{065F}' | '\u{0670}' => true,
        '\u{06D6}'..='\u{06DC}'
        | '\u{06DF}'..='\u{06E4}'
        | '\u{06E7}'..='\u{06E8}'
        | '\u{06EA}'..='\u{06ED}' => true,
        '\u{FE00}'..='\u{FE0F}' | '\u{20E3}' => true,
        _ if is_skin_tone(c) => true,
        _ => is_invisible(c) || is_inner_sign(base, c),
    }
}

/// Returns whether a character is a mark that folding may remove from the letter before it.
fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}')
}

/// Returns whether a character within a word is not seen, or only says how the letters around it are joined or where the
/// word may be divided.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00AD}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// Returns whether a sign that follows a letter is a part of the word there, and does not separate two: quotes in Hebrew
/// abbreviations, and the apostrophe of Ukrainian and Belarusian.
pub(crate) fn is_inner_sign(before: char, c: char) -> bool {
    match c {
        '"' | '\u{201D}' | '\u{05F3}' | '\u{05F4}' => matches!(before, '\u{05D0}'..='\u{05EA}'),
        '\'' | '\u{2019}' | '\u{02BC}' => matches!(before, '\u{0400}'..='\u{052F}'),
        _ => false,
    }
}

/// Returns whether a character is an arrow, a sign of mathematics or technology, a dingbat or an emoji, which is a word
/// of its own. Lines, blocks and shapes, with which tables and lists are drawn, are not.
pub(crate) fn is_symbol(c: char) -> bool {
    matches!(c,
        '\u{2190}'..='\u{23FF}' // arrows, mathematics, technology
        | '\u{2600}'..='\u{27BF}' // miscellaneous symbols, dingbats
        | '\u{27F0}'..='\u{27FF}' | '\u{2900}'..='\u{297F}' | '\u{2B00}'..='\u{2BFF}' // arrows, stars
        | '\u{1F000}'..='\u{1FAFF}') // pictographs
        && !is_skin_tone(c)
}

/// Returns whether a character gives the emoji before it a colour of skin.
pub(super) fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Returns whether a character is one of the two letters that together are a flag.
pub(super) fn is_flag_letter(c: char) -> bool {
    matches!(c, '\u{1F1E6}'..='\u{1F1FF}')
}

/// Returns whether a character is a Han character that folding leaves as it is, wherever it stands.
pub(super) fn folds_to_itself(c: char) -> bool {
    matches!(c, '\u{4E00}'..='\u{9FFF}')
}

/// The zeros of the scripts that have digits of their own. The other nine follow each.
const ZEROS: [u32; 18] = [
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50,
    0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810,
];

/// Returns the ASCII digit of a digit of another script.
fn ascii_digit(c: char) -> Option<char> {
    let value = ZEROS.iter().map(|zero| u32::from(c).wrapping_sub(*zero)).find(|&value| value < 10)?;
    char::from_digit(value, 10)
}

/// Returns whether a character belongs to a script without spaces between words, whose words are found by bigrams only.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0E4F}' | '\u{0E5A}'..='\u{0ECF}' | '\u{0EDA}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{103F}' | '\u{104A}'..='\u{109F}' // Myanmar
        | '\u{1100}'..='\u{11FF}' // Hangul letters
        | '\u{1780}'..='\u{17DF}' | '\u{17EA}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}' // ideographic iteration and zero
        | '\u{3041}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' // kana
        | '\u{3105}'..='\u{312F}' // bopomofo
        | '\u{31F0}'..='\u{31FF}' // small kana
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Han
        | '\u{AC00}'..='\u{D7AF}' // Hangul syllables
        | '\u{F900}'..='\u{FAFF}' // Han, compatibility
        | '\u{FF66}'..='\u{FF9F}' // half-width kana
        | '\u{20000}'..='\u{323AF}') // Han, supplementary
}

/// Returns whether a character of a script without spaces is written on the one before it, and no character of its own: a
/// voicing mark of kana, or a letter of a Hangul syllable behind its first.
pub(super) fn is_written_on(c: char) -> bool {
    matches!(c, '\u{3099}' | '\u{309A}' | '\u{FF9E}' | '\u{FF9F}' | '\u{1160}'..='\u{11FF}')
}
