import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { defaultBudgets, defaultMetrics, runBenchmark } from '../../src/evaluation/benchmark.ts'
import { conversationKinds, generateConversation, generateDataset } from '../../src/evaluation/generate/generate.ts'
import { evaluateIsolation } from '../../src/evaluation/isolation.ts'
import { evaluatePrefix } from '../../src/evaluation/prefix.ts'
import { createProgressBar } from '../../src/evaluation/progressBar.ts'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import { bm25System } from '../../src/evaluation/systems/bm25.ts'
import { createProfileSystem } from '../../src/evaluation/systems/profile.ts'
import { builtInSystemNames, resolveSystems } from '../../src/evaluation/systems/resolve.ts'
import { windowSystem } from '../../src/evaluation/systems/window.ts'
import { createCategoryTable, createTable, formatMarkdown } from '../../src/evaluation/tables.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-systems-'))
afterAll(() => rmSync(folder, { recursive: true }))
const exact = await tokenizerNamed('exact')
const small = {
  name: 'small',
  conversations: [1, 2].map((seed) => generateConversation({ kind: 'chat', tokens: 1_500, seed })),
}

describe('generateDataset', () => {
  it('with the same seed › is the same; with another › differs', () => {
    expect(generateDataset(3, 1_000)).toEqual(generateDataset(3, 1_000))
    expect(generateDataset(3, 1_000)).not.toEqual(generateDataset(5, 1_000))
  })
  for (const kind of conversationKinds)
    it(`${kind} › has about the wanted size, and questions whose evidence contains the answer`, () => {
      const { messages, questions } = generateConversation({ kind, tokens: 6_000, seed: 2 })
      const tokens = messages.reduce((sum, { text }) => sum + exact.count(text), 0)
      expect(tokens).toBeGreaterThan(4_000)
      expect(tokens).toBeLessThan(8_500)
      const texts = new Map(messages.map(({ id, text }) => [id, text]))
      for (const { answer, evidence, query } of questions) {
        expect(texts.get(evidence.at(-1) ?? ''), query).toContain(answer)
        expect(query).not.toContain(answer)
        expect(query).not.toMatch(/[{}]/)
      }
      expect(messages.filter(({ text }) => /[{}]/.test(text))).toEqual([])
    })
})

describe('resolveSystems', () => {
  it('with built-in names › returns them in order', async () =>
    expect((await resolveSystems(builtInSystemNames)).map(({ name }) => name)).toEqual(builtInSystemNames))
  it('with a module › loads one system or several', async () => {
    const one = join(folder, 'one.ts')
    writeFileSync(
      one,
      'export default { name: "one", open: async (c: { id: string }) => ({ context: async () => c.id, close: async () => {} }) }',
    )
    const two = join(folder, 'two.mjs')
    writeFileSync(two, 'const open = async () => ({}); export default [{ name: "a", open }, { name: "b", open }]')
    const systems = await resolveSystems([one, 'thread', two])
    expect(systems.map(({ name }) => name)).toEqual(['one', 'thread', 'a', 'b'])
    const memory = await systems[0]?.open({ id: 'c7', messages: [] })
    expect(await memory?.context('', 10)).toBe('c7')
  })
  it('with an unknown name › lists the names', () =>
    expect(resolveSystems(['treads'])).rejects.toThrow(
      'Unknown system "treads". Use one of: ephemeral, support, summary, agent, handoff, thread, window, bm25, or the path of a module such as ./peer.ts.',
    ))
  it('with a module that does not exist › names it', () =>
    expect(resolveSystems([join(folder, 'nowhere.ts')])).rejects.toThrow(
      /^Cannot load .*nowhere\.ts: .*Name a module/s,
    ))
  it('with a module without a system › says what to export', async () => {
    const empty = join(folder, 'empty.mjs')
    writeFileSync(empty, 'export default { name: "x" }')
    await expect(resolveSystems([empty])).rejects.toThrow('Its default export must be { name, open(conversation) }')
  })
  it('with the same name twice › is refused', () =>
    expect(resolveSystems(['window', 'window'])).rejects.toThrow('System "window" occurs twice.'))
})

describe('baselines', () => {
  const [conversation] = small.conversations
  for (const system of [windowSystem, bm25System])
    it(`${system.name} › keeps every budget`, async () => {
      const memory = await system.open(conversation as (typeof small.conversations)[number])
      for (const budget of [20, 100, 700, 5_000]) {
        const text = await memory.context('When is the birthday party in June?', budget)
        expect(exact.count(text)).toBeLessThanOrEqual(budget)
        expect(exact.count(text)).toBeGreaterThan(0)
      }
      await memory.close()
    })
  it('bm25 › finds words, the month of a message and neighbours, in reading order with days', async () => {
    const at = Date.UTC(2024, 4, 2)
    const texts = ['Where did you go?', 'To Ghent.', 'It rained.', 'Fine.', 'I like tea.', 'Nothing.', 'Really.']
    const messages = texts.map((text, index) => ({
      id: `${index}`,
      at: index === 6 ? Date.UTC(2024, 5, 9) : at,
      speaker: 'Ann',
      role: 'user' as const,
      text,
      group: null,
    }))
    const memory = await bm25System.open({ id: 'c', messages })
    expect(await memory.context('ghent', 200)).toBe(
      '2 May 2024\nAnn: Where did you go?\nAnn: To Ghent.\nAnn: It rained.\n',
    )
    expect(await memory.context('june', 200)).toBe('2 May 2024\nAnn: Nothing.\n9 June 2024\nAnn: Really.\n')
  })
})

