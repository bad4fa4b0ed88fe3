import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Incoming } from '../../src/domain/chat.ts'
import { MemoryError } from '../../src/index.ts'
import { Audit } from '../../src/mcp/files/audit.ts'
import { FileDesk } from '../../src/mcp/files/desk.ts'
import { newFolder } from '../fault/tempFolder.ts'
import { verifies } from '../requirements/verifies.ts'
import '../seeded.ts'
import { coding, noon, type Stage, stage } from './stage.ts'

const workspace = 'billing'
const first = `session_${noon}`
const refused = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && `${error.code}: ${error.message}`,
  )

/** A folder with files that may be looked at. */
function desk(folder: string, time: { now: number }) {
  mkdirSync(join(folder, 'src'))
  const write = (name: string, text: string): void => writeFileSync(join(folder, 'src', name), text)
  const files = new FileDesk({
    allow: [join(folder, 'src')],
    users: {},
    write: false,
    audit: new Audit(join(folder, 'audit.jsonl')),
    clock: () => time.now,
  })
  return { files, write, path: (name: string): string => join(folder, 'src', name) }
}

describe('restoring a session', () => {
  verifies(
    ['H-04', 'H-05'],
    'without an id takes the most recent of the workspace, and begins a session that is linked to it',
    async () => {
      await using at = await stage()
      const { handoff, time, graph } = at
      await handoff.save(workspace, { conversationContext: 'User: The older one.' })
      time.now += 1_000
      const newer = await handoff.save(workspace, {
        messages: coding,
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
      for (const { content } of coding) expect(restored.context).toContain(content)
      expect(restored.context).not.toContain('Not mine')
      const { relationships } = await graph.relationships(workspace, { types: ['SESSION_CONTINUES'] })
      expect(relationships).toMatchObject([{ from: restored.sessionId, to: newer.sessionId }])
      // The new session is the chat that goes on: it is saved under its own id, and restored in its turn.
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

  verifies('H-05', 'restored before anything was said goes on from the same session again', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    const once = await at.handoff.restore(workspace)
    const twice = await at.handoff.restore(workspace)
    const byId = await at.handoff.restore(workspace, { sessionId: once.sessionId })
    expect([once.continues, twice.continues, byId.continues]).toEqual([first, first, first])
    expect((await at.handoff.list(workspace)).total).toBe(1)
  })

  verifies(
    ['H-04', 'H-09'],
    'does not find ids of other workspaces, in the words for ids that are nowhere',
    async () => {
      await using at = await stage()
      const { handoff } = at
      await handoff.save('other', { messages: coding })
      const words = (id: string): string =>
        `bad-option: There is no session "${id}" in this workspace. list_sessions tells which there are.`
      for (const id of [first, 'session_1'])
        for (const work of [
          () => handoff.restore(workspace, { sessionId: id }),
          () => handoff.get(workspace, id),
          () => handoff.delete(workspace, id),
          () => handoff.analytics(workspace, id),
          () => handoff.mark(workspace, id, { text: 'x' }),
          () => handoff.check(workspace, { sessionId: id }),
        ])
          expect(await refused(work())).toBe(words(id))
      expect(await refused(handoff.restore(workspace))).toBe(
        'bad-option: No session was saved in this workspace yet. Save one with save_session, or name another workspace.',
      )
      expect((await handoff.get('other', first)).messageCount).toBe(4)
    },
  )

  verifies('H-05', 'shows items by priority: at least importance 3, at most 50, the marked ones first', async () => {
    await using at = await stage()
    const item = (importance: number, number: number) => ({
      category: 'task' as const,
      content: `Task number ${number} of the list`,
      importance,
    })
    const contextItems = [...Array.from({ length: 60 }, (_, number) => item(5, number)), item(2, 98), item(9, 99)]
    await at.handoff.save(workspace, { conversationContext: 'User: Much is left to do.', contextItems })
    const { contextItems: shown } = await at.handoff.restore(workspace)
    expect([shown.length, shown[0]?.content, shown.some(({ importance }) => importance < 3)]).toEqual([
      50,
      'Task number 99 of the list',
      false,
    ])
    await using few = await stage({ settings: { items: 2, importance: 6 } })
    await few.handoff.save(workspace, { conversationContext: 'User: Much is left to do.', contextItems })
    expect((await few.handoff.restore(workspace)).contextItems.map(({ importance }) => importance)).toEqual([9])
  })

  verifies('H-05', 'says of files whether they are unchanged, changed and how, or missing', async () => {
    using folder = newFolder()
    const time = { now: noon }
    const { files, write, path } = desk(folder.path, time)
    for (const name of ['same.ts', 'edited.ts', 'gone.ts'])
      write(name, `export const name = '${name}'\nexport const size = 1\n`)
    await using at = await stage({ files, time })
    const saved = await at.handoff.save(workspace, {
      conversationContext: `User: We change ${path('same.ts')} and ${path('edited.ts')}.`,
      fileReferences: [{ path: path('gone.ts') }, { path: join(folder.path, 'audit.jsonl') }],
    })
    expect(saved.files).toBe(4)
    write('edited.ts', "export const name = 'edited.ts'\nexport const size = 2\n")
    rmSync(path('gone.ts'))
    const { fileReferences, context } = await at.handoff.restore(workspace)
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
    'never has more tokens than the budget, whatever was saved',
    async () => {
      await using at = await stage()
      const { memory } = at
      const said = fc.oneof(
        fc.string({ maxLength: 200 }),
        fc.constantFrom(
          '```ts\nexport const a = 1 // why\n```',
          'TODO: call Ümit',
          '日本語のテキスト',
          '| a | b |\n|---|---|\n| 1 | 2 |',
        ),
      )
      const message: fc.Arbitrary<Incoming> = fc.record({
        role: fc.constantFrom('user' as const, 'assistant' as const),
        content: said.map((text) => `${text}.`),
      })
      const conversation = fc.array(fc.tuple(message, fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 12 })
      await fc.assert(
        fc.asyncProperty(conversation, fc.integer({ min: 1, max: 3_000 }), async (turns, budget) => {
          at.time.now += 1
          const messages = turns.map(([turn, times]) => ({ ...turn, content: `${turn.content}\n`.repeat(times) }))
          const { sessionId } = await at.handoff.save(workspace, { messages })
          const { context, tokens } = await at.handoff.restore(workspace, { sessionId, budget })
          expect([tokens, tokens <= budget]).toEqual([memory.tokenizer.count(context), true])
        }),
        { numRuns: 25 },
      )
    },
    120_000,
  )

  verifies(
    'H-14',
    'measures what came through, keeps that with the session, and lets badly preserved categories count for more',
    async () => {
      await using at = await stage()
      const long = Array.from({ length: 60 }, (_, number) => ({
        role: 'assistant' as const,
        content: `Part ${number}:\n\`\`\`ts\nexport function handler${number}(request: Request${number}): Response${number} {\n  return respond${number}(request.body.field${number})\n}\n\`\`\``,
      }))
      await at.handoff.save(workspace, { messages: [...long, { role: 'user', content: 'TODO: rename handler7.' }] })
      const roomy = await at.handoff.restore(workspace, { budget: 20_000 })
      expect([roomy.preservation.facts, roomy.preservation.categories.code?.facts]).toEqual([1, 1])
      expect((await weights(at))?.code).toBeCloseTo(1)
      for (let times = 0; times < 3; times++) {
        at.time.now += 1_000
        const scarce = await at.handoff.restore(workspace, { sessionId: first, budget: 300 })
        expect(scarce.preservation.categories.code?.facts).toBeLessThan(0.8)
      }
      const learned = await weights(at)
      expect(learned?.code).toBeGreaterThan(1)
      expect(Math.max(...Object.values(learned ?? {}))).toBeLessThanOrEqual(2)
      expect(Object.values(learned ?? {}).reduce((sum, one) => sum + one, 0)).toBeCloseTo(5)
      expect((await at.handoff.get(workspace, first)).preservation).toMatchObject({
        budget: 300,
        at: '2026-11-15T12:00:03.000Z',
      })
    },
  )

  verifies(
    'H-15',
    'asks other servers, shows what they say as data without its secrets, and goes on without them',
    async () => {
      const secret = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
      const asked: string[] = []
      const providers = {
        gather: async (on: 'save' | 'restore') => {
          asked.push(on)
          return {
            provided: [{ from: 'tracker', text: `Ticket 42 is open (${secret}).` }],
            degraded: [{ step: 'wiki', why: 'timeout' }],
          }
        },
      }
      await using at = await stage({ providers })
      const saved = await at.handoff.save(workspace, { messages: coding })
      const { context, warnings } = await at.handoff.restore(workspace)
      expect([asked, saved.warnings, warnings]).toEqual([['save', 'restore'], ['wiki: timeout'], ['wiki: timeout']])
      expect(context).toContain('Ticket 42 is open')
      expect(context + JSON.stringify(await at.graph.entities(workspace))).not.toContain(secret)
    },
  )

  it('takes in what was added since the session was last saved', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    await at.memory.append(`${workspace}:${first}`, [{ role: 'user', content: 'The deadline is 3 December 2026.' }])
    expect((await at.handoff.restore(workspace)).context).toContain('The deadline is 3 December 2026.')
    expect((await at.handoff.get(workspace, first)).messageCount).toBe(5)
  })

  verifies('H-09', 'works the same on an encrypted store, where nothing said can be read', async () => {
    using folder = newFolder()
    const keyFile = join(folder.path, 'key')
    writeFileSync(keyFile, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })
    await using at = await stage({ storeKey: `file:${keyFile}` })
    await at.handoff.save(workspace, { messages: coding })
    const { context, contextItems } = await at.handoff.restore(workspace)
    expect([context.includes('E-4711'), contextItems.length, (await at.handoff.list(workspace)).total]).toEqual([
      true,
      3,
      1,
    ])
  })
})

const weights = async ({ graph }: Stage): Promise<Record<string, number> | undefined> =>
  (await graph.entity(workspace, `workspace_${workspace}`))?.properties.weights as Record<string, number> | undefined

describe('marking', () => {
  verifies('H-03', 'what the user marked comes first', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, {
      messages: [...coding, { role: 'user', content: 'Remember: invoices go out on the 5th, data in INV-2026-11.' }],
    })
    const before = (await at.handoff.restore(workspace)).contextItems
    const marked = await at.handoff.mark(workspace, first, { text: 'add a test for encodePassword' })
    const quotes = ['Good. We never store plain passwords. TODO: add a test for encodePassword with "Zürich".']
    expect(marked).toEqual({ sessionId: first, marked: ['m3'], added: 1, quotes })
    const [item] = (await at.handoff.restore(workspace)).contextItems
    expect([item?.marked, item?.sources, item?.importance]).toEqual([true, ['m3'], 10])
    expect(before.some(({ marked: isMarked }) => isMarked)).toBe(false)
    expect((await at.handoff.mark(workspace, first, { messageIds: ['m3', 'm2'] })).added).toBe(1)
    for (const text of ['nowhere', 'encodePass'])
      expect(await refused(at.handoff.mark(workspace, first, { text }))).toContain('Nothing in the session is what')
  })
})
