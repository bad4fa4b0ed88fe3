import { toCliError } from './errors.ts'
import { checkEnvironment } from './options.ts'
import { stripControlCharacters } from './output.ts'
import { createProgram } from './program.ts'

/** Runs the command that the arguments of the process name. */
export async function runCommand(): Promise<void> {
  // A closed pipe, as with `| head`, is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  try {
    const program = createProgram()
    program.hook('preAction', () => checkEnvironment(process.env, process.argv))
    await program.parseAsync()
  } catch (error) {
    const { exitCode, ...details } = toCliError(error)
    process.exitCode = exitCode
    if (details.message !== '')
      process.stderr.write(
        process.argv.includes('--json')
          ? `${JSON.stringify({ error: details })}\n`
          : `threadkeep: ${stripControlCharacters(details.message)}\n`,
      )
  }
}
