"""An agent at work with the official Python client: clones, reads, edits, patches, tests, commits and pushes.

It uses nothing but tools of the hub. See peer_scripts.rs for how it is started."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters

PATCH = """\
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1,3 +1,3 @@
 # Sums

-Adds numbers, wrongly.
+Adds numbers.
diff --git a/test_sums.py b/test_sums.py
new file mode 100644
--- /dev/null
+++ b/test_sums.py
@@ -0,0 +1,8 @@
+import unittest
+
+from sums import add
+
+
+class Sums(unittest.TestCase):
+    def test_add(self):
+        self.assertEqual(add(2, 3), 5)
"""


async def main(task):
    target = task["target"]
    server = target["url"] if "url" in target else StdioServerParameters(**target)
    folder = task["folder"]
    async with Client(server, mode=task["mode"]) as client:

        async def tool(name, **arguments):
            result = await client.call_tool(name, arguments)
            if result.is_error:
                raise SystemExit(f"{name}: {result.content}")
            return result.structured_content

        cloned = await tool("git", command="clone", args=["origin.git", folder])
        assert cloned["exit_code"] == 0, cloned
        seen = await tool("fs_read_text", path=f"{folder}/sums.py")
        await tool(
            "fs_edit",
            path=f"{folder}/sums.py",
            edits=[{"old_text": "return a - b", "new_text": "return a + b"}],
            if_hash=seen["hash"],
        )
        await tool("fs_patch", path=folder, patch=PATCH)
        tested = await tool("run_tests", command="python3 -m unittest -v", cwd=folder)
        assert tested["passed"], tested
        changes = await tool("git_changes", repo_path=folder)
        committed = await tool(
            "git_commit", message="Add for real\n\nWith a test.", repo_path=folder,
            files=["sums.py", "README.md", "test_sums.py"],
        )
        pushed = await tool("git_push", repo_path=folder)
        log = await tool("git_log_structured", repo_path=folder)
        status = await tool("git_status", repo_path=folder)
    print(json.dumps({"changes": changes, "committed": committed, "pushed": pushed, "log": log, "status": status}))


asyncio.run(main(json.loads(sys.argv[1])))
