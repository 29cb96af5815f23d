#!/usr/bin/env python3
"""Makes an MCP bundle (.mcpb) of the release binary, and the registry's description of it (server.json).

Usage: bundle.py BINARY FOLDER. The two templates lie beside this script; the tools are what the binary itself lists.
"""
import hashlib
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import tomllib
import zipfile

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
binary, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def listed(method):
    """Asks the binary what it offers, over MCP."""
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


package = tomllib.loads((root / "Cargo.toml").read_text())["package"]
system = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}[platform.system()]
name = f"sidenote-{package['version']}-{system}-{platform.machine().lower()}.mcpb"

manifest = (here / "manifest.json").read_text().replace("VERSION", package["version"]).replace("PLATFORM", system)
manifest = json.loads(manifest)
manifest["tools"] = [
    {"name": tool["name"], "description": tool["description"]} for tool in listed("tools/list")["tools"]
]

folder.mkdir(parents=True, exist_ok=True)
bundle = folder / name
with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    entry = zipfile.ZipInfo("server/sidenote")
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, binary.read_bytes())
    for licence in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md", "README.md"):
        file.write(root / licence, licence)

server = (here / "server.json").read_text().replace("VERSION", package["version"]).replace("FILE", name)
if "repository" not in package:
    print("Cargo.toml names no repository yet: the address in server.json is a placeholder", file=sys.stderr)
server = server.replace("REPOSITORY", package.get("repository", "https://example.org/sidenote"))
server = server.replace("SHA256", hashlib.sha256(bundle.read_bytes()).hexdigest())
(folder / "server.json").write_text(server)
print(f"{bundle}  {bundle.stat().st_size / 1e6:.1f} MB")
print(folder / "server.json")
