import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { BundleEncryption } from '../../../src/domain/bundle.ts'
import { isObject } from '../../../src/domain/error.ts'
import { formatKey } from '../../../src/domain/key.ts'
import type { FileKind } from '../../../src/files/kind.ts'
import { defaultFileLimits } from '../../../src/files/limits.ts'
import { Reader } from '../../../src/files/reader.ts'
import { openGraph } from '../../../src/graph/graph.ts'
import { importReferenceFile } from '../../../src/graph/reference.ts'
import { Handoff } from '../../../src/handoff/handoff.ts'
import { contentFiles, hashText, metadataFile } from '../../../src/handoff/layout/format.ts'
import { openMemory } from '../../../src/index.ts'
import { internalsOf, type Memory } from '../../../src/memory.ts'
import { parseForeign } from '../../../src/portable/format.ts'
import { importForeign } from '../../../src/portable/importForeign.ts'
import { parseKeyFile } from '../../../src/server/auth/credential.ts'
import { type Config, parseConfig } from '../../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../../src/server/config/settings.ts'
import { parsePrices } from '../../../src/server/observability/prices.ts'
import { parseKeyring } from '../../../src/stores/encrypted/keyring.ts'
import { type Format, fileKinds, samples } from './samples.ts'

/** A file, one byte per character. */
export type FileInput = { readonly format: Format; readonly bytes: string }

const readerFormats: ReadonlySet<string> = new Set(fileKinds)
const passphrase = 'a passphrase of the campaign'
const budget = 1_000
/** No language needs more characters per token on average. */
const maxCharsPerToken = 10

/** Files of the operator. A text that is no JSON is refused before these parsers see it, as `readConfig` does. */
const settingsParsers: Readonly<Partial<Record<Format, (text: string) => unknown>>> = {
  'client keys': (text) => parseKeyFile(text, 'keys.json'),
  'store keys': (text) => parseKeyring(text, 'keys.txt'),
  configuration: (text) => parseJson(text, (value) => resolveServerConfig(toSettings(parseConfig(value)), {})),
  prices: (text) => parseJson(text, parsePrices),
}
const toSettings = (config: Config) => mergeSettings([toConfigSource(config, 'file')], undefined)

function parseJson(text: string, parse: (value: unknown) => unknown): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return parse(value)
}

/** A problem that is no error of the parser, such as a broken promise after an import. */
export class ImportProblem extends Error {}

/** Everything that reads files, each time with a fresh memory. */
export class Parsers implements AsyncDisposable {
  readonly samples: Readonly<Record<Format, string>>
  private readonly reader = new Reader({ ...defaultFileLimits, parseTimeoutMs: 20_000 })
  private readonly folder = mkdtempSync(join(tmpdir(), 'threadkeep-campaign-files-'))
  private count = 0

  private constructor(exported: Parameters<typeof samples>[0]) {
    this.samples = samples(exported)
  }

  static async open(): Promise<Parsers> {
    return new Parsers({
      bundle: await exportBundle(),
      encryptedBundle: await exportBundle({ passphrase, cost: 2 }),
      layout: await exportSession(),
    })
  }

  async parse({ format, bytes }: FileInput): Promise<void> {
    const buffer = Buffer.from(bytes, 'latin1')
    if (readerFormats.has(format)) {
      const upload = { name: `a.${format}`, bytes: new Uint8Array(buffer) }
      for await (const _ of this.reader.read(format as FileKind, upload));
      return
    }
    const parseSettings = settingsParsers[format]
    if (parseSettings !== undefined) {
      parseSettings(buffer.toString())
      return
    }
    await using memory = await openMemory({ profile: format === 'layout' ? 'handoff' : 'thread', upkeep: false })
    if (format === 'layout') await this.importSession(memory, bytes)
    else if (format === 'bundle' || format === 'encrypted bundle')
      await memory.import(
        async function* () {
          yield buffer
        },
        format === 'bundle' ? {} : { passphrase },
      )
    else await this.importForeignFile(memory, format, buffer)
    if (format !== 'layout') await checkSessions(memory)
  }

  private async importForeignFile(memory: Memory, format: Format, bytes: Buffer): Promise<void> {
    const data = parseForeign(format as 'claude', bytes.toString(), 'a')
    const { store } = internalsOf(memory)
    await importForeign({ memory, store, scope: 'acme' }, data, { now: 1 })
    if (format !== 'server-memory') return
    const file = this.createPath()
    writeFileSync(file, bytes)
    const graph = await openGraph('ram:', { clock: () => 0, memoryStore: store })
    await importReferenceFile(graph.nodes, 'acme', file).finally(() => graph.close())
  }

