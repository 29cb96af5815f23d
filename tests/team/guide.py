"""Runs the guide of a team as an operator would: every command of docs/src/guides/postgres.md, as it is printed.

    guide.py PROGRAM

The first machine and the second one are overlays of this system's files with networks of their own, so nothing outside of a
temporary folder is changed. systemd is played by a script that starts what the unit says, and the browsers of people by one that
fills in the pages of the trial provider. Needs root, overlayfs, iproute2, openssl, jq, Node.js 20, PostgreSQL 15 or newer in
/usr/lib/postgresql, and the network for apt (nginx-light, sudo) and npm.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
GUIDE = REPOSITORY / "docs/src/guides"
NAMES = "127.0.0.1 localhost\n10.0.0.1 notes.example login.example db.example\n"
# What is run again on the second machine, as its section says, by the words that a block begins with.
ALSO_ON_SECOND = ["sudo install -m 755 ~/.cargo", "sudo useradd"]
# All servers are stopped meanwhile, of which the block stops one.
ALL_STOPPED = ["sudo systemctl stop sidenote-team"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Machine:
    """An overlay of this system with a network of its own."""

    def __init__(self, work, name, address):
        self.network = f"guide{os.getpid()}{name}"
        self.address = address
        self.root = work / name / "root"
        for part in ["root", "upper", "work"]:
            (work / name / part).mkdir(parents=True)
        layers = f"lowerdir=/,upperdir={work / name / 'upper'},workdir={work / name / 'work'}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
        for source in ["/proc", "/dev", "/sys"]:
            run("mount", "--rbind", source, self.root / source[1:])
        for folder in ["tmp", "run"]:
            run("mount", "-t", "tmpfs", "tmpfs", self.root / folder)
        (self.root / "tmp").chmod(0o1777)
        (self.root / "run/postgresql").mkdir()
        run("ip", "netns", "add", self.network)
        run("ip", "-n", self.network, "link", "set", "lo", "up")

    def outside(self, script):
        """Runs a script with the network of this system, to install what is needed."""
        return run("chroot", self.root, "bash", "-ec", script)

    def shell(self, user, script, **variables):
        """Runs a script as a user, and gives its output."""
        given = [f"{name}={value}" for name, value in variables.items()]
        inner = ["chroot", self.root, "su", user, "-s", "/bin/bash", "-c", 'cd; set -euo pipefail; . ./.vars; ' + script]
        command = ["ip", "netns", "exec", self.network, "env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *given]
        done = subprocess.run([*command, *map(str, inner)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def write(self, path, text, mode=0o644):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def stop(self):
        for process in run("ip", "netns", "pids", self.network).split():
            subprocess.run(["kill", "-9", process], check=False)
        subprocess.run(["ip", "netns", "delete", self.network], check=False)
        subprocess.run(["umount", "--recursive", "--lazy", self.root], check=False)


def prepare(machine, program, certificates):
    """What the guide does not say: packages, the account of the operator, names, and certificates."""
    machine.outside("apt-get -qq update && apt-get -qq install -y sudo nginx-light jq >/dev/null")
    machine.outside("id postgres >/dev/null 2>&1 || useradd --system postgres; useradd -m op; useradd -m anna; useradd -m ben")
    machine.write("etc/sudoers.d/op", "op ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    machine.write("etc/hosts", NAMES)
    machine.write("usr/local/bin/systemctl", (HERE / "guide/systemctl.py").read_text(), 0o755)
    machine.write("usr/local/bin/xdg-open", (HERE / "guide/browser.py").read_text(), 0o755)
    machine.write("usr/local/share/ca-certificates/guide.crt", (certificates / "authority.crt").read_text())
    for name in ["notes.example", "login.example"]:
        machine.write(f"etc/ssl/certs/{name}.pem", (certificates / f"{name}.crt").read_text())
        machine.write(f"etc/ssl/private/{name}.key", (certificates / f"{name}.key").read_text(), 0o600)
    machine.outside("update-ca-certificates >/dev/null 2>&1; rm -f /usr/bin/sidenote /etc/nginx/sites-enabled/*")
    home = machine.root / "home/op"
    (home / ".cargo/bin").mkdir(parents=True)
    shutil.copy(program, home / ".cargo/bin/sidenote")
    shutil.copytree(REPOSITORY / "packaging/team", home / "packaging/team")
    for person in ["op", "anna", "ben"]:
        machine.write(f"home/{person}/.vars", "")
    machine.outside("chown -R op: /home/op; chown anna: /home/anna/.vars; chown ben: /home/ben/.vars; ln -sf /usr/lib/postgresql/*/bin/* /usr/local/bin/")


def make_certificates(folder):
    folder.mkdir()
    authority = ["-keyout", "authority.key", "-out", "authority.crt", "-subj", "/CN=The guide's authority", "-days", "2"]
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *authority, cwd=folder)
    for name in ["notes.example", "login.example", "db.example"]:
        (folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "request", "-subj", f"/CN={name}", cwd=folder)
        signed = ["-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", "names", "-days", "2"]
        run("openssl", "x509", "-req", "-in", "request", "-out", f"{name}.crt", *signed, cwd=folder)


def make_database(machine, certificates):
    """PostgreSQL as a package of a system sets it up: peer over the socket, passwords over the network."""
    data = machine.root / "var/lib/guide"
    data.mkdir()
    machine.outside("chown postgres: /var/lib/guide /run/postgresql")
    machine.write("var/lib/guide.sh", "initdb -D /var/lib/guide -A peer --auth-host=scram-sha-256 >/dev/null\n")
    machine.outside("cd /tmp; su postgres -s /bin/bash -c 'bash /var/lib/guide.sh'")
    for kind in ["crt", "key"]:
        shutil.copy(certificates / f"db.example.{kind}", data / f"server.{kind}")
        (data / f"server.{kind}").chmod(0o600)
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("unix_socket_directories = '/run/postgresql'\n")
    machine.outside("chown postgres: /var/lib/guide/server.*")


def blocks():
    """Gives the blocks of the guide in order, each with its language."""
    text = (GUIDE / "postgres.md").read_text()
    text = text.replace("{{#include trial-provider.mjs}}", (GUIDE / "trial-provider.mjs").read_text().rstrip())
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def follow(first, second):
    """Runs the guide, and gives what each block printed."""
    configs = ["etc/nginx/conf.d/login.conf", "etc/nginx/conf.d/sidenote.conf"]
    for language, block in blocks():
        if language == "js":
            first.write("home/op/provider.mjs", block)
        elif language == "nginx":
            first.write(configs.pop(0), block)
        elif language == "sh":
            yield block, run_block(first, second, block)
    assert not configs


def run_block(first, second, block):
    save = "\ndeclare -p PASSWORD OWNER TOKEN 2>/dev/null > ~/.vars || true"
    who = re.match(r"# as (\w+)\n", block)
    if block.startswith("# on the second machine"):
        (second.root / "home/op/.vars").write_text((first.root / "home/op/.vars").read_text())
        places = [(second, "op")]
    elif who:
        places = [(first, who[1].lower())]
    else:
        also = any(block.startswith(words) for words in ALSO_ON_SECOND)
        places = [(first, "op"), *([(second, "op")] if also else [])]
    stops = any(block.startswith(words) for words in ALL_STOPPED)
    if stops:
        check(second, "op", "sudo systemctl stop sidenote-team")
    said = "".join(check(machine, user, block + save) for machine, user in places)
    if stops:
        check(second, "op", "sudo systemctl start sidenote-team")
    return said


def check(machine, user, script):
    code, said = machine.shell(user, script, USER=user)
    if code:
        log = machine.root / "tmp/sidenote-team.log"
        raise SystemExit(f"as {user}: this ended with {code}:\n{script}\n{said}\n{log.read_text() if log.exists() else ''}")
    return said


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) == 2:
        # Mounts are those of this run alone, and end with it.
        os.execvp("unshare", ["unshare", "--mount", sys.executable, __file__, str(program), "inside"])
    work = pathlib.Path(tempfile.mkdtemp(prefix="sidenote-guide-"))
    work.chmod(0o755)
    machines = []
    try:
        make_certificates(work / "certificates")
        first, second = (Machine(work, name, address) for name, address in [("a", "10.0.0.1"), ("b", "10.0.0.2")])
        machines += [first, second]
        run("ip", "-n", first.network, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", second.network)
        for machine in machines:
            run("ip", "-n", machine.network, "address", "add", f"{machine.address}/24", "dev", "cable")
            run("ip", "-n", machine.network, "link", "set", "cable", "up")
            prepare(machine, program, work / "certificates")
        make_database(first, work / "certificates")
        shutil.copytree(REPOSITORY / "example-vault", first.root / "srv/handbook", ignore=shutil.ignore_patterns("index", "records", "local"))
        # What the guide installs is fetched now, since its machines reach nothing else.
        first.outside("cd /home/op && su op -c 'npm install --silent oidc-provider@9 && rm -r node_modules package*.json && npm config set offline true'")
        check(first, "op", "sudo systemctl start postgresql; sudo systemctl start nginx")
        for block, said in follow(first, second):
            print("\n".join(f"$ {line}" for line in block.rstrip().split("\n")), said, sep="\n", flush=True)
        log = (first.root / "tmp/sidenote-team.log").read_text() + (second.root / "tmp/sidenote-team.log").read_text()
        print("the logs of the servers:", log, sep="\n")
    finally:
        for machine in machines:
            machine.stop()
        shutil.rmtree(work, ignore_errors=True)


main()
