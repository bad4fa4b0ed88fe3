import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { exitCodes } from './failure.ts'
import { passphraseFrom } from './passphrase.ts'
import { many, progressLine, say } from './say.ts'
import { existingFile, existingStore, type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly format: string
  readonly scope?: string
  readonly key?: string
  readonly out?: string
  readonly passphraseFile?: string
}

const help = `
A bundle is text, one JSON value a line, each bound to the one before by a hash: the same memory always gives the same
bytes, and any change to them is noticed. With a passphrase it is encrypted. Vectors are not part of it.

With --format server-memory it is the file of the MCP server-memory instead, with the nodes of one scope and nothing else:
name it in MEMORY_FILE_PATH to go back to that server.

Examples:
  threadkeep export --out memory.jsonl
  threadkeep export --scope acme | gzip > acme.jsonl.gz
  threadkeep export --out memory.sealed --passphrase-file secret.txt
  threadkeep export --format server-memory --scope default --out memory.jsonl

${exitCodes}`

/** The command that writes a portable bundle. */
export function addExport(program: Command): void {
  withStore(program.command('export'))
    .description('write everything a store holds as a portable bundle')
    .option('--format <name>', 'bundle, or server-memory for the nodes of one scope', 'bundle')
    .option('--scope <name>', 'only this scope (with --format server-memory: default)')
    .option('--key <key>', 'only this session')
    .option('--out <file>', 'write to this file instead of the standard output')
    .option('--passphrase-file <file>', 'encrypt with the passphrase in this file (THREADKEEP_PASSPHRASE)')
    .addHelpText('after', help)
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const passphrase = await passphraseFrom(flags.passphraseFile, process.env)
  if (flags.format === 'server-memory') return writeNodes(flags, passphrase)
  if (flags.format !== 'bundle')
    throw new MemoryError(
      'bad-option',
      `--format is ${JSON.stringify(flags.format)}; it must be bundle or server-memory.`,
      { param: 'format' },
    )
  await writeBundle(flags, passphrase)
}

async function writeBundle(flags: Flags, passphrase: string | undefined): Promise<void> {
  const { exportBundle } = await import('../portable/export.ts')
  const store = await existingStore(flags, process.env)
  const line = progressLine()
  let done = { sessions: 0, messages: 0 }
  const progress = (now: typeof done): void => {
    done = now
    line.tell(`exported ${many(now.messages, 'message')} of ${many(now.sessions, 'session')}`)
  }
  try {
    const bundle = exportBundle(store, {
      progress,
      ...(flags.scope === undefined ? {} : { scope: flags.scope }),
      ...(flags.key === undefined ? {} : { key: flags.key }),
      ...(passphrase === undefined ? {} : { lock: { passphrase } }),
    })
    if (flags.out === undefined) return await pipeline(bundle, process.stdout, { end: false })
    await written(bundle, flags.out)
    line.end()
    say(flags.json, { ...done, file: flags.out }, [
      `${many(done.messages, 'message')} of ${many(done.sessions, 'session')} are in ${flags.out}.`,
    ])
  } finally {
    line.end()
    await store.close()
  }
}

/** Writes the nodes of one scope as the MCP server-memory does. */
async function writeNodes(flags: Flags, passphrase: string | undefined): Promise<void> {
  if (passphrase !== undefined)
    throw new MemoryError(
      'bad-option',
      'server-memory reads plain text only. Leave the passphrase out, or export a bundle.',
      { param: 'passphrase-file' },
    )
  if (flags.key !== undefined)
    throw new MemoryError('bad-option', '--key goes with a bundle; nodes belong to a scope. Name it with --scope.', {
      param: 'key',
    })
  const { key: storeKey } = storeSettings(flags, process.env)
  const url = `sqlite:${await existingFile(flags, process.env)}`
  const [{ openGraph }, { exportNodes }] = await Promise.all([
    import('../graph/graph.ts'),
    import('../graph/reference.ts'),
  ])
  const { scope = 'default', out } = flags
  const graph = await openGraph(url, storeKey === undefined ? {} : { storeKey })
  const nodes = await graph.nodes.readGraph(scope).finally(() => graph.close())
  const done = { entities: nodes.entities.length, relations: nodes.relations.length }
  // A typing mistake should not be answered with an empty file.
  if (done.entities + done.relations === 0)
    throw new MemoryError('bad-option', `Scope ${scope} has no nodes. Name another with --scope.`, { param: 'scope' })
  const bytes = [Buffer.from(exportNodes(nodes))]
  if (out === undefined) return pipeline(bytes, process.stdout, { end: false })
  await written(bytes, out)
  say(flags.json, { ...done, file: out }, [
    `${many(done.entities, 'entity', 'entities')} and ${many(done.relations, 'relation')} are in ${out}.`,
  ])
}

/** The file is there when it is whole, and not before. */
async function written(bundle: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`
  try {
    await pipeline(bundle, createWriteStream(unfinished, { mode: 0o600, flush: true }))
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}
