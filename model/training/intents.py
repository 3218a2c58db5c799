"""Spoken requests from Home Assistant's sentence templates, in some fifty languages.

Writes DATA/intents.json (English requests) and DATA/intents.tsv (language, index of an English request, text). Requests of
the same intent and slots in two languages ask for the same thing.
"""

import collections
import json
import glob
import os
import random
import re
import sys

from corpus import LANGUAGES, language_of

PER_TEMPLATE, PER_GROUP = 5, 24
TOKEN = re.compile(r"[()\[\]|]|<[^>]+>|\{[^}]+\}|[^()\[\]|<{]+")


class Grammar:
    """Draws random sentences from one language's templates."""

    def __init__(self, rules, source):
        self.rules, self.source = rules, source

    def draw(self, template, depth=0):
        tokens = TOKEN.findall(template)
        text, at = self.alternatives(tokens, 0, None, depth)
        return text if at >= len(tokens) else ""

    def alternatives(self, tokens, at, closing, depth):
        branches, current = [], []
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == closing:
                break
            if token == "|":
                branches.append("".join(current))
                current = []
            elif token in "([":
                inner, at = self.alternatives(tokens, at, ")" if token == "(" else "]", depth)
                if token == "(" or self.source.random() < 0.4:
                    current.append(inner)
            elif token.startswith("<"):
                rule = self.rules.get(token[1:-1])
                if rule and depth < 8:
                    current.append(self.draw(rule, depth + 1))
            elif token.startswith("{"):
                current.append(" ")
            else:
                current.append(token)
        branches.append("".join(current))
        return self.source.choice(branches), at


def tidy(text):
    return " ".join(re.sub(r"\s+([,.?!])", r"\1", text.replace(";", " ")).split())


def groups(path, source):
    file = json.load(open(path, encoding="utf-8"))
    grammar = Grammar(file.get("expansion_rules", {}), source)
    found = collections.defaultdict(set)
    for intent, content in sorted(file["intents"].items()):
        if intent in ("HassNevermind", "HassRespond"):
            continue
        for entry in content["data"]:
            key = (intent, (entry.get("metadata") or {}).get("slot_combination"), json.dumps(entry.get("slots"), sort_keys=True), entry.get("response"))
            for template in entry["sentences"]:
                for _ in range(PER_TEMPLATE):
                    text = tidy(grammar.draw(template))
                    if 3 < len(text) < 120:
                        found[key].add(text)
    return {k: source.sample(sorted(v), min(len(v), PER_GROUP)) for k, v in sorted(found.items(), key=str) if v}


def main(root, out):
    source = random.Random(0)
    folder = f"{root}/haintents/home_assistant_intents/data"
    english = groups(f"{folder}/en.json", source)
    texts = {}
    for values in english.values():
        for text in values:
            texts.setdefault(text, len(texts))
    count = collections.Counter()
    with open(f"{out}/intents.tsv", "w", encoding="utf-8") as file:
        for path in sorted(glob.glob(f"{folder}/*.json")):
            language = language_of(os.path.basename(path)[:-5])
            if language not in LANGUAGES:
                continue
            for key, values in groups(path, source).items():
                for text in values if key in english else []:
                    file.write(f"{language}\t{texts[source.choice(english[key])]}\t{text}\n")
                    count[language] += 1
    json.dump(list(texts), open(f"{out}/intents.json", "w"))
    print("English requests", len(texts), dict(count))


if __name__ == "__main__":
    main(*sys.argv[1:3])
