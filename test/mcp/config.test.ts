import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { resolveMcpConfig } from '../../src/server/config/mcpConfig.ts'
import { parseConfig } from '../../src/server/config/schema.ts'
import { runCommand } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { connectStdio, textOf } from './harness.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-mcp-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const day = 86_400_000

describe('mcp section of the configuration', () => {
  verifies('H-08', 'sets the retention, the save threshold and the context providers', () => {
    const providers = { tickets: { command: 'tickets-mcp', tool: 'search', timeout: '2s', on: ['restore'] } }
    const { workspace, only, profile, settings } = resolveMcpConfig(
      parseConfig({
        mcp: {
          workspace: 'a',
          only: ['a', 'b'],
          retention: '7d',
          tokenLimit: 32_000,
          threshold: 0.5,
          margin: 0,
          summarise: false,
          items: 20,
          write: true,
          providers,
        },
      }),
    )
    expect([workspace, only, profile.name, profile.lifetime.age]).toEqual(['a', ['a', 'b'], 'handoff', 7 * day])
    expect(settings).toMatchObject({
      write: true,
      handoff: { limit: 32_000, threshold: 0.5, margin: 0, summarise: false, items: 20 },
      providers: { tickets: { timeout: 2_000 } },
    })
  })

  it('defaults to a retention of 30 days and an audit log next to the store', () => {
    const { workspace, only, profile, settings } = resolveMcpConfig({ store: 'sqlite:/var/lib/threadkeep.db' })
    expect([workspace, only, profile.lifetime.age, settings.audit]).toEqual([
      undefined,
      undefined,
      30 * day,
      '/var/lib/threadkeep-audit.jsonl',
    ])
  })

  it('is validated field by field, without secrets in messages', () => {
    const wrong: readonly (readonly [value: object, message: string])[] = [
      [
        { workspaces: 'a' },
        'mcp.workspaces is not a field of mcp. Use one of: workspace, only, allow, write, audit, users, providers, retention, tokenLimit, threshold, margin, budget, importance, items, summarise, compress.',
      ],
      [{ threshold: 2 }, 'mcp.threshold is 2; it must be at most 1.'],
      [
        { retention: 'long' },
        'mcp.retention is "long"; it must be a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d.',
      ],
      [{ users: { ann: '/home' } }, 'mcp.users.ann is "/home"; it must be a list of texts.'],
      [
        { providers: { x: { env: { TOKEN: 'sesame' } } } },
        'mcp.providers.x is …; it must be an object with either command or url.',
      ],
    ]
    for (const [mcp, message] of wrong) expect(() => parseConfig({ mcp })).toThrow(message)
  })

  it('is shown by config print without the secrets of providers', async () => {
    const file = join(folder, 'shown.json')
    const providers = { tickets: { url: 'https://tickets.example/mcp', headers: { authorization: 'Bearer sesame' } } }
    writeFileSync(file, JSON.stringify({ mcp: { workspace: 'my-project', allow: ['src'], providers } }))
    const { stdout } = await runCommand(['config', 'print', '--config', file])
    expect(stdout).toMatch(/^mcp\.workspace +.*shown\.json +"my-project"$/m)
    expect(stdout).toContain(JSON.stringify([join(folder, 'src')]))
    expect(stdout).toContain('"authorization":"***"')
    expect(stdout).not.toContain('sesame')
  })

  verifies(['H-09', 'H-10'], 'applies to threadkeep mcp: folders, workspaces and the audit log', async () => {
    const project = join(folder, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'notes.txt'), 'Buy milk.')
    const file = join(folder, 'mcp.json')
    writeFileSync(
      file,
      JSON.stringify({ store: 'sqlite:kept.db', mcp: { only: ['mine'], allow: ['project'], audit: 'looks.jsonl' } }),
    )
    await using connection = await connectStdio('2026-07-28', ['--config', file])
    const { client } = connection
    const read = await client.callTool({ name: 'read_file', arguments: { path: join(project, 'notes.txt') } })
    expect(textOf(read)).toContain('Buy milk.')
    expect((await client.callTool({ name: 'read_file', arguments: { path: '/etc/passwd' } })).isError).toBe(true)
    expect(
      (await client.callTool({ name: 'write_file', arguments: { path: join(project, 'new.txt'), text: 'x' } })).isError,
    ).toBe(true)
    expect((await client.callTool({ name: 'list_sessions', arguments: { workspace: 'other' } })).isError).toBe(true)
    const auditLines = readFileSync(join(folder, 'looks.jsonl'), 'utf8').trim().split('\n')
    expect(auditLines.map((line) => (JSON.parse(line) as { outcome: string }).outcome)).toEqual([
      'allowed',
      'refused',
      'refused',
    ])
  })

  it('is not read from the working directory', async () => {
    writeFileSync(join(folder, 'threadkeep.config.mjs'), `throw new Error('it ran')`)
    await using connection = await connectStdio('2025-11-25', ['--store', 'ram:'], {}, folder)
    expect((await connection.client.callTool({ name: 'list_sessions' })).structuredContent).toEqual({
      sessions: [],
      total: 0,
    })
  })
})
