// /openapi.json is OpenAPI 3.1, complete, and true. (Each test file holds its own exchanges against it, too.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { Contract } from '../support/exchanges.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo } = stage;
const document = await recibo.openapi();
const contract = new Contract(document);
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const operations = Object.entries(document.paths).flatMap(([path, item]) => methods.filter((m) => item[m]).map((method) => ({ path, method, ...item[method] })));

test('the document is OpenAPI 3.1 in shape', () => {
  // The parts of the official 3.1 schema that a document like ours uses.
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats(ajv);
  const validate = ajv.compile({
    type: 'object',
    required: ['openapi', 'info', 'paths'],
    properties: {
      openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
      info: { type: 'object', required: ['title', 'version'], properties: { title: { type: 'string' }, version: { type: 'string' } } },
      paths: {
        type: 'object',
        propertyNames: { pattern: '^/' },
        additionalProperties: {
          type: 'object',
          additionalProperties: {
            anyOf: [{ type: ['string', 'array'] }, { $ref: '#/$defs/operation' }],
          },
        },
      },
      components: { type: 'object', propertyNames: { enum: ['schemas', 'responses', 'parameters', 'examples', 'requestBodies', 'headers', 'securitySchemes', 'links', 'callbacks', 'pathItems'] } },
    },
    $defs: {
      operation: {
        type: 'object',
        required: ['responses'],
        properties: {
          operationId: { type: 'string' },
          parameters: { type: 'array', items: { anyOf: [{ $ref: '#/$defs/reference' }, { $ref: '#/$defs/parameter' }] } },
          responses: { type: 'object', minProperties: 1, propertyNames: { pattern: '^([1-5][0-9][0-9]|[1-5]XX|default)$' }, additionalProperties: { anyOf: [{ $ref: '#/$defs/reference' }, { type: 'object', required: ['description'] }] } },
          requestBody: { anyOf: [{ $ref: '#/$defs/reference' }, { type: 'object', required: ['content'] }] },
          security: { type: 'array', items: { type: 'object' } },
        },
      },
      reference: { type: 'object', required: ['$ref'], properties: { $ref: { type: 'string', pattern: '^#/' } } },
      parameter: {
        type: 'object',
        required: ['name', 'in', 'schema'],
        properties: { in: { enum: ['path', 'query', 'header', 'cookie'] }, required: { type: 'boolean' } },
        if: { properties: { in: { const: 'path' } } },
        then: { required: ['required'], properties: { required: { const: true } } },
      },
    },
  });
  assert.ok(validate(document), ajv.errorsText(validate.errors));
});

test('every reference leads somewhere, and every schema compiles', () => {
  const walk = (node) => {
    if (node === null || typeof node !== 'object') return;
    if (typeof node.$ref === 'string') assert.ok(contract.resolve(node), node.$ref);
    for (const child of Object.values(node)) walk(child);
  };
  walk(document);
  assert.deepEqual(contract.compileAll(), []);
});

test('operation IDs are unique, and path parameters are declared', () => {
  const ids = operations.map((o) => o.operationId);
  assert.ok(ids.every((id) => typeof id === 'string' && id.length > 0), 'each has one');
  assert.equal(new Set(ids).size, ids.length);
  for (const { path, method, parameters = [] } of operations) {
    const declared = [...parameters, ...(document.paths[path].parameters ?? [])].map((p) => contract.resolve(p)).filter((p) => p.in === 'path').map((p) => p.name);
    const used = [...path.matchAll(/\{([^}]+)\}/g)].map((m) => m[1]);
    assert.deepEqual([...declared].sort(), [...used].sort(), `${method} ${path}`);
  }
});

