// Every exchange that the tests make is written down, one JSON line each, and held against the service's own /openapi.json:
// the status is documented for that path and method, the body is valid under its schema, errors are RFC 9457 problems.
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { atExit } from './cleanup.mjs';

// RECIBO_TEST_ARTIFACTS keeps the file; else it goes with the process.
function folder() {
  if (process.env.RECIBO_TEST_ARTIFACTS) {
    mkdirSync(process.env.RECIBO_TEST_ARTIFACTS, { recursive: true });
    return process.env.RECIBO_TEST_ARTIFACTS;
  }
  const made = mkdtempSync(join(tmpdir(), 'rcb-ex-'));
  atExit(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export class Exchanges {
  constructor() {
    this.file = join(folder(), `exchanges-${process.pid}.jsonl`);
    this.count = 0;
  }

  add(listener, method, target, response) {
    this.count += 1;
    const line = { listener, method, target, status: response.status, headers: response.headers, body: response.body.toString('base64') };
    appendFileSync(this.file, `${JSON.stringify(line)}\n`);
  }

  all() {
    if (this.count === 0) return [];
    return readFileSync(this.file, 'utf8').trimEnd().split('\n').map((line) => {
      const exchange = JSON.parse(line);
      return { ...exchange, body: Buffer.from(exchange.body, 'base64') };
    });
  }
}

// RFC 9457 as the contract narrows it.
const problemSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'retryable'],
  properties: {
    type: { type: 'string', minLength: 1 },
    title: { type: 'string', minLength: 1 },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', pattern: '^[a-z][a-z0-9_]*$' },
    retryable: { type: 'boolean' },
    request_id: { type: 'string' },
    delivery_id: { type: 'string' },
    trace_id: { type: 'string', pattern: '^[0-9a-f]{32}$' },
  },
};

const pointerPart = (name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));

// Judges exchanges by an OpenAPI document.
export class Contract {
  #ajv;
  #paths;
  #compiled = new Map();

