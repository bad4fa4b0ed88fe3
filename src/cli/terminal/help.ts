import { type Command, CommanderError, type Help, Option } from 'commander'

/** Explains the exit codes at the end of every help text. */
export const exitCodesHelp = 'Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted.'

/** Widest line of a help text. Example commands may be longer. */
const maxHelpWidth = 80
const minHelpWidth = 40

/** A paragraph, or a list of terms with their meaning. */
export type HelpParagraph = string | Readonly<Record<string, string>>

/** Parts of a command's help that Commander has no field for. */
export type HelpText = {
  readonly details?: readonly HelpParagraph[]
  readonly examples: readonly string[]
  /** Environment variables that no option names, with their meaning. */
  readonly variables?: Readonly<Record<string, string>>
  /** Sentence after the exit codes. */
  readonly exitNote?: string
}

type OptionDetails = {
  /** Environment variables that set the option, in order of precedence. */
  readonly env?: readonly string[]
  /** Value without the option, in the words of the help. */
  readonly fallback?: string
}

const helpTexts = new WeakMap<Command, HelpText>()
const optionDetails = new WeakMap<Option, OptionDetails>()

/** Sets the help of a command. */
export function setHelp(command: Command, text: HelpText): Command {
  helpTexts.set(command, text)
  return command
}

export const helpTextOf = (command: Command): HelpText => helpTexts.get(command) ?? { examples: [] }

/** Creates an option whose help names environment variables and the value that applies without it. */
export function option(flags: string, description: string, details: OptionDetails = {}): Option {
  const created = new Option(flags, description)
  optionDetails.set(created, details)
  return created
}

/** The value of an option that is not given, in the words of the help. */
export function defaultOf(option: Option): string | undefined {
  const { fallback } = optionDetails.get(option) ?? {}
  return fallback ?? (typeof option.defaultValue === 'string' ? option.defaultValue : undefined)
}

/** Names of the environment variables of an option. */
export const variablesOf = (option: Option): readonly string[] => optionDetails.get(option)?.env ?? []

/** Environment variables of a command with their meaning. */
export function listVariables(command: Command): readonly (readonly [name: string, meaning: string])[] {
  const named = command.options.flatMap((option) =>
    variablesOf(option).map((name) => [name, `same as ${option.long ?? option.flags}`] as const),
  )
  return [...named, ...Object.entries(helpTextOf(command).variables ?? {})]
}

/** The command line up to a command: `threadkeep keys create`. */
export const commandPath = (command: Command): string =>
  command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`

/** An error in the arguments of a command. Commander's message names no help. */
export class UsageError extends CommanderError {
  /** The command whose help explains the arguments. */
  readonly commandPath: string

  constructor({ exitCode, code, message }: CommanderError, path: string) {
    super(exitCode, code, message)
    this.commandPath = path
  }
}

/** Applies the format of help texts and errors to a command and all its subcommands. */
export function configureHelp(command: Command): void {
  command
    // `help COMMAND` is resolved before parsing.
    .helpCommand(false)
    .configureHelp({
      formatHelp,
      optionDescription,
      styleTitle: (title) => `\u001b[1m${title}\u001b[22m`,
      subcommandTerm: (child) => child.name(),
      subcommandDescription: (child) => child.summary() || child.description(),
    })
    .configureOutput({ outputError: () => undefined })
    .exitOverride((error) => {
      throw new UsageError(error, commandPath(command))
    })
  for (const child of command.commands) configureHelp(child)
}

function optionDescription(option: Option): string {
  const fallback = defaultOf(option)
  return fallback === undefined ? option.description : `${option.description} (default: ${fallback})`
}

/** Options that many commands share come after those of the command itself. */
const sharedOptions: readonly (string | undefined)[] = ['--store', '--store-key', '--json', '--help']

export const listOptions = (command: Command, helper: Help = command.createHelp()): readonly Option[] =>
  [...helper.visibleOptions(command)].sort((a, b) => sharedOptions.indexOf(a.long) - sharedOptions.indexOf(b.long))

function formatHelp(command: Command, helper: Help): string {
  const width = Math.max(minHelpWidth, Math.min(helper.helpWidth ?? maxHelpWidth, maxHelpWidth))
  helper.helpWidth = width
  const { details = [], examples, exitNote } = helpTextOf(command)
  const formatItems = (title: string, items: readonly (readonly [term: string, meaning: string])[]): string[] => {
    const termWidth = Math.max(0, ...items.map(([term]) => term.length))
    const lines = items.map(([term, meaning]) => helper.formatItem(term, termWidth, meaning, helper))
    return lines.length === 0 ? [] : [helper.styleTitle(title), ...lines, '']
  }
  const formatParagraph = (paragraph: HelpParagraph): string[] => {
    if (typeof paragraph === 'string') return [helper.boxWrap(paragraph, width), '']
    return formatItems('', Object.entries(paragraph)).slice(1)
  }
  const description = command.description()
  const sentence = `${description.charAt(0).toUpperCase()}${description.slice(1)}${/[.:]$/.test(description) ? '' : '.'}`
  const commandGroups = Map.groupBy(helper.visibleCommands(command), (child) => child.helpGroup() || 'Commands:')
  return [
    `${helper.styleTitle('Usage:')} ${helper.commandUsage(command)}`,
    '',
    helper.boxWrap(sentence, width),
    '',
    ...details.flatMap(formatParagraph),
    ...formatItems(
      'Arguments:',
      helper.visibleArguments(command).map((argument) => [argument.name(), helper.argumentDescription(argument)]),
    ),
    ...[...commandGroups].flatMap(([group, commands]) =>
      formatItems(
        group,
        commands.map((child) => [helper.subcommandTerm(child), helper.subcommandDescription(child)]),
      ),
    ),
    ...formatItems(
      'Options:',
      listOptions(command, helper).map((shown) => [helper.optionTerm(shown), helper.optionDescription(shown)]),
    ),
    ...formatItems('Environment:', listVariables(command)),
    ...(examples.length === 0
      ? []
      : [helper.styleTitle('Examples:'), ...examples.map((example) => `  ${example.replaceAll('\n', '\n    ')}`), '']),
    helper.boxWrap(exitNote === undefined ? exitCodesHelp : `${exitCodesHelp} ${exitNote}`, width),
    '',
  ].join('\n')
}
