import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Command, CommanderError, type Option } from 'commander'
import { toCliError } from '../../../src/cli/errors.ts'
import { createProgram } from '../../../src/cli/program.ts'
import { MemoryError } from '../../../src/domain/error.ts'
import { root } from '../../shape/source.ts'
import { hostileText } from '../hostile.ts'
import type { Random } from '../random.ts'
import type { CliStep } from './input.ts'
import type { Problem } from './oracle.ts'

/** Commands that run until a signal, read standard input or measure: they run as processes only. */
const longCommands: ReadonlySet<string> = new Set(['serve', 'chat', 'mcp', 'bench', 'lab', 'help'])

type Leaf = { readonly path: readonly string[]; readonly command: Command }

const leavesOf = (command: Command, path: readonly string[] = []): readonly Leaf[] =>
  command.commands.length === 0
    ? [{ path, command }]
    : command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]))

const leaves = leavesOf(createProgram())
/** Names of all commands that are generated. */
export const fuzzedCommands: readonly string[] = leaves.map(({ path }) => path.join(' '))
const shortLeaves = leaves.filter(({ path }) => !longCommands.has(path[0] ?? ''))

/**
 * Values by the name of an option or argument. A command may write to any path and run any program that its user names,
 * so paths, stores and sources of keys stay in the folder of the run.
 */
const valuesByName: readonly (readonly [name: RegExp, values: readonly string[]])[] = [
  [/^store$/, ['sqlite:{folder}/a.db', 'sqlite:{folder}/missing.db', 'ram:', 'nope:', '']],
  [/^store-key$/, ['file:{folder}/missing', 'env:MISSING', 'env:', 'nope', 'file:']],
  [/^embedder$/, ['nope', '', 'ollama:', '__proto__']],
  [/^config$/, ['{folder}/config.json', '{folder}/missing.json', '{folder}/broken.json']],
  [/^directory$/, ['{folder}/layout', '{folder}/a.txt', '{folder}/missing']],
  [
    /^(?:file|out|backup|log|keys|passphrase-file|file\.\.\.)$/,
    ['{folder}/a.txt', '{folder}/b.jsonl', '{folder}/broken.json', '{folder}'],
  ],
  [/^upstream$/, ['http://127.0.0.1:9', 'nope']],
  [/^(?:host|port)$/, ['127.0.0.1', '0', '99999', 'x']],
  [/^(?:profile|from)$/, ['thread', 'support', '{folder}/broken.json', 'nope', '__proto__']],
  [/^(?:key|session|scope|workspace)$/, ['acme:ann', 'acme', 'acme:bob', 'default', 'acme:missing']],
]

const isSafe = (name: string): boolean => !valuesByName.some(([pattern]) => pattern.test(name))

function createValue(name: string, random: Random): string {
  const known = valuesByName.find(([pattern]) => pattern.test(name))?.[1]
  const isName = /^(?:key|session|scope|workspace)$/.test(name)
  if (known !== undefined && (!isName || random.chance(0.7))) return random.pick(known)
  const value = isSafe(name) || isName ? hostileText(random, random.int(0, 400)) : 'x'
  // Arguments of a process cannot contain NUL; a leading dash would be an option.
  return random.pick([value, '1', '0', '-1', '1e9', '2026-03-01', '{}', 'acme'])
}

const optionArgs = (option: Option, random: Random): readonly string[] => {
  const flag = option.long ?? option.short ?? ''
  return option.required || option.optional ? [flag, createValue(option.name(), random)] : [flag]
}

/** A run of a command with generated arguments. */
export function cliCommand(random: Random): CliStep {
  const isProcess = random.chance(0.01)
  const { path, command } = random.pick(isProcess ? leaves : shortLeaves)
  const positional = command.registeredArguments
    .filter(({ required }) => required || random.chance(0.5) || path[0] === 'save')
    .flatMap((argument) => random.list(1, argument.variadic ? 3 : 1, () => createValue(argument.name(), random)))
  const options = command.options
    .filter((option) => option.long !== '--store' && (option.mandatory || random.chance(0.25)))
    .flatMap((option) => optionArgs(option, random))
  const store = command.options.some((option) => option.long === '--store')
    ? ['--store', random.chance(0.9) ? 'sqlite:{folder}/a.db' : createValue('store', random)]
    : []
  const keyFile = path[0] === 'keys' ? ['--file', '{folder}/keys.json'] : []
  const unknown = random.chance(0.05) ? [`--${hostileText(random, 12)}`] : []
  const extra = random.chance(0.03) && path[0] !== 'import' ? [hostileText(random, 40)] : []
  const args = [...path, ...positional, ...options, ...store, ...keyFile, ...unknown, ...extra]
  return { surface: 'cli', args, ...(isProcess && { isProcess }) }
}

