import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp, lines } from './cliHarness.ts'
import { addChat } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('facts')
const file = join(folder, 'threadkeep.db')

beforeAll(() => addChat(`sqlite:${file}`))

describe('threadkeep facts', () => {
  const decision =
    "key_decisions     m3  2026-03-01 10:00:00 UTC  database.archive: Let's go with PostgreSQL for the archive"

  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await output('facts', '--help'), 'facts'),
  )

  it('lists facts by field, with message and time', async () =>
    expect(await output('facts', 'acme:ann')).toBe(
      lines(
        'user_preferences  m7  2026-03-01 12:00:00 UTC  theme: light',
        decision,
        'important_facts   m5  2026-03-01 11:00:00 UTC  cat.miso: My cat is called Miso',
        'source_urls       m7  2026-03-01 12:00:00 UTC  https://example.com/report',
        'entities          m3  2026-03-01 10:00:00 UTC  PostgreSQL',
        'entities          m5  2026-03-01 11:00:00 UTC  Miso',
        'custom_fields     m5  2026-03-01 11:00:00 UTC  constraints.deploy_fridays: Never deploy on Fridays',
      ),
    ))

  it('--as-of shows the facts valid then, --history includes superseded ones', async () => {
    const dark = 'user_preferences  m1  2026-03-01 09:00:00 UTC  theme: dark (until 2026-03-01 12:00:00 UTC)'
    expect(await output('facts', 'acme:ann', '--as-of', '2026-03-01T10:30:00Z')).toBe(
      lines(dark, decision, 'entities          m3  2026-03-01 10:00:00 UTC  PostgreSQL'),
    )
    expect(await output('facts', 'acme:ann', '--as-of', '2026-03-01')).toBe(
      'No facts of acme:ann were known on 2026-03-01.\n',
    )
    const history = (await output('facts', 'acme:ann', '--history')).split('\n')
    expect(history.slice(0, 3)).toEqual([dark, 'user_preferences  m7  2026-03-01 12:00:00 UTC  theme: light', decision])
  })

  it('--json prints complete facts', async () => {
    const { key, items } = await json<{ key: string; items: object[] }>('facts', 'acme:ann')
    expect([key, items.length]).toEqual(['acme:ann', 7])
    const theme = { kind: 'fact', field: 'user_preferences', key: 'theme', value: 'light' }
    expect(items[0]).toMatchObject({ ...theme, at: Date.UTC(2026, 2, 1, 12), sources: [{ message: 'm7' }] })
  })

  it('--record prints facts and summary as one JSON record, with and without --json', async () => {
    const record = await json('facts', 'acme:ann', '--record')
    expect(record).toMatchObject({
      important_data: {
        user_preferences: { theme: 'light' },
        key_decisions: ["Let's go with PostgreSQL for the archive"],
        document_structure: {},
        custom_fields: { constraints: ['Never deploy on Fridays'] },
      },
      summary_version: 1,
      messages_summarized_count: 18,
    })
    const text = await output('facts', 'acme:ann', '--record')
    expect(text.startsWith('{\n  "important_data": {\n')).toBe(true)
    expect(JSON.parse(text)).toEqual(record)
    expect(await json('facts', 'acme:ann', '--record', '--as-of', '2026-03-01T09:30:00Z')).toMatchObject({
      important_data: { user_preferences: { theme: 'dark' }, key_decisions: [] },
      conversation_summary: '',
    })
  })

  it('--clear deletes facts and summaries and keeps messages', async () => {
    copyFileSync(file, join(folder, 'copy.db'))
    const clear = ['facts', 'acme:ann', '--clear', '--yes', '--store', 'sqlite:copy.db']
    expect(await output(...clear)).toBe('Deleted 8 facts and 1 summary of acme:ann. Messages are kept.\n')
    expect(await json(...clear)).toEqual({ key: 'acme:ann', facts: 0, summaries: 0 })
    expect(await json('sessions', 'show', 'acme:ann', '--store', 'sqlite:copy.db')).toMatchObject({
      messages: 20,
      derived: [],
    })
  })

  const unknownSession = 'No session acme:eve. Run threadkeep sessions list to see all sessions.'
  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['facts', 'acme:eve'], unknownSession],
    [
      ['facts', 'acme:ann', '--as-of', 'soon'],
      'as-of is "soon"; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
    ],
    [['facts', 'acme:ann', '--record', '--clear'], '--history, --record and --clear cannot be combined. Choose one.'],
    [
      ['facts', 'acme:ann', '--as-of', '2026-03-01', '--clear'],
      '--as-of cannot be combined with --history or --clear. Choose one.',
    ],
    [
      ['facts', 'acme:ann', '--store', 'sqlite:nowhere.db'],
      'No store at nowhere.db. Start one with threadkeep chat or threadkeep serve, or set its path with --store sqlite:PATH.',
    ],
  ]
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: ${args.join(' ')}`, async () =>
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )

  verifies('S-02', 'invalid input with --json prints the error as JSON', async () => {
    const { code, stdout, stderr } = await run(['facts', 'acme:eve', '--json'])
    expect([code, stdout, JSON.parse(stderr)]).toEqual([
      2,
      '',
      { error: { code: 'bad-option', message: unknownSession, param: 'key' } },
    ])
  })

  it('invalid input deletes nothing', async () =>
    expect(await json('sessions', 'show', 'acme:ann')).toMatchObject({ messages: 20 }))
})
