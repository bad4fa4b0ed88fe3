import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { ExportOptions } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatCount } from '../text/formatCount.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, openExistingStore, requireStoreFile, resolveStore, type StoreFlags } from './openStore.ts'
import { loadBundleKey, readPassphrase } from './options.ts'
import { createProgressLine, printResult } from './output.ts'

type Flags = StoreFlags & {
  readonly format: string
  readonly scope?: string
  readonly key?: string
  readonly out?: string
  readonly passphraseFile?: string
  readonly sign?: string
}

const help = `
A bundle is JSON Lines. Each line contains a hash of the previous one, so that every change is detected, and the same
memory always produces the same bytes. A passphrase encrypts the bundle. Vectors are not exported.

--format server-memory writes the file of the MCP reference memory server instead, with the graph nodes of one scope only.
Set MEMORY_FILE_PATH to that file to go back to the reference server.

Examples:
  threadkeep export --out memory.jsonl
  threadkeep export --scope acme | gzip > acme.jsonl.gz
  threadkeep export --out memory.encrypted --passphrase-file secret.txt
  threadkeep export --out memory.jsonl --sign file:/etc/threadkeep/bundle-key
  threadkeep export --format server-memory --scope default --out memory.jsonl

${exitCodesHelp}`

export function addExportCommand(program: Command): void {
  addStoreOptions(program.command('export'))
    .description('export a store as a portable bundle')
    .option('--format <name>', 'bundle, or server-memory for the nodes of one scope', 'bundle')
    .option('--scope <name>', 'only this scope (with --format server-memory: default)')
    .option('--key <key>', 'only this session')
    .option('--out <file>', 'write to this file instead of standard output')
    .option('--sign <source>', 'sign with the key in file:PATH, env:NAME or command:PROGRAM')
    .option('--passphrase-file <file>', 'encrypt with the passphrase in this file (THREADKEEP_PASSPHRASE)')
    .addHelpText('after', help)
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const passphrase = await readPassphrase(flags.passphraseFile, process.env)
  if (flags.format === 'server-memory') return exportServerMemory(flags, passphrase)
  if (flags.format !== 'bundle')
    throw new MemoryError(
      'bad-option',
      `--format is ${JSON.stringify(flags.format)}; it must be bundle or server-memory.`,
      { param: 'format' },
    )
  await exportToBundle(flags, passphrase)
}

async function exportToBundle(flags: Flags, passphrase: string | undefined): Promise<void> {
  const { exportBundle } = await import('../portable/export.ts')
  const signingKey = await loadBundleKey(flags.sign)
  const store = await openExistingStore(flags, process.env)
  const progressLine = createProgressLine()
  let done = { sessions: 0, messages: 0 }
  const progress = (now: typeof done): void => {
    done = now
    progressLine.update(`exported ${formatCount(now.messages, 'message')} of ${formatCount(now.sessions, 'session')}`)
  }
  const encryption: Pick<ExportOptions, 'encryption'> = passphrase === undefined ? {} : { encryption: { passphrase } }
  try {
    const bundle = exportBundle(store, {
      onProgress: progress,
      ...(flags.scope === undefined ? {} : { scope: flags.scope }),
      ...(flags.key === undefined ? {} : { key: flags.key }),
      ...encryption,
      ...(signingKey === undefined ? {} : { signingKey }),
    })
    if (flags.out === undefined) return await pipeline(bundle, process.stdout, { end: false })
    await writeAtomically(bundle, flags.out)
    progressLine.clear()
    printResult(flags.json, { ...done, file: flags.out }, [
      `Exported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')} to ${flags.out}.`,
    ])
  } finally {
    progressLine.clear()
    await store.close()
  }
}

/** Exports the graph nodes of one scope in the format of the MCP reference memory server. */
async function exportServerMemory(flags: Flags, passphrase: string | undefined): Promise<void> {
  if (passphrase !== undefined)
    throw new MemoryError(
      'bad-option',
      'The server-memory format is plain text. Omit the passphrase, or export a bundle.',
      { param: 'passphrase-file' },
    )
  if (flags.sign !== undefined) throw new MemoryError('bad-option', '--sign needs --format bundle.', { param: 'sign' })
  if (flags.key !== undefined)
    throw new MemoryError('bad-option', '--key needs --format bundle: nodes belong to a scope. Use --scope.', {
      param: 'key',
    })
  const { key: storeKey } = resolveStore(flags, process.env)
  const url = `sqlite:${await requireStoreFile(flags, process.env)}`
  const [{ openGraph }, { serializeReferenceFile }] = await Promise.all([
    import('../graph/graph.ts'),
    import('../graph/reference.ts'),
  ])
  const { scope = 'default', out } = flags
  const graph = await openGraph(url, storeKey === undefined ? {} : { storeKey })
  const nodes = await graph.nodes.readGraph(scope).finally(() => graph.close())
  const done = { entities: nodes.entities.length, relations: nodes.relations.length }
  // A misspelled scope must not produce an empty file.
  if (done.entities + done.relations === 0)
    throw new MemoryError('bad-option', `Scope ${scope} has no nodes. Choose another with --scope.`, { param: 'scope' })
  const bytes = [Buffer.from(serializeReferenceFile(nodes))]
  if (out === undefined) return pipeline(bytes, process.stdout, { end: false })
  await writeAtomically(bytes, out)
  printResult(flags.json, { ...done, file: out }, [
    `Exported ${formatCount(done.entities, 'entity', 'entities')} and ${formatCount(done.relations, 'relation')} to ${out}.`,
  ])
}

/** Writes to a temporary file and renames it, so that the target never holds a partial export. */
async function writeAtomically(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, file: string): Promise<void> {
  const temporary = `${file}.unfinished`
  try {
    await pipeline(chunks, createWriteStream(temporary, { mode: 0o600, flush: true }))
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
