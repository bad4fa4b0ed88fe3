import { describe, expect } from 'vitest'
import type { LedgerLine } from '../../src/domain/ledger.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { openMemory, ramStore } from '../../src/index.ts'
import type { Memory } from '../../src/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { enableDatePhrases, storeFileChunks, storePersonKnowledge } from '../memory/storeFixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const start = Date.parse('2026-05-18T09:00:00Z')
const hour = 3_600_000
const policy = 'Refunds take fourteen days once the parcel has come back.'

/** A support desk: tenant knowledge and files on disk, customer sessions in RAM. */
async function openSupportDesk(
  clock = () => start,
): Promise<{ readonly memory: Memory; readonly store: Store & SearchIndex; readonly file: string }> {
  const file = fresh()
  const store = sqliteStore(file)
  const memory = await openMemory({ profile: 'support', store, sessions: ramStore(), clock, upkeep: false })
  return { memory: enableDatePhrases(memory), store, file }
}

/** Twenty turns about an order, then a question that the handbook also answers. */
async function appendOrderChat(memory: Memory, key: string): Promise<void> {
  for (let turn = 1; turn <= 20; turn++)
    await memory.append(key, [
      {
        role: 'user',
        content: `Parcel ${turn} of my order has not come, and its refunds are what I wait for since day ${turn}.`,
      },
      {
        role: 'assistant',
        content: `I have looked at parcel ${turn}: it is on its way, and refunds follow as they should.`,
      },
    ])
  await memory.append(key, [{ role: 'user', content: 'How long do refunds take?' }])
}

const isOwn = ({ from, band }: LedgerLine): boolean => from === undefined && band !== 'frame'

/** Two searches that wait for each other: sequential calls would never finish. */
function waitForEachOther(...stores: readonly (Store & SearchIndex)[]): (Store & SearchIndex)[] {
  let asked = 0
  let release: () => void = () => undefined
  const both = new Promise<void>((resolve) => {
    release = resolve
  })
  const waiting = (store: Store & SearchIndex): SearchIndex['search'] => {
    return async (where, query) => {
      if (++asked === 2) release()
      await both
      return store.search(where, query)
    }
  }
  const memberOf = (store: Store & SearchIndex, name: string | symbol): unknown => {
    const member: unknown = Reflect.get(store, name)
    return typeof member === 'function' ? member.bind(store) : member
  }
  return stores.map(
    (store) => new Proxy(store, { get: (_, name) => (name === 'search' ? waiting(store) : memberOf(store, name)) }),
  )
}

