//! The vectors against those of the same weights in floats, and what they must not depend on.

use std::sync::LazyLock;

use sidenote_encoder::{Asset, BertEncoder, TextKind, Tokenizer, Workspace, built_in, mean_passage};

use crate::floats::{FloatEncoder, dot};

/// The same two sentences in many languages.
const TEXTS: [&str; 26] = [
    "When a note gets another name, every link to it is rewritten. None of them breaks.",
    "Wenn eine Notiz einen anderen Namen bekommt, wird jeder Verweis auf sie umgeschrieben. Keiner geht kaputt.",
    "Quand une note change de nom, chaque lien vers elle est réécrit. Aucun ne se casse.",
    "Cuando una nota recibe otro nombre, cada enlace a ella se reescribe. Ninguno se rompe.",
    "Quando uma nota recebe outro nome, cada ligação para ela é reescrita. Nenhuma se quebra.",
    "Quando una nota riceve un altro nome, ogni collegamento viene riscritto. Nessuno si rompe.",
    "Als een notitie een andere naam krijgt, wordt elke verwijzing herschreven. Geen enkele breekt.",
    "Gdy notatka otrzymuje inną nazwę, każdy odnośnik do niej jest przepisywany. Żaden się nie psuje.",
    "Když poznámka dostane jiné jméno, každý odkaz na ni se přepíše. Žádný se nerozbije.",
    "Когда заметка получает другое имя, каждая ссылка на неё переписывается. Ни одна не ломается.",
    "Коли нотатка отримує іншу назву, кожне посилання на неї переписується. Жодне не ламається.",
    "Όταν μια σημείωση παίρνει άλλο όνομα, κάθε σύνδεσμος προς αυτήν ξαναγράφεται. Κανένας δεν χαλάει.",
    "Bir not başka bir ad aldığında, ona giden her bağlantı yeniden yazılır. Hiçbiri bozulmaz.",
    "Kun muistiinpano saa toisen nimen, jokainen linkki siihen kirjoitetaan uudelleen. Yksikään ei katkea.",
    "När en anteckning får ett annat namn skrivs varje länk till den om. Ingen går sönder.",
    "Amikor egy jegyzet más nevet kap, minden rá mutató hivatkozás átíródik. Egyik sem törik el.",
    "Când o notă primește alt nume, fiecare legătură către ea este rescrisă. Niciuna nu se strică.",
    "Khi một ghi chú có tên khác, mọi liên kết đến nó được viết lại. Không liên kết nào bị hỏng.",
    "ノートの名前が変わると、それへのリンクはすべて書き換えられます。壊れるものはありません。",
    "当笔记改名时，指向它的每个链接都会被重写。没有一个会失效。",
    "노트의 이름이 바뀌면 그 노트로 가는 모든 링크가 다시 쓰입니다. 하나도 깨지지 않습니다.",
    "عندما تحصل الملاحظة على اسم آخر، تعاد كتابة كل رابط إليها. لا ينكسر أي منها.",
    "כאשר פתק מקבל שם אחר, כל קישור אליו נכתב מחדש. אף אחד מהם לא נשבר.",
    "जब किसी नोट को दूसरा नाम मिलता है, तो उसकी हर कड़ी फिर से लिखी जाती है। कोई भी नहीं टूटती।",
    "เมื่อบันทึกได้ชื่อใหม่ ลิงก์ทั้งหมดที่ชี้มาจะถูกเขียนใหม่ ไม่มีลิงก์ใดเสีย",
    "اگر یادداشتی نام دیگری بگیرد، هر پیوند به آن بازنویسی می‌شود. هیچ‌کدام نمی‌شکند.",
];

static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::new(&Asset::parse(built_in()).unwrap()).unwrap());
static ENCODER: LazyLock<BertEncoder> =
    LazyLock::new(|| BertEncoder::new(Asset::parse(built_in()).unwrap()).unwrap());

fn embed(texts: &[&[u32]]) -> Vec<Vec<f32>> {
    ENCODER.embed(texts, &mut Workspace::default()).unwrap()
}

