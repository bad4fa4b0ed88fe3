import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import { FileAccess } from '../../src/mcp/files/fileAccess.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { verifies } from '../requirements/verifies.ts'
import '../seeded.ts'
import { codingConversation, createHarness, describeOutcome, type HandoffHarness, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

/** Creates a folder `src` that clients may read. */
function createFiles(folder: string, time: { now: number }) {
  mkdirSync(join(folder, 'src'))
  const write = (name: string, text: string): void => writeFileSync(join(folder, 'src', name), text)
  const files = new FileAccess({
    allow: [join(folder, 'src')],
    users: {},
    write: false,
    audit: new AuditLog(join(folder, 'audit.jsonl')),
    clock: () => time.now,
  })
  return { files, write, path: (name: string): string => join(folder, 'src', name) }
}

describe('restore', () => {
  verifies(
    ['H-04', 'H-05'],
    'without an id restores the most recent session of the workspace and links the new one to it',
    async () => {
      await using harness = await createHarness()
      const { handoff, time, graph } = harness
      await handoff.save(workspace, { conversationContext: 'User: The older one.' })
      time.now += 1_000
      const newer = await handoff.save(workspace, {
        messages: codingConversation,
        workspaceState: { activeProject: 'portal', enabledMcps: ['github'], settings: { tabs: 2 } },
      })
      time.now += 1_000
      await handoff.save('other', { conversationContext: 'User: Not mine.' })
      time.now += 1_000
      const restored = await handoff.restore(workspace)
      expect(restored).toMatchObject({
        continues: newer.sessionId,
        sessionId: `session_${noon + 3_000}`,
        budget: 8_000,
        workspaceState: { activeProject: 'portal', enabledMcps: ['github'], settings: { tabs: 2 } },
        compressed: 'none',
        warnings: [],
      })
      for (const { content } of codingConversation) expect(restored.context).toContain(content)
      expect(restored.context).not.toContain('Not mine')
      const { relationships } = await graph.queryRelationships(workspace, { types: ['SESSION_CONTINUES'] })
      expect(relationships).toMatchObject([{ from: restored.sessionId, to: newer.sessionId }])
      // The new chat is saved under its own id and can be restored in turn.
      await handoff.save(workspace, {
        sessionId: restored.sessionId,
        conversationContext: 'User: And now the logout page.',
      })
      const next = await handoff.restore(workspace)
      expect([next.continues, next.earlier.map(({ session }) => session)]).toEqual([
        restored.sessionId,
        [newer.sessionId],
      ])
    },
  )

  verifies('H-05', 'of a session without messages restores its predecessor', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    const once = await harness.handoff.restore(workspace)
    const twice = await harness.handoff.restore(workspace)
    const byId = await harness.handoff.restore(workspace, { sessionId: once.sessionId })
    expect([once.continues, twice.continues, byId.continues]).toEqual([first, first, first])
    expect((await harness.handoff.list(workspace)).total).toBe(1)
  })

  verifies(['H-04', 'H-09'], 'with an id of another workspace throws the same error as for an unknown id', async () => {
    await using harness = await createHarness()
    const { handoff } = harness
    await handoff.save('other', { messages: codingConversation })
    const notFoundMessage = (id: string): string =>
      `bad-option: There is no session "${id}" in this workspace. list_sessions tells which there are.`
    for (const id of [first, 'session_1'])
      for (const work of [
        () => handoff.restore(workspace, { sessionId: id }),
        () => handoff.get(workspace, id),
        () => handoff.delete(workspace, id),
        () => handoff.getAnalytics(workspace, id),
        () => handoff.mark(workspace, id, { text: 'x' }),
        () => handoff.check(workspace, { sessionId: id }),
      ])
        expect(await describeOutcome(work())).toBe(notFoundMessage(id))
    expect(await describeOutcome(handoff.restore(workspace))).toBe(
      'bad-option: No session was saved in this workspace yet. Save one with save_session, or name another workspace.',
    )
    expect((await handoff.get('other', first)).messageCount).toBe(4)
  })

  verifies('H-05', 'shows items by priority, with importance 3 or more and at most 50', async () => {
    await using harness = await createHarness()
    const item = (importance: number, number: number) => ({
      category: 'task' as const,
      content: `Task number ${number} of the list`,
      importance,
    })
    const contextItems = [...Array.from({ length: 60 }, (_, number) => item(5, number)), item(2, 98), item(9, 99)]
    await harness.handoff.save(workspace, { conversationContext: 'User: Much is left to do.', contextItems })
    const { contextItems: shown } = await harness.handoff.restore(workspace)
    expect([shown.length, shown[0]?.content, shown.some(({ importance }) => importance < 3)]).toEqual([
      50,
      'Task number 99 of the list',
      false,
    ])
    await using few = await createHarness({ settings: { items: 2, importance: 6 } })
    await few.handoff.save(workspace, { conversationContext: 'User: Much is left to do.', contextItems })
    expect((await few.handoff.restore(workspace)).contextItems.map(({ importance }) => importance)).toEqual([9])
  })

  verifies('H-05', 'shows items from importance 3 on, and those saved without one between 4 and 6', async () => {
    await using harness = await createHarness()
    const contextItems = [2.9, 3, 4, undefined, 6].map((importance) => ({
      category: 'task' as const,
      content: `A task of importance ${importance ?? 'unknown'}`,
      ...(importance === undefined ? {} : { importance }),
    }))
    await harness.handoff.save(workspace, { conversationContext: 'User: Much is left to do.', contextItems })
    const { contextItems: shown } = await harness.handoff.restore(workspace)
    expect(shown.map(({ content, importance }) => [content.split(' ').at(-1), importance])).toEqual([
      ['6', 6],
      ['unknown', 5],
      ['4', 4],
      ['3', 3],
    ])
  })

  verifies('H-05', 'reports files as unchanged, changed with a note, missing or refused', async () => {
    using folder = createTempFolder()
    const time = { now: noon }
    const { files, write, path } = createFiles(folder.path, time)
    for (const name of ['same.ts', 'edited.ts', 'gone.ts'])
      write(name, `export const name = '${name}'\nexport const size = 1\n`)
    await using harness = await createHarness({ files, time })
    const saved = await harness.handoff.save(workspace, {
      conversationContext: `User: We change ${path('same.ts')} and ${path('edited.ts')}.`,
      fileReferences: [{ path: path('gone.ts') }, { path: join(folder.path, 'audit.jsonl') }],
    })
    expect(saved.files).toBe(4)
    write('edited.ts', "export const name = 'edited.ts'\nexport const size = 2\n")
    rmSync(path('gone.ts'))
    const { fileReferences, context } = await harness.handoff.restore(workspace)
    expect([...fileReferences].sort((left, right) => (left.path < right.path ? -1 : 1))).toMatchObject([
      { path: join(folder.path, 'audit.jsonl'), status: 'refused' },
      { path: path('edited.ts'), status: 'changed', note: expect.stringContaining('size = 2') },
      { path: path('gone.ts'), status: 'missing' },
      { path: path('same.ts'), status: 'unchanged' },
    ])
    expect(context).toContain(path('gone.ts'))
  })

  verifies(
    'H-05',
    'with any conversation never exceeds the budget',
    async () => {
      await using harness = await createHarness()
      const { memory } = harness
      const text = fc.oneof(
        fc.string({ maxLength: 200 }),
        fc.constantFrom(
          '```ts\nexport const a = 1 // why\n```',
          'TODO: call Ümit',
          '日本語のテキスト',
          '| a | b |\n|---|---|\n| 1 | 2 |',
        ),
      )
      const message: fc.Arbitrary<MessageInput> = fc.record({
        role: fc.constantFrom('user' as const, 'assistant' as const),
        content: text.map((content) => `${content}.`),
      })
      const conversation = fc.array(fc.tuple(message, fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 12 })
      await fc.assert(
        fc.asyncProperty(conversation, fc.integer({ min: 1, max: 3_000 }), async (turns, budget) => {
          harness.time.now += 1
          const messages = turns.map(([turn, times]) => ({ ...turn, content: `${turn.content}\n`.repeat(times) }))
          const { sessionId } = await harness.handoff.save(workspace, { messages })
          const { context, tokens } = await harness.handoff.restore(workspace, { sessionId, budget })
          expect([tokens, tokens <= budget]).toEqual([memory.tokenizer.count(context), true])
        }),
        { numRuns: 25 },
      )
    },
    120_000,
  )

  verifies(
    'H-14',
    'measures preservation, stores it with the session and raises the weight of badly preserved categories',
    async () => {
      await using harness = await createHarness()
      const long = Array.from({ length: 60 }, (_, number) => ({
        role: 'assistant' as const,
        content: `Part ${number}:\n\`\`\`ts\nexport function handler${number}(request: Request${number}): Response${number} {\n  return respond${number}(request.body.field${number})\n}\n\`\`\``,
      }))
      await harness.handoff.save(workspace, {
        messages: [...long, { role: 'user', content: 'TODO: rename handler7.' }],
      })
      const large = await harness.handoff.restore(workspace, { budget: 20_000 })
      expect([large.preservation.facts, large.preservation.categories.code?.facts]).toEqual([1, 1])
      expect((await readWeights(harness))?.code).toBeCloseTo(1)
      for (let times = 0; times < 3; times++) {
        harness.time.now += 1_000
        const small = await harness.handoff.restore(workspace, { sessionId: first, budget: 300 })
        expect(small.preservation.categories.code?.facts).toBeLessThan(0.8)
      }
      const learned = await readWeights(harness)
      expect(learned?.code).toBeGreaterThan(1)
      expect(Math.max(...Object.values(learned ?? {}))).toBeLessThanOrEqual(2)
      expect(Object.values(learned ?? {}).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(5)
      expect((await harness.handoff.get(workspace, first)).preservation).toMatchObject({
        budget: 300,
        at: '2026-11-15T12:00:03.000Z',
      })
    },
  )

  verifies(
    'H-15',
    'with context providers shows their texts with masked secrets, and reports failed ones as warnings',
    async () => {
      const secret = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
      const calls: string[] = []
      const providers = {
        gather: async (on: 'save' | 'restore') => {
          calls.push(on)
          return {
            provided: [{ from: 'tracker', text: `Ticket 42 is open (${secret}).` }],
            degraded: [{ step: 'wiki', why: 'timeout' }],
          }
        },
      }
      await using harness = await createHarness({ providers })
      const saved = await harness.handoff.save(workspace, { messages: codingConversation })
      const { context, warnings } = await harness.handoff.restore(workspace)
      expect([calls, saved.warnings, warnings]).toEqual([['save', 'restore'], ['wiki: timeout'], ['wiki: timeout']])
      expect(context).toContain('Ticket 42 is open')
      expect(context + JSON.stringify(await harness.graph.queryEntities(workspace))).not.toContain(secret)
    },
  )

  it('includes messages appended since the last save', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.memory.append(`${workspace}:${first}`, [
      { role: 'user', content: 'The deadline is 3 December 2026.' },
    ])
    expect((await harness.handoff.restore(workspace)).context).toContain('The deadline is 3 December 2026.')
    expect((await harness.handoff.get(workspace, first)).messageCount).toBe(5)
  })

  verifies('H-09', 'works with an encrypted store', async () => {
    using folder = createTempFolder()
    const keyFile = join(folder.path, 'key')
    writeFileSync(keyFile, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })
    await using harness = await createHarness({ storeKey: `file:${keyFile}` })
    await harness.handoff.save(workspace, { messages: codingConversation })
    const { context, contextItems } = await harness.handoff.restore(workspace)
    expect([context.includes('E-4711'), contextItems.length, (await harness.handoff.list(workspace)).total]).toEqual([
      true,
      3,
      1,
    ])
  })
})

