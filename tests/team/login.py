"""Lets real clients log in with a real identity provider and call every tool of a team's server.

    login.py PROGRAM

Installs `oidc-provider` and the clients (npm, PyPI) in a temporary folder, makes a PostgreSQL cluster with a vault for each
client, and starts the provider and `sidenote team serve`. Each client registers, gets its tokens with PKCE for the address of
its vault, and asks for more scopes when a call needs them. Needs Node.js 20.19 or newer and the programs of PostgreSQL 15 or
newer on the PATH or in the folder that SIDENOTE_TEST_POSTGRES names; as root they run as `nobody`.
"""

import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from load import Cluster, Server

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["oidc-provider@9.13.3", "@modelcontextprotocol/client@2.3.1", "@modelcontextprotocol/sdk@1.32.2"]
TOOLSETS = "notes"


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
    calls.write_text(json.dumps(table[TOOLSETS]))
    clients = {
        "sdk-rsa": ["node", "typescript.mjs", "sdk"],
        "client-ec": ["node", "typescript.mjs", "client"],
        "python-ec": [work / "venv/bin/python", "python_client.py"],
    }
    for vault in clients:
        run(program, "team", "create", vault, "--from", HERE.parents[1] / "example-vault", "--config", config)
        run(program, "team", "grant", vault, f"{issuer}#anna", "writer", *owner, "--config", config)
    command = [program, "team", "serve", "--http", f"127.0.0.1:{port}", "--toolset", TOOLSETS, "--config", str(config)]
    started.append(Server(command, work).stop)
    for vault, (runtime, script, *kind) in clients.items():
        address = f"http://127.0.0.1:{port}/v/{vault}/mcp"
        print(run(runtime, script, address, calls, *kind, cwd=work), end="", flush=True)
        audit = json.loads(run(program, "team", "audit", vault, "--who", "anna@example.org", "--json", "--config", config))
        tools = {event["tool"] for event in audit}
        assert {"write_note", "move_note", "delete_note"} <= tools, tools
        print(f"  the journal names anna@example.org {len(audit)} times, with {len(tools)} tools")


if __name__ == "__main__":
    main()
