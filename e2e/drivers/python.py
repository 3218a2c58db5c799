"""A client built on a Python SDK, worked through stdin and stdout: one JSON order a line in, one JSON answer a line
out. What is right or wrong is decided by the harness; this file only carries what the SDK delivers.

Usage: python.py mcp|fastmcp
"""

import json
import sys
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


def plain(model) -> dict:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Connection:
    """What the driver's SDK makes of a connection. `notes` holds what came beside the last call's result."""

    def __init__(self, order: dict, hooks: dict) -> None:
        self.order = order
        self.http = {"timeout": 30, "event_hooks": hooks}
        if "token" in order:
            self.http["headers"] = {"Authorization": f"Bearer {order['token']}"}
        self.notes: dict[str, list] = {}

    async def progressed(self, progress, total, message) -> None:
        self.notes["progress"].append({"progress": progress, "total": total, "message": message})

    async def logged(self, params) -> None:
        if self.notes:
            self.notes["logs"].append({"level": params.level, "data": params.data})

    def answered(self, message: str) -> dict:
        if self.notes:
            self.notes["questions"].append(message)
        return self.order.get("answer", {})

    async def call(self, order: dict) -> dict:
        if not order.get("noted"):
            return plain(await self.called(order["name"], order["arguments"]))
        self.notes = {"progress": [], "logs": [], "questions": []}
        options = {"meta": order.get("meta"), self.progress_option: self.progressed}
        result = plain(await self.called(order["name"], order["arguments"], **options))
        notes, self.notes = self.notes, {}
        return {"result": result, **notes}


class Mcp(Connection):
    """The official SDK."""

    progress_option = "progress_callback"

    async def opened(self, stack: AsyncExitStack) -> mcp.Client:
        async def elicited(_, params) -> ElicitResult:
            return ElicitResult(action="accept", content=self.answered(params.message))

        http = await stack.enter_async_context(httpx2.AsyncClient(**self.http))
        transport = streamable_http_client(self.order["url"], http_client=http)
        mode = self.order["mode"]
        client = mcp.Client(transport, mode=mode, elicitation_callback=elicited, logging_callback=self.logged)
        self.client = await stack.enter_async_context(client)
        self.page, self.called = self.client.list_tools, self.client.call_tool
        return self.client


class FastMcp(Connection):
    """The client of PyPI `fastmcp`."""

    progress_option = "progress_handler"

    async def opened(self, stack: AsyncExitStack):
        # Takes seconds, so only those who use it wait for it.
        import fastmcp
        from fastmcp.client.transports import StreamableHttpTransport

        async def elicited(message, *_) -> dict:
            return self.answered(message)

        def http(**options) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(**{**options, **self.http})

        transport = StreamableHttpTransport(self.order["url"], httpx_client_factory=http)
        mode = self.order["mode"]
        client = fastmcp.Client(transport, mode=mode, elicitation_handler=elicited, log_handler=self.logged)
        self.client = await stack.enter_async_context(client)
        self.page, self.called = self.client.list_tools_mcp, self.client.call_tool_mcp
        return self.client


class Driver:
    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.connections: dict[str, Connection] = {}
        self.last_response: dict = {}

    async def noted(self, response: httpx2.Response) -> None:
        """The SDKs do not tell the HTTP status of a failure, so it is noted on the way."""
        self.last_response = {"status": response.status_code, "challenge": response.headers.get("www-authenticate")}

    async def connect(self, order: dict) -> dict:
        """`mode` is legacy, auto or a pinned version."""
        kind = {"mcp": Mcp, "fastmcp": FastMcp}[sys.argv[1]]
        connection = kind(order, {"response": [self.noted]})
        async with AsyncExitStack() as attempt:
            client = await connection.opened(attempt)
            self.stack.push_async_exit(attempt.pop_all())
        self.connections[order["as"]] = connection
        return {
            "protocolVersion": client.protocol_version,
            "serverInfo": plain(client.server_info) if client.server_info else None,
            "instructions": client.instructions,
        }

    async def list(self, order: dict) -> list:
        connection = self.connections[order["as"]]
        page = await connection.page()
        tools = list(page.tools)
        while page.next_cursor is not None:
            page = await connection.page(cursor=page.next_cursor)
            tools += page.tools
        return [plain(tool) for tool in tools]

    async def call(self, order: dict) -> dict:
        return await self.connections[order["as"]].call(order)


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
