import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'
import { cardNumbers, keyFormats, namedSecrets, type SecretFormat, statedSecrets } from './secretFormats.ts'

const mask = (text: string): string => {
  let masked = text
  for (const { start, end } of [...findSecrets(text)].reverse())
    masked = `${masked.slice(0, start)}⟨secret:123456⟩${masked.slice(end)}`
  return masked
}
/** Each secret found, as kind and text. */
const found = (text: string): string[] =>
  findSecrets(text).map(({ kind, start, end }) => `${kind} ${text.slice(start, end)}`)
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Surroundings of a secret. */
const surroundings: Readonly<Record<string, (secret: string) => string>> = {
  alone: (secret) => secret,
  'in a sentence': (secret) => `Use ${secret}, not the old one.`,
  'at the end of a sentence': (secret) => `The old one was ${secret}.`,
  'in brackets': (secret) => `It has expired (${secret}) I think`,
  'between backticks': (secret) => `Run it with \`${secret}\` again`,
  'in a tool result': (secret) => JSON.stringify({ stdout: `done\n${secret}\nnext`, code: 0 }),
  'in a tool result inside another': (secret) => JSON.stringify({ result: JSON.stringify({ stdout: secret }) }),
  'in .env': (secret) => `PORT=80\nexport SOMETHING=${secret}\nHOST=a`,
  'in YAML': (secret) => `a:\n  b: ${secret}\n  c: d\n`,
  'in code': (secret) => `const client = connect('${secret}', { retries: 3 })`,
  'in an address': (secret) => `https://example.org/a?k=${secret}&b=1`,
  'after an escaped space': (secret) => `curl -d 'h=x%20${secret}'`,
  'in colour': (secret) => `\u001b[32m${secret}\u001b[0m`,
  'after Chinese': (secret) => `钥匙是${secret}。`,
}

describe('findSecrets › known formats', () => {
  for (const [place, put] of Object.entries(surroundings))
    verifies('X-08', `finds a secret ${place}`, () => {
      const missed = keyFormats.filter(({ kind, secret }) => found(put(secret)).join() !== `${kind} ${secret}`)
      expect(missed.map(({ name, secret }) => [name, found(put(secret))])).toEqual([])
    })

  it('covers at least 60 formats', () => expect(keyFormats.length).toBeGreaterThanOrEqual(60))

  it('finds a secret between any words', () => {
    const words = fc.array(fc.stringMatching(/^[a-zA-Z]{1,10}[,.]?$/), { maxLength: 30 }).map((all) => all.join(' '))
    fc.assert(
      fc.property(fc.constantFrom(...keyFormats), words, words, ({ kind, secret }, before, after) => {
        expect(findSecrets(`${before} ${secret} ${after}`)).toEqual([
          { kind, start: before.length + 1, end: before.length + 1 + secret.length },
        ])
      }),
    )
  })

  it('rejects a value that is too short or inside a longer word', () => {
    const fixed = keyFormats.filter(({ name }) =>
      ['AWS access key id', 'Twilio', 'Mailgun', 'Databricks', 'Mailchimp', 'Airtable'].includes(name),
    )
    expect(
      fixed
        .flatMap(({ secret }) => [secret.slice(0, -1).replace(/-us1$/, '-us'), `a${secret}`, `${secret}z`])
        .flatMap(found),
    ).toEqual([])
  })
})

