import { styleText } from 'node:util'
import { toCliError } from './errors.ts'
import { checkEnvironment } from './options.ts'
import { createProgram, resolveArguments } from './program.ts'
import { stripControlCharacters } from './terminal/output.ts'

/** Runs a command, prints its error if it fails, and sets the exit code of the process. */
export async function runCli(args: readonly string[]): Promise<void> {
  try {
    const program = createProgram()
    program.hook('preAction', () => checkEnvironment(process.env, args))
    await program.parseAsync(resolveArguments(program, args), { from: 'user' })
  } catch (error) {
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
