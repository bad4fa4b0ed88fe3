import { describe, expect, it } from 'vitest'
import type { Fact, Json, Summary } from '../../src/domain/entry.ts'
import { buildRecord } from '../../src/upkeep/record.ts'
import { verifies } from '../requirements/verifies.ts'

const fact = (field: string, key: string, value: Json, more: Partial<Fact> = {}): Fact => ({
  kind: 'fact',
  id: `${field}.${key}`,
  at: 1,
  field,
  key,
  value,
  importance: 8,
  sources: [{ message: 'm1', span: [0, 4] }],
  ...more,
})
const summary = (version: number, covers: readonly [number, number], more: Partial<Summary> = {}): Summary => ({
  kind: 'summary',
  id: `s${version}`,
  at: Date.UTC(2024, 0, version),
  tier: 'progressive',
  text: `version ${version}`,
  covers,
  endOffset: 0,
  version,
  by: 'builtin',
  sources: [],
  lossyRanges: [],
  ...more,
})

describe('buildRecord', () => {
  verifies('C-04', 'for an empty session returns the empty structure', () =>
    expect(buildRecord([])).toEqual({
      important_data: {
        user_preferences: {},
        key_decisions: [],
        important_facts: [],
        source_urls: [],
        document_structure: {},
        entities: [],
        custom_fields: {},
      },
      conversation_summary: '',
      summary_version: 0,
      last_summarized_at: null,
      messages_summarized_count: 0,
      last_keep_window_index: 0,
    }),
  )
  verifies('C-04', 'returns the facts, the newest progressive summary and exactly the documented fields', () => {
    const record = buildRecord([
      fact('user_preferences', 'theme', 'dark'),
      fact('source_urls', '', 'https://b.example', { id: 'u2', at: 2 }),
      fact('source_urls', '', 'https://a.example', { id: 'u1', at: 1 }),
      summary(2, [1, 14]),
      summary(1, [1, 10]),
      summary(9, [1, 99], { tier: 'session' }),
    ])
    expect(record).toEqual({
      important_data: {
        user_preferences: { theme: 'dark' },
        key_decisions: [],
        important_facts: [],
        source_urls: ['https://a.example', 'https://b.example'],
        document_structure: {},
        entities: [],
        custom_fields: {},
      },
      conversation_summary: 'version 2',
      summary_version: 2,
      last_summarized_at: '2024-01-02T00:00:00.000Z',
      messages_summarized_count: 14,
      last_keep_window_index: 14,
    })
  })
  verifies(['C-04', 'X-10'], 'with asOf returns the values and the summary of that time', () => {
    const derived = [
      fact('user_preferences', 'theme', 'dark', { id: 'f1', until: Date.UTC(2024, 0, 2) }),
      fact('user_preferences', 'theme', 'light', { id: 'f2', at: Date.UTC(2024, 0, 2), supersedes: 'f1' }),
      summary(1, [1, 10]),
      summary(2, [1, 14]),
    ]
    expect(buildRecord(derived)).toMatchObject({
      important_data: { user_preferences: { theme: 'light' } },
      summary_version: 2,
    })
    expect(buildRecord(derived, Date.UTC(2024, 0, 1, 12))).toMatchObject({
      important_data: { user_preferences: { theme: 'dark' } },
      summary_version: 1,
    })
  })
  it('groups constraints into one list', () =>
    expect(
      buildRecord([
        fact('custom_fields', 'constraints.deploy', 'never deploy on Fridays'),
        fact('custom_fields', 'constraints.jquery', "don't use jQuery", { at: 2 }),
        fact('custom_fields', 'pet', 'Miso'),
      ]).important_data.custom_fields,
    ).toEqual({ constraints: ['never deploy on Fridays', "don't use jQuery"], pet: 'Miso' }))
  verifies('C-06', 'with a key __proto__ stores data and changes no prototype', () => {
    const { user_preferences } = buildRecord([
      fact('user_preferences', '__proto__', { isAdmin: true }),
      fact('__proto__', 'x', 'y'),
    ]).important_data
    expect(Object.keys(user_preferences)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(user_preferences)).toBe(null)
    expect(user_preferences.isAdmin).toBeUndefined()
    expect(({} as Record<string, unknown>).x).toBeUndefined()
  })
  it('with a time outside the range of Date returns null', () =>
    expect(buildRecord([summary(1, [1, 2], { at: Number.NaN })]).last_summarized_at).toBe(null))
})
