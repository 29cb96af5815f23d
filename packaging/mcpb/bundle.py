#!/usr/bin/env python3
"""Makes an MCP bundle (.mcpb) of the programs for up to three systems, and the registry's description of it (server.json).

Usage: bundle.py FOLDER TARGET=BINARY… The two templates are in the folder of this script. One of the programs must run
here, since the tools in the manifest are what the program lists. A bundle has one program for a system: of several for
Linux the static one, of several for macOS that for ARM.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import archive
import project

# The best program for each system comes last.
ORDER = [
    "x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl",
    "x86_64-pc-windows-gnu", "x86_64-pc-windows-msvc",
    "x86_64-apple-darwin", "aarch64-apple-darwin",
]


def listed(binary, method):
    """Asks a program what it offers, over MCP."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bundle", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": method},
    ]
    with tempfile.TemporaryDirectory() as vault:
        server = subprocess.Popen(
            [binary, "--vault", vault, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        while True:
            answer = json.loads(server.stdout.readline())
            if answer.get("id") == 2:
                break
        server.stdin.close()
        server.wait()
    return answer["result"]


def build(binaries, native, out):
    """Writes the bundle and server.json, and returns their paths. `binaries` has (target, path); `native` runs here."""
    chosen = {}
    for target, binary in sorted((pair for pair in binaries if pair[0].triple in ORDER), key=lambda pair: ORDER.index(pair[0].triple)):
        chosen[target.system] = (target, binary)
    places = {system: f"server/{system}/{target.program}" for system, (target, _) in chosen.items()}
    systems = [system for system in ("darwin", "win32", "linux") if system in chosen]
    manifest = json.loads(project.filled((here / "manifest.json").read_text(), ENTRY=places[systems[-1]]))
    manifest["compatibility"]["platforms"] = systems
    if len(systems) > 1:
        manifest["server"]["mcp_config"]["platform_overrides"] = {
            system: {"command": "${__dirname}/" + places[system]} for system in systems
        }
    manifest["tools"] = [
        {"name": tool["name"], "description": tool["description"]} for tool in listed(native, "tools/list")["tools"]
    ]
    files = [("manifest.json", (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode(), 0o644)]
    files += [(places[system], chosen[system][1].read_bytes(), 0o755) for system in systems]
    files += [(name, (project.ROOT / name).read_bytes(), 0o644) for name in project.LICENCES]
    files += [("README.md", (here.parent / "package-readme.md").read_bytes(), 0o644)]
    out.mkdir(parents=True, exist_ok=True)
    bundle = out / f"sidenote-{project.VERSION}.mcpb"
    archive.zipped(bundle, files)
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    server = out / "server.json"
    server.write_text(project.filled((here / "server.json").read_text(), FILE=bundle.name, SHA256=digest))
    return [bundle, server]


if __name__ == "__main__":
    given = [argument.partition("=") for argument in sys.argv[2:]]
    pairs = [(project.target(name), pathlib.Path(file)) for name, _, file in given]
    runs = next((path for _, path in pairs if project.runs(path)), None)
    if runs is None:
        raise SystemExit("none of the programs runs here; the list of tools comes from one that does")
    for path in build(pairs, runs, pathlib.Path(sys.argv[1])):
        print(path)
