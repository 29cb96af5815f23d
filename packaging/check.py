#!/usr/bin/env python3
"""Installs the packages of target/dist into clean environments, uses what they install, and removes it.

Usage: check.py [DIST] [--chroot FOLDER]. Each package is tried with nothing but its local file: a new virtual environment,
an empty npm prefix, an empty home, a bare chroot (made with `debootstrap --variant=minbase bookworm FOLDER`). A check whose
tool is missing is left out, and a line says so. The first failure ends the run.
"""
import argparse
import base64
import functools
import hashlib
import http.server
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import project

QUESTION = ["search", "how do links survive a rename", "--limit", "1"]
ANSWER = "How links survive a rename"
MACHINE = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}[platform.machine()]
HERE = next(
    target for target in project.TARGETS
    if target.system == sys.platform and target.machine == MACHINE and target.libc in ("", "glibc")
)


class Bare:
    """An empty home, a copy of the example vault, and an environment with nothing of ours in it."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.vault = folder / "vault"
        shutil.copytree(project.ROOT / "example-vault", self.vault, ignore=shutil.ignore_patterns(".sidenote"))
        # npm and node come from PATH; a proxy or registry of this machine is not passed on.
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def run(self, *command, status=0, **more):
        """Runs a command, checks its exit code, and returns what it printed."""
        environment = self.environment | more.pop("env", {})
        done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True, timeout=600, **more)
        if done.returncode != status:
            raise SystemExit(f"{command} gave {done.returncode}, not {status}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def use(self, *program):
        """Checks version, first search, and the handshake and a tool call over MCP. Returns the seconds to the reply."""
        said = self.run(*program, "--version")
        assert said == f"sidenote {project.VERSION}\n", said
        assert ANSWER in self.run(*program, "--vault", self.vault, *QUESTION), "the first search misses the note"
        return handshake([*program, "--vault", self.vault, "mcp"], self.environment)


def handshake(command, environment):
    """Starts a server, calls a tool, and returns the seconds from the start to the reply."""
    began = time.monotonic()
    server = subprocess.Popen(
        [str(part) for part in command], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
    call = {"name": "search_notes", "arguments": {"query": "links rename", "mode": "bm25", "limit": 1}}
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ):
        server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == 2:
            break
    else:
        raise SystemExit(f"{command} ended without a reply")
    assert "result" in answer and not answer["result"].get("isError"), answer
    took = time.monotonic() - began
    server.stdin.close()
    assert server.wait(timeout=60) == 0
    return took


def left(folder, known=()):
    """Returns the files that are left in a folder, but for those that are known."""
    return [path for path in folder.rglob("*") if path.is_file() and not any(part in path.parts for part in known)]


def serve(folder, handler=None):
    """Serves a folder over HTTP on this machine and returns the address."""
    class Quiet(handler or http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def check_wheel(dist, bare):
    """pip in a new virtual environment; uvx with an empty cache."""
    wheel = next(dist.glob(f"*manylinux*_{MACHINE}*.whl"))
    with zipfile.ZipFile(wheel) as file:
        record = file.read(f"sidenote-{project.VERSION}.dist-info/RECORD").decode().split()
        assert {line.split(",")[0] for line in record} == set(file.namelist())
        for line in record[:-1]:
            name, digest, size = line.rsplit(",", 2)
            content = file.read(name)
            expected = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (expected, len(content)), name
    environment = bare.folder / "venv"
    bare.run(sys.executable, "-m", "venv", environment)
    before = set(left(environment, ["__pycache__"]))
    pip = [environment / "bin/python", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    bare.run(*pip, "install", "--no-index", wheel)
    took = bare.use(environment / "bin/sidenote")
    bare.run(*pip, "uninstall", "--yes", "sidenote")
    assert set(left(environment, ["__pycache__"])) == before, "pip uninstall leaves files"
    said = f"pip: first tool reply after {took:.2f} s"
    uvx = shutil.which("uvx")
    if uvx:
        command = [uvx, "--offline", "--no-config", "--python", sys.executable, "--from", wheel, "sidenote"]
        bare.environment["UV_CACHE_DIR"] = str(bare.folder / "uv")
        bare.run(*command, "--version")
        said += f"; uvx: {bare.use(*command):.2f} s"
    else:
        said += "; uvx is not installed"
    return said


def registry(dist):
    """Returns a handler that serves the npm packages of a folder as a registry does."""
    packages = {}
    for file in dist.glob("*.tgz"):
        with tarfile.open(file) as archive:
            said = json.load(archive.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        packages[said["name"]] = (said, file.name, f"sha512-{digest}")

    class Registry(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            name = self.path.lstrip("/").replace("%2f", "/").replace("%2F", "/")
            if name.endswith(".tgz"):
                return super().do_GET()
            if name not in packages:
                return self.send_error(404)
            said, file, integrity = packages[name]
            address = f"http://{self.headers['Host']}/{file}"
            versions = {said["version"]: said | {"dist": {"tarball": address, "integrity": integrity}}}
            body = json.dumps({"name": name, "dist-tags": {"latest": said["version"]}, "versions": versions}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Registry


def check_npm(dist, bare):
    """npm into an empty prefix without a network; npx from a registry on this machine."""
    if not shutil.which("npm"):
        return "left out: npm is not installed"
    prefix = bare.folder / "prefix"
    prefix.mkdir()
    own = HERE.npm.replace("@", "").replace("/", "-")
    tarballs = [dist / f"{own}-{project.VERSION}.tgz", dist / f"sidenote-{project.VERSION}.tgz"]
    bare.environment |= {"npm_config_cache": str(bare.folder / "npm-cache"), "npm_config_update_notifier": "false"}
    npm = ["npm", "--prefix", prefix, "--no-audit", "--no-fund", "--loglevel=error"]
    bare.run(*npm, "install", "--offline", *tarballs)
    shim = prefix / "node_modules/.bin/sidenote"
    took = bare.use(shim)
    # Settings of clients name the program itself, which starts without node.
    config = json.loads(bare.run(shim, "--vault", bare.vault, "mcp", "config", "cursor"))
    program = pathlib.Path(config["mcpServers"]["sidenote"]["command"])
    assert program == (prefix / "node_modules" / HERE.npm / "bin/sidenote").resolve(), program
    # Exit codes and signals pass the shim.
    bare.run(shim, "--vault", bare.vault, "read", "no such note", status=3)
    server = subprocess.Popen([shim, "--vault", bare.vault, "mcp"], env=bare.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    server.terminate()
    assert server.wait(timeout=60) in (0, 143), server.returncode
    bare.run(*npm, "uninstall", "--offline", "sidenote", HERE.npm)
    rest = left(prefix, ["package.json", "package-lock.json", ".package-lock.json"])
    assert not rest, f"npm uninstall leaves {rest}"
    bare.environment["npm_config_registry"] = serve(dist, registry(dist))
    bare.run("npx", "-y", "sidenote", "--version")
    warm = bare.use("npx", "-y", "sidenote")
    return f"npm: first tool reply after {took:.2f} s; npx: {warm:.2f} s warm"


def check_script(dist, bare):
    """install.sh from a server on this machine, and from a file address; a wrong checksum; removal."""
    script, program = dist / "install.sh", bare.home / ".local/bin/sidenote"
    for downloads in (serve(dist), dist.resolve().as_uri()):
        said = bare.run("sh", script, env={"SIDENOTE_DOWNLOADS": downloads})
        assert f"installed sidenote {project.VERSION} as {program}" in said, said
    took = bare.use(program)
    bare.run("sh", script, "--uninstall")
    assert not left(bare.home / ".local"), "--uninstall leaves files"
    bare.run("sh", script, "--uninstall", status=1)
    forged = bare.folder / "forged"
    forged.mkdir()
    shutil.copyfile(dist / HERE.archive, forged / HERE.archive)
    (forged / "SHA256SUMS").write_text(f"{'0' * 64}  {HERE.archive}\n")
    said = bare.run("sh", script, env={"SIDENOTE_DOWNLOADS": forged.as_uri()}, status=1)
    assert "nothing was installed" in said and not program.exists(), said
    (forged / "SHA256SUMS").write_text("")
    said = bare.run("sh", script, env={"SIDENOTE_DOWNLOADS": forged.as_uri()}, status=1)
    assert "has no archive that runs here" in said, said
    return f"install.sh: first tool reply after {took:.2f} s"


def check_deb(dist, bare, chroot):
    """dpkg in a bare chroot; lintian."""
    package = dist / f"sidenote_{project.VERSION}-1_{HERE.deb}.deb"
    said = []
    if shutil.which("lintian"):
        findings = bare.run("lintian", "--allow-root", "--fail-on", "error,warning", package)
        said.append("lintian is content" + (f" ({len(findings.splitlines())} notes)" if findings.strip() else ""))
    else:
        said.append("lintian is not installed")
    if not chroot:
        return "; ".join([*said, "left out: --chroot is not given"])
    inside = ["chroot", chroot]
    place = chroot / "tmp/check"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copyfile(package, place / package.name)
    shutil.copytree(bare.vault, place / "vault")
    bare.run(*inside, "dpkg", "-i", f"/tmp/check/{package.name}")
    assert bare.run(*inside, "sidenote", "--version") == f"sidenote {project.VERSION}\n"
    assert ANSWER in bare.run(*inside, "sidenote", "--vault", "/tmp/check/vault", *QUESTION)
    took = handshake([*inside, "sidenote", "--vault", "/tmp/check/vault", "mcp"], bare.environment)
    listed = bare.run(*inside, "dpkg", "-L", "sidenote").splitlines()
    bare.run(*inside, "dpkg", "--purge", "sidenote")
    rest = [name for name in listed if "sidenote" in name and (chroot / name.lstrip("/")).exists()]
    assert not rest, f"dpkg --purge leaves {rest}"
    shutil.rmtree(place)
    return "; ".join([*said, f"dpkg: first tool reply after {took:.2f} s"])


def check_rpm(dist, bare):
    """rpm into a root of its own."""
    if not shutil.which("rpm"):
        return "left out: rpm is not installed"
    package = dist / f"sidenote-{project.VERSION}-1.{MACHINE}.rpm"
    root = bare.folder / "rpm"
    root.mkdir()
    rpm = ["rpm", "--root", root, "--nodeps"]
    bare.run(*rpm, "--install", package)
    took = bare.use(root / "usr/bin/sidenote")
    bare.run(*rpm, "--verify", "sidenote")
    bare.run(*rpm, "--erase", "sidenote")
    rest = [path for path in left(root) if "sidenote" in str(path.relative_to(root))]
    assert not rest, f"rpm --erase leaves {rest}"
    return f"rpm: first tool reply after {took:.2f} s"


def check_bundle(dist, bare):
    """The command of the bundle's manifest, from the unpacked bundle; mcpb validate."""
    folder = bare.folder / "bundle"
    bundle = dist / f"sidenote-{project.VERSION}.mcpb"
    bare.run("unzip", "-q", bundle, "-d", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    config = manifest["server"]["mcp_config"]
    config |= config.get("platform_overrides", {}).get(sys.platform, {})
    values = {"${__dirname}": str(folder), "${user_config.vault}": str(bare.vault), "${user_config.toolset}": "notes"}
    line = [functools.reduce(lambda text, pair: text.replace(*pair), values.items(), part) for part in [config["command"], *config["args"]]]
    took = handshake(line, bare.environment)
    assert manifest["version"] == project.VERSION and manifest["tools"], manifest
    said = f"bundle for {', '.join(manifest['compatibility']['platforms'])}: first tool reply after {took:.2f} s"
    if not shutil.which("mcpb"):
        return f"{said}; mcpb is not installed"
    bare.run("mcpb", "validate", folder / "manifest.json")
    return f"{said}; mcpb validate passes"


def unpacked(dist, bare):
    """Puts the program of the archive into PATH."""
    with tarfile.open(dist / HERE.archive) as file:
        file.extractall(bare.folder)
    program = bare.folder / f"sidenote-{project.VERSION}-{HERE.triple}"
    bare.environment["PATH"] = f"{program}:{bare.environment['PATH']}"


DECISION = "We decided to keep the heron counts in one table for each reed bed, because one table for all was too slow to read."


def check_plugin(dist, bare):
    """The plugin's MCP server and four hooks, as Claude Code runs them."""
    plugin = dist / "claude-marketplace/sidenote"
    unpacked(dist, bare)
    filled = lambda part: part.replace("${user_config.vault}", str(bare.vault))
    server = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["sidenote"]
    bare.run("sidenote", "--vault", bare.vault, "index")
    took = handshake([server["command"], *map(filled, server["args"])], bare.environment)
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    transcript = bare.folder / "transcript.jsonl"
    lines = [
        {"type": "user", "message": {"role": "user", "content": "Where do the heron counts go?"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": DECISION}]}},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def play(event, **more):
        """Runs a hook with the input that the client gives it."""
        said = {"session_id": "s1", "transcript_path": str(transcript), "cwd": str(bare.home), "hook_event_name": event}
        printed = ""
        for hook in hooks[event][0]["hooks"]:
            assert hook["type"] == "command", hook
            printed += bare.run(hook["command"], *map(filled, hook["args"]), input=json.dumps(said | more))
        return printed

    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}, hooks
    assert play("SessionStart", source="startup") == ""
    recalled = play("UserPromptSubmit", prompt="how do links survive a rename?")
    assert "<memory" in recalled and ANSWER in recalled, recalled
    assert play("UserPromptSubmit", prompt="thanks, go on") == ""
    assert play("Stop", stop_hook_active=False) == ""
    saved = [path for path in left(bare.vault / "Memories") if "heron counts" in path.read_text()]
    assert len(saved) == 1, saved
    assert "heron counts" in play("UserPromptSubmit", prompt="where do the heron counts go?")
    assert play("SessionEnd", reason="exit") == ""
    said = f"four hooks played; first tool reply after {took:.2f} s"
    if not shutil.which("claude"):
        return f"{said}; claude is not installed"
    for folder in (plugin, plugin.parent):
        bare.run("claude", "plugin", "validate", folder)
    bare.run("claude", "plugin", "marketplace", "add", plugin.parent)
    bare.run("claude", "plugin", "install", "sidenote@sidenote")
    assert "sidenote@sidenote" in bare.run("claude", "plugin", "list")
    return f"{said}; claude validates and installs it"


class Model(http.server.BaseHTTPRequestHandler):
    """A model that answers every request with the same message, and keeps the requests."""

    asked = []

    def log_message(self, *_):
        pass

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply("application/json", b'{"object": "list", "data": [], "models": []}')

    def do_POST(self):
        Model.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": DECISION}]}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        events = [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self.reply("text/event-stream", text.encode())


def check_codex(dist, bare):
    """The Codex plugin's MCP server and hooks, in Codex itself with a model on this machine if codex is installed."""
    marketplace = dist / "codex-marketplace"
    plugin = marketplace / "sidenote"
    unpacked(dist, bare)
    skill = pathlib.Path("skills/sidenote/SKILL.md")
    assert (plugin / skill).read_bytes() == (dist / "claude-marketplace/sidenote" / skill).read_bytes()
    assert json.loads((plugin / ".codex-plugin/plugin.json").read_text())["version"] == project.VERSION
    project_folder = bare.folder / "project"
    project_folder.mkdir()
    server = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["sidenote"]
    # Without the variable, in a folder that is no vault, nothing is created.
    bare.run(server["command"], *server["args"], status=3, cwd=project_folder)
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    line = hooks["UserPromptSubmit"][0]["hooks"][0]["command"]
    prompt = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "how do links survive a rename?"})
    assert bare.run("sh", "-c", line, input=prompt, cwd=project_folder) == ""
    assert not left(project_folder)
    bare.environment["SIDENOTE_VAULT"] = str(bare.vault)
    bare.run("sidenote", "index")
    took = handshake([server["command"], *server["args"]], bare.environment)
    assert ANSWER in bare.run("sh", "-c", line, input=prompt, cwd=project_folder)
    said = f"server and recall; first tool reply after {took:.2f} s"
    if not shutil.which("codex"):
        return f"{said}; codex is not installed"
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    (bare.home / ".codex").mkdir()
    (bare.home / ".codex/config.toml").write_text(
        'model = "check"\nmodel_provider = "check"\n[model_providers.check]\nname = "check"\n'
        f'base_url = "http://127.0.0.1:{model.server_port}/v1"\nwire_api = "responses"\n'
    )
    bare.run("codex", "plugin", "marketplace", "add", marketplace)
    bare.run("codex", "plugin", "add", "sidenote@sidenote")
    bare.run("sidenote", "memory", "set-context", "Counting herons")
    # Its hooks are trusted by a person; here, by the flag for automation.
    exec_flags = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    bare.run("codex", "exec", *exec_flags, "how do links survive a rename?", cwd=project_folder, stdin=subprocess.DEVNULL)
    asked = "".join(Model.asked)
    for part in ("Counting herons", ANSWER, "search_notes", "sidenote:sidenote"):
        assert part in asked, f"the model was not told {part!r}"
    saved = [path for path in left(bare.vault / "Memories") if "heron counts" in path.read_text()]
    assert len(saved) == 1, saved
    assert not left(project_folder)
    version = next(line for line in bare.run("codex", "--version").splitlines() if line.startswith("codex"))
    return f"{said}; in {version}, the model gets context, memories, tools and skill, and its answer is saved"


def check_recipes(dist, bare):
    """The syntax of the recipes for package managers that are not here."""
    said = []
    bare.run("bash", "-n", dist / "PKGBUILD")
    if shutil.which("ruby"):
        bare.run("ruby", "-c", dist / "sidenote.rb")
    else:
        said.append("ruby is not installed: the formula is not parsed")
    if shutil.which("shellcheck"):
        bare.run("shellcheck", dist / "install.sh")
    else:
        said.append("shellcheck is not installed")
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest, name
    said.append("not tried, since no Windows, Arch, Homebrew, Nix or container engine is assumed: install.ps1, scoop, winget, makepkg, brew, flake, image")
    return "; ".join([f"{len(lines)} checksums", *said])


def main():
    """Runs every check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", nargs="?", type=pathlib.Path, default=project.ROOT / "target/dist")
    parser.add_argument("--chroot", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    given = parser.parse_args()
    dist = given.dist.resolve()
    checks = {
        "wheel": check_wheel, "npm": check_npm, "script": check_script, "rpm": check_rpm, "bundle": check_bundle,
        "plugin": check_plugin, "codex": check_codex, "recipes": check_recipes,
        "deb": lambda dist, bare: check_deb(dist, bare, given.chroot),
    }
    for name, check in checks.items():
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {check(dist, Bare(pathlib.Path(folder).resolve()))}", flush=True)


if __name__ == "__main__":
    main()
