import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type MessageInput, openMemory } from '../../src/index.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'

const key = parseKey('acme:ann')
const secrets = [
  'sk-ant-api03-Ab3dE7fGh1jKlMn0pQrStUvWx2',
  'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890',
  'AKIAIOSFODNN7Q2MPVLE',
]
const newMasker = (pause?: () => Promise<void>) => createSecretMasker('mask', chars4, pause)

describe('masking of any JSON', () => {
  const word = fc.constantFrom('', 'a', 'note', 'password', 'tokens', 'x y', 'Miso', '⟨secret:12⟩', '"', '\\', '\n')
  const text = fc
    .array(fc.oneof({ weight: 3, arbitrary: word }, fc.constantFrom(...secrets)), { maxLength: 3 })
    .map((words) => words.join(' '))
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      text,
      fc.integer({ max: 99 }),
      fc.boolean(),
      fc.constant(null),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  })).value

  verifies(['R-02', 'X-08'], 'leaves no secret, is idempotent and keeps everything else', async () => {
    const masker = newMasker()
    await fc.assert(
      fc.asyncProperty(json, async (value) => {
        const masked = JSON.stringify(await masker.maskJson(key, value as never))
        for (const secret of secrets) expect(masked).not.toContain(secret)
        expect(JSON.stringify(await masker.maskJson(key, JSON.parse(masked)))).toBe(masked)
        if (
          !secrets.some((secret) => JSON.stringify(value).includes(secret)) &&
          !/pass|token/.test(JSON.stringify(value))
        )
          expect(masked).toBe(JSON.stringify(value))
      }),
      { seed: 18, numRuns: isCampaign ? 20_000 : 500 },
    )
  })
})

describe('field names below a secret name', () => {
  const values: Readonly<Record<string, (secret: string) => unknown>> = {
    'an object': (secret) => ({ password: { value: secret } }),
    'an object with several fields': (secret) => ({ password: { value: secret, hint: 'a tree', expires_at: 1 } }),
    'a nested object': (secret) => ({ login: { credentials: { password: { current: { plaintext: secret } } } } }),
    'a list of objects': (secret) => ({ passwords: [{ username: 'ann', plaintext: secret }] }),
    'an object after another field': (secret) => ({ user: 'ann', api_key: { production: secret, rotated: true } }),
  }
  const secret = 'hunter2abc!'

  for (const [name, create] of Object.entries(values))
    verifies(['R-02', 'X-08'], `of ${name} › are kept, and the value is masked`, async () => {
      const masked = JSON.stringify(await newMasker().maskJson(key, create(secret) as never))
      expect(masked.replaceAll(/⟨secret:\d+⟩/g, secret)).toBe(JSON.stringify(create(secret)))
      expect(masked).not.toContain(secret)
    })

  for (const [form, write] of Object.entries({
    compact: (value: unknown) => JSON.stringify(value),
    indented: (value: unknown) => JSON.stringify(value, undefined, 2),
    spaced: (value: unknown) => JSON.stringify(value).replaceAll(':', ': ').replaceAll(',', ', '),
    'in a string': (value: unknown) => JSON.stringify({ stdout: JSON.stringify(value, undefined, 2) }),
    'in code': (value: unknown) => `const config = ${JSON.stringify(value).replaceAll(/"(\w+)":/g, '$1: ')}`,
  }))
    verifies(['R-02', 'X-08'], `of JSON as text, ${form} › are kept, and the value is masked`, async () => {
      for (const create of Object.values(values)) {
        const text = write(create(secret))
        const masked = await newMasker().maskText(key, text)
        expect(masked.replaceAll(/⟨secret:\d+⟩/g, secret)).toBe(text)
        expect(masked).not.toContain(secret)
      }
    })

  verifies(['R-02', 'X-08'], 'with a short value that looks like a password › are kept, and it is masked', async () => {
    for (const create of [
      (value: string) => ({ password: { text: value } }),
      (value: string) => ({ secret: value }),
      (value: string) => ({ secret: [value] }),
      (value: string) => ({ client_secrets: [{ text: value }] }),
      (value: string) => ({ secret: { text: value } }),
    ])
      for (const value of ['wm7Fq2!', 'a1b2c#']) {
        const [document, masker] = [create(value), newMasker()]
        for (const masked of [
          JSON.stringify(await masker.maskJson(key, document as never)),
          await masker.maskText(key, JSON.stringify(document)),
        ]) {
          expect(masked).not.toContain(value)
          expect(masked.replaceAll(/⟨secret:\d+⟩/g, value)).toBe(JSON.stringify(document))
        }
      }
  })

  verifies(
    ['R-02', 'X-08'],
    'of a secret with a short word, path or version › are kept with their values',
    async () => {
      for (const value of ['santa', 'db-1', 'k8s/db', 'v1.2.3', 'abc123', 'a b1 c!', 'what?!', '12345!', 'a1!'])
        for (const document of [{ secret: value }, { secret: [value] }, { secret: { text: value } }])
          expect(await newMasker().maskText(key, JSON.stringify(document))).toBe(JSON.stringify(document))
      // Without quotes, code may stand in the place of the value; in data of a tokenizer, a token may have any signs.
      for (const text of ['secret: a1 && b', 'secret: wm7Fq2!', '{"token": "$1.5bn"}'])
        expect(await newMasker().maskText(key, text)).toBe(text)
    },
  )

  verifies(['R-02', 'X-08'], 'of a schema or a state › are kept with their values', async () => {
    for (const value of [
      { password: { type: 'string', minLength: 8, description: 'At least 8 characters' } },
      { password: { $ref: '#/components/schemas/Password' }, token: { expires_at: '2026-01-02T03:04:05Z' } },
      { properties: { api_key: { type: 'string' }, passwords: { type: 'array', items: { type: 'string' } } } },
    ])
      expect(await newMasker().maskText(key, JSON.stringify(value))).toBe(JSON.stringify(value))
  })

  verifies(['R-02', 'X-08'], 'that are secrets themselves › are masked', async () => {
    for (const token of secrets) {
      const masked = JSON.stringify(await newMasker().maskJson(key, { password: { [token]: { note: token } } }))
      expect(masked).not.toContain(token)
      expect(masked).toContain('"note"')
    }
  })
})

