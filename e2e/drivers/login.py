"""The official Python SDK with its OAuth client, worked through stdin and stdout: one JSON order a line in, one JSON
answer a line out. It is given no token; whatever it needs it gets by logging in, and the one who clicks is this file.

Usage: login.py
"""

import json
import sys
from contextlib import AsyncExitStack
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import mcp
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT = "http://127.0.0.1:1/callback"


class Kept:
    """Tokens and registration, for as long as the connection lives."""

    def __init__(self) -> None:
        self.tokens = self.client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info) -> None:
        self.client_info = client_info


class Browser:
    async def opened(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=False) as http:
            response = await http.get(url)
        query = parse_qs(urlsplit(response.headers.get("location", "")).query)
        self.came_back = {name: values[0] for name, values in query.items()}
        if "code" not in self.came_back:
            raise RuntimeError(f"no code: {response.status_code} {response.text} {self.came_back}")

    async def callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: self.came_back.get(name) for name in ("code", "state", "iss")})


connections: dict[str, mcp.Client] = {}


async def connect(stack: AsyncExitStack, order: dict) -> dict:
    """`mode` is legacy, auto or a pinned version."""
    browser = Browser()
    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="e2e", token_endpoint_auth_method="none")
    auth = OAuthClientProvider(order["url"], metadata, Kept(), browser.opened, browser.callback)
    async with AsyncExitStack() as attempt:
        http = await attempt.enter_async_context(httpx2.AsyncClient(auth=auth, timeout=30))
        transport = streamable_http_client(order["url"], http_client=http)
        client = await attempt.enter_async_context(mcp.Client(transport, mode=order["mode"]))
        stack.push_async_exit(attempt.pop_all())
    connections[order["as"]] = client
    return {"protocolVersion": client.protocol_version}


async def call(_, order: dict) -> dict:
    result = await connections[order["as"]].call_tool(order["name"], order["arguments"])
    return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


async def main() -> None:
    async with AsyncExitStack() as stack:
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            order = json.loads(line)
            try:
                answer = {"ok": await {"connect": connect, "call": call}[order["order"]](stack, order)}
            except Exception as error:
                told = " <- ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(error))
                answer = {"error": {"message": told}}
            print(json.dumps(answer), flush=True)


anyio.run(main)