describe('findSecrets › named and stated secrets', () => {
  const all: readonly SecretFormat[] = [...namedSecrets, ...statedSecrets, ...cardNumbers]
  verifies('X-08', 'finds the value without its name, alone and within other text', () => {
    const texts = (text: string) => [text, `Hello there.\n${text}\nGood bye.`]
    const missed = all.flatMap(({ name, kind, secret, text }) =>
      texts(text)
        .filter((around) => found(around).join() !== `${kind} ${secret}`)
        .map(() => name),
    )
    expect(missed).toEqual([])
  })
  verifies('X-08', 'finds a secret in a tool result', () => {
    const missed = all.filter(
      ({ kind, secret, text }) => found(JSON.stringify({ stdout: text })).join() !== `${kind} ${escaped(secret)}`,
    )
    expect(missed.map(({ name, text }) => [name, found(JSON.stringify({ stdout: text }))])).toEqual([])
  })

  verifies('X-08', 'finds the lines of a private key in a listing, a diff and a comment', () => {
    const keyLines = [
      '-----BEGIN RSA PRIV',
      'MIIEowIBAAKCAQEA7bq2mPdR3xK9',
      'cGVtIGtleSBsaW5lIHR3byBoZXJl',
      '-----END RSA PRIV',
    ]
    const key = keyLines.map((line) => (line.startsWith('-') ? `${line}ATE KEY-----` : line))
    const write: readonly ((line: string, index: number) => string)[] = [
      (line, index) => `     ${index + 1}→${line}`,
      (line, index) => `     ${index + 1}\t${line}`,
      (line, index) => `${index + 1}: ${line}`,
      (line) => `-${line}`,
      (line) => `# ${line}`,
      (line) => `// ${line}`,
      (line) => ` * ${line}`,
      (line) => `| ${line} |`,
    ]
    const texts = [...write.map((writeLine) => key.map(writeLine).join('\n')), key.join('<br>'), key.join('%0A')]
    for (const text of [...texts, ...texts.map((one) => JSON.stringify({ stdout: one }))])
      for (const line of key.slice(1, 3)) expect([text, mask(text).includes(line)]).toEqual([text, false])
  })

  it('covers quotes, commas and brackets that are part of the value', () => {
    expect(found('PASSWORD=a,b;c)d&e')).toEqual(['password a,b;c)d&e'])
    expect(found('{"password": "a\\"b1c"}')).toEqual(['password a\\"b1c'])
    expect(found('{\\"password\\": \\"a\\\\\\"b1c\\", \\"x\\": 1}')).toEqual(['password a\\\\\\"b1c'])
    expect(found("password = 'it\\'s1', user = 'b'")).toEqual(["password it\\'s1"])
    expect(found('password: hunter2, user: ann')).toEqual(['password hunter2'])
  })

  it('finds a random value that has dots, as in a file name, and no member access', () => {
    const texts = ['password=Qk3jdhw82hd7sj7.txt', 'password: Xk29fQz81.LmW4', '/src/password=w8Fq2xL9vTz.ts']
    expect(texts.flatMap(found)).toEqual([
      'password Qk3jdhw82hd7sj7.txt',
      'password Xk29fQz81.LmW4',
      'password w8Fq2xL9vTz.ts',
    ])
    const code = ['config.oauth2ClientPassword', 'settings.db2.Password', 'Base64Utils.encodeToString', 'k8s.secretRef']
    expect(code.flatMap((value) => found(`password = ${value}`))).toEqual([])
  })
  it('covers values between quotes and signs that are escaped', () => {
    for (const text of [
      '{\\u0022password\\u0022:\\u0022wm7Fq2xL9\\u0022}',
      '{&quot;password&quot;:&quot;wm7Fq2xL9&quot;}',
      '%7B%22password%22%3A%22wm7Fq2xL9%22%7D',
      'https://example.org/?next=password%3Dwm7Fq2xL9',
    ])
      expect(mask(text)).not.toContain('wm7Fq2xL9')
  })
  it('covers values of any length', () => {
    for (const length of [499, 500, 501, 3_000]) {
      const long = 'aB3-'.repeat(length / 4 + 1).slice(0, length)
      for (const text of [`TOKEN=${long} x`, `api_key: "${long}"`, `PASSWORD=${long}\nPASSWORD=${long}`])
        expect(new Set(found(text).map((match) => match.split(' ')[1]))).toEqual(new Set([long]))
    }
  })
  it('finds both of two secrets', () => {
    expect(found('user=a&password=k1tten9&token=4f8a1c9d3e7b5a60&x=1')).toEqual([
      'password k1tten9',
      'token 4f8a1c9d3e7b5a60',
    ])
    expect(found(`4${'1'.repeat(15)} 123`)).toEqual([`card 4${'1'.repeat(15)}`])
    expect(found(`${cardNumbers[1]?.secret} ${cardNumbers[4]?.secret} CVV 123`)).toEqual([
      `card ${cardNumbers[1]?.secret}`,
      `card ${cardNumbers[4]?.secret}`,
      'password 123',
    ])
  })
  it('finds a value under each known name', () => {
    const names = [
      'password',
      'db_passwd',
      'Passwort',
      'pass',
      'DB_PASS',
      'pwd',
      'passcode',
      'passphrase',
      'contraseña',
      'mot de passe',
      'senha',
      'пароль',
      '密码',
      'パスワード',
    ]
    expect(names.filter((name) => found(`${name}: "k1tten99"`).join() !== 'password k1tten99')).toEqual([])
    const keys = [
      'secret',
      'API key',
      'apiKey',
      'access-key',
      'secretKey',
      'private_key',
      'auth_key',
      'accountKey',
      'encryption_key',
      'signingKey',
      'MASTER_KEY',
      'DD-APPLICATION-KEY',
      'Ocp-Apim-Subscription-Key',
      'consumer_key',
    ]
    expect(keys.filter((name) => found(`${name} = '4f8a1c9d3e7b5a60'`).join() !== 'key 4f8a1c9d3e7b5a60')).toEqual([])
    const endings = ['2', '_1', '_PROD', '_LIVE', '_TEST', '_DEV', '_VALUE']
    expect(endings.filter((ending) => found(`DB_PASSWORD${ending}=swordfish`).join() !== 'password swordfish')).toEqual(
      [],
    )
    const owners = ['for', 'to', 'of', 'on', 'at', 'in'].map((word) => `password ${word} the office is k1tten99`)
    expect(owners.filter((text) => found(text).join() !== 'password k1tten99')).toEqual([])
    const codes = [
      'PIN',
      'pin code',
      'PIN number',
      'OTP',
      'passcode',
      'security code',
      'one-time code',
      'verification code',
      '2FA code',
      'login code',
      'access code',
      'door code',
    ]
    expect(codes.filter((name) => found(`the ${name} is 482913`).join() !== 'password 482913')).toEqual([])
  })
  it('finds a password in the arguments of more programs, and a default of a variable', () => {
    const password = 'kT9vQ2zLm4Xw'
    const texts = [
      `unzip -P ${password} a.zip`,
      `keytool -list -storepass ${password}`,
      `cqlsh -u ann -p ${password} host`,
      `ipmitool -H host -U root -P ${password} power on`,
      `mosquitto_pub -u ann -P ${password} -t x`,
      `nxc smb 10.0.0.1 -u ann -p ${password}`,
      `evil-winrm -i 10.0.0.1 -u ann -p '${password}'`,
      String.raw`psexec \\host -u ann -p ${password} cmd`,
      `os.getenv("DB_PASSWORD", "${password}")`,
      `os.environ.get('DB_PASSWORD', '${password}')`,
      `Password [hidden]: ${password}`,
    ]
    expect(texts.filter((text) => found(text).join() !== `password ${password}`)).toEqual([])
    const key = 'NIOcX8ntEgcWKN9jzXWVVLCDomdeheuwiUmF7KUB'
    expect(found(`AWS Secret Access Key [None]: ${key}`).map((match) => match.split(' ')[1])).toEqual([key])
  })
  it('returns one match where two detectors agree', () =>
    expect(found(`PASSWORD="${keyFormats[0]?.secret}!"`)).toEqual([`password ${keyFormats[0]?.secret}!`]))
})

