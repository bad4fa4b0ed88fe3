import type { Command } from 'commander'
import { checkOption } from '../domain/error.ts'
import type { Credential } from '../server/auth/credential.ts'
import type { Credentials } from '../server/auth/credentials.ts'
import { collectValues, confirmOptions, type Environment, jsonOption, parseDate, readOption } from './options.ts'
import { type ConfirmFlags, confirmOperation } from './terminal/confirm.ts'
import { option, setHelp } from './terminal/help.ts'
import { formatTime, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = { readonly file?: string; readonly json?: boolean }
type CreateFlags = Flags & {
  readonly scope: readonly string[]
  readonly name?: string
  readonly admin?: boolean
  readonly expires?: string
}

const defaultKeyFile = 'threadkeep-keys.json'

const details = [
  'Once the first key exists, the server requires a key from every client, and a client sees only the scopes of its key. Clients send keys as Authorization: Bearer tk_…, as x-api-key, or as x-threadkeep-api-key. A running server picks up changes within a second. The file stores only hashes: a key is shown once, when it is created.',
]

export function addKeysCommand(program: Command): void {
  const keys = setHelp(program.command('keys').description('create, list and revoke the API keys of the server'), {
    details,
    examples: ['threadkeep keys create --scope acme', 'threadkeep keys list', 'threadkeep keys revoke 7fK2mQ9x'],
  })
  setHelp(
    addFileOptions(keys.command('create'))
      .description('create a key for one or more scopes')
      .requiredOption('--scope <scope>', 'scope the key opens, or * for all; repeatable', collectValues)
      .option('--name <text>', 'name of the key')
      .option('--admin', 'also allow administration of the server')
      .addOption(
        option('--expires <when>', 'expiry after 90d, 12h or 30m, or on a date such as 2027-01-31', {
          fallback: 'never',
        }),
      )
      .action((flags: CreateFlags) => create(flags, process.env)),
    {
      details,
      examples: [
        "threadkeep keys create --scope acme --name 'web shop' --expires 90d",
        "threadkeep keys create --scope '*' --admin",
      ],
    },
  )
  setHelp(
    addFileOptions(keys.command('list'))
      .description('list all keys')
      .action((flags: Flags) => list(flags, process.env)),
    { examples: ['threadkeep keys list', 'threadkeep keys list --file /etc/threadkeep/keys.json --json'] },
  )
  const revokeCommand = addFileOptions(keys.command('revoke'))
    .description('revoke a key permanently')
    .argument('<id>', 'id of the key: the part between tk_ and the next _')
    .action((id: string, flags: Flags & ConfirmFlags) => revoke(id, flags, process.env))
  for (const confirmOption of confirmOptions()) revokeCommand.addOption(confirmOption)
  setHelp(revokeCommand, {
    details: ['Clients that use the key are refused from then on. Without --yes, you are asked first.'],
    examples: ['threadkeep keys revoke 7fK2mQ9x', 'threadkeep keys revoke 7fK2mQ9x --yes'],
  })
}

const addFileOptions = (command: Command): Command =>
  command
    .addOption(option('--file <path>', 'key file', { env: ['THREADKEEP_KEYS'], fallback: defaultKeyFile }))
    .addOption(jsonOption())

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

async function revoke(id: string, flags: Flags & ConfirmFlags, environment: Environment): Promise<void> {
  const now = Date.now()
  const credentials = await openCredentials(flags, environment)
  const known = credentials.list(now).find((credential) => credential.id === id)
  if (known !== undefined) {
    const name = known.name === '' ? '' : ` (${known.name})`
    const confirmed = await confirmOperation(flags, {
      value: { wouldRevoke: known },
      lines: [`Would revoke key ${id}${name}: ${describeCredential(known)}, ${formatLastUse(known)}.`],
      question: `Revoke key ${id} for good?`,
      otherwise: 'The key was not revoked.',
    })
    if (!confirmed) return
  }
  const revoked = await credentials.revoke(id, now)
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
