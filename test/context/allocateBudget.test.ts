import { describe, expect, it } from 'vitest'
import type { BandCandidates } from '../../src/context/claimLimits.ts'
import { formatPromotedId, type Item } from '../../src/domain/entry.ts'
import { verifies } from '../requirements/verifies.ts'
import {
  allocate,
  candidatesOf,
  createBand,
  createSummary,
  createUnit,
  missesOf,
  noPressure,
  shownDerived,
  shownMessages,
} from './allocatorHarness.ts'

const recentBand = createBand('recent', { last: 100 })
/** Units m5 to m1 of 20 tokens each, newest first. */
const units = [5, 4, 3, 2, 1].map((sequence) => createUnit(sequence, 20))

describe('a band', () => {
  verifies(
    'X-01',
    'shows its messages from the newest back, in conversation order, as far as the budget reaches',
    () => {
      const allocation = allocate(100, [candidatesOf(recentBand, units)])
      expect(shownMessages(allocation)).toEqual([
        'm1 whole 20',
        'm2 whole 20',
        'm3 whole 20',
        'm4 whole 20',
        'm5 whole 20',
      ])
      expect([allocation.spentTokens, allocation.misses, allocation.hasSlidingBand]).toEqual([100, [], false])
      const less = allocate(99, [candidatesOf(recentBand, units)])
      expect(shownMessages(less)).toEqual(['m2 whole 20', 'm3 whole 20', 'm4 whole 20', 'm5 whole 20'])
      expect([less.spentTokens, missesOf(less)]).toEqual([80, ['1–1 too-long']])
    },
  )

  verifies('K-02', 'stops at the first message that does not fit, and reports the others after it', () => {
    const [five, four] = [createUnit(5, 20), createUnit(4, 90)]
    const allocation = allocate(100, [candidatesOf(recentBand, [five, four, ...units.slice(2)])])
    expect(shownMessages(allocation)).toEqual(['m5 whole 20'])
    expect(missesOf(allocation)).toEqual(['4–4 too-long', '1–3 after-miss'])
  })

  verifies('K-02', 'with maxMisses › passes over that many messages', () => {
    const long = [createUnit(5, 20), createUnit(4, 90), createUnit(3, 91), createUnit(2, 20), createUnit(1, 20)]
    const shown = (maxMisses: number) => {
      const allocation = allocate(100, [candidatesOf({ ...recentBand, maxMisses }, long)])
      return [shownMessages(allocation).length, missesOf(allocation)]
    }
    expect(shown(1)).toEqual([1, ['4–4 too-long', '3–3 too-long', '1–2 after-miss']])
    expect(shown(2)).toEqual([3, ['4–4 too-long', '3–3 too-long']])
  })

  verifies('K-02', 'tells whether the budget, its own limit or the length was the cause', () => {
    expect(missesOf(allocate(45, [candidatesOf(recentBand, units)]))).toEqual(['3–3 budget-used', '1–2 budget-used'])
    expect(missesOf(allocate(46, [candidatesOf(recentBand, units)]))).toEqual(['3–3 too-long', '1–2 after-miss'])
    const limited = { ...recentBand, maxTokens: 50 }
    expect(missesOf(allocate(100, [candidatesOf(limited, units)]))).toEqual(['3–3 band-limit', '1–2 band-limit'])
    const early = { ...recentBand, renderings: [{ as: 'whole' as const, upTo: 0.5 }] }
    expect(missesOf(allocate(100, [candidatesOf(early, units)]))).toEqual(['3–3 band-limit', '1–2 band-limit'])
    const tail = createBand('tail', { tail: {} as never }, { renderings: [{ as: 'whole' }] })
    const share = allocate(100, [candidatesOf(tail, [...units, createUnit(0, 2)], { limit: 50 })])
    expect(missesOf(share)).toEqual(['3–3 tail-share', '0–2 tail-share'])
    const narrow = allocate(100, [candidatesOf({ ...tail, maxTokens: 45 }, units, { limit: 50 })])
    expect(missesOf(narrow)).toEqual(['3–3 band-limit', '1–2 band-limit'])
  })

  verifies('X-01', 'uses the first rendering that fits, and none beyond its share of the budget', () => {
    const band = {
      ...recentBand,
      renderings: [
        { as: 'whole', upTo: 0.4 },
        { as: 'squeeze', upTo: 0.6 },
        { as: 'clip', characters: 6 },
      ] as const,
    }
    expect(shownMessages(allocate(100, [candidatesOf(band, units)]))).toEqual([
      'm1 clip 6',
      'm2 squeeze 10',
      'm3 squeeze 10',
      'm4 whole 20',
      'm5 whole 20',
    ])
  })

  verifies('X-01', 'begins nothing in fewer than six tokens', () => {
    const fit = { ...recentBand, renderings: [{ as: 'fit' }] as const }
    expect(shownMessages(allocate(45, [candidatesOf(fit, units)]))).toEqual(['m4 fit 20', 'm5 fit 20'])
    expect(shownMessages(allocate(46, [candidatesOf(fit, units)]))).toEqual(['m3 fit 6', 'm4 fit 20', 'm5 fit 20'])
  })

  verifies('A-08', 'shortens the messages that the optimizer marked, even if they fit', () => {
    const band = { ...recentBand, renderings: [{ as: 'whole' }, { as: 'squeeze' }] as const }
    const marked = candidatesOf(band, units.slice(0, 3), { shortenedRuns: [[4, 4]] })
    expect(shownMessages(allocate(100, [marked]))).toEqual(['m3 whole 20', 'm4 squeeze 10', 'm5 whole 20'])
    expect(
      shownMessages(allocate(100, [candidatesOf(recentBand, units.slice(0, 2), { shortenedRuns: [[4, 4]] })])),
    ).toEqual(['m4 whole 20', 'm5 whole 20'])
  })

  verifies('X-01', 'does not show messages that another band shows, and none that cannot be sent', () => {
    const faulty = { ...createUnit(3, 20), fault: 'tool result without its call' as const }
    const first = createBand('first', { first: 2 }, { renderAs: 'block' })
    const allocation = allocate(100, [
      candidatesOf(first, [createUnit(1, 20), createUnit(2, 20)]),
      candidatesOf(recentBand, [createUnit(5, 20), createUnit(4, 20), faulty, createUnit(2, 20), createUnit(1, 20)]),
    ])
    expect(allocation.messages.map(({ unit, band }) => `${unit.messages[0]?.id} ${band?.name}`)).toEqual([
      'm1 first',
      'm2 first',
      'm4 recent',
      'm5 recent',
    ])
    expect([allocation.spentTokens, allocation.misses]).toEqual([80, []])
    const noRoom = allocate(30, [candidatesOf(first, [createUnit(1, 20), createUnit(2, 20), createUnit(3, 20)])])
    expect(missesOf(noRoom)).toEqual(['2–2 too-long', '3–3 after-miss'])
  })

  verifies('X-01', 'with a share › is filled to it first, and then with what the other bands leave', () => {
    const shared = candidatesOf({ ...recentBand, share: 0.4 }, units)
    const facts = (tokens: number): BandCandidates =>
      candidatesOf(createBand('facts', { kind: 'summary' }, { renderAs: 'block' }), [], {
        derived: [createSummary('s1', tokens)],
      })
    expect(shownMessages(allocate(100, [shared, facts(60)]))).toEqual(['m4 whole 20', 'm5 whole 20'])
    const rest = allocate(100, [shared, facts(40)])
    expect([shownMessages(rest).length, shownDerived(rest), rest.spentTokens]).toEqual([3, ['s1 whole 40'], 100])
    expect(missesOf(rest)).toEqual(['2–2 budget-used', '1–1 budget-used'])
  })

  verifies('X-01', 'with messages and entries of its own › counts both against its limit', () => {
    const band = createBand('both', { kind: 'summary' }, { maxTokens: 50 })
    const allocation = allocate(100, [
      candidatesOf(band, [createUnit(2, 20)], { derived: [createSummary('s1', 20), createSummary('s2', 20)] }),
    ])
    expect([shownMessages(allocation), shownDerived(allocation)]).toEqual([['m2 whole 20'], ['s1 whole 20']])
    expect(missesOf(allocation)).toEqual(['s2 band-limit'])
  })
})

