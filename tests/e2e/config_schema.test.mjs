// config/recibo.schema.json against the loader: both must judge the same files equally. Structure is the schema's matter;
// what refers to what is the loader's alone (tests/data/config/beyond).
import Ajv from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { run, sourceFolder } from '../support/process.mjs';

const data = join(sourceFolder, 'tests', 'data', 'config');
const schema = JSON.parse(readFileSync(join(sourceFolder, 'config', 'recibo.schema.json'), 'utf8'));
const validate = new Ajv({ strict: true, strictRequired: false, strictTypes: false, allErrors: true }).compile(schema);
const folder = mkdtempSync(join(tmpdir(), 'rcb-schema-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const filesOf = (name) => readdirSync(join(data, name)).filter((file) => file.endsWith('.yaml')).map((file) => join(data, name, file));
const secret = `whsec_${Buffer.from('a secret of 32 bytes for testing').toString('base64')}`;
const env = {
  RECIBO_DATABASE_URL: 'postgresql:///recibo', ACME_SECRET: secret, LEDGER_SECRET: secret, STRIPE_SECRET: 'one', GITHUB_SECRET: 'two', LEGACY_SECRET: 'three',
  RECIBO_OPS_TOKEN_SHA256: 'a'.repeat(64), RECIBO_CHECKOUT_TOKEN_SHA256: 'b'.repeat(64),
};

// {fine, why} by the schema; YAML that cannot be parsed is not fine either.
function bySchema(text) {
  let value;
  try {
    value = parse(text);
  } catch (error) {
    return { fine: false, why: error.message };
  }
  return { fine: validate(value), why: JSON.stringify(validate.errors?.slice(0, 3)) };
}

async function byLoader(file) {
  const result = await run(['check', '--config', file], { env });
  assert.ok(result.code === 0 || result.code === 2, `${file}: exit ${result.code}\n${result.stdout}${result.stderr}`);
  if (result.code === 2) assert.ok(result.stdout.includes(`${file}:`), `${file}: a place is named\n${result.stdout}`);
  return { fine: result.code === 0, why: result.stdout };
}

// Judges many things at a time, in order.
async function each(list, judge) {
  let next = 0;
  const worker = async () => {
    while (next < list.length) await judge(list[next++]);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

for (const [name, expected] of [['good', [true, true]], ['bad', [false, false]], ['beyond', [true, false]]]) {
  test(`files that are ${name}: by schema ${expected[0]}, by loader ${expected[1]}`, async () => {
    const files = filesOf(name);
    assert.ok(files.length > 10, 'the table is there');
    await each(files, async (file) => {
      const [schemas, loaders] = [bySchema(readFileSync(file, 'utf8')), await byLoader(file)];
      assert.deepEqual([schemas.fine, loaders.fine], expected, `${file}\nschema: ${schemas.why}\nloader: ${loaders.why}`);
    });
  });
}

test('the shipped example and the fixture are good', async () => {
  for (const file of [join(sourceFolder, 'config', 'recibo.yaml'), join(data, 'fixture.yaml')]) {
    assert.deepEqual(bySchema(readFileSync(file, 'utf8')), { fine: true, why: undefined }, file);
    assert.equal((await byLoader(file)).fine, true, file);
  }
});

// Every change of one place in the example: to nothing, to another type, and a key beside it that nobody knows.
function* changes(root) {
  const places = [];
  const walk = (value, path) => {
    if (path.length > 0) places.push(path);
    if (Array.isArray(value)) value.forEach((item, i) => walk(item, [...path, i]));
    else if (value !== null && typeof value === 'object') for (const key of Object.keys(value)) walk(value[key], [...path, key]);
  };
  walk(root, []);
  const at = (tree, path) => path.reduce((node, key) => node[key], tree);
  for (const path of places) {
    const old = at(root, path);
    const replacements = [['nothing', null], ['a number', 7], ['a boolean', true], ['a word', 'x'], ['a list', [[]]], ['a map', { x: { x: {} } }]];
    for (const [what, value] of replacements) {
      if (typeof old === typeof value && Array.isArray(old) === Array.isArray(value) && value !== null) continue;
      const tree = structuredClone(root);
      at(tree, path.slice(0, -1))[path.at(-1)] = value;
      yield [`${path.join('/')} is ${what}`, tree];
    }
    const tree = structuredClone(root);
    if (old !== null && typeof old === 'object' && !Array.isArray(old)) {
      at(tree, path).unheard_of = {};
      yield [`${path.join('/')} has a key more`, tree];
    } else if (!Array.isArray(at(tree, path.slice(0, -1)))) {
      delete at(tree, path.slice(0, -1))[path.at(-1)];
      yield [`${path.join('/')} is left out`, tree];
    }
  }
}

test('a place of the example with another type, or an unknown key, is judged equally', async () => {
  const example = parse(readFileSync(join(sourceFolder, 'config', 'recibo.yaml'), 'utf8'));
  // One provider of each form, and one workflow, say as much as all of them.
  delete example.providers.stripe;
  delete example.providers.github;
  delete example.workflows.default;
  let [refusedByBoth, number] = [0, 0];
  await each([...changes(example)], async ([what, tree]) => {
    const text = stringify(tree, { lineWidth: 0 });
    const file = join(folder, `${number++}.yaml`);
    writeFileSync(file, text);
    const [schemas, loaders] = [bySchema(text), await byLoader(file)];
    // The loader may know more; it never lets through what the schema refuses.
    assert.ok(schemas.fine || !loaders.fine, `${what}: the schema refuses it, the loader does not: ${schemas.why}`);
    if (!schemas.fine) refusedByBoth += 1;
    const structural = / is (nothing|a list|a map)$/.test(what) && !/^(workflows|providers\/\w+\/limits)\/|\/(events|result)(\/[\w.]+)? is /.test(what);
    if (structural) assert.ok(!schemas.fine || loaders.fine, `${what}: the loader refuses it, the schema does not: ${loaders.why}`);
  });
  assert.ok(refusedByBoth > 300, `only ${refusedByBoth} changes were refused by both`);
});

test('every key of the schema has a description and stands in the example', () => {
  const example = readFileSync(join(sourceFolder, 'config', 'recibo.yaml'), 'utf8');
  // The full form of a scheme and the less usual statuses are the reference's matter, not the example's.
  const elsewhere = new Set(['kind', 'hash', 'key', 'content', 'replay_id', 'secrets', 'env', 'from', 'query', 'redundant', 'partial', 'duplicate', 'stale', 'review', 'applied', 'parked', 'ignored', 'unmapped', 'unknown_operation', 'hash_from', 'url_variants', 'body_hash', 'for_each', 'keys', 'required_components']);
  const walk = (node, path) => {
    for (const [key, value] of Object.entries(node.properties ?? {})) {
      const target = value.$ref ? schema.$defs[value.$ref.slice('#/$defs/'.length)] : value;
      assert.ok(value.description ?? target.description, `${path}/${key} has no description`);
      const known = /^(verify|.*\/(key|signature|timestamp|content|replay_id|hash_from|body_hash|keys))$/.test(path) || elsewhere.has(key);
      if (!known) assert.match(example, new RegExp(`\\b${key}\\b`), `${path}/${key} is not in the example`);
      walk(value, `${path}/${key}`);
    }
    for (const inner of [node.additionalProperties, node.items, ...(node.anyOf ?? [])]) if (inner && typeof inner === 'object') walk(inner, path);
  };
  walk(schema, '');
  for (const [name, node] of Object.entries(schema.$defs)) walk(node, name);
});

test('the binary prints the schema that is shipped', async () => {
  const printed = await run(['check', '--schema']);
  assert.equal(printed.code, 0);
  assert.deepEqual(JSON.parse(printed.stdout), schema);
});
