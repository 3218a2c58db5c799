"""What CPython reads: for each line with two bodies in hexadecimal, the arguments of the call in each, twice: with the
last of equal keys, and with the first."""

import json
import struct
import sys


def written(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return "n" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "s" + value.encode("utf-16-be", "surrogatepass").hex()
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return "{" + ",".join(sorted(written(key) + ":" + written(member) for key, member in value.items())) + "}"


def first(pairs):
    return dict(reversed(pairs))


def read(body, path, hook):
    try:
        # A number too long to be an int is a number all the same.
        value = json.loads(body.decode("utf-8"), object_pairs_hook=hook, parse_int=float)
        for key in path:
            value = value[key]
        return written(value)
    except (ValueError, KeyError, TypeError) as error:
        return f"unread:{type(error).__name__}"


for line in sys.stdin:
    sent, forwarded = map(bytes.fromhex, line.split())
    print(
        *(
            read(body, path, hook)
            for body, path in [(sent, ["params", "arguments", "arguments"]), (forwarded, ["params", "arguments"])]
            for hook in [dict, first]
        )
    )
