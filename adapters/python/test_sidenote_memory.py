"""Runs the adapter with the SDK and the program: `SIDENOTE=PATH python test_sidenote_memory.py`."""

import os
import tempfile
import unittest

from anthropic.lib.tools import ToolError

from sidenote_memory import SidenoteMemoryTool


class Test(unittest.TestCase):
    def test_commands_are_answered(self) -> None:
        with tempfile.TemporaryDirectory() as vault:
            program = os.environ.get("SIDENOTE", "sidenote")
            with SidenoteMemoryTool(vault, folder="Agent", program=program) as tool:
                create = {"command": "create", "path": "/memories/a.txt", "file_text": "one\ntwo\n"}
                self.assertEqual(tool.call(create), "File created successfully at: /memories/a.txt")
                with self.assertRaisesRegex(ToolError, "^File /memories/a.txt already exists$"):
                    tool.call(create)
                view = {"command": "view", "path": "/memories/a.txt", "view_range": [1, 1]}
                shown = "Here's the content of /memories/a.txt with line numbers:\n     1\tone"
                self.assertEqual(tool.call(view), shown)
                replace = {"command": "str_replace", "path": "/memories/a.txt", "old_str": "two", "new_str": "2"}
                self.assertIn("     2\t2", tool.call(replace))
                insert = {"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "zero"}
                self.assertEqual(tool.call(insert), "The file /memories/a.txt has been edited.")
                rename = {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/b/c.txt"}
                tool.call(rename)
                with open(os.path.join(vault, "Agent/b/c.txt"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "zero\none\n2\n")
                tool.call({"command": "delete", "path": "/memories/b"})
                self.assertFalse(os.path.exists(os.path.join(vault, "Agent/b/c.txt")))


if __name__ == "__main__":
    unittest.main()
