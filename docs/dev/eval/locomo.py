#!/usr/bin/env python3
"""Converts locomo10.json of LoCoMo to a set for `sidenote eval`.

Each turn becomes a note, or each session with --unit session. A question is asked within its conversation. The relevant
notes are those that `evidence` names. Questions without evidence are left out, and so are those of category 5, which
have no answer in the conversation; --adversarial includes them.
"""
import argparse
import json
import re

import sets

ADVERSARIAL = 5


def dialog_ids(evidence):
    """Reads dialog ids. Some entries hold several, and some have zeros before the number of a turn."""
    found = re.findall(r"\bD:?(\d+):(\d+)", " ".join(map(str, evidence)))
    return [f"D{int(session)}:{int(turn)}" for session, turn in found]


def turn_text(turn):
    """Returns what a turn says, with the caption of its image."""
    caption = turn.get("blip_caption")
    return turn["text"] + (f"\n\n[image: {caption}]" if caption else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="locomo10.json")
    parser.add_argument("out", help="the folder of the new set")
    parser.add_argument("--unit", choices=["turn", "session"], default="turn", help="what becomes a note")
    parser.add_argument("--adversarial", action="store_true", help="include the questions of category 5")
    args = parser.parse_args()
    out = sets.Writer(args.out)
    with open(args.file, encoding="utf-8") as file:
        samples = json.load(file)
    for sample in samples:
        name, conversation = sample["sample_id"], sample["conversation"]
        note_of = {}
        numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
        for seq, number in enumerate(numbers):
            turns = conversation[f"session_{number}"]
            date = sets.iso_date(conversation.get(f"session_{number}_date_time"))
            session = f"{name}.S{number:02}"
            common = {"scope": name, "date": date, "session": number, "seq": seq}
            if args.unit == "session":
                text = "\n\n".join(f"**{turn['speaker']}:** {turn_text(turn)}" for turn in turns)
                speakers = f"{conversation['speaker_a']} and {conversation['speaker_b']}"
                title = f"{speakers}, session {number}"
                if text:
                    out.note(session, text, title=title, **common)
            for turn in turns:
                # `D1:3` as in `evidence`; a colon is no part of a file name.
                id = f"{name}.{turn['dia_id'].replace(':', '.')}"
                note_of[turn["dia_id"]] = session if args.unit == "session" else id
                if args.unit == "turn":
                    out.note(id, turn_text(turn), speaker=turn["speaker"], **common)
        for at, question in enumerate(sample["qa"], 1):
            if question["category"] == ADVERSARIAL and not args.adversarial:
                continue
            relevant = [note_of[id] for id in dialog_ids(question.get("evidence", [])) if id in note_of]
            out.query(f"{name}.q{at:03}", question["question"], dict.fromkeys(relevant, 1), scope=name)
    out.close()


if __name__ == "__main__":
    main()
