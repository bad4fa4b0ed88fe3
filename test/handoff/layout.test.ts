import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import { hashText } from '../../src/handoff/layout/format.ts'
import { isCampaign } from '../context/campaign.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { verifies } from '../requirements/verifies.ts'
import '../seeded.ts'
import { codingConversation, createHarness, day, type HandoffHarness, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

/** Reads all files of a directory as base64. */
function readTree(directory: string): Readonly<Record<string, string>> {
  const paths = globSync('**/*', { cwd: directory, withFileTypes: true }).filter((entry) => entry.isFile())
  const names = paths.map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1)).sort()
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), 'base64')]))
}

/** Exports a workspace, imports it into a new store and exports it again; returns both trees. */
async function roundTrip(
  source: HandoffHarness,
  directory: string,
): Promise<readonly [Readonly<Record<string, string>>, Readonly<Record<string, string>>]> {
  const [there, back] = [join(directory, 'there'), join(directory, 'back')]
  await source.handoff.export(workspace, { directory: there })
  await using fresh = await createHarness({ time: { now: source.time.now + day } })
  expect((await fresh.handoff.import({ directory: there })).skipped).toEqual([])
  await fresh.handoff.export(workspace, { directory: back })
  return [readTree(there), readTree(back)]
}

const write = (file: string, text: string): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

