#!/usr/bin/env python3
"""Converts Debian's translated manual pages to sets for `sidenote eval`, one for each language.

The folder has the packages (.deb) that README.md names. The query is the description of a page, from its section NAME;
the note is the page without that section. Korean has too few manual pages: there, the query is the first paragraph of a
page of LibreOffice's help, and the note is the rest. languages.tsv lists the pages of each language, so that the sets are
the same as far as the packages have the pages.

OUT gets a set for each language; `cross/LANGUAGE`, where queries of the language are asked to English pages;
`cross-100/LANGUAGE`, the same with 100 English pages; and `mixed`, where each language has 100 pages that no other has.
"""
import argparse
import hashlib
import html.parser
import io
import lzma
import pathlib
import re
import tarfile
import unicodedata
import zlib

import sets

LANGUAGES = "de en es fr it ja ko nl pl pt ru zh".split()
# The folders below usr/share/man of a language, the preferred one first.
FOLDERS = {"pt": ["pt_BR", "pt"], "zh": ["zh_CN"], "en": [""]}
LIST = pathlib.Path(__file__).with_suffix(".tsv")
PAGES, MIXED, CROSS_SMALL = 250, 100, 100
# A shorter page says little more than its name. A few pages are longer than a book, and would take most of the time.
SHORTEST, LONGEST = 300, 60_000
# A query of fewer letters is a word rather than a description; a letter of these scripts counts as two.
SHORTEST_QUERY, LONGEST_QUERY = 12, 200
WIDE = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
UNSPACED = re.compile("[\u3001-\u30ff\u3400-\u9fff\uff00-\uffef]")
# The letters of languages that are not written in Latin script. A page with a smaller share of them is not translated.
SCRIPTS = {"ja": "[\u3040-\u30ff\u4e00-\u9fff]", "ko": "[\uac00-\ud7af]", "ru": "[\u0400-\u04ff]", "zh": "[\u4e00-\u9fff]"}
SMALLEST_SHARE = 0.3


class Page:
    """A page of a language: its name, the description that becomes the query, and the text that becomes the note."""

    def __init__(self, name, title, query, text):
        self.name, self.title, self.query, self.text = name, title, query, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder with the packages")
    parser.add_argument("out", type=pathlib.Path, help="the folder of the new sets")
    parser.add_argument("--choose", action="store_true", help=f"choose pages anew, and write {LIST.name}")
    args = parser.parse_args()
    pages = read_packages(args.folder)
    if args.choose:
        LIST.write_text(choose(pages), encoding="utf-8", newline="\n")
    listed, mixed = read_list()
    write_set(args.out / "mixed", pages, [(language, name) for language in LANGUAGES for name in mixed.get(language, [])])
    for language in LANGUAGES:
        write_set(args.out / language, pages, [(language, name) for name in listed.get(language, [])])
    for folder, size in (("cross", PAGES), ("cross-100", CROSS_SMALL)):
        english = [name for name in listed.get("en", []) if name in pages["en"]][:size]
        for language in LANGUAGES:
            if language not in ("en", "ko"):
                write_cross(args.out / folder / language, pages, language, english)


def write_set(folder, pages, chosen):
    """Writes a set in which each page is asked for by its own description."""
    out = sets.Writer(folder)
    for language, name in chosen:
        if page := pages[language].get(name):
            out.note(f"{language}.{name}", page.text, title=page.title)
    for language, name in chosen:
        page = pages[language].get(name)
        out.query(f"{language}.{name}", page.query if page else "", {f"{language}.{name}": 1})
    out.close()


def write_cross(folder, pages, language, english):
    """Writes a set in which English pages are asked for by the descriptions of another language."""
    out = sets.Writer(folder)
    for name in english:
        page = pages["en"][name]
        out.note(f"en.{name}", page.text, title=page.title)
    for name in english:
        if page := pages[language].get(name):
            out.query(f"{language}.{name}", page.query, {f"en.{name}": 1})
    out.close()


# Choice


