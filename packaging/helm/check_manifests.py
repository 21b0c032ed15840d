"""Checks of rendered manifests. Runs in the virtual environment of kubernetes-validate, for it and PyYAML.

    check_manifests.py CASE KUBERNETES_VERSION DIRECTORY   checks DIRECTORY/manifests.yaml, writes manifests.json
                                                           and, for custom resources, custom.ts
    check_manifests.py values CHART                        compares README.md with values.yaml
"""

import json
import re
import sys
from pathlib import Path

import kubernetes_validate
import yaml

# Kinds that Kubernetes itself does not have, and the module that describes them.
CUSTOM = {
    "HTTPRoute": "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute",
    "ServiceMonitor": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor",
}
LABELS = ("name", "instance", "version", "managed-by")
RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}


def schema_problems(manifests, version):
    for manifest in manifests:
        if manifest["kind"] in CUSTOM:
            continue
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{manifest['kind']}: {'.'.join(map(str, error.path))}: {error.message}"


def metadata_problems(manifests):
    for manifest in manifests:
        kind, metadata = manifest["kind"], manifest["metadata"]
        for label in LABELS:
            if f"app.kubernetes.io/{label}" not in metadata.get("labels", {}):
                yield f"{kind}: the label app.kubernetes.io/{label} is missing"
        if metadata.get("namespace") != "agents":
            yield f"{kind}: not in the namespace of the release"
        if kind == "Secret":
            yield "the chart creates a Secret"


def pod_specs(manifests):
    return [m["spec"]["template"]["spec"] for m in manifests if "template" in m.get("spec", {})]


def restricted_problems(manifests):
    """The profile `restricted` of the Pod Security Standards, and a read-only root file system."""
    specs = pod_specs(manifests)
    if not specs:
        yield "no pod"
    for spec in specs:
        pod = spec.get("securityContext", {})
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(field):
                yield field
        if pod.get("sysctls"):
            yield "sysctls"
        if spec.get("automountServiceAccountToken") is not False:
            yield "automountServiceAccountToken is not false"
        if spec.get("enableServiceLinks") is not False:
            yield "enableServiceLinks is not false"
        for volume in spec.get("volumes", []):
            for kind in volume.keys() - {"name"} - RESTRICTED_VOLUMES:
                yield f"volume {volume['name']}: {kind}"
        containers = [c for key in ("initContainers", "containers", "ephemeralContainers") for c in spec.get(key, [])]
        for container in containers:
            own = container.get("securityContext", {})
            name = container["name"]
            if own.get("allowPrivilegeEscalation") is not False:
                yield f"{name}: allowPrivilegeEscalation is not false"
            if own.get("privileged"):
                yield f"{name}: privileged"
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{name}: readOnlyRootFilesystem is not true"
            if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add"):
                yield f"{name}: capabilities are not dropped"
            if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
                yield f"{name}: runAsNonRoot is not true"
            if own.get("runAsUser", pod.get("runAsUser")) != 65532:
                yield f"{name}: runAsUser is not 65532"
            profile = own.get("seccompProfile", pod.get("seccompProfile", {}))
            if profile.get("type") not in ("RuntimeDefault", "Localhost"):
                yield f"{name}: seccompProfile"
            if own.get("procMount", "Default") != "Default":
                yield f"{name}: procMount"
            if any("hostPort" in port for port in container.get("ports", [])):
                yield f"{name}: hostPort"


