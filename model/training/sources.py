"""Readers of translated interface texts.

Each reader yields (source, language tag, English text, translated text). Nothing is cleaned here;
corpus.py decides what is kept.
"""

import glob
import html
import json
import os
import re
import struct
import zipfile


def flatten(node, path=()):
    """Leaves of nested JSON objects, as (path, text)."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from flatten(value, path + (key,))
    elif isinstance(node, str):
        yield path, node


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def paired(source, english, by_language):
    """Joins {key: text} of English with {key: text} of each language."""
    for tag, texts in by_language:
        for key, text in texts.items():
            if key in english:
                yield source, tag, english[key], text


def home_assistant(root):
    """Home Assistant: one folder of JSON files a component, and the hashed files of its front end."""
    for folder in sorted(glob.glob(f"{root}/ha/homeassistant/components/*/translations")):
        if not os.path.exists(f"{folder}/en.json"):
            continue
        english = dict(flatten(read_json(f"{folder}/en.json")))
        others = sorted(glob.glob(f"{folder}/*.json"))
        yield from paired(
            "homeassistant",
            english,
            ((os.path.basename(p)[:-5], dict(flatten(read_json(p)))) for p in others if not p.endswith("/en.json")),
        )
    for folder, _, names in sorted(os.walk(f"{root}/haf/hass_frontend/static/translations")):
        by_tag = {re.sub(r"-[0-9a-f]{32}\.json$", "", n): n for n in sorted(names) if n.endswith(".json")}
        if "en" in by_tag:
            english = dict(flatten(read_json(f"{folder}/{by_tag['en']}")))
            yield from paired(
                "homeassistant-frontend",
                english,
                ((t, dict(flatten(read_json(f"{folder}/{n}")))) for t, n in by_tag.items() if t != "en"),
            )


def gettext(path):
    """Messages of a compiled gettext catalogue, plural forms cut to the first."""
    data = open(path, "rb").read()
    if len(data) < 20:
        return
    magic, _, count, originals, translations = struct.unpack("<5I", data[:20])
    if magic != 0x950412DE:
        return
    for i in range(count):
        length, at = struct.unpack_from("<2I", data, originals + 8 * i)
        original = data[at : at + length].decode("utf-8", "replace")
        length, at = struct.unpack_from("<2I", data, translations + 8 * i)
        translation = data[at : at + length].decode("utf-8", "replace")
        if original:
            yield original.split("\x04")[-1].split("\x00")[0], translation.split("\x00")[0]


def gettext_trees(root, debian):
    """Every compiled catalogue whose path tells its language."""
    trees = [
        ("libreoffice", f"{debian}/libreoffice-l10n-*", r"/resource/([^/]+)/LC_MESSAGES/"),
        ("jupyterlab", f"{root}/jl", r"/locale/([^/]+)/LC_MESSAGES/"),
        ("superset", f"{root}/superset/superset/translations", r"/translations/([^/]+)/LC_MESSAGES/"),
        ("indico", f"{root}/indico/indico/translations", r"/translations/([^/]+)/LC_MESSAGES/"),
        ("kolibri", f"{root}/kolibri/kolibri/locale", r"/locale/([^/]+)/LC_MESSAGES/"),
        ("django", f"{root}/django", r"/locale/([^/]+)/LC_MESSAGES/"),
        ("wagtail", f"{root}/wagtail", r"/locale/([^/]+)/LC_MESSAGES/"),
        ("oscar", f"{root}/oscar", r"/locale/([^/]+)/LC_MESSAGES/"),
        ("trac", f"{root}/trac", r"/locale/([^/]+)/LC_MESSAGES/"),
    ]
    for source, pattern, language in trees:
        for folder in sorted(glob.glob(pattern)):
            for path in sorted(glob.glob(folder + "/**/*.mo", recursive=True)):
                found = re.search(language, path)
                if found:
                    for original, translation in gettext(path):
                        yield source, found[1], original, translation


def message_folders(root):
    """Kolibri's and Airflow's JSON messages: one folder a language, the same file names in each."""
    places = [
        ("kolibri", f"{root}/kolibri/kolibri/locale/*/LC_MESSAGES/*.json", r"/locale/([^/]+)/"),
        ("airflow", f"{root}/airflow/airflow/ui/dist/i18n/locales/*/*.json", r"/locales/([^/]+)/"),
    ]
    for source, pattern, language in places:
        files = {}
        for path in sorted(glob.glob(pattern)):
            tag = re.search(language, path)[1]
            files.setdefault(os.path.basename(path), {})[tag] = dict(flatten(read_json(path)))
        for by_tag in files.values():
            if "en" in by_tag:
                yield from paired(source, by_tag["en"], ((t, d) for t, d in by_tag.items() if t != "en"))


SCRIPT_TEXT = re.compile(r"[{,\s]\"?([\w.$-]+)\"?\s*[:=]\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")


def script_texts(path):
    """Texts of a JavaScript file that is one object or one constant a text."""
    texts = {}
    for key, quoted in SCRIPT_TEXT.findall(open(path, encoding="utf-8").read()):
        body = quoted[1:-1]
        if quoted[0] == "'":
            body = body.replace("\\'", "'").replace('"', '\\"')
        try:
            texts[key] = json.loads(f'"{body}"')
        except ValueError:
            continue
    return texts


def node_packages(root):
    """Element's strings, VS Code's extensions, Uppy and Excalidraw."""
    strings = glob.glob(f"{root}/npm/matrix-react-sdk-*/package/src/i18n/strings")[0]
    english = dict(flatten(read_json(f"{strings}/en_EN.json")))
    for path in sorted(glob.glob(f"{strings}/*.json")):
        tag = os.path.basename(path)[:-5]
        if tag != "en_EN":
            yield from paired("matrix", english, [(tag, dict(flatten(read_json(path))))])
    for path in sorted(glob.glob(f"{root}/npm/codingame-monaco-vscode-language-pack-*/package/translations/extensions/*.json")):
        tag = re.search(r"language-pack-([a-z-]+?)-\d", path)[1]
        for english_text, text in read_json(path)["contents"].get("bundle", {}).items():
            yield "vscode", tag, english_text, text
    scripts = [
        ("uppy", "uppy-locales-*/package/lib/*_*.js", r"/([\w-]+)\.js$", "en_US"),
        ("excalidraw", "excalidraw-excalidraw-*/package/dist/prod/locales/*.js", r"/([\w-]+)-\w{8}\.js$", "en"),
    ]
    for source, pattern, language, english_tag in scripts:
        by_tag = {}
        for path in sorted(glob.glob(f"{root}/npm/{pattern}")):
            found = re.search(language, path)
            if found:
                by_tag[found[1]] = script_texts(path)
        english = by_tag.pop(english_tag)
        yield from paired(source, english, by_tag.items())


def properties(text):
    return dict(re.findall(r"^\s*([\w.\-]+)\s*=\s*(.*)$", text, re.M))


def fluent(text):
    """Messages and attributes of a Fluent file; select expressions are left out by cleaning."""
    texts, key, skip = {}, None, False
    for line in text.splitlines():
        message = re.match(r"^(-?[\w-]+)\s*=\s*(.*)$", line)
        attribute = re.match(r"^\s+\.(\w[\w-]*)\s*=\s*(.*)$", line)
        more = re.match(r"^\s+(\S.*)$", line)
        if message:
            key = message[1]
            texts[key] = message[2]
        elif attribute and key:
            key = key.split("@")[0] + "@" + attribute[1]
            texts[key] = attribute[2]
        elif more and key:
            texts[key] = (texts[key] + " " + more[1]).strip()
        elif not line.strip():
            continue
        else:
            key = None
    return {k: v for k, v in texts.items() if not k.lower().endswith("key")}


def mozilla(debian, product):
    """Thunderbird and Firefox language packs against the product's own English files."""
    parsers = {".properties": properties, ".ftl": fluent}
    english = {}
    base = f"{debian}/{product}-en"
    for folder, _, names in os.walk(base):
        for name in names:
            extension = os.path.splitext(name)[1]
            path = os.path.join(folder, name)
            if extension in parsers and "/en-US/" in path:
                text = open(path, encoding="utf-8", errors="replace").read()
                english["/".join(path.replace("/en-US/", "/@/").split("/")[-3:])] = parsers[extension](text)
    pattern = f"{debian}/{product}-l10n-*/usr/lib/{product}/**/langpack-*.xpi"
    for path in sorted(glob.glob(pattern, recursive=True)):
        tag = re.search(r"langpack-(.+?)@", path)[1]
        pack = zipfile.ZipFile(path)
        for name in pack.namelist():
            extension = os.path.splitext(name)[1]
            place = "/".join(f"/{name}".replace(f"/{tag}/", "/@/").split("/")[-3:])
            if extension in parsers and place in english:
                texts = parsers[extension](pack.read(name).decode("utf-8", "replace"))
                for key, text in texts.items():
                    if key in english[place] and not re.search(r"key$", key, re.I):
                        yield product, tag, english[place][key], text


