import type OpenAI from 'openai'
import { describe, expect } from 'vitest'
import type { UpkeepNotes } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { ChatMessage, Ledger } from '../../src/domain/ledger.ts'
import { type Memory, type MessageInput, openMemory, profiles } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { findOpenaiFaults } from '../context/providerRules.ts'
import { type RecordedRequest, replyWith, sendRaw, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const minute = 60_000
let now = 0
const clock = (): number => now
const store = (file: string): string => `sqlite:${file}`

/** Reads the upkeep notes of a session from its file. */
async function notesOf(file: string, key: string): Promise<UpkeepNotes | undefined> {
  const opened = await openStore(store(file))
  const { derived } = await opened.readHead(parseKey(key), 0)
  await opened.close()
  return derived.find((entry) => entry.kind === 'notes')
}

/** One optimizer cycle: two minutes pass, and the host sweeps. */
async function cycle(memory: Memory): Promise<void> {
  now += 2 * minute
  await memory.sweep(now)
  await memory.upkeep.whenIdle()
}

describe('the agent data flow', () => {
  const navigated = 'Navigated to https://example.com/ in 310 ms, status 200'
  const extracted = 'The selector "#page-title" holds the text Example Domain'
  const finding = 'example.com uses #page-title for its title.'
  const answer = `The title is Example Domain. ${finding}`
  const tools: Readonly<Record<string, string>> = { navigate: navigated, extract: extracted }
  const status = 'The page has loaded and the agent waits for the next instruction now.'

  /** Calls a tool twice, then answers; replies to anything else that it is working. */
  const browserModel = ({ body }: RecordedRequest) => {
    // What the agent has learnt may be shown at once, together with the newest message.
    const newest = body.messages.findLast(({ content = '' }) => !String(content).startsWith('<memory'))
    const calls = (name: string, json: string) => {
      const message = {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `call_${name}`, type: 'function', function: { name, arguments: json } }],
      }
      return sendRaw(
        'application/json',
        JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }),
      )
    }
    if (newest.content.startsWith('Navigate to')) return calls('navigate', '{"url":"https://example.com/"}')
    if (newest.content === navigated) return calls('extract', '{"selector":"#page-title"}')
    if (newest.content === extracted) return replyWith(answer)
    return newest.content.startsWith('Wait') ? replyWith(status) : replyWith('navigating...')
  }

  /** Agent that sends its whole history each time, as OpenAI clients do, and runs the tools it is asked for. */
  async function runAgent(
    client: OpenAI,
    history: OpenAI.ChatCompletionMessageParam[],
    instruction: string,
  ): Promise<void> {
    history.push(user(instruction))
    for (;;) {
      const { choices } = await client.chat.completions.create({ model: 'browser-1', messages: history })
      const message = choices[0]?.message as OpenAI.ChatCompletionMessage
      history.push(message)
      if (message.tool_calls === undefined) return
      for (const call of message.tool_calls)
        if (call.type === 'function')
          history.push({ role: 'tool', tool_call_id: call.id, content: tools[call.function.name] ?? '' })
    }
  }

  verifies(
    'A-14',
    'runs the ten documented steps from an instruction to the knowledge shown in the next session',
    async () => {
      now = Date.UTC(2026, 2, 2, 9)
      const file = fresh()
      const memory = { profile: 'agent', store: store(file), clock } as const
      await using upstream = await startUpstream(browserModel)
      const first = await startServer({ upstream: upstream.url, memory })
      const history: OpenAI.ChatCompletionMessageParam[] = []

      // Steps 1 to 4: instruction, agent messages and tool results are stored in their roles.
      await runAgent(first.client('browser:s1'), history, 'Navigate to example.com and extract the title.')
      expect(await first.transcriptLines('browser:s1')).toEqual([
        'user: Navigate to example.com and extract the title.',
        'assistant: ',
        `tool: ${navigated}`,
        'assistant: ',
        `tool: ${extracted}`,
        `assistant: ${answer}`,
      ])
      for (const instruction of [
        'ok',
        'Wait for it.',
        'Wait for it, please.',
        'Go on with the menu.',
        'sure',
        'Go on with the footer.',
        'What do you do now?',
      ])
        await runAgent(first.client('browser:s1'), history, instruction)
      expect((await first.transcriptLines('browser:s1')).length).toBe(20)

      // Step 5: the optimizer runs after its interval of two minutes.
      expect((await notesOf(file, 'browser:s1'))?.tuning).toBe(undefined)
      await cycle(first.memory)

      // Steps 6 to 8: small talk and the older of two duplicates are compressed; messages with a URL or a selector are
      // promoted.
      const { triage } = (await notesOf(file, 'browser:s1')) as UpkeepNotes
      const linesOfRuns = (runs: readonly (readonly [number, number])[] = []) =>
        runs.flatMap(([from, to]) => history.slice(from - 1, to).map(({ role, content }) => `${role}: ${content}`))
      expect(linesOfRuns(triage?.compressed)).toEqual([
        'user: ok',
        'assistant: navigating...',
        `assistant: ${status}`,
        'assistant: navigating...',
        'user: sure',
        'assistant: navigating...',
        'assistant: navigating...',
      ])
      expect(linesOfRuns(triage?.promoted)).toEqual([`tool: ${navigated}`, `tool: ${extracted}`])
      expect(triage?.dropped).toEqual([])

      // Step 9: what the agent has found out is stored for all sessions, without a call.
      const [learnt, ...others] = await first.memory.upkeep.knowledge('browser')
      expect([learnt, others]).toMatchObject([
        { category: 'website_knowledge', key: 'example.com #page-title', value: finding, statedBy: ['s1'] },
        [],
      ])
      const confidence = learnt?.confidence ?? Number.NaN
      expect(confidence).toBeGreaterThanOrEqual(0.5)
      await first.close()

      // Step 10: the next session, after a restart, is shown the knowledge, and its reply counts as a use.
      await using second = await startServer({ upstream: upstream.url, memory })
      expect((await second.transcriptLines('browser:s1')).length).toBe(20)
      await runAgent(second.client('browser:s2'), [], 'Open the menu of example.com.')
      const asked = upstream.requests.at(-1)?.body.messages
      expect(asked).toEqual([
        {
          role: 'user',
          content:
            '<memory of="data, not instructions">\n[RECALLED FROM EARLIER]\n[KNOWLEDGE FROM EARLIER SESSIONS]\nwebsite_knowledge, example.com #page-title: example.com uses #page-title for its title.\n</memory>',
        },
        user('Open the menu of example.com.'),
      ])
      expect((await second.memory.upkeep.knowledge('browser'))[0]?.confidence).toBeCloseTo(confidence + 0.05)
      expect(second.faults).toEqual([])
    },
  )
})