describe('a secret that is split over content parts', () => {
  const secret = secrets[0] as string
  const halves = [`Use ${secret.slice(0, 25)}`, `${secret.slice(25)} for it.`]
  const store = async (message: MessageInput): Promise<string> => {
    await using memory = await openMemory()
    await memory.append(key, [message])
    return JSON.stringify(await memory.transcript(key))
  }

  const payloads: Readonly<Record<string, MessageInput['payload']>> = {
    chat: { protocol: 'chat', items: [{ role: 'user', content: halves.map((text) => ({ type: 'text', text })) }] },
    responses: {
      protocol: 'responses',
      items: [{ type: 'message', role: 'user', content: halves.map((text) => ({ type: 'input_text', text })) }],
    },
    messages: {
      protocol: 'messages',
      items: [
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't', content: halves.map((text) => ({ type: 'text', text })) }],
        },
      ],
    },
  }
  for (const [protocol, payload] of Object.entries(payloads))
    verifies(['R-02', 'X-08'], `in the content and the payload of ${protocol} › is masked in both`, async () => {
      const content = halves.map((text) => ({ type: 'text', text }))
      const stored = await store({ role: 'user', content, ...(payload && { payload }) })
      expect([stored.includes(secret.slice(0, 25)), stored.includes(secret.slice(25))]).toEqual([false, false])
      expect(stored).toContain('for it.')
    })

  verifies(['R-02', 'X-08'], 'with its name in one part and the value in the next › is masked', async () => {
    const content = ['my password is', 'hunter2abc!'].map((text) => ({ type: 'text', text }))
    expect(await store({ role: 'user', content })).not.toContain('hunter2abc')
  })

  verifies(['R-02', 'X-08'], 'is complete in the first part › does not take the next part with it', async () => {
    const content = [`Use ${secret}`, 'Thanks for it'].map((text) => ({ type: 'text', text }))
    expect(await store({ role: 'user', content })).toContain('Thanks for it')
  })

  verifies(['R-02', 'X-08'], 'in nested tool-call arguments › is masked', async () => {
    const call = { id: 'c1', function: { name: 'run', arguments: '{"password":{"value":"hunter2abc!"}}' } }
    expect(await store({ role: 'assistant', content: '', tool_calls: [call] })).not.toContain('hunter2abc')
  })
})

