"""English texts beyond the interface strings: what APIs say about their operations, glosses and words.

Writes data/extra.json (a list of texts to embed) and data/operations.json (service, name, description, parameters).
"""

import collections
import glob
import gzip
import html
import json
import re
import sys

import templates


def plain(text):
    text = re.sub(r"<(important|note)>.*?</\1>", " ", text or "", flags=re.S)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"https?://\S+", " ", text)
    return " ".join(text.replace("`", "").split())


def first_sentence(text):
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)[0][:220].strip()


def split_name(name):
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", name)
    return " ".join(re.findall(r"[A-Za-z]+|\d+", name)).lower()


def aws(root):
    services = {}
    for path in sorted(glob.glob(f"{root}/botocore/botocore/data/*/*/service-2.json*")):
        services[path.split("/")[-3]] = path  # the newest version sorts last
    for path in services.values():
        opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith("gz") else open(path, encoding="utf-8")
        with opened as file:
            model = json.load(file)
        service = model["metadata"].get("serviceId") or model["metadata"]["serviceFullName"]
        for name, operation in model["operations"].items():
            shape = model["shapes"].get(operation.get("input", {}).get("shape"), {})
            parameters = [split_name(p) for p in shape.get("members", {})]
            yield service, split_name(name), plain(operation.get("documentation")), parameters


def google(root):
    apis = {}
    for path in sorted(glob.glob(f"{root}/gapi/googleapiclient/discovery_cache/documents/*.json")):
        apis[re.split(r"\.v\d|\.(alpha|beta)", path.split("/")[-1])[0]] = path

    def methods(node, trail):
        for name, method in node.get("methods", {}).items():
            yield trail + [name], method
        for name, child in node.get("resources", {}).items():
            yield from methods(child, trail + [name])

    for path in apis.values():
        api = json.load(open(path, encoding="utf-8"))
        for trail, method in methods(api, []):
            words = [t for t in trail if t not in ("projects", "locations", "organizations", "folders")]
            name = split_name(" ".join([words[-1]] + words[-3:-1])) if words else ""
            parameters = [split_name(p) for p in method.get("parameters", {})]
            yield api.get("title", ""), name, plain(method.get("description")), parameters


def operations(root):
    seen = set()
    for reader in (aws, google):
        for service, name, description, parameters in reader(root):
            sentence = first_sentence(description)
            if 12 <= len(sentence) and name and sentence not in seen:
                seen.add(sentence)
                yield {"service": service, "name": name, "text": sentence, "more": description[:400], "parameters": parameters[:12]}


def glosses(debian):
    base = f"{debian}/wordnet-base/usr/share/wordnet/"
    uses = {}
    for line in open(base + "cntlist.rev"):
        key, _, count = line.split()
        lemma = key.split("%")[0]
        uses[lemma] = uses.get(lemma, 0) + int(count)
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(base + "data." + part, encoding="latin1"):
            if line.startswith("  "):
                continue
            head, gloss = line.rstrip().split(" | ", 1)
            fields = head.split(" ")
            lemmas = [fields[4 + 2 * i].split("(")[0] for i in range(int(fields[3], 16))]
            frequency = max(uses.get(lemma.lower(), 0) for lemma in lemmas)
            gloss = re.sub(r"\([^)]*\)", "", gloss.split(";")[0]).strip()
            names = ", ".join(lemma.replace("_", " ") for lemma in lemmas[:3])
            if frequency >= 3 and 8 < len(gloss) < 100:
                yield f"{names}: {gloss}"
                if frequency >= 8:
                    yield gloss
            if frequency >= 2 or part == "verb":
                for lemma in lemmas:
                    yield lemma.replace("_", " ")


def main(root, debian, out):
    found = list(operations(root))
    json.dump(found, open(f"{out}/operations.json", "w"))
    texts = {}
    for operation in found:
        texts[operation["text"]] = None
        texts[operation["name"]] = None
    print("operations", len(found), "texts", len(texts))
    for text in templates.texts():
        texts[text] = None
    for text in glosses(debian):
        texts[text] = None
    words = collections.Counter()
    for text in json.load(open(f"{out}/english.json", encoding="utf-8")) + list(texts):
        words.update(re.findall(r"[a-z]{3,}", text.lower()))
    for word, _ in words.most_common(22_000):
        texts[word] = None
    print("extra texts", len(texts))
    json.dump(list(texts), open(f"{out}/extra.json", "w"))


if __name__ == "__main__":
    main(*sys.argv[1:4])
