import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import type { OnExisting } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import type { ForeignFormat } from '../portable/format.ts'
import { exitCodes } from './failure.ts'
import { passphraseFrom } from './passphrase.ts'
import { many, progressLine, say } from './say.ts'
import { type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & { readonly scope?: string; readonly onExisting: string; readonly passphraseFile?: string }

const help = `
What can be imported: a bundle of threadkeep export, the conversations.json of a ChatGPT or Claude data export, JSON
Lines of OpenAI-style messages, and the memory file of the MCP server-memory. A bundle is proved whole before anything
is written. The same file again changes nothing; an import that was interrupted is continued. A graph is joined with the
one that is there, row by row.

Examples:
  threadkeep import memory.jsonl
  threadkeep import conversations.json --scope me
  threadkeep import acme.jsonl --scope acme-copy --on-existing skip

${exitCodes}`

/** The command that takes in a bundle, or what another program has exported. */
export function addImport(program: Command): void {
  withStore(program.command('import'))
    .description('take in a bundle, or the export of another program')
    .argument('<file>', 'the file to import')
    .option('--scope <name>', "the scope to import into (a bundle's own; else the name of the format)")
    .option(
      '--on-existing <what>',
      'what to do with a session that is there with other contents: refuse, skip or replace',
      'refuse',
    )
    .option('--passphrase-file <file>', 'the passphrase of an encrypted bundle is in this file (THREADKEEP_PASSPHRASE)')
    .addHelpText('after', help)
    .action(run)
}

async function run(file: string, flags: Flags): Promise<void> {
  const beginning = await beginningOf(file)
  const { detectFormat } = await import('../portable/format.ts')
  const format = detectFormat(beginning)
  const line = progressLine()
  const progress = (done: { sessions: number; messages: number }): void =>
    line.tell(`imported ${many(done.messages, 'message')} of ${many(done.sessions, 'session')}`)
  try {
    await (format === 'bundle'
      ? takeBundle(file, flags, progress, line.end)
      : takeForeign(file, format, flags, progress, line.end))
  } finally {
    line.end()
  }
}

type Tell = (done: { sessions: number; messages: number }) => void

async function takeBundle(file: string, flags: Flags, progress: Tell, end: () => void): Promise<void> {
  const passphrase = await passphraseFrom(flags.passphraseFile, process.env)
  const [{ importBundle }, { openStore }] = await Promise.all([
    import('../portable/import.ts'),
    import('../stores/open.ts'),
  ])
  const { url, key } = storeSettings(flags, process.env)
  const store = await openStore(url, key)
  try {
    const done = await importBundle(store, () => createReadStream(file), {
      progress,
      onExisting: flags.onExisting as OnExisting,
      ...(flags.scope === undefined ? {} : { scope: flags.scope }),
      ...(passphrase === undefined ? {} : { passphrase }),
    })
    end()
    const left = [
      ...done.skipped.map((name) => `${name} was left as it is`),
      ...done.replaced.map((name) => `${name} was replaced`),
    ]
    const unchanged =
      done.unchanged === 0 ? [] : [`${many(done.unchanged, 'session was', 'sessions were')} there already.`]
    say(flags.json, done, [
      `${many(done.messages, 'message')} of ${many(done.sessions, 'session')} were imported.`,
      ...unchanged,
      ...left,
    ])
  } finally {
    await store.close()
  }
}

async function takeForeign(
  file: string,
  format: ForeignFormat,
  flags: Flags,
  progress: Tell,
  end: () => void,
): Promise<void> {
  const [{ parseForeign }, { keepForeign }, { openMemory }, { openStore }] = await Promise.all([
    import('../portable/format.ts'),
    import('../portable/importForeign.ts'),
    import('../index.ts'),
    import('../stores/open.ts'),
  ])
  const foreign = parseForeign(format, await readFile(file, 'utf8'), basename(file).replace(/\.\w+$/, ''))
  const { url, key } = storeSettings(flags, process.env)
  const store = await openStore(url, key)
  await using memory = await openMemory({ store })
  const done = await keepForeign({ memory, store, scope: flags.scope ?? format }, foreign, {
    now: Date.now(),
    progress,
  })
  end()
  const known = done.knowledge === 0 ? '' : ` and ${many(done.knowledge, 'piece', 'pieces')} of knowledge`
  const unchanged = done.unchanged === 0 ? [] : [`${done.unchanged} were there already.`]
  const skipped = done.skipped.map(({ what, why }) => `left out: ${what}: ${why}`)
  say(flags.json, { format, ...done }, [
    `${many(done.messages, 'message')} of ${many(done.sessions, 'session')}${known} were imported.`,
    ...unchanged,
    ...skipped,
  ])
}

async function beginningOf(file: string): Promise<Uint8Array> {
  const { detectableWithin } = await import('../portable/format.ts')
  const handle = await open(file).catch((cause: unknown) => {
    throw new MemoryError('bad-option', `${file} cannot be read. Name the file to import.`, { param: 'file', cause })
  })
  try {
    const bytes = new Uint8Array(detectableWithin)
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
