import { createReadStream } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import type { ExistingSessionPolicy, ImportOptions } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { parseStoredKey } from '../domain/key.ts'
import { isUserSession } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import type { ForeignFormat } from '../portable/format.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, resolveStore, type StoreFlags } from './openStore.ts'
import { loadBundleKey, readPassphrase } from './options.ts'
import { type ConfirmFlags, confirmOperation } from './terminal/confirm.ts'
import { option, setHelp } from './terminal/help.ts'
import { interruptedError, interruptible } from './terminal/interrupt.ts'
import { printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

type Flags = StoreFlags &
  ConfirmFlags & {
    readonly scope?: string
    readonly onExisting: string
    readonly passphraseFile?: string
    readonly verify?: string
  }

export function addImportCommand(program: Command): void {
  const command = addStoreOptions(program.command('import'))
    .description('import a bundle, or the export of another program')
    .argument('<file>', 'file to import')
    .addOption(
      option('--scope <name>', 'target scope', { fallback: "a bundle's own scopes; otherwise the name of the format" }),
    )
    .option('--on-existing <policy>', 'existing sessions with different contents: refuse, skip or replace', 'refuse')
    .option('--yes', 'with --on-existing replace, confirm without being asked')
    .option(
      '--verify <source>',
      'refuse a bundle that is not signed with this key: file:PATH, env:NAME or command:PROGRAM',
    )
    .option('--passphrase-file <file>', 'file with the passphrase of an encrypted bundle')
    .action(run)
  setHelp(command, {
    details: [
      'Imports a bundle of threadkeep export, the conversations.json of a ChatGPT or Claude data export, JSON Lines of OpenAI-style messages, or the memory file of the MCP reference memory server. A bundle is verified completely before anything is written. The graph of a bundle is merged into the existing graph row by row.',
      'Importing the same file again changes nothing. Ctrl-C completes the session that is being written and stops; import the same file again to continue.',
    ],
    variables: { THREADKEEP_PASSPHRASE: 'passphrase of an encrypted bundle' },
    examples: [
      'threadkeep import memory.jsonl',
      'threadkeep import conversations.json --scope me',
      'threadkeep import acme.jsonl --scope acme-copy --on-existing skip',
      'threadkeep import acme.jsonl --verify file:/etc/threadkeep/bundle-key',
    ],
  })
}

async function run(file: string, flags: Flags): Promise<void> {
  const header = await readHeader(file)
  const { detectFormat } = await import('../portable/format.ts')
  const format = detectFormat(header)
  using progress = createProgress(flags)
  await interruptible((signal) =>
    format === 'bundle'
      ? importBundleFile(file, flags, progress, signal)
      : importForeignFile(file, format, flags, progress, signal),
  )
}

const interruptMessage = (sessions: number): string =>
  `Interrupted after ${formatCount(sessions, 'session')}, which are complete. Import the same file again to continue.`

/** Stops an interrupted import between two sessions: inside of one, it would leave a beginning. */
function throwIfInterrupted(signal: AbortSignal, sessions: number): void {
  if (signal.aborted) throw interruptedError(undefined, interruptMessage(sessions))
}

async function importBundleFile(file: string, flags: Flags, progress: Progress, signal: AbortSignal): Promise<void> {
  const passphrase = await readPassphrase(flags.passphraseFile, process.env)
  const verifyKey = await loadBundleKey(flags.verify)
  const [{ openMemory }, { openStore }] = await Promise.all([import('../index.ts'), import('../stores/open.ts')])
  const { url, key } = resolveStore(flags, process.env)
  await using memory = await openMemory({ store: await openStore(url, key), upkeep: false })
  const options: ImportOptions = {
    ...(flags.scope === undefined ? {} : { scope: flags.scope }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(verifyKey === undefined ? {} : { verifyKey }),
  }
  const { size } = await stat(file)
  const read = (label: string) => () =>
    countBytes(createReadStream(file), (bytes) => progress.count(label, bytes, size))
  if (!(await confirmReplacement(memory, read('Comparing bytes'), options, flags, progress))) return
  let isWriting = false
  // Internal sessions of the engine are imported and not counted.
  const counts = { written: 0, unchanged: 0 }
  const verification = new AbortController()
  signal.addEventListener('abort', () => {
    if (!isWriting) verification.abort()
  })
  const done = await memory.import(read('Importing bytes'), {
    ...options,
    onProgress: () => {
      isWriting = true
    },
    onSession: (name, outcome) => {
      if (isUserSession({ key: parseStoredKey(name) })) counts[outcome]++
      throwIfInterrupted(signal, counts.written)
    },
    onExisting: flags.onExisting as ExistingSessionPolicy,
    signal: verification.signal,
  })
  progress.clear()
  const unchanged = counts.unchanged === 0 ? [] : [`${formatCount(counts.unchanged, 'session')} unchanged.`]
  printResult(flags.json, { ...done, sessions: counts.written, unchanged: counts.unchanged }, [
    `Imported ${formatCount(done.messages, 'message')} of ${formatCount(counts.written, 'session')}.`,
    ...unchanged,
    ...done.skipped.map((name) => `skipped ${name}`),
    ...done.replaced.map((name) => `replaced ${name}`),
  ])
}

/** Passes bytes on and reports their number. */
async function* countBytes(chunks: AsyncIterable<Uint8Array>, report: (bytes: number) => void) {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    report(bytes)
    yield chunk
  }
}

/** Asks before sessions of the store are replaced. */
async function confirmReplacement(
  memory: Memory,
  open: () => AsyncIterable<Uint8Array>,
  options: ImportOptions,
  flags: Flags,
  progress: Progress,
): Promise<boolean> {
  if (flags.onExisting !== 'replace' || flags.yes === true) return true
  const names = await findConflicts(memory, open, options)
  progress.clear()
  if (names.length === 0) return true
  return confirmOperation(flags, {
    value: { wouldReplace: names },
    lines: ['Would replace what the store has for:', ...names.map((name) => `  ${name}`)],
    question: `Replace ${formatCount(names.length, 'session')} for good?`,
    otherwise: 'Nothing was imported.',
  })
}

/** Lists what the store has with other contents than the bundle. */
async function findConflicts(
  memory: Memory,
  open: () => AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<readonly string[]> {
  const { findBundleConflicts } = await import('../portable/import.ts')
  const { internalsOf } = await import('../memory.ts')
  const internals = internalsOf(memory)
  return findBundleConflicts(internals.store, open, options, internals)
}

async function importForeignFile(
  file: string,
  format: ForeignFormat,
  flags: Flags,
  progress: Progress,
  signal: AbortSignal,
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
  progress.step(`Reading ${basename(file)}`)
  const foreign = parseForeign(format, await readFile(file, 'utf8'), basename(file).replace(/\.\w+$/, ''))
  const total = foreign.sessions.reduce((sum, { messages }) => sum + messages.length, 0)
  const { url, key } = resolveStore(flags, process.env)
  const store = await openStore(url, key)
  await using memory = await openMemory({ store })
  const done = await importForeign({ memory, store, scope: flags.scope ?? format }, foreign, {
    now: Date.now(),
    onProgress: ({ sessions, messages }) => {
      progress.count('Importing messages', messages, total)
      throwIfInterrupted(signal, sessions)
    },
  })
  progress.clear()
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