def read_list():
    """Reads the pages of each language, and those of each language in the mixed set."""
    listed, mixed = {}, {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        name, languages, only = (line.split("\t") + ["", ""])[:3]
        for language in languages.split():
            listed.setdefault(language, []).append(name)
        if only:
            mixed.setdefault(only, []).append(name)
    return listed, mixed


def choose(pages):
    """Chooses the pages of each language: first those that most languages have, then in an order that means nothing."""
    having = {}
    for language in LANGUAGES:
        for name in pages[language]:
            having.setdefault(name, []).append(language)
    order = sorted(having, key=lambda name: ("en" not in having[name], -len(having[name]), scatter(name)))
    chosen = {}
    for language in LANGUAGES:
        for name in [name for name in order if language in having[name]][:PAGES]:
            chosen.setdefault(name, []).append(language)
    # The language with the fewest pages takes its own first, so that each one gets as many.
    mixed = {}
    for language in sorted(LANGUAGES, key=lambda language: len(pages[language])):
        free = sorted((name for name in pages[language] if name not in mixed), key=lambda name: (name not in chosen, scatter(name)))
        mixed.update((name, language) for name in free[:MIXED])
    lines = (f"{name}\t{' '.join(chosen.get(name, []))}\t{mixed.get(name, '')}" for name in order if name in chosen or name in mixed)
    return "".join(line.rstrip("\t") + "\n" for line in lines)


def scatter(name):
    return hashlib.sha256(name.encode()).hexdigest()


# Packages


def read_packages(folder):
    """Reads the pages of each language by their names."""
    sources = {language: {} for language in LANGUAGES}
    for path in sorted(folder.glob("*.deb")):
        for name, data in files(path):
            for language in LANGUAGES:
                for rank, place in enumerate(FOLDERS.get(language, [language])):
                    inner = re.escape(place) + "/" if place else ""
                    if found := re.fullmatch(rf"usr/share/man/{inner}man\d/([^/]+\.\d)\.gz", name):
                        if rank <= sources[language].get(found[1], (9, b""))[0]:
                            sources[language][found[1]] = (rank, data)
            if found := re.fullmatch(r"usr/share/libreoffice/help/ko/text/(.+)\.html", name):
                sources["ko"][found[1]] = (0, data)
    pages = {}
    for language in ["en"] + [language for language in LANGUAGES if language != "en"]:
        read = help_page if language == "ko" else manual_page
        found = (read(name, data) for name, (_, data) in sorted(sources[language].items()))
        is_good = lambda page: page and is_usable(page, language, pages.get("en", {}).get(page.name))
        pages[language] = {}
        # A description that several pages have names none of them.
        queries = set()
        for page in filter(is_good, found):
            if page.query.casefold() not in queries:
                queries.add(page.query.casefold())
                pages[language][page.name] = page
        if not pages[language]:
            raise SystemExit(f"{folder} has no pages in {language}; README.md names the packages")
    return pages


def files(path):
    """Yields the regular files of a Debian package, unpacked."""
    data = path.read_bytes()
    at = 8
    while data[:8] == b"!<arch>\n" and at + 60 <= len(data):
        name, size = data[at : at + 16].decode().strip().rstrip("/"), int(data[at + 48 : at + 58])
        content = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
        if not name.startswith("data.tar"):
            continue
        if not name.endswith(".xz"):
            raise SystemExit(f"{path} is compressed as {name}, which this script does not read; take that of Debian")
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as archive:
            for member in archive:
                if member.isfile() and re.search(r"/man/|/help/", member.name):
                    inside = archive.extractfile(member).read()
                    # LibreOffice's help is not compressed.
                    yield member.name.removeprefix("./"), zlib.decompress(inside, 31) if member.name.endswith(".gz") else inside


def is_usable(page, language, english):
    """Returns whether a page is long enough, and translated."""
    width = len(page.query) + len(WIDE.findall(page.query))
    if not (SHORTEST_QUERY <= width <= LONGEST_QUERY and SHORTEST <= len(page.text) <= LONGEST):
        return False
    if script := SCRIPTS.get(language):
        for text in (page.query, page.text):
            # Bytes weigh a letter by what it says: a Chinese one has three, and is a word.
            letters = "".join(letter for letter in text if letter.isalpha()).encode()
            if len("".join(re.findall(script, text)).encode()) < SMALLEST_SHARE * len(letters):
                return False
        return True
    if not english or language == "en":
        return True
    long = [line for line in page.text.splitlines() if len(line) > 60]
    same = set(english.text.splitlines())
    return page.query != english.query and sum(line in same for line in long) <= SMALLEST_SHARE * len(long)


# Manual pages

CHARACTERS = {
    "aq": "'", "cq": "’", "oq": "‘", "lq": "“", "rq": "”", "dq": '"', "bu": "•", "em": "—", "en": "–", "hy": "-", "co": "©",
    "rg": "®", "tm": "™", "mu": "×", "ha": "^", "ti": "~", "ga": "`", "rs": "\\", "at": "@", "sh": "#", "Do": "$", "->": "→",
    "<-": "←", "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "de": "°", "Fo": "«", "Fc": "»", "fo": "‹", "fc": "›", "ss": "ß",
    "bq": "‚", "Bq": "„", "sc": "§", "ul": "_", "br": "│", "ba": "|", "or": "|", "lB": "[", "rB": "]", "lC": "{", "rC": "}",
    "la": "⟨", "ra": "⟩", "pl": "+", "mi": "−", "eq": "=", "12": "½", "14": "¼", "*p": "π", "if": "∞", "==": "≡", "~~": "≈",
}  # fmt: skip
STRINGS = {"Aq": "'", "lq": "“", "rq": "”", "R": "®", "Tm": "™", "C+": "C++", "L\"": '"', "R\"": '"', "--": "-", "PI": "π"}
MARKS = {":": "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", ",": "\u0327", "o": "\u030a", "v": "\u030c"}
ESCAPE = re.compile(
    r"""\\(?:(?P<drop>f(?:\[[^\]]*\]|\(..|.)|s(?:\[[^\]]*\]|[-+]?\(..|[-+]?\d)|[mMFkgYVn](?:\[[^\]]*\]|\(..|.)|[hvwXbDlLoSHNxRZ]'[^']*')"""
    r"""|\((?P<two>..)|\[(?P<long>[^\]]*)\]|\*(?:\[(?P<name>[^\]]*)\]|\((?P<pair>..)|(?P<one>.))|(?P<other>.))"""
)
FONTS = {"B": " ", "I": " ", "SM": " ", "SB": " ", "R": " ", "BR": "", "BI": "", "IB": "", "IR": "", "RB": "", "RI": ""}
BREAKS = {"PP", "P", "LP", "sp", "RS", "RE", "HP", "br", "TQ", "ti", "in"}
LITERAL = {"nf": True, "EX": True, "Vb": True, "fi": False, "EE": False, "Ve": False}


def manual_page(name, data):
    """Reads a page in the macros `man` of roff. Returns None for aliases and pages in other macros."""
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if re.search(r"^\.(so|Dd)\b", source, re.MULTILINE):
        return None
    sections = markdown(source)
    if len(sections) < 2:
        return None
    # The first section is NAME: `ls, dir - list directory contents`.
    first = " ".join(sections[0][1].split())
    query = re.match(r"\S.*?\s(?:-|–|—|−|--)\s+(.+)$", first)
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections[1:] if body)
    stem, section = name.rsplit(".", 1)
    return Page(name, f"{stem}({section})", query[1].strip(), text) if query else None


