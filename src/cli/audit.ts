import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { check, MemoryError } from '../domain/error.ts'
import type { Line } from '../mcp/files/auditChain.ts'
import { exitCodes } from './failure.ts'
import { aligned, many, say } from './say.ts'
import { type Environment, setting, wholeNumber } from './settings.ts'
import { type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & { readonly log?: string }
type Wishes = Flags & { readonly limit: string; readonly user?: string; readonly outcome?: string }

const help = `
Whatever a client of the MCP server does with files, or is refused, is a line in the audit log. Each line holds the hash
of the one before, and the file beside it, with .head at its end, how far the log goes: lines that were changed, removed,
moved or cut off are found. Keep a copy of the last hash elsewhere to find a log that was replaced as a whole.

Examples:
  threadkeep audit verify
  threadkeep audit verify --log /var/lib/threadkeep/audit.log --json
  threadkeep audit show --outcome refused --limit 20

${exitCodes} A log that is not whole counts as failed.`

/** The commands that check the audit log, and show what is in it. */
export function addAudit(program: Command): void {
  const audit = program
    .command('audit')
    .description('check the log of what was done with files, or show it')
    .addHelpText('after', help)
  withLog(audit.command('verify'))
    .description('say whether the log is whole, or where it is broken')
    .action((flags: Flags) => verify(flags, process.env))
  withLog(audit.command('show'))
    .description('show what was done with files, the newest last')
    .option('--limit <number>', 'how many lines at most', '50')
    .option('--user <name>', 'only what this user did')
    .option('--outcome <outcome>', 'only what was allowed, refused or failed')
    .action((flags: Wishes) => show(flags, process.env))
}

const withLog = (command: Command): Command =>
  withStore(command)
    .option('--log <file>', 'the audit log (THREADKEEP_AUDIT_LOG; threadkeep-audit.jsonl beside the store)')
    .addHelpText('after', help)

async function verify(flags: Flags, environment: Environment): Promise<void> {
  const file = await existingLog(flags, environment)
  const { verifyLog } = await import('../mcp/files/auditVerify.ts')
  const verdict = await verifyLog(file)
  if (!verdict.whole) {
    process.exitCode = 1
    return say(flags.json, { log: file, ...verdict }, [
      `${file} is broken at line ${verdict.line}, which ${verdict.why}.`,
    ])
  }
  const last = verdict.lines === 0 ? '' : ` The last hash is ${verdict.hash}.`
  const unfinished = verdict.unfinished
    ? ' A line after them is unfinished: it is being written, or its writer was cut short.'
    : ''
  say(flags.json, { log: file, ...verdict }, [`${file} is whole: ${many(verdict.lines, 'line')}.${last}${unfinished}`])
}

async function show(flags: Wishes, environment: Environment): Promise<void> {
  const limit = wholeNumber(flags.limit, 'limit', 1)
  check(
    'outcome',
    flags.outcome,
    /^(?:allowed|refused|failed)$/.test(flags.outcome ?? 'allowed'),
    'allowed, refused or failed',
  )
  const file = await existingLog(flags, environment)
  const { verifyLog } = await import('../mcp/files/auditVerify.ts')
  const items: Line[] = []
  const verdict = await verifyLog(file, (line) => {
    if ((flags.user ?? line.user) !== line.user || (flags.outcome ?? line.outcome) !== line.outcome) return
    items.push(line)
    if (items.length > limit) items.shift()
  })
  const rows = items.map(({ at, user, operation, path, outcome, why = '' }) => [
    at,
    user,
    operation,
    outcome,
    path,
    why,
  ])
  const broken = verdict.whole
    ? []
    : [`The log is broken at line ${verdict.line}, which ${verdict.why}; nothing from there on is shown.`]
  if (!verdict.whole) process.exitCode = 1
  say(flags.json, { log: file, whole: verdict.whole, items }, [
    ...(rows.length === 0 ? ['No lines.'] : aligned(rows)),
    ...broken,
  ])
}

/** A log that is there already: a typing mistake should not be answered with "whole". */
async function existingLog(flags: Flags, environment: Environment): Promise<string> {
  const file = setting(flags.log, environment, 'THREADKEEP_AUDIT_LOG') ?? (await besideStore(flags, environment))
  if (existsSync(file) || existsSync(`${file}.head`)) return file
  throw new MemoryError('bad-option', `There is no audit log at ${file}. Say where it is with --log FILE.`, {
    param: 'log',
  })
}

async function besideStore(flags: Flags, environment: Environment): Promise<string> {
  const { usualAudit } = await import('../server/config/mcp.ts')
  return usualAudit(storeSettings(flags, environment).url)
}
