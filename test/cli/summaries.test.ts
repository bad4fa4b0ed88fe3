import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp } from './cliHarness.ts'
import { addChat, addOrders } from './sampleSessions.ts'

const { folder, run, output, json } = createCliHarness('summaries')

beforeAll(async () => {
  const store = `sqlite:${join(folder, 'threadkeep.db')}`
  await addChat(store)
  await addOrders(store)
})

type Items<T> = { readonly items: readonly T[] }
type SummaryLosses = {
  readonly summary: string
  readonly losses: readonly {
    readonly kind: string
    readonly text: string
    readonly source: { readonly message: string }
  }[]
}

describe('threadkeep summaries', () => {
  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await output('summaries', '--help'), 'summaries'),
  )

  it('lists tier, version, author, messages and words', async () => {
    const [summary] = (await json<Items<{ text: string }>>('summaries', 'acme:ann')).items
    expect(summary).toMatchObject({ tier: 'progressive', version: 1, by: 'builtin', covers: [1, 18] })
    const text = summary?.text ?? ''
    const line = `progressive  version 1  by builtin  m1–m18  ${text.split(/\s+/).length} words  ${text.replaceAll('\n', ' ')}\n`
    expect(await output('summaries', 'acme:ann')).toBe(line)
  })

  it('--lost lists omitted details with their message', async () => {
    const [summary] = (await json<Items<{ id: string; text: string }>>('summaries', 'shop:eve')).items
    const [lost] = (await json<Items<SummaryLosses>>('summaries', 'shop:eve', '--lost')).items
    expect(lost?.summary).toBe(summary?.id)
    const parcels = lost?.losses.filter(({ kind, text }) => kind === 'number' && /^1\d{4}$/.test(text)) ?? []
    expect(parcels.length).toBeGreaterThan(0)
    const printed = (await output('summaries', 'shop:eve', '--lost')).split('\n')
    for (const { text, source } of parcels) {
      expect(summary?.text).not.toMatch(new RegExp(`\\b${text}\\b`))
      expect(source.message).toBe(`m${Math.floor((Number(text) - 10_000) / 100) + 1}`)
      expect(printed).toContain(`${source.message.padEnd(3)}  number  ${text}`)
    }
  })

  it('--lost with a complete summary reports no losses', async () =>
    expect(await output('summaries', 'shop:kim', '--lost')).toBe('No losses.\n'))

  verifies('S-02', 'an unknown session prints one line and exits with 2: summaries acme:eve', async () =>
    expect(await run(['summaries', 'acme:eve'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'threadkeep: No session acme:eve. Run threadkeep sessions list to see all sessions.\n',
    }),
  )
})
