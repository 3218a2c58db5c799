"""A client built on the official Python SDK, worked through stdin and stdout: one JSON order a line in, one JSON answer
a line out. What is right or wrong is decided by the harness; this file only carries what the SDK delivers.
"""

import json
import sys
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def plain(model) -> dict:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Driver:
    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.clients: dict[str, Client] = {}
        self.last_response: dict = {}

    async def noted(self, response: httpx2.Response) -> None:
        """The SDK does not tell the HTTP status of a failure, so it is noted on the way."""
        self.last_response = {"status": response.status_code, "challenge": response.headers.get("www-authenticate")}

    async def connect(self, order: dict) -> dict:
        """`mode` is legacy, auto or a pinned version."""
        headers = {"Authorization": f"Bearer {order['token']}"} if "token" in order else {}
        http = httpx2.AsyncClient(headers=headers, timeout=30, event_hooks={"response": [self.noted]})
        async with AsyncExitStack() as attempt:
            await attempt.enter_async_context(http)
            transport = streamable_http_client(order["url"], http_client=http)
            client = await attempt.enter_async_context(Client(transport, mode=order["mode"]))
            self.stack.push_async_exit(attempt.pop_all())
        self.clients[order["as"]] = client
        return {
            "protocolVersion": client.protocol_version,
            "serverInfo": plain(client.server_info) if client.server_info else None,
            "instructions": client.instructions,
        }

    async def list(self, order: dict) -> list:
        client = self.clients[order["as"]]
        page = await client.list_tools()
        tools = list(page.tools)
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            tools += page.tools
        return [plain(tool) for tool in tools]

    async def call(self, order: dict) -> dict:
        return plain(await self.clients[order["as"]].call_tool(order["name"], order["arguments"]))


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


def described(error: BaseException) -> dict:
    found = leaves(error)
    return {
        "message": " <- ".join(f"{type(leaf).__name__}: {leaf}" for leaf in found),
        "code": next((leaf.code for leaf in found if isinstance(getattr(leaf, "code", None), int)), None),
    }


async def main() -> None:
    async with AsyncExitStack() as stack:
        driver = Driver(stack)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            order = json.loads(line)
            driver.last_response = {}
            try:
                answer = {"ok": await getattr(driver, order["order"])(order)}
            except Exception as error:
                answer = {"error": {**described(error), **driver.last_response}}
            print(json.dumps(answer), flush=True)


anyio.run(main)