  /** Writes the files of a session, with the hashes of their contents, and imports them. */
  private async importSession(memory: Memory, bytes: string): Promise<void> {
    const folder = this.createPath()
    const original = parseFiles(this.samples.layout) ?? {}
    const files = parseFiles(bytes) ?? { ...original, [contentFiles.transcript]: bytes }
    let metadata = files[metadataFile] ?? ''
    for (const name of Object.values(contentFiles))
      metadata = metadata.replaceAll(hashText(original[name] ?? ''), hashText(files[name] ?? ''))
    for (const [name, text] of Object.entries({ ...files, [metadataFile]: metadata })) {
      const path = join(folder, 'sessions/acme/session_1', name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
    const graph = await openGraph('ram:', { clock: () => 0, memoryStore: internalsOf(memory).store })
    const handoff = new Handoff({ memory, graph, clock: () => 0 })
    try {
      await handoff.import({ directory: folder })
    } finally {
      await handoff.close()
      await graph.close()
    }
  }

  private createPath(): string {
    return join(this.folder, `${++this.count}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reader.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Parses files by name; undefined if the bytes are something else. */
function parseFiles(bytes: string): Readonly<Record<string, string>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes, 'latin1').toString())
    return isObject(value) && Object.values(value).every((text) => typeof text === 'string')
      ? (value as Record<string, string>)
      : undefined
  } catch {
    return undefined
  }
}

/** Imported sessions can be continued, and their contexts fit the budget. */
async function checkSessions(memory: Memory): Promise<void> {
  const sessions = await internalsOf(memory).store.list({ limit: 3 })
  for (const { key, messages } of sessions) {
    if (key.id === '' || messages === 0) continue
    const name = formatKey(key)
    const { text } = await memory.context(name, { budget })
    if (text.length > budget * maxCharsPerToken)
      throw new ImportProblem(`a context of ${text.length} characters exceeds the budget of ${budget} tokens`)
    const [stored] = await memory.append(name, [{ role: 'user', content: 'And now?' }])
    const [newest] = await memory.transcript(name, { limit: 1, newest: true })
    if (newest?.id !== stored?.id)
      throw new ImportProblem(`the session cannot be continued: its newest message is ${newest?.id}`)
  }
}

async function exportBundle(encryption?: BundleEncryption): Promise<string> {
  await using memory = await openMemory({ upkeep: false, clock: () => 1_000 })
  for (let index = 0; index < 20; index++)
    await memory.append('acme:ann', [
      {
        role: index % 2 === 0 ? 'user' : 'assistant',
        content: `Line ${index}. ${'It goes on and on, as we said. '.repeat(30)}`,
      },
    ])
  await memory.remember('acme', { category: 'domain', key: 'hours', value: '9 to 5' })
  const chunks: Uint8Array[] = []
  for await (const chunk of memory.export(encryption === undefined ? {} : { encryption })) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

/** The files of a saved session, as JSON by name. */
async function exportSession(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-campaign-layout-'))
  await using memory = await openMemory({ profile: 'handoff', upkeep: false })
  const graph = await openGraph('ram:', { clock: () => 0, memoryStore: internalsOf(memory).store })
  const handoff = new Handoff({ memory, graph, clock: () => 0 })
  const messages = [
    { role: 'user' as const, content: 'We decided to use PostgreSQL in src/db.ts.' },
    { role: 'assistant' as const, content: 'Done.' },
  ]
  const { sessionId } = await handoff.save('acme', { messages })
  await handoff.export('acme', { directory: folder, compress: false })
  await handoff.close()
  await graph.close()
  const names = [metadataFile, ...Object.values(contentFiles)]
  const read = (name: string): string =>
    readFileSync(join(folder, 'sessions/acme', sessionId, name), 'utf8').replaceAll(sessionId, 'session_1')
  const original = Object.fromEntries(
    names.map((name) => [name, readFileSync(join(folder, 'sessions/acme', sessionId, name), 'utf8')]),
  )
  const files = Object.fromEntries(names.map((name) => [name, read(name)]))
  for (const name of Object.values(contentFiles))
    files[metadataFile] = (files[metadataFile] ?? '').replaceAll(
      hashText(original[name] ?? ''),
      hashText(files[name] ?? ''),
    )
  rmSync(folder, { recursive: true })
  return Buffer.from(JSON.stringify(files)).toString('latin1')
}
