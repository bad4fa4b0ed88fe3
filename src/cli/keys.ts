import type { Command } from 'commander'
import { checkOption } from '../domain/error.ts'
import type { Credential } from '../server/auth/credential.ts'
import type { Credentials } from '../server/auth/credentials.ts'
import { exitCodesHelp } from './errors.ts'
import { collectValues, type Environment, parseDate, readOption } from './options.ts'
import { formatTable, formatTime, printResult } from './output.ts'

type Flags = { readonly file?: string; readonly json?: boolean }
type CreateFlags = Flags & {
  readonly scope: readonly string[]
  readonly name?: string
  readonly admin?: boolean
  readonly expires?: string
}

const defaultKeyFile = 'threadkeep-keys.json'

const help = `
Once the first key exists, the server requires a key from every client, and a client sees only the scopes of its key.
Clients send keys as Authorization: Bearer tk_…, as x-api-key, or as x-threadkeep-api-key. A running server picks up
changes within a second. The file stores only hashes: a key is shown once, when it is created.

Examples:
  threadkeep keys create --scope acme --name 'web shop' --expires 90d
  threadkeep keys create --scope '*' --admin
  threadkeep keys list
  threadkeep keys revoke 7fK2mQ9x

${exitCodesHelp}`

export function addKeysCommand(program: Command): void {
  const keys = program
    .command('keys')
    .description('create, list and revoke the API keys of the server')
    .addHelpText('after', help)
  addFileOptions(keys.command('create'))
    .description('create a key for one or more scopes')
    .requiredOption('--scope <scope>', 'scope the key opens, or * for all; repeatable', collectValues)
    .option('--name <text>', 'name of the key')
    .option('--admin', 'also allow administration of the server')
    .option('--expires <when>', 'expiry after 90d, 12h or 30m, or on a date such as 2027-01-31 (never)')
    .action((flags: CreateFlags) => create(flags, process.env))
  addFileOptions(keys.command('list'))
    .description('list all keys')
    .action((flags: Flags) => list(flags, process.env))
  addFileOptions(keys.command('revoke'))
    .description('revoke a key permanently')
    .argument('<id>', 'id of the key: the part between tk_ and the next _')
    .action((id: string, flags: Flags) => revoke(id, flags, process.env))
}

const addFileOptions = (command: Command): Command =>
  command
    .option('--file <path>', `key file (THREADKEEP_KEYS; ${defaultKeyFile})`)
    .option('--json', 'print JSON')
    .addHelpText('after', help)

async function create(flags: CreateFlags, environment: Environment): Promise<void> {
  const now = Date.now()
  const credentials = await openCredentials(flags, environment)
  const { key, credential } = await credentials.create(
    {
      scopes: flags.scope,
      rights: flags.admin === true ? 'admin' : 'use',
      ...(flags.name === undefined ? {} : { name: flags.name }),
      ...(flags.expires === undefined ? {} : { expiresAt: parseExpiry(flags.expires, now) }),
    },
    now,
  )
  printResult(flags.json, { key, ...credential }, [
    key,
    `Created key ${credential.id}: ${describeCredential(credential)}. Copy it now; ${credentials.file} stores only its hash.`,
  ])
}

async function list(flags: Flags, environment: Environment): Promise<void> {
  const now = Date.now()
  const credentials = await openCredentials(flags, environment)
  const items = credentials.list(now)
  const lines = formatTable(
    items.map((key) => [
      key.id,
      key.scopes.join(' '),
      key.rights,
      formatStatus(key, now),
      formatLastUse(key),
      key.name,
    ]),
  )
  printResult(flags.json, { items }, items.length === 0 ? [`No keys in ${credentials.file}.`] : lines)
}

async function revoke(id: string, flags: Flags, environment: Environment): Promise<void> {
  const credentials = await openCredentials(flags, environment)
  const revoked = await credentials.revoke(id, Date.now())
  printResult(flags.json, revoked, [`Revoked key ${id}.`])
}

async function openCredentials(flags: Flags, environment: Environment): Promise<Credentials> {
  const { Credentials } = await import('../server/auth/credentials.ts')
  return new Credentials(readOption(flags.file, environment, 'THREADKEEP_KEYS') ?? defaultKeyFile)
}

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses a duration from now, such as `90d`, or a date. */
function parseExpiry(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text.trim()) ?? []
  const at = count === undefined ? parseDate(text, 'expires') : now + Number(count) * (unitMs[unit] ?? 0)
  checkOption('expires', text, at > now, 'in the future, such as 90d, 12h, 30m or a date')
  return at
}

function describeCredential({ scopes, rights, expiresAt }: Credential): string {
  const access = `opens ${scopes.includes('*') ? 'every scope' : scopes.join(', ')}`
  const admin = rights === 'admin' ? ', administers the server' : ''
  return `${access}${admin}, ${expiresAt === undefined ? 'never expires' : `expires ${formatTime(expiresAt)}`}`
}

function formatStatus({ revokedAt, expiresAt }: Credential, now: number): string {
  if (revokedAt !== undefined) return `revoked ${formatTime(revokedAt)}`
  if (expiresAt === undefined) return 'valid'
  return expiresAt <= now ? `expired ${formatTime(expiresAt)}` : `valid until ${formatTime(expiresAt)}`
}

const formatLastUse = ({ lastUsedAt }: Credential): string =>
  lastUsedAt === undefined ? 'never used' : `last used ${formatTime(lastUsedAt)}`
