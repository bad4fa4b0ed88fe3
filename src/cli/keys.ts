import type { Command } from 'commander'
import { check } from '../domain/error.ts'
import type { Credential } from '../server/auth/credential.ts'
import type { Credentials } from '../server/auth/credentials.ts'
import { exitCodes } from './failure.ts'
import { aligned, say, timeOf } from './say.ts'
import { dateOf, type Environment, setting } from './settings.ts'

type Flags = { readonly file?: string; readonly json?: boolean }
type Wishes = Flags & {
  readonly scope: readonly string[]
  readonly name?: string
  readonly admin?: boolean
  readonly expires?: string
}

/** Where keys are kept unless somebody says otherwise. */
const defaultKeyFile = 'threadkeep-keys.json'

const help = `
From the first key on, the server asks every client for one, and a client sees nothing but the scopes of its key. Keys are
sent as Authorization: Bearer tk_…, as x-api-key, or as x-threadkeep-api-key. A running server takes note within a second.
Only hashes of keys are kept: a key is shown once, when it is made.

Examples:
  threadkeep keys create --scope acme --name 'web shop' --expires 90d
  threadkeep keys create --scope '*' --admin
  threadkeep keys list
  threadkeep keys revoke 7fK2mQ9x

${exitCodes}`

/** The commands that make, list and revoke API keys. */
export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('make, list and revoke the API keys of the server')
    .addHelpText('after', help)
  withFile(keys.command('create'))
    .description('make a key for one or more scopes')
    .requiredOption(
      '--scope <scope>',
      'a scope it opens, or * for all; may be given several times',
      (scope: string, before: readonly string[] = []) => [...before, scope],
    )
    .option('--name <text>', 'what it is for')
    .option('--admin', 'let it do what concerns the server as a whole, too')
    .option('--expires <when>', 'after 90d, 12h or 30m, or on a date such as 2027-01-31 (never)')
    .action((flags: Wishes) => create(flags, process.env))
  withFile(keys.command('list'))
    .description('list all keys')
    .action((flags: Flags) => list(flags, process.env))
  withFile(keys.command('revoke'))
    .description('make a key good for nothing, at once and for good')
    .argument('<id>', 'the key, by the part between tk_ and the next _')
    .action((id: string, flags: Flags) => revoke(id, flags, process.env))
}

const withFile = (command: Command): Command =>
  command
    .option('--file <path>', `where keys are kept (THREADKEEP_KEYS; ${defaultKeyFile})`)
    .option('--json', 'answer in JSON')
    .addHelpText('after', help)

async function create(flags: Wishes, environment: Environment): Promise<void> {
  const now = Date.now()
  const credentials = await keysIn(flags, environment)
  const { key, credential } = await credentials.create(
    {
      scopes: flags.scope,
      rights: flags.admin === true ? 'admin' : 'use',
      ...(flags.name === undefined ? {} : { name: flags.name }),
      ...(flags.expires === undefined ? {} : { expiresAt: expiryOf(flags.expires, now) }),
    },
    now,
  )
  say(flags.json, { key, ...credential }, [
    key,
    `This key is shown this once; ${credentials.file} keeps only its hash. ${described(credential)}.`,
  ])
}

async function list(flags: Flags, environment: Environment): Promise<void> {
  const now = Date.now()
  const credentials = await keysIn(flags, environment)
  const items = credentials.list(now)
  const lines = aligned(
    items.map((key) => [key.id, key.scopes.join(' '), key.rights, stateOf(key, now), useOf(key), key.name]),
  )
  say(flags.json, { items }, items.length === 0 ? [`There are no keys in ${credentials.file}.`] : lines)
}

async function revoke(id: string, flags: Flags, environment: Environment): Promise<void> {
  const revoked = await (await keysIn(flags, environment)).revoke(id, Date.now())
  say(flags.json, revoked, [`Key ${id} is good for nothing from now on.`])
}

async function keysIn(flags: Flags, environment: Environment): Promise<Credentials> {
  const { Credentials } = await import('../server/auth/credentials.ts')
  return new Credentials(setting(flags.file, environment, 'THREADKEEP_KEYS') ?? defaultKeyFile)
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The end of a time that begins now, or a date. */
function expiryOf(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text.trim()) ?? []
  const at = count === undefined ? dateOf(text, 'expires') : now + Number(count) * (units[unit] ?? 0)
  check('expires', text, at > now, 'a time to come, such as 90d, 12h, 30m or a date')
  return at
}

const described = ({ id, scopes, rights, expiresAt }: Credential): string =>
  `It is key ${id}, opens ${scopes.includes('*') ? 'every scope' : scopes.join(', ')}${rights === 'admin' ? ', may administer the server' : ''} and ${expiresAt === undefined ? 'never expires' : `expires ${timeOf(expiresAt)}`}`

function stateOf({ revokedAt, expiresAt }: Credential, now: number): string {
  if (revokedAt !== undefined) return `revoked ${timeOf(revokedAt)}`
  if (expiresAt === undefined) return 'good'
  return expiresAt <= now ? `expired ${timeOf(expiresAt)}` : `good until ${timeOf(expiresAt)}`
}

const useOf = ({ lastUsedAt }: Credential): string =>
  lastUsedAt === undefined ? 'never used' : `last used ${timeOf(lastUsedAt)}`
