import { describe, expect, it } from 'vitest'
import type { DerivedEntry } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { formatKey, parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import type { LineBody } from '../../src/portable/chain.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { parseBodies, sealBundle } from './sealBundle.ts'

const at = 1_763_000_000_000
const budget = 1_000
const sources = [{ message: 'm1', span: [0, 4] as const }]
const entries: readonly DerivedEntry[] = [
  { kind: 'about', id: 'about', at, idle: 9_000_000, person: 'ann', metadata: { a: 1 }, sources: [] },
  { kind: 'fact', id: 'f1', at, field: 'key_decisions', key: 'pet', value: 'walrus', importance: 5, sources },
  { kind: 'item', id: 'i1', at, category: 'task', content: 'Feed it.', importance: 5, marked: false, sources },
  {
    kind: 'knowledge',
    id: 'k1',
    at,
    category: 'domain',
    key: 'hours',
    value: { open: [9, 17] },
    confidence: 0.9,
    usedAt: at,
    sources,
  },
  { kind: 'notes', id: 'n1', at, facts: 1, lease: { holder: 'x', until: at + 1_000 }, sources: [] },
  {
    kind: 'summary',
    id: 's1',
    at,
    tier: 'progressive',
    text: 'Ann has a walrus.',
    covers: [1, 2],
    endOffset: 20,
    version: 1,
    by: 'builtin',
    sources,
    lossyRanges: [[1, 1]],
  },
]

/** Lines of a genuine bundle, without their hashes. */
async function createBodies(): Promise<LineBody[]> {
  const store = ramStore()
  await using memory = await openMemory({ store, clock: () => at, upkeep: false })
  await memory.append('acme:ann', [
    { role: 'user', content: `My walrus is called Miso. ${'It swims far out every day. '.repeat(300)}`, name: 'Ann' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'Found.' },
    {
      role: 'assistant',
      content: 'A fine name.',
      payload: { protocol: 'chat', items: [{ role: 'assistant', content: 'A fine name.' }] },
    },
    { role: 'user', content: 'What is it called?' },
  ])
  const key = parseKey('acme:ann')
  const { epoch } = await store.readHead(key, 0)
  const append = [
    newMessage('Named.', { at, externalId: 'named-1' }),
    newMessage('Named.', { at, externalId: 'named-2' }),
  ]
  await store.commit({ key, at, epoch, append, put: entries, drop: [], expiresAt: noExpiry })
  await store.appendRecord(key, { id: 'r1', at, body: '{"a":1}' }, 9)
  await store.table.writeRows('acme', at, [
    { namespace: ['cats'], key: 'Miso', value: { age: 3 } },
    { namespace: ['cats', 'photos'], key: 'Miso', value: Uint8Array.of(1, 2) },
  ])
  return parseBodies(await readAll(memory.export()))
}

const numbers = [0, -1, 1.5, 2 ** 31, 2 ** 40 - 1, 2 ** 53 - 1, 1e300, -1e300, '5', null]
const texts = [
  '',
  'm1',
  '#key',
  '__proto__',
  '../x',
  'acme:bob',
  'beta:bob',
  '\u0000',
  'o200k_base',
  'named-1',
  '["cats","photos","Miso"]',
  'x'.repeat(9_999),
  7,
  null,
]

/** Every value of a body replaced by each hostile one, and every field removed. */
function* mutate(value: unknown): Generator<unknown> {
  if (typeof value === 'number') yield* numbers
  else if (typeof value === 'string') yield* texts
  else if (Array.isArray(value)) {
    yield []
    for (const [index, inner] of value.entries()) for (const mutated of mutate(inner)) yield value.with(index, mutated)
  } else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) {
      const { [name]: _, ...others } = value as Record<string, unknown>
      yield others
      for (const mutated of mutate(inner)) yield { ...value, [name]: mutated }
    }
}

async function openTarget(): Promise<Memory> {
  const memory = await openMemory({ clock: () => at + 5_000, upkeep: false })
  await memory.append('beta:bob', [{ role: 'user', content: 'Only mine.' }])
  return memory
}

const exportOf = async (memory: Memory, options = {}) => (await readAll(memory.export(options))).toString()

async function listKeys(memory: Memory): Promise<readonly string[]> {
  const sessions = await internalsOf(memory).store.list({ limit: 99 })
  return sessions.map(({ key }) => formatKey(key))
}

