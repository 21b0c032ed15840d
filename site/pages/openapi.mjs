// Reference pages of the REST and admin APIs, from the OpenAPI documents that the hub serves.

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** One page: every request with parameters, body, reply and errors, then the shared schemas. */
export function apiPage({ title, intro, document }) {
  const resolve = (node) => (node?.$ref ? node.$ref.slice(2).split('/').reduce((at, key) => at[key], document) : node);
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, ...item[method] })),
  );
  // Each tool and prompt has requests of its own; they differ only in body and result.
  const families = [
    { tag: 'tools', path: '/tools/{name}', heading: 'Call a tool', of: 'tool' },
    { tag: 'prompts', path: '/prompts/{name}', heading: 'Render a prompt', of: 'prompt' },
  ];
  const parts = [`# ${title}`, intro, document.info.description];
  const inFamily = (operation) => families.some(({ tag }) => operation.tags?.includes(tag));
  const single = operations.filter((operation) => !inFamily(operation) && !operation.operationId.endsWith('.definition'));
  for (const operation of single) parts.push(...operationPart(operation, resolve));
  for (const { tag, path, heading, of } of families) {
    const members = operations.filter((operation) => operation.tags?.includes(tag));
    if (members.length === 0) continue;
    parts.push(...operationPart({ ...members[0], path, summary: heading, description: '', requestBody: null }, resolve, of));
    parts.push(familyTable(members, of, resolve));
  }
  parts.push('## Errors', 'Errors are objects of the schema [Failure](#failure).', errorTable(document, resolve));
  parts.push('## Schemas');
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const isTool = /\.(input|output)$/.test(name);
    if (isTool && single.every((operation) => !JSON.stringify(operation.responses).includes(`/${name}"`))) continue;
    parts.push(`### ${name}`, schema.description ?? '', propertyTable(schema, resolve));
  }
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

function operationPart(operation, resolve, family) {
  const { method, path, summary, description, parameters = [], requestBody, responses } = operation;
  const parts = [`## \`${method.toUpperCase()} ${path}\``, `${summary}.`, description];
  if (operation.security?.length === 0) parts.push('Requires no token.');
  const rows = parameters.map(resolve).map(({ name, in: place, required, schema, description: text }) => [
    `\`${name}\``, place, typeOf(schema, resolve), required ? 'yes' : '', text,
  ]);
  if (family) rows.unshift(['`name`', 'path', 'string', 'yes', `Name of the ${family}, as the profile lists it.`]);
  if (rows.length) parts.push(table(['parameter', 'in', 'type', 'required', 'description'], rows));
  const body = requestBody?.content;
  if (body) {
    const [type, { schema }] = Object.entries(body)[0];
    parts.push(`**Request**: ${bodyText(type, schema, resolve)}`, propertyTable(resolve(schema), resolve));
  } else if (family) {
    parts.push(`**Request**: \`application/json\`, the arguments of the ${family} as an object.`);
  }
  const codes = Object.keys(responses);
  for (const code of codes.filter((code) => Number(code) < 400)) {
    const response = resolve(responses[code]);
    const content = Object.entries(response.content ?? {})[0];
    const schema = content && !family ? `. ${bodyText(content[0], content[1].schema, resolve)}` : family ? '. The reply is a [Reply](#reply).' : '';
    parts.push(`**Response ${code}**: ${`${response.description}${schema}`.replaceAll('..', '.')}`);
  }
  // A reply of 503 can belong to the request itself, as with /ready.
  const own = codes.filter((code) => Number(code) >= 400 && !responses[code].$ref);
  for (const code of own) parts.push(`**Response ${code}**: ${responses[code].description}`);
  const errors = codes.filter((code) => Number(code) >= 400 && responses[code].$ref);
  if (errors.length) parts.push(`**Errors**: ${errors.join(', ')}; see [errors](#errors).`);
  return parts;
}

function familyTable(members, of, resolve) {
  const rows = members.map(({ operationId, path, summary, requestBody }) => {
    const name = path.split('/').at(-1);
    if (of === 'tool') return [`[\`${name}\`](tools.md#${name})`, summary];
    const schema = resolve(resolve(Object.values(requestBody?.content ?? {})[0]?.schema ?? {}));
    const required = new Set(schema.required ?? []);
    const names = Object.keys(schema.properties ?? {}).map((key) => `\`${key}\`${required.has(key) ? ' (required)' : ''}`);
    return [`\`${name}\``, summary, names.join(', ')];
  });
  return table(of === 'tool' ? ['tool', 'purpose'] : ['prompt', 'purpose', 'arguments'], rows);
}

function errorTable(document, resolve) {
  const statuses = new Map();
  for (const item of Object.values(document.paths))
    for (const method of METHODS)
      for (const [code, response] of Object.entries(item[method]?.responses ?? {}))
        if (response.$ref) statuses.set(code, resolve(response).description);
  return table(['status', 'meaning'], [...statuses].sort().map(([code, text]) => [code, text]));
}

/** The members of an object, with those of nested objects as `a.b` and `a[].b`. */
function propertyTable(schema, resolve, depth = 3) {
  const rows = [];
  const walk = (node, prefix, left) => {
    const object = resolve(node) ?? {};
    const required = new Set(object.required ?? []);
    for (const [key, child] of Object.entries(object.properties ?? {})) {
      const name = `${prefix}${key}`;
      rows.push([`\`${name}\``, typeOf(child, resolve), required.has(key) ? 'yes' : '', resolve(child).description ?? '']);
      if (left > 1 && !child.$ref) walk(child.items && !child.items.$ref ? child.items : child, child.items ? `${name}[].` : `${name}.`, left - 1);
    }
  };
  walk(schema, '', depth);
  return rows.length ? table(['member', 'type', 'required', 'description'], rows) : '';
}

function bodyText(type, schema, resolve) {
  const text = schema ? typeOf(schema, resolve) : '';
  return `\`${type}\`${text && text !== 'string' ? `, ${text}` : ''}.`;
}

/** A schema in a few words, with links to the schemas of this page. */
function typeOf(schema, resolve) {
  if (!schema) return '';
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1);
    return `[${name}](#${name.toLowerCase().replaceAll('.', '')})`;
  }
  if (schema.allOf) {
    const [base, extra] = schema.allOf;
    const result = extra?.properties?.result;
    return `${typeOf(base, resolve)}${result ? `; \`result\` is ${typeOf(result, resolve)}` : ''}`;
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return alternatives.map((one) => typeOf(one, resolve)).join(' or ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {}, resolve) || 'any'}`;
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  return schema.type ?? 'any';
}

function table(head, rows) {
  const cell = (value) => String(value ?? '').replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');
  const keep = head.map((_, column) => rows.some((row) => row[column]));
  const line = (cells) => `| ${cells.filter((_, column) => keep[column]).map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