#[test]
fn the_file_is_the_one_described() {
    let readme = include_str!("../../assets/multilingual-e5-small/README.md");
    assert!(readme.contains(&format!("| model.bin | {} |", built_in().len())));
}

#[test]
fn a_damaged_file_is_refused() {
    let whole = built_in();
    for length in (0..whole.len()).step_by(1_000_003) {
        assert!(Asset::parse(&whole[..length]).is_err(), "{length}");
    }
    assert!(Asset::parse(&whole[1..]).is_err());
}

#[test]
fn totals_are_the_sums_of_the_weights() {
    let asset = Asset::parse(built_in()).unwrap();
    for layer in &asset.layers {
        for linear in
            [&layer.attention_input, &layer.attention_output, &layer.forward_input, &layer.forward_output]
        {
            for column in (0..linear.weights.width()).step_by(17) {
                let weights = (0..linear.weights.height()).map(|row| linear.weights.weight(row, column));
                let weights: Vec<i32> = weights.map(i32::from).collect();
                assert_eq!(linear.total[column], weights.iter().sum::<i32>() as f32);
                assert!(weights.iter().all(|weight| weight.abs() <= 64));
            }
        }
    }
}

#[test]
fn vectors_are_those_of_the_same_weights_in_floats() {
    let reference = FloatEncoder::new(Asset::parse(built_in()).unwrap());
    let cosines = TEXTS.iter().enumerate().map(|(at, text)| {
        let text: String = if at % 2 == 0 { (*text).to_owned() } else { text.chars().take(at).collect() };
        let ids = TOKENIZER.encode("passage: ", &text, 512);
        let cosine = dot(&reference.embed(&ids, &mut |_, _, _| {}), &embed(&[&ids])[0]);
        assert!(cosine > 0.998, "{text}: {cosine}");
        cosine
    });
    let mean = cosines.sum::<f32>() / TEXTS.len() as f32;
    assert!(mean > 0.999, "{mean}");
}

/// What an English question asks is found in every language, and counts from what an unrelated passage has.
#[test]
fn a_question_finds_its_answer_in_every_language() {
    let of = |kind: TextKind, text: &str| {
        let ids = TOKENIZER.encode(kind.prefix(), text, 512);
        kind.adapt(embed(&[&ids]).remove(0)).unwrap()
    };
    let query = of(TextKind::Query, "Do links break when a note is renamed?");
    let unrelated = dot(&query, mean_passage());
    let others = [
        "Knead the dough for ten minutes and let it rise in a warm place until it has doubled.",
        "The meeting room on the second floor has a new projector.",
    ];
    for text in others {
        let far = dot(&query, &of(TextKind::Passage, text));
        assert!((far - unrelated).abs() < 0.1, "{text}: {far} {unrelated}");
    }
    for text in TEXTS {
        let near = dot(&query, &of(TextKind::Passage, text));
        assert!(near > unrelated + 0.04, "{text}: {near} {unrelated}");
        let same = dot(&of(TextKind::Query, text), &of(TextKind::Passage, text));
        assert!((0.9..1.1).contains(&same), "{text}: {same}");
    }
}

#[test]
fn a_vector_has_length_one_and_stands_alone() {
    let long = "word ".repeat(600);
    let texts: Vec<&str> = TEXTS.iter().copied().chain(["", "a", &long]).collect();
    let ids: Vec<Vec<u32>> = texts.iter().map(|text| TOKENIZER.encode("passage: ", text, 512)).collect();
    let ids: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
    let together = embed(&ids);
    let mut space = Workspace::default();
    for (ids, vector) in ids.iter().zip(together) {
        assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5);
        assert!(ENCODER.embed(&[ids], &mut space).unwrap() == [vector]);
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for ids in [vec![], vec![0; 513], vec![0, 1_000_000, 2]] {
        assert!(ENCODER.embed(&[&ids], &mut Workspace::default()).is_err());
    }
}
