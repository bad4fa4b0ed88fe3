import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { filesKey, formatKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import type { FileInfo } from '../../src/files/record.ts'
import { openMemory } from '../../src/index.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { encryptedStore } from '../../src/stores/encrypted.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'
import { testKeyring } from '../stores/encrypted/fixtures.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { createFiles, longText } from './fileServiceFixture.ts'
import { createDocx, createPdf, docxParagraph } from './fixtures.ts'

const fresh = createTempPaths()
const key = filesKey('acme')

/** Returns the first search result. */
async function searchFirst(store: Store & SearchIndex, text: string): Promise<string | undefined> {
  const [hit] = await store.search(key, { text, limit: 1, kinds: ['message'] })
  return hit?.entry.kind === 'message' ? `${hit.entry.role} ${hit.entry.name}: ${hit.entry.content}` : undefined
}

const uploads: readonly (readonly [name: string, content: string | Uint8Array])[] = [
  ['notes.txt', 'The spare key hangs behind the giraffe.\n'],
  ['guide.md', '# Shop\n\n## Deliveries\n\nParcels arrive by llama.\n'],
  ['page.html', '<h1>Team</h1><p>Ask <b>Philomena</b> about invoices.</p>'],
  ['orders.json', '{"orders":[{"customer":"Zebedee","total":12.50}]}'],
  ['prices.csv', 'item,price\nCardamom,4.20\n'],
  ['handbook.pdf', createPdf(['Welcome.'], ['Refunds take fortnightly turns.'])],
  ['letter.docx', createDocx(`${docxParagraph('Returns', true)}${docxParagraph('Send parcels to Valparaíso.')}`)],
]

const passages: readonly (readonly [question: string, result: string])[] = [
  ['giraffe', 'tool notes.txt: The spare key hangs behind the giraffe.\n'],
  ['llama', 'tool guide.md: Shop\n# Shop\n\n## Deliveries\n\nParcels arrive by llama.\n'],
  ['who knows invoices?', 'tool page.html: Team\n# Team\n\nAsk Philomena about invoices.'],
  ['Zebedee', 'tool orders.json: orders[0].customer: Zebedee\norders[0].total: 12.50\n'],
  ['cardamom price', 'tool prices.csv: item: Cardamom; price: 4.20\n'],
  ['refunds', 'tool handbook.pdf: page 2\nRefunds take fortnightly turns.\n\n'],
  ['valparaiso', 'tool letter.docx: Returns\n# Returns\n\nSend parcels to Valparaíso.'],
]

describe('FileService', () => {
  const stores = {
    RAM: async () => ramStore(),
    SQLite: async () => sqliteStore(fresh()),
    'an encrypted store': () =>
      encryptedStore(sqliteStore(fresh(), { keyring: testKeyring('old') }), testKeyring('old')),
  }
  for (const [storeName, open] of Object.entries(stores)) {
    verifies('T-10', `files › of every kind, in ${storeName} › are found, listed, read back and removed`, async () => {
      const store = await open()
      const files = createFiles(store)
      for (const [name, content] of uploads) await files.add('acme', { name, bytes: Buffer.from(content) })
      for (const [question, passage] of passages) expect(await searchFirst(store, question)).toBe(passage)
      const { items, next } = await files.list('acme')
      expect([items.map(({ name, status }) => `${name} ${status}`), next]).toEqual([
        uploads.map(([name]) => `${name} ready`),
        null,
      ])
      expect(await files.text('acme', items[1]?.id ?? '')).toBe(uploads[1]?.[1])
      expect(await files.text('acme', items[5]?.id ?? '')).toBe('Welcome.\n\nRefunds take fortnightly turns.\n\n')
      for (const { id } of items) expect(await files.remove('acme', id)).toBe(true)
      expect([
        await searchFirst(store, 'giraffe'),
        (await files.list('acme')).items,
        await files.remove('acme', items[0]?.id ?? ''),
      ]).toEqual([undefined, [], false])
      await files.close()
      await store.close()
    })
  }

  it('add › returns the metadata that get returns', async () => {
    const files = createFiles(ramStore())
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
    await expect(files.text('acme', 'none')).rejects.toThrow('Unknown file "none". Use an id from the list of files.')
    await files.close()
  })

  verifies('T-10', 'files › of one tenant › are invisible to other tenants and to session lists', async () => {
    const store = ramStore()
    const files = createFiles(store)
    const { id } = await files.add('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    expect([await files.list('other'), await files.get('other', id), await files.remove('other', id)]).toEqual([
      { items: [], next: null },
      undefined,
      false,
    ])
    expect((await store.list({ limit: 9 })).map((session) => formatKey(session.key))).toEqual(['acme::files'])
    expect(await files.get('acme', id)).toBeDefined()
    await files.close()
  })

  verifies('T-09', 'add, addInBackground and list › with the key of a session › throw', async () => {
    const files = createFiles(ramStore())
    const file = { name: 'a.txt', bytes: Buffer.from('a') }
    for (const work of [files.add('acme:ann', file), files.addInBackground('acme:ann', file), files.list('acme:ann')])
      await expect(work).rejects.toMatchObject({
        code: 'bad-key',
        param: 'key',
        message: 'File uploads not allowed for ephemeral sessions',
      })
    await files.close()
  })

  it('list › with a limit › returns pages in order of upload', async () => {
    const files = createFiles(ramStore())
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
      'after is "x"; it must be the value of next on the previous page.',
    )
    await expect(files.list('acme', { limit: 0 })).rejects.toThrow('limit is 0; it must be a whole number, 1 or more.')
    await files.close()
  })

  it('add › with the same name and bytes › returns the existing file unless chunks of it were erased', async () => {
    const store = ramStore()
    const files = createFiles(store)
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

  it('add › with onProgress › reports progress', async () => {
    const files = createFiles(ramStore())
    const seen: FileInfo[] = []
    const info = await files.add(
      'acme',
      { name: 'long.txt', bytes: Buffer.from(longText(2_000)) },
      { onProgress: (progress) => seen.push(progress) },
    )
    expect(seen.map(({ status }) => status)).toEqual(['indexing', 'indexing', 'indexing', 'indexing', 'ready'])
    expect(seen.every(({ done }, index) => done > (seen[index - 1]?.done ?? 0))).toBe(true)
    expect(seen.every(({ chunks }) => Math.abs(chunks - info.chunks) <= 5)).toBe(true)
    expect([seen.at(-1), info.done]).toEqual([info, info.chunks])
    await files.close()
  })

  it('addInBackground › resolves at once; get › returns the result or the error', async () => {
    const files = createFiles(ramStore())
    const good = await files.addInBackground('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    const bad = await files.addInBackground('acme', { name: 'b.pdf', bytes: Buffer.from('%PDF-1.4 and nothing more') })
    expect([good.status, bad.status]).toEqual(['indexing', 'indexing'])
    await files.waitUntilIdle('acme')
    expect(await files.get('acme', good.id)).toMatchObject({ status: 'ready', done: 1 })
    const why = 'The file is damaged or malicious and cannot be read. Save it again, or convert it to text.'
    expect(await files.get('acme', bad.id)).toMatchObject({ status: 'failed', why })
    await files.close()
  })

  it('close › with files in the queue › marks them as failed', async () => {
    const store = ramStore()
    const files = createFiles(store)
    const work = files.add('acme', { name: 'a.txt', bytes: Buffer.from('giraffe') })
    const { id } = await files.addInBackground('acme', { name: 'b.txt', bytes: Buffer.from('llama') })
    const refused = expect(work).rejects.toMatchObject({ code: 'closed' })
    await files.close()
    await refused
    expect(await createFiles(store).get('acme', id)).toMatchObject({
      status: 'failed',
      why: 'The server was stopped before the file was read. Upload it again.',
    })
    await expect(files.addInBackground('acme', { name: 'c.txt', bytes: Buffer.from('c') })).rejects.toMatchObject({
      code: 'closed',
    })
  })

  it('remove › while the file is being indexed › erases it for good', async () => {
    const store = sqliteStore(fresh())
    const files = createFiles(store)
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
      (await store.readHead(key, 9)).messages,
      await searchFirst(store, 'warehouse tea'),
    ]).toEqual([[], 0, undefined])
    await files.close()
    await store.close()
  })

  it('forget › of the tenant while a file is being indexed › erases it', async () => {
    const store = ramStore()
    const files = createFiles(store)
    const memory = await openMemory({ store, upkeep: false })
    const work = files.add(
      'acme',
      { name: 'long.txt', bytes: Buffer.from(longText()) },
      { onProgress: () => void memory.forget({ scope: 'acme' }) },
    )
    await expect(work).rejects.toMatchObject({ code: 'erased' })
    expect([(await store.readHead(key, 9)).messages, (await files.list('acme')).items]).toEqual([0, []])
    await files.close()
    await memory.close()
  })

  it('add › by two processes at the same time › stores both files, and the same file once', async () => {
    const file = fresh()
    const stores = [sqliteStore(file), sqliteStore(file)] as const
    const [left, right] = [
      createFiles(stores[0]),
      createFiles(stores[1], { randomBytes: (length) => Buffer.alloc(length, 99) }),
    ]
    const [a, b] = [longText(900), longText(901)]
    const both = await Promise.all([
      left.add('acme', { name: 'a.txt', bytes: Buffer.from(a) }),
      right.add('acme', { name: 'b.txt', bytes: Buffer.from(b) }),
    ])
    expect([await right.text('acme', both[0].id), await left.text('acme', both[1].id)]).toEqual([a, b])
    const same = { name: 'c.txt', bytes: Buffer.from('giraffe') }
    await Promise.all([left.add('acme', same), right.add('acme', same)])
    await Promise.all([left.waitUntilIdle(), right.waitUntilIdle()])
    expect((await left.list('acme')).items.filter(({ name }) => name === 'c.txt').map(({ status }) => status)).toEqual([
      'ready',
    ])
    for (const files of [left, right]) await files.close()
    for (const store of stores) await store.close()
  })

  it('sweep › after a process was killed › marks its file as failed once the lease expired; add › indexes it again', async () => {
    const file = fresh()
    await new Promise<void>((resolve) =>
      execFile(process.execPath, [fileURLToPath(new URL('killedIndexer.ts', import.meta.url)), file], () => resolve()),
    )
    const store = sqliteStore(file)
    let now = 2_000
    const files = createFiles(store, { clock: () => now, randomBytes: (length) => Buffer.alloc(length, 99) })
    await files.sweep()
    expect([
      await searchFirst(store, 'warehouse w7x'),
      (await files.list('acme')).items.map(({ status }) => status),
    ]).toEqual([expect.any(String), ['indexing']])
    now += 120_000
    await files.sweep()
    expect([await searchFirst(store, 'warehouse w7x'), (await store.readHead(key, 9)).messages]).toEqual([undefined, 0])
    expect((await files.list('acme')).items).toMatchObject([
      { status: 'failed', why: 'Indexing was interrupted. Upload the file again.', done: 0 },
    ])
    await files.add('acme', { name: 'long.txt', bytes: Buffer.from(longText()) })
    expect((await files.list('acme')).items.map(({ status }) => status)).toEqual(['ready'])
    await files.close()
    await store.close()
  })

  verifies(['T-10', 'X-05'], 'remove › leaves no trace in the database file', async () => {
    const file = fresh()
    const store = sqliteStore(file, { minSnapshotMessages: 1 })
    const files = createFiles(store)
    const canary = 'Qx7walrusZk93canary'
    const { id } = await files.add('acme', {
      name: `${canary}.txt`,
      bytes: Buffer.from(`${longText(300)}The code word is ${canary}.`),
    })
    expect(await searchFirst(store, canary)).toContain(canary)
    expect(findTraces(canary, databaseFiles(file)).length).toBeGreaterThan(0)
    await files.remove('acme', id)
    expect(findTraces(canary, databaseFiles(file))).toEqual([])
    await files.close()
    await store.close()
    expect(findTraces(canary, databaseFiles(file))).toEqual([])
  })

  it.each([
    ['a short key', 'a.json', '{"id":1,"api_key":"UfUNdjmmpua7Q","n":2}', 'id: 1\napi_key: ⟨secret⟩\nn: 2\n'],
    ['a plain word', 'a.json', '{"id":1,"password":"sunshine","n":2}', 'id: 1\npassword: ⟨secret⟩\nn: 2\n'],
    [
      'a value of an inner field',
      'a.json',
      '{"id":1,"password":{"current":"x7Qabc12Z"},"n":2}',
      'id: 1\npassword.current: ⟨secret⟩\nn: 2\n',
    ],
    ['an item', 'a.json', '{"a":[1],"passwords":["x7Qabc12Z"],"n":2}', 'a[0]: 1\npasswords[0]: ⟨secret⟩\nn: 2\n'],
    [
      'an argument',
      'a.json',
      '{"args":["run","--password","x7Qabc12Z","fast"]}',
      'args[0]: run\nargs[1]: --password\nargs[2]: ⟨secret⟩\nargs[3]: fast\n',
    ],
    [
      'a listed variable',
      'a.json',
      '{"n":1,"env":[{"name":"DB_PASSWORD","value":"x7Qabc12Z"},{"name":"DB_HOST","value":"db1"}]}',
      'n: 1\nenv[0].name: DB_PASSWORD\nenv[0].value: ⟨secret⟩\nenv[1].name: DB_HOST\nenv[1].value: db1\n',
    ],
    ['a number', 'a.json', '{"id":1,"pin":48213,"n":2}', 'id: 1\npin: ⟨secret⟩\nn: 2\n'],
    [
      'a negative number',
      'a.json',
      '[{"id":1,"offset":-4539578763621486,"city":"Bern"}]',
      '[0].id: 1\n[0].offset: ⟨secret⟩\n[0].city: Bern\n',
    ],
    ['a fraction', 'a.json', '{"id":1,"card":4111111111111111.00,"n":2}', 'id: 1\ncard: ⟨secret⟩\nn: 2\n'],
    [
      'a netrc line',
      'a.json',
      '{"id":1,"note":"machine x login bob password hunter22","address":"12 Harbour Street","phone":"030 123456"}',
      'id: 1\nnote: machine x login bob password ⟨secret⟩\naddress: 12 Harbour Street\nphone: 030 123456\n',
    ],
    [
      'a secret that ends with a backslash',
      'a.json',
      '{"id":1,"password":"abc7Q\\\\","address":"12 Harbour Street"}',
      'id: 1\npassword: ⟨secret⟩\naddress: 12 Harbour Street\n',
    ],
    [
      'a .pgpass line',
      'a.json',
      '{\n  "id": 1,\n  "line": "db.example.com:5432:app:bob:hunter22",\n  "address": "12 Harbour Street"\n}',
      'id: 1\nline: db.example.com:5432:app:bob:⟨secret⟩\naddress: 12 Harbour Street\n',
    ],
    [
      'a table in a value',
      'a.json',
      '{"id":1,"data":"user,password\\nbob,sunshine\\n","after":"kept words","list":["a b","c d"]}',
      'id: 1\ndata: user,password\nbob,⟨secret⟩\n\nafter: kept words\nlist[0]: a b\nlist[1]: c d\n',
    ],
    [
      'an item of a key that spans several',
      'a.json',
      `{"id":1,"key":["-----BEGIN PRIVATE KEY-----","${'MIIEvQIBADANBgkq'.repeat(4)}","-----END PRIVATE KEY-----"],"n":2}`,
      'id: 1\nkey[0]: ⟨secret⟩\nkey[1]: ⟨secret⟩\nkey[2]: ⟨secret⟩\nn: 2\n',
    ],
    [
      'a private key with escaped slashes',
      'a.json',
      `{"id":1,"key":"-----BEGIN PRIVATE KEY-----\\n${'MIIEvQIBADAN\\/gkq'.repeat(4)}\\n-----END PRIVATE KEY-----\\n","n":2}`,
      'id: 1\nkey: ⟨secret⟩\n\nn: 2\n',
    ],
    [
      'a table with other line ends in a value',
      'a.json',
      '{"id":1,"data":"user;password\\r\\nbob;sunshine\\r\\n","after":"kept words"}',
      'id: 1\ndata: user;password\r\nbob;⟨secret⟩\r\n\nafter: kept words\n',
    ],
    [
      'a name with escapes',
      'a.json',
      '{"id":1,"curl -u \\"ann:hunter22Xq\\" https://a.example":2,"after":"kept words"}',
      'id: 1\n["curl -u \\"ann:⟨secret⟩\\" https://a.example"]: 2\nafter: kept words\n',
    ],
    ['invalid JSON', 'a.json', '{"id":1,"password":"sunshine","n":2', '{"id":1,"password":"⟨secret⟩","n":2'],
    ['a cell', 'a.csv', 'user,password,age\nbob,sunshine,42\n', 'user: bob; password: ⟨secret⟩; age: 42\n'],
    [
      'text in a cell',
      'a.csv',
      'id,note,amount\n1,password: hunter22,2500\n2,kept,4\n',
      'id: 1; note: password: ⟨secret⟩; amount: 2500\nid: 2; note: kept; amount: 4\n',
    ],
    [
      'text in a quoted cell',
      'a.csv',
      'id,note,amount\n1,"Call Ann, then\nuse ""password: hunter22"", bye",2500\n2,kept,4\n',
      'id: 1; note: Call Ann, then use "password: ⟨secret⟩", bye; amount: 2500\nid: 2; note: kept; amount: 4\n',
    ],
    [
      'quotation marks in a cell',
      'a.csv',
      'id,note,amount\n1,"kind: Secret\nstringData:\n  config: ""RVQ1cWlCVWs1Vg==""\n",2500\n2,kept,4\n',
      'id: 1; note: kind: Secret stringData: config: "⟨secret⟩"; amount: 2500\nid: 2; note: kept; amount: 4\n',
    ],
    [
      'a cell in another encoding',
      'a.csv',
      '\ufeffuser;Kennwort;Alter\nJürgen;sunshine;42\n',
      'user: Jürgen; Kennwort: ⟨secret⟩; Alter: 42\n',
    ],
  ])(
    'add › with a secret marked by the structure of the file: %s › masks it only',
    async (_, name, content, stored) => {
      const files = createFiles(ramStore())
      const encoding = content.startsWith('\ufeff') ? 'utf16le' : 'utf8'
      const { id } = await files.add('acme', { name, bytes: Buffer.from(content, encoding) })
      expect((await files.text('acme', id)).replace(/⟨secret:\d+⟩/g, '⟨secret⟩')).toBe(stored)
      await files.close()
    },
  )

  it('add › with JSON whose text has too many characters › refuses it before it is searched for secrets', async () => {
    const masker = createSecretMasker('mask', chars4)
    const search = vi.spyOn(masker, 'maskDocument')
    const files = createFiles(ramStore(), { masker, limits: { maxCharacters: 100 } })
    const json = JSON.stringify(Array.from({ length: 20 }, (_, index) => ({ password: `x7Q${index}abc` })))
    await expect(files.add('acme', { name: 'a.json', bytes: Buffer.from(json) })).rejects.toThrow(
      'The file holds more than 100 characters of text. Split it into smaller files.',
    )
    expect(search).not.toHaveBeenCalled()
    await files.close()
  })

  it('add › with secrets, also multi-line ones › masks them', async () => {
    const store = ramStore()
    const files = createFiles(store)
    const pem = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n'.repeat(60)}-----END PRIVATE KEY-----`
    const { id } = await files.add('acme', {
      name: 'a.txt',
      bytes: Buffer.from(`${longText(30)}The password is hunter2hunter2.\n${pem}\n`),
    })
    const text = await files.text('acme', id)
    expect(text).toMatch(/The password is ⟨secret:\d+⟩\.\n⟨secret:\d+⟩\n$/)
    expect(JSON.stringify(await store.readMessages(key, { limit: 999 }))).not.toMatch(/hunter2|MIIE/)
    await files.close()
  })
})