/** Imports a bundle; it is refused without a trace, or everything works afterwards. Returns the outcome. */
async function tryImport(bundle: Buffer): Promise<string> {
  await using memory = await openTarget()
  const [before, beta] = [await exportOf(memory), await exportOf(memory, { scope: 'beta' })]
  try {
    await memory.import(openChunks(bundle))
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    expect(await exportOf(memory)).toBe(before)
    return error.code
  }
  const key = (await listKeys(memory)).find((name) => name !== 'beta:bob') ?? 'acme:ann'
  await expectWorking(memory, key)
  expect(await exportOf(memory, { scope: 'beta' })).toBe(beta)
  return 'imported'
}

async function expectWorking(memory: Memory, key: string): Promise<void> {
  const tokenizer = await exactTokenizer('o200k_base')
  const isMoved = (error: unknown): boolean => error instanceof MemoryError && error.code === 'moved'
  const appended = await memory
    .append(key, [{ role: 'user', content: 'Goes on with Zanzibar.' }])
    .catch((error: unknown) => (isMoved(error) ? undefined : Promise.reject(error)))
  const { messages } = await memory.context(key, { budget, query: 'walrus' })
  const tokens = messages.reduce((sum, { content }) => sum + tokenizer.count(content ?? ''), 0)
  expect(tokens).toBeLessThanOrEqual(budget)
  if (appended !== undefined) expect(JSON.stringify(messages)).toContain('Zanzibar')
  await memory.search(key.split(':')[0] ?? '', 'walrus')
  await exportOf(memory)
  await memory.forget({ key })
}

describe('importBundle with a forged bundle', () => {
  verifies('R-04', 'with token counts of 0 › counts again and keeps the budget', async () => {
    await using source = await openMemory({ clock: () => at, upkeep: false })
    const content = (number: number): string => `${number}. ${'The walrus swims far out every day. '.repeat(30)}`
    await source.append(
      'acme:ann',
      Array.from({ length: 40 }, (_, number) => ({ role: 'user' as const, content: content(number) })),
    )
    const bodies = parseBodies(await readAll(source.export())).map((body) =>
      'message' in body ? { message: { ...(body.message as object), tokens: 0, lineTokens: 0, weight: 0 } } : body,
    )
    expect(await tryImport(sealBundle(bodies))).toBe('imported')
  })

  it('without the value of a fact › is refused', async () => {
    const bodies = (await createBodies()).map((body) => {
      const { value: _, ...entry } = 'entry' in body ? (body.entry as Record<string, unknown>) : {}
      return 'entry' in body ? { entry } : body
    })
    expect(await tryImport(sealBundle(bodies))).toBe('bad-bundle')
  })

  verifies('R-04', 'with the highest possible sequence number › is refused, with the line', async () => {
    const bodies = (await createBodies()).map((body) =>
      'session' in body ? { session: { ...(body.session as object), last: Number.MAX_SAFE_INTEGER } } : body,
    )
    await using memory = await openTarget()
    await expect(memory.import(openChunks(sealBundle(bodies)))).rejects.toMatchObject({
      code: 'bad-bundle',
      param: 'line 2',
      message: expect.stringContaining('session.last is 9007199254740991; it must be a whole number from 0 to'),
    })
  })

  verifies(
    'R-04',
    'with more metadata than a session may have › is refused, with the record and the limit',
    async () => {
      const withMetadata = async (metadata: unknown) =>
        (await createBodies()).map((body) =>
          (body.entry as { kind?: string } | undefined)?.kind === 'about'
            ? { entry: { ...(body.entry as object), metadata } }
            : body,
        )
      expect(await tryImport(sealBundle(await withMetadata({ text: 'a'.repeat(65_500) })))).toBe('imported')
      for (const metadata of [{ text: 'a'.repeat(65_537) }, { texts: Array(65_536).fill('') }]) {
        await using memory = await openTarget()
        await expect(memory.import(openChunks(sealBundle(await withMetadata(metadata))))).rejects.toMatchObject({
          code: 'bad-bundle',
          message: expect.stringContaining('entry.metadata has more than 65,536 characters as JSON'),
        })
        expect(await listKeys(memory)).toEqual(['beta:bob'])
      }
    },
  )

  verifies(
    'R-04',
    'with any field changed › is refused and changes nothing, or everything works afterwards',
    async () => {
      const bodies = await createBodies()
      const outcomes = new Map<string, number>()
      const failures: string[] = []
      let position = 0
      for (const [index, body] of bodies.entries())
        for (const mutated of mutate(body)) {
          // A normal run tries a part of the changes.
          if (!isCampaign && position++ % 10 !== 0) continue
          const outcome = await tryImport(sealBundle(bodies.with(index, mutated as LineBody))).catch(
            (cause: unknown) => {
              failures.push(`${JSON.stringify(mutated).slice(-300)}: ${String(cause).slice(0, 100)}`)
              return 'failed'
            },
          )
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        }
      expect(failures).toEqual([])
      // A session that is renamed to an existing one is a conflict; a part of the changes may have none.
      expect([...new Set([...outcomes.keys(), 'conflict'])].toSorted()).toEqual(['bad-bundle', 'conflict', 'imported'])
      expect(outcomes.get('imported')).toBeGreaterThan(isCampaign ? 50 : 20)
    },
  )

  it('with genuine counts › exports the same bytes again', async () => {
    const bundle = sealBundle(await createBodies())
    await using memory = await openMemory()
    await memory.import(openChunks(bundle))
    expect(await exportOf(memory)).toBe(bundle.toString())
  })
})

