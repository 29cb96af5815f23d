"""Chooses the pieces that the vocabulary has besides the most probable ones, as
assets/multilingual-e5-small/README.md describes.

usage: choose_pieces.py e5-small-q4.bin PIECES WORDS TEXTS.tsv OTHERS.tsv > added-pieces.txt

WORDS is a file with a word on each line. Each line of TEXTS.tsv and OTHERS.tsv is a language, a tab and a text.
Needs the PyPI package tokenizers.
"""

import collections
import struct
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

MARK = "▁"
# The least share of the tokens of a language, in OTHERS.tsv, that a piece is chosen for.
LEAST_SHARE = 1 / 8_000
# Languages with many readers get four times as many.
COMMON = {"ar", "hi", "ko", "th", "tr", "uk"}
COMMON_SHARE = LEAST_SHARE / 4


def read_pieces(path):
    """Returns the pieces and their scores, the special tokens without."""
    with open(path, "rb") as file:
        data = file.read()
    at = 8 + 7 * 4 + 4 + 4
    (count,) = struct.unpack_from("<i", data, at)
    at += 5 * 4
    (length,) = struct.unpack_from("<Q", data, at)
    at += 8
    ends = struct.unpack_from(f"<{count + 1}I", data, at)
    at += 4 * (count + 1)
    scores = struct.unpack_from(f"<{count}f", data, at)
    at += 4 * count
    text = data[at : at + length]
    pieces = [text[start:end].decode() for start, end in zip(ends, ends[1:])]
    return list(zip(pieces, scores))[4:-1]


def counts(tokenizer, path):
    """Returns how often each language uses each piece."""
    texts = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            language, text = line.rstrip("\n").split("\t", 1)
            texts[language].append(text)
    used = collections.defaultdict(collections.Counter)
    for language, lines in texts.items():
        for start in range(0, len(lines), 1000):
            for encoding in tokenizer.encode_batch(lines[start : start + 1000]):
                used[language].update(encoding.tokens)
    return used


def is_word(piece, words):
    """Returns whether a piece is a word, or one in a compound."""
    if piece.startswith(MARK):
        return len(piece) > 3 and piece[1:] in words
    return len(piece) > 3 and (piece in words or piece.capitalize() in words)


def main():
    path, kept, words, texts, others = sys.argv[1:]
    vocabulary = read_pieces(path)
    tokenizer = Tokenizer(models.Unigram([("<unk>", -20.0), *vocabulary], 0, False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    cut = sorted(vocabulary, key=lambda piece: -piece[1])[int(kept) :]
    # The converter keeps all single characters.
    cut = {piece for piece, _ in cut if len(piece.lstrip(MARK)) > 1}
    with open(words, encoding="utf-8") as file:
        words = {line.rstrip("\n") for line in file}
    words |= {word.lower() for word in words}
    chosen = {piece for piece in cut if is_word(piece, words)}
    for used in counts(tokenizer, texts).values():
        chosen |= cut & used.keys()
    for language, used in counts(tokenizer, others).items():
        share = COMMON_SHARE if language in COMMON else LEAST_SHARE
        least = max(2, share * used.total())
        chosen |= {piece for piece in cut & used.keys() if used[piece] >= least}
    for piece in sorted(chosen):
        print(piece)


main()
