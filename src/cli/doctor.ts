import type { Command } from 'commander'
import type { Keyring, Store } from '../domain/ports.ts'
import type { StoreReport } from '../stores/sqlite/examine.ts'
import { formatCount } from '../text/formatCount.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  type EmbedderFlags,
  openExistingStore,
  requireStoreFile,
  requireStoreUrl,
  resolveEmbedder,
  resolveStore,
  type StoreFlags,
} from './openStore.ts'
import { readOption } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { checkOutFile, createOutFile } from './terminal/outFile.ts'
import { printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

type Flags = StoreFlags &
  EmbedderFlags & {
    readonly sessions?: string
    readonly repair?: boolean
    readonly backup?: string
    readonly rotateKey?: boolean
  }

export function addDoctorCommand(program: Command): void {
  const command = addEmbedderOption(addStoreOptions(program.command('doctor')))
    .description('check a store, repair it, or back it up while it is in use')
    .addOption(
      option('--sessions <url>', 'also check the Redis store of sessions: redis://HOST:PORT', {
        env: ['THREADKEEP_SESSIONS'],
      }),
    )
    .option('--repair', 'repair damaged entries')
    .option('--backup <file>', 'copy the store to this new file first')
    .option('--rotate-key', 'wrap the keys of an encrypted store with the first key of --store-key')
    .action(run)
  setHelp(command, {
    details: [
      'Checks every entry of a store and reports damage; of a PostgreSQL database, which checks its pages itself, the counts of each session and the settings of the server. --repair moves damaged entries to quarantine, derives again what can be derived from messages, and copies the readable part of a corrupt file to a new one; the old file is kept. Stop all processes that use the store before a repair. --backup works while the store is in use. With --embedder, also checks that the embedder answers, and counts the entries it has embedded.',
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
  const { isDatabaseUrl } = await import('../stores/postgres/url.ts')
  if (isDatabaseUrl(resolveStore(flags, process.env).url)) return examineDatabase(flags)
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
  progress.step('Checking the store of sessions')
  const sessions = await examineSessions(flags)
  progress.clear()
  const copied = flags.backup === undefined ? [] : [`Copied the store to ${flags.backup}.`]
  const lines = [...copied, ...formatFindings(findings), ...formatEmbedder(embedder), ...formatSessions(sessions)]
  const report = { ...findings, ...(embedder && { embedder }), ...(sessions && { sessionStore: sessions }) }
  printResult(flags.json, report, lines)
  const isFaulty = [embedder, sessions].some((part) => part?.fault !== undefined)
  if (findings.faults.length > 0 || isFaulty) process.exitCode = 1
}

/** Checks a PostgreSQL database, whose server repairs and backs up by itself. */
async function examineDatabase(flags: Flags): Promise<void> {
  const { MemoryError } = await import('../domain/error.ts')
  if (flags.repair === true || flags.backup !== undefined)
    throw new MemoryError(
      'bad-option',
      `--${flags.repair === true ? 'repair' : 'backup'} needs sqlite:PATH. Use pg_dump and pg_restore for a database; see docs/postgres.md.`,
      { param: flags.repair === true ? 'repair' : 'backup' },
    )
  const [url, keyring] = [await requireStoreUrl(flags, process.env), await loadKeys(flags)]
  using progress = createProgress(flags)
  const { postgresStore } = await import('../stores/postgres.ts')
  const warnings: string[] = []
  const store = await postgresStore(url, {
    encrypted: keyring !== undefined,
    onWarning: (warning) => warnings.push(warning),
  })
  try {
    // Counting needs no key, so that a wrong one would not be noticed.
    if (keyring !== undefined) await (await import('../stores/encrypted.ts')).encryptedStore(store, keyring)
    if (flags.rotateKey === true) return await rotateStoreKeys(store, keyring, flags, progress)
    progress.step('Counting entries')
    const report = { ...(await store.examine()), warnings }
    const embedder = await examineEmbedder(flags)
    progress.step('Checking the store of sessions')
    const sessions = await examineSessions(flags)
    progress.clear()
    const findings = [...formatFindings({ ...report, quarantined: 0 }), ...warnings]
    const lines = [...findings, ...formatEmbedder(embedder), ...formatSessions(sessions)]
    printResult(
      flags.json,
      { ...report, ...(embedder && { embedder }), ...(sessions && { sessionStore: sessions }) },
      lines,
    )
    const isFaulty = [embedder, sessions].some((part) => part?.fault !== undefined)
    if (report.faults.length > 0 || isFaulty) process.exitCode = 1
  } finally {
    await store.close()
  }
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

/** State of the Redis store of sessions: their number, or the reason why it cannot be used. */
type SessionStoreReport = { readonly address: string; readonly sessions?: number; readonly fault?: string }

async function examineSessions(flags: Flags): Promise<SessionStoreReport | undefined> {
  const url = readOption(flags.sessions, process.env, 'THREADKEEP_SESSIONS')
  const { describeRedis, isRedisUrl } = await import('../stores/redis/url.ts')
  if (url === undefined || !isRedisUrl(url)) return undefined
  const address = describeRedis(url)
  try {
    const { openStore } = await import('../stores/open.ts')
    const store = await openStore(url)
    try {
      return { address, sessions: (await store.capabilities.sessionCounter?.countSessions()) ?? 0 }
    } finally {
      await store.close()
    }
  } catch (error) {
    return { address, fault: (await import('./errors.ts')).toCliError(error).message }
  }
}

function formatSessions(report: SessionStoreReport | undefined): readonly string[] {
  if (report === undefined) return []
  const { address, sessions = 0, fault } = report
  return [fault === undefined ? `${address}: ${formatCount(sessions, 'session')}, its settings are right.` : fault]
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
  const { sqliteStore } = await import('../stores/sqlite.ts')
  const store = sqliteStore(file, keyring === undefined ? {} : { keyring })
  try {
    await rotateStoreKeys(store, keyring, flags, progress)
  } finally {
    await store.close()
  }
}

async function rotateStoreKeys(
  store: Store,
  keyring: Keyring | undefined,
  flags: Flags,
  progress: Progress,
): Promise<void> {
  const [{ rotateKeys: rotate }, { MemoryError }] = await Promise.all([
    import('../stores/encrypted.ts'),
    import('../domain/error.ts'),
  ])
  if (keyring === undefined)
    throw new MemoryError(
      'bad-option',
      '--rotate-key needs both keys. Pass --store-key with the new key first, then the old one.',
      { param: 'store-key' },
    )
  let sessions = 0
  await rotate(store, keyring, (done) => {
    sessions = done.sessions
    progress.count('Rotating keys of sessions', sessions)
  })
  progress.clear()
  printResult(flags.json, { sessions }, [
    `Rotated the keys of ${formatCount(sessions, 'session')}. The old key is no longer needed.`,
  ])
}

function formatFindings({
  path,
  format,
  bytes,
  sessions,
  messages,
  derived,
  vectors,
  rows,
  quarantined,
  faults,
}: StoreReport): string[] {
  const counts = [
    formatCount(sessions, 'session'),
    formatCount(messages, 'message'),
    formatCount(derived, 'derived entry', 'derived entries'),
    formatCount(vectors, 'vector'),
    ...(rows === 0 ? [] : [formatCount(rows, 'table row')]),
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
