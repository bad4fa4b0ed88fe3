import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import type { ExistingSessionPolicy } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import type { ForeignFormat } from '../portable/format.ts'
import { formatCount } from '../text/formatCount.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, resolveStore, type StoreFlags } from './openStore.ts'
import { loadBundleKey, readPassphrase } from './options.ts'
import { createProgressLine, printResult } from './output.ts'

type Flags = StoreFlags & {
  readonly scope?: string
  readonly onExisting: string
  readonly passphraseFile?: string
  readonly verify?: string
}

const help = `
Imports a bundle of threadkeep export, the conversations.json of a ChatGPT or Claude data export, JSON Lines of
OpenAI-style messages, or the memory file of the MCP reference memory server. A bundle is verified completely before
anything is written. Importing the same file again changes nothing; an interrupted import continues. The graph of a bundle
is merged into the existing graph row by row.

Examples:
  threadkeep import memory.jsonl
  threadkeep import conversations.json --scope me
  threadkeep import acme.jsonl --scope acme-copy --on-existing skip
  threadkeep import acme.jsonl --verify file:/etc/threadkeep/bundle-key

${exitCodesHelp}`

export function addImportCommand(program: Command): void {
  addStoreOptions(program.command('import'))
    .description('import a bundle, or the export of another program')
    .argument('<file>', 'file to import')
    .option('--scope <name>', "target scope (a bundle's own scopes; otherwise the name of the format)")
    .option('--on-existing <policy>', 'existing sessions with different contents: refuse, skip or replace', 'refuse')
    .option(
      '--verify <source>',
      'refuse a bundle that is not signed with this key: file:PATH, env:NAME or command:PROGRAM',
    )
    .option('--passphrase-file <file>', 'file with the passphrase of an encrypted bundle (THREADKEEP_PASSPHRASE)')
    .addHelpText('after', help)
    .action(run)
}

type ImportProgress = {
  readonly update: (done: { sessions: number; messages: number }) => void
  readonly clear: () => void
}

async function run(file: string, flags: Flags): Promise<void> {
  const header = await readHeader(file)
  const { detectFormat } = await import('../portable/format.ts')
  const format = detectFormat(header)
  const { update, clear } = createProgressLine()
  const progress: ImportProgress = {
    update: (done) =>
      update(`imported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')}`),
    clear,
  }
  try {
    await (format === 'bundle'
      ? importBundleFile(file, flags, progress)
      : importForeignFile(file, format, flags, progress))
  } finally {
    clear()
  }
}

async function importBundleFile(file: string, flags: Flags, { update, clear }: ImportProgress): Promise<void> {
  const passphrase = await readPassphrase(flags.passphraseFile, process.env)
  const verifyKey = await loadBundleKey(flags.verify)
  const [{ openMemory }, { openStore }] = await Promise.all([import('../index.ts'), import('../stores/open.ts')])
  const { url, key } = resolveStore(flags, process.env)
  await using memory = await openMemory({ store: await openStore(url, key), upkeep: false })
  const done = await memory.import(() => createReadStream(file), {
    onProgress: update,
    onExisting: flags.onExisting as ExistingSessionPolicy,
    ...(flags.scope === undefined ? {} : { scope: flags.scope }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(verifyKey === undefined ? {} : { verifyKey }),
  })
  clear()
  const unchanged = done.unchanged === 0 ? [] : [`${formatCount(done.unchanged, 'session')} unchanged.`]
  printResult(flags.json, done, [
    `Imported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')}.`,
    ...unchanged,
    ...done.skipped.map((name) => `skipped ${name}`),
    ...done.replaced.map((name) => `replaced ${name}`),
  ])
}

async function importForeignFile(
  file: string,
  format: ForeignFormat,
  flags: Flags,
  { update, clear }: ImportProgress,
): Promise<void> {
  if (flags.verify !== undefined)
    throw new MemoryError('bad-option', '--verify needs a bundle of threadkeep export: other formats are not signed.', {
      param: 'verify',
    })
  const [{ parseForeign }, { importForeign }, { openMemory }, { openStore }] = await Promise.all([
    import('../portable/format.ts'),
    import('../portable/importForeign.ts'),
    import('../index.ts'),
    import('../stores/open.ts'),
  ])
  const foreign = parseForeign(format, await readFile(file, 'utf8'), basename(file).replace(/\.\w+$/, ''))
  const { url, key } = resolveStore(flags, process.env)
  const store = await openStore(url, key)
  await using memory = await openMemory({ store })
  const done = await importForeign({ memory, store, scope: flags.scope ?? format }, foreign, {
    now: Date.now(),
    onProgress: update,
  })
  clear()
  const knowledge = done.knowledge === 0 ? '' : ` and ${formatCount(done.knowledge, 'piece', 'pieces')} of knowledge`
  const unchanged = done.unchanged === 0 ? [] : [`${done.unchanged} unchanged.`]
  printResult(flags.json, { format, ...done }, [
    `Imported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')}${knowledge}.`,
    ...unchanged,
    ...done.skipped.map(({ what, why }) => `skipped ${what}: ${why}`),
  ])
}

/** Reads the first bytes of a file, enough to detect its format. */
async function readHeader(file: string): Promise<Uint8Array> {
  const { formatDetectionBytes } = await import('../portable/format.ts')
  const handle = await open(file).catch((cause: unknown) => {
    throw new MemoryError('bad-option', `Cannot read ${file}. Name the file to import.`, { param: 'file', cause })
  })
  try {
    const bytes = new Uint8Array(formatDetectionBytes)
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
