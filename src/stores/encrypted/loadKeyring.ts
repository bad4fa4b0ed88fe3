import { execFile } from 'node:child_process'
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { checkOptions } from '../../domain/checkOptions.ts'
import { anyObject, positiveNumber } from '../../domain/error.ts'
import type { Keyring } from '../../domain/ports.ts'
import { badKeyError, parseKeyring } from './keyring.ts'

export type LoadKeyringOptions = {
  /** Environment for `env:` sources. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Time limit of a key command, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number
}

const maxKeyBytes = 65_536

/**
 * Loads the keys of an encrypted store from a file, an environment variable or the output of a command. Several keys
 * are separated by white space: the first is the current one, the others only decrypt.
 *
 * Throws `bad-secret` if the source cannot be read, is readable by other users, or does not hold keys.
 *
 * @example
 * await loadKeyring('file:/etc/threadkeep/key')
 * await loadKeyring('env:THREADKEEP_KEY')
 * await loadKeyring('command:pass show threadkeep')
 */
export async function loadKeyring(source: string, options: LoadKeyringOptions = {}): Promise<Keyring> {
  checkOptions<LoadKeyringOptions>('loadKeyring', options, { env: anyObject, timeoutMs: positiveNumber })
  const { env = process.env, timeoutMs = 30_000 } = options
  const [, kind, rest = ''] = /^(file|env|command):(.+)$/s.exec(source) ?? []
  if (kind === 'file') return parseKeyring(await readKeyFile(rest), source)
  if (kind === 'env') return parseKeyring(readVariable(env, rest), source)
  if (kind === 'command') {
    const words = parseCommand(rest)
    // Arguments may be secrets: errors name only the program.
    return parseKeyring(await runCommand(words, timeoutMs), `the output of ${words[0]}`)
  }
  // The source may be the key itself: the error does not repeat it.
  throw badKeyError(
    'The key source must be file:PATH, env:NAME or command:PROGRAM ARGUMENTS. The key itself is never passed directly.',
  )
}

function readVariable(env: NonNullable<LoadKeyringOptions['env']>, name: string): string {
  const value = env[name]
  if (value === undefined)
    throw badKeyError(`The environment variable ${name} is not set. Set it to the key of the store.`)
  return value
}

async function readKeyFile(path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    file = await open(path)
    // Checks the open file, which cannot be replaced between the check and the read.
    const { mode, size } = await file.stat()
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw badKeyError(
        `The key file ${path} is accessible to other users (mode ${(mode & 0o777).toString(8)}). Run: chmod 600 ${quoteForShell(path)}`,
      )
    }
    if (size > maxKeyBytes)
      throw badKeyError(`The key file ${path} has ${size} bytes, more than keys need. Put only keys into it.`)
    return await file.readFile('utf8')
  } catch (error) {
    throw errorCode(error) === 'bad-secret'
      ? error
      : badKeyError(
          `The key file ${path} cannot be read (${errorCode(error)}). Check the path and its permissions.`,
          error,
        )
  } finally {
    await file?.close()
  }
}

/**
 * Parses a program and its arguments: plain words, or a JSON list for words with spaces. No shell is involved and
 * nothing is expanded, so shell syntax is rejected.
 */
function parseCommand(command: string): readonly string[] {
  const words = command.trim().startsWith('[')
    ? parseJsonList(command)
    : /["'`|&;<>$\\]/.test(command)
      ? undefined
      : command.trim().split(/\s+/)
  if (words?.[0] !== undefined && words[0] !== '') return words
  throw badKeyError(
    'The key command is not run by a shell. Write plain words such as command:pass show threadkeep, ' +
      'a JSON list such as command:["pass","show","my key"], or put what needs a shell into a script.',
  )
}

function parseJsonList(command: string): readonly string[] | undefined {
  try {
    const words: unknown = JSON.parse(command)
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined
  } catch {
    return undefined
  }
}

async function runCommand([program = '', ...args]: readonly string[], timeoutMs: number): Promise<string> {
  try {
    const running = promisify(execFile)(program, args, {
      timeout: timeoutMs,
      maxBuffer: maxKeyBytes,
      killSignal: 'SIGKILL',
      encoding: 'utf8',
      windowsHide: true,
    })
    running.child.stdin?.end()
    return (await running).stdout
  } catch (error) {
    // Leaves out the cause, which contains the arguments and the output.
    throw badKeyError(describeFailure(error as CommandFailure, program, timeoutMs))
  }
}

type CommandFailure = { readonly killed?: boolean; readonly code?: unknown; readonly stderr?: string }

function describeFailure({ killed, code, stderr = '' }: CommandFailure, program: string, timeoutMs: number): string {
  if (typeof code === 'string') return `The key command ${program} could not be run (${code}).`
  if (killed === true) return `The key command ${program} did not finish within ${timeoutMs} ms.`
  return `The key command ${program} failed with code ${code}${stderr.trim() === '' ? '' : `: ${stderr.trim().slice(0, 200)}`}.`
}

const errorCode = (error: unknown): unknown => (error as { code?: unknown }).code
const quoteForShell = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