const processTimeoutMs = 30_000
/** A process that waits for requests or input is stopped after this time. */
const longCommandMs = 4_000

const noEnd = ({ args }: CliStep): readonly Problem[] => [
  { kind: `no end ${args.slice(0, 2).join(' ')}`, detail: `no end in ${processTimeoutMs} ms` },
]

/** Runs commands one after another, in this process or as processes. */
export class CliTarget implements Disposable {
  private readonly folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-campaign-cli-'))
  private last: Promise<unknown> = Promise.resolve()

  constructor() {
    writeFileSync(join(this.folder, 'a.txt'), 'Hello.\n')
    writeFileSync(join(this.folder, 'b.jsonl'), '{"role":"user","content":"Hello."}\n')
    writeFileSync(join(this.folder, 'broken.json'), '{"a":')
    writeFileSync(join(this.folder, 'config.json'), '{"profile":"thread"}')
  }

  run(step: CliStep): Promise<readonly Problem[]> {
    const result = this.last.then(() =>
      Promise.race([this.runNext(step), delay(processTimeoutMs + 5_000, noEnd(step), { ref: false })]),
    )
    this.last = result.catch(() => undefined)
    return result
  }

  private async runNext({ args, isProcess = false }: CliStep): Promise<readonly Problem[]> {
    const resolved = args.map((arg) => arg.replaceAll('{folder}', this.folder))
    const name = args.slice(0, 2).join(' ')
    return isProcess || longCommands.has(resolved[0] ?? '')
      ? this.runProcess(name, resolved)
      : runInProcess(name, resolved)
  }

  private async runProcess(name: string, args: readonly string[]): Promise<readonly Problem[]> {
    const env = { PATH: process.env.PATH, HOME: this.folder, THREADKEEP_STORE: 'ram:' }
    const main = join(root, 'src/cli/main.ts')
    const isLong = longCommands.has(args[0] ?? '')
    // NUL cannot be an argument.
    const child = spawn(process.execPath, [main, ...args.map((arg) => arg.replaceAll('\0', ''))], {
      cwd: this.folder,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    let isStopped = false
    const timer = setTimeout(
      () => {
        isStopped = true
        child.kill(isLong ? 'SIGKILL' : 'SIGABRT')
      },
      isLong ? longCommandMs : processTimeoutMs,
    )
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    clearTimeout(timer)
    if (isStopped) return isLong ? [] : noEnd({ surface: 'cli', args })
    if (![0, 1, 2].includes(code ?? -1) || /\n\s+at /.test(stderr))
      return [{ kind: `exit ${name}`, detail: `${code ?? signal}: ${stderr.slice(0, 400)}` }]
    return []
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Runs a command in this process; its errors must be those of the program or of the platform, not of the engine. */
async function runInProcess(name: string, args: readonly string[]): Promise<readonly Problem[]> {
  const { exitCode } = process
  const [stdout, stderr] = [process.stdout.write, process.stderr.write]
  // Streams wait for the callback.
  const discard = ((...args: readonly unknown[]) => {
    const callback = args.at(-1)
    if (typeof callback === 'function') process.nextTick(callback as () => void)
    return true
  }) as typeof process.stdout.write
  process.stdout.write = discard
  process.stderr.write = discard
  try {
    await createProgram()
      .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
      .parseAsync(args, { from: 'user' })
    return []
  } catch (error) {
    if (error instanceof CommanderError || error instanceof MemoryError) return []
    const { code, message } = toCliError(error)
    const isSystemError = /^E[A-Z]+$/.test(code)
    return isSystemError
      ? []
      : [{ kind: `error ${name} ${code}`, detail: `${message} ${(error as Error)?.stack}`.slice(0, 700) }]
  } finally {
    process.stdout.write = stdout
    process.stderr.write = stderr
    process.exitCode = exitCode
  }
}
