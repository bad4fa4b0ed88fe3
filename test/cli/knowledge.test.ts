import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp, lines } from './cliHarness.ts'
import { addKnowledge } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('knowledge')

beforeAll(() => addKnowledge(`sqlite:${join(folder, 'threadkeep.db')}`))

describe('threadkeep knowledge', () => {
  for (const name of ['knowledge', ...['list', 'approve', 'restore', 'reject'].map((action) => `knowledge ${action}`)])
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
    expect(await output('knowledge', 'reject', 'zoo', 'k3', '--yes')).toBe('Rejected diet and deleted it from zoo.\n')
    const { items } = await json<{ items: { id: string; pending?: true }[] }>('knowledge', 'list', 'zoo')
    expect(items).toHaveLength(2)
    expect(items.filter(({ pending }) => pending === undefined).map(({ id }) => id)).toEqual(['k1', 'k2'])
  })
})

describe('archived knowledge', () => {
  verifies('K-01', 'is listed with --archived, restored and rejected', async () => {
    const store = `sqlite:${join(folder, 'threadkeep.db')}`
    await using memory = await openMemory({ store, clock: () => Date.UTC(2020, 0, 1) })
    for (const key of ['seal', 'otter'])
      await memory.remember('lake', { category: 'domain', key, value: 'swims', session: 'ann' })
    await memory.remember('lake', { category: 'domain', key: 'bridge', value: 'is closed' })
    await memory.sweep(Date.UTC(2021, 0, 1))
    const used = 'last used 2020-01-01 00:00:00 UTC'
    expect(await output('knowledge', 'list', 'lake')).toBe(lines(`k3  0.50  domain  ${used}  bridge: is closed`))
    expect(await output('knowledge', 'list', 'lake', '--archived')).toBe(
      lines(
        `k3  0.50  domain  ${used}  bridge: is closed`,
        `k1  0.00  domain  ${used}  seal: swims (archived)`,
        `k2  0.00  domain  ${used}  otter: swims (archived)`,
      ),
    )
    expect(await output('knowledge', 'restore', 'lake', 'k1')).toBe('Restored seal in lake (domain, confidence 0.5).\n')
    expect(await output('knowledge', 'reject', 'lake', 'k2', '--yes')).toBe(
      'Rejected otter and deleted it from lake.\n',
    )
    const { items } = await json<{ items: { id: string }[] }>('knowledge', 'list', 'lake', '--archived')
    expect(items.map(({ id }) => id)).toEqual(['k1', 'k3'])
  })
})

describe('threadkeep remember', () => {
  verifies('S-09', 'with --person writes, lists, approves and deletes what is about that person', async () => {
    expect(await output('remember', 'farm', 'drink', 'milk', '--person', 'ann', '--category', 'user_preference')).toBe(
      'Stored drink in the memory of ann in farm (user_preference, confidence 0.5).\n',
    )
    expect(await output('remember', 'farm', 'hat', 'red', '--person', 'ann', '--by', 'assistant')).toBe(
      'Stored hat in the memory of ann in farm (domain, confidence 0.5), pending approval. Approve it with threadkeep knowledge approve farm k2 --person ann\n',
    )
    expect(await output('knowledge', 'approve', 'farm', 'k2', '--person', 'ann')).toBe(
      'Approved hat in farm (domain, confidence 0.5).\n',
    )
    expect(await json('knowledge', 'list', 'farm', '--person', 'ann')).toMatchObject({
      items: [
        { key: 'drink', origin: 'operator' },
        { key: 'hat', origin: 'learned' },
      ],
    })
    expect(await output('knowledge', 'reject', 'farm', 'k2', '--person', 'ann', '--yes')).toBe(
      'Rejected hat and deleted it from farm.\n',
    )
    expect(await json('knowledge', 'list', 'farm', '--person', 'bob')).toMatchObject({ items: [] })
  })

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
    [['knowledge', 'restore', 'acme', 'k9'], 'acme has no knowledge with the id k9.'],
    [
      ['remember', 'acme', 'hours', 'nine', '--origin', 'rumour'],
      'origin is "rumour"; it must be operator or learned.',
    ],
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
