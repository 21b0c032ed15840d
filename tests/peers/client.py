"""The official Python client: connects, lists, calls, is asked. See peer_scripts.rs for how it is started."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult, PromptReference


async def agree(_context, _params):
    return ElicitResult(action="accept", content={"answer": "forty-two"})


async def every(method, member):
    found, cursor = [], None
    while True:
        page = await method(cursor=cursor)
        found.extend(getattr(page, member))
        cursor = page.next_cursor
        if cursor is None:
            return found


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(task):
    target = task["target"]
    server = target["url"] if "url" in target else StdioServerParameters(**target)
    async with Client(server, mode=task["mode"], elicitation_callback=agree) as client:
        said = {
            "server": client.server_info.name,
            "revision": client.protocol_version,
            "tools": [tool.name for tool in await every(client.list_tools, "tools")],
            "prompts": [prompt.name for prompt in await every(client.list_prompts, "prompts")],
            "resources": [str(resource.uri) for resource in await every(client.list_resources, "resources")],
            "templates": [
                template.uri_template
                for template in await every(client.list_resource_templates, "resource_templates")
            ],
            # call_tool checks structured content with the tool's output schema.
            "calls": [],
        }
        for call in task["calls"]:
            result = plain(await client.call_tool(call["name"], call["arguments"]))
            said["calls"].append(
                {
                    "content": result["content"],
                    "structuredContent": result.get("structuredContent"),
                    "isError": result.get("isError", False),
                }
            )
        said["prompt"] = plain(await client.get_prompt(task["prompt"]))["messages"]
        said["own"] = plain(await client.get_prompt(task["own"], {"style": task["style"]}))["messages"]
        completed = await client.complete(
            PromptReference(type="ref/prompt", name=task["own"]), {"name": "style", "value": task["typed"]}
        )
        said["completed"] = completed.completion.values
        said["resource"] = plain(await client.read_resource(task["resource"]))["contents"]
    print(json.dumps(said))


asyncio.run(main(json.loads(sys.argv[1])))
