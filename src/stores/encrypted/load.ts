import { execFile } from 'node:child_process'
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { badKey, type Keyring, parseKeyring } from './keyring.ts'

export type LoadOptions = {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How many milliseconds a key command may take. */
  readonly patience?: number
}

/** More than anybody has keys. */
const most = 65_536

/**
 * Loads the keys of a sealed store from a file, an environment variable or a command that prints them. Several keys are
 * parted by white space: the first is the current one, the others can still open what they sealed.
 *
 * @example
 * await loadKeyring('file:/etc/threadkeep/key')
 * await loadKeyring('env:THREADKEEP_KEY')
 * await loadKeyring('command:pass show threadkeep')
 */
export async function loadKeyring(
  source: string,
  { env = process.env, patience = 30_000 }: LoadOptions = {},
): Promise<Keyring> {
  const [, kind, rest = ''] = /^(file|env|command):(.+)$/s.exec(source) ?? []
  if (kind === 'file') return parseKeyring(await fileText(rest), source)
  if (kind === 'env') return parseKeyring(variable(env, rest), source)
  if (kind === 'command') {
    const words = argumentsOf(rest)
    // arguments may be secrets themselves, so that errors name the program alone
    return parseKeyring(await printed(words, patience), `what ${words[0]} printed`)
  }
  // what stands here may be the key itself, so that it is not repeated
  throw badKey('The key must come from file:PATH, env:NAME or command:PROGRAM ARGUMENTS, and is never given itself.')
}

function variable(env: NonNullable<LoadOptions['env']>, name: string): string {
  const value = env[name]
  if (value === undefined) throw badKey(`The environment variable ${name}, which should hold the key, is not set.`)
  return value
}

async function fileText(path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    file = await open(path)
    const { mode, size } = await file.stat()
    // what is open is what was checked: the file cannot be exchanged in between
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw badKey(
        `The key file ${path} is open to others than its owner (mode ${(mode & 0o777).toString(8)}). Run: chmod 600 ${quoted(path)}`,
      )
    }
    if (size > most) throw badKey(`The key file ${path} has ${size} bytes; it should hold nothing but keys.`)
    return await file.readFile('utf8')
  } catch (error) {
    throw codeOf(error) === 'bad-secret'
      ? error
      : badKey(`The key file ${path} cannot be read (${codeOf(error)}).`, error)
  } finally {
    await file?.close()
  }
}

/**
 * The program and its arguments: words, or a JSON list where words have spaces. No shell is involved, so that nothing in
 * them is ever expanded; whoever writes as if there were one is told.
 */
function argumentsOf(command: string): readonly string[] {
  const words = command.trim().startsWith('[')
    ? listed(command)
    : /["'`|&;<>$\\]/.test(command)
      ? undefined
      : command.trim().split(/\s+/)
  if (words?.[0] !== undefined && words[0] !== '') return words
  throw badKey(
    'The key command is not run by a shell. Write plain words such as command:pass show threadkeep, ' +
      'a JSON list such as command:["pass","show","my key"], or put what needs a shell into a script.',
  )
}

function listed(command: string): readonly string[] | undefined {
  try {
    const words: unknown = JSON.parse(command)
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined
  } catch {
    return undefined
  }
}

async function printed([program = '', ...args]: readonly string[], patience: number): Promise<string> {
  try {
    const running = promisify(execFile)(program, args, {
      timeout: patience,
      maxBuffer: most,
      killSignal: 'SIGKILL',
      encoding: 'utf8',
      windowsHide: true,
    })
    running.child.stdin?.end()
    return (await running).stdout
  } catch (error) {
    // without its cause, which holds the arguments and whatever was printed
    throw badKey(faultOf(error as Failure, program, patience))
  }
}

type Failure = { readonly killed?: boolean; readonly code?: unknown; readonly stderr?: string }

function faultOf({ killed, code, stderr = '' }: Failure, program: string, patience: number): string {
  if (typeof code === 'string') return `The key command ${program} did not work (${code}).`
  if (killed === true) return `The key command ${program} did not end within ${patience} ms.`
  return `The key command ${program} failed with code ${code}${stderr.trim() === '' ? '' : `: ${stderr.trim().slice(0, 200)}`}.`
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
