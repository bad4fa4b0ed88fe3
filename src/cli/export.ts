import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { ExportOptions } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey, parseScope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { NodeGraph } from '../graph/types.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, listSessions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { loadBundleKey, readPassphrase } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { interruptible } from './terminal/interrupt.ts'
import { checkOutFile, forceOption, type OutFlags, writeOutFile } from './terminal/outFile.ts'
import { printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'

type Flags = StoreFlags &
  OutFlags & {
    readonly format: string
    readonly scope?: string
    readonly key?: string
    readonly out?: string
    readonly passphraseFile?: string
    readonly sign?: string
  }

export function addExportCommand(program: Command): void {
  const command = addStoreOptions(program.command('export'))
    .description('export a store as a portable bundle')
    .option('--format <name>', 'bundle, or server-memory for the nodes of one scope', 'bundle')
    .addOption(option('--scope <name>', 'only this scope', { fallback: 'all; with --format server-memory, default' }))
    .option('--key <key>', 'only this session')
    .addOption(option('--out <file>', 'write to this file', { fallback: 'standard output' }))
    .addOption(forceOption())
    .option('--sign <source>', 'sign with the key in file:PATH, env:NAME or command:PROGRAM')
    .option('--passphrase-file <file>', 'encrypt with the passphrase in this file')
    .action(run)
  setHelp(command, {
    details: [
      'A bundle is JSON Lines. Each line contains a hash of the previous one, so that every change is detected, and the same memory always produces the same bytes. A passphrase encrypts the bundle. Vectors are not exported. An existing file is replaced only with --force.',
      '--format server-memory writes the file of the MCP reference memory server instead, with the graph nodes of one scope only. Set MEMORY_FILE_PATH to that file to go back to the reference server.',
    ],
    variables: { THREADKEEP_PASSPHRASE: 'passphrase that encrypts the bundle' },
    examples: [
      'threadkeep export --out memory.jsonl',
      'threadkeep export --scope acme | gzip > acme.jsonl.gz',
      'threadkeep export --out memory.encrypted --passphrase-file secret.txt',
      'threadkeep export --out memory.jsonl --sign file:/etc/threadkeep/bundle-key',
    ],
  })
}

async function run(flags: Flags): Promise<void> {
  if (flags.out !== undefined) checkOutFile(flags.out, 'out', flags)
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
  using progress = createProgress(flags)
  const encryption: Pick<ExportOptions, 'encryption'> = passphrase === undefined ? {} : { encryption: { passphrase } }
  try {
    progress.step('Counting messages')
    const total = await countExported(store, flags)
    await interruptible(async (signal) => {
      const bundle = exportBundle(store, {
        onProgress: ({ messages }) => progress.count('Exporting messages', messages, total.messages),
        signal,
        ...(flags.scope === undefined ? {} : { scope: flags.scope }),
        ...(flags.key === undefined ? {} : { key: flags.key }),
        ...encryption,
        ...(signingKey === undefined ? {} : { signingKey }),
      })
      if (flags.out === undefined) await pipeline(bundle, process.stdout, { end: false })
      else await writeOutFile(bundle, flags.out, 'out', flags)
    })
    progress.clear()
    if (flags.out === undefined) return
    const value = { ...total, file: flags.out }
    printResult(flags.json, value, [
      `Exported ${formatCount(total.messages, 'message')} of ${formatCount(total.sessions, 'session')} to ${flags.out}.`,
    ])
  } finally {
    progress.clear()
    await store.close()
  }
}

/** Counts the messages and the sessions of users that are exported; internal sessions are exported and not counted. */
async function countExported(
  store: Store,
  { scope, key }: Flags,
): Promise<{ readonly sessions: number; readonly messages: number }> {
  const { isUserSession } = await import('../domain/session.ts')
  if (key !== undefined) return { sessions: 1, messages: (await requireSession(store, parseKey(key))).messages }
  let [sessions, messages] = [0, 0]
  for await (const session of listSessions(store, scope === undefined ? undefined : parseScope(scope))) {
    messages += session.messages
    if (isUserSession(session)) sessions++
  }
  return { sessions, messages }
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
  const { scope = 'default', out } = flags
  const { serializeReferenceFile } = await import('../graph/reference.ts')
  const nodes = await readNodes(scope, flags)
  const done = { entities: nodes.entities.length, relations: nodes.relations.length }
  // A misspelled scope must not produce an empty file.
  if (done.entities + done.relations === 0)
    throw new MemoryError('bad-option', `Scope ${scope} has no nodes. Choose another with --scope.`, { param: 'scope' })
  const bytes = [Buffer.from(serializeReferenceFile(nodes))]
  if (out === undefined) return pipeline(bytes, process.stdout, { end: false })
  await writeOutFile(bytes, out, 'out', flags)
  printResult(flags.json, { ...done, file: out }, [
    `Exported ${formatCount(done.entities, 'entity', 'entities')} and ${formatCount(done.relations, 'relation')} to ${out}.`,
  ])
}

async function readNodes(scope: string, flags: Flags): Promise<NodeGraph> {
  const store = await openExistingStore(flags, process.env)
  try {
    const { openStoreGraph } = await import('../graph/graph.ts')
    const graph = await openStoreGraph(store)
    if (graph === undefined) return { entities: [], relations: [] }
    return await graph.nodes.readGraph(scope).finally(() => graph.close())
  } finally {
    await store.close()
  }
}
