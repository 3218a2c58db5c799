"""An MCP server with many tools and nothing else: what stands behind the proxy where only the way to it is tried.

It speaks 2025-06-18 without sessions over HTTP, or HTTPS with --cert and --key, and prints its port when it listens.
A tool whose name ends in "_slow" takes a second, one that ends in "_broken" answers HTTP 500.
"""

import argparse
import json
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AREAS = ["mail", "calendar", "issues", "wiki", "files", "billing", "metrics", "deploy"]
DEEDS = ["search", "read", "list", "create", "update", "delete", "export", "archive"]


def definitions(count):
    for number in range(count):
        area, deed = AREAS[number % len(AREAS)], DEEDS[number // len(AREAS) % len(DEEDS)]
        end = {0: "", 1: "_slow", 2: "_broken"}.get(number // 64, f"_{number}")
        yield {
            "name": f"{area}__{deed}{end}",
            "description": f"{deed.capitalize()} entries of {area}.",
            "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
            "annotations": {"readOnlyHint": deed in ("search", "read", "list", "export")},
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        message = json.loads(body)
        if "id" not in message:
            return self.answer(202, b"")
        method, params = message["method"], message.get("params", {})
        if method == "initialize":
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fixture", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": self.server.tools}
        elif method == "tools/call":
            name = params["name"]
            if name.endswith("_slow"):
                time.sleep(1)
            if name.endswith("_broken"):
                return self.answer(500, b"")
            result = {"content": [{"type": "text", "text": f"{name} was called"}]}
        else:
            error = {"code": -32601, "message": "no such method"}
            return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def do_GET(self):
        if self.path != "/.well-known/oauth-protected-resource/mcp":
            return self.answer(405, b"")
        resource = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"
        metadata = {"resource": resource, "authorization_servers": ["https://login.example"]}
        self.answer(200, json.dumps(metadata).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tools", type=int, default=192)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    server.tools = list(definitions(options.tools))
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


main()