  constructor(document) {
    this.document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
    addFormats(this.#ajv);
    this.#ajv.addSchema(document, 'openapi');
    this.#paths = Object.keys(document.paths ?? {}).map((template) => ({
      template,
      // Literal segments win over parameters, as OpenAPI says.
      parameters: (template.match(/\{/g) ?? []).length,
      pattern: new RegExp(`^${template.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')}$`),
    }));
    this.#paths.sort((a, b) => a.parameters - b.parameters);
    this.problem = this.#ajv.compile(problemSchema);
  }

  // The path template of a request target, or undefined.
  template(target) {
    // A trailing slash may be the same resource; where it is, the same answers are documented.
    const path = target.split('?')[0].replace(/(?<=.)\/$/, '');
    return this.#paths.find(({ pattern }) => pattern.test(path))?.template;
  }

  // Follows a $ref within the document.
  resolve(node) {
    let at = node;
    for (let hops = 0; at?.$ref !== undefined; ++hops) {
      if (hops > 10 || !at.$ref.startsWith('#/')) throw new Error(`cannot follow ${at.$ref}`);
      at = at.$ref.slice(2).split('/').reduce((o, part) => o?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')], this.document);
    }
    return at;
  }

  #validator(pointer) {
    if (!this.#compiled.has(pointer)) this.#compiled.set(pointer, this.#ajv.compile({ $ref: `openapi#${pointer}` }));
    return this.#compiled.get(pointer);
  }

  // Compiles every schema of every answer and request, so that a broken one is found although no test met it.
  compileAll() {
    const complaints = [];
    const walk = (node, pointer) => {
      if (node === null || typeof node !== 'object') return;
      if (node.schema !== undefined) {
        try {
          this.#validator(`${pointer}/schema`);
        } catch (error) {
          complaints.push(`${decodeURIComponent(pointer)}: ${error.message}`);
        }
      }
      for (const [name, child] of Object.entries(node)) if (name !== 'schema') walk(child, `${pointer}/${pointerPart(name)}`);
    };
    walk(this.document.paths, '/paths');
    for (const name of Object.keys(this.document.components?.schemas ?? {})) {
      try {
        this.#validator(`/components/schemas/${pointerPart(name)}`);
      } catch (error) {
        complaints.push(`components/schemas/${name}: ${error.message}`);
      }
    }
    return complaints;
  }

  // What is wrong with an exchange, as sentences; an empty list: nothing.
  complaints({ method, target, status, headers, body }) {
    const out = [];
    const where = `${method} ${target.length > 120 ? `${target.slice(0, 120)}…` : target} → ${status}`;
    const say = (what) => out.push(`${where}: ${what}`);
    const value = (name) => headers.find(([n]) => n.toLowerCase() === name)?.[1];
    const type = (value('content-type') ?? '').split(';')[0].trim().toLowerCase();

    if (status >= 400 && method !== 'HEAD') {
      if (type !== 'application/problem+json') say(`an error of type ${JSON.stringify(type)}`);
      else {
        const problem = parse(body);
        if (problem === undefined) say('the problem is not JSON');
        else if (!this.problem(problem)) say(`not a problem: ${this.#ajv.errorsText(this.problem.errors)}`);
        else {
          if (problem.status !== status) say(`the problem says status ${problem.status}`);
          const retryable = status === 429 || status === 503;
          if (problem.retryable !== retryable && status !== 408) say(`retryable is ${problem.retryable}`);
        }
      }
      // What asks about readiness is no sender that would come again.
    if ((status === 503 || status === 429) && target !== '/readyz' && !/^[0-9]+$/.test(value('retry-after') ?? '')) say(`Retry-After is ${value('retry-after')}`);
      if (status === 405 && !value('allow')) say('no Allow');
      if (status >= 500 && status !== 503) say('no answer may be so');
    }
    const template = this.template(target);
    if (template === undefined) {
      if (status < 400) say('the path is not documented');
      return out;
    }
    const item = this.document.paths[template];
    const operation = item[method.toLowerCase()];
    if (operation === undefined) {
      if (status < 400) say('the method is not documented');
      return out;
    }
    const exact = operation.responses?.[String(status)] !== undefined ? String(status) : undefined;
    const key = exact ?? [`${Math.floor(status / 100)}XX`, 'default'].find((k) => operation.responses?.[k] !== undefined);
    if (key === undefined) {
      say(`the status is not documented (only ${Object.keys(operation.responses ?? {}).join(', ')})`);
      return out;
    }
    const response = this.resolve(operation.responses[key]);
    for (const [name, header] of Object.entries(response.headers ?? {})) {
      if (this.resolve(header).required && value(name.toLowerCase()) === undefined) say(`the header ${name} is missing`);
    }
    if (response.content === undefined || method === 'HEAD') {
      if (body.length > 0 && response.content === undefined) say('a body, and none is documented');
      return out;
    }
    if (body.length === 0 && (type === '' || status === 204)) return out;
    const media = Object.keys(response.content).find((m) => m.toLowerCase().split(';')[0] === type) ?? Object.keys(response.content).find((m) => m === '*/*');
    if (media === undefined) {
      say(`the type ${JSON.stringify(type)} is not documented (only ${Object.keys(response.content).join(', ')})`);
      return out;
    }
    if (!/json$/.test(type) || response.content[media].schema === undefined) return out;
    const parsed = parse(body);
    if (parsed === undefined) {
      say('the body is not JSON');
      return out;
    }
    const base = operation.responses[key].$ref?.slice(1) ?? `/paths/${pointerPart(template)}/${method.toLowerCase()}/responses/${key}`;
    const validate = this.#validator(`${base}/content/${pointerPart(media)}/schema`);
    if (!validate(parsed)) say(`the body is not valid: ${this.#ajv.errorsText(validate.errors)}: ${body.toString('utf8').slice(0, 300)}`);
    return out;
  }
}

function parse(body) {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
