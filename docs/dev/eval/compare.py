#!/usr/bin/env python3
"""Measures sets with `sidenote eval`, and compares hybrid search with the better of words and meaning.

A folder that is no set stands for all sets below it. Each set has a row: nDCG@10, MRR@10 and recall@10 by words, by
meaning and by both; and the mean difference in nDCG@10 of both to the better of the two, query by query, with its 95 %
confidence interval by bootstrap. --floor fails where a difference is below it.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys

MODES = ("bm25", "vector", "hybrid")
FIGURES = (("nDCG@10", "ndcg_at_10"), ("MRR@10", "mrr_at_10"), ("R@10", "recall_at_10"))
SAMPLES = 10_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="sets, or folders with sets below them")
    parser.add_argument("--program", default="sidenote", help="the program to measure")
    parser.add_argument("--floor", type=float, help="the least difference that is accepted, such as -0.005")
    parser.add_argument("--json", type=pathlib.Path, help="also write the replies of `sidenote eval` to this file")
    args = parser.parse_args()
    found = [path.parent for folder in args.folders for path in sorted(folder.rglob("queries.jsonl"))]
    if not found:
        raise SystemExit("no set in these folders; a set holds notes/, queries.jsonl and qrels.tsv")
    groups = [f"{name:^{7 * len(MODES)}}" for name, _ in FIGURES]
    print(f"{'':20} {'notes':>6} {'queries':>7} ", *groups, sep="")
    print(f"{'set':20} {'notes':>6} {'queries':>7} ", "".join(f"{mode:>7}" for mode in MODES) * len(FIGURES), "  hybrid - better", sep="")
    replies, below = [], []
    for folder in found:
        reply = measure(args.program, folder)
        replies.append(reply)
        name = name_of(folder, args.folders)
        mean = print_row(name, reply)
        if args.floor is not None and mean < args.floor:
            below.append(name)
    if args.json:
        args.json.write_text(json.dumps(replies, ensure_ascii=False), encoding="utf-8")
    if below:
        raise SystemExit(f"hybrid search is below the better mode by more than {-args.floor:g} in: {', '.join(below)}")


def name_of(folder, roots):
    """Returns the path of a set, from the folder that was given on."""
    return next(str(folder.relative_to(root.parent)) for root in roots if root in (folder, *folder.parents))


def measure(program, folder):
    command = [program, "eval", str(folder), "--json", "--per-query"]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        raise SystemExit(f"`{' '.join(command)}` failed")
    [reply] = json.loads(done.stdout)
    if reply["pending"]:
        print(f"{folder}: {reply['pending']} passages have no vector, so that the figures are too low", file=sys.stderr)
    return reply


def print_row(name, reply):
    """Prints the row of a set, and returns the mean difference."""
    modes = {scores["mode"]: scores for scores in reply["modes"]}
    columns = [f"{modes[mode][key]:7.3f}" for _, key in FIGURES for mode in MODES]
    better = max(("bm25", "vector"), key=lambda mode: modes[mode]["ndcg_at_10"])
    other = dict(modes[better]["queries"])
    mean, low, high = bootstrap([value - other[query] for query, value in modes["hybrid"]["queries"]])
    print(f"{name:20} {reply['notes']:6} {reply['queries']:7} ", *columns, f"  {mean:+.3f} ({low:+.3f} to {high:+.3f}) {better}", sep="", flush=True)
    return mean


def bootstrap(differences):
    """Returns the mean, and the 2.5th and 97.5th percentile of the means of samples. It is the same each time."""
    if not differences:
        return 0.0, 0.0, 0.0
    draw, size = random.Random(1), len(differences)
    means = sorted(sum(draw.choices(differences, k=size)) / size for _ in range(SAMPLES))
    return sum(differences) / size, means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES)]


if __name__ == "__main__":
    main()
