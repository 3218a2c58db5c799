"""Asks the proxy for everything that its metrics tell apart, over and over, for some seconds: load.py URL SECONDS"""

import http.client
import json
import sys
import threading
import time
from urllib.parse import urlsplit

URL = urlsplit(sys.argv[1])
END = time.monotonic() + float(sys.argv[2])
CALLS = [
    ("search_tools", {"query": "read mail"}),
    ("call_read_tool", {"name": "mail__read", "arguments": {"query": "x"}}),
    ("search_tools", {"queries": ["export metrics", "qqqq zzzz"]}),
    ("call_write_tool", {"name": "mail__create", "arguments": {}}),
    ("describe_tool", {"names": ["mail__read"]}),
    ("call_read_tools", {"calls": [{"name": "mail__read"}, {"name": "wiki__list"}]}),
    ("call_read_tool", {"name": "mail__raed"}),
    ("call_read_tool", {"name": "nothing_like_it_at_all"}),
    ("call_read_tool", {"name": "mail__create"}),
    ("call_read_tool", {"name": "mail__read", "arguments": {"query": 7}}),
    ("call_read_tool", {"nome": "mail__read"}),
    ("call_read_tool", {"name": "mail__read_broken"}),
]


def post(connection, token, body):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", URL.path, body, headers)
    return connection.getresponse().read()


def work(number):
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=20)
    count = 0
    while time.monotonic() < END:
        for tool, arguments in CALLS:
            params = {"name": tool, "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            post(connection, f"caller-{number}-{count % 3}", json.dumps(message))
        post(connection, "caller", "{")
        count += 1
        time.sleep(0.05)


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
