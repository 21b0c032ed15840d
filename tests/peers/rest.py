"""A client generated from the hub's OpenAPI document: requests, results and errors have types."""

import json
import sys

folder, base, token = sys.argv[1:]
sys.path.insert(0, folder)

from hub_client import AuthenticatedClient, Client  # noqa: E402
from hub_client.api.hub import hub_tools  # noqa: E402
from hub_client.api.tools import time_diff  # noqa: E402
from hub_client.models import Error, Failure, TimeDiffInput, TimeDiffOutput  # noqa: E402

client = AuthenticatedClient(base_url=base, token=token)
span = time_diff.sync(client=client, body=TimeDiffInput(start="2026-01-01", end="2026-12-25"))
assert span.success and isinstance(span.result, TimeDiffOutput), span

refused = time_diff.sync(client=client, body=TimeDiffInput(start="2026-01-01", end="someday"))
assert isinstance(refused, Failure) and isinstance(refused.error, Error), refused

unknown = hub_tools.sync_detailed(client=Client(base_url=base))
assert isinstance(unknown.parsed, Failure), unknown

print(json.dumps({"days": span.result.days, "refused": refused.error.kind, "unknown": int(unknown.status_code)}))