describe('findSecrets › no secret', () => {
  const x = 'x'.repeat(36)
  const cases: Readonly<Record<string, readonly string[]>> = {
    'a type': [':param Ed25519PrivateKey|Ed25519PublicKey key: to sign'],
    'a placeholder': [
      'OPENAI_API_KEY=your-api-key',
      'api_key = "<token>"',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's variable, as text
      'PASSWORD=${DB_PASSWORD}',
      'PASSWORD=$DB_PASSWORD',
      'password: {{ vault_password }}',
      `ghp_${x}`,
      `sk-${x}`,
      'PASSWORD=changeme',
      'PASSWORD=********',
      'TOKEN=...',
      'API_KEY=YOUR_API_KEY_HERE',
      `AKIAIOSFODNN7${'EXAMPLE'}`,
      'postgres://user:password@localhost/db',
      'https://user:<password>@host/',
      'curl -u user:your-password https://example.com',
      'Authorization: Bearer your-token-1-here',
    ],
    code: [
      'password: string',
      'token: Token',
      'password?: string | undefined',
      'secret = getSecret()',
      'const token = await issueToken(user1)',
      'token = process.env.TOKEN_2',
      'token: response.data.token2',
      "const secret = config['secret_2']",
      'password = request.form["password1"]',
      "type: 'password'",
      "password: 'string'",
      "{ password: 'required' }",
      'password: z.string().min(8)',
      "token: 'comma'",
      "token: 'identifierToken'",
      "token: 'v2'",
      "'password=' + password1 + '&x'",
      'max_tokens: 4096',
      'tokens: 120000',
      '"token_type": "bearer1234"',
      '"nextPageToken": "CAUQAA12345678"',
      'PWD=/home/ann/work2',
      'secret: /run/secrets/db',
      'docker run -u 1000:1000 a',
      "key.includes('-----BEGIN PRIVATE KEY-----') || key.includes('-----END PRIVATE KEY-----')",
      'npm_package_devDependencies_typescript npm_config_node_gyp_version_12',
      'import { sk-learn-based-classification-v2-of-things }',
      'token: requireCurrentKey',
      'secret = createPseudonymizer',
      'apiKey: updateOutputText,',
      'authKey = isEncryptedValue',
      'return { token: scanJsxAttributeValue, next }',
    ],
    'what is said about one': [
      'The password is required.',
      'the password is not set',
      'my password is wrong',
      'my password is not working!',
      'The password is case-sensitive.',
      'Your password is base64-encoded',
      'the password is 12 characters long',
      'The token is 4096 bytes',
      'password 2FA is on',
      'What is my password?',
      'The secret is out.',
      'Basic authentication-and-authorization2 is used',
      'The seed phrase is a list of words that the wallet shows you once and that you must never give away',
      'log in with email and password',
      'pin 13 is high, pin 7 is low',
      'The area code is 4152',
    ],
    'a number or a digest': [
      'commit 4f8a1c9d3e7b5a604f8a1c9d3e7b5a604f8a1c9d',
      'id 3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      '"integrity": "sha512-Kx3f9TnqzQYFSGg0zW1h6cUvVjYp4mPp2rQm8C0w3v0nB6cTq5lXl2oVtq3aXwYw0u1rjXk9mKqf3YxE2b8GzA=="',
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'call +49 176 1234 5678 or 0049 4111 111111',
      'at 1763215967123 and 1763215967123456',
      `order 1${'0'.repeat(14)}8, order 7992739871300003`,
      `4${'1'.repeat(14)}2`,
      `0.4${'1'.repeat(15)}`,
      `#4${'1'.repeat(15)}`,
      'IBAN DE89 3704 0044 0532 0130 00 and FR76 4242 4242 4242 4242 4242 424',
    ],
    masked: [
      'my password is ⟨secret:123456⟩',
      'TOKEN=⟨secret:123456⟩',
      'https://a:⟨secret:123456⟩@b/',
      '"password": "⟨secret:123456⟩"',
      'Cookie: sid=⟨secret:123456⟩',
    ],
  }
  it('ignores words that describe a password', () => {
    const words =
      'wrong strong correct undefined string number boolean unknown buffer plaintext secure unique random default visible current bearer private'
    const others =
      'changed missing readable invisible useful useless mandatory sensitive dangerous badly invalid optional different base64 sha256 md5hash utf8 8-20'
    for (const word of `${words} ${others}`.split(' ')) expect(found(`the password is ${word}.`)).toEqual([])
  })
  it('ignores words that stand for a password', () => {
    const words =
      'your-key example-1 placeholder1 changeme change-this replace_me redacted dummy-1 fake-key-1 here my-api-1 my_secret_1 my-token-1'
    const names =
      'password passwd pass pwd secret token string value username my-password testpassword newPassword wrong_password mysecretpassword api_key access_token'
    for (const word of `${words} ${names}`.split(' ')) expect(found(`PASSWORD="${word}"`)).toEqual([])
  })
  it('ignores cookie attributes', () =>
    expect(
      found(
        'Set-Cookie: lang=en1234; Path=/a/b1c2d3e4f5g6h7i8; Domain=a1.b2.c3.example.org; Max-Age=1234567; SameSite=Strict1234567890',
      ),
    ).toEqual([]))

  for (const [name, texts] of Object.entries(cases))
    it.each(texts)(`ignores ${name}: %j`, (text) => expect(found(text)).toEqual([]))
})

