#!/usr/bin/env python3
"""Makes a wheel of a program that is built already.

Usage: wheel.py TARGET BINARY FOLDER. For Linux, the platform tag says which glibc the binary needs.
"""
import base64
import hashlib
import pathlib
import sys
import tomllib

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import archive
import project


def tag(target, binary):
    """Returns the platform tag of a wheel."""
    if target.system == "win32":
        return {"x64": "win_amd64", "arm64": "win_arm64"}[target.cpu]
    if target.system == "darwin":
        return {"x64": "macosx_10_12_x86_64", "arm64": "macosx_11_0_arm64"}[target.cpu]
    if target.libc == "musl":
        return f"musllinux_1_2_{target.machine}"
    minor = max(project.glibc(binary), 17)
    alias = f".manylinux2014_{target.machine}" if minor == 17 else ""
    return f"manylinux_2_{minor}_{target.machine}{alias}"


def metadata():
    """Returns METADATA: what pyproject.toml and Cargo.toml say."""
    settings = tomllib.loads((here / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {settings['name']}",
        f"Version: {project.VERSION}",
        f"Summary: {project.PACKAGE['description']}",
        f"Keywords: {','.join(project.PACKAGE['keywords'])}",
        f"License-Expression: {project.PACKAGE['license']}",
        *(f"License-File: {name}" for name in project.LICENCES),
        *(f"Classifier: {name}" for name in settings["classifiers"]),
        f"Requires-Python: {settings['requires-python']}",
        "Description-Content-Type: text/markdown; charset=UTF-8",
    ]
    if project.REPOSITORY != project.PLACEHOLDER:
        lines.append(f"Project-URL: Source, {project.REPOSITORY}")
    return "\n".join(lines) + "\n\n" + (here / settings["readme"]).read_text()


def build(target, binary, folder):
    """Writes the wheel and returns its path."""
    platform = tag(target, binary)
    stem = f"sidenote-{project.VERSION}"
    info = f"{stem}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: sidenote wheel.py\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{part}\n" for part in platform.split("."))
    files = [
        (f"{stem}.data/scripts/{target.program}", binary.read_bytes(), 0o755),
        (f"{info}/METADATA", metadata().encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        *((f"{info}/licenses/{name}", (project.ROOT / name).read_bytes(), 0o644) for name in project.LICENCES),
    ]
    record = ""
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    record += f"{info}/RECORD,,\n"
    path = folder / f"{stem}-py3-none-{platform}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    archive.zipped(path, [*files, (f"{info}/RECORD", record.encode(), 0o644)])
    return path


if __name__ == "__main__":
    print(build(project.target(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
