import { styleText } from 'node:util'
import { checkEnvironment } from './options.ts'
import { createProgram, resolveArguments } from './program.ts'
import { installInterruptHandler } from './terminal/interrupt.ts'
import { stripControlCharacters } from './terminal/output.ts'

/** Runs the command that the arguments of the process name. */
export async function runCommand(): Promise<void> {
  // A closed pipe, as with `| head`, is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  installInterruptHandler()
  await runArguments(process.argv.slice(2))
}

/** Runs a command, prints its error if it fails, and sets the exit code of the process. */
export async function runArguments(args: readonly string[]): Promise<void> {
  try {
    const program = createProgram()
    program.hook('preAction', () => checkEnvironment(process.env, args))
    await program.parseAsync(resolveArguments(program, args), { from: 'user' })
  } catch (error) {
    const { toCliError } = await import('./errors.ts')
    const { exitCode, ...details } = toCliError(error)
    process.exitCode = exitCode
    if (details.message === '') return
    const prefix = styleText('red', 'threadkeep:', { stream: process.stderr })
    process.stderr.write(
      args.includes('--json')
        ? `${JSON.stringify({ error: details })}\n`
        : `${prefix} ${stripControlCharacters(details.message)}\n`,
    )
  }
}
