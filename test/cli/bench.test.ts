import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { generateConversation } from '../../src/evaluation/generate/generate.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp } from './cliHarness.ts'

const { folder, run } = createCliHarness('bench')

/** Runs the command and returns its output. Standard error may contain progress. */
async function measure(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(['bench', ...args])
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  return stdout
}
const measureJson = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await measure(...args, '--json'))

const conversations = [1, 2].map((seed) => generateConversation({ kind: 'chat', tokens: 1_000, seed }))
const peer = `export default {
  name: 'everything',
  open: async ({ messages }: { messages: readonly { text: string }[] }) => ({
    context: async () => messages.map(({ text }) => text).join('\\n'),
    close: async () => undefined,
  }),
}
`
type Report = {
  dataset: string
  metric: string
  systems: { system: string; results?: { budget: number; byTurn: number; overBudget: number; questions: number }[] }[]
}

beforeAll(() => {
  writeFileSync(join(folder, 'chats.json.gz'), gzipSync(JSON.stringify(conversations)))
  writeFileSync(join(folder, 'empty.json'), '[]')
  writeFileSync(
    join(folder, 'transcript.json'),
    JSON.stringify(conversations.map(({ id, messages }) => ({ id, messages }))),
  )
  writeFileSync(join(folder, 'peer.ts'), peer)
})

describe('threadkeep bench', () => {
  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await measure('--help'), 'bench'),
  )

  it('with a file, a module and budgets › measures the systems side by side', async () => {
    const { reports } = await measureJson<{ reports: Report[] }>(
      'chats.json.gz',
      ...[
        '--system',
        'thread',
        '--system',
        './peer.ts',
        '--budget',
        '300',
        '--budget',
        '3000',
        '--budget',
        '300',
        '--metric',
        'evidence',
      ],
    )
    expect(reports).toHaveLength(1)
    expect(reports[0]).toMatchObject({ dataset: 'chats', metric: 'evidence' })
    const [thread, everything] = reports[0]?.systems ?? []
    expect(thread?.results?.map(({ budget }) => budget)).toEqual([300, 3_000])
    expect(thread?.results?.every(({ overBudget }) => overBudget === 0)).toBe(true)
    const questions = conversations.flatMap((conversation) => conversation.questions).length
    expect(everything?.results).toMatchObject([
      { budget: 300, byTurn: 0, overBudget: questions, questions },
      { budget: 3_000, byTurn: 1, overBudget: 0, questions },
    ])
  })

  it('without a metric › chooses by the questions, and prints tables', async () => {
    const text = await measure('chats.json.gz', 'transcript.json', '--system', 'window', '--limit', '4')
    expect(text).toMatch(/^chats: evidence in budget, %\nsystem {2}budget {2}questions {2}by turn/)
    expect(text).toMatch(/\nwindow {5}500 {10}4 /)
    expect(text).toContain('\nchats: updated facts\n')
    expect(text).toContain('\ntranscript: future reference, %\n')
    const markdown = await measure('chats.json.gz', '--metric', 'evidence', '--categories', '--markdown')
    expect(markdown).toMatch(/^### chats: evidence in budget, %\n\n\| system \| budget \| questions \| by turn \|/)
    expect(markdown).toContain('\n| knowledge_update | thread | ')
  })

  it('with isolation and prefix › reports systems without support', async () => {
    const args = ['chats.json.gz', '--metric', 'isolation', '--metric', 'prefix', '--budget', '500', '--limit', '2']
    const { reports } = await measureJson<{ reports: Report[] }>(...args, '--system', 'thread', '--system', './peer.ts')
    expect(reports.map(({ metric, systems }) => [metric, systems.map(({ results }) => results !== undefined)])).toEqual(
      [
        ['isolation', [true, false]],
        ['prefix', [true, false]],
      ],
    )
    expect(reports[0]?.systems[0]?.results).toMatchObject([{ foreignTurns: 0, identical: 1, questions: 2 }])
  })

  it('without a file › measures the generated dataset of the seed', async () => {
    const measureSeed = async (seed: string) => {
      const { reports } = await measureJson<{ reports: Report[] }>(
        ...['--seed', seed, '--system', 'bm25', '--limit', '12', '--budget', '300'],
      )
      expect(reports.map(({ dataset, metric }) => `${dataset} ${metric}`)).toEqual([
        'generated evidence',
        'generated update',
        'generated future',
        'generated isolation',
      ])
      return reports[0]?.systems[0]?.results?.[0]?.byTurn
    }
    expect(await measureSeed('1')).toBe(await measureSeed('1'))
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['--metric', 'recall'], 'Unknown metric "recall". Use one of: evidence, future, update, isolation, prefix.'],
    [
      ['--system', 'mine'],
      'Unknown system "mine". Use one of: ephemeral, support, summary, agent, handoff, thread, window, bm25, or the path of a module such as ./peer.ts.',
    ],
    [['--budget', '0'], 'budget is "0"; it must be a whole number, 1 or more.'],
    [['--limit', 'x'], 'limit is "x"; it must be a whole number, 1 or more.'],

    [['nowhere.json'], 'nowhere.json cannot be read (ENOENT). Name a .json or .json.gz file.'],
    [['chats.json.gz', '--seed', '2'], '--seed belongs to the generated dataset. Omit the files or the seed.'],
    [
      ['empty.json'],
      'empty.json is not an array with at least one conversation. See docs/evaluation.md for the format.',
    ],
    [
      ['transcript.json', '--metric', 'evidence'],
      'transcript has no questions with evidence, which metric evidence needs. Add some, or choose another --metric.',
    ],
    [['--speed'], "unknown option '--speed' (Did you mean --seed?). See threadkeep bench --help."],
  ]
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: bench ${args.join(' ')}`, async () =>
      expect(await run(['bench', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )
  it('--json with --markdown › is refused', async () => {
    const { code, stderr } = await run(['bench', '--json', '--markdown'])
    expect([code, JSON.parse(stderr).error.message]).toEqual([
      2,
      '--json and --markdown cannot be combined. Choose one.',
    ])
  })
})
