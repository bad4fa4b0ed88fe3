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
    const shortened = ['m2', 'm4', 'm6', 'm8', 'm10', 'm12', 'm14', 'm16']
    const result = await json<{ budget: number; was: { tokens: number }; is: { tokens: number } }>(
      'replay',
      'acme:ann',
      '--profile',
      'ephemeral',
    )
    expect(result).toEqual({
      key: 'acme:ann',
      budget: 16_000,
      was: {
        profile: 'thread',
        tokens: expect.any(Number),
        verdicts: { whole: 26, shortened: 0, covered: 0, dropped: 3 },
      },
      is: {
        profile: 'ephemeral',
        tokens: expect.any(Number),
        verdicts: { whole: 12, shortened: 8, covered: 0, dropped: 9 },
      },
      differences: shortened.map((id) => ({ entries: [id, id], count: 1, was: 'whole', is: 'shortened' })),
    })
    expect(result.is.tokens).toBeLessThan(result.was.tokens)
    expect(await output('replay', 'acme:ann', '--profile', 'ephemeral')).toBe(
      lines(
        'acme:ann, budget 16000 tokens',
        '     profile    tokens  whole  shortened  covered  dropped',
        `was  thread     ${`${result.was.tokens}`.padStart(6)}     26          0        0        3`,
        `is   ephemeral  ${`${result.is.tokens}`.padStart(6)}     12          8        0        9`,
        ...shortened.map((id) => `${id.padEnd(3)}  1 message  whole → shortened`),
      ),
    )
  })

  it('with a profile that expires sessions › leaves the session as it is', async () => {
    await output('replay', 'acme:ann', '--from', 'support', '--profile', 'ephemeral')
    expect(await output('replay', 'acme:ann', '--profile', 'ephemeral')).toContain('budget 16000 tokens')
    expect(
      (await json<{ was: { tokens: number } }>('replay', 'acme:ann', '--profile', 'thread')).was.tokens,
    ).toBeGreaterThan(0)
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
    [['replay', 'acme:ann'], "required option '--profile <name>' not specified. See threadkeep replay --help."],
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
