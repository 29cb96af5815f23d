//! Tests the searchable text of a note (docs/spec/obsidian.md 7).

use sidenote::markdown::note::{PieceKind, Separator};

use super::checked;

/// Joins the pieces of some kinds as a search index would see them.
fn searchable(text: &str, kinds: &[PieceKind]) -> String {
    let mut joined = String::new();
    let (mut line, mut block) = (false, false);
    for piece in checked(text).pieces {
        line |= piece.separator == Separator::Line;
        block |= piece.separator == Separator::Block;
        if !kinds.contains(&piece.kind) {
            line = true;
            continue;
        }
        if !joined.is_empty() {
            joined.push_str(if block {
                " / "
            } else if line {
                " "
            } else {
                ""
            });
        }
        joined.push_str(piece.span.of(text));
        (line, block) = (false, false);
    }
    joined
}

const PROSE: &[PieceKind] = &[PieceKind::Prose, PieceKind::Heading];

fn check_prose(text: &str, expected: &str) {
    let words: Vec<String> = searchable(text, PROSE).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" "), expected, "{text:?}");
}

#[test]
fn prose_is_what_a_reader_sees() {
    check_prose("a **b***c* ~~d~~ ==e== _f_g\n", "a bc d e _f_g");
    check_prose("one\ntwo  \nthree\n\nfour", "one two three / four");
    check_prose("# H *i* #\n\ntext", "H i / text");
    check_prose("- [x] a\n  1. b\n\n> [!note]- T\n> body", "a / b / T body");
    check_prose("|a|b|\n|-|:-:|\n|c \\| d|e|", "a / b / c | d / e");
    check_prose("[[n]] [[d/n#H|A]] [[n#H]] ![[i.png|100]]", "n A n H i.png");
    check_prose("[l **m**](x.md 'T') ![alt|100x20](i.png) ![50](i.png)", "l m alt");
    check_prose("see https://e.org/x, <https://f.org> [g](https://g.org)", "see , g");
    check_prose("a ^id\n\nb <b>c</b>d<br>e <!-- f --> g", "a / b cd e g");
    check_prose("a %%b%% c\n\n%%\nd\n%%\n\ne `f` $g$", "a c / e");
    check_prose("x[^1] ^[in]\n\n[^1]: def", "x ^[in] / def");
    check_prose(
        "<div class=\"x\">\n<p>one <b>two</b></p>\n<!-- no\n> no -->\nthree\n</div>",
        "one two three",
    );
    check_prose("<style>\na { b }\n</style>\n\n[r]: x.md\n\ntext", "text");
    check_prose("a &amp; b&nbsp;c \\* d", "a b c * d");
    check_prose(
        "Fran\u{e7}ais \u{4e2d}\u{6587} **\u{65e5}\u{672c}**\u{8a9e}",
        "Fran\u{e7}ais \u{4e2d}\u{6587} \u{65e5}\u{672c}\u{8a9e}",
    );
}

#[test]
fn code_math_addresses_and_comments_are_kept_apart() {
    let text = "# `h`\n```rust x\nlet a;\n\nb\n```\n> ```\n> c\n> d\n> ```\n\n    e\n\n`` f ` g ``\n";
    assert_eq!(searchable(text, &[PieceKind::Code]), "h / rust / let a;\n\nb\n / c\n d\n / e\n /  f ` g ");
    assert_eq!(searchable("$a$ $$b\nc$$\n\n$$\n\nd\n\n$$", &[PieceKind::Math]), "a b\nc / \n\nd\n\n");
    let text = "https://a.b/c_d?e=f. (http://g.h/(i)) <https://j.k> [l](https://m.n 'o')\n\n[p]: <ftp://q r>";
    assert_eq!(
        searchable(text, &[PieceKind::Url]),
        "https://a.b/c_d?e=f http://g.h/(i) https://j.k https://m.n / ftp://q r"
    );
    assert_eq!(searchable("a %% b [[c]] %% d\n\n%%\n\n- e\n\n%%\n", &[PieceKind::Comment]), " b c / e");
}