describe('derived entries', () => {
  const summaries = createBand('summaries', { kind: 'summary' }, { renderAs: 'block' })
  const entries = (...tokens: readonly number[]) => ({
    derived: tokens.map((cost, at) => createSummary(`s${at + 1}`, cost)),
  })

  verifies('K-02', 'that do not fit are reported, and those after it are not tried', () => {
    const allocation = allocate(100, [candidatesOf(summaries, [], entries(60, 50, 30))])
    expect([shownDerived(allocation), missesOf(allocation)]).toEqual([['s1 whole 60'], ['s2 too-long']])
    const patient = allocate(100, [candidatesOf({ ...summaries, maxMisses: 1 }, [], entries(60, 50, 30))])
    expect([shownDerived(patient), missesOf(patient)]).toEqual([['s1 whole 60', 's3 whole 30'], ['s2 too-long']])
    expect(missesOf(allocate(100, [candidatesOf(summaries, [], entries(0))]))).toEqual(['s1 empty'])
  })

  verifies(
    'X-01',
    'that can be shortened › get equal parts if they do not all fit, and unused parts are passed on',
    () => {
      const band = { ...summaries, renderings: [{ as: 'whole' }, { as: 'sections' }] as const }
      expect(shownDerived(allocate(90, [candidatesOf(band, [], entries(100, 100, 100))]))).toEqual([
        's1 sections 30',
        's2 sections 30',
        's3 sections 30',
      ])
      expect(shownDerived(allocate(90, [candidatesOf(band, [], entries(10, 100, 100))]))).toEqual([
        's1 whole 10',
        's2 sections 40',
        's3 sections 40',
      ])
      expect(shownDerived(allocate(90, [candidatesOf(band, [], entries(10, 60, 20))]))).toEqual([
        's1 whole 10',
        's2 whole 60',
        's3 whole 20',
      ])
      const limited = allocate(200, [candidatesOf({ ...band, maxTokens: 60 }, [], entries(100, 100))])
      expect(shownDerived(limited)).toEqual(['s1 sections 30', 's2 sections 30'])
      expect(shownDerived(allocate(90, [candidatesOf(summaries, [], entries(80, 20))]))).toEqual(['s1 whole 80'])
    },
  )

  verifies('X-01', 'in two bands › are shown once', () => {
    const shared = entries(20)
    const allocation = allocate(100, [
      candidatesOf(summaries, [], shared),
      candidatesOf({ ...summaries, name: 'again' }, [], shared),
    ])
    expect([shownDerived(allocation), allocation.misses, allocation.spentTokens]).toEqual([['s1 whole 20'], [], 20])
  })

  verifies('T-13', 'of files › come last and share the limit of the band with the same name', () => {
    const knowledge = createBand('knowledge', { kind: 'summary' }, { renderAs: 'block', maxTokens: 50 })
    const passages = candidatesOf({ ...knowledge, maxMisses: 4 }, [], {
      derived: [createSummary('file', 40), createSummary('note', 20)],
    })
    const bands = [candidatesOf(knowledge, [], entries(30)), candidatesOf(recentBand, units.slice(0, 2))]
    const allocation = allocate(100, bands, { passages })
    expect([shownDerived(allocation), missesOf(allocation)]).toEqual([
      ['s1 whole 30', 'note whole 20'],
      ['file band-limit'],
    ])
    expect(shownDerived(allocate(80, bands, { passages }))).toEqual(['s1 whole 30'])
    expect(shownDerived(allocate(100, bands.slice(1), { passages }))).toEqual(['file whole 40'])
  })
})