const readWeights = async ({ graph }: HandoffHarness): Promise<Record<string, number> | undefined> =>
  (await graph.getEntity(workspace, `workspace_${workspace}`))?.properties.weights as Record<string, number> | undefined

describe('mark', () => {
  verifies('H-03', 'puts the items of a marked message first', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, {
      messages: [
        ...codingConversation,
        { role: 'user', content: 'Remember: invoices go out on the 5th, data in INV-2026-11.' },
      ],
    })
    const before = (await harness.handoff.restore(workspace)).contextItems
    const marked = await harness.handoff.mark(workspace, first, { text: 'add a test for encodePassword' })
    const quotes = ['Good. We never store plain passwords. TODO: add a test for encodePassword with "Zürich".']
    expect(marked).toEqual({ sessionId: first, marked: ['m3'], added: 1, quotes })
    const [item] = (await harness.handoff.restore(workspace)).contextItems
    expect([item?.marked, item?.sources, item?.importance]).toEqual([true, ['m3'], 10])
    expect(before.some(({ marked: isMarked }) => isMarked)).toBe(false)
    expect((await harness.handoff.mark(workspace, first, { messageIds: ['m3', 'm2'] })).added).toBe(1)
    for (const text of ['nowhere', 'encodePass'])
      expect(await describeOutcome(harness.handoff.mark(workspace, first, { text }))).toContain(
        'No message of the session matches.',
      )
  })
})
