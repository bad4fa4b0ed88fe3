import { hash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../../src/cli/program.ts'
import { openGraph } from '../../../src/graph/graph.ts'
import { openMemory } from '../../../src/index.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { openStore } from '../../../src/stores/open.ts'
import { examineFile, repairFile } from '../../../src/stores/sqlite/repair.ts'
import { Writer } from '../../../src/stores/sqlite/write.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import { createCliHarness } from '../../cli/cliHarness.ts'
import { listCommands } from '../../cli/commandTree.ts'
import { readAll } from '../../portable/byteStreams.ts'
import { verifies } from '../../requirements/verifies.ts'
import { undoFormat6 } from '../oldFormats.ts'
import { createTempPaths } from '../tempPaths.ts'
import { annKey, contentsOf, factWithSpan, hex, nextChange, testKeyring } from './fixtures.ts'

const newPath = createTempPaths()

function writeKey(name: keyof typeof hex): string {
  const path = newPath('.key')
  writeFileSync(path, hex[name], { mode: 0o600 })
  return `file:${path}`
}

async function createEncrypted(): Promise<{ readonly path: string; readonly storeKey: string }> {
  const [path, storeKey] = [newPath(), writeKey('old')]
  await using memory = await openMemory({ store: `sqlite:${path}`, storeKey })
  await memory.append('acme:ann', [{ role: 'user', content: 'My walrus is called Miso.' }])
  return { path, storeKey }
}

/** Bytes of the database, and the files beside it. */
const stateOf = (path: string): readonly unknown[] => [
  hash('sha256', readFileSync(path)),
  ...['-wal', '-shm', '-journal'].map((suffix) => existsSync(path + suffix)),
]

/**
 * Copies a file with an interrupted transaction, which only a writer can roll back: before its pages were written,
 * beside an empty log, or afterwards, when the file has no mark of its encryption.
 */
function copyInterrupted(path: string, isWritten: boolean): string {
  const [copy, source] = [newPath(), newPath()]
  writeFileSync(source, readFileSync(path))
  const database = new DatabaseSync(source)
  // Without syncs, the journal counts from its first page on.
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN IMMEDIATE; UPDATE meta SET value = 0')
  writeFileSync(`${copy}-journal`, readFileSync(`${source}-journal`))
  if (isWritten) database.exec('COMMIT')
  else writeFileSync(`${copy}-wal`, '')
  writeFileSync(copy, readFileSync(source))
  database.close()
  return copy
}

/** Turns a file into one of the format before the marker. */
function removeMarker(path: string): void {
  const database = new DatabaseSync(path)
  database.exec(`${undoFormat6} PRAGMA wal_checkpoint(TRUNCATE)`)
  database.close()
}

/** Writes without encryption, as a process without the key could before the marker existed. */
function writePlaintext(path: string): void {
  const database = new DatabaseSync(path)
  const writer = new Writer(database)
  database.exec('BEGIN')
  writer.afterBegin()
  writer.commit(nextChange({ append: [newMessage('plain walrus', { name: 'Ann' })], put: [factWithSpan('f1', 'x')] }))
  writer.commit(nextChange({ key: { ...annKey, id: 'new' }, append: [newMessage('plain seal')] }))
  writer.beforeCommit()
  database.exec('COMMIT')
  database.close()
}

const openers: Readonly<Record<string, (path: string, storeKey?: string) => unknown>> = {
  sqliteStore: (path, key) => sqliteStore(path, key === undefined ? {} : { keyring: testKeyring('new') }),
  openStore: (path, key) => openStore(`sqlite:${path}`, key),
  openMemory: (path, key) => openMemory({ store: `sqlite:${path}`, ...(key !== undefined && { storeKey: key }) }),
  openGraph: (path, key) => openGraph(`sqlite:${path}`, key === undefined ? {} : { storeKey: key }),
  examineFile: (path, key) => examineFile(path, { keyring: key === undefined ? undefined : testKeyring('new') }),
  repairFile: (path, key) => repairFile(path, { keyring: key === undefined ? undefined : testKeyring('new') }),
}

type Run = { readonly args: readonly string[]; readonly keyFlag?: string }
type Runs = Readonly<Record<string, readonly Run[]>>

/** Runs of each command that opens the store; `other` is a store without a key. */
const runsOnStore = (store: string, { bundle, transcript, other }: CommandFiles): Runs => ({
  serve: [{ args: ['--port', '0'] }],
  chat: [{ args: ['acme:ann'] }],
  mcp: [{ args: [] }],
  context: [{ args: ['acme:ann'] }],
  'sessions list': [{ args: [] }],
  'sessions show': [{ args: ['acme:ann'] }],
  search: [{ args: ['acme', 'walrus'] }],
  facts: [{ args: ['acme:ann'] }],
  summaries: [{ args: ['acme:ann'] }],
  replay: [{ args: ['acme:ann', '--profile', 'thread'] }],
  optimizer: [{ args: [] }, { args: ['acme:ann'] }],
  remember: [{ args: ['acme', 'pet', 'walrus'] }],
  'knowledge list': [{ args: ['acme'] }],
  'knowledge approve': [{ args: ['acme', 'k1'] }],
  'knowledge restore': [{ args: ['acme', 'k1'] }],
  'knowledge reject': [{ args: ['acme', 'k1', '--yes'] }],
  forget: [{ args: ['acme:ann', '--yes'] }, { args: ['acme', '--scope', '--yes'] }],
  'upkeep run': [{ args: ['acme:ann'] }, { args: ['--scope', 'acme'] }],
  save: [{ args: [transcript] }],
  restore: [{ args: ['acme:ann'] }],
  export: [{ args: [] }, { args: ['--format', 'server-memory', '--scope', 'acme'] }],
  import: [{ args: [bundle] }, { args: [bundle, '--on-existing', 'replace', '--yes'] }],
  migrate: [
    { args: [store, `sqlite:${newPath()}`], keyFlag: '--from-key' },
    { args: [other, store], keyFlag: '--to-key' },
  ],
  doctor: [{ args: [] }, { args: ['--repair'] }, { args: ['--backup', newPath()] }, { args: ['--rotate-key'] }],
})

/** Runs of the other commands: they open no store, or print nothing if they cannot. */
const otherRuns: Readonly<Record<string, readonly string[]>> = {
  completion: ['bash'],
  complete: ['--', 'facts', 'acme:'],
  'audit verify': [],
  'audit show': [],
  'keys create': ['--file', newPath('.json'), '--scope', 'acme'],
  'keys list': [],
  'keys revoke': ['x'],
  'config print': [],
  'config check': [],
  bench: [newPath('.json')],
  lab: ['--sizes', '0'],
}

type CommandFiles = { readonly bundle: string; readonly transcript: string; readonly other: string }

async function writeCommandFiles(): Promise<CommandFiles> {
  const [bundle, transcript, other] = [newPath('.jsonl'), newPath('.txt'), `sqlite:${newPath()}`]
  await using memory = await openMemory({ store: other })
  await memory.append('acme:eve', [{ role: 'user', content: 'Hello.' }])
  writeFileSync(bundle, await readAll(memory.export()))
  writeFileSync(transcript, 'User: Hello.\nAssistant: Hi.')
  return { bundle, transcript, other }
}

async function codeOf(run: () => unknown): Promise<unknown> {
  try {
    await run()
    return 'opened'
  } catch (error) {
    expect(String(error)).not.toMatch(new RegExp(Object.values(hex).join('|'), 'i'))
    return (error as { code?: unknown }).code
  }
}

describe('an encrypted file', () => {
  verifies(
    'R-01',
    'without its key or with another one › is refused by every opener, byte for byte unchanged',
    async () => {
      const wrongKey = writeKey('new')
      for (const makeOld of [false, true]) {
        const { path } = await createEncrypted()
        if (makeOld) removeMarker(path)
        const before = stateOf(path)
        for (const [name, open] of Object.entries(openers))
          for (const key of [undefined, wrongKey])
            expect([name, await codeOf(() => open(path, key)), stateOf(path)]).toEqual([name, 'bad-secret', before])
      }
    },
  )

  verifies('R-01', 'with content only in the log › is refused and leaves database and log as they are', async () => {
    const { path, storeKey } = await createEncrypted()
    await using memory = await openMemory({ store: `sqlite:${path}`, storeKey })
    await memory.append('acme:ann', [{ role: 'user', content: 'Second.' }])
    const copy = newPath()
    for (const suffix of ['', '-wal']) writeFileSync(copy + suffix, readFileSync(path + suffix))
    const before = [readFileSync(copy), readFileSync(`${copy}-wal`)]
    for (const open of Object.values(openers)) expect(await codeOf(() => open(copy))).toBe('bad-secret')
    expect([readFileSync(copy), readFileSync(`${copy}-wal`)]).toEqual(before)
  })

  verifies('R-01', 'with an interrupted transaction › is refused by every opener and keeps its content', async () => {
    const { path, storeKey } = await createEncrypted()
    for (const [name, open] of Object.entries(openers))
      for (const isWritten of [false, true]) {
        const copies = [undefined, writeKey('new')].map((key) => [copyInterrupted(path, isWritten), key] as const)
        for (const [copy, key] of copies)
          expect([name, isWritten, await codeOf(() => open(copy, key))]).toEqual([name, isWritten, 'bad-secret'])
        const copy = copies[0]?.[0]
        await using memory = await openMemory({ store: `sqlite:${copy}`, storeKey })
        expect(contentsOf(await memory.transcript('acme:ann'))).toEqual(['My walrus is called Miso.'])
      }
  })

  it('with its key › opens, also a file of the earlier format, and again with a new key in front', async () => {
    const { path, storeKey } = await createEncrypted()
    removeMarker(path)
    for (const key of [storeKey, storeKey]) {
      await using memory = await openMemory({ store: `sqlite:${path}`, storeKey: key })
      expect(contentsOf(await memory.transcript('acme:ann'))).toEqual(['My walrus is called Miso.'])
    }
    const keyring = testKeyring('new', 'old')
    const store = await encryptedStore(sqliteStore(path, { keyring }), keyring)
    expect(contentsOf(await store.readMessages(annKey, { limit: 9 }))).toEqual(['My walrus is called Miso.'])
    await store.close()
  })

  it('accepts no content that is not encrypted', async () => {
    const store = sqliteStore(newPath(), { keyring: testKeyring('old') })
    const changes = [
      { append: [newMessage('plain')] },
      { append: [newMessage(' ', { name: 'Ann' })] },
      { append: [newMessage('A'.repeat(40), { toolCallId: 'c1' })] },
      { put: [factWithSpan('f1', 'x')] },
    ]
    for (const change of changes)
      await expect(store.commit(nextChange(change))).rejects.toMatchObject({ code: 'bad-option' })
    await expect(store.appendRecord(annKey, { id: 'r', at: 1, body: '{}' }, 9)).rejects.toMatchObject({
      code: 'bad-option',
    })
    await expect(store.storeVectors('m', [])).rejects.toMatchObject({ code: 'bad-option' })
    expect(await store.list({ limit: 9 })).toEqual([])
    await store.close()
  })

  it('of the earlier format with content written without the key › is named by doctor and encrypted by a repair', async () => {
    const { path, storeKey } = await createEncrypted()
    writePlaintext(path)
    removeMarker(path)
    const before = stateOf(path)
    await expect(openMemory({ store: `sqlite:${path}`, storeKey })).rejects.toMatchObject({
      code: 'bad-store',
      message: expect.stringContaining('Run threadkeep doctor'),
    })
    expect(stateOf(path)[0]).toEqual(before[0])
    const keyring = testKeyring('old')
    const { faults } = await examineFile(path, { keyring })
    expect(faults.map(({ kind, key, id }) => [kind, key, id])).toEqual([
      ['plaintext', 'acme:new', undefined],
      ['plaintext', 'acme:ann', 'm2'],
      ['plaintext', 'acme:new', 'm1'],
      ['plaintext', 'acme:ann', 'f1'],
    ])
    expect((await repairFile(path, { keyring })).after.faults).toEqual([])
    await using memory = await openMemory({ store: `sqlite:${path}`, storeKey })
    expect(contentsOf(await memory.transcript('acme:ann'))).toEqual(['My walrus is called Miso.', 'plain walrus'])
    expect(contentsOf(await memory.transcript('acme:new'))).toEqual(['plain seal'])
    await memory.append('acme:new', [{ role: 'user', content: 'Goes on.' }])
    expect(readFileSync(path).toString('latin1')).not.toMatch(/plain (walrus|seal)/)
  })

  it('replaces an unused plain file, which a process without the key then cannot write to', async () => {
    const path = newPath()
    const plain = sqliteStore(path)
    const keyring = testKeyring('old')
    const store = await encryptedStore(sqliteStore(path, { keyring }), keyring)
    await expect(plain.commit(nextChange({ append: [newMessage('plain')] }))).rejects.toMatchObject({
      code: 'file-changed',
    })
    await Promise.all([plain.close(), store.close()])
    expect(readFileSync(path).toString('latin1')).not.toContain('plain')
  })
})

describe('an encrypted file, opened by a command', () => {
  const cli = createCliHarness('key')
  const wrongKey = writeKey('new')

  verifies('R-01', 'of any name › is covered here', async () => {
    const leaves = listCommands(createProgram()).filter(({ command }) => command.commands.length === 0)
    const covered = [runsOnStore('', await writeCommandFiles()), otherRuns].flatMap((runs) => Object.keys(runs))
    expect(leaves.map(({ path }) => path).sort()).toEqual(covered.sort())
  })

  verifies('R-01', 'without its key or with another one › is refused, unchanged, with the remedy', async () => {
    const { path, storeKey } = await createEncrypted()
    const env = { THREADKEEP_STORE: `sqlite:${path}` }
    const before = stateOf(path)
    const problems: unknown[] = []
    const runs = Object.entries(runsOnStore(`sqlite:${path}`, await writeCommandFiles()))
    for (const [name, given] of runs.flatMap(([name, all]) => all.map((run) => [name, run] as const)))
      for (const key of [[], [given.keyFlag ?? '--store-key', wrongKey]]) {
        const args = [...name.split(' '), ...given.args, ...key]
        const { code, stdout, stderr } = await cli.run(args, '', env)
        const isRefused = code === 1 && stdout === '' && stderr.includes(`${path} is encrypted`)
        if (!isRefused || !isDeepStrictEqual(stateOf(path), before))
          problems.push([args.join(' '), code, stdout, stderr])
      }
    expect(problems).toEqual([])
    expect(
      await cli.output('search', 'acme', 'walrus', '--store', `sqlite:${path}`, '--store-key', storeKey),
    ).toContain('Miso')
  })

  verifies(
    'R-01',
    'that needs no store, without its key or with another one › is unchanged and not shown',
    async () => {
      const { path, storeKey } = await createEncrypted()
      const env = { THREADKEEP_STORE: `sqlite:${path}` }
      const before = stateOf(path)
      for (const [name, args] of Object.entries(otherRuns))
        for (const key of [undefined, wrongKey]) {
          const keyEnv = key === undefined ? {} : { THREADKEEP_STORE_KEY: key }
          const { stdout, stderr } = await cli.run([...name.split(' '), ...args], '', { ...env, ...keyEnv })
          expect([name, key, /acme:ann|walrus/.test(stdout + stderr), stateOf(path)]).toEqual([
            name,
            key,
            false,
            before,
          ])
        }
      const shown = await cli.run(['complete', '--', 'facts', 'acme:'], '', { ...env, THREADKEEP_STORE_KEY: storeKey })
      expect(shown.stdout).toContain('acme:ann')
    },
  )
})

describe('a plain file', () => {
  verifies('R-01', 'opened with a key › is refused with the way to encrypt it', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    await store.commit(nextChange({ append: [newMessage('one')] }))
    await store.close()
    const before = stateOf(path)
    await expect(openMemory({ store: `sqlite:${path}`, storeKey: writeKey('old') })).rejects.toMatchObject({
      code: 'bad-store',
      message: `${path} was written without encryption. Open it without a key and export it, then import it into a new store with a key.`,
    })
    expect(stateOf(path)).toEqual(before)
  })
})
