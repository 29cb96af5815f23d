"""Lists and calls every tool of every set with the Python SDK: python.py PROGRAM."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters

HERE = Path(__file__).parent
CALLS = json.loads((HERE / "calls.json").read_text())
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def environment(folder):
    return {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "SIDENOTE_MEMORY_CONVERSATIONS": str(HERE / "sessions"),
        "SIDENOTE_EMBED_PROVIDER": "none",
        "MEMORY_BACKUP_PATH": f"{folder}/backups",
    }


@contextmanager
def served(transport, program, tools):
    """Gives what a client connects to: a server of these tools on a vault of its own."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "example-vault", f"{folder}/vault")
        arguments = ["--vault", f"{folder}/vault", "mcp", "--toolset", tools]
        if transport == "stdio":
            yield StdioServerParameters(command=program, args=arguments, env=environment(folder))
            return
        command = [program, *arguments, "--http", "127.0.0.1:0"]
        server = subprocess.Popen(command, env=environment(folder), stderr=subprocess.PIPE, text=True)
        try:
            line = next(line for line in server.stderr if "serving at" in line)
            yield re.search(r"http://\S+/mcp", line).group()
        finally:
            server.terminate()
            assert server.wait(10) == 0, server.returncode


def filled(value, kept):
    """Puts ids that were kept where the table names them."""
    if isinstance(value, dict):
        return {key: filled(item, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, kept) for item in value]
    return kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value


async def call_all(client, calls):
    listed = {tool.name for tool in (await client.list_tools()).tools}
    known = {call["tool"] for call in calls}
    assert listed == known, f"not in the table: {listed - known}; not served: {known - listed}"
    kept = {}
    for call in calls:
        result = await client.call_tool(call["tool"], filled(call["arguments"], kept))
        text = result.model_dump_json()
        assert not result.is_error, f"{call['tool']}: {text}"
        if "keep" in call:
            kept[call["keep"]] = ID.search(text).group()
    return len(calls)


async def look_around(client):
    """Asks for everything that is no tool."""
    resources = (await client.list_resources()).resources
    assert len(resources) > 50, len(resources)
    for resource in resources[:20]:
        assert (await client.read_resource(resource.uri)).contents
    assert (await client.list_resource_templates()).resource_templates
    prompts = (await client.list_prompts()).prompts
    assert {prompt.name for prompt in prompts} >= {"recall", "weekly_review"}
    assert (await client.get_prompt("recall", {"topic": "river"})).messages


async def main(program):
    for transport in ["stdio", "http"]:
        for mode in ["legacy", "2026-07-28", "auto"]:
            count = 0
            for tools, calls in CALLS.items():
                with served(transport, program, tools) as server:
                    async with Client(server, mode=mode) as client:
                        count += await call_all(client, calls)
                        await look_around(client)
                        version = client.protocol_version
            print(f"python {transport} {mode}: {count} calls in {version}")


asyncio.run(main(sys.argv[1]))
