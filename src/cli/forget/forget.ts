import type { Command } from 'commander'
import { MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import type { ForgetResult } from '../../memory/forget.ts'
import type { ForgetTarget } from '../../memory/forgetTarget.ts'
import { formatCount } from '../../text/formatCount.ts'
import { addStoreOptions, openExistingStore, type StoreFlags } from '../openStore.ts'
import { confirmOptions } from '../options.ts'
import { type ConfirmFlags, confirmOperation } from '../terminal/confirm.ts'
import { setHelp } from '../terminal/help.ts'
import { printResult } from '../terminal/output.ts'
import { createProgress } from '../terminal/progress.ts'

type Flags = StoreFlags & ConfirmFlags & { readonly message?: string; readonly text?: string; readonly scope?: boolean }

export function addForgetCommand(program: Command): void {
  const command = addStoreOptions(program.command('forget'))
    .description('permanently delete a message, a session, a scope, or every entry that contains a text')
    .summary('delete a message, a session, a scope or a text for good')
    .argument('<key>', 'session, as scope:session, or a scope')
    .option('--message <id>', 'only this message of the session')
    .option('--text <text>', 'every entry that contains this text, in all sessions of the scope')
    .option('--scope', 'the scope with all its sessions')
    .action(run)
  for (const confirmOption of confirmOptions()) command.addOption(confirmOption)
  setHelp(command, {
    details: [
      'Lists what would go and asks, unless --yes is given. Then deletes permanently, together with every summary, fact, vector and search entry derived from the deleted messages: from the file, its log and its free pages. Earlier copies, such as backups and exports, are not changed.',
    ],
    examples: [
      'threadkeep forget acme:ann --message m12',
      'threadkeep forget acme:ann --yes',
      'threadkeep forget acme --text walrus --dry-run',
      'threadkeep forget acme --scope --yes',
    ],
    exitNote: 'Without a terminal and without --yes, nothing is deleted and the exit code is 2.',
  })
}

async function run(text: string, flags: Flags): Promise<void> {
  const target = parseTarget(text, flags)
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../../index.ts')
  await using memory = await openMemory({ store })
  using progress = createProgress(flags)
  if (flags.yes !== true || flags.dryRun === true) {
    progress.step('Listing what would go')
    const { previewForget } = await import('./preview.ts')
    const { value, lines, isEmpty } = await previewForget(store, target)
    progress.clear()
    if (isEmpty) return printResult(flags.json, value, lines)
    const question = 'Delete all of this for good?'
    if (!(await confirmOperation(flags, { value, lines, question, otherwise: 'Nothing was deleted.' }))) return
  }
  progress.step('Deleting')
  const forgotten = await memory.forget(target)
  progress.clear()
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

function formatResult({ sessions, rows = 0 }: ForgetResult): string[] {
  if (sessions.length === 0 && rows === 0) return ['Nothing to delete.']
  const deletedRows = rows === 0 ? [] : [`deleted ${formatCount(rows, 'table row')}`]
  const lines = sessions.map(({ key, entries, rebuilt = [] }) => {
    const rederived =
      rebuilt.length === 0
        ? ''
        : `, ${formatCount(rebuilt.length, 'derived entry', 'derived entries')} rebuilt without it`
    return `${key}: deleted ${formatCount(entries.length, 'entry', 'entries')}${rederived}`
  })
  return [...lines, ...deletedRows]
}