def reference_problems(manifests):
    """Names that one manifest uses and another defines."""
    by_kind = {}
    for manifest in manifests:
        by_kind.setdefault(manifest["kind"], []).append(manifest)
    [service] = by_kind["Service"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    [workload] = by_kind.get("StatefulSet", []) + by_kind.get("Deployment", [])
    template = workload["spec"]["template"]
    labels = template["metadata"]["labels"]
    [container] = template["spec"]["containers"]
    container_ports = {port["name"] for port in container["ports"]}

    selectors = [("Service", service["spec"]["selector"]), (workload["kind"], workload["spec"]["selector"]["matchLabels"])]
    for kind, path in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        selectors += [(kind, m["spec"][path]["matchLabels"]) for m in by_kind.get(kind, [])]
    for kind, selector in selectors:
        if not selector.items() <= labels.items():
            yield f"{kind} does not select the pods"
    for monitor in by_kind.get("ServiceMonitor", []):
        if not monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items():
            yield "ServiceMonitor does not select the Service"
        if monitor["spec"]["endpoints"][0]["port"] not in ports:
            yield "ServiceMonitor names an unknown port"
    for port in service["spec"]["ports"]:
        if port["targetPort"] not in container_ports:
            yield f"the Service sends {port['name']} to an unknown port"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if container[probe]["httpGet"]["port"] not in container_ports:
            yield f"{probe} uses an unknown port"
    for policy in by_kind.get("NetworkPolicy", []):
        for rule in policy["spec"]["ingress"]:
            for port in rule["ports"]:
                if port["port"] not in container_ports:
                    yield f"NetworkPolicy names an unknown port {port['port']}"
    for ingress in by_kind.get("Ingress", []):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                if backend["name"] != service["metadata"]["name"] or backend["port"]["name"] not in ports:
                    yield f"Ingress: {path['path']} leads nowhere"
    for route in by_kind.get("HTTPRoute", []):
        for rule in route["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                if backend["name"] != service["metadata"]["name"] or backend["port"] not in ports.values():
                    yield "HTTPRoute leads nowhere"
    for scaler in by_kind.get("HorizontalPodAutoscaler", []):
        target = scaler["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) != (workload["kind"], workload["metadata"]["name"]):
            yield "HorizontalPodAutoscaler scales something else"
        if "replicas" in workload["spec"]:
            yield "the workload sets replicas although it is scaled"
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    if volumes != mounts:
        yield f"volumes and mounts differ: {sorted(volumes ^ mounts)}"


def write_custom(manifests, path):
    custom = [manifest for manifest in manifests if manifest["kind"] in CUSTOM]
    if not custom:
        return
    lines = [f'import {{ {kind}, type I{kind} }} from "{module}";' for kind, module in CUSTOM.items()]
    for number, manifest in enumerate(custom):
        lines.append(f"const m{number}: I{manifest['kind']} = {json.dumps(manifest)};")
        lines.append(f"new {manifest['kind']}(m{number}).validate();")
    path.write_text("\n".join(lines) + "\n")


def leaves(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def readme_problems(chart):
    values = set(leaves(yaml.safe_load((chart / "values.yaml").read_text())))
    _, _, table = (chart / "README.md").read_text().partition("\n## Values\n")
    documented = set(re.findall(r"^\| `([A-Za-z0-9.]+)`", table, re.MULTILINE))
    yield from (f"{name} is not in README.md" for name in sorted(values - documented))
    yield from (f"{name} is in README.md only" for name in sorted(documented - values))


def report(name, problems):
    problems = list(problems)
    print(f"{'FAIL ' if problems else 'ok   '} {name}", *(f"      {problem}" for problem in problems), sep="\n")
    return bool(problems)


def main():
    if sys.argv[1] == "values":
        sys.exit(report("values", readme_problems(Path(sys.argv[2]))))
    case, version, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    manifests = [m for m in yaml.safe_load_all((directory / "manifests.yaml").read_text()) if m]
    (directory / "manifests.json").write_text(json.dumps(manifests))
    write_custom(manifests, directory / "custom.ts")
    minor = version.rpartition(".")[0]
    failed = [
        report(f"{case}: {len(manifests)} manifests, schemas of Kubernetes {minor}", schema_problems(manifests, minor)),
        report(f"{case}: names and labels, Kubernetes {minor}", metadata_problems(manifests)),
        report(f"{case}: references, Kubernetes {minor}", reference_problems(manifests)),
        report(f"{case}: pod security restricted, Kubernetes {minor}", restricted_problems(manifests)),
    ]
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