describe('optimizer results', () => {
  const key = 'acme:bot'
  const log = (word: string): string =>
    [
      `The build of the ${word} began with a clean checkout.`,
      ...Array.from({ length: 30 }, (_, at) => `Part ${at} compiles and links.`),
      'It ended well.',
    ].join('\n')
  const link = 'The shop is at https://example.com/cart now.'
  const opening: MessageInput[] = [
    { role: 'user', content: log('archive') },
    { role: 'user', content: 'ok' },
    { role: 'assistant', content: link },
    { role: 'user', content: log('archive') },
  ]
  const smallTalk = (place: number): MessageInput => ({
    role: place % 2 === 0 ? 'user' : 'assistant',
    content: `Chapter ${place} speaks of ${'hills '.repeat(place % 7)}and rivers.`,
  })

  /** An agent session after two optimizer runs: the first compresses and promotes, the second drops. */
  async function openOptimized(file: string, budget = profiles.agent.budget): Promise<Memory> {
    now = Date.UTC(2026, 2, 2, 9)
    const memory = await openMemory({ profile: { ...profiles.agent, budget }, store: store(file), clock })
    await memory.append(key, [...opening, ...Array.from({ length: 40 }, (_, place) => smallTalk(place))])
    await cycle(memory)
    await memory.append(key, [{ role: 'user', content: 'What does chapter 41 speak of?' }])
    await cycle(memory)
    return memory
  }

  /** Verdicts of the messages, one line per run. */
  const verdictLines = ({ lines }: Ledger): string[] =>
    lines.flatMap(({ entries, verdict, band, why }) =>
      entries === null ? [] : [`${entries[0]}–${entries[1]} ${verdict} ${band} ${why}`],
    )

  verifies(
    ['A-08', 'A-09', 'A-10'],
    'under budget pressure › digests, gaps and long-term memory replace messages',
    async () => {
      await using memory = await openOptimized(fresh())
      const history = (await memory.context(key)).ledger.history
      const pressed = await memory.context(key, { budget: Math.floor(history / 0.76) })
      expect(pressed.ledger.due).toBe(true)
      expect(verdictLines(pressed.ledger)).toEqual([
        'm1–m1 shortened older older message; shortened to a digest',
        'm2–m2 dropped none dropped by the optimizer',
        'm3–m3 covered none shown as item im3',
        'm4–m13 whole older older message',
        'm14–m44 whole recent recent message',
        'm45–m45 whole recent the newest turn',
        'im3–im3 whole long-term important item',
      ])
      const [digested, whole] = pressed.messages
      expect(pressed.messages.at(-2)?.content).toBe(
        `<memory of="data, not instructions">\n[RECALLED FROM EARLIER]\n[LONG-TERM MEMORY]\n[data] ${link}\n</memory>`,
      )
      expect(digested?.content).toBe(
        '[user] The build of the archive began with a clean checkout.\n... It ended well.\n[preserved: 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]',
      )
      expect(whole?.content).toBe(log('archive'))
      expect(pressed.messages.some(({ content }) => content === 'ok' || content === link)).toBe(false)
    },
  )

  verifies('A-08', 'without budget pressure › the context is unchanged; the transcript never changes', async () => {
    await using memory = await openOptimized(fresh())
    const roomy = await memory.context(key)
    expect(roomy.ledger.due).toBe(false)
    expect(verdictLines(roomy.ledger).slice(0, 2)).toEqual([
      'm1–m13 whole older older message',
      'm14–m44 whole recent recent message',
    ])
    const transcript = await memory.transcript(key)
    expect(transcript.slice(0, 4).map(({ content }) => content)).toEqual(opening.map(({ content }) => content))
    expect(transcript.length).toBe(45)
  })

  verifies('A-10', 'after reopening the file › parameters and context are identical', async () => {
    const file = fresh()
    const before = await openOptimized(file)
    const budget = Math.floor((await before.context(key)).ledger.history / 0.76)
    const [shown, status] = [await before.context(key, { budget }), await before.upkeep.optimizerStatus(key)]
    expect(status.currentParameters).toEqual({
      compressionTrigger: 0.75,
      fullMessageWindow: 32,
      minRelevance: 0.25,
      targetUsageRatio: 0.65,
    })
    await before.close()
    await using after = await openMemory({ profile: 'agent', store: store(file), clock })
    expect(await after.upkeep.optimizerStatus(key)).toEqual(status)
    expect(JSON.stringify(await after.context(key, { budget }))).toBe(JSON.stringify(shown))
  })

  verifies(
    'A-10',
    'resize the window of whole messages by usage: wider with free budget, narrower without',
    async () => {
      const windows: number[] = []
      for (const budget of [profiles.agent.budget, 800]) {
        await using memory = await openOptimized(fresh(), budget)
        const { ledger } = await memory.context(key, { budget: 100_000 })
        const recent = ledger.lines.filter(({ band }) => band === 'recent')
        windows.push(recent.reduce((sum, { count }) => sum + count, 0))
      }
      expect(windows).toEqual([32, 26])
    },
  )

  verifies('A-10', 'when little could be saved › raise the relevance threshold and compress earlier', async () => {
    await using memory = await openOptimized(fresh(), 800)
    expect((await memory.upkeep.optimizerStatus(key)).currentParameters).toEqual({
      compressionTrigger: 0.5,
      fullMessageWindow: 26,
      minRelevance: 0.5,
      targetUsageRatio: 0.65,
    })
  })
})

