// Callbacks from senders made by others: the providers' own npm packages sign, or confirm what was signed as their
// documentation says, and the binary takes it, once; what was changed on the way it refuses, as those packages do.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';
import { senders } from '../senders/senders.mjs';

const require = createRequire(new URL('../senders/senders.mjs', import.meta.url));
const publicUrl = (preset) => `https://hooks.example.com/callbacks/${preset}`;
const githubSecret = 'a secret of a repository';

const stage = await Stage.begin({
  configure(config) {
    for (const { preset, secret, extract, signsUrl, events = { succeeded: 'complete' }, verify = {}, provider = {} } of senders) {
      config.providers[preset] = {
        verify: { scheme: preset, ...(secret === undefined ? {} : { secrets: [secret].flat() }), ...verify },
        ...(signsUrl ? { public_url: publicUrl(preset) } : {}),
        extract: extract ?? { request_id: '/request_id', idempotency_key: '/id', event: '/type' },
        events,
        workflow: 'fixture',
        unmatched: 'park',
        ...provider,
      };
    }
    config.providers['github-examples'] = {
      verify: { scheme: 'github', secrets: [githubSecret] },
      extract: {
        reference: '/repository/node_id',
        idempotency_key: { header: 'x-github-delivery', unsigned: 'accept' },
        event: { header: 'x-github-event', unsigned: 'accept' },
      },
      events: { ping: 'progress', push: 'complete' },
      workflow: 'fixture',
      unmatched: 'park',
    };
    config.limits = { ...config.limits, body: '2MiB' };
    return config;
  },
});
const { recibo } = stage;

const post = (preset, { headers, query = '', method = 'POST' }, body) =>
  recibo.raw({ method, target: `/callbacks/${preset}${query}`, headers: Object.entries(headers).flatMap(([name, value]) => [value].flat().map((v) => [name, v])), body });

describe('the packages of the providers', () => {
  for (const sender of senders) {
    test(sender.preset, async () => {
      const ids = { request: freshId(), event: freshId('evt') };
      const url = publicUrl(sender.preset);
      await recibo.accepted(ids.request, { provider: sender.preset, amount: undefined, currency: undefined });
      const body = await sender.body(ids);
      const request = await sender.send({ body, url, ids });
      if (sender.genuine) assert.equal(await sender.genuine({ body, ...request }, url), true, 'the package itself takes it');

      const changed = sender.tamper ? sender.tamper(body) : body.replace('succeeded', 'succeedeD');
      const forged = await post(sender.preset, request, changed);
      assert.equal(forged.status, 401, `${sender.preset}: a changed body`);

      const first = await post(sender.preset, request, body);
      if (sender.answer) assert.deepEqual([first.status, first.text, first.replayed], [...sender.answer, false]);
      else assert.deepEqual([first.status, first.json.disposition, first.replayed], [200, 'applied', false], first.text);
      const again = await post(sender.preset, request, body);
      assert.deepEqual([again.status, again.replayed, again.text], [first.status, true, first.text], 'its retry');
      assert.deepEqual((await recibo.deliveries(ids.request)).map(({ disposition }) => disposition), ['applied', 'duplicate']);
      assert.equal((await recibo.get(ids.request)).state, 'completed');
    });
  }
});

test('every example payload of GitHub, as its own package signs it', async () => {
  const examples = require('@octokit/webhooks-examples/api.github.com/index.json');
  const { sign } = await import('../senders/node_modules/@octokit/webhooks-methods/dist-node/index.js');
  let repositories = 0;
  let others = 0;
  for (const { name, examples: payloads } of examples) {
    for (const payload of payloads) {
      const body = JSON.stringify(payload, null, 2);
      const headers = {
        'Content-Type': 'application/json',
        'X-GitHub-Event': name,
        'X-GitHub-Delivery': freshId('gh'),
        'X-Hub-Signature-256': await sign(githubSecret, body),
      };
      const answer = await post('github-examples', { headers }, body);
      if (payload.repository?.node_id === undefined) {
        // About an organisation or an app: nothing names an operation here, which is said, and the body is kept.
        assert.equal(answer.status, 422, `${name}: ${answer.text}`);
        others += 1;
        continue;
      }
      repositories += 1;
      assert.ok([200, 202].includes(answer.status), `${name}: ${answer.status} ${answer.text}`);
      assert.equal((await recibo.storedBody(answer.json.delivery_id)).toString(), body, `${name}: the bytes as they came`);
    }
  }
  assert.ok(repositories > 100 && others > 10, `${repositories} and ${others} examples`);
});

stage.ends();
