import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { profiles } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp, lines } from './cliHarness.ts'
import { addChat } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('replay')

beforeAll(() => addChat(`sqlite:${join(folder, 'threadkeep.db')}`))

describe('threadkeep replay', () => {
  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await output('replay', '--help'), 'replay'),
  )

  it('compares two profiles and lists the messages with different verdicts', async () => {
    const result = await json<{ budget: number; was: { tokens: number }; is: { tokens: number } }>(
      'replay',
      'acme:ann',
      '--profile',
      'summary',
      '--budget',
      '3000',
    )
    expect(result).toEqual({
      key: 'acme:ann',
      budget: 3_000,
      was: {
        profile: 'thread',
        tokens: expect.any(Number),
        verdicts: { whole: 28, shortened: 0, covered: 0, dropped: 1 },
      },
      is: {
        profile: 'summary',
        tokens: expect.any(Number),
        verdicts: { whole: 10, shortened: 0, covered: 18, dropped: 1 },
      },
      differences: [{ entries: ['m1', 'm18'], count: 18, was: 'whole', is: 'covered' }],
    })
    expect(result.is.tokens).toBeLessThan(result.was.tokens)
    expect(await output('replay', 'acme:ann', '--profile', 'summary', '--budget', '3000')).toBe(
      lines(
        'acme:ann, budget 3000 tokens',
        '     profile  tokens  whole  shortened  covered  dropped',
        `was  thread   ${`${result.was.tokens}`.padStart(6)}     28          0        0        1`,
        `is   summary  ${`${result.is.tokens}`.padStart(6)}     10          0       18        1`,
        'm1–m18  18 messages  whole → covered',
      ),
    )
  })

  it('accepts a profile file, a budget and a query, and prints the context with --text', async () => {
    writeFileSync(join(folder, 'mine.json'), JSON.stringify({ ...profiles.ephemeral, name: 'mine' }))
    const args = [
      'replay',
      'acme:ann',
      '--from',
      'support',
      '--profile',
      'mine.json',
      '--budget',
      '300',
      '--query',
      'What is my cat called?',
    ]
    const { text, ...result } = await json<{ text: string; is: { tokens: number } }>(...args, '--text')
    expect(result).toMatchObject({ budget: 300, was: { profile: 'support' }, is: { profile: 'mine' } })
    expect(result.is.tokens).toBeLessThanOrEqual(300)
    expect(text).toContain('I prefer dark mode.')
    const printed = await output(...args, '--text')
    expect(printed.startsWith('acme:ann, budget 300 tokens\n')).toBe(true)
    expect(printed.endsWith(`\n\n${text}\n`)).toBe(true)
    expect(await output(...args)).not.toContain('I prefer dark mode.')
  })

  const names = 'ephemeral, support, summary, agent, handoff, thread'
  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [
      ['replay', 'acme:eve', '--profile', 'summary'],
      'No session acme:eve. Run threadkeep sessions list to see all sessions.',
    ],
    [['replay', 'acme:ann'], "required option '--profile <name>' not specified. See threadkeep --help."],
    [
      ['replay', 'acme:ann', '--profile', 'nope'],
      `Unknown profile "nope". Set --profile to one of: ${names}, or to a JSON file.`,
    ],
    [
      ['replay', 'acme:ann', '--profile', 'summary', '--from', 'nope'],
      `Unknown profile "nope". Set --from to one of: ${names}, or to a JSON file.`,
    ],
    [
      ['replay', 'acme:ann', '--profile', 'truncated.json'],
      'truncated.json is not valid JSON. Write the profile as one JSON object.',
    ],
    [['replay', 'acme:ann', '--profile', 'invalid.json'], 'profile.budget is 0; it must be a whole number, 1 or more.'],
    [
      ['replay', 'acme:ann', '--profile', 'summary', '--budget', '0'],
      'budget is "0"; it must be a whole number, 1 or more.',
    ],
  ]
  beforeAll(() => {
    writeFileSync(join(folder, 'truncated.json'), '{"name":')
    writeFileSync(join(folder, 'invalid.json'), JSON.stringify({ ...profiles.thread, budget: 0 }))
  })
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: ${args.join(' ')}`, async () =>
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )
})
