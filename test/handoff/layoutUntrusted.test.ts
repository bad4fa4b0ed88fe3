import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { contentFiles, hashText } from '../../src/handoff/layout/format.ts'
import { sessionTools } from '../../src/mcp/tools/sessions.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, noon } from './harness.ts'

const workspace = 'billing'
const session = `session_${noon}`

type FolderContent = {
  entities: { type: string; properties?: Record<string, unknown> }[]
  relationships: Record<string, unknown>[]
  transcript: Record<string, unknown>[]
}

/** Exports one session; the returned function modifies its files and updates the checksums. */
async function exportModifiable(directory: string) {
  await using harness = await createHarness()
  const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
  const toolTurn = [
    { role: 'assistant' as const, content: 'I look.', tool_calls: [call] },
    { role: 'tool' as const, content: 'Seen.', tool_call_id: 'c' },
  ]
  const workspaceState = { activeProject: 'portal', enabledMcps: ['git'], settings: { theme: 'dark' } }
  await harness.handoff.save(workspace, { messages: [...codingConversation, ...toolTurn], workspaceState })
  await harness.handoff.export(workspace, { directory, compress: false })
  const folder = join(directory, 'sessions', workspace, session)
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  const metadata = JSON.parse(read('metadata.json')) as Record<string, unknown>
  return (change: (values: FolderContent) => unknown): void => {
    const lines = read(contentFiles.transcript).trim().split('\n')
    const values = {
      entities: JSON.parse(read(contentFiles.entities)),
      relationships: JSON.parse(read(contentFiles.relationships)),
      transcript: lines.map((line) => JSON.parse(line)),
    } as FolderContent
    change(values)
    const texts = {
      entities: JSON.stringify(values.entities),
      relationships: JSON.stringify(values.relationships),
      transcript: values.transcript.map((message) => `${JSON.stringify(message)}\n`).join(''),
    }
    for (const name of ['entities', 'relationships', 'transcript'] as const)
      writeFileSync(join(folder, contentFiles[name]), texts[name])
    const hashes = {
      entities: hashText(texts.entities),
      relationships: hashText(texts.relationships),
      transcript: hashText(texts.transcript),
    }
    writeFileSync(join(folder, 'metadata.json'), JSON.stringify({ ...metadata, hashes }))
  }
}

const properties = ({ entities }: FolderContent, type: string): Record<string, unknown> =>
  entities.find((entity) => entity.type === type)?.properties ?? {}
const set = (type: string, name: string, value: unknown) => (values: FolderContent) =>
  Object.assign(properties(values, type), { [name]: value })

describe('import of an untrusted folder', () => {
  const damages: readonly (readonly [what: string, change: (values: FolderContent) => unknown, why: RegExp])[] = [
    [
      'tool calls that are not a list',
      ({ transcript }) => Object.assign(transcript[4] ?? {}, { calls: 5 }),
      /invalid tool calls/,
    ],
    [
      'tool calls that are null',
      ({ transcript }) => Object.assign(transcript[4] ?? {}, { calls: [null] }),
      /invalid tool calls/,
    ],
    [
      'a message number that leaves no room for others',
      ({ transcript }) => Object.assign(transcript.at(-1) ?? {}, { id: 'm999999999999999' }),
      /invalid id/,
    ],
    ['an unknown role', ({ transcript }) => Object.assign(transcript[0] ?? {}, { role: 'nobody' }), /role is "nobody"/],
    ['an unknown category', set('context_item', 'category', 'secret'), /does not belong to this session/],
    ['an importance out of range', set('context_item', 'importance', 1e300), /does not belong to this session/],
    ['a different created_at', set('session', 'created_at', ''), /does not belong to this session/],
    [
      'a relationship of another session',
      ({ relationships }) => Object.assign(relationships[0] ?? {}, { from: 'session_1' }),
      /belongs to another session/,
    ],
    [
      'no session entity',
      (values) =>
        Object.assign(values, { entities: values.entities.filter(({ type }) => !type.startsWith('session')) }),
      /session entity is missing/,
    ],
  ]
  for (const [what, change, why] of damages)
    verifies('H-11', `with ${what} skips and reports it`, async () => {
      using folder = createTempFolder()
      ;(await exportModifiable(folder.path))(change)
      await using fresh = await createHarness()
      const { skipped, sessions } = await fresh.handoff.import({ directory: folder.path })
      expect([sessions, skipped.map((entry) => entry.session)]).toEqual([0, [`${workspace}/${session}`]])
      expect(skipped[0]?.why).toMatch(why)
      expect((await fresh.graph.queryEntities(workspace)).total).toBe(0)
    })

  const oddities: readonly (readonly [what: string, change: (values: FolderContent) => unknown])[] = [
    [
      'counts',
      (values) =>
        Object.assign(properties(values, 'session'), {
          token_count: -1.5,
          message_count: 1e300,
          restored: { preservation: 5 },
        }),
    ],
    [
      'an item',
      (values) => Object.assign(properties(values, 'context_item'), { sources: 'm1', token_count: 1e300, factors: 7 }),
    ],
    [
      'a workspace state',
      (values) =>
        Object.assign(properties(values, 'workspace_state'), { active_project: null, enabled_mcps: [null, 'git'] }),
    ],
  ]
  for (const [what, change] of oddities)
    verifies(['H-07', 'H-11'], `with ${what} of invalid values replaces them by defaults`, async () => {
      using folder = createTempFolder()
      ;(await exportModifiable(folder.path))(change)
      await using fresh = await createHarness()
      expect(await fresh.handoff.import({ directory: folder.path })).toMatchObject({ sessions: 1, skipped: [] })
      const validate = (name: string, value: unknown): void =>
        void sessionTools.find((tool) => tool.name === name)?.output.parse(value)
      validate('list_sessions', await fresh.handoff.list(workspace))
      validate('get_session', await fresh.handoff.get(workspace, session))
      validate('restore_session', await fresh.handoff.restore(workspace, { sessionId: session, budget: 1_000 }))
      validate('session_analytics', await fresh.handoff.getAnalytics(workspace, session))
      validate(
        'save_session',
        await fresh.handoff.save(workspace, { sessionId: session, conversationContext: 'User: More.' }),
      )
    })

  verifies('H-11', 'with a named pipe or a decompression bomb skips the session without blocking', async () => {
    using folder = createTempFolder()
    const sessions = join(folder.path, 'sessions', workspace)
    for (const name of ['session_bomb', 'session_cut', 'session_pipe'])
      mkdirSync(join(sessions, name), { recursive: true })
    execFileSync('mkfifo', [join(sessions, 'session_pipe', 'metadata.json')])
    // 300 MB compressed to 10 KB
    const bomb = zstdCompressSync(Buffer.alloc(300 * 1_024 * 1_024))
    writeFileSync(join(sessions, 'session_bomb', 'metadata.json.zst'), bomb)
    writeFileSync(join(sessions, 'session_cut', 'metadata.json.zst'), bomb.subarray(0, bomb.length - 7))
    await using fresh = await createHarness()
    expect((await fresh.handoff.import({ directory: folder.path })).skipped).toEqual([
      { session: `${workspace}/session_bomb`, why: 'metadata.json cannot be decoded' },
      { session: `${workspace}/session_cut`, why: 'metadata.json cannot be decoded' },
      { session: `${workspace}/session_pipe`, why: 'metadata.json is not a regular file' },
    ])
  })
})
