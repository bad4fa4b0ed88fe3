import { parseArgs } from 'node:util'

/** Values of the options that were given, by name. */
export type OptionValues = Readonly<Record<string, string | undefined>>

type Command = {
  readonly usage: string
  /** Names of the options; each takes a value. */
  readonly options: readonly string[]
  readonly required: readonly string[]
  readonly run: (values: OptionValues) => void
}

/** Runs a command with the arguments of this process; prints errors without a stack, because they tell what to do. */
export function runCommand({ usage, options, required, run }: Command): void {
  try {
    const { values } = parseArgs({
      options: {
        ...Object.fromEntries(options.map((name) => [name, { type: 'string' as const }])),
        help: { type: 'boolean' as const, short: 'h' },
      },
    })
    if (values.help) {
      console.log(usage)
      return
    }
    const given = values as OptionValues
    const missing = required.filter((name) => given[name] === undefined)
    if (missing.length > 0) throw new Error(`Missing --${missing.join(', --')}. Try --help.`)
    run(given)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
