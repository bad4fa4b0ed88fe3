import { describe, expect, it } from 'vitest'
import { findMatches, findSubject } from '../../src/context/chooseByQuestion.ts'
import type { DerivedEntry, Item } from '../../src/domain/entry.ts'
import type { IndexHit } from '../../src/domain/ports.ts'
import { profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'
import { startTime } from './cases.ts'
import { createMemory, key, putDerived } from './harness.ts'

const hits = (...reasons: readonly IndexHit['why'][]): IndexHit[] =>
  reasons.map((why, at) => ({ key, entry: { id: `k${at}` } as DerivedEntry, score: 1, why }))
const matchesOf = (...reasons: readonly IndexHit['why'][]): string[] =>
  findMatches(hits(...reasons), true).map(({ entry }) => entry.id)

describe('findMatches', () => {
  verifies('K-01', 'returns hits by a word or a related word, and similar ones only beside them', () => {
    expect(matchesOf({ words: 0.4 }, { related: 0.2 }, { nearby: 1 }, { similar: 0.1 })).toEqual(['k0', 'k1', 'k3'])
    expect(matchesOf({ words: 0, related: 0, similar: 0.9 }, { similar: 0.5 })).toEqual([])
    expect(matchesOf()).toEqual([])
    expect(findMatches(hits({ related: 1, similar: 1 }, { words: 1 }), false).map(({ entry }) => entry.id)).toEqual([
      'k1',
    ])
  })

  verifies('K-01', 'returns hits by meaning alone that stand out, whatever the scale of the embedder', () => {
    const byMeaning = (...cosines: readonly number[]) => matchesOf(...cosines.map((meaning) => ({ meaning })))
    expect(byMeaning(0.55, 0.14, 0.1, 0.08, 0.05)).toEqual(['k0'])
    expect(byMeaning(0.88, 0.77, 0.76, 0.75, 0.75)).toEqual(['k0'])
    expect(byMeaning(0.18, 0.14, 0.1, 0.08, 0.05)).toEqual([])
    expect(byMeaning(0.79, 0.77, 0.76, 0.75, 0.75)).toEqual([])
    expect(byMeaning(0.9)).toEqual([])
  })
})

describe('findSubject', () => {
  const cases: readonly (readonly [turn: string, words: string])[] = [
    ['Thank you, bye!', ''],
    ['Thanks, that is all', ''],
    ['ok great, that works', ''],
    ['No, thanks.', ''],
    ['Tschüss!', ''],
    ['Merci, au revoir !', ''],
    ['Hi, when does my parcel arrive?', 'hi when does my parcel arrive'],
    ['No refund yet', 'no refund yet'],
    ['Good morning, the parcel is wet. Have a very nice day', 'the parcel is wet'],
    ['Are you open tomorrow?', 'are you open'],
    [
      'Thanks, but the second parcel that you sent last week is broken',
      'thanks but the second parcel that you sent is broken',
    ],
  ]
  it.each(cases)('%s › %s', (turn, words) =>
    expect(findSubject(turn).toLowerCase().match(/\w+/g)?.join(' ') ?? '').toBe(words),
  )

  it('of a megabyte › is its beginning and end, in no time', () => {
    for (const unit of ['have a ', 'this last next ', 'ok ', 'w'.repeat(99), '\u00a0', ', . ! ']) {
      const turn = `first ${unit.repeat(1_000_000 / unit.length)} last`
      let subject = ''
      const cpuMs = measureCpu(() => {
        subject = findSubject(turn)
      })
      expect([subject.length <= 4_001, cpuMs < 500]).toEqual([true, true])
    }
  })
})

describe('long-term items that do not all fit', () => {
  verifies('K-01', 'come in the order of the question, then of importance', async () => {
    const store = ramStore()
    const memory = createMemory(store, profiles.agent, await exactTokenizer('o200k_base'))
    const subjects = ['harbour', 'orchard', 'violin', 'glacier', 'bakery', 'tunnel', 'lantern', 'pottery']
    const items = subjects.map((subject, at): Item => {
      const content = `The ${subject} is described at some length in this entry, ${'so it takes room, '.repeat(8)}and ends.`
      const rest = { category: 'concept', content, importance: 9 - at, marked: false, sources: [] } as const
      return { kind: 'item', id: `i${at}`, at: startTime, ...rest }
    })
    await memory.append(key, [{ role: 'user', content: 'What do we know about the lantern?' }])
    await putDerived(store, key, items)
    const shownIn = async (budget: number) => {
      const { text } = await memory.context(key, { budget })
      return subjects
        .filter((subject) => text.includes(`The ${subject} is`))
        .sort((a, b) => text.indexOf(`The ${a} is`) - text.indexOf(`The ${b} is`))
    }
    expect((await shownIn(1_600)).slice(0, 2)).toEqual(['lantern', 'harbour'])
    expect((await shownIn(1_600)).length).toBeLessThan(8)
    expect(await shownIn(16_000)).toEqual(subjects)
  })
})
