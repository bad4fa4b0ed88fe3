import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import {
  allocate,
  candidatesOf,
  createBand,
  createUnit,
  missesOf,
  noPressure,
  shownMessages,
} from './allocatorHarness.ts'

const recentBand = createBand('recent', { last: 100 })
const seedBand = createBand('seed', { first: 1 }, { renderAs: 'block' })
const reasons = ({ messages }: ReturnType<typeof allocate>): readonly string[] =>
  messages.map(({ unit, reason, band }) => `${unit.messages[0]?.id} ${reason} ${band?.name ?? '-'}`)

describe('the newest turn', () => {
  verifies('X-01', 'is shown before anything else, whole, squeezed or cut to the budget', () => {
    const show = (tokens: number, budget = 100) =>
      shownMessages(
        allocate(budget, [candidatesOf(recentBand, [createUnit(2, tokens), createUnit(1, 10)])], {
          newestTurn: createUnit(2, tokens),
        }),
      )
    expect(show(90)).toEqual(['m1 whole 10', 'm2 whole 90'])
    expect(show(100)).toEqual(['m2 whole 100'])
    expect(show(180)).toEqual(['m1 whole 10', 'm2 squeeze 90'])
    expect(show(201)).toEqual(['m2 fit 100'])
    expect(show(50, 20)).toEqual(['m2 fit 20'])
  })

  verifies('X-01', 'that cannot be shown in any form is an error that names the smallest budget', () => {
    const newestTurn = createUnit(1, 50)
    const overheads = { reply: { name: 'reply', tokens: 3 } }
    expect(() => allocate(8, [], { newestTurn, overheads })).toThrow(
      expect.objectContaining({ code: 'budget-too-small', param: 'budget', minimum: 9 }),
    )
    expect(shownMessages(allocate(9, [], { newestTurn, overheads }))).toEqual(['m1 fit 6'])
    expect(shownMessages(allocate(8, [], { newestTurn: createUnit(1, 5), overheads }))).toEqual(['m1 whole 5'])
    expect(() => allocate(7, [], { newestTurn: createUnit(1, 5), overheads })).toThrow('Use at least 8.')
  })

  verifies('X-01', 'leaves out its heading rather than itself', () => {
    const newestTurn = createUnit(1, 50)
    const overheads = {
      reply: { name: 'reply', tokens: 3 },
      headings: new Map([[recentBand, { name: 'h', tokens: 10 }]]),
    }
    const show = (budget: number) => {
      const allocation = allocate(budget, [candidatesOf(recentBand, [newestTurn])], { newestTurn, overheads })
      return [...shownMessages(allocation), allocation.overheadTokens, ...reasons(allocation)]
    }
    expect(show(63)).toEqual(['m1 whole 50', 13, 'm1 newest recent'])
    expect(show(19)).toEqual(['m1 fit 6', 13, 'm1 newest recent'])
    expect(show(18)).toEqual(['m1 fit 15', 3, 'm1 newest -'])
  })

  verifies('E-08', 'leaves up to a quarter of the budget for the first messages', () => {
    const show = (seedTokens: number, budget = 100) => {
      const seed = { ...seedBand, renderings: [{ as: 'whole' }, { as: 'fit' }] as const }
      const allocation = allocate(budget, [candidatesOf(seed, [createUnit(1, seedTokens)])], {
        newestTurn: createUnit(2, 500),
      })
      return shownMessages(allocation)
    }
    expect(show(10)).toEqual(['m1 whole 10', 'm2 fit 90'])
    expect(show(25)).toEqual(['m1 whole 25', 'm2 fit 75'])
    expect(show(60)).toEqual(['m1 fit 25', 'm2 fit 75'])
  })

  verifies('E-08', 'reserves nothing for a first message that it is itself, or that cannot be sent', () => {
    const turn = createUnit(1, 500)
    expect(shownMessages(allocate(100, [candidatesOf(seedBand, [turn])], { newestTurn: turn }))).toEqual(['m1 fit 100'])
    const faulty = { ...createUnit(1, 20), fault: 'empty message' as const }
    expect(
      shownMessages(allocate(100, [candidatesOf(seedBand, [faulty])], { newestTurn: createUnit(2, 500) })),
    ).toEqual(['m2 fit 100'])
    expect(
      shownMessages(allocate(100, [candidatesOf(recentBand, [createUnit(1, 20)])], { newestTurn: createUnit(2, 500) })),
    ).toEqual(['m2 fit 100'])
  })

  verifies('E-08', 'reserves the overhead of the first message too', () => {
    const overheads = {
      stable: { name: 'stable', tokens: 5 },
      headings: new Map([[seedBand, { name: 'h', tokens: 4 }]]),
    }
    const allocation = allocate(100, [candidatesOf(seedBand, [createUnit(1, 10)])], {
      newestTurn: createUnit(2, 500),
      overheads,
    })
    expect([shownMessages(allocation), allocation.spentTokens]).toEqual([['m1 whole 10', 'm2 fit 81'], 100])
  })
})