def help_pages(debian):
    """LibreOffice's help: paragraphs with the same id in the same page."""
    paragraph = re.compile(r'<(p|h\d|td|li)[^>]* id="((?:par|hd)_id\w+)"[^>]*>(.*?)</\1>', re.S)

    def read(path):
        text = open(path, encoding="utf-8", errors="replace").read()
        return {key: html.unescape(re.sub(r"<[^>]+>", "", body)) for _, key, body in paragraph.findall(text)}

    base = f"{debian}/libreoffice-help-en-us/usr/share/libreoffice/help/en-US/text"
    pages = {os.path.relpath(p, base): p for p in sorted(glob.glob(base + "/**/*.html", recursive=True))}
    english = {name: read(path) for name, path in pages.items()}
    for folder in sorted(glob.glob(f"{debian}/libreoffice-help-*/usr/share/libreoffice/help/*/text")):
        tag = folder.split("/")[-2]
        if tag.startswith("en"):
            continue
        for path in sorted(glob.glob(folder + "/**/*.html", recursive=True)):
            name = os.path.relpath(path, folder)
            if name in english:
                yield from paired("libreoffice-help", english[name], [(tag, read(path))])


def emoji_names(root):
    """CLDR: names and keywords of emoji, a small dictionary of everyday nouns and actions."""
    base = glob.glob(f"{root}/npm/cldr-annotations-full-*/package/annotations")[0]

    def read(tag):
        return read_json(f"{base}/{tag}/annotations.json")["annotations"].get("annotations", {})

    english = read("en")
    for tag in sorted(os.listdir(base)):
        if tag.startswith("en"):
            continue
        for sign, entry in read(tag).items():
            original = english.get(sign)
            if not original:
                continue
            if entry.get("tts") and original.get("tts"):
                yield "cldr", tag, original["tts"][0], entry["tts"][0]
            if entry.get("default") and original.get("default"):
                yield "cldr", tag, ", ".join(original["default"][:6]), ", ".join(entry["default"][:6])


