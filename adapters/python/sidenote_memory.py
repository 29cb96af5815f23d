"""The memory tool of the Claude API (`memory_20250818`) with the notes of sidenote as its files.

    memory = SidenoteMemoryTool("~/notes")
    client.beta.messages.run_tools(model=..., messages=[...], tools=[memory]).until_done()

The tool keeps one process `sidenote memory-tool`, which answers a command a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError


class SidenoteMemoryTool(BetaAbstractMemoryTool):
    """Hands each command to sidenote. An error of a command is a `ToolError` with its text."""

    def __init__(
        self, vault: str, folder: str | None = None, program: str = "sidenote", **options: Any
    ) -> None:
        super().__init__(**options)
        command = [program, "--vault", os.path.expanduser(vault), "memory-tool"]
        command += ["--folder", folder] if folder is not None else []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the process."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> SidenoteMemoryTool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, command: Any) -> str:
        line = json.dumps(command.to_dict() if hasattr(command, "to_dict") else dict(command))
        with self._lock:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise ToolError("sidenote has ended")
        said = json.loads(answer)
        if "error" in said:
            raise ToolError(said["error"])
        return str(said["content"])

    view = create = str_replace = insert = delete = rename = _run
