"""Lets real clients log in with a real identity provider and call every tool of a team's server.

    login.py PROGRAM

Installs `oidc-provider` and the clients (npm, PyPI) in a temporary folder, makes a PostgreSQL cluster with a vault for each
client, and starts the provider and `sidenote team serve`. Each client registers, gets its tokens with PKCE for the address of
its vault, and asks for more scopes when a call needs them. A person logs in with `sidenote login` and synchronises a folder,
also after the token was renewed. Needs Node.js 20.19 or newer and the programs of PostgreSQL 15 or
newer on the PATH or in the folder that SIDENOTE_TEST_POSTGRES names; as root they run as `nobody`.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

from load import Cluster, Server

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["oidc-provider@9.13.3", "@modelcontextprotocol/client@2.3.1", "@modelcontextprotocol/sdk@1.32.2"]
PERSON = "person-rsa"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(work):
    for file in (HERE / "login").iterdir():
        shutil.copy(file, work)
    (work / "package.json").write_text('{ "private": true }')
    run("npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", *PACKAGES, cwd=work)
    run(sys.executable, "-m", "venv", work / "venv")
    run(work / "venv/bin/pip", "install", "--quiet", "mcp==2.3.0")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="sidenote-login-"))
    work.chmod(0o755)
    (work / "cluster").mkdir()
    started = []
    try:
        install(work)
        cluster = Cluster(work / "cluster")
        started.append(cluster.stop)
        dance(program, work, cluster, started)
    finally:
        for stop in reversed(started):
            stop()
        shutil.rmtree(work, ignore_errors=True)


def dance(program, work, cluster, started):
    """Starts the provider and the server, and lets each client log in."""
    issuer_port, port = free_port(), free_port()
    provider = subprocess.Popen(
        ["node", "provider.mjs", str(issuer_port)], cwd=work, stdout=subprocess.PIPE, text=True
    )
    started.append(lambda: (provider.terminate(), provider.wait()))
    issuer = next(line for line in provider.stdout if line.startswith("issuer ")).split()[1]
    config = work / "team.toml"
    config.write_text(
        f'[team]\ndatabase = "{cluster.address("sidenote_app")}"\ncache = "{work}/cache"\n'
        f'[login]\nissuer = "{issuer}"\nurl = "http://127.0.0.1:{port}"\n'
    )
    config.chmod(0o600)
    owner = ["--database", cluster.address("postgres")]
    run(program, "team", "init", *owner)
    calls = work / "calls.json"
    table = json.loads((HERE.parent / "clients/calls.json").read_text())
    calls.write_text(json.dumps([call for toolset in table.values() for call in toolset]))
    clients = {
        "sdk-rsa": ["node", "typescript.mjs", "sdk"],
        "client-ec": ["node", "typescript.mjs", "client"],
        "python-ec": [work / "venv/bin/python", "python_client.py"],
    }
    for vault in [*clients, PERSON]:
        run(program, "team", "create", vault, "--from", HERE.parents[1] / "example-vault", "--config", config)
        run(program, "team", "grant", vault, f"{issuer}#anna", "writer", *owner, "--config", config)
    command = [program, "team", "serve", "--http", f"127.0.0.1:{port}", "--toolset", ",".join(table), "--config", str(config)]
    started.append(Server(command, work, SIDENOTE_BACKUP_DIR=str(work / "backups")).stop)
    for vault, (runtime, script, *kind) in clients.items():
        address = f"http://127.0.0.1:{port}/v/{vault}/mcp"
        print(run(runtime, script, address, calls, *kind, cwd=work), end="", flush=True)
        audit = json.loads(run(program, "team", "audit", vault, "--who", "anna@example.org", "--json", "--config", config))
        tools = {event["tool"] for event in audit}
        assert {"write_note", "move_note", "delete_note", "edit_notes", "merge_notes"} <= tools, tools
        print(f"  the journal names anna@example.org {len(audit)} times, with {len(tools)} tools")
    log_in(program, work, f"http://127.0.0.1:{port}/v/{PERSON}")


def log_in(program, work, address):
    """Logs in as a person does, with a browser that keeps cookies, and synchronises a folder with the tokens."""
    environment = {"HOME": str(work / "home"), "PATH": os.environ["PATH"]}
    command = [program, "login", address, "--no-browser"]
    login = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    url = login.stdout.readline().strip()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(url, timeout=60) as page:
        text = page.read().decode()
    assert "You are logged in" in text, text
    said, _ = login.communicate(timeout=60)
    assert login.returncode == 0, said
    folder = work / "folder"
    folder.mkdir()
    sync = [program, "sync", address, "--vault", folder, "--json"]
    fetched = json.loads(run(*sync, env=environment))["fetched"]
    (file,) = (work / "home/.local/share/sidenote/logins").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    first = json.loads(file.read_text())
    (folder / "By a person.md").write_text("After the token was renewed.")
    sent = json.loads(run(*sync, env={**environment, "SIDENOTE_NOW": "2099-01-01T00:00:00Z"}))["sent"]
    second = json.loads(file.read_text())
    assert sent == ["By a person.md"] and first["access_token"] != second["access_token"], sent
    forgotten = json.loads(run(program, "login", address, "--forget", "--json", env=environment))
    assert forgotten["revoked"] and not file.exists(), forgotten
    print(f"sidenote login: {len(fetched)} files fetched, {len(sent)} sent with a renewed token, then revoked")


if __name__ == "__main__":
    main()
