import { describe, expect, it, vi } from 'vitest'
import { measureMessage } from '../../src/context/measureMessage.ts'
import type { ParsedMessage } from '../../src/domain/chat.ts'
import type { DerivedEntry, Json, Message } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { unpackPayload } from '../../src/domain/payload.ts'
import { createEmptyHead } from '../../src/domain/session.ts'
import { runSync } from '../../src/domain/work.ts'
import { createSecretMasker, normalizeMessageInSteps, type SecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { findMasks } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'

const [ann, bob, zeta] = [parseKey('acme:ann'), parseKey('acme:bob'), parseKey('zeta:ann')]
const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const other = 'AKIAIOSFODNN7Q2MPVLE'
const longCard = '4111222233334444122'
const newMasker = (policy: 'mask' | 'hide' | 'keep' = 'mask'): SecretMasker => createSecretMasker(policy, chars4)
const user = (content: string, fields: Partial<ParsedMessage> = {}): ParsedMessage => ({
  at: 1,
  role: 'user',
  content,
  ...fields,
})
const maskOf = async (masker: SecretMasker, value: string, key = ann): Promise<string> => {
  const [mark] = findMasks(await masker.maskText(key, value))
  return mark as string
}

describe('maskJson', () => {
  it.each([
    ['a password', 'passwords', 'wm7Fq2!'],
    ['a key', 'api_keys', 'k7Qz9wLm2Xv4Rt8B'],
    ['a card security code', 'cvv', '482'],
    ['a social security number', 'ssn', '219099999'],
  ])('with %s below ordinary names › masks it and nothing else', async (_, label, value) => {
    const masker = newMasker()
    const document = { [label]: { list: [{ owner: 'ann', place: 'Oslo', detail: { kind: 'x', text: value } }] } }
    const masked = JSON.stringify(await masker.maskJson(ann, document))
    const [mark = ''] = findMasks(masked)
    expect(masked).toBe(JSON.stringify(document).replace(`"${value}"`, `"${mark}"`))
    expect(mark).not.toBe('')
  })

  it('with numbers below a name › masks them as text', async () => {
    const masked = (await newMasker().maskJson(ann, { pins: [4_829, 12, 3.5] })) as { pins: Json[] }
    expect(masked.pins).toEqual([expect.stringMatching(/^⟨secret:\d+⟩$/), 12, 3.5])
  })

  it('without secrets › returns the same value', async () => {
    const document = { note: ['x', { a: 1, b: null, c: true }] }
    expect(await newMasker().maskJson(ann, document)).toBe(document)
  })

  it('with a secret in one place › keeps the other objects', async () => {
    const document = { a: { note: 'x' }, b: [secret, { c: 1 }], d: ['y'] }
    const masked = (await newMasker().maskJson(ann, document)) as typeof document
    expect([masked.a, masked.b[1], masked.d]).toEqual([document.a, document.b[1], document.d])
    expect([masked.a === document.a, masked.b[1] === document.b[1], masked.d === document.d]).toEqual([
      true,
      true,
      true,
    ])
  })

  it('nested deeper than 100 levels › throws', async () => {
    const nest = (levels: number): Json => (levels === 0 ? 'x' : [nest(levels - 1)])
    expect(await newMasker().maskJson(ann, nest(100))).toEqual(nest(100))
    await expect(newMasker().maskJson(ann, nest(101))).rejects.toMatchObject({
      code: 'bad-option',
      message: 'The JSON is nested deeper than 100 levels. Send deep data as text.',
    })
  })
})

describe('placeholders', () => {
  it('of one scope › are equal for equal secrets; of another scope or process › differ', async () => {
    const masker = newMasker()
    const mark = await maskOf(masker, secret)
    expect(await maskOf(masker, `Again: ${secret}`)).toBe(mark)
    expect(await maskOf(masker, secret, bob)).toBe(mark)
    expect(await maskOf(masker, other)).not.toBe(mark)
    expect(await maskOf(masker, secret, zeta)).not.toBe(mark)
    expect(await maskOf(newMasker(), secret)).not.toBe(mark)
  })

  it('beyond 2,000 secrets of one value › share one that is never restored', async () => {
    const masker = newMasker()
    const list = Array.from(
      { length: 2_003 },
      (_, index) => `ghp_${`Ab3dE7fGh1jKlMn0pQrStUvWx2Yz3456${10_000 + index}`.slice(-36)}`,
    )
    const masked = (await masker.maskJson(ann, list)) as string[]
    expect(masked.filter((mark) => mark === '⟨secret:0⟩').length).toBe(3)
    expect(masked.every((mark) => /^⟨secret:\d+⟩$/.test(mark))).toBe(true)
    expect(masker.knowsAll(ann, '⟨secret:0⟩')).toBe(false)
  })

  it('of two secrets with the same number › differ, and both are restored', async () => {
    const masker = newMasker()
    let signed = 0n
    vi.spyOn(crypto.subtle, 'sign').mockImplementation(async () => {
      const digest = new DataView(new ArrayBuffer(32))
      digest.setUint32(0, 7_000_005)
      digest.setBigUint64(8, 3_000_000_000_000n + ++signed)
      return digest.buffer
    })
    const masked = (await masker.maskJson(ann, [secret, other, secret])) as string[]
    expect(masked).toEqual(['⟨secret:5⟩', '⟨secret:2⟩', '⟨secret:5⟩'])
    expect(masked.map((mark) => masker.placeholdersOf(ann, mark === masked[0] ? secret : other))).toEqual(
      masked.map((mark) => [mark]),
    )
    vi.restoreAllMocks()
  })

  it('with the policy keep › are not used', async () => {
    const masker = newMasker('keep')
    const messages = [user(secret)]
    expect([
      await masker.maskText(ann, secret),
      await masker.maskJson(ann, [secret]),
      masker.maskMessages(ann, messages) === messages,
    ]).toEqual([secret, [secret], true])
    expect(() => masker.checkKey({ scope: secret as never, id: '' })).not.toThrow()
  })
})

describe('checkKey', () => {
  it.each([
    ['scope', { scope: secret, id: 'ann' }],
    ['session', { scope: 'acme', id: secret }],
    ['person', { scope: 'acme', id: `:person:${secret}` }],
  ])('with a secret as the %s › throws without the key', (part, key) => {
    expect(() => newMasker().checkKey(key as never)).toThrow(
      expect.objectContaining({
        code: 'bad-key',
        param: 'key',
        message: `The ${part} of the key looks like a secret. Names are stored unmasked: use one without a key, password or card number.`,
      }),
    )
  })

  it('with ordinary names › accepts them', () => expect(() => newMasker().checkKey(ann)).not.toThrow())
})

describe('the values of a session', () => {
  it('are known, found, dropped and moved by their placeholders', async () => {
    const masker = newMasker()
    expect([masker.hasValues(ann), masker.knowsAll(ann, 'no mask'), masker.placeholdersOf(ann, 'x')]).toEqual([
      false,
      true,
      [],
    ])
    const [one, two] = [await maskOf(masker, secret), await maskOf(masker, other)]
    expect([
      masker.hasValues(ann),
      masker.hasValues(bob),
      masker.knowsAll(ann, `${one} ${two}`),
      masker.knowsAll(ann, `${one} ⟨secret:1⟩`),
      masker.knowsAll(bob, one),
      masker.placeholdersOf(ann, secret.slice(4, 9).toUpperCase()),
      masker.placeholdersOf(ann, 'nowhere'),
    ]).toEqual([true, false, true, false, false, [one], []])
    masker.move(ann, bob)
    expect([masker.hasValues(ann), masker.knowsAll(bob, one + two)]).toEqual([false, true])
    masker.move(ann, bob)
    masker.dropPlaceholders(bob, [one])
    expect([masker.knowsAll(bob, one), masker.knowsAll(bob, two)]).toEqual([false, true])
  })

  it('of which there are many › are searched for a long text in linear time', async () => {
    const text = 'Long text. '.repeat(100_000)
    const cost = async (count: number): Promise<number> => {
      const masker = newMasker()
      const passwords = Array.from({ length: count }, (_, index) => `password: wm7Fq2xL${index}`)
      await masker.maskText(ann, passwords.join('\n'))
      return measureCpu(() => expect(masker.placeholdersOf(ann, text)).toEqual([]))
    }
    const [few, many] = [await cost(15), await cost(1_500)]
    expect(many).toBeLessThan(20 * Math.max(few, 5))
  })

  it('of a session without any › are dropped without an error', () => {
    expect(() => newMasker().dropPlaceholders(ann, ['⟨secret:1⟩'])).not.toThrow()
  })

  it('are dropped with their session or scope', async () => {
    const masker = newMasker()
    for (const key of [ann, bob, zeta]) await masker.maskText(key, secret)
    masker.drop(ann.scope, ann.id)
    expect([ann, bob, zeta].map((key) => masker.hasValues(key))).toEqual([false, true, true])
    masker.drop(ann.scope)
    expect([ann, bob, zeta].map((key) => masker.hasValues(key))).toEqual([false, false, true])
  })

  it('of many sessions, every other one moved › are dropped for the oldest beyond 16 MB', async () => {
    const masker = newMasker()
    const keys = Array.from({ length: 130 }, (_, index) => parseKey(`acme:ann-${index}`))
    for (const [index, key] of keys.entries()) {
      const from = index % 2 === 0 ? key : bob
      await masker.maskText(from, `token: k7Qz9wLm2Xv4Rt8B${'-'.repeat(63_000)}`)
      if (from === bob) masker.move(from, key)
    }
    expect(keys.map((key) => masker.hasValues(key))).toEqual(keys.map((_, index) => index >= 5))
  })

  it('that move to a session with values › are added to them', async () => {
    const masker = newMasker()
    const [one, two] = [await maskOf(masker, secret, ann), await maskOf(masker, other, bob)]
    masker.move(ann, bob)
    expect(masker.knowsAll(bob, one + two)).toBe(true)
  })
})

describe('restoring', () => {
  const original = user(`Use ${secret} now.`, {
    name: 'Ann',
    payload: { protocol: 'chat', items: [{ role: 'user', content: `Use ${secret} now.`, extra: [secret, 5] }] },
  })
  const toMessage = (message: ParsedMessage, sequence = 1): Message => ({
    ...measureMessage(chars4, message),
    weight: 3,
    kind: 'message',
    id: `m${sequence}`,
    sequence,
    offset: 7,
  })
  const call: ParsedMessage = {
    at: 1,
    role: 'assistant',
    content: '',
    toolCalls: [{ id: `c ${secret}`, name: `n ${secret}`, arguments: `{"a":"${secret}"}` }],
  }

  it('of a message › returns its texts and payload, counts again and keeps its weight', async () => {
    const masker = newMasker()
    for (const message of [original, call, user('Done.', { role: 'tool', toolCallId: `c ${secret}` })]) {
      const masked = toMessage(await masker.maskMessage(ann, message))
      expect(JSON.stringify(masked)).not.toContain(secret)
      const restored = masker.restoreMessage(ann, masked)
      expect(restored).toEqual(toMessage(message))
      if (message.payload !== undefined)
        expect(unpackPayload(restored.packedPayload ?? '', restored.content)).toEqual(message.payload)
    }
  })

  it('without values, in another session or without masks › returns the same message', async () => {
    const masker = newMasker()
    const masked = toMessage(await masker.maskMessage(ann, original))
    const plain = toMessage(user('Hello.'))
    expect([
      masker.restoreMessage(bob, masked) === masked,
      masker.restoreMessage(ann, plain) === plain,
      newMasker().restoreMessage(ann, masked) === masked,
    ]).toEqual([true, true, true])
  })

  it('with a policy other than mask › leaves the placeholders', async () => {
    const masker = newMasker('hide')
    const masked = toMessage(await masker.maskMessage(ann, original))
    expect([JSON.stringify(masked).includes(secret), masker.hasValues(ann)]).toEqual([false, false])
    expect(masker.restoreMessage(ann, masked)).toBe(masked)
  })

  it('of entries and heads › restores summaries, items and facts, and no others', async () => {
    const masker = newMasker()
    const mark = await maskOf(masker, secret)
    const base = { id: 'e', at: 1, sources: [] }
    const entries = (text: string) =>
      [
        {
          ...base,
          kind: 'summary',
          tier: 'hour',
          text,
          covers: [1, 1],
          endOffset: 1,
          version: 1,
          by: 'x',
          lossyRanges: [],
        },
        { ...base, kind: 'item', category: 'task', content: text, importance: 1, marked: false },
        { ...base, kind: 'fact', field: 'f', key: 'k', value: { a: [text] }, importance: 1 },
      ] as unknown as DerivedEntry[]
    const knowledge = {
      ...base,
      kind: 'knowledge',
      category: 'c',
      key: 'k',
      value: mark,
      confidence: 1,
      usedAt: 1,
    } as DerivedEntry
    const plain = entries('plain')[0] as DerivedEntry
    expect(entries(mark).map((entry) => masker.restoreEntry(ann, entry))).toEqual(entries(secret))
    expect([masker.restoreEntry(ann, knowledge), masker.restoreEntry(ann, plain)]).toEqual([knowledge, plain])
    expect(masker.restoreEntry(ann, plain)).toBe(plain)
    expect(masker.restoreEntry(bob, entries(mark)[0] as DerivedEntry)).toEqual(entries(mark)[0])
    const [masked, message] = [toMessage(await masker.maskMessage(ann, original)), toMessage(original)]
    const head = createEmptyHead(ann, 0)
    expect(
      runSync(
        masker.restoreHead({
          ...head,
          firstMessage: masked,
          lastUserMessage: masked,
          recent: [masked],
          derived: entries(mark),
        }),
      ),
    ).toEqual({ ...head, firstMessage: message, lastUserMessage: message, recent: [message], derived: entries(secret) })
    expect(runSync(masker.restoreHead(head))).toEqual(head)
  })
})

describe('maskMessages', () => {
  it('without secrets › returns the same messages at once', () => {
    const messages = [
      user('Hello.'),
      user('', { role: 'assistant', toolCalls: [{ id: 'c', name: 'n', arguments: '{}' }] }),
    ]
    expect(newMasker().maskMessages(ann, messages)).toBe(messages)
  })

  it('with a long text without secrets › returns the same messages, after pauses', async () => {
    let pauses = 0
    const pause = async () => void pauses++
    const messages = [user('My walrus is called Miso. '.repeat(8_000))]
    expect(await createSecretMasker('mask', chars4, pause).maskMessages(ann, messages)).toBe(messages)
    expect(pauses).toBeGreaterThan(1)
  })

  it.each<[string, Partial<ParsedMessage>]>([
    ['content', { content: secret }],
    ['name', { name: secret }],
    ['answered call', { role: 'tool', toolCallId: secret }],
    ['id of a call', { role: 'assistant', toolCalls: [{ id: secret, name: 'n', arguments: '{}' }] }],
    ['name of a call', { role: 'assistant', toolCalls: [{ id: 'c', name: secret, arguments: '{}' }] }],
    ['arguments of a call', { role: 'assistant', toolCalls: [{ id: 'c', name: 'n', arguments: `{"a":"${secret}"}` }] }],
    ['payload', { payload: { protocol: 'chat', items: [{ text: secret }] } }],
  ])('with a secret only in the %s › masks it and nothing else', async (_, fields) => {
    const message = user('Hello.', fields)
    const masked = JSON.stringify(await newMasker().maskMessage(ann, message))
    const [mark = ''] = findMasks(masked)
    expect(masked).toBe(JSON.stringify(message).replace(secret, mark))
    expect(mark).not.toBe('')
  })

  it('with arguments in which an escape precedes a secret › masks it', async () => {
    const masker = createSecretMasker('mask', chars4)
    const text = JSON.stringify({ text: 'Here is my credit card:\n2204 2853 3268 8545\nThanks' })
    const toolCalls = [{ id: 'c', name: 'n', arguments: text }]
    const masked = await masker.maskMessage(ann, user('', { role: 'assistant', toolCalls }))
    expect(masked.toolCalls?.[0]?.arguments).toMatch(/card:\\n⟨secret:\d+⟩\\nThanks/)
  })

  verifies(
    ['R-02', 'X-08'],
    'with arguments that are one string with an escape before a secret › masks it',
    async () => {
      const text = JSON.stringify('Here is my credit card:\n2204 2853 3268 8545\nThanks')
      const toolCalls = [{ id: 'c', name: 'n', arguments: text }]
      const masked = await newMasker().maskMessage(ann, user('', { role: 'assistant', toolCalls }))
      expect(masked.toolCalls?.[0]?.arguments).toMatch(/card:\\n⟨secret:\d+⟩\\nThanks/)
    },
  )

  verifies(['R-02', 'X-08'], 'with a card number that JSON numbers cannot hold › masks its text', async () => {
    const toolCalls = [{ id: 'c', name: 'n', arguments: `{"cards": [${longCard}]}` }]
    const masked = await newMasker().maskMessage(ann, user('', { role: 'assistant', toolCalls }))
    expect(masked.toolCalls?.[0]?.arguments).toMatch(/^\{"cards": \[⟨secret:\d+⟩\]\}$/)
  })

  it('with nested arguments in which only a name marks a secret › rewrites the arguments', async () => {
    const masker = newMasker()
    const mask = async (text: string): Promise<string> => {
      const toolCalls = [{ id: 'c', name: 'n', arguments: text }]
      const masked = await masker.maskMessage(ann, user('', { role: 'assistant', toolCalls }))
      return masked.toolCalls?.[0]?.arguments ?? ''
    }
    const nested = '{"pins": {"list": [{"owner": "ann", "detail": {"text": "4829"}}]}}'
    const masked = await mask(nested)
    expect(masked).toMatch(/^\{"pins":\{"list":\[\{"owner":"ann","detail":\{"text":"⟨secret:\d+⟩"\}\}\]\}\}$/)
    const note = 'My walrus is called Miso. '.repeat(15)
    for (const marked of [`{"pins": {"note": "${note}", "text": "4829"}}`, `{"pins": ["${note}", "4829"]}`]) {
      const compact = JSON.stringify(JSON.parse(marked))
      expect((await mask(marked)).replace(/⟨secret:\d+⟩/, '4829')).toBe(compact)
      expect(await mask(marked)).not.toContain('4829')
    }
    const spaced = `{"a": {"b": "${secret}"}}`
    expect(await mask(spaced)).toMatch(/^\{"a": \{"b": "⟨secret:\d+⟩"\}\}$/)
    for (const text of ['', '{', '[1, {"a": 2}]', '"text {"', `${'['.repeat(150)}${']'.repeat(150)}`])
      expect(await mask(text)).toBe(text)
  })
})

function normalizeMessage<T extends Parameters<typeof normalizeMessageInSteps>[0]>(message: T): T {
  const steps = normalizeMessageInSteps(message)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

describe('normalizeMessageInSteps', () => {
  it('with secrets or masks in any text › makes both equal', () => {
    const build = (value: string) => ({
      content: `a ${value}`,
      name: `b ${value}`,
      toolCallId: `c ${value}`,
      toolCalls: [{ id: `d ${value}`, name: `e ${value}`, arguments: `{"f":"${value}"}` }],
    })
    const expected = build('⟨secret:0⟩')
    expect([normalizeMessage(build(secret)), normalizeMessage(build('⟨secret:77⟩'))]).toEqual([expected, expected])
    expect(normalizeMessage({ content: 'plain' })).toEqual({ content: 'plain' })
  })
})
