const form =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
  '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
  '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d' +
  '10d2c447fce8b6703c';

/** What services sign, with an example of each. */
export const schemes = [
  {
    name: 'GitHub, its documented example',
    options: { header: 'X-Hub-Signature-256', secrets: "It's a Secret to Everybody" },
    body: 'Hello, World!',
    headers: { 'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
    at: 0,
  },
  {
    name: 'Standard Webhooks, the example of its libraries',
    options: {
      header: 'webhook-signature',
      secrets: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      secretEncoding: 'base64',
      encoding: 'base64',
      signed: '{webhook-id}.{timestamp}.{body}',
      timestamp: 'webhook-timestamp',
    },
    body: '{"test": 2432232314}',
    headers: {
      'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'Webhook-Timestamp': '1614265330',
      'Webhook-Signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    at: 1_614_265_330_000,
  },
  {
    name: 'Slack, its documented example',
    options: {
      header: 'x-slack-signature',
      secrets: '8f742231b10e8888abcd99yyyzzz85a5',
      signed: 'v0:{timestamp}:{body}',
      timestamp: 'x-slack-request-timestamp',
    },
    body: form,
    headers: {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    at: 1_531_420_618_000,
  },
  {
    name: 'Stripe, a header that its library made',
    options: {
      header: 'stripe-signature',
      secrets: 'whsec_a_secret_of_a_test',
      timestamp: 't=',
    },
    body: '{"event":"transfer.success"}',
    headers: {
      'Stripe-Signature': 't=1614265330,v1=441be22783d5674457cc3fb856d1cabed70f0071ba212ab4cee37e384d7fcc9e',
    },
    at: 1_614_265_330_000,
  },
  {
    name: 'Paystack, a signature that OpenSSL made',
    options: { header: 'x-paystack-signature', secrets: 'sk_test_a_secret_of_a_test', algorithm: 'sha512' },
    body: '{"event":"transfer.success"}',
    headers: {
      'X-Paystack-Signature':
        '0546363b2ed53bb4eea4601e9028975f7711e54750e2ff078f4a6d547b8df65f' +
        'c50aba8096be37f3a9b880c8152ed7f1f16ceca1594896bb6de012fa8421d601',
    },
    at: 0,
  },
  {
    name: 'Shopify, a signature that OpenSSL made',
    options: { header: 'X-Shopify-Hmac-Sha256', secrets: 'shpss_a_secret_of_a_test', encoding: 'base64' },
    body: '{"event":"transfer.success"}',
    headers: { 'X-Shopify-Hmac-Sha256': 'EZ4+EFo0Obasiw1ezjNjZfXK+z//BfM7WEKFgVlhSto=' },
    at: 0,
  },
  {
    name: 'Square, a signature that OpenSSL made',
    options: {
      header: 'x-square-hmacsha256-signature',
      secrets: 'a_square_signature_key_of_a_test',
      encoding: 'base64',
      signed: 'https://merchant.example/callbacks/square{body}',
    },
    body: '{"event":"transfer.success"}',
    headers: { 'X-Square-HmacSha256-Signature': 'SWT8qffvUv/8Zrfl5cvuUSWZFFP90xnQ+sfvxZZezI8=' },
    at: 0,
  },
  {
    name: 'HubSpot, a signature that OpenSSL made',
    options: {
      header: 'x-hubspot-signature-v3',
      secrets: 'hubspot-client-secret-of-a-test',
      encoding: 'base64',
      timestamp: 'x-hubspot-request-timestamp',
      signed: 'POSThttps://merchant.example/callbacks/hubspot{body}{timestamp}',
    },
    body: '{"event":"transfer.success"}',
    headers: {
      'X-HubSpot-Request-Timestamp': '1671552777000',
      'X-HubSpot-Signature-v3': 'xyileIYAQ3lX2kEdTBm6R28Wh2jEd6m82iJsXBTsJgk=',
    },
    at: 1_671_552_777_000,
  },
] as const;
