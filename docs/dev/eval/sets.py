"""What the converters share: the writer of an evaluation set, and dates.

A set is a folder with notes/, queries.jsonl and qrels.tsv. `sidenote eval SET` measures search on it.
"""
import json
import pathlib
import re


class Writer:
    """Writes a set into a new folder, and counts what it writes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if (self.folder / "notes").exists():
            raise SystemExit(f"{self.folder} has notes already; name a new folder")
        (self.folder / "notes").mkdir(parents=True)
        self.ids, self.paths = set(), set()
        self.queries, self.qrels = [], []
        self.left_out = 0

    def note(self, id, text, title=None, scope=None, **properties):
        """Writes a note. The scope is the folder of the note. Properties without a value are left out."""
        id = token(id)
        if id in self.ids:
            raise SystemExit(f"two notes have the id {id}")
        self.ids.add(id)
        fields = {"id": id, "title": title} | properties
        # A string in JSON is a string in YAML.
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value not in (None, "")]
        heading = f"# {' '.join(title.split())}\n\n" if title else ""
        folder = self.folder / "notes" / (file_name(scope) if scope else "")
        folder.mkdir(exist_ok=True)
        path, number = folder / f"{file_name(id)}.md", 1
        # Names that differ only in case are one file on some systems.
        while str(path).lower() in self.paths:
            number += 1
            path = folder / f"{file_name(id)}-{number}.md"
        self.paths.add(str(path).lower())
        text = "---\n" + "\n".join(lines) + "\n---\n\n" + heading + text.strip() + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")

    def query(self, id, text, grades, scope=None, before_seq=None):
        """Adds a query with the grade of each relevant note. A query is left out if no such note exists."""
        id = token(id)
        grades = {token(note): grade for note, grade in grades.items() if token(note) in self.ids}
        if not any(grade > 0 for grade in grades.values()):
            self.left_out += 1
            return
        query = {"qid": id, "text": text}
        if scope:
            query["scope"] = file_name(scope)
        if before_seq is not None:
            query["before_seq"] = before_seq
        self.queries.append(json.dumps(query, ensure_ascii=False))
        self.qrels.extend(f"{id}\t{note}\t{grade}" for note, grade in grades.items())

    def close(self):
        """Writes the queries and the judgements, and prints the numbers."""
        for name, lines in (("queries.jsonl", self.queries), ("qrels.tsv", self.qrels)):
            text = "".join(line + "\n" for line in lines)
            (self.folder / name).write_text(text, encoding="utf-8", newline="\n")
        print(
            f"{self.folder}: {len(self.ids)} notes, {len(self.queries)} queries, {len(self.qrels)} judgements; "
            f"{self.left_out} queries without a relevant note are left out"
        )


def token(id):
    """Returns an id without white space, which separates the columns of qrels.tsv."""
    return re.sub(r"\s+", "_", id)


def file_name(name):
    """Returns a name that every file system takes."""
    return re.sub(r"[^\w.-]", "-", name).strip(".")[:120] or "-"


MONTHS = "january february march april may june july august september october november december".split()


def iso_date(text):
    """Returns a date as YYYY-MM-DD, with the time if there is one, or None.

    Known forms are `1:56 pm on 8 May, 2023`, `2023/05/20 (Sat) 02:21` and `March-15-2024`.
    """
    text = text or ""
    if found := re.search(r"(\d{4})/(\d\d?)/(\d\d?)", text):
        year, month, day = map(int, found.groups())
    elif found := re.search(r"(\d\d?) ([A-Za-z]+),? (\d{4})", text):
        year, month, day = int(found[3]), month_number(found[2]), int(found[1])
    elif found := re.search(r"([A-Za-z]+)[- ](\d\d?)(?:,|-|, ) ?(\d{4})", text):
        year, month, day = int(found[3]), month_number(found[1]), int(found[2])
    else:
        return None
    if not month:
        return None
    time = ""
    if found := re.search(r"\b(\d\d?):(\d\d)(?:\s*([ap])m)?\b", text):
        hour = int(found[1])
        if found[3]:
            hour = hour % 12 + (12 if found[3] == "p" else 0)
        time = f"T{hour:02}:{found[2]}"
    return f"{year:04}-{month:02}-{day:02}{time}"


def month_number(name):
    """Returns the number of a month by its name or the beginning of its name, or None."""
    matches = [at for at, month in enumerate(MONTHS, 1) if month.startswith(name.lower()) and len(name) >= 3]
    return matches[0] if matches else None