describe('messages after the newest turn', () => {
  verifies('X-01', 'are shown whole from the newest back; the newest is shortened rather than left out', () => {
    const show = (budget: number, ...tokens: readonly number[]) =>
      shownMessages(
        allocate(budget, [], {
          newestTurn: createUnit(1, 20),
          sinceNewestTurn: tokens.map((cost, at) => createUnit(at + 2, cost, { role: 'assistant' })),
        }),
      )
    expect(show(100, 30, 30, 20)).toEqual(['m1 whole 20', 'm2 whole 30', 'm3 whole 30', 'm4 whole 20'])
    expect(show(99, 30, 30, 20)).toEqual(['m1 whole 20', 'm3 whole 30', 'm4 whole 20'])
    expect(show(60, 10, 50, 30)).toEqual(['m1 whole 20', 'm2 whole 10', 'm4 whole 30'])
    expect(show(60, 10, 90)).toEqual(['m1 whole 20', 'm3 fit 40'])
    expect(show(70, 10, 90)).toEqual(['m1 whole 20', 'm3 squeeze 45'])
  })

  verifies(
    'X-01',
    'get up to a quarter of the budget before the newest turn, as much as the newest of them needs',
    () => {
      const show = (tokens: number) =>
        shownMessages(allocate(100, [], { newestTurn: createUnit(1, 500), sinceNewestTurn: [createUnit(2, tokens)] }))
      expect(show(10)).toEqual(['m1 fit 90', 'm2 whole 10'])
      expect(show(40)).toEqual(['m1 fit 75', 'm2 squeeze 20'])
      expect(show(80)).toEqual(['m1 fit 75', 'm2 fit 25'])
      const faulty = { ...createUnit(3, 10), fault: 'tool result without its call' as const }
      const allocation = allocate(100, [], {
        newestTurn: createUnit(1, 500),
        sinceNewestTurn: [createUnit(2, 15), faulty],
      })
      expect(shownMessages(allocation)[0]).toBe('m1 fit 85')
    },
  )

  verifies('E-08', 'leave room for the first messages, except the newest of them', () => {
    const bands = [candidatesOf(seedBand, [createUnit(1, 20)])]
    const input = { newestTurn: createUnit(2, 20), sinceNewestTurn: [createUnit(3, 30), createUnit(4, 30)] }
    expect(shownMessages(allocate(100, bands, input))).toEqual([
      'm1 whole 20',
      'm2 whole 20',
      'm3 whole 30',
      'm4 whole 30',
    ])
    expect(shownMessages(allocate(95, bands, input))).toEqual(['m1 whole 20', 'm2 whole 20', 'm4 whole 30'])
  })

  verifies('E-06', 'in a band that shows a block › are rendered as the band says, and not before the turn', () => {
    const block = createBand('block', { last: 9 }, { renderAs: 'block', renderings: [{ as: 'clip', characters: 7 }] })
    const since = [createUnit(3, 30), createUnit(4, 30)]
    const bands = [candidatesOf(block, [...since.toReversed(), createUnit(1, 30)])]
    const allocation = allocate(100, bands, { newestTurn: createUnit(2, 20), sinceNewestTurn: since })
    expect(shownMessages(allocation)).toEqual(['m1 clip 7', 'm2 whole 20', 'm3 clip 7', 'm4 clip 7'])
    expect(reasons(allocation)).toEqual(['m1 band block', 'm2 newest -', 'm3 since block', 'm4 since block'])
  })

  verifies('E-06', 'that did not fit › are not shown in a block, which is read before the turn', () => {
    const block = createBand('block', { last: 9 }, { renderAs: 'block', renderings: [{ as: 'clip', characters: 7 }] })
    const late = [createUnit(3, 30), createUnit(2, 20)]
    const show = (band: typeof block, isQuestionStored = true) =>
      shownMessages(allocate(100, [candidatesOf(band, late)], { newestTurn: createUnit(2, 20), isQuestionStored }))
    expect(show(block)).toEqual(['m2 whole 20'])
    expect(show({ ...block, volatile: true })).toEqual(['m2 whole 20', 'm3 clip 7'])
    expect(show({ ...block, renderAs: 'turns' })).toEqual(['m2 whole 20', 'm3 clip 7'])
    expect(show(block, false)).toEqual(['m2 whole 20', 'm3 clip 7'])
  })
})