def place_names(root):
    """CLDR: names of languages and countries."""
    base = glob.glob(f"{root}/npm/cldr-localenames-full-*/package/main")[0]

    def read(tag):
        texts = {}
        for name in ("languages", "territories"):
            path = f"{base}/{tag}/{name}.json"
            if os.path.exists(path):
                names = read_json(path)["main"][tag]["localeDisplayNames"][name]
                texts.update({(name, k): v for k, v in names.items() if "-alt-" not in k and len(k) < 4})
        return texts

    english = read("en")
    for tag in sorted(os.listdir(base)):
        if not tag.startswith("en"):
            yield from paired("cldr-names", english, [(tag, read(tag))])


def map_presets(root):
    """OpenStreetMap's presets: names of places and things, with other words for them."""
    base = f"{root}/npm/idts/package/dist/translations"

    def read(tag):
        texts = {}
        for path, text in flatten(read_json(f"{base}/{tag}.json")[tag]):
            texts[path] = text.replace(",", ", ") if path[-1] == "terms" else text
        return texts

    english = read("en")
    for name in sorted(os.listdir(base)):
        tag = name[:-5]
        if name.endswith(".min.json") or tag == "index" or tag.startswith("en"):
            continue
        yield from paired("openstreetmap", english, [(tag, read(tag))])


def everything(root, debian):
    """All sources, the small ones of everyday words first: the limit a language cuts the last."""
    yield from emoji_names(root)
    yield from map_presets(root)
    yield from home_assistant(root)
    yield from node_packages(root)
    yield from message_folders(root)
    yield from gettext_trees(root, debian)
    yield from mozilla(debian, "thunderbird")
    yield from mozilla(debian, "firefox-esr")
    yield from help_pages(debian)
    yield from place_names(root)
