// A client generated from the hub's OpenAPI document: what it says of requests and replies holds.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

declare const process: { argv: string[] };

const [, , baseUrl, token] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const span = await client.POST("/tools/time_diff", { body: { start: "2026-01-01", end: "2026-12-25" } });
if (!span.data?.success || !span.data.result) throw new Error(JSON.stringify(span));
const days: number = span.data.result.days;
// @ts-expect-error: the result has no such member
void span.data.result.fortnights;

// @ts-expect-error: start is a text, and end is missing
const refused = await client.POST("/tools/time_diff", { body: { start: { year: 2026 } } });
const kind: components["schemas"]["Error"]["kind"] | undefined = refused.error?.error.kind;

const stranger = createClient<paths>({ baseUrl });
const unknown = await stranger.GET("/tools");

console.log(JSON.stringify({ days, refused: kind, unknown: unknown.response.status }));
