// Evaluated once, before the program; the value is a function that prepares the globals and returns what the
// event loop calls.
(function (begin, emit, unknown, now, bindings) {
  "use strict";
  // What the program does to these globals later must not change what follows.
  const { Date, Error, Map, Promise, Proxy, Set, String, TypeError } = globalThis;
  const { defineProperty, freeze, fromEntries, keys } = Object;
  const { apply, construct } = Reflect;
  const { from: listOf, isArray } = Array;
  const { all } = Promise;
  const { stringify } = JSON;
  const pending = { __proto__: null };

  class ToolError extends Error {}
  defineProperty(ToolError.prototype, "name", { value: "ToolError", configurable: true, writable: true });

  function ofMap(map) {
    const entries = listOf(map);
    for (let i = 0; i < entries.length; i++) if (typeof entries[i][0] !== "string") return entries;
    return fromEntries(entries);
  }

  // Of these JSON would make `{}`.
  const replacer = (ofPromise) => (key, value) => {
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Promise) return ofPromise();
    if (value instanceof Map) return ofMap(value);
    return value instanceof Set ? listOf(value) : value;
  };
  const strict = replacer(() => {
    throw new TypeError("a promise is not a value yet; write `await` before the call, or `await Promise.all(list)` for a list of calls");
  });
  const lenient = replacer(() => "[a promise: write `await` before the call]");
  const encode = (value) => stringify(value, strict);

  // A list of calls is awaited as a single call is.
  async function finish(program) {
    const value = await program;
    if (!isArray(value)) return value;
    for (let i = 0; i < value.length; i++) if (value[i] instanceof Promise) return apply(all, Promise, [value]);
    return value;
  }

  // Created before the call, so that its stack names the line of the call.
  function call(name, args) {
    const failure = new ToolError();
    return new Promise((resolve, reject) => {
      const text = args === undefined ? "{}" : encode(args);
      pending[begin(String(name), text === undefined ? "null" : text)] = { __proto__: null, resolve, reject, failure };
    });
  }

  function settle(id, isOk, value) {
    const { resolve, reject, failure } = pending[id];
    delete pending[id];
    if (isOk) return resolve(value);
    const set = (key, value) =>
      defineProperty(failure, key, { __proto__: null, value, configurable: true, enumerable: key !== "message", writable: true });
    set("message", value.message);
    set("code", value.code);
    if (value.data !== undefined && value.data !== null) set("data", value.data);
    reject(failure);
  }

  // Members that the language or libraries look for on any object.
  const QUIET = { __proto__: null, then: 1, toJSON: 1, toString: 1, valueOf: 1, constructor: 1, inspect: 1 };

  function group(path, members) {
    return new Proxy(freeze(members), {
      __proto__: null,
      get(target, key) {
        if (typeof key === "symbol" || key in target || key in QUIET) return target[key];
        throw new ToolError(unknown(path + key));
      },
    });
  }

  function build(path, node) {
    const members = { __proto__: null };
    for (const key of keys(node.members)) members[key] = build(path + key + ".", node.members[key]);
    if (node.name === undefined) return group(path, members);
    const tool = (args) => call(node.name, args);
    for (const key of keys(members)) {
      defineProperty(tool, key, { __proto__: null, value: members[key], enumerable: true });
    }
    return freeze(tool);
  }

  const root = { __proto__: null, members: { __proto__: null } };
  for (let i = 0; i < bindings.length; i++) {
    const { name, path } = bindings[i];
    let at = root;
    for (let j = 0; j < path.length; j++) {
      at = at.members[path[j]] ??= { __proto__: null, members: { __proto__: null } };
    }
    at.name = name;
  }
  delete root.name;

  function show(value) {
    if (typeof value === "string") return value;
    try {
      if (value instanceof Error) return String(value);
      const text = stringify(value, lenient);
      return text === undefined ? String(value) : text;
    } catch {
      try {
        return String(value);
      } catch {
        return "[not printable]";
      }
    }
  }

  function print(...values) {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + show(values[i]);
    emit(line);
  }

  // The present is the time at which the program started, wherever it comes from.
  function StoppedDate(...values) {
    if (new.target === undefined) return new Date(now).toString();
    return construct(Date, values.length === 0 ? [now] : values, new.target);
  }
  StoppedDate.prototype = Date.prototype;
  defineProperty(Date.prototype, "constructor", { value: StoppedDate, configurable: true, writable: true });
  const hidden = (object, key, value) =>
    defineProperty(object, key, { __proto__: null, value, configurable: true, enumerable: false, writable: true });
  hidden(StoppedDate, "name", "Date");
  hidden(StoppedDate, "length", 7);
  hidden(StoppedDate, "now", () => now);
  hidden(StoppedDate, "parse", Date.parse);
  hidden(StoppedDate, "UTC", Date.UTC);

  hidden(globalThis, "Date", StoppedDate);
  hidden(globalThis, "performance", freeze({ now: () => 0, timeOrigin: now }));
  hidden(globalThis, "tools", build("", root));
  hidden(globalThis, "call", call);
  hidden(globalThis, "print", print);
  hidden(globalThis, "ToolError", ToolError);
  hidden(globalThis, "console", { log: print, info: print, warn: print, error: print, debug: print });
  return { __proto__: null, settle, encode, finish };
})
