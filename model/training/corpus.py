"""Collects the parallel texts: data/pairs.tsv (language, index of the English text, text) and data/english.json."""

import collections
import html
import json
import re
import sys

import sources

LANGUAGES = (
    "lt pl de es fr it pt nl ru uk cs sk hu sv da nb fi et lv ro bg el hr sl tr ca ja ko zh id vi "
    "ar he fa hi bn ta te th ur ka hy mr gu kn ml pa ne si sr mk bs sq az kk uz be is ga cy eu gl af sw ms tl km my mn eo"
).split()
RENAMED = {"no": "nb", "nn": "nb", "iw": "he", "in": "id", "fil": "tl", "ji": "yi", "yue": "zh"}
LIMIT = 130_000  # texts a language; sources come in the order of sources.everything


def language_of(tag):
    base = re.split(r"[-_@]", tag)[0].lower()
    return RENAMED.get(base, base)


def clean(text):
    text = html.unescape(text)
    text = re.sub(r"<[^>]+>", " ", text)
    text = re.sub(r"\{[^{}]*\}|%\(\w+\)[sd]|%[0-9]*\$?[sdS@]|\$\w+\$?|\[%key:[^\]]*%\]|%\w+%?", " ", text)
    text = re.sub(r"\(\s*[~&_]\w\s*\)", " ", text)
    text = re.sub(r"[~&_](?=\w)", "", text)
    text = re.sub(r"https?://\S+|\\[nt]", " ", text)
    text = re.sub(r"[`*#|{}~]+", " ", text)
    return " ".join(text.split())[:200]


def usable(english, text):
    if len(english) < 3 or len(text) < 2 or english == text:
        return False
    if not re.search(r"[A-Za-z]{3}", english) or len(text) > 4 * len(english) + 20:
        return False
    return len(english) < 4 * len(text) + 20 or len(text) > 20 or bool(re.search(r"[^\x00-\u024f]", text))


def main(root, debian, out):
    english_index, seen = {}, set()
    rows = []
    count = collections.Counter()
    by_source = collections.Counter()
    wanted = set(LANGUAGES)
    for source, tag, english, text in sources.everything(root, debian):
        language = language_of(tag)
        if language not in wanted or count[language] >= LIMIT:
            continue
        if not isinstance(english, str) or not isinstance(text, str) or ", plural" in english or " ->" in english:
            continue
        english, text = clean(english), clean(text)
        if not usable(english, text):
            continue
        index = english_index.setdefault(english, len(english_index))
        key = (language, index, text)
        if key not in seen:
            seen.add(key)
            rows.append(key)
            count[language] += 1
            by_source[source, language] += 1
    with open(f"{out}/pairs.tsv", "w", encoding="utf-8") as file:
        for language, index, text in rows:
            file.write(f"{language}\t{index}\t{text}\n")
    json.dump(list(english_index), open(f"{out}/english.json", "w", encoding="utf-8"), ensure_ascii=False)
    names = sorted({s for s, _ in by_source})
    for language in LANGUAGES:
        print(language, count[language], {s: by_source[s, language] for s in names if by_source[s, language]})
    print("English texts", len(english_index), "pairs", len(rows))


if __name__ == "__main__":
    main(*sys.argv[1:4])