def markdown(source):
    """Returns the sections of a page: pairs of a title and a text in Markdown."""
    sections, paragraphs, line = [], [], []
    is_literal, is_definition, is_table = False, False, False

    def end():
        if text := "".join(line).strip():
            paragraphs.append(text)
        line.clear()

    def add(text, joiner=" "):
        continues = bool(line) and line[-1].endswith("\\c")
        if continues:
            line[-1] = line[-1][:-2]
        # Chinese and Japanese have no spaces where a line of the source ends.
        if joiner == " " and line and UNSPACED.match(line[-1][-1:]) and UNSPACED.match(text):
            joiner = ""
        line.append(text if continues or not line else joiner + text)

    def fence(opens):
        nonlocal is_literal
        if opens != is_literal:
            end()
            paragraphs.append("```" if opens else "```\x00")
            is_literal = opens

    def close():
        fence(False)
        end()
        if sections:
            text = "\n\n".join(paragraphs)
            # No blank lines inside of a fence.
            text = re.sub(r"```\n\n(.*?)(?:\n\n)?```\x00", lambda found: "```\n" + re.sub(r"\n{2,}", "\n", found[1]) + "\n```", text, flags=re.DOTALL)
            sections[-1][1] = re.sub(r"```\s*```\x00?|\x00", "", text).strip()
        paragraphs.clear()

    lines = iter(source.splitlines())
    for raw in lines:
        if is_definition:
            is_definition = not re.match(r"\.\s*\.", raw)
            continue
        if not raw.startswith((".", "'")):
            if is_table:
                raw = " ".join(raw.replace("T{", "").replace("T}", "").split("\t")).strip()
            if raw.strip() and sections:
                text = inline(raw)
                add(text if is_literal else safe(text), "\n" if is_literal or is_table else " ")
            else:
                end()
            continue
        request, arguments = split(raw)
        if request in ("de", "de1", "ig", "am"):
            is_definition = True
        elif request in ("SH", "SS"):
            title = " ".join(arguments) or inline(next(lines, ""))
            if request == "SH":
                close()
                sections.append([title.strip(), ""])
            else:
                fence(False)
                end()
                paragraphs.append(f"### {title}")
        elif not sections:
            continue
        elif request in FONTS:
            text = FONTS[request].join(arguments)
            add(text if is_literal else safe(text), "\n" if is_literal else " ")
        elif request in LITERAL:
            fence(LITERAL[request])
        elif request in ("TP", "IP"):
            fence(False)
            end()
            if request == "IP" and arguments:
                add(safe(arguments[0]))
        elif request in ("TS", "TE"):
            end()
            is_table = request == "TS"
            # The format of the columns ends in a full stop.
            while is_table and not next(lines, ".").rstrip().endswith("."):
                pass
        elif request in ("UR", "MT", "URL") and arguments:
            add(safe(arguments[0]))
        elif request == "OP":
            add(f"[{' '.join(arguments)}]")
        elif request in BREAKS and not is_literal:
            end()
    close()
    return [(title, body) for title, body in sections]


