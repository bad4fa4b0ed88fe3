import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import stringWidth from 'fast-string-width'
import { describe, expect, it } from 'vitest'
import { renderCliReference } from '../../scripts/docs/cli.ts'
import { checkEnvironment } from '../../src/cli/options.ts'
import { createProgram } from '../../src/cli/program.ts'
import { helpTextOf, listVariables } from '../../src/cli/terminal/help.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { exitCodes } from './cliHarness.ts'
import { listCommands } from './commandTree.ts'
import { runInProcess } from './inProcess.ts'

const commands = listCommands(createProgram())

/** Splits an example as a shell does, up to the first pipe or redirection. */
function parseExample(example: string): readonly string[] {
  const [, line = ''] = /(?:^|\s)threadkeep\s+([^|>]*)/.exec(example.replaceAll('\n', ' ')) ?? []
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
}

/** Creates the program with actions that do nothing. */
function createInertProgram(): Command {
  const program = createProgram()
  for (const { command } of listCommands(program)) if (command.commands.length === 0) command.action(() => undefined)
  return program
}

describe('help of every command', () => {
  for (const { path, command } of commands) {
    verifies('S-02', `threadkeep ${path} › has one width, options, two examples and exit codes`, async () => {
      const { code, stdout, stderr } = await runInProcess([...path.split(' ').filter(Boolean), '--help'])
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(new RegExp(`^Usage: threadkeep ${path}`))
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(exitCodes)
      expect(stdout).toContain('\nExamples:\n  ')
      expect(stdout.split('\n').filter((line) => stringWidth(line) > 80)).toEqual(
        helpTextOf(command)
          .examples.flatMap((example) => `  ${example}`.split('\n'))
          .filter((line) => line.length > 80),
      )
      expect(helpTextOf(command).examples.length).toBeGreaterThanOrEqual(2)
      for (const [name] of listVariables(command)) expect(stdout).toContain(`\n  ${name} `)
    })
  }

  verifies('S-02', 'examples › are valid command lines', async () => {
    const all = commands.flatMap(({ command }) => helpTextOf(command).examples)
    for (const example of all) {
      const args = parseExample(example)
      expect(args.length, example).toBeGreaterThan(0)
      await createInertProgram().parseAsync(args, { from: 'user' })
    }
  })

  verifies('S-02', 'every command › has --json', () => {
    const leaves = commands.filter(({ command }) => command.commands.length === 0)
    expect(leaves.filter(({ command }) => !command.options.some(({ long }) => long === '--json'))).toEqual([])
  })

  it('environment variables › are known to the check of the environment', () => {
    const names = commands.flatMap(({ command }) => listVariables(command).map(([name]) => name))
    for (const name of names.filter((name) => name.startsWith('THREADKEEP_')))
      expect(() => checkEnvironment({ [name]: 'x' }, [])).not.toThrow()
  })

  verifies('S-02', 'help COMMAND › prints the help of a command and of a subcommand', async () => {
    expect((await runInProcess(['help', 'keys', 'create'])).stdout).toMatch(/^Usage: threadkeep keys create /)
    expect((await runInProcess(['help'])).stdout).toMatch(/^Usage: threadkeep \[options\]/)
  })
})

describe('docs/cli.md', () => {
  verifies('S-02', 'is generated from the commands (run npm run docs to update it)', () =>
    expect(readFileSync(`${root}docs/cli.md`, 'utf8')).toBe(renderCliReference()),
  )
})
