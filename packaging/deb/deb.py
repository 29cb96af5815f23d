#!/usr/bin/env python3
"""Makes a Debian package of a program that is built already.

Usage: deb.py TARGET BINARY EXTRAS FOLDER. EXTRAS has what dist.py generates: man/ and completions/. Needs dpkg-deb.
"""
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import project

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sidenote
Source: @REPOSITORY@

Files: *
Copyright: @COPYRIGHT@
License: MIT or Apache-2.0
Comment: The program contains other works. THIRD-PARTY.md.gz beside this file has their licences and copyright notices.

License: MIT
"""


def tree(target, binary, extras):
    """Returns the files of the package: (path, bytes, mode)."""
    packed = lambda content: gzip.compress(content, 9, mtime=0)
    doc = "usr/share/doc/sidenote"
    mit = (project.ROOT / "LICENSE-MIT").read_text()
    holder = next(line for line in mit.splitlines() if line.startswith("Copyright")).removeprefix("Copyright ")
    mit = mit[mit.index("Permission is hereby"):]
    quoted = "".join(f" {line}\n" if line.strip() else " .\n" for line in mit.strip().splitlines())
    apache = "\nLicense: Apache-2.0\n On Debian systems, the text of the licence is in /usr/share/common-licenses/Apache-2.0.\n"
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(project.commit_time()))
    changes = f"sidenote ({project.VERSION}-1) unstable; urgency=medium\n\n  * Release {project.VERSION}; see {project.REPOSITORY}.\n\n -- {project.MAINTAINER}  {date}\n"
    yield "usr/bin/sidenote", binary.read_bytes(), 0o755
    yield f"{doc}/copyright", (project.filled(COPYRIGHT, COPYRIGHT=holder) + quoted + apache).encode(), 0o644
    yield f"{doc}/changelog.Debian.gz", packed(changes.encode()), 0o644
    yield f"{doc}/changelog.gz", packed((project.ROOT / "CHANGELOG.md").read_bytes()), 0o644
    yield f"{doc}/THIRD-PARTY.md.gz", packed((project.ROOT / "THIRD-PARTY.md").read_bytes()), 0o644
    # The package is not meant for Debian's own archive.
    overrides = "sidenote: initial-upload-closes-no-bugs *\n"
    if target.libc == "musl":
        overrides += "sidenote: statically-linked-binary *\n"
    yield "usr/share/lintian/overrides/sidenote", overrides.encode(), 0o644
    for page in sorted((extras / "man").glob("*.1")):
        yield f"usr/share/man/man1/{page.name}.gz", packed(page.read_bytes()), 0o644
    places = {
        "sidenote.bash": "bash-completion/completions/sidenote",
        "_sidenote": "zsh/vendor-completions/_sidenote",
        "sidenote.fish": "fish/vendor_completions.d/sidenote.fish",
    }
    for name, place in places.items():
        if (extras / "completions" / name).exists():
            yield f"usr/share/{place}", (extras / "completions" / name).read_bytes(), 0o644


def build(target, binary, extras, out):
    """Writes the package and returns its path."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary) / "root"
        size = 0
        for name, content, mode in tree(target, binary, extras):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
            size += len(content)
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        depends = ""
        if target.libc == "glibc":
            content = binary.read_bytes()
            others = {"libgcc_s.so.1": "libgcc-s1", "libstdc++.so.6": "libstdc++6"}
            needed = [package for library, package in others.items() if library.encode() + b"\0" in content]
            depends = ", ".join([f"Depends: libc6 (>= 2.{project.glibc(binary)})", *needed]) + "\n"
        control = project.filled(
            (here / "control").read_text(), ARCHITECTURE=target.deb, SIZE=-(-size // 1024), DEPENDS=depends
        )
        (root / "DEBIAN").mkdir(mode=0o755)
        (root / "DEBIAN/control").write_text(control)
        (root / "DEBIAN/control").chmod(0o644)
        path = out / f"sidenote_{project.VERSION}-1_{target.deb}.deb"
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(project.commit_time())}
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return path


if __name__ == "__main__":
    paths = [pathlib.Path(argument) for argument in sys.argv[2:]]
    print(build(project.target(sys.argv[1]), *paths))