def split(line):
    """Splits a request into its name and its arguments."""
    request, _, rest = line[1:].lstrip().partition(" ")
    rest = re.sub(r'(?<!\\)\\".*', "", rest)
    found = re.findall(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)', rest)
    return request, [inline((quoted or plain).replace('""', '"')) for quoted, plain in found]


def inline(text):
    """Returns the text of a line, without escapes of roff."""
    text = re.sub(r'(?<!\\)\\["#].*', "", text)

    def value(found):
        if found["drop"] is not None:
            return ""
        if string := found["name"] or found["pair"] or found["one"]:
            return STRINGS.get(string, "")
        if special := found["two"] or found["long"]:
            if code := re.fullmatch(r"u([0-9A-F]{4,6})", special):
                return chr(int(code[1], 16))
            if len(special) == 2 and special[0] in MARKS and special[1].isalpha() and special not in CHARACTERS:
                return unicodedata.normalize("NFC", special[1] + MARKS[special[0]])
            return CHARACTERS.get(special, "")
        other = found["other"] or ""
        return {"e": "\\", "\\": "\\", "-": "-", " ": " ", "~": " ", "0": " ", "'": "'", "`": "`", ".": ".", "c": "\\c"}.get(other, "")

    return ESCAPE.sub(value, text)


def safe(text):
    """Returns a text in which Markdown finds no HTML, code, headings, links to notes and comments."""
    return re.sub(r"([<`]|\[(?=\[)|%(?=%)|^#)", r"\\\1", text)


# LibreOffice's help


class HelpParser(html.parser.HTMLParser):
    """Collects the headings and paragraphs of a page."""

    def __init__(self):
        super().__init__()
        self.blocks, self.kind, self.skipped = [], None, 0

    def handle_starttag(self, tag, attributes):
        if dict(attributes).get("id") in ("SearchFrame", "DEBUG"):
            self.skipped = 1
        if tag in ("h1", "h2", "h3", "h4", "p", "pre") and not self.skipped:
            self.kind = tag
            self.blocks.append([tag, ""])

    def handle_endtag(self, tag):
        if tag == self.kind:
            self.kind = None

    def handle_data(self, data):
        if self.kind:
            self.blocks[-1][1] += data


def help_page(name, data):
    """Reads a page of LibreOffice's help. Its first paragraph says what the page is about."""
    parser = HelpParser()
    parser.feed(data.decode("utf-8"))
    blocks = [(kind, " ".join(text.split())) for kind, text in parser.blocks if text.strip()]
    starts = [at for at, (kind, _) in enumerate(blocks) if kind == "h1"]
    if not starts or len(blocks) < starts[0] + 3 or blocks[starts[0] + 1][0] != "p":
        return None
    title, query = blocks[starts[0]][1], blocks[starts[0] + 1][1]
    mark = {"h2": "## ", "h3": "### ", "h4": "#### "}
    text = "\n\n".join(mark.get(kind, "") + safe(text) for kind, text in blocks[starts[0] + 2 :])
    return Page(name, title, query, text)


if __name__ == "__main__":
    main()
