#!/usr/bin/env python3
"""Makes the npm packages: one for each platform with the program, and the main one that depends on them.

Usage: npm.py FOLDER TARGET=BINARY… Needs npm, for `npm pack`.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import project


def shared():
    """Returns what every package.json says."""
    said = {"version": project.VERSION, "description": project.PACKAGE["description"], "license": project.PACKAGE["license"]}
    if project.REPOSITORY != project.PLACEHOLDER:
        said["repository"] = {"type": "git", "url": f"git+{project.REPOSITORY}.git"}
    return said


def pack(folder, settings, files, out):
    """Writes a package into a folder, packs it, and returns the path of the archive."""
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(settings, indent=2) + "\n")
    for name, source, mode in [*files, *((name, project.ROOT / name, 0o644) for name in project.LICENCES)]:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(mode)
    command = ["npm", "pack", "--offline", "--loglevel=error", "--json", "--pack-destination", out]
    packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    packed = json.loads(packed)
    packed = list(packed.values()) if isinstance(packed, dict) else packed
    return out / packed[0]["filename"].replace("@", "").replace("/", "-")


def build(binaries, out):
    """Writes all packages and returns their paths. `binaries` has (target, path)."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as temporary:
        stage = pathlib.Path(temporary)
        for target, binary in binaries:
            settings = {"name": target.npm, **shared(), "os": [target.system], "cpu": [target.cpu]}
            if target.libc:
                settings["libc"] = [target.libc]
            settings |= {"preferUnplugged": True, "files": ["bin", *project.LICENCES]}
            made.append(pack(stage / target.triple, settings, [(f"bin/{target.program}", binary, 0o755)], out))
        main = {
            "name": "sidenote", **shared(), "keywords": project.PACKAGE["keywords"], "engines": {"node": ">=18"},
            "bin": {"sidenote": "sidenote.js"}, "files": ["sidenote.js", *project.LICENCES],
            "optionalDependencies": {target.npm: project.VERSION for target, _ in binaries},
        }
        files = [("sidenote.js", here / "sidenote.js", 0o755), ("README.md", here.parent / "package-readme.md", 0o644)]
        made.append(pack(stage / "main", main, files, out))
    return made


if __name__ == "__main__":
    given = [argument.partition("=") for argument in sys.argv[2:]]
    for path in build([(project.target(name), pathlib.Path(file).resolve()) for name, _, file in given], pathlib.Path(sys.argv[1])):
        print(path)
