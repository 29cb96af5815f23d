#!/usr/bin/env python3
"""Builds the program for other systems from Linux on x86-64.

Usage: cross.py [TARGET…] [--tools FOLDER] [--out FOLDER] [--missing] [--fetch]. Without TARGET, that is every target that
can be built here. Programs go to FOLDER/TARGET/sidenote, which is what dist.py takes. --missing builds nothing: it prints
what is missing for each target, and the exit code is 1 if anything is. --fetch gets the tools that need no rights of the
administrator, and builds nothing. README.md in this folder describes the recipe.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import project

# The oldest glibc that is supported.
GLIBC = "2.17"
# How each target is linked: `zig` by cargo-zigbuild, `mingw` by the cross compiler of MinGW-w64.
LINKERS = {
    "x86_64-unknown-linux-gnu": "zig",
    "aarch64-unknown-linux-gnu": "zig",
    "x86_64-unknown-linux-musl": "zig",
    "aarch64-unknown-linux-musl": "zig",
    "x86_64-pc-windows-gnu": "mingw",
}
HOST = "x86_64-unknown-linux-gnu"
# The toolchain of Debian, for targets whose standard library rustup does not have here.
DEBIAN = ("rustc-web", "rust-web-src", "libstd-rust-web-dev", "libstd-rust-web-1.96")
# Debian's compiler is linked with this library.
LLVM = "libLLVM.so.22.1"
ZIG = ("ziglang", "cargo-zigbuild")
MINGW = "x86_64-w64-mingw32"
# The libraries of MinGW-w64 that are linked statically, so that the program needs no DLL of the compiler.
MINGW_LIBRARIES = ("libstdc++.a", "libwinpthread.a", "libgcc_eh.a", "libgcc.a", "libpthread.a")


def spelled(triple, prefix):
    """Returns the name of a variable for a target, as cargo spells it."""
    return f"{prefix}_{triple.upper().replace('-', '_')}"


def in_rustup(triple):
    """Returns whether the default toolchain has the standard library of a target."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], cwd="/", capture_output=True, text=True)
    return sysroot.returncode == 0 and (pathlib.Path(sysroot.stdout.strip()) / f"lib/rustlib/{triple}/lib").is_dir()


class Tools:
    """What is installed in the folder of tools: Debian's toolchain in `rust`, zig in `venv`."""

    def __init__(self, folder):
        self.folder = folder
        self.rust = folder / "rust/usr"
        self.venv = folder / "venv"

    def environment(self, triple):
        """Returns the environment in which cargo builds for a target, without what its linker wants."""
        environment = {**os.environ, "PATH": f"{self.venv}/bin:{os.environ['PATH']}"}
        if not in_rustup(triple):
            environment["RUSTC"] = str(self.rust / "bin/rustc")
            environment["LD_LIBRARY_PATH"] = str(self.rust / "lib/x86_64-linux-gnu")
        return environment

    def standard_library(self, triple):
        """Returns the folder of a target's standard library in Debian's toolchain."""
        return self.rust / f"lib/rustlib/{triple}/lib"

    def fetch(self):
        """Gets zig from PyPI and the toolchain from Debian, as far as they are not there."""
        if not (self.venv / "bin/cargo-zigbuild").exists():
            subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
            subprocess.run([self.venv / "bin/pip", "install", "--quiet", *ZIG], check=True)
        if all(map(in_rustup, LINKERS)) or (self.rust / "bin/rustc").exists():
            return
        if not shutil.which("apt-get"):
            print("left out: the toolchain of Debian, because there is no apt-get")
            return
        with tempfile.TemporaryDirectory() as packages:
            subprocess.run(["apt-get", "download", *DEBIAN], cwd=packages, check=True)
            for package in sorted(pathlib.Path(packages).glob("*.deb")):
                subprocess.run(["dpkg", "-x", package, self.folder / "rust"], check=True)


def missing(triple, tools):
    """Lists what is missing for a target: what it is, and how to get it."""
    found = []
    if LINKERS[triple] == "zig" and not (tools.venv / "bin/cargo-zigbuild").exists():
        found.append("zig and cargo-zigbuild (just dist-tools)")
    if LINKERS[triple] == "mingw" and not shutil.which(f"{MINGW}-g++-posix"):
        found.append("MinGW-w64 with POSIX threads (apt-get install g++-mingw-w64-x86-64-posix)")
    if not in_rustup(triple):
        if not (tools.rust / "bin/rustc").exists():
            found.append(f"the standard library (rustup target add {triple}, or just dist-tools on Debian 12)")
        elif not any(pathlib.Path("/usr/lib").rglob(LLVM)):
            found.append(f"{LLVM} (apt-get install libllvm22)")
    return found