describe('directory layout', () => {
  verifies(
    ['H-07', 'H-11'],
    'of a session saved by one process and continued by another is byte-identical after export, import and export',
    async () => {
      using folder = createTempFolder()
      await using harness = await createHarness()
      await harness.handoff.save(workspace, {
        messages: [
          ...codingConversation,
          {
            role: 'assistant',
            tool_calls: [{ id: 'c1', function: { name: 'read_file', arguments: '{"path":"a.ts"}' } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'export {}' },
        ],
        fileReferences: [{ path: 'src/a.ts', hash: 'abc' }],
        workspaceState: { activeProject: 'portal' },
      })
      await using other = await createHarness({ file: harness.file, time: { now: noon + 60_000 } })
      const { sessionId } = await other.handoff.restore(workspace)
      await other.handoff.save(workspace, {
        sessionId,
        conversationContext: `User: Now the logout page, as in ${first}.`,
      })
      await other.handoff.mark(workspace, first, { text: 'umlaut' })
      await other.memory.forget({ key: `${workspace}:${first}`, messageId: 'm2' })
      await other.handoff.save(workspace, { sessionId: first })
      const [there, back] = await roundTrip(other, folder.path)
      expect(Object.keys(there)).toEqual([
        ...[first, sessionId].flatMap((id) =>
          ['entities.json.zst', 'metadata.json.zst', 'relationships.json.zst', 'transcript.jsonl.zst'].map(
            (name) => `sessions/${workspace}/${id}/${name}`,
          ),
        ),
        expect.stringMatching(/^shared\/file_references\/[0-9a-f]{64}\.json\.zst$/),
      ])
      expect(back).toEqual(there)
      const metadata = JSON.parse(
        zstdDecompressSync(
          Buffer.from(there[`sessions/${workspace}/${first}/metadata.json.zst`] ?? '', 'base64'),
        ).toString(),
      )
      expect(metadata).toMatchObject({
        format: 'threadkeep-handoff',
        version: 1,
        session: first,
        workspace,
        created_at: '2026-11-15T12:00:00.000Z',
        messages: 5,
      })
    },
  )

  verifies(
    'H-07',
    'of any conversation is byte-identical after export, import and export',
    async () => {
      const text = fc.oneof(
        fc.string({ maxLength: 80, unit: 'binary' }),
        fc.constantFrom('```ts\nconst a = 1\n```', 'TODO: call Ümit', '\ud83d', ' \n\t'),
      )
      const message: fc.Arbitrary<MessageInput> = fc.record({
        role: fc.constantFrom('user' as const, 'assistant' as const),
        content: text,
        name: fc.constantFrom('ann', 'bob'),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 6 }), async (messages) => {
          using folder = createTempFolder()
          await using harness = await createHarness()
          await harness.handoff.save(workspace, { messages })
          const [there, back] = await roundTrip(harness, folder.path)
          expect(back).toEqual(there)
        }),
        { numRuns: isCampaign ? 8 : 3 },
      )
    },
    120_000,
  )

  verifies('H-07', 'exported without compression replaces the compressed files by plain JSON', async () => {
    using folder = createTempFolder()
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.handoff.export(workspace, { directory: folder.path })
    await harness.handoff.export(workspace, { directory: folder.path, compress: false })
    const names = ['entities.json', 'metadata.json', 'relationships.json', 'transcript.jsonl'].map(
      (name) => `sessions/${workspace}/${first}/${name}`,
    )
    expect(Object.keys(readTree(folder.path))).toEqual(names)
    const transcript = readFileSync(join(folder.path, names[3] as string), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(transcript[2]).toEqual({ id: 'm3', at: noon, role: 'user', content: codingConversation[2]?.content })
    expect(JSON.parse(readFileSync(join(folder.path, names[0] as string), 'utf8'))).toContainEqual(
      expect.objectContaining({ type: 'session', id: first }),
    )
    await using fresh = await createHarness()
    expect(await fresh.handoff.import({ directory: folder.path })).toEqual({
      sessions: 1,
      messages: 4,
      unchanged: 0,
      skipped: [],
    })
    expect(await fresh.handoff.import({ directory: folder.path })).toEqual({
      sessions: 0,
      messages: 0,
      unchanged: 1,
      skipped: [],
    })
    expect((await fresh.handoff.restore(workspace)).context).toContain('E-4711')
  })

  verifies('H-11', 'without a version is migrated on import', async () => {
    using folder = createTempFolder()
    const session = join(folder.path, 'sessions', workspace, 'session_7')
    write(join(session, 'metadata.json'), JSON.stringify({ id: 'session_7', created_at: '2026-11-10T08:00:00Z' }))
    write(
      join(session, 'entities.json'),
      JSON.stringify([
        {
          type: 'session',
          id: 'session_7',
          properties: {
            created_at: '2026-11-10T08:00:00Z',
            workspace_id: workspace,
            token_count: '321',
            summary: 'The login page.',
          },
        },
        {
          type: 'conversation',
          id: 'conversation_session_7',
          properties: { context: 'User: The login fails.\nAssistant: It is the umlaut.', token_count: 300 },
        },
        {
          type: 'context_item',
          id: 'context_1',
          properties: { category: 'code', content: 'encode(text)', importance: '8', token_count: 5 },
        },
        { type: 'context_item', id: 'context_2', properties: { category: 'code', content: 'decode(text)' } },
        {
          type: 'file_reference',
          id: 'file_1',
          properties: { path: '/app/login.ts', hash: 'abc', last_modified: '2026-11-09T00:00:00Z' },
        },
        {
          type: 'workspace_state',
          id: 'workspace_state_session_7',
          properties: { workspace_id: workspace, active_project: 'portal', enabled_mcps: ['github'] },
        },
      ]),
    )
    write(
      join(session, 'relationships.json'),
      JSON.stringify([{ from_id: 'session_7', to_id: 'session_6', type: 'SESSION_CONTINUES' }]),
    )
    await using harness = await createHarness()
    expect(await harness.handoff.import({ directory: folder.path })).toEqual({
      sessions: 1,
      messages: 2,
      unchanged: 0,
      skipped: [],
    })
    expect(await harness.handoff.get(workspace, 'session_7')).toMatchObject({
      createdAt: '2026-11-10T08:00:00.000Z',
      tokenCount: 321,
      summary: 'The login page.',
      continuedFrom: 'session_6',
      items: 2,
      files: ['/app/login.ts'],
    })
    const restored = await harness.handoff.restore(workspace)
    expect(restored).toMatchObject({
      continues: 'session_7',
      workspaceState: { activeProject: 'portal', enabledMcps: ['github'] },
      contextItems: [
        { category: 'code', importance: 8 },
        { category: 'code', content: 'decode(text)', importance: 5 },
      ],
    })
    expect(
      (await harness.memory.transcript(`${workspace}:session_7`)).map(({ role, content }) => `${role}: ${content}`),
    ).toEqual(['user: The login fails.', 'assistant: It is the umlaut.'])
    expect((await harness.handoff.import({ directory: folder.path })).unchanged).toBe(1)
  })

  verifies('H-11', 'with a newer version is rejected before anything is imported', async () => {
    using folder = createTempFolder()
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.handoff.export(workspace, { directory: folder.path, compress: false })
    write(
      join(folder.path, 'sessions', workspace, 'session_9', 'metadata.json'),
      JSON.stringify({ format: 'threadkeep-handoff', version: 2 }),
    )
    await using fresh = await createHarness()
    await expect(fresh.handoff.import({ directory: folder.path })).rejects.toThrow(
      `${workspace}/session_9 was written in format 2, and this version reads up to 1.`,
    )
    expect((await fresh.handoff.list(workspace)).total).toBe(0)
  })

  verifies('H-11', 'with damaged sessions imports the others and reports each skipped one', async () => {
    using folder = createTempFolder()
    await using harness = await createHarness()
    for (let number = 0; number < 6; number++)
      await harness.handoff.save(workspace, {
        messages: codingConversation,
        fileReferences: [{ path: `src/${number}.ts`, hash: `${number}` }],
      })
    await harness.handoff.export(workspace, { directory: folder.path })
    const fileOf = (number: number, name: string): string =>
      join(folder.path, 'sessions', workspace, `session_${noon + number}`, name)
    writeFileSync(fileOf(0, 'entities.json.zst'), 'not zstd')
    rmSync(fileOf(1, 'metadata.json.zst'))
    rmSync(fileOf(2, 'transcript.jsonl.zst'))
    writeFileSync(fileOf(3, 'relationships.json.zst'), readFileSync(fileOf(4, 'relationships.json.zst')))
    writeFileSync(`${fileOf(4, 'entities.json.zst')}.1234.unfinished`, 'half')
    await using fresh = await createHarness()
    const { sessions, skipped } = await fresh.handoff.import({ directory: folder.path })
    expect([sessions, [...skipped].sort((left, right) => (left.session < right.session ? -1 : 1))]).toEqual([
      2,
      [
        { session: `${workspace}/session_${noon}`, why: 'entities.json cannot be decoded' },
        { session: `${workspace}/session_${noon + 1}`, why: 'metadata.json is missing' },
        { session: `${workspace}/session_${noon + 2}`, why: 'transcript.jsonl is missing' },
        { session: `${workspace}/session_${noon + 3}`, why: 'relationships.json does not match its checksum' },
      ],
    ])
  })

  verifies('H-07', 'never overwrites a newer session or one with different messages', async () => {
    using folder = createTempFolder()
    await using harness = await createHarness()
    const { handoff, time } = harness
    await handoff.save(workspace, { messages: codingConversation.slice(0, 2) })
    await handoff.export(workspace, { directory: join(folder.path, 'old') })
    time.now += 1_000
    await handoff.save(workspace, { sessionId: first, messages: codingConversation })
    await handoff.export(workspace, { directory: join(folder.path, 'new') })
    const importReasons = async (target: HandoffHarness, name: string) =>
      (await target.handoff.import({ directory: join(folder.path, name) })).skipped.map(({ why }) => why)
    expect(await importReasons(harness, 'old')).toEqual(['the stored session is newer'])
    expect((await handoff.get(workspace, first)).messageCount).toBe(4)
    await using older = await createHarness()
    expect([await importReasons(older, 'old'), await importReasons(older, 'new')]).toEqual([[], []])
    expect((await older.memory.transcript(`${workspace}:${first}`)).map(({ id }) => id)).toEqual([
      'm1',
      'm2',
      'm3',
      'm4',
    ])
    await using another = await createHarness()
    await another.handoff.save(workspace, { conversationContext: 'User: Something else.' })
    expect(await importReasons(another, 'new')).toEqual(['the stored session has different messages'])
    await using late = await createHarness({ time: { now: noon + 31 * day } })
    expect(await importReasons(late, 'new')).toEqual(['the session has expired'])
  })

  verifies(['H-07', 'H-09'], 'cannot change other sessions, and its symbolic links are not followed', async () => {
    using folder = createTempFolder()
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    await harness.handoff.export(workspace, { directory: folder.path, compress: false })
    const base = join(folder.path, 'sessions', workspace)
    const forge = (id: string, entity: object): void => {
      const text = `[\n${JSON.stringify(entity)}\n]\n`
      const [relationships, transcript] = ['[]\n', '']
      const hashes = {
        entities: hashText(text),
        relationships: hashText(relationships),
        transcript: hashText(transcript),
      }
      const metadata = {
        format: 'threadkeep-handoff',
        version: 1,
        session: id,
        workspace,
        created_at: '2026-11-15T12:00:00.000Z',
        saved_at: '2026-11-15T12:00:00.000Z',
        messages: 0,
        hashes,
      }
      for (const [name, content] of Object.entries({
        'entities.json': text,
        'relationships.json': relationships,
        'transcript.jsonl': transcript,
        'metadata.json': JSON.stringify(metadata),
      }))
        write(join(base, id, name), content)
    }
    forge('session_a', { type: 'session', id: first, properties: { workspace_id: workspace, summary: 'Forged.' } })
    forge('session_b', { type: 'person', id: 'ann', properties: {} })
    forge('session_d', 'no entity' as unknown as object)
    forge('session_c', { type: 'file_reference', id: 'file_1', shared: '../../../etc/passwd' })
    forge('session_e', { type: 'session', id: 'session_e', properties: { workspace_id: workspace } })
    rmSync(join(base, 'session_e', 'entities.json'))
    symlinkSync(join(base, 'session_b', 'entities.json'), join(base, 'session_e', 'entities.json'))
    mkdirSync(join(base, 'bad name'))
    symlinkSync(folder.path, join(base, 'session_link'))
    await using fresh = await createHarness()
    await fresh.handoff.save(workspace, { messages: codingConversation })
    const { skipped, unchanged } = await fresh.handoff.import({ directory: folder.path })
    expect([
      unchanged,
      Object.fromEntries(skipped.map(({ session, why }) => [session.slice(workspace.length + 1), why])),
    ]).toEqual([
      1,
      {
        'bad name': 'the folder name is not a valid session id',
        session_link: 'symbolic links are not followed',
        session_a: `entity "${first}" does not belong to this session`,
        session_b: 'entity "ann" does not belong to this session',
        session_c: 'the name of a shared file reference is not a hash',
        session_d: 'entities.json has an invalid structure',
        session_e: 'entities.json cannot be read',
      },
    ])
    expect((await fresh.handoff.get(workspace, first)).summary).not.toContain('Forged')
    await expect(fresh.handoff.import({ directory: join(folder.path, 'nowhere') })).rejects.toThrow(
      'cannot be read. Name the directory that holds the folder sessions.',
    )
  })
})