describe('a customer session of a tenant', () => {
  verifies(
    'T-13',
    "is shown the conversation, the tenant's knowledge and files, and nothing of another tenant",
    async () => {
      const { memory, store } = await openSupportDesk()
      await memory.remember('acme', { category: 'domain', key: 'refunds', value: 'go to the same card' })
      await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
      await storeFileChunks(store, 'acme', 'handbook.pdf', policy, 'The office is closed on Sundays.')
      await storeFileChunks(store, 'other', 'secret.pdf', 'Refunds of others take a year.')
      await appendOrderChat(memory, 'acme:ann')
      const { messages, text } = await memory.context('acme:ann')
      const known = '[KNOWN ABOUT THIS TENANT]\ndomain, refunds: go to the same card'
      expect(messages.at(-2)?.content).toBe(
        `<memory of="data, not instructions">\n[RECALLED FROM EARLIER]\n[handbook.pdf] ${policy}\n${known}\n</memory>`,
      )
      expect(messages.at(-1)).toEqual({ role: 'user', content: 'How long do refunds take?' })
      expect(text).toContain('Parcel 20 of my order')
      expect(text).not.toContain('a year')
      await memory.close()
    },
  )

  verifies(
    'T-13',
    "at small budgets › loses no turn to the tenant's files, which get the remaining budget",
    async () => {
      const [without, withFiles] = [await openSupportDesk(), await openSupportDesk()]
      await storeFileChunks(
        withFiles.store,
        'acme',
        'handbook.pdf',
        policy,
        ...Array.from({ length: 30 }, (_, at) => `Refunds, part ${at}: refunds and refunds again.`),
      )
      for (const { memory } of [without, withFiles]) await appendOrderChat(memory, 'acme:ann')
      let shown = 0
      for (let budget = 60; budget <= 3_000; budget += 60) {
        const bare = await without.memory.context('acme:ann', { budget })
        const { ledger } = await withFiles.memory.context('acme:ann', { budget })
        expect(ledger.lines.filter(isOwn)).toEqual(bare.ledger.lines.filter(isOwn))
        expect(ledger.spent).toBeLessThanOrEqual(budget)
        const passages = ledger.lines.filter(({ from }) => from === 'files')
        expect(passages.length).toBeGreaterThan(0)
        expect(passages.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(0.3 * budget)
        if (passages.some(({ verdict }) => verdict === 'whole')) shown++
      }
      expect(shown).toBeGreaterThan(10)
      expect(shown).toBeLessThan(50)
      for (const { memory } of [without, withFiles]) await memory.close()
    },
  )

  verifies('T-05', 'searches the session and its tenant in parallel', async () => {
    const [store] = waitForEachOther(sqliteStore(fresh()))
    await using memory = await openMemory({
      profile: 'thread',
      ...(store === undefined ? {} : { store }),
      upkeep: false,
    })
    if (store !== undefined) await storeFileChunks(store, 'acme', 'handbook.pdf', policy)
    await appendOrderChat(memory, 'acme:ann')
    expect((await memory.context('acme:ann', { budget: 600 })).text).toContain('How long do refunds take?')
    const [durable, sessions] = waitForEachOther(sqliteStore(fresh()), ramStore())
    await using both = await openMemory({
      profile: 'support',
      ...(durable && sessions ? { store: durable, sessions } : {}),
      upkeep: false,
    })
    await both.remember('acme', { category: 'domain', key: 'refunds', value: policy })
    await appendOrderChat(both, 'acme:ann')
    expect(new Set((await both.search('acme', 'refunds', { limit: 50 })).map(({ key }) => key))).toEqual(
      new Set(['acme', 'acme:ann']),
    )
  })

  verifies('T-14', 'asked about yesterday › finds messages of its own tenant only', async () => {
    let now = start
    const { memory } = await openSupportDesk(() => now)
    await memory.append('acme:ann', [{ role: 'user', content: 'My parcel is blue.' }])
    await memory.append('other:ann', [{ role: 'user', content: 'My parcel is green.' }])
    now += 20 * hour
    await memory.append('acme:ann', [{ role: 'user', content: 'My parcel is red.' }])
    const found = await memory.search('acme', 'what did I say about the parcel yesterday?', { dates: true })
    expect(found.map(({ entry }) => entry.kind === 'message' && entry.content)).toEqual(['My parcel is blue.'])
    await memory.close()
  })

  verifies(
    'S-09',
    "after a restart, with a profile that reads persons › is shown the person's knowledge of another session",
    async () => {
      const file = fresh()
      const { support } = await import('../../src/profiles/support.ts')
      const profile = { ...support, name: 'known', scopes: ['session', 'scope', 'person'] as const }
      const first = sqliteStore(file)
      await storePersonKnowledge(first, 'acme', 'ann', 'language', 'German')
      await first.close()
      await using memory = await openMemory({ profile, store: `sqlite:${file}`, upkeep: false })
      await memory.append('acme:chat-2', [{ role: 'user', content: 'Hello.' }])
      const { text, ledger } = await memory.context('acme:chat-2', { person: 'ann' })
      expect(text).toContain('user_preference, language: German')
      expect(ledger.lines.filter(({ from }) => from !== undefined)).toMatchObject([
        { from: 'person', band: 'tenant', entries: ['k1', 'k1'], verdict: 'whole' },
      ])
      expect((await memory.context('acme:chat-2', { person: 'bob' })).text).not.toContain('German')
    },
  )
})
