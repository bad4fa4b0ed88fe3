import { describe, expect, it } from 'vitest'
import type { Incoming } from '../../src/domain/chat.ts'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, day, noon, stage } from './stage.ts'

const workspace = 'billing'
const first = `session_${noon}`
const contents = async (
  memory: { transcript(key: string): Promise<readonly { content: string }[]> },
  session = first,
) => (await memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)
const refused = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && `${error.code}: ${error.message}`,
  )

describe('saving a session', () => {
  verifies(
    ['H-01', 'H-04'],
    'writes the five entities and the six relationships with the documented parameters',
    async () => {
      await using at = await stage()
      const { graph, handoff, time } = at
      await handoff.save(workspace, { conversationContext: 'User: We begin.' })
      time.now += 1_000
      const saved = await handoff.save(workspace, {
        conversationContext: 'User: Fix it.\nAssistant: ```ts\nconst limit = 72\n```',
        tokenCount: 1_234,
        contextItems: [{ category: 'task', content: 'Deploy on Monday.', importance: 9 }],
        fileReferences: [{ path: 'src/a.ts', hash: 'abc', lastModified: '2026-11-01T00:00:00.000Z' }],
        workspaceState: { activeProject: 'portal', enabledMcps: ['github'], settings: { theme: 'dark' } },
        continues: first,
      })
      const id = `session_${noon + 1_000}`
      expect(saved).toMatchObject({
        sessionId: id,
        workspaceId: workspace,
        messages: 2,
        added: 2,
        tokenCount: 1_234,
        files: 1,
        continues: first,
        warnings: [],
      })
      const { entities } = await graph.entities(workspace, { session: id })
      const of = (type: string) =>
        entities
          .filter((entity) => entity.type === type)
          .map(({ id: name, properties }) => ({ id: name, ...properties }))
      expect(of('session')).toMatchObject([
        {
          id,
          created_at: '2026-11-15T12:00:01.000Z',
          workspace_id: workspace,
          token_count: 1_234,
          message_count: 2,
          continued_from: first,
        },
      ])
      expect(of('session')[0]).toHaveProperty('summary', expect.stringContaining('Fix it.'))
      expect(of('conversation')).toMatchObject([{ id: `conversation_${id}`, token_count: 1_234 }])
      expect(of('context_item')).toContainEqual(
        expect.objectContaining({ category: 'task', content: 'Deploy on Monday.', importance: 9 }),
      )
      expect(of('context_item')).toContainEqual(
        expect.objectContaining({ category: 'code', content: expect.stringContaining('const limit = 72') }),
      )
      for (const item of of('context_item')) expect(item.id).toMatch(new RegExp(`^context_${id}_`))
      expect(of('file_reference')).toMatchObject([
        {
          id: expect.stringMatching(/^file_[0-9a-f]{32}$/),
          path: 'src/a.ts',
          hash: 'abc',
          last_modified: '2026-11-01T00:00:00.000Z',
        },
      ])
      expect(of('workspace_state')).toEqual([
        {
          id: `workspace_state_${id}`,
          workspace_id: workspace,
          active_project: 'portal',
          enabled_mcps: ['github'],
          settings: { theme: 'dark' },
        },
      ])
      const { relationships } = await graph.relationships(workspace, { session: id })
      expect([...new Set(relationships.map(({ type }) => type))].sort()).toEqual([
        'CONVERSATION_REFERENCES_FILE',
        'CONVERSATION_REFERENCES_ITEM',
        'SESSION_CONTINUES',
        'SESSION_HAS_CONVERSATION',
        'SESSION_HAS_WORKSPACE_STATE',
        'SESSION_IN_WORKSPACE',
      ])
      expect(relationships.find(({ type }) => type === 'SESSION_CONTINUES')).toMatchObject({ from: id, to: first })
    },
  )

  const tellings: readonly (readonly [what: string, text: string, turns: readonly string[]])[] = [
    [
      'speakers at the beginning of lines',
      'User: Hello\nthere\nAssistant: Hi!',
      ['user Hello\nthere', 'assistant Hi!'],
    ],
    ['Human and AI, in bold', '**Human:** One\n\n**AI:** Two', ['user One', 'assistant Two']],
    ['headings', '## User\nOne\n## Assistant\nTwo', ['user One', 'assistant Two']],
    [
      'a JSON list of messages',
      '[{"role":"user","content":"One"},{"role":"assistant","content":"Two"}]',
      ['user One', 'assistant Two'],
    ],
    [
      'JSON Lines of messages',
      '{"role":"user","content":"One"}\n{"role":"assistant","content":"Two"}\n',
      ['user One', 'assistant Two'],
    ],
    ['an object with messages', '{"messages":[{"role":"user","content":"One"}]}', ['user One']],
    [
      'no speakers at all',
      'We spoke of the login page. User names may hold dots.',
      ['user We spoke of the login page. User names may hold dots.'],
    ],
    ['something before the first speaker', 'Notes of Monday\nUser: One', ['user Notes of Monday', 'user One']],
    [
      'a speaker inside code, which is code',
      'User: Look:\n```\nAssistant: no\n```\nAssistant: Yes',
      ['user Look:\n```\nAssistant: no\n```', 'assistant Yes'],
    ],
    ['JSON that is no conversation', '[1, 2]', ['user [1, 2]']],
  ]
  for (const [what, text, turns] of tellings)
    verifies('H-04', `takes a conversation as text: ${what}`, async () => {
      await using at = await stage()
      await at.handoff.save(workspace, { conversationContext: text })
      expect(
        (await at.memory.transcript(`${workspace}:${first}`)).map(({ role, content }) => `${role} ${content}`),
      ).toEqual(turns)
    })

  verifies(
    ['H-04', 'H-08'],
    'of a session that goes on stores only what is new, and writes only rows that changed',
    async () => {
      await using at = await stage()
      const { handoff, memory, graph, time } = at
      await handoff.save(workspace, { messages: coding })
      const before = (await graph.entities(workspace, { types: ['context_item'] })).entities
      time.now += 1_000
      const again = await handoff.save(workspace, { sessionId: first, messages: coding })
      expect([again.added, again.messages, again.savedAt]).toEqual([0, 4, '2026-11-15T12:00:00.000Z'])
      expect((await graph.entities(workspace)).entities.map(({ updatedAt }) => updatedAt)).toEqual(
        new Array(7).fill(noon),
      )
      // The client tells its newest part again, and goes on.
      const more = await handoff.save(workspace, {
        sessionId: first,
        messages: [...coding.slice(2), { role: 'user', content: 'Call it encodeSecret from now on.' }],
      })
      expect([more.added, more.messages, more.savedAt]).toEqual([1, 5, '2026-11-15T12:00:01.000Z'])
      expect(await contents(memory)).toEqual([
        ...coding.map(({ content }) => content),
        'Call it encodeSecret from now on.',
      ])
      const code = before.find(({ properties }) => properties.category === 'code')
      expect((await graph.entity(workspace, code?.id ?? ''))?.createdAt).toBe(noon)
    },
  )

  verifies(
    'H-04',
    'refuses a session and a predecessor that are not in the workspace, in the same words wherever they are',
    async () => {
      await using at = await stage()
      const { handoff } = at
      await handoff.save('other', { messages: coding })
      const words = (id: string): string =>
        `bad-option: There is no session "${id}" in this workspace. list_sessions tells which there are.`
      expect(await refused(handoff.save(workspace, { sessionId: first, messages: coding }))).toBe(words(first))
      expect(await refused(handoff.save(workspace, { sessionId: 'session_0', messages: coding }))).toBe(
        words('session_0'),
      )
      expect(await refused(handoff.save(workspace, { messages: coding, continues: first }))).toBe(words(first))
      expect((await handoff.list(workspace)).total).toBe(0)
    },
  )

  it('refuses what is nothing, too much or none of the categories', async () => {
    await using at = await stage()
    expect(await refused(at.handoff.save(workspace, {}))).toContain('There is nothing to save.')
    expect(await refused(at.handoff.save(workspace, { conversationContext: '  ' }))).toContain(
      'There is nothing to save.',
    )
    const items = (category: string, importance = 5) => ({
      conversationContext: 'x',
      contextItems: [{ category: category as 'task', content: 'x', importance }],
    })
    expect(await refused(at.handoff.save(workspace, items('idea')))).toBe(
      'bad-option: contextItems.category is "idea"; it must be one of code, file, data, concept, task.',
    )
    expect(await refused(at.handoff.save(workspace, items('task', 11)))).toBe(
      'bad-option: contextItems.importance is 11; it must be a number from 1 to 10.',
    )
  })

  it('keeps no secret, whichever way it comes in', async () => {
    await using at = await stage()
    const secret = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
    await at.handoff.save(workspace, {
      messages: [{ role: 'user', content: `My key is ${secret}.` }],
      contextItems: [{ category: 'data', content: `key: ${secret}` }],
      workspaceState: { settings: { apiKey: secret } },
      title: `About ${secret}`,
    })
    const rows = await at.graph.entities(workspace)
    expect(JSON.stringify([rows, await at.memory.transcript(`${workspace}:${first}`)])).not.toContain(secret)
    // Told again, it is the same conversation.
    expect(
      (
        await at.handoff.save(workspace, {
          sessionId: first,
          messages: [{ role: 'user', content: `My key is ${secret}.` }],
        })
      ).added,
    ).toBe(0)
  })

  verifies('H-08', 'sums up at three levels of detail, or not at all', async () => {
    const long = Array.from({ length: 120 }, (_, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content: `In step ${at} we moved module${at} to service-${at % 7}, because request ${1_000 + at} took ${at * 3} ms on host${at}.example.org.`,
    }))
    await using at = await stage()
    await at.handoff.save(workspace, { messages: long })
    const levels = (await at.graph.entity(workspace, `conversation_${first}`))?.properties.context as string[]
    const words = levels.map((level) => level.split(/\s+/).length)
    expect([levels.length, (words[0] ?? 0) <= 40, (words[1] ?? 0) <= 160, (words[2] ?? 0) <= 600]).toEqual([
      3,
      true,
      true,
      true,
    ])
    expect((words[0] ?? 0) < (words[1] ?? 0) && (words[1] ?? 0) < (words[2] ?? 0)).toBe(true)
    await using silent = await stage({ settings: { summarise: false } })
    expect((await silent.handoff.save(workspace, { messages: long })).summary).toBe('')
    expect((await silent.graph.entity(workspace, `conversation_${first}`))?.properties.context).toEqual([])
  })

  verifies('H-08', 'tells how far it has come, and can be stopped and taken up again', async () => {
    await using at = await stage()
    const told: string[] = []
    const stop = new AbortController()
    const attending = {
      signal: stop.signal,
      progress: (done: number, total: number) => void (told.push(`${done}/${total}`) === 2 && stop.abort()),
    }
    expect(await refused(at.handoff.save(workspace, { messages: coding }, attending))).toContain(
      'aborted: Saving was stopped by the caller.',
    )
    expect(told).toEqual(['1/5', '2/5', '3/5'])
    // What was stored is known, and whoever tells it again without an id goes on with it.
    expect((await at.handoff.list(workspace)).sessions).toMatchObject([
      { sessionId: first, messageCount: 4, unsaved: true },
    ])
    const saved = await at.handoff.save(workspace, { messages: coding })
    expect([saved.sessionId, saved.added, saved.messages, saved.items]).toEqual([first, 0, 4, 3])
    expect((await at.handoff.list(workspace)).sessions.map(({ sessionId, unsaved }) => [sessionId, unsaved])).toEqual([
      [first, undefined],
    ])
  })

  verifies(
    'H-03',
    'weighs items by how near they are to what the talk is about now, and does without if nobody can tell',
    async () => {
      // One direction for invoices, one for everything else.
      const embed = (texts: readonly string[]) =>
        Promise.resolve(texts.map((text) => Float32Array.from(/invoice/i.test(text) ? [1, 0] : [0, 1])))
      const talk = (word: string) => ({ role: 'user' as const, content: `TODO: check the ${word} template by Monday.` })
      const messages = [
        talk('invoice'),
        talk('letter'),
        ...Array.from({ length: 6 }, () => ({ role: 'assistant' as const, content: 'The invoice comes next.' })),
      ]
      await using at = await stage({ embedder: { name: 'by-word', embed } })
      await at.handoff.save(workspace, { messages })
      const rows = (await at.graph.entities(workspace, { types: ['context_item'] })).entities.map(
        ({ properties }) => properties,
      )
      const near = (word: string) => rows.find(({ content }) => `${content}`.includes(`${word} template`))?.factors
      expect([near('invoice'), near('letter')]).toMatchObject([{ similarity: 1 }, { similarity: 0 }])
      await using without = await stage({
        embedder: { name: 'gone', embed: () => Promise.reject(new Error('no answer')) },
      })
      expect((await without.handoff.save(workspace, { messages })).warnings).toEqual([
        'items were not compared by meaning: no answer',
      ])
    },
  )

  verifies('H-17', 'links other sessions that are named in what was said', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    at.time.now += day
    const saved = await at.handoff.save(workspace, {
      conversationContext: `User: As in ${first}, and in session_1 which is nowhere.`,
    })
    expect(saved.references).toEqual([first])
    const { relationships } = await at.graph.relationships(workspace, { types: ['SESSION_REFERENCES'] })
    expect(relationships).toMatchObject([{ from: saved.sessionId, to: first, properties: { found: 'named' } }])
  })

  it('whose newest message was forgotten can be saved again', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    await at.memory.forget({ key: `${workspace}:${first}`, messageId: 'm4' })
    expect(await at.handoff.save(workspace, { sessionId: first })).toMatchObject({ messages: 3, added: 0 })
  })

  it('takes what was forgotten when it is said again', async () => {
    await using at = await stage()
    const [question, answer] = coding.slice(0, 2) as [Incoming, Incoming]
    await at.handoff.save(workspace, { messages: [question] })
    await at.handoff.save(workspace, { sessionId: first, messages: [question, answer] })
    await at.memory.forget({ key: `${workspace}:${first}`, messageId: 'm2' })
    expect(await at.handoff.save(workspace, { sessionId: first, messages: [question, answer] })).toMatchObject({
      messages: 2,
      added: 1,
    })
    expect((await at.memory.transcript(`${workspace}:${first}`)).map(({ id }) => id)).toEqual(['m1', 'm3'])
  })

  verifies('H-05', 'goes on from one that was only added to, and never from itself', async () => {
    await using at = await stage()
    const { sessionId: talk } = await at.handoff.append(workspace, { messages: coding })
    expect((await at.handoff.save(workspace, { conversationContext: 'User: More.', continues: talk })).continues).toBe(
      talk,
    )
    expect(await refused(at.handoff.save(workspace, { sessionId: first, continues: first }))).toBe(
      `bad-option: continues is "${first}"; it must be another session than the one that is saved.`,
    )
  })

  verifies('H-06', 'never takes the place of something else in the graph that has its id', async () => {
    await using at = await stage()
    await at.graph.write(workspace, { entities: [{ type: 'person', id: 'ann', properties: { likes: 'tea' } }] })
    const taken = 'bad-option: "ann" is the id of something else in this workspace. Choose another sessionId.'
    expect(await refused(at.handoff.append(workspace, { sessionId: 'ann', messages: coding }))).toBe(taken)
    await at.memory.append(`${workspace}:ann`, coding)
    expect(await refused(at.handoff.save(workspace, { sessionId: 'ann' }))).toBe(taken)
    expect(await at.graph.entity(workspace, 'ann')).toMatchObject({ type: 'person', properties: { likes: 'tea' } })
  })

  it('believes no count of tokens that nobody could have counted', async () => {
    await using at = await stage()
    for (const tokenCount of [-1, Number.NaN, 1e300])
      expect(await refused(at.handoff.save(workspace, { messages: coding, tokenCount }))).toMatch(
        /^bad-option: tokenCount is .*; it must be a number of tokens/,
      )
    expect((await at.handoff.list(workspace)).total).toBe(0)
  })

  verifies('H-04', 'that is deleted meanwhile stays deleted', async () => {
    let meanwhile = async (): Promise<void> => undefined
    const providers = {
      gather: async () => {
        await meanwhile()
        return { provided: [], degraded: [] }
      },
    }
    await using at = await stage({ providers })
    await at.handoff.save(workspace, { messages: coding })
    meanwhile = () => at.handoff.delete(workspace, first)
    expect(await refused(at.handoff.save(workspace, { sessionId: first, conversationContext: 'User: More.' }))).toBe(
      `erased: Session ${first} was deleted while it was being saved. Save it without a sessionId to begin a new one.`,
    )
    expect([
      (await at.handoff.list(workspace)).total,
      (await at.graph.entities(workspace, { session: first })).total,
    ]).toEqual([0, 0])
    expect(await at.memory.transcript(`${workspace}:${first}`)).toEqual([])
  })

  it('of which a message is forgotten lists it without what was quoted', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    await at.memory.forget({ key: `${workspace}:${first}`, messageId: 'm1' })
    const { sessions, total } = await at.handoff.list(workspace)
    expect([total, sessions[0]?.sessionId, sessions[0]?.messageCount]).toEqual([1, first, 3])
    expect(JSON.stringify(await at.graph.entities(workspace))).not.toContain('E-4711')
  })
})
