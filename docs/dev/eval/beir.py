#!/usr/bin/env python3
"""Converts a data set of BEIR to a set for `sidenote eval`: SciFact, NFCorpus and others.

The folder has corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv. Each document becomes a note.
"""
import argparse
import csv
import json
import pathlib

import sets


def lines(path):
    with open(path, encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the unpacked data set")
    parser.add_argument("out", help="the folder of the new set")
    parser.add_argument("--split", default="test", help="the file of qrels/ to use: test, dev or train")
    args = parser.parse_args()
    out = sets.Writer(args.out)
    for document in lines(args.folder / "corpus.jsonl"):
        out.note(document["_id"], document["text"], title=document.get("title") or None)
    grades = {}
    with open(args.folder / "qrels" / f"{args.split}.tsv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    for query in lines(args.folder / "queries.jsonl"):
        if query["_id"] in grades:
            out.query(query["_id"], query["text"], grades[query["_id"]])
    out.close()


if __name__ == "__main__":
    main()
