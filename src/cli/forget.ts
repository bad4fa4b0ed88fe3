import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { ForgetResult, ForgetTarget } from '../memory/forget.ts'
import { formatCount } from '../text/formatCount.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, openExistingStore, type StoreFlags } from './openStore.ts'
import { printResult } from './output.ts'

type Flags = StoreFlags & {
  readonly message?: string
  readonly text?: string
  readonly scope?: boolean
  readonly yes?: boolean
}

const help = `
Deletes permanently, together with every summary, fact, vector and search entry derived from the deleted messages: from
the file, its log and its free pages. Earlier copies, such as backups and exports, are not changed.

Examples:
  threadkeep forget acme:ann --message m12 --yes
  threadkeep forget acme:ann --yes
  threadkeep forget acme --text 'walrus' --yes
  threadkeep forget acme --scope --yes

${exitCodesHelp}`

export function addForgetCommand(program: Command): void {
  addStoreOptions(program.command('forget'))
    .description('permanently delete a message, a session, a scope, or every entry that contains a text')
    .argument('<key>', 'session, as scope:session, or a scope')
    .option('--message <id>', 'only this message of the session')
    .option('--text <text>', 'every entry that contains this text, in all sessions of the scope')
    .option('--scope', 'the scope with all its sessions')
    .option('--yes', 'delete; without it, only show what would be deleted')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string, flags: Flags): Promise<void> {
  const target = parseTarget(text, flags)
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  if (flags.yes !== true) return preview(store, text, target, flags)
  const forgotten = await memory.forget(target)
  printResult(flags.json, forgotten, formatResult(forgotten))
}

function parseTarget(text: string, flags: Flags): ForgetTarget {
  const { scope, id } = parseKey(text)
  const selectors = [flags.message, flags.text, flags.scope].filter((flag) => flag !== undefined).length
  if (selectors > 1) throw keyError('--message, --text and --scope cannot be combined. Choose one.')
  if (flags.message !== undefined) return { key: text, messageId: flags.message }
  if (id !== '' && (flags.text !== undefined || flags.scope === true))
    throw keyError(`--text and --scope need a scope. Use ${scope} instead of ${text}.`)
  if (flags.text !== undefined) return { scope, text: flags.text }
  if (flags.scope === true) return { scope }
  if (id === '')
    throw keyError(
      `${text} is a scope. Add --scope to delete it with all its sessions, or --text to delete entries that contain a text.`,
    )
  return { key: text }
}

const keyError = (message: string): MemoryError => new MemoryError('bad-option', message, { param: 'key' })

async function preview(store: Store, text: string, target: ForgetTarget, flags: Flags): Promise<void> {
  const sessions =
    'key' in target ? 1 : (await store.list({ scope: target.scope, limit: Number.MAX_SAFE_INTEGER })).length
  const description =
    'messageId' in target
      ? `message ${target.messageId} of ${text}`
      : 'text' in target
        ? `every entry that contains ${JSON.stringify(target.text)} in ${formatCount(sessions, 'session')} of ${text}`
        : 'scope' in target
          ? `${text} with ${formatCount(sessions, 'session')}`
          : `${text} with ${formatCount((await store.readHead(parseKey(text), 0)).messages, 'message')}`
  printResult(flags.json, { wouldForget: target, sessions }, [
    `Would permanently delete ${description}. Add --yes to delete.`,
  ])
}

function formatResult({ sessions }: ForgetResult): string[] {
  if (sessions.length === 0) return ['Nothing to delete.']
  return sessions.map(({ key, entries, rebuilt = [] }) => {
    const rederived =
      rebuilt.length === 0
        ? ''
        : `, ${formatCount(rebuilt.length, 'derived entry', 'derived entries')} rebuilt without it`
    return `${key}: deleted ${formatCount(entries.length, 'entry', 'entries')}${rederived}`
  })
}
