"""Compares how many texts a second the program and onnxruntime embed: the same model, the same texts, two threads each, in
alternation. Needs `numpy`, `onnxruntime` and `tokenizers` (PyPI).

    rate.py PROGRAM [--texts FOLDER] [--count N] [--words N] [--rounds N] [--threads N]

The texts are cut from the Markdown files of a folder, the manual by default. The program embeds a vault of them; the time is
that of the whole command. onnxruntime gets its tokens sorted by length, and its fastest size of batches counts.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime
import tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "foundation/assets/all-MiniLM-L6-v2"
BATCHES = (1, 8, 16, 32)


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--texts", type=pathlib.Path, default=ROOT / "docs/src")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def read_texts(folder, count, length):
    words = []
    for path in sorted(folder.rglob("*.md")):
        words += re.findall(r"[A-Za-z0-9'-]+[.,]?", path.read_text(encoding="utf-8", errors="replace"))
        if len(words) >= count * length:
            break
    texts = [" ".join(words[at : at + length]) for at in range(0, len(words) - length + 1, length)]
    if len(texts) < count:
        sys.exit(f"{folder} has {len(texts)} texts of {length} words, and not {count}; name another folder with --texts")
    return texts[:count]


class Onnxruntime:
    def __init__(self, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(MODEL / "minilm_int8.onnx", options)
        pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece.from_file(str(MODEL / "vocab.txt"), unk_token="[UNK]"))
        pieces.normalizer = tokenizers.normalizers.BertNormalizer()
        pieces.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        pieces.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
        pieces.enable_truncation(256)
        self.pieces = pieces

    def rate(self, texts, batch):
        start = time.perf_counter()
        ids = sorted((encoding.ids for encoding in self.pieces.encode_batch(texts)), key=len)
        for at in range(0, len(ids), batch):
            group = ids[at : at + batch]
            longest = len(group[-1])
            padded = numpy.array([row + [0] * (longest - len(row)) for row in group])
            mask = numpy.array([[1] * len(row) + [0] * (longest - len(row)) for row in group])
            inputs = {"input_ids": padded, "attention_mask": mask, "token_type_ids": padded * 0}
            states = self.session.run(None, inputs)[0]
            means = (states * mask[:, :, None]).sum(1)
            means / numpy.linalg.norm(means, axis=1)[:, None]
        return len(texts) / (time.perf_counter() - start)


def rate_of_program(program, texts):
    with tempfile.TemporaryDirectory() as folder:
        vault, home = pathlib.Path(folder, "vault"), pathlib.Path(folder, "home")
        vault.mkdir()
        home.mkdir()
        for at, text in enumerate(texts):
            (vault / f"{at:05}.md").write_text(text + "\n")
        environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
        command = [program.resolve(), "--vault", vault, "index"]
        quiet = {"env": environment, "check": True, "capture_output": True}
        subprocess.run([*command, "--no-embed"], **quiet)
        start = time.perf_counter()
        subprocess.run(command, **quiet)
        return len(texts) / (time.perf_counter() - start)


def main():
    arguments = read_arguments()
    # The program and onnxruntime get the same processors.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    texts = read_texts(arguments.texts, arguments.count, arguments.words)
    runtime = Onnxruntime(arguments.threads)
    runtime.rate(texts[:50], 8)
    ratios = []
    for at in range(arguments.rounds):
        ours = rate_of_program(arguments.program, texts)
        theirs = {batch: runtime.rate(texts, batch) for batch in BATCHES}
        ratios.append(ours / max(theirs.values()))
        shown = ", ".join(f"{rate:.1f} in batches of {batch}" for batch, rate in theirs.items())
        print(f"round {at + 1}: {ours:.1f} texts a second; onnxruntime {shown}; ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
