"""Moves each number, duration and word of the alert rules by a little: the tests beside this file must fail then.

Usage: thresholds.py RULES TESTS
"""

import pathlib
import re
import subprocess
import sys
import tempfile

RULES, TESTS = (pathlib.Path(path).resolve() for path in sys.argv[1:])


def moved(rule):
    """Each change of a rule's text, with what was changed."""

    def instead(match, new, group=0):
        return f"{match[group]} -> {new}", rule[: match.start(group)] + new + rule[match.end(group) :]

    for match in re.finditer(r"for: (\d+)([mh])", rule):
        minutes = int(match[1]) * (60 if match[2] == "h" else 1)
        yield instead(match, f"for: {minutes + 1}m")
        yield instead(match, f"for: {minutes - 1}m")
    expression = rule.index("expr:"), rule.index("labels:")
    for match in re.finditer(r"(?:==|>) (\d+(?:\.\d+)?)", rule):
        if not expression[0] < match.start() < expression[1]:
            continue
        number = float(match[1])
        if number in (0, 1):
            yield instead(match, ">= 0")
        else:
            yield instead(match, f"{number * 1.1:.4g}", 1)
            yield instead(match, f"{number * 0.9:.4g}", 1)
    for match in re.finditer(r"histogram_quantile\((0\.\d+)", rule):
        yield instead(match, "0.90", 1)
        yield instead(match, "0.99", 1)
    for match in re.finditer(r'"(\w+(?:\|\w+)+)"', rule):
        words = match[1].split("|")
        for word in words:
            yield instead(match, "|".join(other for other in words if other != word), 1)
    for match in re.finditer(r'\w+!?=~?"\w+"', rule):
        if expression[0] < match.start() < expression[1]:
            yield instead(match, "")


def passes(folder, rules):
    (folder / "alerts.yaml").write_text(rules)
    command = ["promtool", "test", "rules", folder / "test.yaml"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


text = RULES.read_text()
head, *rules = re.split(r"(?m)^(?=      - alert: )", text)
survived, tried = [], 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    test = TESTS.read_text()
    (folder / "test.yaml").write_text(re.sub(r"(?m)^rule_files: .*$", "rule_files: [alerts.yaml]", test))
    if not passes(folder, text):
        sys.exit("FAILED: the tests of the alerts fail as they stand")
    for index, rule in enumerate(rules):
        for change, other in moved(rule):
            tried += 1
            if passes(folder, head + "".join(rules[:index] + [other] + rules[index + 1 :])):
                survived.append(f"{rule.split()[2]}: {change}")
if survived or tried < 40:
    sys.exit("\n".join(f"FAILED: no test sees {change}" for change in survived) or f"FAILED: {tried} changes only")
print(f"ok: alerts: the tests see each of {tried} small changes of the rules")