describe('findSecrets › matches', () => {
  const seconds = [
    ...keyFormats.map(({ secret }) => secret),
    ...[...namedSecrets, ...statedSecrets, ...cardNumbers].map(({ text }) => text),
  ]
  const between = fc.oneof(
    fc.constantFrom(
      ' ',
      '\n',
      ', ',
      '"',
      "'",
      '=',
      ':',
      '/',
      '-',
      '\\n',
      '; ',
      '',
      'password: ',
      'token=',
      '--secret ',
      ' is ',
      'Cookie: ',
      '⟨secret:123456⟩',
    ),
    fc.string({ maxLength: 6 }),
  )
  const text = fc
    .array(fc.oneof(fc.constantFrom(...seconds), between), { maxLength: 12 })
    .map((parts) => parts.join(''))

  it('returns one match per secret', () => {
    const [one = '', two = ''] = [cardNumbers[0]?.secret, keyFormats[1]?.secret]
    expect(found(`https://a:k1tten99@b.org/,${one},${two}`)).toEqual([
      'connection k1tten99',
      `card ${one}`,
      `key ${two}`,
    ])
  })
  it('returns ordered, disjoint, non-empty spans within the text', () => {
    fc.assert(
      fc.property(text, (whole) => {
        let reached = 0
        for (const { start, end } of findSecrets(whole)) {
          expect(start).toBeGreaterThanOrEqual(reached)
          expect(end).toBeGreaterThan(start)
          reached = end
        }
        expect(reached).toBeLessThanOrEqual(whole.length)
      }),
      { numRuns: 500 },
    )
  })

  verifies('X-08', 'finds nothing in masked text', () => {
    for (const one of seconds) expect(found(mask(one))).toEqual([])
    fc.assert(
      fc.property(text, (whole) => {
        expect(found(mask(whole))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })
})

describe('findSecrets › a long text with secret names but no secrets', () => {
  it('needs little more memory than the text', async () => {
    const secrets = new URL('../../src/text/secrets.ts', import.meta.url).href
    const code = `import(${JSON.stringify(secrets)}).then(({ findSecrets }) => process.exit(findSecrets('pwd '.repeat(1_000_000)).length === 0 ? 7 : 8))`
    const [exit] = await once(new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 48 } }), 'exit')
    expect(exit).toBe(7)
  })
})
