import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp, lines } from './cliHarness.ts'
import { addKnowledge } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('knowledge')

beforeAll(() => addKnowledge(`sqlite:${join(folder, 'threadkeep.db')}`))

describe('threadkeep knowledge', () => {
  for (const name of ['knowledge', 'knowledge list', 'knowledge approve', 'knowledge reject'])
    verifies('S-02', `--help prints usage, examples and exit codes: ${name}`, async () =>
      expectHelp(await output(...name.split(' '), '--help'), name),
    )

  it('list sorts by confidence and marks pending entries; approve and reject resolve them', async () => {
    const used = 'last used 2026-03-04 09:00:00 UTC'
    expect(await output('knowledge', 'list', 'zoo')).toBe(
      lines(
        `k3  0.90  user_preference  ${used}  diet: ["fish"] (pending)`,
        `k1  0.50  domain           ${used}  opening hours: nine to five`,
        `k2  0.30  domain           ${used}  walrus: Bruno (pending)`,
      ),
    )
    expect(await output('knowledge', 'approve', 'zoo', 'k2')).toBe('Approved walrus in zoo (domain, confidence 0.3).\n')
    expect(await output('knowledge', 'reject', 'zoo', 'k3')).toBe('Rejected diet and deleted it from zoo.\n')
    const { items } = await json<{ items: { id: string; pending?: true }[] }>('knowledge', 'list', 'zoo')
    expect(items).toHaveLength(2)
    expect(items.filter(({ pending }) => pending === undefined).map(({ id }) => id)).toEqual(['k1', 'k2'])
  })
})

describe('threadkeep remember', () => {
  it('stores a statement of a user at once, and one of an assistant as pending', async () => {
    expect(await output('remember', 'farm', 'goat', 'Heidi', '--by', 'assistant')).toBe(
      'Stored goat in farm (domain, confidence 0.5), pending approval. Approve it with threadkeep knowledge approve farm k1\n',
    )
    expect(await output('remember', 'farm', 'goat', 'Heidi', '--by', 'user')).toBe(
      'Stored goat in farm (domain, confidence 0.6).\n',
    )
  })

  it('raises the confidence when another session repeats a statement, not when the same one does', async () => {
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'ann')).toMatchObject({
      confidence: 0.5,
      statedBy: ['ann'],
    })
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'ann')).toMatchObject({
      confidence: 0.5,
      statedBy: ['ann'],
    })
    expect(await json('remember', 'farm', 'cows', '12', '--session', 'bob')).toMatchObject({
      confidence: 0.6,
      statedBy: ['ann', 'bob'],
    })
  })
})

describe('knowledge and remember', () => {
  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['knowledge', 'approve', 'acme', 'k9'], 'acme has no knowledge with the id k9.'],
    [['knowledge', 'reject', 'zoo', 'm1'], 'No knowledge m1 in zoo. Run threadkeep knowledge list zoo.'],
    [['knowledge', 'reject', 'acme:ann', 'm1'], 'Knowledge belongs to a scope. Use acme instead of acme:ann.'],
    [['remember', 'acme', 'hours', 'nine', '--by', 'robot'], 'by is "robot"; it must be one of user, assistant, tool.'],
    [
      ['remember', 'acme', 'hours', 'nine', '--by', 'tool'],
      "Profile thread does not let a tool add knowledge to acme. Use by: 'user', or change knowledgePolicy.tool.",
    ],
    [
      ['remember', 'acme', 'hours', 'nine', '--session', 'a b'],
      'The session of key "acme:a b" may hold only the letters A-Z and a-z, digits and _ + - . @. Write scope or scope:session, for example acme:+15551234567.',
    ],
  ]
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: ${args.join(' ')}`, async () =>
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )
})
