#!/usr/bin/env python3
"""Makes every package of the programs in a folder, and SHA256SUMS, in target/dist.

Usage: dist.py BINARIES [FOLDER]. BINARIES has a folder for each target, such as x86_64-unknown-linux-gnu/sidenote or
x86_64-pc-windows-gnu/sidenote.exe. A package whose tool or program is missing is left out, and a line says so.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
for folder in (here, here / "wheel", here / "npm", here / "deb", here / "mcpb"):
    sys.path.insert(0, str(folder))
import archive
import bundle
import deb
import npm
import project
import wheel

# A wheel is downloaded whole before its first use, so its size has a limit of our own.
WHEEL_LIMIT = 32_000_000


def skipped(what, why):
    """Says what is left out."""
    print(f"skipped: {what}: {why}")


def found(folder):
    """Returns the programs in a folder: (target, path)."""
    pairs = [(target, folder / target.triple / target.program) for target in project.TARGETS]
    return [(target, path.resolve()) for target, path in pairs if path.is_file()]


def extras(native, folder):
    """Writes the manual pages and the scripts for completion that a program prints."""
    subprocess.run([native, "man", "--dir", folder / "man"], check=True, stdout=subprocess.DEVNULL)
    (folder / "completions").mkdir()
    for shell, name in (("bash", "sidenote.bash"), ("zsh", "_sidenote"), ("fish", "sidenote.fish")):
        done = subprocess.run([native, "completions", shell], check=True, capture_output=True)
        (folder / "completions" / name).write_bytes(done.stdout)


def packed(target, binary, extra, out):
    """Writes the archive with the program, manual pages and completions, and returns its path."""
    top = f"sidenote-{project.VERSION}-{target.triple}"
    files = [(f"{top}/{target.program}", binary.read_bytes(), 0o755)]
    for name in ("README.md", "CHANGELOG.md", *project.LICENCES):
        files.append((f"{top}/{name}", (project.ROOT / name).read_bytes(), 0o644))
    for path in sorted(extra.rglob("*")):
        if path.is_file():
            files.append((f"{top}/{path.relative_to(extra)}", path.read_bytes(), 0o644))
    path = out / target.archive
    if target.system == "win32":
        archive.zipped(path, files)
    else:
        archive.tar_gz(path, files, project.commit_time())
    return path


def rpm(target, source, out):
    """Writes the RPM package with the program of an archive, and returns its path."""
    spec = project.filled(
        (here / "rpm/sidenote.spec").read_text(), ARCHIVE=source.name, FOLDER=source.name.removesuffix(".tar.gz")
    )
    with tempfile.TemporaryDirectory() as temporary:
        top = pathlib.Path(temporary)
        for name in ("SOURCES", "SPECS", "BUILD", "RPMS"):
            (top / name).mkdir()
        shutil.copyfile(source, top / "SOURCES" / source.name)
        (top / "SPECS/sidenote.spec").write_text(spec)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(project.commit_time()), "HOME": temporary}
        command = ["rpmbuild", "-bb", "--quiet", "--target", f"{target.machine}-linux", "--define", f"_topdir {top}"]
        done = subprocess.run([*command, top / "SPECS/sidenote.spec"], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"rpmbuild failed:\n{done.stdout}{done.stderr}")
        made = next((top / "RPMS").rglob("*.rpm"))
        return pathlib.Path(shutil.copyfile(made, out / made.name))


def homebrew(archives, sums):
    """Returns the Homebrew formula."""
    blocks = []
    for system, block in (("darwin", "on_macos"), ("linux", "on_linux")):
        lines = []
        for cpu, inner in (("x64", "on_intel"), ("arm64", "on_arm")):
            # The program for glibc is what Homebrew on Linux expects.
            for target, path in archives:
                if (target.system, target.cpu) == (system, cpu) and target.libc != "musl":
                    lines += [f"    {inner} do", f'      url "{project.DOWNLOADS}/{path.name}"']
                    lines += [f'      sha256 "{sums[path.name]}"', "    end"]
        if lines:
            blocks += [f"  {block} do", *lines, "  end"]
    return project.filled((here / "homebrew/sidenote.rb").read_text(), DOWNLOAD_BLOCKS="\n".join(blocks))


def aur(archives, sums):
    """Returns the PKGBUILD of Arch Linux."""
    arches, sources = [], []
    for target, path in archives:
        if target.libc == "glibc":
            arches.append(f"'{target.machine}'")
            sources.append(f"source_{target.machine}=('{project.DOWNLOADS}/{path.name}')")
            sources.append(f"sha256sums_{target.machine}=('{sums[path.name]}')")
    return project.filled((here / "aur/PKGBUILD").read_text(), ARCHES=" ".join(arches), SOURCES="\n".join(sources))


def scoop(path, sums):
    """Returns the manifest of Scoop."""
    manifest = {
        "version": project.VERSION,
        "description": project.PACKAGE["description"],
        "homepage": project.REPOSITORY,
        "license": project.PACKAGE["license"].replace(" OR ", "|"),
        "architecture": {"64bit": {
            "url": f"{project.DOWNLOADS}/{path.name}",
            "hash": sums[path.name],
            "extract_dir": path.name.removesuffix(".zip"),
        }},
        "bin": "sidenote.exe",
    }
    return json.dumps(manifest, indent=4) + "\n"


def plugin(recipe, out, catalogue, **entry):
    """Writes a plugin with the version of Cargo.toml and the shared skill, in a marketplace of one plugin."""
    folder = out / "sidenote"
    shutil.copytree(recipe, folder)
    shutil.copytree(here / "claude-plugin/skills", folder / "skills", dirs_exist_ok=True)
    manifest = next(folder.glob(".*-plugin/plugin.json"))
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(said | {"version": project.VERSION}, indent=2) + "\n")
    listed = {"name": "sidenote", "description": said["description"], **entry}
    text = {"name": "sidenote", "owner": {"name": "The sidenote authors"}, "plugins": [listed]}
    (out / catalogue).parent.mkdir(parents=True)
    (out / catalogue).write_text(json.dumps(text, indent=2) + "\n")


def plugins(out):
    """Writes the plugins for Claude Code and for Codex."""
    plugin(here / "claude-plugin", out / "claude-marketplace", ".claude-plugin/marketplace.json", source="./sidenote")
    plugin(
        here / "codex-plugin", out / "codex-marketplace", ".agents/plugins/marketplace.json",
        source={"source": "local", "path": "./sidenote"},
        policy={"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        category="Productivity",
    )


def oci(target, binary, out):
    """Writes the folder from which an engine builds the image."""
    folder = out / "oci"
    folder.mkdir()
    (folder / "Dockerfile").write_text(project.filled((here / "oci/Dockerfile").read_text()))
    shutil.copyfile(binary, folder / "sidenote")
    (folder / "sidenote").chmod(0o755)
    for name in project.LICENCES:
        shutil.copyfile(project.ROOT / name, folder / name)


def main(binaries, out):
    """Makes everything."""
    given = found(binaries)
    if not given:
        names = ", ".join(f"{target.triple}/{target.program}" for target in project.TARGETS)
        raise SystemExit(f"{binaries} has none of {names}")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for target in project.TARGETS:
        if target not in [pair[0] for pair in given]:
            skipped(target.triple, f"there is no {target.triple}/{target.program}")
    native = next((path for _, path in given if project.runs(path)), None)
    with tempfile.TemporaryDirectory() as temporary:
        extra = pathlib.Path(temporary)
        if native:
            extras(native, extra)
        else:
            skipped("manual pages, completions, bundle", "none of the programs runs here")
        archives = [(target, packed(target, path, extra, out)) for target, path in given]
        for target, path in given:
            made = wheel.build(target, path, out)
            if made.stat().st_size > WHEEL_LIMIT:
                print(f"warning: {made.name} has {made.stat().st_size / 1e6:.1f} MB, more than {WHEEL_LIMIT / 1e6:.0f}; advzip makes it smaller (apt-get install advancecomp)")
        if not shutil.which("npm"):
            skipped("npm packages", "npm is not installed")
        else:
            # Windows has one npm package, whichever compiler made the program.
            npm.build(list({target.npm: (target, path) for target, path in given}.values()), out)
        for target, path in given:
            if target.system != "linux" or target.libc == "musl":
                continue
            if shutil.which("dpkg-deb"):
                deb.build(target, path, extra, out)
            else:
                skipped(f".deb for {target.deb}", "dpkg-deb is not installed")
            if shutil.which("rpmbuild") and native:
                rpm(target, dict(archives)[target], out)
            else:
                skipped(f".rpm for {target.machine}", "rpmbuild is not installed" if native else "manual pages are missing")
    if native:
        bundle.build(given, native, out)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for _, path in archives}
    (out / "sidenote.rb").write_text(homebrew(archives, sums))
    if any(target.libc == "glibc" for target, _ in archives):
        (out / "PKGBUILD").write_text(aur(archives, sums))
    else:
        skipped("PKGBUILD", "there is no program for Linux with glibc")
    windows = next((path for target, path in reversed(archives) if target.system == "win32"), None)
    if windows:
        (out / "scoop.json").write_text(scoop(windows, sums))
        (out / "winget").mkdir()
        values = {"ARCHIVE": windows.name, "FOLDER": windows.stem, "SHA256": sums[windows.name].upper()}
        for name, file in (("version", ""), ("locale", ".locale.en-US"), ("installer", ".installer")):
            text = project.filled((here / f"winget/{name}.yaml").read_text(), **values)
            (out / f"winget/Sidenote.Sidenote{file}.yaml").write_text(text)
    else:
        skipped("Scoop and winget manifests", "there is no program for Windows")
    static = next(((target, path) for target, path in given if target.libc == "musl" and target.cpu == "x64"), None)
    if static:
        oci(*static, out)
    else:
        skipped("folder of the OCI image", "there is no x86_64-unknown-linux-musl/sidenote")
    for name in ("install.sh", "install.ps1"):
        (out / name).write_text(project.filled((here / name).read_text()))
    (out / "install.sh").chmod(0o755)
    plugins(out)
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(out.iterdir())
        if path.is_file() and path.name != "server.json"
    ]
    (out / "SHA256SUMS").write_text("".join(lines))
    for path in sorted(out.iterdir()):
        size = f"{path.stat().st_size / 1e6:8.2f} MB" if path.is_file() else "  (folder) "
        print(f"{size}  {path.name}")
    if project.REPOSITORY == project.PLACEHOLDER:
        print(f"note: Cargo.toml names no repository; addresses in the packages begin with {project.PLACEHOLDER}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__.strip())
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else project.ROOT / "target/dist")
