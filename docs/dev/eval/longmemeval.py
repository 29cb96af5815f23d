#!/usr/bin/env python3
"""Converts a file of LongMemEval to a set for `sidenote eval`: longmemeval_s.json, _m or _oracle, also cleaned ones.

Each session becomes a note, or each turn with --unit turn. Every question has a haystack of its own, which is the folder
in which it is asked. The relevant notes are the sessions of `answer_session_ids`, or the turns with `has_answer`. The
questions whose id ends in _abs have no answer in their haystack and are left out with it.
"""
import argparse
import json

import sets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="longmemeval_s.json or another file of the data set")
    parser.add_argument("out", help="the folder of the new set")
    parser.add_argument("--unit", choices=["session", "turn"], default="session", help="what becomes a note")
    parser.add_argument("--limit", type=int, help="convert only so many questions of each type")
    args = parser.parse_args()
    out = sets.Writer(args.out)
    with open(args.file, encoding="utf-8") as file:
        questions = json.load(file)
    converted = {}
    for question in questions:
        name, kind = question["question_id"], question["question_type"]
        if name.endswith("_abs") or args.limit is not None and converted.get(kind, 0) >= args.limit:
            continue
        converted[kind] = converted.get(kind, 0) + 1
        answers, relevant = set(question["answer_session_ids"]), []
        haystack = zip(question["haystack_session_ids"], question["haystack_dates"], question["haystack_sessions"])
        # The ids of the publisher tell which sessions answer, so that no note may hold them.
        for seq, (session, date, turns) in enumerate(haystack):
            id = f"{name}.{seq:03}"
            common = {"scope": name, "date": sets.iso_date(date), "seq": seq}
            if args.unit == "session":
                text = "\n\n".join(f"**{turn['role'].capitalize()}:** {turn['content']}" for turn in turns)
                if text:
                    out.note(id, text, **common)
                if session in answers:
                    relevant.append(id)
                continue
            for at, turn in enumerate(turns, 1):
                if turn["content"].strip():
                    out.note(f"{id}.{at:02}", turn["content"], role=turn["role"], **common)
                if turn.get("has_answer"):
                    relevant.append(f"{id}.{at:02}")
        out.query(name, question["question"], dict.fromkeys(relevant, 1), scope=name)
    out.close()


if __name__ == "__main__":
    main()