describe('metrics', () => {
  it('isolation › of a system that mixes users › counts foreign turns', async () => {
    const all = small.conversations.flatMap(({ messages }) => messages.map(({ text }) => text))
    const mixed: MemorySystem = {
      name: 'mixed',
      open: windowSystem.open,
      openShared: async () => ({ context: async () => all.join('\n'), close: async () => undefined }),
    }
    const [result] = (await evaluateIsolation(small, { system: mixed, budgets: [1_000], limit: 1 })) ?? []
    expect(result?.identical).toBe(0)
    expect(result?.foreignTurns).toBeGreaterThan(20)
    const [own] = (await evaluateIsolation(small, { system: bm25System, budgets: [1_000], limit: 1 })) ?? []
    expect(own).toMatchObject({ foreignTurns: 0, identical: 1 })
  })
  it('prefix › of a growing prompt is high, of a sliding window low', async () => {
    const [growing] =
      (await evaluatePrefix(small, { system: createProfileSystem('thread'), budgets: [8_000], limit: 1 })) ?? []
    expect(growing?.common).toBeGreaterThan(0.9)
    expect(growing).toMatchObject({ overBudget: 0, broken: 0 })
    const [sliding] = (await evaluatePrefix(small, { system: windowSystem, budgets: [200], limit: 1 })) ?? []
    expect(sliding?.common).toBeLessThan(0.3)
  })
  it('that a system does not support › are reported as such', async () => {
    const reports = await runBenchmark(small, { systems: [bm25System], metrics: ['prefix'] })
    expect(reports).toEqual([{ dataset: 'small', metric: 'prefix', systems: [{ system: 'bm25' }] }])
    const table = createTable(reports[0] as (typeof reports)[number])
    expect(table.rows[0]?.slice(0, 3)).toEqual(['bm25', 'not supported', '–'])
  })
  it('by default › follow the questions of the dataset', () => {
    expect(defaultMetrics(small)).toEqual(['evidence', 'update'])
    const withoutQuestions = small.conversations.map((conversation) => ({ ...conversation, questions: [] }))
    expect(defaultMetrics({ name: 'x', conversations: withoutQuestions })).toEqual(['future'])
  })
  it('without budgets › use those of the metric', async () => {
    const reports = await runBenchmark(small, { systems: [windowSystem], limit: 1 })
    for (const { metric, systems } of reports)
      expect(systems[0]?.results?.map(({ budget }) => budget)).toEqual(defaultBudgets[metric])
  })
  it('without suitable questions › are refused', () => {
    const conversations = small.conversations.map((conversation) => ({ ...conversation, questions: [] }))
    return expect(
      runBenchmark({ name: 'x', conversations }, { systems: [windowSystem], metrics: ['update'] }),
    ).rejects.toThrow('x has no questions of category knowledge_update, which metric update needs.')
  })
  it('of a system over budget › are 0 and counted', async () => {
    const greedy: MemorySystem = {
      name: 'greedy',
      open: async ({ messages }) => ({
        context: async () => messages.map(({ text }) => text).join('\n'),
        close: async () => undefined,
      }),
    }
    const [report] = await runBenchmark(small, { systems: [greedy], metrics: ['evidence'], budgets: [100, 5_000] })
    const results = report?.metric === 'evidence' ? report.systems[0]?.results : undefined
    expect(results?.[0]).toMatchObject({ budget: 100, byTurn: 0, overBudget: results?.[0]?.questions })
    expect(results?.[1]).toMatchObject({ budget: 5_000, byTurn: 1, byWord: 1, overBudget: 0, budgetShare: 1 })
  })
})

describe('tables', () => {
  it('of evidence › have a row for each system and budget, and for each category', async () => {
    const [report] = await runBenchmark(small, {
      systems: [windowSystem, bm25System],
      metrics: ['evidence'],
      budgets: [200, 400],
    })
    if (report?.metric !== 'evidence') throw new Error('no report')
    expect(createTable(report).rows.map((row) => row.slice(0, 2))).toEqual([
      ['window', '200'],
      ['window', '400'],
      ['bm25', '200'],
      ['bm25', '400'],
    ])
    const categories = createCategoryTable(report)
    expect(categories.header).toEqual(['category', 'system', 'questions', '200', '400'])
    expect(categories.rows.map((row) => row[0])).toEqual([
      'knowledge_update',
      'knowledge_update',
      'personal_fact',
      'personal_fact',
    ])
  })
  it('as Markdown › escape bars', () =>
    expect(formatMarkdown({ title: 't', header: ['a', 'b'], rows: [['x|y', '1']] })).toEqual([
      '### t',
      '',
      '| a | b |',
      '| --- | ---: |',
      '| x\\|y | 1 |',
      '',
    ]))
})

describe('createProgressBar', () => {
  const record = (isTTY: boolean) => {
    const written: string[] = []
    let now = 0
    const bar = createProgressBar({ isTTY, write: (text) => written.push(text) }, () => now)
    return { written, bar, advance: (ms: number) => (now += ms) }
  }
  it('on a terminal › redraws one line', () => {
    const { written, bar, advance } = record(true)
    bar.update(1, 4, 'chats')
    bar.update(2, 4, 'chats')
    advance(100)
    bar.update(4, 4, 'chats')
    bar.clear()
    expect(written).toEqual([
      `\r\u001b[K${'█'.repeat(6)}${'░'.repeat(18)}  25 % chats`,
      `\r\u001b[K${'█'.repeat(24)} 100 % chats`,
      '\r\u001b[K',
    ])
  })
  it('elsewhere › prints a line every five seconds', () => {
    const { written, bar, advance } = record(false)
    bar.update(1, 8, 'chats')
    advance(4_999)
    bar.update(1, 8, 'chats')
    advance(1)
    bar.update(2, 8, 'chats')
    bar.update(3, 8, 'chats')
    bar.clear()
    expect(written).toEqual(['25 %, 2 of 8: chats\n'])
  })
})
