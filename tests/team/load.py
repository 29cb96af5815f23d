"""Measures servers of a team under load, beside one server without a team (docs/dev/team.md, Figures).

    load.py PROGRAM [--vaults 10] [--notes 2000] [--seconds 60] [--clients 50] [--open 32] [--folder FOLDER]

Makes a PostgreSQL cluster and vaults from a seed in a temporary folder, starts two servers and one without a team, and prints
how long it takes to open a vault, to ask for its head, to search it, to change it, and to rename a note that others link to, and
how much memory and disk that takes. A note has two passages: 25,000 notes are a vault of 50,000 passages.
Needs the programs of PostgreSQL 15 or newer on the PATH or in the folder that SIDENOTE_TEST_POSTGRES names; as root they run as
`nobody`.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ne", "ru", "sta") for b in ("bel", "dor", "fin", "gan", "hus") for c in ("a", "en", "ik", "os", "um")]


def write_vault(folder, notes, seed):
    """Writes a vault of notes with two paragraphs each; every note links to two others, and a thousand to Hub.md."""
    dice = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Hub.md").write_text("# Hub\n\nMany notes lead here.\n")
    for at in range(notes):
        place = folder / f"Area {at % 10}"
        place.mkdir(exist_ok=True)
        text = " ".join(dice.choices(WORDS, k=120))
        links = " ".join(f"[[Note {dice.randrange(notes)}]]" for _ in range(2))
        hub = " See [[Hub]]." if at < 1000 else ""
        (place / f"Note {at}.md").write_text(f"# Note {at}\n\n{text}\n\n{links}{hub}\n")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        if os.geteuid() == 0:
            self.user = pwd.getpwnam("nobody")
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        else:
            self.user = None
        self.run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8")
        self.run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-c listen_addresses='' -k {folder} -c max_connections=300", "start")
        self.run("createdb", "-h", str(folder), "-U", "postgres", "notes")

    def run(self, program, *arguments):
        path = os.environ.get("SIDENOTE_TEST_POSTGRES")
        command = [str(pathlib.Path(path) / program) if path else program, *arguments]
        who = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **who)
        if done.returncode:
            raise SystemExit(f"{program} failed: {done.stderr.decode()}")

    def address(self, user):
        return f"postgres://{user}@/notes?host={str(self.folder).replace('/', '%2F')}"

    def stop(self):
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "stop")


class Server:
    def __init__(self, command, home, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDENOTE_EMBED_PROVIDER": "none", **variables}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"serving at http://([0-9.]+):(\d+)", line)
            if found:
                self.port = int(found[2])
                break
        else:
            raise SystemExit(f"{command} ended")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.local = threading.local()

    def call(self, path, tool, arguments):
        """Calls a tool; gives its structured reply and the seconds that it took."""
        # The server closes a connection that is idle.
        if time.monotonic() - getattr(self.local, "used", 0) > 5:
            self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        started = time.perf_counter()
        self.local.connection.request("POST", path, body, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
        reply = self.local.connection.getresponse()
        text = reply.read()
        took = time.perf_counter() - started
        self.local.used = time.monotonic()
        if reply.status != 200:
            raise RuntimeError(f"{reply.status}: {text[:300]!r}")
        result = json.loads(text)["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"][:300])
        return result.get("structuredContent"), took

    def head(self, vault):
        """Asks whether a vault has gone on since its head, as `sidenote sync --watch` does; gives the seconds that it took."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

        def ask(query):
            connection.request("GET", f"/v/{vault}/changes?{query}")
            lines = connection.getresponse().read().decode().splitlines()
            return json.loads(lines[0]), len(lines) - 1

        head = ask("")[0]
        query = f"since={head['generation']}&origin={head['origin']}&event={head['event']}"
        times = []
        for _ in range(200):
            started = time.perf_counter()
            _, changed = ask(query)
            times.append(time.perf_counter() - started)
            if changed:
                raise SystemExit("a vault that nobody changes has gone on")
        return times

    def memory(self, field="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", status)[1]) // 1024

    def peak(self):
        return self.memory("VmHWM")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def quantile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * share))]


def searches(server, path, count, seed):
    dice = random.Random(seed)
    times = []
    for _ in range(count):
        query = " ".join(dice.choice(WORDS) for _ in range(2))
        times.append(server.call(path, "search_notes", {"query": query})[1])
    return times


def changes(servers, path, clients, seconds):
    """Creates notes of one vault by some clients, each through one server, or by one client through all of them in turns."""
    end, times = time.monotonic() + seconds, []

    def client(number):
        dice, at = random.Random(f"{number} {clients} {len(servers)}"), 0
        while time.monotonic() < end:
            server = servers[(at if clients == 1 else number) % len(servers)]
            arguments = {"title": f"Change {number} {dice.random():.9f}", "content": " ".join(dice.choice(WORDS) for _ in range(20))}
            times.append(server.call(path, "write_note", arguments)[1])
            at += 1

    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    rate = len(times) / (time.perf_counter() - started)
    return f"{rate:.1f} a second, p50 {quantile(times, .5) * 1e3:.0f} ms, p95 {quantile(times, .95) * 1e3:.0f} ms, most {max(times) * 1e3:.0f} ms"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--vaults", type=int, default=10)
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--open", type=int, default=32, help="how many vaults a server keeps open")
    parser.add_argument("--change-seconds", type=float, default=5, help="how long each way to change one vault is measured")
    parser.add_argument("--folder", help="where the temporary folder is made")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="sidenote-load-", dir=options.folder))
    work.chmod(0o755)
    (work / "cluster").mkdir()
    cluster = Cluster(work / "cluster")
    servers = []
    try:
        measure(program, options, work, cluster, servers)
    finally:
        for server in servers:
            server.stop()
        cluster.stop()
        shutil.rmtree(work)


