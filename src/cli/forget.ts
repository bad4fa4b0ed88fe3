import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Forgotten, Target } from '../memory/forget.ts'
import { exitCodes } from './failure.ts'
import { many, say } from './say.ts'
import { existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly message?: string
  readonly text?: string
  readonly scope?: boolean
  readonly yes?: boolean
}

const help = `
What is forgotten is gone for good, with every summary, fact, vector and search entry made from it: from the file, its
log and its free pages. Copies made earlier, such as backups and exports, are not reached.

Examples:
  threadkeep forget acme:ann --message m12 --yes
  threadkeep forget acme:ann --yes
  threadkeep forget acme --text 'walrus' --yes
  threadkeep forget acme --scope --yes

${exitCodes}`

/** The command that forgets for good. */
export function addForget(program: Command): void {
  withStore(program.command('forget'))
    .description('forget a session, a message, a whole scope, or whatever holds a text, for good')
    .argument('<key>', 'the session, as scope:session, or a scope')
    .option('--message <id>', 'only this message of the session')
    .option('--text <text>', 'whatever holds this text, in all sessions of the scope')
    .option('--scope', 'the scope with all its sessions')
    .option('--yes', 'really do it; without it, only what would be forgotten is told')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string, flags: Flags): Promise<void> {
  const target = targetOf(text, flags)
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  if (flags.yes !== true) return announce(store, text, target, flags)
  const forgotten = await memory.forget(target)
  say(flags.json, forgotten, linesOf(forgotten))
}

function targetOf(text: string, flags: Flags): Target {
  const { scope, id } = parseKey(text)
  const chosen = [flags.message, flags.text, flags.scope].filter((one) => one !== undefined).length
  if (chosen > 1) throw wrong('--message, --text and --scope do not go together; choose one.')
  if (flags.message !== undefined) return { key: text, messageId: flags.message }
  if (id !== '' && (flags.text !== undefined || flags.scope === true))
    throw wrong(`--text and --scope go with a scope: write ${scope} instead of ${text}.`)
  if (flags.text !== undefined) return { scope, text: flags.text }
  if (flags.scope === true) return { scope }
  if (id === '')
    throw wrong(
      `${text} is a scope. Add --scope to forget it with all its sessions, or --text to forget what holds a text.`,
    )
  return { key: text }
}

const wrong = (message: string): MemoryError => new MemoryError('bad-option', message, { param: 'key' })

async function announce(store: Store, text: string, target: Target, flags: Flags): Promise<void> {
  const sessions =
    'key' in target ? 1 : (await store.list({ scope: target.scope, limit: Number.MAX_SAFE_INTEGER })).length
  const what =
    'messageId' in target
      ? `message ${target.messageId} of ${text}`
      : 'text' in target
        ? `whatever holds ${JSON.stringify(target.text)} in ${many(sessions, 'session')} of ${text}`
        : 'scope' in target
          ? `${text} with ${many(sessions, 'session')}`
          : `${text} with ${many((await store.head(parseKey(text), 0)).messages, 'message')}`
  say(flags.json, { wouldForget: target, sessions }, [`This would forget ${what}, for good. Add --yes to do it.`])
}

function linesOf({ sessions }: Forgotten): string[] {
  if (sessions.length === 0) return ['There was nothing to forget.']
  return sessions.map(({ key, entries, renewed = [] }) => {
    const anew =
      renewed.length === 0 ? '' : `; ${many(renewed.length, 'entry was', 'entries were')} made anew without it`
    return `${key}: ${many(entries.length, 'entry', 'entries')} forgotten${anew}`
  })
}
