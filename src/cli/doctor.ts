import type { Command } from 'commander'
import type { Findings } from '../stores/sqlite/examine.ts'
import { exitCodes } from './failure.ts'
import { many, progressLine, say } from './say.ts'
import { existingFile, type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & { readonly repair?: boolean; readonly backup?: string; readonly rotateKey?: boolean }

const help = `
Looks at every entry of a store and says what is damaged. --repair puts damaged entries aside, makes what can be made
from messages anew, and if the file itself is broken moves what can be read to a new one; the old file is kept. Stop
whatever uses the store before a repair. --backup works while the store is in use.

Examples:
  threadkeep doctor
  threadkeep doctor --backup memory-$(date +%F).db
  threadkeep doctor --store sqlite:memory.db --repair

${exitCodes} A store that is damaged counts as failed.`

/** The command that examines, repairs and copies a store. */
export function addDoctor(program: Command): void {
  withStore(program.command('doctor'))
    .description('examine a store, repair it, or copy it while it is in use')
    .option('--repair', 'repair what is damaged')
    .option('--backup <file>', 'first copy the store to this file')
    .option('--rotate-key', 'wrap the keys of an encrypted store under the first key of --store-key')
    .addHelpText('after', help)
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const file = await existingFile(flags, process.env)
  const line = progressLine()
  try {
    if (flags.backup !== undefined) await backUp(file, flags.backup, line.tell)
    if (flags.rotateKey === true) return await rotateKeys(file, flags, line.tell)
    if (flags.repair === true) return await repairFile(file, flags, line.tell)
    const { examineFile } = await import('../stores/sqlite/repair.ts')
    const found = await examineFile(file, (done, total) => line.tell(`examined ${done} of ${total}`))
    line.end()
    say(flags.json, found, [...(flags.backup === undefined ? [] : [`Copied to ${flags.backup}.`]), ...report(found)])
    if (found.faults.length > 0) process.exitCode = 1
  } finally {
    line.end()
  }
}

async function backUp(file: string, target: string, tell: (text: string) => void): Promise<void> {
  const { sqliteStore } = await import('../stores/sqlite.ts')
  const store = sqliteStore(file)
  try {
    await store.backup(target, (done, total) => tell(`copied ${done} of ${total} pages`))
  } finally {
    await store.close()
  }
}

async function repairFile(file: string, flags: Flags, tell: (text: string) => void): Promise<void> {
  const { repair } = await import('../stores/sqlite/repair.ts')
  const repaired = await repair(file, (done, total) => tell(`examined ${done} of ${total}`))
  say(flags.json, repaired, [
    ...report(repaired.before),
    ...repaired.done,
    ...(repaired.done.length === 0 ? [] : ['Afterwards:', ...report(repaired.after)]),
  ])
  if (repaired.after.faults.length > 0) process.exitCode = 1
}

async function rotateKeys(file: string, flags: Flags, tell: (text: string) => void): Promise<void> {
  const [{ sqliteStore }, { loadKeyring, rotate }, { MemoryError }] = await Promise.all([
    import('../stores/sqlite.ts'),
    import('../stores/encrypted.ts'),
    import('../domain/error.ts'),
  ])
  const { key } = storeSettings(flags, process.env)
  if (key === undefined)
    throw new MemoryError(
      'bad-option',
      'rotate-key needs the keys: --store-key with the new key first, then the old one.',
      { param: 'store-key' },
    )
  const store = sqliteStore(file)
  try {
    let sessions = 0
    await rotate(store, await loadKeyring(key), (done) => {
      sessions = done.sessions
      tell(`${many(sessions, 'session')} wrapped`)
    })
    say(flags.json, { sessions }, [
      `The keys of ${many(sessions, 'session')} are wrapped under the new key; the old one is no longer needed.`,
    ])
  } finally {
    await store.close()
  }
}

function report({
  path,
  format,
  bytes,
  sessions,
  messages,
  derived,
  vectors,
  quarantined,
  faults,
}: Findings): string[] {
  const counts = [
    many(sessions, 'session'),
    many(messages, 'message'),
    many(derived, 'derived entry', 'derived entries'),
    many(vectors, 'vector'),
  ]
  const aside =
    quarantined === 0
      ? []
      : [
          `${many(quarantined, 'entry was', 'entries were')} put aside earlier because of damage; their remains are in the table quarantine.`,
        ]
  const wrong = faults.map(
    ({ what, key, id, why }) =>
      `damaged: ${[what, id, key === undefined ? undefined : `of ${key}`].filter((one) => one !== undefined).join(' ')}: ${why}`,
  )
  const verdict =
    faults.length === 0
      ? 'Everything is sound.'
      : `${many(faults.length, 'fault')}. threadkeep doctor --repair repairs what can be repaired.`
  return [
    `${path}: format ${format}, ${(bytes / 1_048_576).toFixed(1)} MB, ${counts.join(', ')}`,
    ...aside,
    ...wrong,
    verdict,
  ]
}
