import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { filesKey, formatKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import type { FileInfo } from '../../src/files/record.ts'
import { openMemory } from '../../src/index.ts'
import { sealedStore } from '../../src/stores/encrypted.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { ring } from '../stores/encrypted/fixtures.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { databaseFiles, tracesOf } from '../stores/traces.ts'
import { docx, paragraph, pdf } from './fixtures.ts'
import { filesOn, longText } from './stage.ts'

const fresh = freshFiles()
const key = filesKey('acme')

/** What a search for a passage finds first. */
async function found(store: Store & Index, text: string): Promise<string | undefined> {
  const [hit] = await store.search(key, { text, limit: 1, kinds: ['message'] })
  return hit?.entry.kind === 'message' ? `${hit.entry.role} ${hit.entry.name}: ${hit.entry.content}` : undefined
}

const uploads: readonly (readonly [name: string, content: string | Uint8Array])[] = [
  ['notes.txt', 'The spare key hangs behind the giraffe.\n'],
  ['guide.md', '# Shop\n\n## Deliveries\n\nParcels arrive by llama.\n'],
  ['page.html', '<h1>Team</h1><p>Ask <b>Philomena</b> about invoices.</p>'],
  ['orders.json', '{"orders":[{"customer":"Zebedee","total":12.50}]}'],
  ['prices.csv', 'item,price\nCardamom,4.20\n'],
  ['handbook.pdf', pdf(['Welcome.'], ['Refunds take fortnightly turns.'])],
  ['letter.docx', docx(`${paragraph('Returns', true)}${paragraph('Send parcels to Valparaíso.')}`)],
]

const passages: readonly (readonly [question: string, found: string])[] = [
  ['giraffe', 'tool notes.txt: The spare key hangs behind the giraffe.\n'],
  ['llama', 'tool guide.md: Shop\n# Shop\n\n## Deliveries\n\nParcels arrive by llama.\n'],
  ['who knows invoices?', 'tool page.html: Team\n# Team\n\nAsk Philomena about invoices.'],
  ['Zebedee', 'tool orders.json: orders[0].customer: Zebedee\norders[0].total: 12.50\n'],
  ['cardamom price', 'tool prices.csv: item: Cardamom; price: 4.20\n'],
  ['refunds', 'tool handbook.pdf: page 2\nRefunds take fortnightly turns.\n\n'],
  ['valparaiso', 'tool letter.docx: Returns\n# Returns\n\nSend parcels to Valparaíso.'],
]

describe('the files of a tenant', () => {
  const stores = {
    RAM: async () => ramStore(),
    SQLite: async () => sqliteStore(fresh()),
    'an encrypted one': () => sealedStore(sqliteStore(fresh()), ring('old')),
  }
  for (const [where, open] of Object.entries(stores)) {
    verifies(
      'T-10',
      `of every kind are found by what they say, listed, read back and removed, in ${where}`,
      async () => {
        const store = await open()
        const files = filesOn(store)
        for (const [name, content] of uploads) await files.add('acme', { name, bytes: Buffer.from(content) })
        for (const [question, passage] of passages) expect(await found(store, question)).toBe(passage)
        const { items, next } = await files.list('acme')
        expect([items.map(({ name, status }) => `${name} ${status}`), next]).toEqual([
          uploads.map(([name]) => `${name} ready`),
          null,
        ])
        expect(await files.text('acme', items[1]?.id ?? '')).toBe(uploads[1]?.[1])
        expect(await files.text('acme', items[5]?.id ?? '')).toBe('Welcome.\n\nRefunds take fortnightly turns.\n\n')
        for (const { id } of items) expect(await files.remove('acme', id)).toBe(true)
        expect([
          await found(store, 'giraffe'),
          (await files.list('acme')).items,
          await files.remove('acme', items[0]?.id ?? ''),
        ]).toEqual([undefined, [], false])
        await files.close()
        await store.close()
      },
    )
  }

  it('tell what they are', async () => {
    const files = filesOn(ramStore())
    const info = await files.add('acme', { name: 'a.md', type: 'text/plain', bytes: Buffer.from('Hi') })
    expect(info).toEqual({
      id: '020202020202',
      name: 'a.md',
      type: 'text/markdown',
      bytes: 2,
      characters: 2,
      chunks: 1,
      sha256: '3639efcd08abb273b1619e82e78c29a7df02c1051b1820e99fc395dcaa3326b8',
      at: 1_000,
      status: 'ready',
      done: 1,
    })
    expect([await files.get('acme', info.id), await files.get('acme', 'none')]).toEqual([info, undefined])
    await expect(files.text('acme', 'none')).rejects.toThrow(
      'There is no file "none" here; list tells which ones there are.',
    )
    await files.close()
  })

  verifies(
    'T-10',
    "are the tenant's alone: no other tenant sees them, no list of sessions names them, no client can",
    async () => {
      const store = ramStore()
      const files = filesOn(store)
      const { id } = await files.add('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
      expect([await files.list('other'), await files.get('other', id), await files.remove('other', id)]).toEqual([
        { items: [], next: null },
        undefined,
        false,
      ])
      expect((await store.list({ limit: 9 })).map((session) => formatKey(session.key))).toEqual(['acme::files'])
      expect(await files.get('acme', id)).toBeDefined()
      await files.close()
    },
  )

  verifies('T-09', 'are never those of a session', async () => {
    const files = filesOn(ramStore())
    const file = { name: 'a.txt', bytes: Buffer.from('a') }
    for (const work of [files.add('acme:ann', file), files.begin('acme:ann', file), files.list('acme:ann')])
      await expect(work).rejects.toMatchObject({
        code: 'bad-key',
        param: 'key',
        message: 'File uploads not allowed for ephemeral sessions',
      })
    await files.close()
  })

  it('come page by page, in order of upload', async () => {
    const files = filesOn(ramStore())
    const names = ['e', 'd', 'c', 'b', 'a']
    for (const name of names) await files.add('acme', { name, bytes: Buffer.from('x') })
    const first = await files.list('acme', { limit: 2 })
    await files.remove('acme', first.items[1]?.id ?? '')
    const second = await files.list('acme', { limit: 2, after: first.next ?? '' })
    const third = await files.list('acme', { limit: 2, after: second.next ?? '' })
    expect([first, second, third].map(({ items }) => items.map(({ name }) => name))).toEqual([
      ['e', 'd'],
      ['c', 'b'],
      ['a'],
    ])
    expect(third.next).toBe(null)
    await expect(files.list('acme', { after: 'x' })).rejects.toThrow(
      'after is "x"; it must be what next was on the page before.',
    )
    await expect(files.list('acme', { limit: 0 })).rejects.toThrow('limit is 0; it must be a whole number, 1 or more.')
    await files.close()
  })

  it('are one if they have the same name and bytes, unless something of them was forgotten', async () => {
    const store = ramStore()
    const files = filesOn(store)
    const file = { name: 'a.txt', bytes: Buffer.from(longText(200)) }
    const [one, two] = await Promise.all([files.add('acme', file), files.add('acme', file)])
    expect([await files.add('acme', file), two]).toEqual([one, one])
    await files.add('acme', { ...file, name: 'b.txt' })
    expect((await files.list('acme')).items.map(({ name }) => name)).toEqual(['a.txt', 'b.txt'])
    await store.erase(key, { entries: ['m2'] })
    expect((await files.add('acme', file)).id).not.toBe(one.id)
    expect((await files.list('acme')).items.map(({ name }) => name)).toEqual(['b.txt', 'a.txt'])
    await files.close()
  })

  it('tell how far they have come', async () => {
    const files = filesOn(ramStore())
    const seen: FileInfo[] = []
    const info = await files.add(
      'acme',
      { name: 'long.txt', bytes: Buffer.from(longText(2_000)) },
      { onProgress: (one) => seen.push(one) },
    )
    expect(seen.map(({ status }) => status)).toEqual(['indexing', 'indexing', 'indexing', 'indexing', 'ready'])
    expect(seen.every(({ done }, at) => done > (seen[at - 1]?.done ?? 0))).toBe(true)
    expect(seen.every(({ chunks }) => Math.abs(chunks - info.chunks) <= 5)).toBe(true)
    expect([seen.at(-1), info.done]).toEqual([info, info.chunks])
    await files.close()
  })

  it('begin at once and are ready once they have settled; a failure says why', async () => {
    const files = filesOn(ramStore())
    const good = await files.begin('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    const bad = await files.begin('acme', { name: 'b.pdf', bytes: Buffer.from('%PDF-1.4 and nothing more') })
    expect([good.status, bad.status]).toEqual(['indexing', 'indexing'])
    await files.settled('acme')
    expect(await files.get('acme', good.id)).toMatchObject({ status: 'ready', done: 1 })
    const why =
      'The file is damaged, or made to do damage, and cannot be read. Save it again in its own program, or as text.'
    expect(await files.get('acme', bad.id)).toMatchObject({ status: 'failed', why })
    await files.close()
  })

  it('are given up when the server stops', async () => {
    const store = ramStore()
    const files = filesOn(store)
    const work = files.add('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    const { id } = await files.begin('acme', { name: 'b.txt', bytes: Buffer.from('llama') })
    const refused = expect(work).rejects.toMatchObject({ code: 'closed' })
    await files.close()
    await refused
    expect(await filesOn(store).get('acme', id)).toMatchObject({
      status: 'failed',
      why: 'The server was stopped before the file was read. Upload it again.',
    })
    await expect(files.begin('acme', { name: 'c.txt', bytes: Buffer.from('c') })).rejects.toMatchObject({
      code: 'closed',
    })
  })

  it('removed while they are indexed stay removed', async () => {
    const store = sqliteStore(fresh())
    const files = filesOn(store)
    const removals: Promise<boolean>[] = []
    const work = files.add(
      'acme',
      { name: 'long.txt', bytes: Buffer.from(longText()) },
      { onProgress: ({ id }) => removals.push(files.remove('acme', id)) },
    )
    await expect(work).rejects.toMatchObject({ code: 'erased' })
    expect(await Promise.all(removals)).toContain(true)
    expect([
      (await files.list('acme')).items,
      (await store.head(key, 9)).messages,
      await found(store, 'warehouse tea'),
    ]).toEqual([[], 0, undefined])
    await files.close()
    await store.close()
  })

  it('go with their tenant', async () => {
    const store = ramStore()
    const files = filesOn(store)
    const memory = await openMemory({ store, upkeep: false })
    const work = files.add(
      'acme',
      { name: 'long.txt', bytes: Buffer.from(longText()) },
      { onProgress: () => void memory.forget({ scope: 'acme' }) },
    )
    await expect(work).rejects.toMatchObject({ code: 'erased' })
    expect([(await store.head(key, 9)).messages, (await files.list('acme')).items]).toEqual([0, []])
    await files.close()
    await memory.close()
  })

  it('are whole when two processes index them into one store at the same time, and one if they are the same', async () => {
    const file = fresh()
    const stores = [sqliteStore(file), sqliteStore(file)] as const
    const [left, right] = [
      filesOn(stores[0]),
      filesOn(stores[1], { randomBytes: (length) => Buffer.alloc(length, 99) }),
    ]
    const [a, b] = [longText(900), longText(901)]
    const both = await Promise.all([
      left.add('acme', { name: 'a.txt', bytes: Buffer.from(a) }),
      right.add('acme', { name: 'b.txt', bytes: Buffer.from(b) }),
    ])
    expect([await right.text('acme', both[0].id), await left.text('acme', both[1].id)]).toEqual([a, b])
    const same = { name: 'c.txt', bytes: Buffer.from('giraffe') }
    await Promise.all([left.add('acme', same), right.add('acme', same)])
    await Promise.all([left.settled(), right.settled()])
    expect((await left.list('acme')).items.filter(({ name }) => name === 'c.txt').map(({ status }) => status)).toEqual([
      'ready',
    ])
    for (const files of [left, right]) await files.close()
    for (const store of stores) await store.close()
  })

  it('that a killed process has left half done are cleaned up once it must be dead, and can be uploaded again', async () => {
    const file = fresh()
    await new Promise<void>((resolve) =>
      execFile(process.execPath, [fileURLToPath(new URL('killed.ts', import.meta.url)), file], () => resolve()),
    )
    const store = sqliteStore(file)
    let now = 2_000
    const files = filesOn(store, { clock: () => now, randomBytes: (length) => Buffer.alloc(length, 99) })
    await files.sweep()
    expect([await found(store, 'warehouse w7x'), (await files.list('acme')).items.map(({ status }) => status)]).toEqual(
      [expect.any(String), ['indexing']],
    )
    now += 120_000
    await files.sweep()
    expect([await found(store, 'warehouse w7x'), (await store.head(key, 9)).messages]).toEqual([undefined, 0])
    expect((await files.list('acme')).items).toMatchObject([
      { status: 'failed', why: 'Reading it was interrupted. Upload it again.', done: 0 },
    ])
    await files.add('acme', { name: 'long.txt', bytes: Buffer.from(longText()) })
    expect((await files.list('acme')).items.map(({ status }) => status)).toEqual(['ready'])
    await files.close()
    await store.close()
  })

  verifies(['T-10', 'X-05'], 'leave no trace in the file once they are removed', async () => {
    const file = fresh()
    const store = sqliteStore(file, { worthKeeping: 1 })
    const files = filesOn(store)
    const canary = 'Qx7walrusZk93canary'
    const { id } = await files.add('acme', {
      name: `${canary}.txt`,
      bytes: Buffer.from(`${longText(300)}The code word is ${canary}.`),
    })
    expect(await found(store, canary)).toContain(canary)
    expect(tracesOf(canary, databaseFiles(file)).length).toBeGreaterThan(0)
    await files.remove('acme', id)
    expect(tracesOf(canary, databaseFiles(file))).toEqual([])
    await files.close()
    await store.close()
    expect(tracesOf(canary, databaseFiles(file))).toEqual([])
  })

  it('are kept without their secrets, also where one lies across many lines', async () => {
    const store = ramStore()
    const files = filesOn(store)
    const pem = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n'.repeat(60)}-----END PRIVATE KEY-----`
    const { id } = await files.add('acme', {
      name: 'a.txt',
      bytes: Buffer.from(`${longText(30)}The password is hunter2hunter2.\n${pem}\n`),
    })
    const text = await files.text('acme', id)
    expect(text).toMatch(/The password is ⟨secret:\d+⟩\.\n⟨secret:\d+⟩\n$/)
    expect(JSON.stringify(await store.page(key, { limit: 999 }))).not.toMatch(/hunter2|MIIE/)
    await files.close()
  })

  it('tell others of their chunks, so that these get vectors', async () => {
    const heard: string[] = []
    const files = filesOn(ramStore(), {
      onStored: (where, epoch, stored) => heard.push(`${formatKey(where)} ${epoch} ${stored.map(({ id }) => id)}`),
    })
    await files.add('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    expect(heard).toEqual(['acme::files 0 m1'])
    await files.close()
  })
})