describe('hostile JSON', () => {
  const nest = (levels: number, leaf: unknown): unknown => {
    let value = leaf
    for (let level = 0; level < levels; level++) value = { [`password${level}`]: value }
    return value
  }
  const size = 300_000
  const values: Readonly<Record<string, () => unknown>> = {
    'nested names': () => Array.from({ length: size / 1_000 }, (_, index) => nest(60, `v${index}`)),
    'a list below nested names': () =>
      nest(
        90,
        Array.from({ length: size / 8 }, (_, index) => `v${index}`),
      ),
    'many names': () => Object.fromEntries(Array.from({ length: size / 14 }, (_, index) => [`password${index}`, 1])),
    'one long name': () => ({
      ['secret'.repeat(size / 12)]: Array.from({ length: size / 16 }, (_, index) => `v${index}`),
    }),
    'deep lists': () => Array.from({ length: size / 190 }, () => JSON.parse('['.repeat(90) + ']'.repeat(90))),
    numbers: () => ({ pins: Array.from({ length: size / 7 }, (_, index) => 100_000 + index) }),
    secrets: () => Array.from({ length: size / 50 }, (_, index) => `sk-ant-api03-Ab3dE${index}fGh1jKlMn0pQrStUvWx2`),
  }
  for (const [name, create] of Object.entries(values))
    verifies(['R-02', 'R-03'], `of ${name} › is scanned in short slices`, async () => {
      const value = create() as never
      let [slices, from] = [0, process.threadCpuUsage()]
      const sliceMs: number[] = []
      const finishSlice = (): void => {
        const { user, system } = process.threadCpuUsage(from)
        sliceMs.push((user + system) / 1_000)
      }
      const masker = newMasker(async () => {
        slices++
        finishSlice()
        await new Promise((resume) => setImmediate(resume))
        from = process.threadCpuUsage()
      })
      await masker.maskJson(key, value)
      finishSlice()
      // About ten times the usual time, because machines differ and code is compiled during the first slices.
      expect(sliceMs.toSorted((a, b) => a - b).at(Math.floor(sliceMs.length * 0.9))).toBeLessThan(150)
      // A server pauses only where a turn of the event loop has taken long.
      expect(slices).toBeLessThan(2_000)
    })

  for (const [name, levels, isRefused] of [
    ['100', 100, false],
    ['101', 101, true],
    ['100,000', 100_000, true],
  ] as const)
    verifies(['R-02'], `of ${name} levels › is ${isRefused ? 'refused with bad-option' : 'masked'}`, async () => {
      const value = JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as never
      const masking = newMasker().maskJson(key, value)
      await (isRefused
        ? expect(masking).rejects.toMatchObject({ code: 'bad-option' })
        : expect(masking).resolves.toBe(value))
      await using memory = await openMemory()
      for (const write of [
        () => memory.remember('acme', { category: 'domain', key: 'a', value }),
        () => memory.setMetadata('acme:ann', { metadata: value }),
      ])
        if (isRefused) await expect(write()).rejects.toMatchObject({ code: 'bad-option' })
    })
})

describe('a key that is a secret', () => {
  const secret = secrets[1] as string

  it('is one', () => expect(findSecrets(secret).length).toBe(1))

  verifies(['R-02', 'X-08'], 'is refused without repeating it, and other keys are not', async () => {
    await using memory = await openMemory()
    const user = [{ role: 'user' as const, content: 'Hello.' }]
    for (const write of [
      () => memory.append(`acme:${secret}`, user),
      () => memory.append(`${secret}:ann`, user),
      () => memory.setMetadata('acme:ann', { person: secret }),
      () => memory.remember('acme', { category: 'domain', key: 'a', value: 1, person: secret }),
    ]) {
      const error = await write().then(
        () => undefined,
        (thrown: Error) => thrown,
      )
      expect(error).toMatchObject({ code: 'bad-key' })
      expect(error?.message).not.toContain(secret)
    }
    for (const id of ['+15551234567', 'ann@example.com', '20261117101335', crypto.randomUUID()])
      expect((await memory.append(`acme:${id}`, user)).length).toBe(1)
  })
})
