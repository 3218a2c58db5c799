"""Tokenises the API operations for the retrieval loss: operations.py WORK DATA -> WORK/operations.json"""

import collections
import json
import re
import sys

from tokenizers import Tokenizer

SMALLEST = 6  # services with fewer operations teach nothing about siblings


def imperative(sentence):
    """'Creates a bucket.' -> 'create a bucket'."""
    words = sentence.rstrip(" .").split()
    verb = words[0].lower()
    if verb.endswith("ies") and len(verb) > 4:
        verb = verb[:-3] + "y"
    elif re.search(r"(ss|ch|sh|x|zz)es$", verb):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss") and verb not in ("this", "is", "always"):
        verb = verb[:-1]
    return " ".join([verb] + words[1:])


def main(work, data):
    tokenizer = Tokenizer.from_file(f"{work}/tokenizer.json")
    services = collections.defaultdict(list)
    for operation in json.load(open(f"{data}/operations.json")):
        services[operation["service"]].append(operation)
    services = {k: v for k, v in services.items() if len(v) >= SMALLEST}
    found = [(number, o) for number, group in enumerate(services.values()) for o in group]

    def encode(texts):
        return [[i for i in e.ids if i > 1][:64] for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    stored = {
        "service": [number for number, _ in found],
        "name": encode([o["name"] for _, o in found]),
        "text": encode([o["text"] for _, o in found]),
        "request": encode([imperative(o["text"]) for _, o in found]),
        "service_name": encode(list(services)),
    }
    json.dump(stored, open(f"{work}/operations.json", "w"))
    print("operations", len(found), "services", len(services))


if __name__ == "__main__":
    main(*sys.argv[1:3])