describe('overheads', () => {
  const block = createBand('block', { kind: 'summary' }, { renderAs: 'block' })
  const volatileBlock = createBand('volatile', { kind: 'summary' }, { renderAs: 'block', volatile: true })
  const overheads = {
    reply: { name: 'reply', tokens: 1 },
    stable: { name: 'stable', tokens: 2 },
    volatile: { name: 'volatile', tokens: 4 },
    headings: new Map([
      [block, { name: 'block heading', tokens: 8 }],
      [recentBand, { name: 'recent heading', tokens: 16 }],
    ]),
  }
  const entry = (id: string) => ({ derived: [createSummary(id, 20), createSummary(`${id}b`, 20)] })

  verifies('X-01', 'are charged once, with the first entry that needs them, and counted in the budget', () => {
    const spent = (...bands: BandCandidates[]) => {
      const { overheadTokens, spentTokens } = allocate(1_000, bands, { overheads })
      return [overheadTokens, spentTokens]
    }
    expect(spent(candidatesOf(block, [], entry('s1')))).toEqual([11, 51])
    expect(spent(candidatesOf(volatileBlock, [], entry('s1')))).toEqual([5, 45])
    expect(spent(candidatesOf(recentBand, units.slice(0, 2)))).toEqual([17, 57])
    expect(
      spent(
        candidatesOf(block, [], entry('s1')),
        candidatesOf(recentBand, units.slice(0, 2)),
        candidatesOf(volatileBlock, [], entry('s2')),
      ),
    ).toEqual([31, 151])
    expect(spent(candidatesOf(block, []))).toEqual([0, 0])
  })

  verifies('X-01', 'leave no entry without room for them', () => {
    const one = { derived: [createSummary('s1', 20)] }
    expect(shownDerived(allocate(31, [candidatesOf(block, [], one)], { overheads }))).toEqual(['s1 whole 20'])
    const none = allocate(30, [candidatesOf(block, [], one)], { overheads })
    expect([none.derived, none.spentTokens, missesOf(none)]).toEqual([[], 0, ['s1 too-long']])
    expect(missesOf(allocate(16, [candidatesOf(block, [], one)], { overheads }))).toEqual(['s1 budget-used'])
    expect(missesOf(allocate(17, [candidatesOf(block, [], one)], { overheads }))).toEqual(['s1 too-long'])
    const limited = candidatesOf({ ...block, maxTokens: 40 }, [], entry('s1'))
    const heading = new Map([[limited.band, { name: 'heading', tokens: 8 }]])
    expect(shownDerived(allocate(99, [limited], { overheads: { ...overheads, headings: heading } }))).toEqual([
      's1 whole 20',
    ])
  })

  verifies('X-01', 'of recalled messages › include one line per day', () => {
    const recalled = createBand('recalled', { recalled: { limit: 9 } }, { renderAs: 'block', volatile: true })
    const dayLine = (at: number) => ({ text: `Day ${at}`, tokens: 3 })
    const found = [3, 2, 1].map((sequence) => createUnit(sequence, 20, { at: sequence === 1 ? 7 : 8 }))
    const allocation = allocate(1_000, [candidatesOf(recalled, found)], { overheads: { ...overheads, dayLine } })
    expect(allocation.overheadTokens).toBe(1 + 4 + 3 + 3)
    expect(allocation.messages.map(({ dayLine: line }) => line)).toEqual(['Day 7', 'Day 8', 'Day 8'])
    const recent = allocate(1_000, [candidatesOf(recentBand, found)], { overheads: { ...overheads, dayLine } })
    expect(recent.messages.map(({ dayLine: line }) => line)).toEqual(['', '', ''])
  })
})