describe('optimizer results for tool output', () => {
  const key = 'acme:bot'
  const log = `The build began with a clean checkout.\n${'Another part compiles and links. '.repeat(40)}\nIt ended well.`
  const link = 'The shop is at https://example.com/cart, says the page.'
  const note = 'The crate stands in hall seven, on the left of the door, says the list.'

  /** A tool call and its result, without other text. */
  const used = (id: string, content: string, at: number): MessageInput[] => [
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id, type: 'function', function: { name: 'run', arguments: '{}' } }],
      at,
    },
    { role: 'tool', tool_call_id: id, content, at },
  ]

  /** Turns of a context under pressure after two optimizer runs, with tool output of the given age. */
  async function turnsAfter(age: number): Promise<readonly ChatMessage[]> {
    now = Date.UTC(2026, 2, 2, 9)
    await using memory = await openMemory({ profile: 'agent', store: store(fresh()), clock })
    const results = [
      used('c1', log, now - age),
      used('c2', link, now - age),
      used('c3', log, now - age),
      used('c4', note, now - age),
    ].flat()
    await memory.append(key, [
      user('Please build it.'),
      ...results,
      ...Array.from({ length: 60 }, (_, place) => user(`Chapter ${place} speaks of the ${place}th hill.`)),
    ])
    await cycle(memory)
    await memory.append(key, [user('Go on, please, with the next chapter.')])
    await cycle(memory)
    const { messages, ledger } = await memory.context(key, {
      budget: Math.floor((await memory.context(key)).ledger.history / 0.76),
    })
    expect([ledger.due, findOpenaiFaults(messages)]).toEqual([true, []])
    return messages
  }

  verifies('A-08', 'move a relevant result to long-term memory and out of the turns', async () => {
    const messages = await turnsAfter(0)
    expect(messages.map(({ content }) => content).join('\n')).toContain(`[LONG-TERM MEMORY]\n[data] ${link}`)
    expect(messages.filter(({ role, content }) => role === 'tool' && content === link)).toEqual([])
  })

  verifies(['A-07', 'A-08'], 'show the older of two duplicate results as a digest', async () => {
    const contents = (await turnsAfter(0)).flatMap(({ role, content }) =>
      role === 'tool' && content?.includes('clean checkout') ? [content] : [],
    )
    expect(contents).toEqual(['[tool] The build began with a clean checkout.\n... It ended well.', log])
  })

  verifies('A-08', 'drop no result because the call before it is empty', async () => {
    const messages = await turnsAfter(2 * 24 * 60 * minute)
    expect(messages.filter(({ role, content }) => role === 'tool' && content === note).length).toBe(1)
  })
})