def measure(program, options, work, cluster, servers):
    homes = [work / name for name in ("one", "two", "alone")]
    for home in homes:
        home.mkdir()
        (home / "team.toml").write_text(f'[team]\ndatabase = "{cluster.address("sidenote_app")}"\ncache = "{home}/cache"\nopen = {options.open}\n')
        (home / "team.toml").chmod(0o600)
    config = ["--config", str(homes[0] / "team.toml")]

    def team(*arguments):
        done = subprocess.run([program, "team", *arguments], env={"PATH": os.environ["PATH"], "HOME": str(work)}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"team {arguments} failed: {done.stderr}")

    team("init", "--database", cluster.address("postgres"))
    started = time.perf_counter()
    for at in range(options.vaults):
        # The first one is served without a team, too. The others are written over each other: many file systems are slow to
        # make files again after as many were removed.
        folder = work / "vaults" / ("v0" if at == 0 else "other")
        write_vault(folder, options.notes, at)
        team("create", f"v{at}", "--from", str(folder), *config)
    print(f"{options.vaults} vaults of {options.notes} notes, stored in {time.perf_counter() - started:.1f} s")

    def serve(home):
        servers.append(Server([program, "team", "serve", "--http", "127.0.0.1:0", "--config", str(home / "team.toml")], home))
        return servers[-1]

    one, two = serve(homes[0]), serve(homes[1])
    paths = [f"/v/v{at}/mcp" for at in range(options.vaults)]
    first = [one.call(path, "search_notes", {"query": "kabela"})[1] for path in paths]
    one.stop()
    servers.remove(one)
    one = serve(homes[0])
    again = [one.call(path, "search_notes", {"query": "kabela"})[1] for path in paths]
    print(f"first open of a vault: p50 {quantile(first, .5):.2f} s, most {max(first):.2f} s; again: p50 {quantile(again, .5):.2f} s, most {max(again):.2f} s; {one.memory()} MB")

    heads = one.head("v0")
    print(f"asking for the head of a vault: p50 {quantile(heads, .5) * 1e3:.2f} ms, p95 {quantile(heads, .95) * 1e3:.2f} ms")
    disk = lambda folder: int(subprocess.run(["du", "-sm", str(folder)], capture_output=True, text=True).stdout.split()[0])
    print(f"disk: database {disk(work / 'cluster' / 'data')} MB, copies and indexes of one server {disk(homes[0] / 'cache')} MB")

    folder = work / "vaults" / "v0"
    indexed = subprocess.run([program, "--vault", str(folder), "index", "--no-embed"], env={"PATH": os.environ["PATH"], "HOME": str(homes[2])}, check=True, capture_output=True, text=True)
    print(f"one vault: {indexed.stdout.split(';')[0]}")
    servers.append(Server([program, "--vault", str(folder), "mcp", "--http", "127.0.0.1:0"], homes[2]))
    alone = servers[-1]
    searches(one, paths[0], 50, 1), searches(alone, "/mcp", 50, 1)
    with_team, without = [], []
    for turn in range(5):
        with_team += searches(one, paths[0], 60, turn)
        without += searches(alone, "/mcp", 60, turn)
    print(f"warm search: p50 {quantile(with_team, .5) * 1e3:.1f} ms, p95 {quantile(with_team, .95) * 1e3:.1f} ms; without a team p50 {quantile(without, .5) * 1e3:.1f} ms, p95 {quantile(without, .95) * 1e3:.1f} ms")

    two.call(paths[0], "search_notes", {"query": "kabela"})
    for through, path in (([one], paths[0]), ([one, two], paths[0]), ([alone], "/mcp")):
        name = "one server without a team" if alone in through else "two servers" if two in through else "one server"
        for clients in (1, 8):
            print(f"changes of one vault by {clients} client{'s' if clients > 1 else ''} through {name}: {changes(through, path, clients, options.change_seconds)}")
    renamed, took = one.call(paths[0], "move_note", {"from": "Hub.md", "to": "Centre.md"})
    links = min(1000, options.notes)
    print(f"rename of a note with {links} links to it: {took:.2f} s")
    seen = two.call(paths[0], "read_note", {"note": "Note 7"})[0]
    if "[[Centre]]" not in json.dumps(seen):
        raise SystemExit("the other server does not see the rename")

    # What is measured now are requests of vaults that are open.
    for path in paths:
        two.call(path, "search_notes", {"query": "kabela"})

    end, errors, done = time.monotonic() + options.seconds, [], {"search_notes": [], "write_note": []}

    def client(number):
        dice = random.Random(number)
        while time.monotonic() < end:
            server, path = dice.choice((one, two)), dice.choice(paths)
            writes = dice.random() < .1
            tool = "write_note" if writes else "search_notes"
            arguments = {"title": f"Of {number} at {dice.random():.9f}", "content": " ".join(dice.choice(WORDS) for _ in range(20))} if writes else {"query": dice.choice(WORDS)}
            try:
                done[tool].append(server.call(path, tool, arguments)[1])
            except Exception as error:
                errors.append(str(error))

    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        list(pool.map(client, range(options.clients)))
    for tool, times in done.items():
        print(f"{options.clients} clients for {options.seconds:.0f} s, {tool}: {len(times)}, p50 {quantile(times, .5) * 1e3:.0f} ms, p95 {quantile(times, .95) * 1e3:.0f} ms")
    print(f"errors: {len(errors)}" + "".join(f"\n  {text}" for text in sorted(set(errors))[:5]))
    print(f"memory: {one.memory()} and {two.memory()} MB, at most {one.peak()} and {two.peak()} MB")


if __name__ == "__main__":
    main()
