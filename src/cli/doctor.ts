import type { Command } from 'commander'
import type { Keyring } from '../domain/ports.ts'
import type { StoreReport } from '../stores/sqlite/examine.ts'
import { formatCount } from '../text/formatCount.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  type EmbedderFlags,
  openExistingStore,
  requireStoreFile,
  resolveEmbedder,
  resolveStore,
  type StoreFlags,
} from './openStore.ts'
import { setHelp } from './terminal/help.ts'
import { checkOutFile, createOutFile } from './terminal/outFile.ts'
import { printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

type Flags = StoreFlags &
  EmbedderFlags & { readonly repair?: boolean; readonly backup?: string; readonly rotateKey?: boolean }

export function addDoctorCommand(program: Command): void {
  const command = addEmbedderOption(addStoreOptions(program.command('doctor')))
    .description('check a store, repair it, or back it up while it is in use')
    .option('--repair', 'repair damaged entries')
    .option('--backup <file>', 'copy the store to this new file first')
    .option('--rotate-key', 'wrap the keys of an encrypted store with the first key of --store-key')
    .action(run)
  setHelp(command, {
    details: [
      'Checks every entry of a store and reports damage. --repair moves damaged entries to quarantine, derives again what can be derived from messages, and copies the readable part of a corrupt file to a new one; the old file is kept. Stop all processes that use the store before a repair. --backup works while the store is in use. With --embedder, also checks that the embedder answers, and counts the entries it has embedded.',
    ],
    examples: [
      'threadkeep doctor',
      'threadkeep doctor --backup memory-copy.db',
      'threadkeep doctor --store sqlite:memory.db --repair',
    ],
    exitNote: 'A damaged store is a failure.',
  })
}

async function run(flags: Flags): Promise<void> {
  const file = await requireStoreFile(flags, process.env)
  if (flags.backup !== undefined) checkOutFile(flags.backup, 'backup', {})
  const keyring = await loadKeys(flags)
  using progress = createProgress(flags)
  if (flags.backup !== undefined) await backUp(file, keyring, flags.backup, progress)
  if (flags.rotateKey === true) return await rotateKeys(file, keyring, flags, progress)
  if (flags.repair === true) return await repairFile(file, keyring, flags, progress)
  const { examineFile } = await import('../stores/sqlite/repair.ts')
  const onProgress = (done: number, total: number): void => progress.count('Checking entries', done, total)
  const findings = await examineFile(file, { keyring, onProgress })
  progress.step('Checking the embedder')
  const embedder = await examineEmbedder(flags)
  progress.clear()
  const copied = flags.backup === undefined ? [] : [`Copied the store to ${flags.backup}.`]
  const lines = [...copied, ...formatFindings(findings), ...formatEmbedder(embedder)]
  printResult(flags.json, { ...findings, ...(embedder && { embedder }) }, lines)
  if (findings.faults.length > 0 || embedder?.fault !== undefined) process.exitCode = 1
}

async function loadKeys(flags: Flags): Promise<Keyring | undefined> {
  const { key } = resolveStore(flags, process.env)
  return key === undefined ? undefined : (await import('../stores/encrypted.ts')).loadKeyring(key)
}

/** State of the embedder: entries it has embedded, and the length of its vectors or the reason why there are none. */
type EmbedderReport = {
  readonly name: string
  readonly done: number
  readonly total: number
  readonly dimensions?: number
  readonly fault?: string
}

const embedderTimeoutMs = 30_000

async function examineEmbedder(flags: Flags): Promise<EmbedderReport | undefined> {
  const { embedder } = await resolveEmbedder(flags, process.env)
  if (embedder === undefined) return undefined
  const { name } = embedder
  const store = await openExistingStore(flags, process.env)
  try {
    const counts = await store.countVectors(name)
    const probe = await embedder.embed(['Hello'], AbortSignal.timeout(embedderTimeoutMs)).then(
      ([vector]) => ({ dimensions: vector?.length ?? 0 }),
      async (error: unknown) => ({ fault: (await import('./errors.ts')).toCliError(error).message }),
    )
    return { name, ...counts, ...probe }
  } finally {
    await store.close()
  }
}

function formatEmbedder(report: EmbedderReport | undefined): readonly string[] {
  if (report === undefined) return []
  const { name, done, total, dimensions, fault } = report
  const state = fault === undefined ? `answers with vectors of ${dimensions} numbers` : `does not work: ${fault}`
  return [`Embedder ${name}: ${done} of ${formatCount(total, 'entry', 'entries')} embedded. It ${state}`]
}

async function backUp(file: string, keyring: Keyring | undefined, target: string, progress: Progress): Promise<void> {
  const { sqliteStore } = await import('../stores/sqlite.ts')
  const store = sqliteStore(file, keyring === undefined ? {} : { keyring })
  try {
    await createOutFile(target, 'backup', {}, (temporary) =>
      store.backup(temporary, (done, total) => progress.count('Copying pages', done, total)),
    )
  } finally {
    await store.close()
  }
}

async function repairFile(file: string, keyring: Keyring | undefined, flags: Flags, progress: Progress): Promise<void> {
  const { repairFile: repair } = await import('../stores/sqlite/repair.ts')
  const repaired = await repair(file, {
    keyring,
    onProgress: (done, total) => progress.count('Checking entries', done, total),
  })
  progress.clear()
  printResult(flags.json, repaired, [
    ...formatFindings(repaired.before),
    ...repaired.actions,
    ...(repaired.actions.length === 0 ? [] : ['After the repair:', ...formatFindings(repaired.after)]),
  ])
  if (repaired.after.faults.length > 0) process.exitCode = 1
}

async function rotateKeys(file: string, keyring: Keyring | undefined, flags: Flags, progress: Progress): Promise<void> {
  const [{ sqliteStore }, { rotateKeys: rotate }, { MemoryError }] = await Promise.all([
    import('../stores/sqlite.ts'),
    import('../stores/encrypted.ts'),
    import('../domain/error.ts'),
  ])
  if (keyring === undefined)
    throw new MemoryError(
      'bad-option',
      '--rotate-key needs both keys. Pass --store-key with the new key first, then the old one.',
      { param: 'store-key' },
    )
  const store = sqliteStore(file, { keyring })
  try {
    let sessions = 0
    await rotate(store, keyring, (done) => {
      sessions = done.sessions
      progress.count('Rotating keys of sessions', sessions)
    })
    progress.clear()
    printResult(flags.json, { sessions }, [
      `Rotated the keys of ${formatCount(sessions, 'session')}. The old key is no longer needed.`,
    ])
  } finally {
    await store.close()
  }
}

function formatFindings({
  path,
  format,
  bytes,
  sessions,
  messages,
  derived,
  vectors,
  quarantined,
  faults,
}: StoreReport): string[] {
  const counts = [
    formatCount(sessions, 'session'),
    formatCount(messages, 'message'),
    formatCount(derived, 'derived entry', 'derived entries'),
    formatCount(vectors, 'vector'),
  ]
  const quarantine =
    quarantined === 0
      ? []
      : [
          `${formatCount(quarantined, 'damaged entry', 'damaged entries')} from earlier repairs in the table quarantine.`,
        ]
  const damage = faults.map(
    ({ kind, key, id, reason }) =>
      `damaged: ${[kind, id, key === undefined ? undefined : `of ${key}`].filter((part) => part !== undefined).join(' ')}: ${reason}`,
  )
  const conclusion =
    faults.length === 0 ? 'No damage found.' : `${formatCount(faults.length, 'fault')}. Run threadkeep doctor --repair.`
  return [
    `${path}: format ${format}, ${(bytes / 1_048_576).toFixed(1)} MB, ${counts.join(', ')}`,
    ...quarantine,
    ...damage,
    conclusion,
  ]
}