describe('recalled messages', () => {
  const recalled = createBand('recalled', { recalled: { limit: 9 } }, { renderAs: 'block', maxMisses: 9 })
  const passage = (sequence: number, start: number, end: number) => ({
    ...createUnit(sequence, 100),
    passage: [start * 5, end * 5] as const,
  })

  verifies('X-01', 'are shown as passages, joined per message, each passage once', () => {
    const allocation = allocate(200, [
      candidatesOf(recalled, [passage(2, 10, 30), passage(2, 50, 60), passage(2, 10, 30), passage(1, 0, 5)]),
    ])
    expect(shownMessages(allocation)).toEqual(['m1 passages 5', 'm2 passages 30'])
    expect([allocation.spentTokens, allocation.missedRecall]).toEqual([35, false])
  })

  verifies('X-01', 'are not shown as passages if the message is shown, and the message not if a passage is', () => {
    const whole = candidatesOf(recentBand, [createUnit(2, 20)])
    expect(shownMessages(allocate(200, [whole, candidatesOf(recalled, [passage(2, 0, 10)])]))).toEqual(['m2 whole 20'])
    expect(shownMessages(allocate(200, [candidatesOf(recalled, [passage(2, 0, 10), createUnit(2, 20)])]))).toEqual([
      'm2 passages 10',
    ])
  })

  verifies('K-02', 'that do not fit › are reported only if too long; the best is begun if there is room', () => {
    const allocation = allocate(100, [
      candidatesOf(recalled, [passage(5, 0, 60), passage(4, 0, 90), passage(3, 0, 80), passage(2, 0, 4)]),
    ])
    expect(shownMessages(allocation)).toEqual(['m2 passages 4', 'm4 passages 36', 'm5 passages 60'])
    expect([missesOf(allocation), allocation.missedRecall]).toEqual([['4–4 too-long', '3–3 too-long'], true])
    const small = allocate(94, [candidatesOf(recalled, [passage(5, 0, 60), passage(4, 0, 90), passage(2, 0, 5)])])
    expect(shownMessages(small)).toEqual(['m2 passages 5', 'm5 passages 60'])
  })

  verifies('K-02', 'that are begun › take the room of the band or the budget, whichever is less', () => {
    const found = [passage(5, 0, 60), passage(4, 0, 90)]
    const begun = (budget: number, ...bands: readonly BandCandidates[]) => {
      const { messages, missedRecall } = allocate(budget, bands)
      const [first] = messages.filter(({ unit }) => unit.messages[0]?.id === 'm4')
      return [first?.rendering.tokens, missedRecall]
    }
    expect(begun(200, candidatesOf({ ...recalled, maxTokens: 100 }, found))).toEqual([40, true])
    const recent = candidatesOf(recentBand, [createUnit(6, 20)])
    expect(begun(120, recent, candidatesOf(recalled, found))).toEqual([40, true])
    expect(begun(110, recent, candidatesOf(recalled, found))).toEqual([30, true])
    expect(begun(109, recent, candidatesOf(recalled, found))).toEqual([undefined, true])
  })

  verifies('K-02', 'of work sessions are shown as excerpts', () => {
    const excerpt = { ...createUnit(1, 100), excerpt: 'x'.repeat(40) }
    expect(shownMessages(allocate(50, [candidatesOf(recalled, [excerpt])]))).toEqual(['m1 passages 40'])
    expect(shownMessages(allocate(39, [candidatesOf(recalled, [excerpt])]))).toEqual([])
  })

  it('missedRecall › is false if only another band lacks room', () => {
    const allocation = allocate(30, [candidatesOf(recentBand, units), candidatesOf(recalled, [])])
    expect([allocation.misses.length, allocation.missedRecall]).toEqual([2, false])
  })
})

