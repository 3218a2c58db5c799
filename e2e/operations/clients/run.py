"""Runs the examples of docs/clients.md in Python and JavaScript, and for Claude Code, as they stand there, against the
demonstration.

Usage: clients/run.py PROXY TOOLS
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROXY, TOOLS = (pathlib.Path(path).resolve() for path in sys.argv[1:])
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.S | re.M)
BLOCK = re.compile(r"```(python|js|sh)\n(.*?)```", re.S)


def command(heading, language, folder, text):
    if language == "sh":
        [program] = (TOOLS / "node_modules/@anthropic-ai").glob("claude-code-*/claude")
        (folder / "claude").symlink_to(program)
        return ["sh", "-ec", f'PATH="$PWD:$PATH"\n{text}']
    if language == "js":
        # Packages are looked for beside the file and above it.
        (folder / "node_modules").symlink_to(TOOLS / "node_modules")
        (folder / "example.mjs").write_text(text)
        return ["node", "example.mjs"]
    (folder / "example.py").write_text(text)
    return [TOOLS / ("langchain" if "LangChain" in heading else "sdks") / "bin/python", "example.py"]


def run(heading, language, text):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {"PATH": os.environ["PATH"], "HOME": name, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        done = subprocess.run(
            command(heading, language, folder, text), cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
    expected = "Connected" if language == "sh" else "rotate"
    if done.returncode != 0 or expected not in done.stdout:
        return f"FAILED: docs/clients.md, {heading}: {done.stdout[-500:]}{done.stderr[-1500:]}"
    print(f"ok: docs/clients.md, {heading}")
    return None


def main():
    demo = subprocess.Popen(
        [PROXY, "demo", "--listen", "127.0.0.1:8080"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        while "Serving." not in (line := demo.stdout.readline()):
            if not line:
                sys.exit("FAILED: the demonstration did not start at 127.0.0.1:8080, which the examples dial")
        sections = SECTION.findall((ROOT / "docs/clients.md").read_text())
        examples = [(heading, *block) for heading, text in sections for block in BLOCK.findall(text)]
        # Other commands are run by what is named before them.
        examples = [example for example in examples if example[1] != "sh" or example[0] == "Claude Code"]
        failed = [problem for example in examples if (problem := run(*example))]
    finally:
        demo.kill()
    if failed or len(examples) < 6:
        sys.exit("\n".join(failed) or f"FAILED: only {len(examples)} examples")


main()