describe('a signed bundle', () => {
  const [signingKey, otherKey] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)]

  async function exportSigned(options: object): Promise<Buffer> {
    await using memory = await openTarget()
    return await readAll(memory.export(options))
  }

  const importCode = async (bundle: Buffer, options: object): Promise<unknown> => {
    await using memory = await openMemory()
    const outcome = await memory.import(openChunks(bundle), options).then(
      () => 'imported',
      ({ code }) => code,
    )
    if (outcome !== 'imported') expect(await listKeys(memory)).toEqual([])
    return outcome
  }

  verifies(
    'R-04',
    'is imported with its key; unsigned, changed or with another key it is refused before a write',
    async () => {
      const encryption = { passphrase: 'correct horse', cost: 2 }
      for (const [bundle, options] of [
        [await exportSigned({ signingKey }), {}],
        [await exportSigned({ signingKey, encryption }), { passphrase: encryption.passphrase }],
      ] as const) {
        expect(await importCode(bundle, { ...options, verifyKey: signingKey })).toBe('imported')
        expect(await importCode(bundle, options)).toBe('imported')
        expect(await importCode(bundle, { ...options, verifyKey: otherKey })).toBe('bad-secret')
      }
      expect(await importCode(await exportSigned({}), { verifyKey: signingKey })).toBe('bad-secret')
      const lines = (await exportSigned({ signingKey })).toString().trimEnd().split('\n')
      const bodies = lines.map((line) => {
        const { hash: _, ...body } = JSON.parse(line.replace('Only mine.', 'Now yours.'))
        return body
      })
      expect(await importCode(sealBundle(bodies), { verifyKey: signingKey })).toBe('bad-secret')
      expect(await importCode(sealBundle(bodies.slice(0, -1)), { verifyKey: signingKey })).toBe('bad-secret')
      expect(await importCode(sealBundle([...bodies, bodies.at(-1)]), {})).toBe('bad-bundle')
      await expect(exportSigned({ signingKey: Buffer.alloc(4) })).rejects.toMatchObject({ code: 'bad-option' })
    },
  )
})

describe('importBundle with an item of the Responses API that is no message', () => {
  /** Imports a message after which reasoning with a role was sent. */
  async function importWithRole(role: string | null): Promise<Buffer[]> {
    await using source = await openMemory({ clock: () => at, upkeep: false })
    const items = [
      { role: 'user', content: 'Hi' },
      { type: 'reasoning', summary: [], role },
    ]
    await source.append('acme:ann', [{ role: 'user', content: 'Hi', payload: { protocol: 'responses', items } }])
    const bundle = await readAll(source.export())
    await using target = await openMemory({ clock: () => at, upkeep: false })
    await target.import(openChunks(bundle))
    return [await readAll(target.export()), bundle]
  }

  it('with a role of its own › imports it, because the server stores it as it was sent', async () => {
    for (const role of [null, 'planner']) {
      const [exported, bundle] = await importWithRole(role)
      expect(exported).toEqual(bundle)
    }
  })

  it('with the role of an instruction › refuses it', async () => {
    for (const role of ['system', 'developer'])
      await expect(importWithRole(role)).rejects.toThrow('the original form of the message')
  })
})