describe('messages that the optimizer promoted or dropped', () => {
  const rest = createBand('rest', { rest: true })
  const item: Item = {
    kind: 'item',
    id: formatPromotedId('m2'),
    ...{ at: 1, category: 'data', content: 'x', importance: 5, marked: false, sources: [], version: 10 },
  } as unknown as Item
  const items = candidatesOf(createBand('items', { kind: 'item' }, { renderAs: 'block' }), [], { derived: [item] })
  const all = [3, 2, 1].map((sequence) => createUnit(sequence, 20))
  const shown = (pressure: object, bands = [items, candidatesOf(rest, all)]) =>
    shownMessages(allocate(200, bands, { pressure: { ...noPressure, ...pressure } })).map((text) => text.slice(0, 2))

  verifies('A-08', 'are not shown again where the item is shown', () => {
    expect(shown({ promoted: [[2, 2]] })).toEqual(['m1', 'm3'])
    expect(shown({ promoted: [[2, 2]], dropped: [[1, 1]] })).toEqual(['m3'])
    expect(shown({ promoted: [[1, 2]] })).toEqual(['m1', 'm3'])
    expect(shown({})).toEqual(['m1', 'm2', 'm3'])
    expect(shown({ promoted: [[2, 2]] }, [candidatesOf(rest, all)])).toEqual(['m1', 'm2', 'm3'])
    expect(shown({ promoted: [[2, 2]] }, [items, candidatesOf(recentBand, all)])).toEqual(['m1', 'm2', 'm3'])
  })
})

