// Senders made by others: each provider's own package signs a callback, or judges the one that was signed as its documentation
// says. What these packages call genuine, Recibo must take; what they refuse, it must refuse.
//
// A sender is {preset, secret, body(ids), send({body, url, ids}), genuine?(request, url), extract?, wrongSecret?}:
//   body     the provider's own kind of payload, as text; ids are {request, event}
//   send     its headers (and query), signed by the package, or with `sign` where the package only verifies
//   answer   [status, body] that the provider wants to hear, where it is not ours
//   genuine  the package's verdict on the request, for packages that verify
import { createHmac, createSign, generateKeyPairSync, randomUUID, sign as signWith } from 'node:crypto';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const sign = (algorithm, key, text, encoding) => createHmac(algorithm, key).update(text).digest(encoding);
const seconds = () => Math.floor(Date.now() / 1000);
const base64Secret = `whsec_${Buffer.from('thirty-two bytes of a test secret').toString('base64')}`;

const plain = ({ request, event }) => JSON.stringify({ id: event, type: 'succeeded', request_id: request, note: 'zażółć 😊 </>' });
const json = { 'Content-Type': 'application/json' };
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const twilioToken = '12345678901234567890123456789012';
const adyenKey = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056';
const discordKey = generateKeyPairSync('ed25519');
const sendgridKey = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const wiseKey = generateKeyPairSync('rsa', { modulusLength: 2048 });

