"""Renders the Helm chart with Helm's own engine and validates what comes out: with little set, with all of it, and with
values that charts break on. Then values that must be refused."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import helm_python as helm
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/toolsearch-proxy"
PROXY = sys.argv[1]
VERSIONS = ["1.30", "1.34"]
# Of others, so no schema of Kubernetes' own describes them.
CUSTOM = {"ServiceMonitor", "HTTPRoute"}
UPSTREAM = {"upstream": "https://gateway.example/mcp/all"}

EVERYTHING = {
    "settings": {
        **UPSTREAM,
        "public-url": "https://gateway.example/mcp/search",
        "max-callers": 100000,
        "max-tools": 20000,
        "catalog-ttl": "5m",
        "catalog-cache-bytes": 268435456,
        "write-tools": ["git__push*", "*delete*"],
        "allow-plaintext-upstream": False,
    },
    "image": {"repository": "registry.example:5000/team/toolsearch-proxy", "digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "upstreamCA": {"secret": "ca"},
    "env": [{"name": "TZ", "value": "UTC"}],
    "autoscaling": {"enabled": True},
    "podDisruptionBudget": {"maxUnavailable": "25%"},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}
    ],
    "service": {"type": "LoadBalancer", "port": 8443, "annotations": {"a.example/b": "true"}},
    "httpRoute": {
        "enabled": True,
        "parentRefs": [{"name": "gateway"}],
        "hostnames": ["gateway.example"],
        "timeout": "3m",
    },
    "volumes": [{"name": "certificate", "secret": {"secretName": "proxy"}}],
    "volumeMounts": [{"name": "certificate", "mountPath": "/etc/proxy", "readOnly": True}],
    "networkPolicy": {
        "enabled": True,
        "ingressFrom": [{"podSelector": {"matchLabels": {"app": "gateway"}}}],
        "metricsFrom": [{"namespaceSelector": {}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "serviceAccount": {"annotations": {"role.example/arn": "arn:aws:iam::1:role/x"}},
    "podAnnotations": {"a": "1"},
    "podLabels": {"team": "platform"},
    "nodeSelector": {"kubernetes.io/arch": "arm64"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "high",
}
SIDECAR = {"settings": {}, "sidecar": {"enabled": True, "gateway": {"config": {"binds": [{"port": 3000}]}}}}
LONG = "a" * 52 + "b"
ARGUMENTS = ['--x="a b"', "{{ .Values }}", "it's", "# none", ": y", "-", "", "\\n"]
ODD = {
    "the least": ("proxy", {"settings": UPSTREAM}),
    "everything": ("proxy", EVERYTHING),
    "the sidecar": ("proxy", SIDECAR),
    "the sidecar and everything": ("proxy", {**EVERYTHING, **SIDECAR, "settings": {"max-tools": 1}}),
    "a release with the longest name": (LONG, {"settings": UPSTREAM, "serviceMonitor": {"enabled": True}}),
    "a release named as the chart": ("toolsearch-proxy", {"settings": UPSTREAM}),
    "a release with dots": ("a.b-1.2", {"settings": UPSTREAM, "serviceMonitor": {"enabled": True}}),
    "maps and lists taken back": (
        "proxy",
        {"settings": UPSTREAM, "resources": None, "service": {"annotations": None}, "tolerations": None, "podLabels": None, "env": None},
    ),
    "labels that look like numbers": ("proxy", {"settings": UPSTREAM, "podLabels": {"year": "2026", "on": "true"}}),
    "long overrides": ("r", {"settings": UPSTREAM, "nameOverride": "n" * 80, "fullnameOverride": "f-" * 60}),
    "a name that looks like a number": ("1", {"settings": UPSTREAM, "fullnameOverride": "42"}),
    "a release that looks like a number": ("1", {"settings": UPSTREAM}),
    "capitals and underscores in names": ("proxy", {"settings": UPSTREAM, "nameOverride": "My_Proxy"}),
    "names that end badly where they are cut": (
        "r",
        {"settings": UPSTREAM, "nameOverride": "n" * 60 + "._.x", "fullnameOverride": "f" * 49 + "-----x"},
    ),
    "a name of its own, looked at by the rules": (
        "proxy",
        {"settings": UPSTREAM, "nameOverride": "other", "serviceMonitor": {"enabled": True}},
    ),
    "settings of an earlier file taken back": (
        "proxy",
        {"settings": {**UPSTREAM, "write-tools": None, "max-tools": None, "public-url": None, "catalog-ttl": "300"}},
    ),
    "lists taken back": (
        "proxy",
        {
            "settings": UPSTREAM,
            "imagePullSecrets": None,
            "volumes": None,
            "volumeMounts": None,
            "topologySpreadConstraints": None,
            "networkPolicy": {"enabled": True, "ingressFrom": None, "metricsFrom": None, "egress": None},
            "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}], "hostnames": None},
            "image": {"tag": None, "digest": None},
            "replicas": None,
        },
    ),
    "arguments with quotes and braces": (
        "proxy",
        {"settings": {}, "sidecar": {"enabled": True, "gateway": {"args": ARGUMENTS, "config": {"a": "{{ x }}"}}}},
    ),
    "nothing for availability": (
        "proxy",
        {
            "settings": UPSTREAM,
            "replicas": 0,
            "drainDelaySeconds": 0,
            "podDisruptionBudget": {"enabled": False},
            "serviceAccount": {"create": False},
            "resources": {},
        },
    ),
    "a network policy without a word": ("proxy", {"settings": UPSTREAM, "networkPolicy": {"enabled": True}}),
    "quotes, a hash and braces in values": (
        "proxy",
        {"settings": {**UPSTREAM, "write-tools": ['a"b\\c*', "{{ x }}", "# not a comment"], "allowed-hosts": "a.example,b.example"}},
    ),
    "numbers that floats would write with an exponent": (
        "proxy",
        {"settings": {**UPSTREAM, "max-callers": 1000000000, "catalog-cache-bytes": 1099511627776}},
    ),
    "a setting taken back": ("proxy", {"settings": {**UPSTREAM, "log-format": None}}),
}
REFUSED = {
    "no upstream": {},
    "an unknown value": {"settings": UPSTREAM, "replicaCount": 3},
    "an unknown setting": {"settings": {**UPSTREAM, "catalog_ttl": "5m"}},
    "a setting that the chart decides": {"settings": {**UPSTREAM, "listen": "0.0.0.0:1"}},
    "a count that is no number": {"settings": {**UPSTREAM, "max-tools": "many"}},
    "both a ConfigMap and a Secret": {"settings": UPSTREAM, "upstreamCA": {"configMap": "a", "secret": "b"}},
    "a route without a gateway": {"settings": UPSTREAM, "httpRoute": {"enabled": True}},
    "fewer replicas at most than at least": {
        "settings": UPSTREAM,
        "autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 2},
    },
    "an empty upstream": {"settings": {"upstream": ""}},
    "a tag that is a number": {"settings": UPSTREAM, "image": {"tag": 1.0}},
    "settings that are no map": {"settings": ["upstream"]},
    "a tag as a digest": {"settings": UPSTREAM, "image": {"digest": "latest"}},
    "a delay that is no number": {"settings": UPSTREAM, "drainDelaySeconds": "5s"},
    "a volume without a name": {"settings": UPSTREAM, "volumes": [{"emptyDir": {}}]},
    "a time that is none": {"settings": UPSTREAM, "httpRoute": {"timeout": "soon"}},
    "a port out of range": {"settings": UPSTREAM, "service": {"port": 70000}},
    "a section taken back": {"settings": UPSTREAM, "service": None},
    "settings taken back": {"settings": None},
    "a port taken back": {"settings": UPSTREAM, "service": {"port": None}},
    "a budget of nothing": {"settings": UPSTREAM, "podDisruptionBudget": {"maxUnavailable": None}},
    "a name with a space": {"settings": UPSTREAM, "nameOverride": "my proxy"},
    "a name with a quote": {"settings": UPSTREAM, "fullnameOverride": 'a"b'},
    "a gateway on the proxy's port": {"sidecar": {"enabled": True, "gateway": {"port": 8080}}},
    "a variable that is a number": {"settings": UPSTREAM, "env": [{"name": "A", "value": 1}]},
    "a variable that the chart decides": {"settings": UPSTREAM, "env": [{"name": "TOOLSEARCH_LISTEN", "value": "0.0.0.0:1"}]},
    "a label that the chart sets": {"settings": UPSTREAM, "podLabels": {"app.kubernetes.io/name": "x"}},
    "a volume that the chart has": {"settings": UPSTREAM, "volumes": [{"name": "settings", "emptyDir": {}}]},
    "a count as text": {"settings": {**UPSTREAM, "max-tools": "100"}},
}


def fail(text):
    sys.exit(f"FAILED: {text}")


def rendered(release, values):
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name=release, namespace="tools")
    documents = []
    for name, text in files.items():
        if name.endswith(".yaml"):
            documents += [document for document in yaml.safe_load_all(text) if document]
    return documents


def check(case, documents):
    kinds = {}
    for document in documents:
        kinds.setdefault(document["kind"], []).append(document)
        name = document["metadata"]["name"]
        # A Service's name is the strictest, and all are made the same way.
        if not re.fullmatch("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", name):
            fail(f"{case}: {document['kind']} is named {name}")
        for label, value in document["metadata"]["labels"].items():
            if not re.fullmatch("([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", value):
                fail(f"{case}: {document['kind']} has the label {label}: {value}")
        if document["kind"] in CUSTOM:
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                fail(f"{case}: {document['kind']} {name} for {version}: {error.message}")
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    if len(set(names)) != len(names):
        fail(f"{case}: two of one name: {names}")
    pod = kinds["Deployment"][0]["spec"]["template"]
    selector = kinds["Deployment"][0]["spec"]["selector"]["matchLabels"]
    for owner in kinds["Service"]:
        chosen = owner["spec"]["selector"]
        if any(pod["metadata"]["labels"].get(key) != value for key, value in chosen.items()) or chosen != selector:
            fail(f"{case}: {owner['metadata']['name']} selects other pods")
        ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
        if any(port["targetPort"] not in ports for port in owner["spec"]["ports"]):
            fail(f"{case}: a port of {owner['metadata']['name']} leads nowhere")
    if case.startswith("arguments") and pod["spec"]["containers"][1]["args"] != ARGUMENTS:
        fail(f"{case}: the gateway gets others: {pod['spec']['containers'][1]['args']}")
    container = pod["spec"]["containers"][0]
    security = container["securityContext"]
    if not (security["readOnlyRootFilesystem"] and security["runAsNonRoot"] and security["capabilities"]["drop"] == ["ALL"]):
        fail(f"{case}: the container may do more than it needs")
    mounted = {volume["name"] for volume in pod["spec"]["volumes"]}
    if not {mount["name"] for mount in container["volumeMounts"]} <= mounted:
        fail(f"{case}: a mount without a volume")
    for route in kinds.get("HTTPRoute", []):
        if any("request" not in rule.get("timeouts", {}) for rule in route["spec"]["rules"]):
            fail(f"{case}: a route that ends calls before the proxy does")
    for monitor in kinds.get("ServiceMonitor", []):
        # Prometheus names the job after this label of the Service; the rules ask for that job.
        job = monitor["spec"]["jobLabel"]
        services = [service["metadata"]["labels"] for service in kinds["Service"]]
        if any(labels[job] != "toolsearch-proxy" for labels in services):
            fail(f"{case}: another job than that of the rules")
    settings = kinds["ConfigMap"][0]["data"]["config.toml"]
    check_settings(case, settings)
    return kinds


def check_settings(case, text):
    """The proxy itself takes the file."""
    settings = tomllib.loads(text)
    # What is mounted in a pod is not here.
    if "upstream-ca" in settings:
        text = "\n".join(line for line in text.splitlines() if not line.startswith("upstream-ca"))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([PROXY, "config", "check", "--config", file.name], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{case}: the proxy refuses its settings: {done.stderr}\n{text}")


def main():
    report = helm.lint(str(CHART), values={"settings": UPSTREAM}, strict=True)
    # An icon is for catalogues of charts.
    findings = [finding for finding in report["messages"] if "icon is recommended" not in finding["error"]]
    if findings:
        fail(f"lint: {findings}")
    print("ok: lint")
    for case, (release, values) in ODD.items():
        check(case, rendered(release, values))
        print(f"ok: {case}")
    for case, values in REFUSED.items():
        try:
            rendered("proxy", values)
        except helm.HelmError as error:
            if not str(error).strip():
                fail(f"{case}: refused without a word")
            print(f"ok: refused: {case}")
        else:
            fail(f"{case} was not refused")
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    unknown = set(values) ^ (set(schema["properties"]) - {"global"})
    if unknown:
        fail(f"values.yaml and its schema differ: {unknown}")


main()
