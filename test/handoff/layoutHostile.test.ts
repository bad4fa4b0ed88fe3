import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { contents, hashOf } from '../../src/handoff/layout/format.ts'
import { sessionTools } from '../../src/mcp/tools/sessions.ts'
import { newFolder } from '../fault/tempFolder.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, noon, stage } from './stage.ts'

const workspace = 'billing'
const session = `session_${noon}`

type Values = {
  entities: { type: string; properties?: Record<string, unknown> }[]
  relationships: Record<string, unknown>[]
  transcript: Record<string, unknown>[]
}

/** A folder with one session, which can be written again with something else in it. */
async function exported(directory: string) {
  await using at = await stage()
  const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
  const called = [
    { role: 'assistant' as const, content: 'I look.', tool_calls: [call] },
    { role: 'tool' as const, content: 'Seen.', tool_call_id: 'c' },
  ]
  const state = { activeProject: 'portal', enabledMcps: ['git'], settings: { theme: 'dark' } }
  await at.handoff.save(workspace, { messages: [...coding, ...called], workspaceState: state })
  await at.handoff.export(workspace, { directory, compress: false })
  const folder = join(directory, 'sessions', workspace, session)
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  const metadata = JSON.parse(read('metadata.json')) as Record<string, unknown>
  return (change: (values: Values) => unknown): void => {
    const lines = read(contents.transcript).trim().split('\n')
    const values = {
      entities: JSON.parse(read(contents.entities)),
      relationships: JSON.parse(read(contents.relationships)),
      transcript: lines.map((line) => JSON.parse(line)),
    } as Values
    change(values)
    const texts = {
      entities: JSON.stringify(values.entities),
      relationships: JSON.stringify(values.relationships),
      transcript: values.transcript.map((one) => `${JSON.stringify(one)}\n`).join(''),
    }
    for (const name of ['entities', 'relationships', 'transcript'] as const)
      writeFileSync(join(folder, contents[name]), texts[name])
    const hashes = {
      entities: hashOf(texts.entities),
      relationships: hashOf(texts.relationships),
      transcript: hashOf(texts.transcript),
    }
    writeFileSync(join(folder, 'metadata.json'), JSON.stringify({ ...metadata, hashes }))
  }
}

const properties = ({ entities }: Values, type: string): Record<string, unknown> =>
  entities.find((one) => one.type === type)?.properties ?? {}
const set = (type: string, name: string, value: unknown) => (values: Values) =>
  Object.assign(properties(values, type), { [name]: value })

describe('a folder that anybody may have written', () => {
  const damaged: readonly (readonly [what: string, change: (values: Values) => unknown, why: RegExp])[] = [
    [
      'calls that are none',
      ({ transcript }) => Object.assign(transcript[4] ?? {}, { calls: 5 }),
      /calls that are none/,
    ],
    [
      'calls that are null',
      ({ transcript }) => Object.assign(transcript[4] ?? {}, { calls: [null] }),
      /calls that are none/,
    ],
    [
      'a message without a role',
      ({ transcript }) => Object.assign(transcript[0] ?? {}, { role: 'nobody' }),
      /role is "nobody"/,
    ],
    ['a category that there is not', set('context_item', 'category', 'secret'), /is none of this session/],
    ['an importance that there is not', set('context_item', 'importance', 1e300), /is none of this session/],
    ['another beginning than it says', set('session', 'created_at', ''), /is none of this session/],
    [
      'a relationship of another session',
      ({ relationships }) => Object.assign(relationships[0] ?? {}, { from: 'session_1' }),
      /of another session/,
    ],
    [
      'no session at all',
      (values) =>
        Object.assign(values, { entities: values.entities.filter(({ type }) => !type.startsWith('session')) }),
      /says nothing of its session/,
    ],
  ]
  for (const [what, change, why] of damaged)
    verifies('H-11', `is left out, and named, with ${what}`, async () => {
      using folder = newFolder()
      ;(await exported(folder.path))(change)
      await using fresh = await stage()
      const { skipped, sessions } = await fresh.handoff.import({ directory: folder.path })
      expect([sessions, skipped.map((one) => one.session)]).toEqual([0, [`${workspace}/${session}`]])
      expect(skipped[0]?.why).toMatch(why)
      expect((await fresh.graph.entities(workspace)).total).toBe(0)
    })

  const odd: readonly (readonly [what: string, change: (values: Values) => unknown])[] = [
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
      'a state',
      (values) =>
        Object.assign(properties(values, 'workspace_state'), { active_project: null, enabled_mcps: [null, 'git'] }),
    ],
  ]
  for (const [what, change] of odd)
    verifies(['H-07', 'H-11'], `is believed only as far as it can be, with ${what} of no sense`, async () => {
      using folder = newFolder()
      ;(await exported(folder.path))(change)
      await using fresh = await stage()
      expect(await fresh.handoff.import({ directory: folder.path })).toMatchObject({ sessions: 1, skipped: [] })
      const fits = (name: string, value: unknown): void =>
        void sessionTools.find((tool) => tool.name === name)?.output.parse(value)
      fits('list_sessions', await fresh.handoff.list(workspace))
      fits('get_session', await fresh.handoff.get(workspace, session))
      fits('restore_session', await fresh.handoff.restore(workspace, { sessionId: session, budget: 1_000 }))
      fits('session_analytics', await fresh.handoff.analytics(workspace, session))
      fits(
        'save_session',
        await fresh.handoff.save(workspace, { sessionId: session, conversationContext: 'User: More.' }),
      )
    })

  verifies('H-11', 'keeps nobody waiting with a pipe in the place of a file, and none of a bomb', async () => {
    using folder = newFolder()
    const sessions = join(folder.path, 'sessions', workspace)
    for (const name of ['session_bomb', 'session_cut', 'session_pipe'])
      mkdirSync(join(sessions, name), { recursive: true })
    execFileSync('mkfifo', [join(sessions, 'session_pipe', 'metadata.json')])
    // 300 MB, in 10 KB
    const bomb = zstdCompressSync(Buffer.alloc(300 * 1_024 * 1_024))
    writeFileSync(join(sessions, 'session_bomb', 'metadata.json.zst'), bomb)
    writeFileSync(join(sessions, 'session_cut', 'metadata.json.zst'), bomb.subarray(0, bomb.length - 7))
    await using fresh = await stage()
    expect((await fresh.handoff.import({ directory: folder.path })).skipped).toEqual([
      { session: `${workspace}/session_bomb`, why: 'metadata.json cannot be unpacked' },
      { session: `${workspace}/session_cut`, why: 'metadata.json cannot be unpacked' },
      { session: `${workspace}/session_pipe`, why: 'metadata.json is no file' },
    ])
  })
})
