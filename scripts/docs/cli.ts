// Renders docs/cli.md from the commands.
import type { Command, Option } from 'commander'
import { createProgram } from '../../src/cli/program.ts'
import {
  commandPath,
  defaultOf,
  exitCodesHelp,
  type HelpParagraph,
  helpTextOf,
  listOptions,
  variablesOf,
} from '../../src/cli/terminal/help.ts'

/** Renders the reference of the command line as Markdown. */
export function renderCliReference(): string {
  const program = createProgram()
  const { details = [], examples, variables = {} } = helpTextOf(program)
  const commands = listVisible(program)
  return [
    '# Command line',
    '',
    '<!-- Generated from the commands by `npm run docs`. -->',
    '',
    program.description(),
    ...details.flatMap(renderParagraph),
    '',
    '```text',
    'npx threadkeep COMMAND          # the published package',
    'npm run threadkeep -- COMMAND   # a checkout',
    '```',
    '',
    ...renderTable(
      ['command', 'effect'],
      commands.map((command) => [
        `[\`${commandPath(command)}\`](#${commandPath(command).replaceAll(' ', '-')})`,
        command.summary() || command.description(),
      ]),
    ),
    '',
    exitCodesHelp,
    '',
    'Progress appears on standard error, only in a terminal, and not with `--json` or in CI. Tables fit the terminal; in a pipe, nothing is shortened. Commands that delete or replace something list it first and ask; without a terminal they need `--yes`, and files are replaced only with `--force`.',
    '',
    ...renderTable(
      ['variable', 'effect'],
      Object.entries(variables).map(([name, effect]) => [`\`${name}\``, effect]),
    ),
    '',
    ...renderExamples(examples),
    ...commands.flatMap(renderCommand),
  ].join('\n')
}

const listVisible = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .flatMap((child) => (child.commands.length === 0 ? [child] : listVisible(child)))

function renderCommand(command: Command): string[] {
  const { details = [], examples, variables = {}, exitNote } = helpTextOf(command)
  const description = command.description()
  const helper = command.createHelp()
  const argumentRows = command.registeredArguments.map((argument) => [
    `\`${argument.name()}\``,
    '',
    escapeCell(helper.argumentDescription(argument)),
    '',
  ])
  const optionRows = listOptions(command, helper)
    .filter(({ long }) => long !== '--help')
    .map(renderOption)
  return [
    `## ${commandPath(command)}`,
    '',
    `${description.charAt(0).toUpperCase()}${description.slice(1)}.`,
    ...details.flatMap(renderParagraph),
    '',
    '```text',
    helper.commandUsage(command),
    '```',
    '',
    ...renderTable(['argument or option', 'default', 'effect', 'variable'], [...argumentRows, ...optionRows]),
    '',
    ...Object.entries(variables).map(([name, meaning]) => `\`${name}\`: ${meaning}.  `),
    ...(Object.keys(variables).length === 0 ? [] : ['']),
    ...renderExamples(examples),
    ...(exitNote === undefined ? [] : [exitNote, '']),
  ]
}

const renderOption = (option: Option): string[] => [
  `\`${option.flags}\``,
  escapeCell(defaultOf(option) ?? ''),
  escapeCell(option.description),
  variablesOf(option)
    .map((name) => `\`${name}\``)
    .join(', '),
]

const renderExamples = (examples: readonly string[]): string[] => ['```text', ...examples, '```', '']

function renderParagraph(paragraph: HelpParagraph): string[] {
  if (typeof paragraph === 'string') return ['', paragraph]
  return ['', ...Object.entries(paragraph).map(([term, meaning]) => `- \`${term}\`: ${meaning}`)]
}

function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return []
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

const escapeCell = (text: string): string => text.replaceAll('|', '\\|')