describe('an opening system message', () => {
  verifies('X-01', 'gets at most half of the budget, after the newest turn', () => {
    const show = (opening: number, turn: number, since: readonly number[] = []) =>
      shownMessages(
        allocate(100, [], {
          openingMessage: createUnit(1, opening, { role: 'system' }),
          newestTurn: createUnit(2, turn),
          sinceNewestTurn: since.map((tokens) => createUnit(3, tokens)),
        }),
      )
    expect(show(50, 20)).toEqual(['m1 whole 50', 'm2 whole 20'])
    const openingMessage = createUnit(1, 9, { role: 'system' })
    const sinceNewestTurn = [createUnit(3, 500)]
    const all = allocate(100, [], { openingMessage, newestTurn: createUnit(2, 9), sinceNewestTurn })
    expect(reasons(all)).toEqual(['m1 opening -', 'm2 newest -', 'm3 since -'])
    expect(show(80, 20)).toEqual(['m1 squeeze 40', 'm2 whole 20'])
    expect(show(300, 20)).toEqual(['m1 fit 50', 'm2 whole 20'])
    expect(show(300, 70)).toEqual(['m1 fit 30', 'm2 whole 70'])
    expect(show(300, 60, [20])).toEqual(['m1 fit 20', 'm2 whole 60', 'm3 whole 20'])
  })
})

describe('a question that is not part of the session', () => {
  const turn = createUnit(2, 80)
  const show = (budget: number, history: number, bands = [candidatesOf(recentBand, [turn, createUnit(1, 10)])]) =>
    shownMessages(
      allocate(budget, bands, {
        newestTurn: turn,
        isQuestionStored: false,
        pressure: { ...noPressure, history },
        sinceNewestTurn: [createUnit(3, 10)],
      }),
    )

  verifies('X-01', 'leaves the newest stored turn all it needs while the history fits, else a tenth', () => {
    expect(show(100, 85)).toEqual(['m1 whole 10', 'm2 whole 80'])
    const other = candidatesOf(recentBand, [turn, createUnit(1, 70)])
    expect(show(100, 86, [other])).toEqual(['m1 whole 70', 'm2 fit 10'])
    // A tenth is what it gets first; it is lengthened where nothing else needs the room.
    expect(show(100, 86)).toEqual(['m1 whole 10', 'm2 fit 80'])
  })

  verifies('X-01', 'leaves the newest stored turn the share of a limited tail, at least 40 tokens', () => {
    const tail = createBand('tail', { tail: {} as never })
    const fill = candidatesOf(recentBand, [createUnit(1, 50)])
    const limited = (limit: number) => [candidatesOf(tail, [turn], { limit }), fill]
    expect(show(120, 500, limited(39))).toEqual(['m1 whole 50', 'm2 squeeze 40'])
    expect(show(90, 500, limited(60))).toEqual(['m1 whole 50', 'm2 squeeze 40'])
    const long = createUnit(2, 300)
    const cut = (limit: number) =>
      shownMessages(
        allocate(110, [candidatesOf(tail, [long], { limit }), fill], { newestTurn: long, isQuestionStored: false }),
      )
    expect([cut(55), cut(30)]).toEqual([
      ['m1 whole 50', 'm2 fit 55'],
      ['m1 whole 50', 'm2 fit 40'],
    ])
  })

  verifies('K-02', 'shows the newest stored turn with the date line of a band that recalls', () => {
    const recalled = createBand('recalled', { recalled: { limit: 9 } }, { renderAs: 'block' })
    const overheads = { dayLine: () => ({ text: 'Monday', tokens: 3 }) }
    const dayLines = (isQuestionStored: boolean) =>
      allocate(100, [candidatesOf(recalled, [turn])], { newestTurn: turn, isQuestionStored, overheads }).messages.map(
        ({ dayLine }) => dayLine,
      )
    expect([dayLines(false), dayLines(true)]).toEqual([['Monday'], ['']])
  })

  verifies('K-02', 'shows the newest stored turn as part of its band', () => {
    const allocation = allocate(100, [candidatesOf(recentBand, [turn])], { newestTurn: turn, isQuestionStored: false })
    expect(reasons(allocation)).toEqual(['m2 band recent'])
    const rest = createBand('rest', { rest: true })
    const other = allocate(100, [candidatesOf(rest, [])], { newestTurn: turn, isQuestionStored: false })
    expect(reasons(other)).toEqual(['m2 band rest'])
    expect(reasons(allocate(100, [], { newestTurn: turn, isQuestionStored: false }))).toEqual(['m2 band -'])
    expect(missesOf(other)).toEqual([])
  })
})
