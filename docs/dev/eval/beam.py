#!/usr/bin/env python3
"""Converts conversations of BEAM to a set for `sidenote eval`.

The folder is chats/100K, chats/500K or chats/1M of the repository, with a folder for each conversation, or what its
download_dataset.py writes for one of these sizes. Each message becomes a note. A question is asked within its conversation. The relevant notes are those that `source_chat_ids` names.
Questions without such ids are left out (all of `abstention`), and so are those with an id that no message has, or
several.
"""
import argparse
import collections
import json
import pathlib
import re

import sets


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def ids(value):
    """Lists the numbers in `source_chat_ids`, which is a list, or an object with lists."""
    if isinstance(value, int):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [id for part in inner for id in ids(part)]


def messages(batch):
    """Lists the messages of a session: an object with `turns` in the repository, a list in the download."""
    return [message for turn in batch["turns"] for message in turn] if isinstance(batch, dict) else batch


def convert(folder, out):
    name = folder.name
    # The publishers measure on the shortened conversation if there is one; its file has this name.
    chats = [path for path in (folder / "chat_trunecated.json", folder / "chat.json") if path.exists()]
    if not chats:
        raise SystemExit(f"{folder} has no chat.json")
    notes, date = collections.defaultdict(list), None
    seq = 0
    for session, batch in enumerate(load(chats[0]), 1):
        for message in messages(batch):
            # Only the first message of a session has a date.
            date = sets.iso_date(message.get("time_anchor")) or date
            # The generator of the data ends a question with its place in the plan: `->-> 1,2`.
            text = re.sub(r"\s*->->\s*[\d,\s]+$", "", message["content"])
            id = f"{name}.{seq:05}"
            notes[message["id"]].append(id)
            if text.strip():
                out.note(id, text, scope=name, role=message["role"], date=date, session=session, seq=seq)
            seq += 1
    for ability, questions in load(folder / "probing_questions" / "probing_questions.json").items():
        for at, question in enumerate(questions, 1):
            sources = ids(question.get("source_chat_ids"))
            is_clear = all(len(notes.get(source, [])) == 1 for source in sources)
            relevant = [notes[source][0] for source in sources] if is_clear else []
            out.query(f"{name}.{ability}.{at}", question["question"], dict.fromkeys(relevant, 1), scope=name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="chats/100K, chats/500K or chats/1M of the repository")
    parser.add_argument("out", help="the folder of the new set")
    args = parser.parse_args()
    out = sets.Writer(args.out)
    conversations = [path.parent.parent for path in args.folder.glob("*/probing_questions/probing_questions.json")]
    if not conversations:
        raise SystemExit(f"{args.folder} holds no conversation with probing_questions/probing_questions.json")
    for folder in sorted(conversations, key=lambda path: (len(path.name), path.name)):
        convert(folder, out)
    out.close()


if __name__ == "__main__":
    main()
