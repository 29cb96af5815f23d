#!/usr/bin/python3
"""Plays systemctl for the test of the guide: starts and stops the server as its unit says, PostgreSQL and nginx."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

UNIT = pathlib.Path("/etc/systemd/system/sidenote-team.service")
RUNNING = pathlib.Path("/tmp/sidenote-team.pid")


def server(verb):
    if verb in ("stop", "restart") and RUNNING.exists():
        process = int(RUNNING.read_text())
        os.kill(process, signal.SIGTERM)
        while pathlib.Path(f"/proc/{process}/exe").exists():
            time.sleep(0.1)
        RUNNING.unlink()
    if verb in ("start", "restart", "enable") and not RUNNING.exists():
        settings = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M)
        environment = dict(value.split("=", 1) for key, value in settings if key == "Environment")
        for value in (value.removeprefix("-") for key, value in settings if key == "EnvironmentFile"):
            if os.path.exists(value):
                environment |= dict(line.split("=", 1) for line in open(value).read().splitlines() if "=" in line)
        values = dict(settings)
        command = [re.sub(r"\$\{(\w+)\}", lambda name: environment[name[1]], part) for part in shlex.split(values["ExecStart"])]
        log = open("/tmp/sidenote-team.log", "a")
        started = subprocess.Popen(command, user=values["User"], group=values["User"], extra_groups=[], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env=environment | {"PATH": os.environ["PATH"], "HOME": "/var/cache/sidenote"}, start_new_session=True)
        RUNNING.write_text(str(started.pid))


def postgresql(verb):
    done = ["su", "postgres", "-s", "/bin/bash", "-c", f"cd; pg_ctl -D /var/lib/guide -w -l /var/lib/guide/log {verb} >/dev/null"]
    subprocess.run(done, check=True)


def nginx(verb):
    subprocess.run(["nginx"] if verb == "start" else ["nginx", "-s", "reload"], check=True)
    time.sleep(1)


words = [word for word in sys.argv[1:] if not word.startswith("-")]
{"sidenote-team": server, "postgresql": postgresql, "nginx": nginx}[words[1]](words[0])
