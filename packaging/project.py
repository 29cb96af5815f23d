"""What every package says of the project, read from Cargo.toml, and the systems for which packages are made."""
import dataclasses
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text())
# The version and the licence are those of the workspace, which the package inherits.
PACKAGE = MANIFEST["package"] | MANIFEST["workspace"]["package"]
VERSION = PACKAGE["version"]
# The one place of the address. Cargo.toml names no repository yet; until it does, packages carry a placeholder.
PLACEHOLDER = "https://example.org/sidenote"
REPOSITORY = PACKAGE.get("repository", PLACEHOLDER).rstrip("/")
DOWNLOADS = f"{REPOSITORY}/releases/download/v{VERSION}"
# Package managers want a name and an address of whoever made the package.
MAINTAINER = "The sidenote authors <sidenote@example.org>"
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md")


@dataclasses.dataclass(frozen=True)
class Target:
    """A system for which a binary may be given."""

    triple: str
    system: str  # as Node.js says it: linux, darwin, win32
    cpu: str  # as Node.js says it: x64, arm64
    machine: str  # as Python and RPM say it: x86_64, aarch64
    libc: str = ""  # glibc or musl on Linux

    @property
    def program(self):
        """The file name of the program."""
        return "sidenote.exe" if self.system == "win32" else "sidenote"

    @property
    def deb(self):
        """The architecture as Debian says it."""
        return {"x64": "amd64", "arm64": "arm64"}[self.cpu]

    @property
    def archive(self):
        """The file name of the archive with the program."""
        return f"sidenote-{VERSION}-{self.triple}" + (".zip" if self.system == "win32" else ".tar.gz")

    @property
    def npm(self):
        """The name of the npm package with the program."""
        return f"@sidenote/{self.system}-{self.cpu}" + ("-musl" if self.libc == "musl" else "")


TARGETS = [
    Target("x86_64-unknown-linux-gnu", "linux", "x64", "x86_64", "glibc"),
    Target("aarch64-unknown-linux-gnu", "linux", "arm64", "aarch64", "glibc"),
    Target("x86_64-unknown-linux-musl", "linux", "x64", "x86_64", "musl"),
    Target("aarch64-unknown-linux-musl", "linux", "arm64", "aarch64", "musl"),
    Target("x86_64-pc-windows-gnu", "win32", "x64", "x86_64"),
    Target("x86_64-pc-windows-msvc", "win32", "x64", "x86_64"),
    Target("x86_64-apple-darwin", "darwin", "x64", "x86_64"),
    Target("aarch64-apple-darwin", "darwin", "arm64", "aarch64"),
]


def target(triple):
    """Returns the target of this name."""
    for known in TARGETS:
        if known.triple == triple:
            return known
    raise SystemExit(f"{triple} is not a known target; known are {', '.join(known.triple for known in TARGETS)}")


def glibc(binary):
    """Returns the minor version of glibc 2 that a binary needs at least; 0 if it needs none."""
    found = re.findall(rb"GLIBC_2\.(\d+)(?:\.\d+)?\0", pathlib.Path(binary).read_bytes())
    return max(map(int, found), default=0)


def commit_time():
    """Returns the time that goes into packages: SOURCE_DATE_EPOCH, or that of the last commit."""
    import os

    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    log = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return int(log.stdout) if log.returncode == 0 and log.stdout.strip() else 1_600_000_000


def filled(text, **values):
    """Replaces @NAME@ in a template. A name without a value is an error."""
    values = {"VERSION": VERSION, "REPOSITORY": REPOSITORY, "DOWNLOADS": DOWNLOADS, "MAINTAINER": MAINTAINER,
              "DESCRIPTION": PACKAGE["description"], "LICENSE": PACKAGE["license"]} | values

    def value(match):
        if match[1] not in values:
            raise SystemExit(f"the template names @{match[1]}@, which has no value")
        return str(values[match[1]])

    return re.sub(r"@([A-Z][A-Z0-9_]*)@", value, text)


def runs(binary):
    """Returns whether a program runs on this machine and says its version."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith("sidenote ")
