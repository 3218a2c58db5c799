"""Tries the docs: each link leads somewhere, each flag of the program that they name exists, and each block of commands is
run, unless a comment before it says by what else, or why not:

    <!-- run by e2e/operations/gateways -->
    <!-- not run: it needs a cluster -->

Usage: docs.py PROXY
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROXY = pathlib.Path(sys.argv[1]).resolve()
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "e2e/README.md", "model/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"(?:<!-- (?P<mark>(?:run by|not run)[^>]*?) -->\n *)?```(?P<kind>sh|bash|console|shell)\n(?P<text>.*?)```", re.S)
problems = []


def wrong(page, text):
    problems.append(f"{page.relative_to(ROOT)}: {text}")


def anchors(page):
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        found.add(words.replace(" ", "-"))
    return found


def links(page, text):
    count = 0
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            wrong(page, f"the link {target} leads nowhere")
        elif anchor and anchor not in anchors(file):
            wrong(page, f"the link {target} leads to no heading")
        count += 1
    return count


def help_of(*command):
    return subprocess.run([PROXY, *command, "--help"], capture_output=True, text=True, check=True).stdout


COMMANDS = {name: help_of(*name.split()) for name in ("serve", "eval", "demo", "fetch-model", "healthcheck", "config check")}


def flags(page, text):
    """Of `toolsearch-proxy serve --upstream …`, on one line or several."""
    count = 0
    for line in re.sub(r"\\\n", " ", text).splitlines():
        for command, rest in re.findall(r"toolsearch-proxy ((?:config )?[a-z-]+)([^`|;]*)", line):
            if command not in COMMANDS:
                continue
            for flag in re.findall(r"(?<!\S)--[a-z-]+", rest):
                if not re.search(rf"{flag}\b(?!-)", COMMANDS[command]):
                    wrong(page, f"toolsearch-proxy {command} has no {flag}")
                count += 1
    return count


def settings(page, text, known):
    """Flags and variables that stand alone in the text."""
    for variable in re.findall(r"TOOLSEARCH_[A-Z_]*[A-Z]", text):
        if variable not in known:
            wrong(page, f"there is no variable {variable}")


def run(page, block, folder, path):
    # `$ command` is what a person types, the rest what they see.
    text = block["text"]
    if block["kind"] == "console":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    done = subprocess.run(["sh", "-ec", text], cwd=folder, env={"PATH": path, "HOME": folder}, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        wrong(page, f"these commands fail: {text}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def main():
    known = set(re.findall(r"TOOLSEARCH_\w+", "".join(COMMANDS.values()))) | {"TOOLSEARCH_PROXY_SERVICE_HOST"}
    counted = {"links": 0, "flags": 0, "run": 0, "run elsewhere": 0, "not run": 0}
    with tempfile.TemporaryDirectory() as folder:
        demo = subprocess.Popen([PROXY, "demo", "--listen", "127.0.0.1:8080"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            shown = ""
            while "Serving." not in shown:
                line = demo.stdout.readline()
                if not line:
                    sys.exit("FAILED: the demonstration did not start")
                shown += line
            path = f"{PROXY.parent}:/usr/local/bin:/usr/bin:/bin:{pathlib.Path.home()}/.cargo/bin"
            for page in PAGES:
                text = page.read_text()
                counted["links"] += links(page, text)
                counted["flags"] += flags(page, text)
                settings(page, text, known)
                for block in BLOCK.finditer(text):
                    mark = block["mark"]
                    if mark is None:
                        if "127.0.0.1:8080 for MCP" not in shown and "127.0.0.1:8080" not in shown:
                            sys.exit("FAILED: port 8080 is taken, which the docs' examples dial")
                        run(page, block, folder, path)
                        counted["run"] += 1
                    elif mark.startswith("run by"):
                        counted["run elsewhere"] += 1
                        script = mark.removeprefix("run by").strip().split()[0].rstrip(",")
                        if not (ROOT / script).exists():
                            wrong(page, f"{script}, which should run a block, is not there")
                    else:
                        counted["not run"] += 1
                        if len(mark.removeprefix("not run:").strip()) < 15:
                            wrong(page, f"no reason why not: {mark}")
        finally:
            demo.kill()
    if problems:
        sys.exit("\n".join(f"FAILED: {problem}" for problem in problems))
    if counted["links"] < 50 or counted["flags"] < 15 or counted["run"] < 1:
        sys.exit(f"FAILED: hardly anything was tried: {counted}")
    print("ok: docs: " + ", ".join(f"{count} {what}" for what, count in counted.items()))


main()
