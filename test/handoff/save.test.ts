import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, day, describeOutcome, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`
const contents = async (
  memory: { transcript(key: string): Promise<readonly { content: string }[]> },
  session = first,
) => (await memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)

describe('save', () => {
  verifies(
    ['H-01', 'H-04'],
    'with the documented parameters writes the five entity types and six relationship types',
    async () => {
      await using harness = await createHarness()
      const { graph, handoff, time } = harness
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
      const { entities } = await graph.queryEntities(workspace, { session: id })
      const ofType = (type: string) =>
        entities
          .filter((entity) => entity.type === type)
          .map(({ id: name, properties }) => ({ id: name, ...properties }))
      expect(ofType('session')).toMatchObject([
        {
          id,
          created_at: '2026-11-15T12:00:01.000Z',
          workspace_id: workspace,
          token_count: 1_234,
          message_count: 2,
          continued_from: first,
        },
      ])
      expect(ofType('session')[0]).toHaveProperty('summary', expect.stringContaining('Fix it.'))
      expect(ofType('conversation')).toMatchObject([{ id: `conversation_${id}`, token_count: 1_234 }])
      expect(ofType('context_item')).toContainEqual(
        expect.objectContaining({ category: 'task', content: 'Deploy on Monday.', importance: 9 }),
      )
      expect(ofType('context_item')).toContainEqual(
        expect.objectContaining({ category: 'code', content: expect.stringContaining('const limit = 72') }),
      )
      for (const item of ofType('context_item')) expect(item.id).toMatch(new RegExp(`^context_${id}_`))
      expect(ofType('file_reference')).toMatchObject([
        {
          id: expect.stringMatching(/^file_[0-9a-f]{32}$/),
          path: 'src/a.ts',
          hash: 'abc',
          last_modified: '2026-11-01T00:00:00.000Z',
        },
      ])
      expect(ofType('workspace_state')).toEqual([
        {
          id: `workspace_state_${id}`,
          workspace_id: workspace,
          active_project: 'portal',
          enabled_mcps: ['github'],
          settings: { theme: 'dark' },
        },
      ])
      const { relationships } = await graph.queryRelationships(workspace, { session: id })
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

  const formats: readonly (readonly [what: string, text: string, turns: readonly string[]])[] = [
    ['speakers at line starts', 'User: Hello\nthere\nAssistant: Hi!', ['user Hello\nthere', 'assistant Hi!']],
    ['bold speakers Human and AI', '**Human:** One\n\n**AI:** Two', ['user One', 'assistant Two']],
    ['speakers as headings', '## User\nOne\n## Assistant\nTwo', ['user One', 'assistant Two']],
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
      'no speakers',
      'We spoke of the login page. User names may hold dots.',
      ['user We spoke of the login page. User names may hold dots.'],
    ],
    ['text before the first speaker', 'Notes of Monday\nUser: One', ['user Notes of Monday', 'user One']],
    [
      'a speaker name inside code',
      'User: Look:\n```\nAssistant: no\n```\nAssistant: Yes',
      ['user Look:\n```\nAssistant: no\n```', 'assistant Yes'],
    ],
    ['JSON that is not a conversation', '[1, 2]', ['user [1, 2]']],
  ]
  for (const [what, text, turns] of formats)
    verifies('H-04', `with a text of ${what} parses the turns`, async () => {
      await using harness = await createHarness()
      await harness.handoff.save(workspace, { conversationContext: text })
      expect(
        (await harness.memory.transcript(`${workspace}:${first}`)).map(({ role, content }) => `${role} ${content}`),
      ).toEqual(turns)
    })

  verifies(['H-04', 'H-08'], 'of a known session stores only new messages and writes only changed rows', async () => {
    await using harness = await createHarness()
    const { handoff, memory, graph, time } = harness
    await handoff.save(workspace, { messages: codingConversation })
    const before = (await graph.queryEntities(workspace, { types: ['context_item'] })).entities
    time.now += 1_000
    const again = await handoff.save(workspace, { sessionId: first, messages: codingConversation })
    expect([again.added, again.messages, again.savedAt]).toEqual([0, 4, '2026-11-15T12:00:00.000Z'])
    expect((await graph.queryEntities(workspace)).entities.map(({ updatedAt }) => updatedAt)).toEqual(
      new Array(7).fill(noon),
    )
    // The client sends the newest part again with one new message.
    const more = await handoff.save(workspace, {
      sessionId: first,
      messages: [...codingConversation.slice(2), { role: 'user', content: 'Call it encodeSecret from now on.' }],
    })
    expect([more.added, more.messages, more.savedAt]).toEqual([1, 5, '2026-11-15T12:00:01.000Z'])
    expect(await contents(memory)).toEqual([
      ...codingConversation.map(({ content }) => content),
      'Call it encodeSecret from now on.',
    ])
    const code = before.find(({ properties }) => properties.category === 'code')
    expect((await graph.getEntity(workspace, code?.id ?? ''))?.createdAt).toBe(noon)
  })

  verifies(
    'H-04',
    'with a session or predecessor of another workspace throws the same error as for an unknown one',
    async () => {
      await using harness = await createHarness()
      const { handoff } = harness
      await handoff.save('other', { messages: codingConversation })
      const notFoundMessage = (id: string): string =>
        `bad-option: There is no session "${id}" in this workspace. list_sessions tells which there are.`
      expect(await describeOutcome(handoff.save(workspace, { sessionId: first, messages: codingConversation }))).toBe(
        notFoundMessage(first),
      )
      expect(
        await describeOutcome(handoff.save(workspace, { sessionId: 'session_0', messages: codingConversation })),
      ).toBe(notFoundMessage('session_0'))
      expect(await describeOutcome(handoff.save(workspace, { messages: codingConversation, continues: first }))).toBe(
        notFoundMessage(first),
      )
      expect((await handoff.list(workspace)).total).toBe(0)
    },
  )

  it('with no messages, an unknown category or an invalid importance throws', async () => {
    await using harness = await createHarness()
    expect(await describeOutcome(harness.handoff.save(workspace, {}))).toContain('There is nothing to save.')
    expect(await describeOutcome(harness.handoff.save(workspace, { conversationContext: '  ' }))).toContain(
      'There is nothing to save.',
    )
    const items = (category: string, importance = 5) => ({
      conversationContext: 'x',
      contextItems: [{ category: category as 'task', content: 'x', importance }],
    })
    expect(await describeOutcome(harness.handoff.save(workspace, items('idea')))).toBe(
      'bad-option: contextItems.category is "idea"; it must be one of code, file, data, concept, task.',
    )
    expect(await describeOutcome(harness.handoff.save(workspace, items('task', 11)))).toBe(
      'bad-option: contextItems.importance is 11; it must be a number from 1 to 10.',
    )
  })

  it('masks secrets in messages, items, workspace state and title', async () => {
    await using harness = await createHarness()
    const secret = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
    await harness.handoff.save(workspace, {
      messages: [{ role: 'user', content: `My key is ${secret}.` }],
      contextItems: [{ category: 'data', content: `key: ${secret}` }],
      workspaceState: { settings: { apiKey: secret } },
      title: `About ${secret}`,
    })
    const rows = await harness.graph.queryEntities(workspace)
    expect(JSON.stringify([rows, await harness.memory.transcript(`${workspace}:${first}`)])).not.toContain(secret)
    // Sent again, it is recognised as the same conversation.
    expect(
      (
        await harness.handoff.save(workspace, {
          sessionId: first,
          messages: [{ role: 'user', content: `My key is ${secret}.` }],
        })
      ).added,
    ).toBe(0)
  })

  verifies('H-08', 'creates summaries at three levels of detail, or none if disabled', async () => {
    const long = Array.from({ length: 120 }, (_, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content: `In step ${at} we moved module${at} to service-${at % 7}, because request ${1_000 + at} took ${at * 3} ms on host${at}.example.org.`,
    }))
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: long })
    const summaries = (await harness.graph.getEntity(workspace, `conversation_${first}`))?.properties
      .context as string[]
    const words = summaries.map((summary) => summary.split(/\s+/).length)
    expect([summaries.length, (words[0] ?? 0) <= 40, (words[1] ?? 0) <= 160, (words[2] ?? 0) <= 600]).toEqual([
      3,
      true,
      true,
      true,
    ])
    expect((words[0] ?? 0) < (words[1] ?? 0) && (words[1] ?? 0) < (words[2] ?? 0)).toBe(true)
    await using disabled = await createHarness({ settings: { summarise: false } })
    expect((await disabled.handoff.save(workspace, { messages: long })).summary).toBe('')
    expect((await disabled.graph.getEntity(workspace, `conversation_${first}`))?.properties.context).toEqual([])
  })

  verifies('H-08', 'reports progress, can be aborted and continues on the next save', async () => {
    await using harness = await createHarness()
    const steps: string[] = []
    const abort = new AbortController()
    const context = {
      signal: abort.signal,
      progress: (done: number, total: number) => void (steps.push(`${done}/${total}`) === 2 && abort.abort()),
    }
    expect(await describeOutcome(harness.handoff.save(workspace, { messages: codingConversation }, context))).toContain(
      'aborted: Saving was stopped by the caller.',
    )
    expect(steps).toEqual(['1/5', '2/5'])
    // The stored messages are a draft session, which a save without an id continues.
    expect((await harness.handoff.list(workspace)).sessions).toMatchObject([
      { sessionId: first, messageCount: 4, unsaved: true },
    ])
    const saved = await harness.handoff.save(workspace, { messages: codingConversation })
    expect([saved.sessionId, saved.added, saved.messages, saved.items]).toEqual([first, 0, 4, 3])
    expect(
      (await harness.handoff.list(workspace)).sessions.map(({ sessionId, unsaved }) => [sessionId, unsaved]),
    ).toEqual([[first, undefined]])
  })

  verifies(
    'H-03',
    'with an embedder ranks items by similarity to the newest messages, and warns if it fails',
    async () => {
      // One direction for texts about invoices, another for all others.
      const embed = (texts: readonly string[]) =>
        Promise.resolve(texts.map((text) => Float32Array.from(/invoice/i.test(text) ? [1, 0] : [0, 1])))
      const task = (word: string) => ({ role: 'user' as const, content: `TODO: check the ${word} template by Monday.` })
      const messages = [
        task('invoice'),
        task('letter'),
        ...Array.from({ length: 6 }, () => ({ role: 'assistant' as const, content: 'The invoice comes next.' })),
      ]
      await using harness = await createHarness({ embedder: { name: 'by-word', embed } })
      await harness.handoff.save(workspace, { messages })
      const rows = (await harness.graph.queryEntities(workspace, { types: ['context_item'] })).entities.map(
        ({ properties }) => properties,
      )
      const factorsOf = (word: string) => rows.find(({ content }) => `${content}`.includes(`${word} template`))?.factors
      expect([factorsOf('invoice'), factorsOf('letter')]).toMatchObject([{ similarity: 1 }, { similarity: 0 }])
      await using failing = await createHarness({
        embedder: { name: 'gone', embed: () => Promise.reject(new Error('no answer')) },
      })
      expect((await failing.handoff.save(workspace, { messages })).warnings).toEqual([
        'items were not compared by meaning: no answer',
      ])
    },
  )

  verifies('H-17', 'links sessions named in the messages', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    harness.time.now += day
    const saved = await harness.handoff.save(workspace, {
      conversationContext: `User: As in ${first}, and in session_1 which is nowhere.`,
    })
    expect(saved.references).toEqual([first])
    const { relationships } = await harness.graph.queryRelationships(workspace, { types: ['SESSION_REFERENCES'] })
    expect(relationships).toMatchObject([{ from: saved.sessionId, to: first, properties: { found: 'named' } }])
  })

  it('of a session whose newest message was forgotten stores nothing again', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.memory.forget({ key: `${workspace}:${first}`, messageId: 'm4' })
    expect(await harness.handoff.save(workspace, { sessionId: first })).toMatchObject({ messages: 3, added: 0 })
  })

  it('with a forgotten message sent again stores it again', async () => {
    await using harness = await createHarness()
    const [question, answer] = codingConversation.slice(0, 2) as [MessageInput, MessageInput]
    await harness.handoff.save(workspace, { messages: [question] })
    await harness.handoff.save(workspace, { sessionId: first, messages: [question, answer] })
    await harness.memory.forget({ key: `${workspace}:${first}`, messageId: 'm2' })
    expect(await harness.handoff.save(workspace, { sessionId: first, messages: [question, answer] })).toMatchObject({
      messages: 2,
      added: 1,
    })
    expect((await harness.memory.transcript(`${workspace}:${first}`)).map(({ id }) => id)).toEqual(['m1', 'm3'])
  })

  verifies('H-05', 'accepts a draft session as predecessor, and rejects the session itself', async () => {
    await using harness = await createHarness()
    const { sessionId: draft } = await harness.handoff.append(workspace, { messages: codingConversation })
    expect(
      (await harness.handoff.save(workspace, { conversationContext: 'User: More.', continues: draft })).continues,
    ).toBe(draft)
    expect(await describeOutcome(harness.handoff.save(workspace, { sessionId: first, continues: first }))).toBe(
      `bad-option: continues is "${first}"; it must be another session than the one that is saved.`,
    )
  })

  verifies('H-06', 'with the id of another entity throws and leaves the entity unchanged', async () => {
    await using harness = await createHarness()
    await harness.graph.write(workspace, { entities: [{ type: 'person', id: 'ann', properties: { likes: 'tea' } }] })
    const taken = 'bad-option: "ann" is the id of another entity in this workspace. Choose another sessionId.'
    expect(
      await describeOutcome(harness.handoff.append(workspace, { sessionId: 'ann', messages: codingConversation })),
    ).toBe(taken)
    await harness.memory.append(`${workspace}:ann`, codingConversation)
    expect(await describeOutcome(harness.handoff.save(workspace, { sessionId: 'ann' }))).toBe(taken)
    expect(await harness.graph.getEntity(workspace, 'ann')).toMatchObject({
      type: 'person',
      properties: { likes: 'tea' },
    })
  })

  it('with an invalid token count throws', async () => {
    await using harness = await createHarness()
    for (const tokenCount of [-1, Number.NaN, 1e300])
      expect(
        await describeOutcome(harness.handoff.save(workspace, { messages: codingConversation, tokenCount })),
      ).toMatch(/^bad-option: tokenCount is .*; it must be a number of tokens/)
    expect((await harness.handoff.list(workspace)).total).toBe(0)
  })

  verifies('H-04', 'of a session that is deleted meanwhile throws, and the session stays deleted', async () => {
    let meanwhile = async (): Promise<void> => undefined
    const providers = {
      gather: async () => {
        await meanwhile()
        return { provided: [], degraded: [] }
      },
    }
    await using harness = await createHarness({ providers })
    await harness.handoff.save(workspace, { messages: codingConversation })
    meanwhile = () => harness.handoff.delete(workspace, first)
    expect(
      await describeOutcome(harness.handoff.save(workspace, { sessionId: first, conversationContext: 'User: More.' })),
    ).toBe(
      `erased: Session ${first} was deleted while it was being saved. Save it without a sessionId to begin a new one.`,
    )
    expect([
      (await harness.handoff.list(workspace)).total,
      (await harness.graph.queryEntities(workspace, { session: first })).total,
    ]).toEqual([0, 0])
    expect(await harness.memory.transcript(`${workspace}:${first}`)).toEqual([])
  })

  it('of a session with a forgotten message leaves no quote of it in the list', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.memory.forget({ key: `${workspace}:${first}`, messageId: 'm1' })
    const { sessions, total } = await harness.handoff.list(workspace)
    expect([total, sessions[0]?.sessionId, sessions[0]?.messageCount]).toEqual([1, first, 3])
    expect(JSON.stringify(await harness.graph.queryEntities(workspace))).not.toContain('E-4711')
  })
})