test('it has the paths of the contract that this version serves', () => {
  for (const [method, path] of [
    ['post', '/v1/operations'], ['get', '/v1/operations'], ['get', '/v1/operations/{request_id}'], ['get', '/v1/operations/{request_id}/status'],
    ['get', '/v1/operations/{request_id}/timeline'], ['post', '/v1/operations/{request_id}/events'], ['get', '/v1/deliveries'], ['get', '/v1/deliveries/{id}'],
    ['get', '/v1/deliveries/{id}/payload'], ['get', '/v1/failed-callbacks'], ['post', '/v1/failed-callbacks/{id}/replay'], ['post', '/v1/failed-callbacks/replay'], ['post', '/v1/failed-callbacks/{id}/discard'], ['get', '/v1/reviews'], ['get', '/v1/reviews/{id}'], ['post', '/v1/reviews/{id}/assign'], ['post', '/v1/reviews/{id}/resolve'], ['post', '/v1/config/reload'], ['get', '/v1/config'],
    ['get', '/livez'], ['get', '/readyz'], ['get', '/metrics'], ['get', '/openapi.json'], ['post', '/callbacks/{provider}'],
  ]) {
    const same = Object.keys(document.paths).find((p) => p.replace(/\{[^}]+\}/g, '{}') === path.replace(/\{[^}]+\}/g, '{}'));
    assert.ok(same && document.paths[same][method], `${method.toUpperCase()} ${path}`);
  }
});

test('what is under /v1 needs a token and says so', async () => {
  for (const { path, method, responses } of operations.filter((o) => o.path.startsWith('/v1/'))) {
    for (const status of ['401', '403']) assert.ok(responses[status] ?? responses['4XX'] ?? responses.default, `${method} ${path} documents ${status}`);
    const target = path.replace(/\{[^}]+\}/g, 'x');
    const answer = await recibo.api(method.toUpperCase(), target, { token: null, body: method === 'get' ? undefined : {} });
    assert.equal(answer.status, 401, `${method} ${path} without a token`);
    const wrong = await recibo.api(method.toUpperCase(), target, { token: 'wrong', body: method === 'get' ? undefined : {} });
    assert.equal(wrong.status, 401, `${method} ${path} with a wrong token`);
  }
});

test('every path that can be read answers as documented', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk', reference: freshId('ref'), metadata: { order: 'A-1' }, deadline: '2030-01-01T00:00:00Z' });
  await recibo.event(id, { event: 'submitted' });
  const { json } = await recibo.callback('desk', callbackBody(id, '1'));
  await recibo.callback('desk', callbackBody(id, '1', 'failed'));
  await recibo.callback('desk', callbackBody(id, '2', 'failed'));
  await recibo.callback('desk', '{');
  const reviews = await recibo.list('/v1/reviews');
  const values = { request_id: id, id: json.delivery_id, provider: 'desk', name: 'desk' };
  for (const { path } of operations.filter((o) => o.method === 'get' && o.path !== '/v1/events')) {
    let target = path.replace(/\{([^}]+)\}/g, (_, name) => values[name] ?? 'x');
    if (/^\/v1\/reviews\/\{/.test(path)) target = `/v1/reviews/${reviews[0].review_id ?? reviews[0].id}`;
    if (path.startsWith('/callbacks')) continue;
    const answer = await recibo.api('GET', target, { token: 'root' });
    assert.ok(answer.status === 200 || answer.status === 404, `${target}: ${answer.status} ${answer.text.slice(0, 200)}`);
    assert.deepEqual(contract.complaints({ method: 'GET', target, status: answer.status, headers: answer.headers, body: answer.body }), []);
  }
});

test('requests that the document forbids are refused', async () => {
  const post = operations.find((o) => o.path === '/v1/operations' && o.method === 'post');
  const body = contract.resolve(post.requestBody).content['application/json'].schema;
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  ajv.addSchema(document, 'openapi');
  const validate = ajv.compile(body.$ref ? { $ref: `openapi${body.$ref}` } : body);
  const samples = [
    { provider: 'p1' }, { provider: 'p1', amount: '1.00', currency: 'EUR' }, { provider: 'p1', amount: 1.5, currency: 'EUR' }, { provider: 7 }, {},
    { provider: 'p1', colour: 'red' }, { provider: 'p1', metadata: [] }, { provider: 'p1', currency: 'euro', amount: '1' }, { provider: 'p1', deadline: 'tomorrow' },
    { provider: 'p1', request_id: 'a/b' }, { provider: 'p1', request_id: 'x'.repeat(256) }, { provider: 'p1', request_id: freshId() },
  ];
  for (const sample of samples) {
    const answer = await recibo.api('POST', '/v1/operations', { token: 'checkout', body: sample });
    if (validate(sample)) assert.equal(answer.status, 201, `${JSON.stringify(sample)} is as documented: ${answer.text}`);
    else assert.ok(answer.status === 400 || answer.status === 422, `${JSON.stringify(sample)} is not as documented: ${answer.status}`);
  }
});

stage.ends();
