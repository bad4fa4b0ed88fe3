import { describe, expect, it } from 'vitest'
import { formatKey, parseKey } from '../../src/domain/key.ts'
import type { SessionListItem } from '../../src/domain/session.ts'
import { listInPages } from '../../src/stores/listInPages.ts'

const items = Array.from(
  { length: 1_203 },
  (_, index): SessionListItem => ({
    key: parseKey(`acme:s${String(index).padStart(4, '0')}`),
    startedAt: 1,
    touchedAt: 1,
    expiresAt: 9,
    messages: 0,
    metadata: { even: index % 2 === 0 },
  }),
)

describe('listInPages', () => {
  it.each([
    ['of all sessions', undefined, Number.MAX_SAFE_INTEGER, items],
    ['of some', undefined, 600, items.slice(0, 600)],
    ['of few', undefined, 3, items.slice(0, 3)],
    ['of those with metadata', { even: true }, 500, items.filter((_, index) => index % 2 === 0).slice(0, 500)],
  ])('%s › reads at most 250 at a time, each once', async (_, metadata, limit, expected) => {
    const sizes: number[] = []
    const found = await listInPages({ limit, ...(metadata && { metadata }) }, async ({ after = '', limit: most }) => {
      const page = items.filter(({ key }) => formatKey(key) > after).slice(0, most)
      sizes.push(page.length)
      return page
    })
    expect(found).toEqual(expected)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(250)
  })
})
