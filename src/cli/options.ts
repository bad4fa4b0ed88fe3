import { readFile } from 'node:fs/promises'
import type { Option } from 'commander'
import { countEdits, describeUnknownName } from '../domain/checkOptions.ts'
import { MemoryError, shortenText } from '../domain/error.ts'
import type { Profile } from '../domain/profile.ts'
import { option } from './terminal/help.ts'

/** Environment variables of the process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables that the commands read. */
const knownVariables = [
  'AUDIT_LOG',
  'BUDGET',
  'CONFIG',
  'EMBEDDER',
  'EMBEDDER_KEY',
  'HOST',
  'KEY',
  'KEYS',
  'LOG',
  'MODEL_DOWNLOAD',
  'PASSPHRASE',
  'PORT',
  'PROFILE',
  'SECRETS',
  'STORE',
  'STORE_KEY',
  'SESSIONS',
  'UPKEEP',
  'UPSTREAM',
  'WORKSPACE',
].map((name) => `THREADKEEP_${name}`)

/** Variables that Kubernetes sets in every container for a service named threadkeep. */
const serviceVariable = /^THREADKEEP_(?:SERVICE_(?:HOST|PORT)(?:_\w+)?|PORT_\d+_(?:TCP|UDP)(?:_\w+)?)$/
/** Variables for keys, which a configuration names: `env:NAME`, `keyEnv`, `secretEnv`. */
const secretVariable = /_(?:KEY|SECRET|TOKEN|PASSWORD)$/

/**
 * Throws `bad-option` for an unknown `THREADKEEP_…` variable: a misspelt one must not be ignored. Variables for keys
 * may have any name that is not mistakable for a known one; another name is allowed if an argument or a variable
 * mentions it.
 */
export function checkEnvironment(environment: Environment, args: readonly string[]): void {
  const values = [...args, ...Object.values(environment)]
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('THREADKEEP_') || knownVariables.includes(name) || serviceVariable.test(name)) continue
    if (secretVariable.test(name) && knownVariables.every((known) => countEdits(name, known) > 2)) continue
    if (values.some((value) => value?.includes(`env:${name}`))) continue
    throw new MemoryError('bad-option', `Unknown environment variable ${describeUnknownName(name, knownVariables)}`, {
      param: shortenText(name, 80),
    })
  }
}

export const embedderOption = (): Option =>
  option(
    '--embedder <name>',
    'embedder for search by meaning: ollama:MODEL, openai:MODEL or transformers:MODEL, with @URL or @FOLDER if needed',
    { env: ['THREADKEEP_EMBEDDER'], fallback: 'none' },
  )

export const jsonOption = (): Option => option('--json', 'print JSON')

/** Options of commands that erase something. */
export const confirmOptions = (): readonly Option[] => [
  option('--yes', 'confirm without being asked'),
  option('--dry-run', 'only print what would go'),
]

/** Returns the flag, or the first of these variables that is set; blank values count as unset. */
export function readOption(
  flag: string | undefined,
  environment: Environment,
  ...variables: readonly string[]
): string | undefined {
  const values = [flag, ...variables.map((name) => environment[name])].map((value) => value?.trim())
  return values.find((value) => value !== undefined && value !== '')
}

/** Parses an integer within a range. Throws `bad-option` that names the option. */
export function parseInteger(text: string, name: string, min: number, max: number = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `from ${min} to ${max}`
  throw new MemoryError(
    'bad-option',
    `${name} is ${JSON.stringify(shortenText(text, 40))}; it must be a whole number, ${range}.`,
    { param: name },
  )
}

/** Parses a date. Throws `bad-option` that names the option. */
export function parseDate(text: string, name: string): number {
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return at
  throw new MemoryError(
    'bad-option',
    `${name} is ${JSON.stringify(text)}; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.`,
    { param: name },
  )
}

/** Collects the values of an option that may be repeated. */
export const collectValues = (value: string, previous: readonly string[] = []): readonly string[] => [
  ...previous,
  value,
]

/** Returns a built-in profile, with its budget replaced when one is given. */
export async function resolveProfileOption(name: string, budget: string | undefined): Promise<Profile> {
  const { resolveProfile: profileOf } = await import('../open.ts')
  const profile = profileOf(name)
  return budget === undefined ? profile : { ...profile, budget: parseInteger(budget, 'budget', 1) }
}

/**
 * Reads the passphrase of a bundle from a file or the environment. It is not a flag value, because other users of the
 * machine can see the arguments of a process.
 */
export async function readPassphrase(file: string | undefined, environment: Environment): Promise<string | undefined> {
  if (file === undefined) return readOption(undefined, environment, 'THREADKEEP_PASSPHRASE')
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new MemoryError('bad-option', `Cannot read the passphrase from ${file}. Name a file with one line.`, {
      param: 'passphrase-file',
      cause,
    })
  })
  const passphrase = text.replace(/\r?\n$/, '')
  if (passphrase === '')
    throw new MemoryError('bad-option', `${file} is empty. Write the passphrase into it.`, { param: 'passphrase-file' })
  return passphrase
}

/** Loads the key that signs bundles; it has the form of a store key. */
export async function loadBundleKey(source: string | undefined): Promise<Uint8Array | undefined> {
  if (source === undefined) return undefined
  const { loadKeyring } = await import('../stores/encrypted/loadKeyring.ts')
  return (await loadKeyring(source)).current.bytes
}
