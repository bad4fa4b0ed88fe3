import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp, lines } from './cliHarness.ts'
import { addAllSamples } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('optimizer')

beforeAll(() => addAllSamples(`sqlite:${join(folder, 'threadkeep.db')}`))

type Status = {
  totalOptimizations: number
  totalTokensSaved: number
  snapshots: { tokensBefore: number; tokensAfter: number }[]
}

describe('threadkeep optimizer', () => {
  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await output('optimizer', '--help'), 'optimizer'),
  )

  it('shows savings and parameters of a session or a scope', async () => {
    const status = await json<Status>('optimizer', 'acme:bot')
    expect(status).toEqual({
      totalOptimizations: 2,
      totalTokensSaved: expect.any(Number),
      avgSavingsPerRun: Math.round(status.totalTokensSaved / 2),
      currentParameters: {
        compressionTrigger: 0.75,
        fullMessageWindow: 32,
        minRelevance: 0.25,
        targetUsageRatio: 0.65,
      },
    })
    expect(await json('optimizer', 'shop')).toMatchObject({
      totalOptimizations: 0,
      currentParameters: { compressionTrigger: 0.7 },
    })
    expect(await output('optimizer', 'acme')).toBe(
      lines(
        'runs               2',
        `tokens saved       ${status.totalTokensSaved}, ${Math.round(status.totalTokensSaved / 2)} per run`,
        'trigger            0.75 of the budget',
        'window             32 messages always shown in full',
        'minimum relevance  0.25',
        'target             0.65 of the budget',
      ),
    )
  })

  it('--snapshots shows each run of a session', async () => {
    const { totalTokensSaved, snapshots } = await json<Status>('optimizer', 'acme:bot', '--snapshots')
    expect(snapshots.reduce((sum, { tokensBefore, tokensAfter }) => sum + tokensBefore - tokensAfter, 0)).toBe(
      totalTokensSaved,
    )
    expect(totalTokensSaved).toBeGreaterThan(0)
    const [title, first, second] = (await output('optimizer', 'acme:bot', '--snapshots')).split('\n')
    expect(title).toBe(
      'time                     before  after  compressed  dropped  promoted  trigger  window  relevance',
    )
    expect(first).toMatch(/^2026-03-02 09:03:00 UTC {2,}\d+ {2,}\d+ {11}3 {8}0 {9}0 {4}0\.725 {6}31 {6}0\.275$/)
    expect(second).toMatch(/^2026-03-02 09:06:00 UTC .* {5}0\.75 {6}32 {7}0\.25$/)
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['optimizer', 'acme:eve'], 'No session acme:eve. Run threadkeep sessions list to see all sessions.'],
    [['optimizer', 'acme', '--snapshots'], '--snapshots needs a session. Write it as scope:session.'],
  ]
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: ${args.join(' ')}`, async () =>
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )
})
