"""Validates an SBOM against the CycloneDX schema and checks that it describes a whole graph."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1]).read()
if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
    sys.exit(f"{sys.argv[1]}: {error}")
bom = json.loads(text)
listed = {component["bom-ref"] for component in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
linked = {one for entry in bom["dependencies"] for one in entry["dependsOn"]}
assert len(listed) > 50 and linked <= listed, linked - listed
assert all("hashes" in one for one in bom["components"] if not one["name"].startswith(("octo-", "tools-")))
print(f"{len(bom['components'])} components")