describe('a tail that is a share of the budget', () => {
  const tail = createBand('tail', { tail: {} as never }, { renderings: [{ as: 'whole' }] })

  verifies('K-02', 'shows the end of its oldest message, and more of it if nothing else uses the room', () => {
    const sliding = allocate(60, [candidatesOf(tail, units.slice(0, 3), { limit: 50 })])
    expect(shownMessages(sliding)).toEqual(['m3 end 10', 'm4 whole 20', 'm5 whole 20'])
    expect([sliding.hasSlidingBand, sliding.spentTokens]).toEqual([true, 50])
    const long = [createUnit(5, 20), createUnit(4, 90)]
    const alone = allocate(100, [candidatesOf(tail, long, { limit: 50 })])
    expect([shownMessages(alone), alone.spentTokens]).toEqual([['m4 end 80', 'm5 whole 20'], 100])
    expect(shownMessages(allocate(79, [candidatesOf(tail, long, { limit: 50 })]))).toEqual(['m4 end 30', 'm5 whole 20'])
    expect(shownMessages(allocate(80, [candidatesOf(tail, long, { limit: 50 })]))).toEqual(['m4 end 60', 'm5 whole 20'])
    expect(shownMessages(allocate(100, [candidatesOf(tail, long)]))).toEqual(['m5 whole 20'])
  })

  verifies('K-02', 'keeps the form of its band for a message that gets more room', () => {
    const forms = (renderAs: 'turns' | 'block') => {
      const long = [createUnit(5, 20), createUnit(4, 90)]
      const { messages } = allocate(100, [candidatesOf({ ...tail, renderAs }, long, { limit: 50 })])
      return messages.map(({ rendering: { text } }) => text)
    }
    const [turns, block] = [forms('turns'), forms('block')]
    expect([turns[0] === turns[1], block[0] === block[1], turns[0] === block[0]]).toEqual([true, true, false])
  })

  it('beside a band without a limit › makes the context slide', () => {
    const bands = [candidatesOf(tail, units.slice(0, 1), { limit: 50 }), candidatesOf(recentBand, units.slice(1))]
    expect(allocate(100, bands).hasSlidingBand).toBe(true)
  })

  it('does not lengthen a stable band', () => {
    const fit = { ...recentBand, maxTokens: 50, renderings: [{ as: 'fit' }] as const }
    const long = [createUnit(5, 20), createUnit(4, 90)]
    expect(shownMessages(allocate(100, [candidatesOf(fit, long)]))).toEqual(['m4 fit 30', 'm5 fit 20'])
    const shared = { ...fit, share: 1 }
    expect(shownMessages(allocate(100, [candidatesOf(shared, long)]))).toEqual(['m4 fit 80', 'm5 fit 20'])
    const squeezed = { ...shared, renderings: [{ as: 'clip', characters: 30 }] as const }
    expect(shownMessages(allocate(100, [candidatesOf(squeezed, long)]))).toEqual(['m4 clip 30', 'm5 clip 20'])
  })
})