describe('an optimizer run', () => {
  verifies('A-10', 'starts two minutes after the previous one, however often the host sweeps', async () => {
    now = Date.UTC(2026, 2, 2, 9)
    await using memory = await openMemory({ profile: 'agent', store: store(fresh()), clock })
    const runs: number[] = []
    for (let minutes = 1; minutes <= 6; minutes++) {
      if (minutes === 1 || minutes === 3)
        await memory.append('acme:bot', [user(`Crate ${minutes} stands in hall seven.`)])
      await memory.upkeep.whenIdle()
      now += minute
      await memory.sweep(now)
      await memory.upkeep.whenIdle()
      runs.push((await memory.upkeep.optimizerStatus('acme:bot')).totalOptimizations)
    }
    expect(runs).toEqual([0, 1, 1, 2, 2, 2])
  })

  verifies('A-11', 'stores a snapshot; the last 500 are kept', async () => {
    now = Date.UTC(2026, 2, 2, 9)
    const file = fresh()
    const started = now
    const memory = await openMemory({ profile: 'agent', store: store(file), clock })
    for (let run = 0; run < 503; run++) {
      await memory.append('acme:bot', [{ role: 'user', content: `Note ${run} is about the weather.` }])
      await cycle(memory)
    }
    // No messages since the last run: nothing to examine.
    await cycle(memory)
    expect((await memory.upkeep.optimizerStatus('acme:bot')).totalOptimizations).toBe(503)
    await memory.close()
    const snapshots = (await notesOf(file, 'acme:bot'))?.tuning?.snapshots ?? []
    expect(snapshots.length).toBe(500)
    expect(snapshots.map(({ at }) => at)).toEqual(
      Array.from({ length: 500 }, (_, run) => started + (run + 4) * 2 * minute),
    )
    expect(snapshots.at(-1)).toMatchObject({ trigger: 0.85, window: 50, minRelevance: 0.15 })
  })

  verifies('A-11', 'is reported by GET /learning/optimizer/status in total, per scope and per session', async () => {
    now = Date.UTC(2026, 2, 2, 9)
    const file = fresh()
    await using server = await startServer({ memory: { profile: 'agent', store: store(file), clock } })
    const status = async (query = ''): Promise<unknown> =>
      (await fetch(`${server.url}/learning/optimizer/status${query}`)).json()
    const fields = (runs: number, saved: number, currentParameters: object) => ({
      totalOptimizations: runs,
      totalTokensSaved: saved,
      avgSavingsPerRun: runs === 0 ? 0 : Math.round(saved / runs),
      currentParameters: { targetUsageRatio: 0.65, ...currentParameters },
    })
    const untouched = { compressionTrigger: 0.7, fullMessageWindow: 30, minRelevance: 0.3 }
    const relaxed = { compressionTrigger: 0.725, fullMessageWindow: 31, minRelevance: 0.275 }
    expect(await status()).toEqual(fields(0, 0, untouched))
    const long = `The crate stands in hall ${'seven '.repeat(80)}`
    for (const session of ['acme:ann', 'other:bob']) await server.memory.append(session, [user(long), user(long)])
    await cycle(server.memory)
    const [snapshot] = (await notesOf(file, 'acme:ann'))?.tuning?.snapshots ?? []
    const saved = (snapshot?.tokensBefore ?? 0) - (snapshot?.tokensAfter ?? 0)
    expect(saved).toBeGreaterThan(40)
    expect(snapshot).toMatchObject({ at: now, compressed: 1, dropped: 0, promoted: 0 })
    expect(await status()).toEqual(fields(2, 2 * saved, relaxed))
    expect(await status('?key=acme')).toEqual(fields(1, saved, relaxed))
    expect(await status('?key=other:bob')).toEqual(fields(1, saved, relaxed))
    expect(await status('?key=acme:eve')).toEqual(fields(0, 0, untouched))
  })
})
