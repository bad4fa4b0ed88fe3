import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { parseScope, parseStoredKey } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import { isUserSession } from '../domain/session.ts'
import type { MigrationStep } from '../portable/migrate.ts'
import { formatCount } from '../text/formatCount.ts'
import { checkDurableUrl, countMessages, findMissingStore } from './openStore.ts'
import { jsonOption } from './options.ts'
import { setHelp } from './terminal/help.ts'
import { interruptedError, interruptible } from './terminal/interrupt.ts'
import { printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'

type Flags = {
  readonly scope?: string
  readonly fromKey?: string
  readonly toKey?: string
  readonly json?: boolean
}

const keyForms = 'file:PATH, env:NAME or command:PROGRAM'
const stepLabels: Readonly<Record<MigrationStep, string>> = {
  compare: 'Comparing messages',
  copy: 'Copying messages',
  vectors: 'Copying vectors of messages',
  verify: 'Verifying messages',
}

export function addMigrateCommand(program: Command): void {
  const command = program
    .command('migrate')
    .description('copy a store to another one and verify the copy')
    .argument('<from>', 'store to copy, such as sqlite:threadkeep.db')
    .argument('<to>', 'store to copy to, such as postgres://HOST/DATABASE')
    .option('--scope <name>', 'only this scope')
    .option('--from-key <source>', `key of an encrypted source: ${keyForms}`)
    .option('--to-key <source>', `key of an encrypted target: ${keyForms}`)
    .addOption(jsonOption())
    .action(run)
  setHelp(command, {
    details: [
      'Copies all sessions with their messages, summaries, facts, knowledge, files, receipts, graphs, rows and vectors, and then compares the exports of both stores by their hashes. The source is not changed. Stop the servers that write to it first.',
      'What the target has already stays; the command stops if it has other contents for a session. Ctrl-C completes the session that is being written and stops; run the same command again to continue.',
    ],
    variables: {},
    examples: [
      'threadkeep migrate sqlite:threadkeep.db postgres://db.example.com/threadkeep',
      'threadkeep migrate sqlite:plain.db sqlite:encrypted.db --to-key file:/etc/threadkeep/key',
      'threadkeep migrate postgres://db.example.com/threadkeep sqlite:acme.db --scope acme',
    ],
  })
}

async function run(from: string, to: string, flags: Flags): Promise<void> {
  if (from === to)
    throw new MemoryError('bad-option', 'Source and target are the same store. Name another target.', { param: 'to' })
  await checkDurableUrl(from, 'from')
  await checkDurableUrl(to, 'to')
  const scope = flags.scope === undefined ? undefined : parseScope(flags.scope)
  await using source = await openSource(from, flags.fromKey)
  await using target = await open(to, flags.toKey)
  using progress = createProgress(flags)
  progress.step('Counting messages')
  const total = await countMessages(source.store, scope)
  const counts = { written: 0, unchanged: 0 }
  const { migrateStore } = await import('../portable/migrate.ts')
  const { hashes, ...result } = await interruptible((signal) => {
    let isCopying = false
    const verification = new AbortController()
    signal.addEventListener('abort', () => {
      if (!isCopying) verification.abort()
    })
    return migrateStore(source.store, target.store, {
      ...(scope !== undefined && { scope }),
      signal: verification.signal,
      onProgress: (step, messages) => {
        isCopying = step === 'copy'
        progress.count(stepLabels[step], messages, total)
      },
      onSession: (name, outcome) => {
        if (isUserSession({ key: parseStoredKey(name) })) counts[outcome]++
        if (signal.aborted)
          throw interruptedError(
            undefined,
            `Interrupted after ${formatCount(counts.written, 'session')}, which are complete. Run the same command again to continue.`,
          )
      },
    }).catch((error) => rethrow(error, counts.written))
  })
  progress.clear()
  // Encrypted stores keep vectors in memory only.
  const vectors = flags.toKey === undefined ? result.vectors : 0
  printResult(flags.json, { ...result, vectors, sessions: counts.written, unchanged: counts.unchanged, hashes }, [
    `Copied ${formatCount(result.messages, 'message')} of ${formatCount(counts.written, 'session')}.`,
    ...(vectors === 0 ? [] : [`Copied ${formatCount(vectors, 'vector')}.`]),
    ...(vectors === result.vectors ? [] : ['Vectors were not copied: an encrypted store computes them again.']),
    ...(counts.unchanged === 0 ? [] : [`${formatCount(counts.unchanged, 'session')} unchanged.`]),
    `The exports of ${formatCount(Object.keys(hashes).length, 'scope')} are identical in both stores.`,
  ])
}

/** Replaces the remedies of an import, whose options this command does not have. `written` sessions are complete. */
function rethrow(error: unknown, written: number): never {
  if (!(error instanceof MemoryError)) throw error
  if (error.code === 'aborted' && !error.message.startsWith('Interrupted'))
    throw interruptedError(error, 'Interrupted. Run the same command again to continue.')
  if (written > 0 && ['busy', 'not-durable', 'disk-full'].includes(error.code)) {
    const done = `${formatCount(written, 'session')} ${written === 1 ? 'was' : 'were'} complete`
    const message = `${error.message} ${done}; run the same command again to continue.`
    throw new MemoryError(error.code, message, { cause: error })
  }
  if (error.code !== 'conflict') throw error
  const [problem = ''] = error.message.split(' Nothing was imported.')
  throw new MemoryError('conflict', `${problem} Nothing was copied. Name an empty target.`, {
    param: 'to',
    cause: error,
  })
}

/** Opens the source; a missing file, folder or schema is an error and not created. */
async function openSource(url: string, key: string | undefined): Promise<OpenedStore> {
  const missing = await findMissingStore(url)
  if (missing === undefined) return open(url, key)
  throw new MemoryError('bad-option', `No store at ${missing.name}. Name an existing store to copy.`, { param: 'from' })
}

type OpenedStore = AsyncDisposable & { readonly store: Store & SearchIndex }

async function open(url: string, key: string | undefined): Promise<OpenedStore> {
  const { openStore } = await import('../stores/open.ts')
  const store = await openStore(url, key)
  return { store, [Symbol.asyncDispose]: () => store.close() }
}