def build_standard_library(triple, tools):
    """Builds the standard library of a target once, and copies it into Debian's toolchain."""
    destination = tools.standard_library(triple)
    if destination.is_dir():
        return
    with tempfile.TemporaryDirectory() as temporary:
        crate = pathlib.Path(temporary)
        (crate / "src").mkdir()
        (crate / "src/lib.rs").write_text("#![no_std]\n")
        (crate / "Cargo.toml").write_text('[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n')
        environment = tools.environment(triple) | {"RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_DIR": str(crate / "target")}
        # A library needs no linker, so plain cargo will do.
        command = ["cargo", "build", "--release", "-Zbuild-std=std,panic_abort,test", "--target", triple]
        subprocess.run(command, cwd=crate, env=environment, check=True)
        made = list((crate / f"target/{triple}/release/deps").glob("*.rlib"))
        # The folder appears when it is complete.
        unfinished = destination.with_name("lib.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for library in made:
            shutil.copy(library, unfinished)
        unfinished.rename(destination)


def with_zig(triple):
    """Returns cargo's arguments and variables for a build by zig."""
    # Old versions of glibc are chosen by a suffix of the target.
    arguments = ["zigbuild", "--target", f"{triple}.{GLIBC}" if triple.endswith("-gnu") else triple]
    variables = {}
    if triple.endswith("-musl"):
        # Zig brings musl's start files; those of Rust would be there twice.
        variables[spelled(triple, "CARGO_TARGET") + "_RUSTFLAGS"] = "-C link-self-contained=no"
    return arguments, variables


def with_mingw(triple, tools):
    """Returns cargo's arguments and variables for a build by MinGW-w64, whose files are prepared in the folder of tools."""
    folder = tools.folder / "mingw"
    libraries, headers = folder / "lib", folder / "include"
    libraries.mkdir(parents=True, exist_ok=True)
    headers.mkdir(exist_ok=True)
    # usearch writes the name with a capital, which file systems of Linux distinguish.
    (headers / "Windows.h").write_text("#include <windows.h>\n")
    compiler = f"{MINGW}-g++-posix"
    for name in MINGW_LIBRARIES:
        said = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
        if pathlib.Path(said.stdout.strip()).is_absolute():
            shutil.copy(said.stdout.strip(), libraries / name)
    under = triple.replace("-", "_")
    variables = {
        f"CC_{under}": f"{MINGW}-gcc-posix",
        f"CXX_{under}": compiler,
        f"CFLAGS_{under}": f"-I{headers}",
        f"CXXFLAGS_{under}": f"-I{headers}",
        spelled(triple, "CARGO_TARGET") + "_LINKER": compiler,
        spelled(triple, "CARGO_TARGET") + "_RUSTFLAGS": f"-L native={libraries} -C link-arg=-static",
    }
    return ["build", "--target", triple], variables


def build(triple, tools, out):
    """Builds the program for a target, and returns its path in the folder of programs."""
    if not in_rustup(triple):
        build_standard_library(triple, tools)
    arguments, variables = with_zig(triple) if LINKERS[triple] == "zig" else with_mingw(triple, tools)
    target_folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", project.ROOT / "target")) / "cross"
    environment = tools.environment(triple) | variables | {"CARGO_TARGET_DIR": str(target_folder)}
    command = ["cargo", *arguments, "--release", "--locked", "--bin", "sidenote"]
    subprocess.run(command, cwd=project.ROOT, env=environment, check=True)
    program = project.target(triple).program
    destination = out / triple / program
    destination.parent.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(target_folder / triple / "release" / program, destination))


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(LINKERS)}")
    parser.add_argument("--tools", type=pathlib.Path, default=project.ROOT / "target/dist-tools", metavar="FOLDER")
    parser.add_argument("--out", type=pathlib.Path, default=project.ROOT / "target/programs", metavar="FOLDER")
    parser.add_argument("--missing", action="store_true", help="print what is missing, and build nothing")
    parser.add_argument("--fetch", action="store_true", help="get the tools, and build nothing")
    given = parser.parse_args()
    unknown = [triple for triple in given.targets if triple not in LINKERS]
    if unknown:
        parser.error(f"no recipe for {', '.join(unknown)}; there are {', '.join(LINKERS)}")
    return given


def main():
    """Builds the targets, or says what is missing for them."""
    given = arguments()
    tools = Tools(given.tools.resolve())
    if given.fetch:
        tools.folder.mkdir(parents=True, exist_ok=True)
        tools.fetch()
        return 0
    lacking = {triple: missing(triple, tools) for triple in given.targets or LINKERS}
    for triple, parts in lacking.items():
        if parts:
            print(f"{triple}: missing: {'; '.join(parts)}")
    ready = [triple for triple, parts in lacking.items() if not parts]
    if given.missing or given.targets and len(ready) < len(lacking) or not ready:
        return int(len(ready) < len(lacking))
    for triple in ready:
        path = build(triple, tools, given.out.resolve())
        print(f"{path.stat().st_size / 1e6:8.2f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
