import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { checkOption, MemoryError } from '../domain/error.ts'
import type { AuditLine } from '../mcp/files/auditChain.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, resolveStore, type StoreFlags } from './openStore.ts'
import { type Environment, parseInteger, readOption } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags & { readonly log?: string }
type ShowFlags = Flags & { readonly limit: string; readonly user?: string; readonly outcome?: string }

const details = [
  'The audit log has one line for every file operation of an MCP client, allowed or refused. Each line contains the hash of the previous line, and the file with the suffix .head records the length of the log, so that changed, removed, moved or truncated lines are detected. Keep a copy of the last hash elsewhere to detect that the whole log was replaced.',
]
const exitNote = 'A log that fails verification is a failure.'

export function addAuditCommand(program: Command): void {
  const audit = setHelp(program.command('audit').description('verify or show the log of file operations'), {
    details,
    examples: ['threadkeep audit verify', 'threadkeep audit show --outcome refused --limit 20'],
    exitNote,
  })
  setHelp(
    addLogOptions(audit.command('verify'))
      .description('verify the hash chain of the log')
      .action((flags: Flags) => verify(flags, process.env)),
    {
      details,
      examples: ['threadkeep audit verify', 'threadkeep audit verify --log /var/lib/threadkeep/audit.log --json'],
      exitNote,
    },
  )
  setHelp(
    addLogOptions(audit.command('show'))
      .description('show file operations, newest last')
      .option('--limit <number>', 'maximum number of lines', '50')
      .addOption(option('--user <name>', 'only operations of this user', { fallback: 'all users' }))
      .addOption(
        option('--outcome <outcome>', 'only operations that were allowed, refused or failed', { fallback: 'all' }),
      )
      .action((flags: ShowFlags) => show(flags, process.env)),
    {
      examples: ['threadkeep audit show --outcome refused --limit 20', 'threadkeep audit show --user ann --json'],
      exitNote,
    },
  )
}

const addLogOptions = (command: Command): Command =>
  addStoreOptions(command).addOption(
    option('--log <file>', 'audit log', {
      env: ['THREADKEEP_AUDIT_LOG'],
      fallback: 'threadkeep-audit.jsonl beside the store',
    }),
  )

async function verify(flags: Flags, environment: Environment): Promise<void> {
  const file = await requireLog(flags, environment)
  const { verifyAuditLog } = await import('../mcp/files/auditChain.ts')
  const verdict = await verifyAuditLog(file)
  if (!verdict.valid) {
    process.exitCode = 1
    return printResult(flags.json, { log: file, ...verdict }, [
      `${file} is invalid from line ${verdict.line}: it ${verdict.reason}.`,
    ])
  }
  const lastHash = verdict.lines === 0 ? '' : ` Last hash: ${verdict.hash}.`
  const unfinished = verdict.unfinished
    ? ' One more line is incomplete: it is being written, or its writer was interrupted.'
    : ''
  printResult(flags.json, { log: file, ...verdict }, [
    `${file} is valid: ${formatCount(verdict.lines, 'line')}.${lastHash}${unfinished}`,
  ])
}

async function show(flags: ShowFlags, environment: Environment): Promise<void> {
  const limit = parseInteger(flags.limit, 'limit', 1)
  checkOption(
    'outcome',
    flags.outcome,
    /^(?:allowed|refused|failed)$/.test(flags.outcome ?? 'allowed'),
    'allowed, refused or failed',
  )
  const file = await requireLog(flags, environment)
  const { verifyAuditLog } = await import('../mcp/files/auditChain.ts')
  const items: AuditLine[] = []
  const verdict = await verifyAuditLog(file, (line) => {
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
  const problem = verdict.valid
    ? []
    : [`The log is invalid from line ${verdict.line}: it ${verdict.reason}. Later lines are not shown.`]
  if (!verdict.valid) process.exitCode = 1
  printResult(flags.json, { log: file, valid: verdict.valid, items }, [
    ...(rows.length === 0 ? ['No lines.'] : formatTable(rows)),
    ...problem,
  ])
}

/** Returns the path of an existing log. Throws when it is missing, so that a typo is not reported as a valid log. */
async function requireLog(flags: Flags, environment: Environment): Promise<string> {
  const file = readOption(flags.log, environment, 'THREADKEEP_AUDIT_LOG') ?? (await defaultLog(flags, environment))
  if (existsSync(file) || existsSync(`${file}.head`)) return file
  throw new MemoryError('bad-option', `No audit log at ${file}. Set its path with --log FILE.`, { param: 'log' })
}

async function defaultLog(flags: Flags, environment: Environment): Promise<string> {
  const { defaultAuditFile } = await import('../server/config/mcpConfig.ts')
  return defaultAuditFile(resolveStore(flags, environment).url)
}