export const senders = [
  {
    preset: 'stripe',
    secret: 'whsec_test_secret_of_an_endpoint',
    body: ({ request, event }) =>
      JSON.stringify({ id: event, object: 'event', type: 'succeeded', data: { object: { object: 'payment_intent', metadata: { request_id: request } } } }, null, 2),
    extract: { request_id: '/data/object/metadata/request_id', idempotency_key: '/id', event: '/type' },
    send({ body }) {
      const Stripe = require('stripe');
      return { headers: { ...json, 'Stripe-Signature': new Stripe('sk_test_x').webhooks.generateTestHeaderString({ payload: body, secret: this.secret }) } };
    },
    genuine({ body, headers }) {
      const Stripe = require('stripe');
      return new Stripe('sk_test_x').webhooks.constructEvent(body, headers['Stripe-Signature'], this.secret).object === 'event';
    },
  },
  {
    preset: 'standard-webhooks',
    secret: base64Secret,
    body: plain,
    send({ body, ids }) {
      const { Webhook } = require('standardwebhooks');
      const at = new Date();
      return {
        headers: {
          ...json,
          'webhook-id': ids.event,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': new Webhook(this.secret).sign(ids.event, at, body),
        },
      };
    },
    genuine: ({ body, headers }) => new (require('standardwebhooks').Webhook)(base64Secret).verify(body, headers).type === 'succeeded',
  },
  {
    preset: 'svix',
    secret: base64Secret,
    body: plain,
    send({ body, ids }) {
      const { Webhook } = require('svix');
      const at = new Date();
      return {
        headers: {
          ...json,
          'svix-id': ids.event,
          'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
          'svix-signature': new Webhook(this.secret).sign(ids.event, at, body),
        },
      };
    },
    genuine: ({ body, headers }) => new (require('svix').Webhook)(base64Secret).verify(body, headers).type === 'succeeded',
  },
  {
    preset: 'github',
    secret: 'a secret of a repository',
    body: plain,
    async send({ body }) {
      const octokit = await import('@octokit/webhooks-methods');
      return { headers: { ...json, 'X-GitHub-Event': 'ping', 'X-Hub-Signature-256': await octokit.sign(this.secret, body) } };
    },
    async genuine({ body, headers }) {
      return (await import('@octokit/webhooks-methods')).verify(this.secret, body, headers['X-Hub-Signature-256']);
    },
  },
  {
    preset: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: ({ request, event }) => JSON.stringify({ type: 'event_callback', event_id: event, event: { type: 'succeeded', request_id: request } }),
    extract: { request_id: '/event/request_id', idempotency_key: '/event_id', event: '/event/type' },
    send({ body }) {
      const at = String(seconds());
      return { headers: { ...json, 'X-Slack-Request-Timestamp': at, 'X-Slack-Signature': `v0=${sign('sha256', this.secret, `v0:${at}:${body}`, 'hex')}` } };
    },
    genuine({ body, headers }) {
      const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      require('@slack/bolt').verifySlackRequest({ signingSecret: this.secret, body, headers: { ...lower, 'x-slack-request-timestamp': Number(lower['x-slack-request-timestamp']) } });
      return true;
    },
  },
  {
    preset: 'shopify',
    secret: 'hush',
    body: plain,
    send({ body }) {
      return {
        headers: {
          ...json,
          'X-Shopify-Topic': 'orders/paid',
          'X-Shopify-API-Version': '2026-10',
          'X-Shopify-Shop-Domain': 'shop.myshopify.com',
          'X-Shopify-Webhook-Id': randomUUID(),
          'X-Shopify-Hmac-Sha256': sign('sha256', this.secret, body, 'base64'),
        },
      };
    },
    async genuine({ body, headers }) {
      await import('@shopify/shopify-api/adapters/node');
      const { shopifyApi, LogSeverity } = await import('@shopify/shopify-api');
      const shopify = shopifyApi({
        apiKey: 'k',
        apiSecretKey: this.secret,
        scopes: [],
        hostName: 'hooks.example.com',
        apiVersion: '2026-10',
        isEmbeddedApp: false,
        logger: { level: LogSeverity.Error, log: () => {} },
      });
      return (await shopify.webhooks.validate({ rawBody: body, rawRequest: { headers, method: 'POST', url: '/' } })).valid;
    },
  },
  {
    preset: 'square',
    secret: 'asdf1234_square',
    signsUrl: true,
    body: ({ request, event }) => JSON.stringify({ merchant_id: 'M1', type: 'succeeded', event_id: event, data: { id: request } }),
    extract: { request_id: '/data/id', idempotency_key: '/event_id', event: '/type' },
    send({ body, url }) {
      return { headers: { ...json, 'x-square-hmacsha256-signature': sign('sha256', this.secret, url + body, 'base64') } };
    },
    genuine({ body, headers }, url) {
      return require('square').WebhooksHelper.verifySignature({
        requestBody: body,
        signatureHeader: headers['x-square-hmacsha256-signature'],
        signatureKey: this.secret,
        notificationUrl: url,
      });
    },
  },
  {
    preset: 'paddle',
    secret: 'pdl_ntfset_01hv8x2axqfsq7zz3vyqq2h4pv_test',
    body: ({ request, event }) => JSON.stringify({ event_id: event, event_type: 'succeeded', occurred_at: '2026-10-01T10:00:00.000000Z', data: { id: request } }),
    extract: { request_id: '/data/id', idempotency_key: '/event_id', event: '/event_type', occurred_at: '/occurred_at' },
    send({ body }) {
      const at = seconds();
      return { headers: { ...json, 'Paddle-Signature': `ts=${at};h1=${sign('sha256', this.secret, `${at}:${body}`, 'hex')}` } };
    },
    genuine({ body, headers }) {
      const { Paddle } = require('@paddle/paddle-node-sdk');
      return new Paddle('key').webhooks.isSignatureValid(body, this.secret, headers['Paddle-Signature']);
    },
  },
  {
    preset: 'hubspot-v3',
    secret: 'client-secret-of-an-app',
    signsUrl: true,
    body: plain,
    send({ body, url }) {
      const { Signature } = require('@hubspot/api-client');
      const at = Date.now();
      const options = { signatureVersion: 'v3', clientSecret: this.secret, requestBody: body, url, method: 'POST', timestamp: at };
      return { headers: { ...json, 'X-HubSpot-Request-Timestamp': String(at), 'X-HubSpot-Signature-v3': Signature.getSignature('POST', 'v3', options) } };
    },
    genuine({ body, headers }, url) {
      return require('@hubspot/api-client').Signature.isValid({
        signatureVersion: 'v3',
        clientSecret: this.secret,
        requestBody: body,
        url,
        method: 'POST',
        timestamp: Number(headers['X-HubSpot-Request-Timestamp']),
        signature: headers['X-HubSpot-Signature-v3'],
      });
    },
  },
  {
    preset: 'razorpay',
    secret: 'razorpay-webhook-secret',
    body: plain,
    send({ body, ids }) {
      return { headers: { ...json, 'x-razorpay-event-id': ids.event, 'X-Razorpay-Signature': sign('sha256', this.secret, body, 'hex') } };
    },
    genuine({ body, headers }) {
      return require('razorpay').validateWebhookSignature(body, headers['X-Razorpay-Signature'], this.secret);
    },
  },
  {
    preset: 'coinbase-commerce',
    secret: 'shared-secret-of-commerce',
    body: ({ request, event }) => JSON.stringify({ id: 1, event: { id: event, type: 'succeeded', data: { metadata: { request_id: request } } } }),
    extract: { request_id: '/event/data/metadata/request_id', idempotency_key: '/event/id', event: '/event/type' },
    send({ body }) {
      return { headers: { ...json, 'X-CC-Webhook-Signature': require('coinbase-commerce-node').Webhook.computeSignature(body, this.secret) } };
    },
    genuine({ body, headers }) {
      require('coinbase-commerce-node').Webhook.verifySigHeader(body, headers['X-CC-Webhook-Signature'], this.secret);
      return true;
    },
  },
  {
    preset: 'linear',
    secret: 'lin_wh_test',
    body: ({ request, event }) => JSON.stringify({ action: 'succeeded', type: 'Issue', webhookId: event, webhookTimestamp: Date.now(), data: { id: request } }),
    extract: { request_id: '/data/id', idempotency_key: '/webhookId', event: '/action' },
    send({ body, ids }) {
      return { headers: { ...json, 'Linear-Delivery': ids.event, 'Linear-Event': 'Issue', 'Linear-Signature': sign('sha256', this.secret, body, 'hex') } };
    },
    genuine({ body, headers }) {
      const { LinearWebhookClient } = require('@linear/sdk/webhooks');
      return new LinearWebhookClient(this.secret).verify(Buffer.from(body), headers['Linear-Signature'], JSON.parse(body).webhookTimestamp);
    },
  },
  {
    preset: 'workos',
    secret: 'workos-endpoint-secret',
    body: ({ request, event }) => JSON.stringify({ id: event, event: 'succeeded', data: { id: request } }),
    extract: { request_id: '/data/id', idempotency_key: '/id', event: '/event' },
    async send({ body }) {
      const { WorkOS } = await import('@workos-inc/node');
      const at = Date.now();
      const signature = await new WorkOS('sk_test').webhooks.computeSignature(at, JSON.parse(body), this.secret);
      return { headers: { ...json, 'WorkOS-Signature': `t=${at}, v1=${signature}` } };
    },
    async genuine({ body, headers }) {
      const { WorkOS } = await import('@workos-inc/node');
      return new WorkOS('sk_test').webhooks.verifyHeader({ payload: JSON.parse(body), sigHeader: headers['WorkOS-Signature'], secret: this.secret });
    },
  },
  {
    preset: 'modern-treasury',
    secret: 'mt-webhook-key',
    body: plain,
    send({ body }) {
      return { headers: { ...json, 'X-Signature': this.client().webhooks.getSignature(body, { key: this.secret }) } };
    },
    genuine({ body, headers }) {
      return this.client().webhooks.validateSignature(body, headers, { key: this.secret });
    },
    client() {
      const ModernTreasury = require('modern-treasury');
      return new ModernTreasury({ apiKey: 'k', organizationID: 'o', webhookKey: this.secret });
    },
  },
  {
    preset: 'twilio',
    secret: twilioToken,
    signsUrl: true,
    body: ({ request, event }) => new URLSearchParams({ MessageSid: event, MessageStatus: 'succeeded', To: '+15005550006', Reference: request, Body: 'zażółć & co' }).toString(),
    extract: { request_id: { form: 'Reference' }, idempotency_key: [{ form: 'MessageSid' }, { form: 'MessageStatus' }], event: { form: 'MessageStatus' } },
    send({ body, url }) {
      const params = Object.fromEntries(new URLSearchParams(body));
      return { headers: { ...form, 'X-Twilio-Signature': require('twilio').getExpectedTwilioSignature(twilioToken, url, params) } };
    },
    genuine: ({ body, headers }, url) =>
      require('twilio').validateRequest(twilioToken, headers['X-Twilio-Signature'], url, Object.fromEntries(new URLSearchParams(body))),
  },
  {
    preset: 'adyen',
    secret: adyenKey,
    item: ({ request, event }) => ({
      amount: { currency: 'EUR', value: 1999 },
      eventCode: 'AUTHORISATION',
      eventDate: '2026-10-01T10:00:00+02:00',
      merchantAccountCode: 'TestMerchant',
      merchantReference: request,
      pspReference: event,
      success: 'true',
    }),
    body(ids) {
      const HmacValidator = require('@adyen/api-library').hmacValidator;
      const item = { ...this.item(ids), additionalData: {} };
      item.additionalData.hmacSignature = new HmacValidator().calculateHmac(item, adyenKey);
      return JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem: item }] });
    },
    extract: {
      request_id: '/notificationItems/0/NotificationRequestItem/merchantReference',
      idempotency_key: ['/notificationItems/0/NotificationRequestItem/pspReference', '/notificationItems/0/NotificationRequestItem/eventCode'],
      event: '/notificationItems/0/NotificationRequestItem/eventCode',
    },
    events: { AUTHORISATION: 'complete' },
    answer: [200, '[accepted]'],
    send: () => ({ headers: json }),
    genuine({ body }) {
      const HmacValidator = require('@adyen/api-library').hmacValidator;
      return new HmacValidator().validateHMAC(JSON.parse(body).notificationItems[0].NotificationRequestItem, adyenKey);
    },
    tamper: (body) => body.replace('1999', '1'),
  },
  {
    preset: 'discord',
    secret: discordKey.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex'),
    body: ({ request, event }) => JSON.stringify({ version: 1, application_id: '1', type: 1, event: { type: 'succeeded', id: event, data: { request_id: request } } }),
    extract: { request_id: '/event/data/request_id', idempotency_key: '/event/id', event: '/event/type' },
    answer: [204, ''],
    send({ body }) {
      const at = String(seconds());
      return { headers: { ...json, 'X-Signature-Timestamp': at, 'X-Signature-Ed25519': signWith(null, Buffer.from(at + body), discordKey.privateKey).toString('hex') } };
    },
    genuine({ body, headers }) {
      return require('discord-interactions').verifyKey(body, headers['X-Signature-Ed25519'], headers['X-Signature-Timestamp'], this.secret);
    },
  },
  {
    preset: 'sendgrid',
    secret: sendgridKey.publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    body: ({ request, event }) => `${JSON.stringify([{ email: 'a@example.com', event: 'succeeded', sg_event_id: event, request_id: request }])}\r\n`,
    extract: { request_id: '/0/request_id', idempotency_key: '/0/sg_event_id', event: '/0/event' },
    send({ body }) {
      const at = String(seconds());
      const signature = createSign('sha256').update(at + body).sign(sendgridKey.privateKey, 'base64');
      return { headers: { ...json, 'X-Twilio-Email-Event-Webhook-Timestamp': at, 'X-Twilio-Email-Event-Webhook-Signature': signature } };
    },
    genuine({ body, headers }) {
      const { EventWebhook } = require('@sendgrid/eventwebhook');
      const webhook = new EventWebhook();
      return webhook.verifySignature(webhook.convertPublicKeyToECDSA(this.secret), body, headers['X-Twilio-Email-Event-Webhook-Signature'], headers['X-Twilio-Email-Event-Webhook-Timestamp']);
    },
  },
  {
    preset: 'plivo-v3',
    secret: 'plivo-auth-token',
    signsUrl: true,
    body: ({ request, event }) => new URLSearchParams({ CallUUID: event, CallStatus: 'succeeded', Reference: request }).toString(),
    extract: { request_id: { form: 'Reference' }, idempotency_key: { form: 'CallUUID' }, event: { form: 'CallStatus' } },
    send({ body, url }) {
      const nonce = randomUUID();
      const fields = [...new URLSearchParams(body)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => name + value).join('');
      return { headers: { ...form, 'X-Plivo-Signature-V3-Nonce': nonce, 'X-Plivo-Signature-V3': sign('sha256', this.secret, `${url}?${fields}.${nonce}`, 'base64') } };
    },
    genuine({ body, headers }, url) {
      return require('plivo').validateV3Signature('POST', url, headers['X-Plivo-Signature-V3-Nonce'], this.secret, headers['X-Plivo-Signature-V3'], Object.fromEntries(new URLSearchParams(body)));
    },
  },
  {
    preset: 'wise',
    secret: wiseKey.publicKey.export({ format: 'pem', type: 'spki' }),
    body: plain,
    send({ body, ids }) {
      return { headers: { ...json, 'X-Delivery-Id': ids.event, 'X-Signature-SHA256': createSign('sha256').update(body).sign(wiseKey.privateKey, 'base64') } };
    },
  },
  {
    preset: 'docusign',
    secret: 'docusign-connect-key-1',
    body: ({ request, event }) => JSON.stringify({ event: 'succeeded', apiVersion: 'v2.1', uri: '/x', data: { envelopeId: event, request_id: request } }),
    extract: { request_id: '/data/request_id', idempotency_key: ['/data/envelopeId', '/event'], event: '/event' },
    // One header for each key of the account; ours is the third.
    send({ body }) {
      return {
        headers: {
          ...json,
          'X-DocuSign-Signature-1': sign('sha256', 'another key', body, 'base64'),
          'X-DocuSign-Signature-3': sign('sha256', this.secret, body, 'base64'),
        },
      };
    },
  },
  {
    preset: 'mollie',
    secret: 'mollie-signing-secret',
    body: plain,
    // For a day after a rotation the header stands twice.
    send({ body }) {
      return { headers: { ...json, 'X-Mollie-Signature': [`sha256=${sign('sha256', 'the new one', body, 'hex')}`, `sha256=${sign('sha256', this.secret, body, 'hex')}`] } };
    },
  },
  {
    preset: 'twitch',
    secret: 'twitch-eventsub-secret',
    body: ({ request, event }) => JSON.stringify({ subscription: { type: 'succeeded' }, event: { id: event, request_id: request } }),
    extract: { request_id: '/event/request_id', idempotency_key: '/event/id', event: '/subscription/type' },
    send({ body, ids }) {
      const at = new Date().toISOString().replace('Z', '000000Z');
      return {
        headers: {
          ...json,
          'Twitch-Eventsub-Message-Id': ids.event,
          'Twitch-Eventsub-Message-Timestamp': at,
          'Twitch-Eventsub-Message-Type': 'notification',
          'Twitch-Eventsub-Message-Signature': `sha256=${sign('sha256', this.secret, ids.event + at + body, 'hex')}`,
        },
      };
    },
  },
];
