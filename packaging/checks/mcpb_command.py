"""Prints the command of an unpacked MCP bundle as a client starts it, one word per line: env, variables, program, arguments.

mcpb_command.py FOLDER WORKSPACE
"""

import json
import sys
from pathlib import Path

folder, workspace = sys.argv[1:]
config = json.loads((Path(folder) / "manifest.json").read_text())["server"]["mcp_config"]
words = ["env", *(f"{name}={value}" for name, value in config["env"].items()), config["command"], *config["args"]]
for word in words:
    print(word.replace("${__dirname}", folder).replace("${user_config.workspace}", workspace))
