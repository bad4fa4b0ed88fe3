import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { runInSlices } from '../../../src/domain/work.ts'
import { openMemory } from '../../../src/index.ts'
import { internalsOf } from '../../../src/memory.ts'
import { alignByComparison, alignHistories } from '../../../src/server/turn/historyAlignment.ts'
import { type ComparableMessage, type NormalForms, normalizeInSteps } from '../../../src/server/turn/messageEquality.ts'
import {
  type HistoryChange,
  type HistoryRelation,
  reconcile,
  type StoredMessage,
} from '../../../src/server/turn/reconcile.ts'
import { reconcileHistory } from '../../../src/server/turn/reconcileHistory.ts'
import { isCampaign, propertyTimeoutMs, seed } from '../../context/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { useSlowClock } from '../../support/slowClock.ts'
import { clients, SimulatedClient } from './simulatedClient.ts'

const user = (content: string): ComparableMessage => ({ role: 'user', content })
const reply = (content: string): ComparableMessage => ({ role: 'assistant', content })
const assistantCall = (id: string, args = '{}'): ComparableMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name: 'look', arguments: args }],
})
const result = (answers: string, content = 'found'): ComparableMessage => ({
  role: 'tool',
  content,
  toolCallId: answers,
})

/** Numbers messages from 1, or from `first` where earlier ones exist. */
const stored = (messages: readonly ComparableMessage[], first = 1): StoredMessage[] =>
  messages.map((message, index) => ({ ...message, sequence: first + index }))
const decide = (old: readonly ComparableMessage[], sent: readonly ComparableMessage[]): HistoryChange =>
  reconcile(stored(old), sent, { hasEarlier: false })
const decideWithEarlier = (old: readonly ComparableMessage[], sent: readonly ComparableMessage[]): HistoryChange =>
  reconcile(stored(old, 101), sent, { hasEarlier: true })
const expectedChange = (newFrom: number, relation: HistoryRelation, cutFrom?: number): HistoryChange => ({
  newFrom,
  cutFrom,
  relation,
})

const [u1, a1, u2, a2, u3, a3, u4] = [
  user('Hello'),
  reply('Hi'),
  user('How?'),
  reply('So.'),
  user('Why?'),
  reply('Because.'),
  user('Where?'),
] as const
const [ok, other] = [user('ok'), user('Something else')]

describe('a client that sends its whole history', () => {
  verifies('T-15', 'new messages › are added once', () => {
    expect(decide([], [u1])).toEqual(expectedChange(0, 'first'))
    expect(decide([], [u1, a1, u2])).toEqual(expectedChange(0, 'first'))
    expect(decide([u1, a1], [u1, a1, u2])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1, a1], [u1, a1, u2, u3])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1], [u1, a1, u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, assistantCall('a')], [u1, assistantCall('a'), result('a')])).toEqual(
      expectedChange(2, 'continued'),
    )
  })

  it('a retry without a reply yet › adds nothing', () => {
    expect(decide([u1], [u1])).toEqual(expectedChange(1, 'exact'))
    expect(decide([u1, a1, u2], [u1, a1, u2])).toEqual(expectedChange(3, 'exact'))
    expect(decide([u1, assistantCall('a'), result('a')], [u1, assistantCall('a'), result('a')])).toEqual(
      expectedChange(3, 'exact'),
    )
  })

  it('the last question again after its reply › regenerates the reply', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, u2])).toEqual(expectedChange(3, 'regenerated', 4))
    expect(decide([u1, assistantCall('a'), result('a'), a1], [u1, assistantCall('a'), result('a')])).toEqual(
      expectedChange(3, 'regenerated', 4),
    )
    expect(decide([u1, assistantCall('a'), result('a'), a1], [u1, assistantCall('b'), result('b')])).toEqual(
      expectedChange(1, 'edited', 2),
    )
  })

  it('an edited message › cuts from that message', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, other])).toEqual(expectedChange(2, 'edited', 3))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, other, reply('Well'), u4])).toEqual(expectedChange(2, 'edited', 3))
    expect(decide([u1, u2], [u1, other])).toEqual(expectedChange(1, 'edited', 2))
    expect(decide([u1, a1, u2, a2], [u1, reply('Quite another greeting'), other])).toEqual(
      expectedChange(1, 'edited', 2),
    )
  })

  it('a shorter history › truncates to it', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1])).toEqual(expectedChange(2, 'truncated', 3))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, u2])).toEqual(expectedChange(3, 'truncated', 4))
    expect(decide([u1, u2, a2, u3, a3], [u1, u2])).toEqual(expectedChange(2, 'truncated', 3))
    expect(decide([u1, assistantCall('a'), result('a'), a1], [u1, assistantCall('a')])).toEqual(
      expectedChange(2, 'truncated', 3),
    )
  })

  it('a reply missing among others that are sent › is cut', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, u2, u3])).toEqual(expectedChange(3, 'edited', 4))
    expect(decide([u1, a1, u2, assistantCall('a')], [u1, a1, u2, u3])).toEqual(expectedChange(3, 'edited', 4))
  })

  it('an ambiguous repetition › is taken as the history it sends', () => {
    const [hi, hello] = [user('hi'), reply('Hello!')]
    expect(decide([hi, hello, hi, hello], [hi, hello, hi, hello, hi])).toEqual(expectedChange(4, 'continued'))
    expect(decide([hi, hello, hi, hello], [hi, hello, hi])).toEqual(expectedChange(3, 'regenerated', 4))
    // Either an edit of the second turn or a continuation: an ambiguous history cuts nothing.
    expect(decide([hi, hello, hi, hello], [hi, hello, other])).toEqual(expectedChange(2, 'continued'))
  })

  it('a history from a cut branch › is stored again', () => {
    expect(decide([u1, a1, other, a3], [u1, a1, u2, a2, u3])).toEqual(expectedChange(2, 'edited', 3))
  })
})

describe('a client that sends the end of its history', () => {
  it('new messages › are added, and nothing is cut', () => {
    expect(decide([u1, a1, u2, a2], [u2, a2, u3])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1, a1, u2, a2], [a2, u3])).toEqual(expectedChange(1, 'continued'))
    expect(decideWithEarlier([u2, a2, u3, a3], [u3, a3, ok])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1, assistantCall('a'), result('a')], [result('a'), a1, u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, a1, u2], [a1, u2])).toEqual(expectedChange(2, 'exact'))
  })

  it('a repeated message › is added', () => {
    expect(decide([u1, a1, ok, a2], [a2, ok])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, a1, ok, a2, ok, a3], [ok, a2, ok, a3, ok])).toEqual(expectedChange(4, 'continued'))
    const done = reply('Done.')
    expect(decideWithEarlier([u1, a1, ok, done, ok, done], [ok, done, ok])).toEqual(expectedChange(2, 'continued'))
  })

  it('a first message cut at its start › is recognised', () => {
    const long = reply('The first half of it, and the second half of it.')
    expect(decide([u1, long], [reply('and the second half of it.'), u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, long, u2, a2], [reply('and the second half of it.'), u2, a2, u3])).toEqual(
      expectedChange(3, 'continued'),
    )
  })

  it('edits, truncations and retries › are recognised as far as the messages show them', () => {
    expect(decideWithEarlier([u1, a1, u2, a2], [a1, u2])).toEqual(expectedChange(2, 'regenerated', 104))
    expect(decideWithEarlier([u1, a1, u2, a2], [a1, other])).toEqual(expectedChange(1, 'edited', 103))
    expect(decideWithEarlier([u1, a1, u2, a2, u3, a3], [a1, u2])).toEqual(expectedChange(2, 'truncated', 104))
    expect(decideWithEarlier([ok, a1, u2, a2, ok], [ok, a1, other])).toEqual(expectedChange(2, 'edited', 103))
    // Of two equal positions the later one is used: it cuts less.
    expect(decideWithEarlier([ok, a1, u2, a2, ok, a1, u3, a3], [ok, a1, other])).toEqual(
      expectedChange(2, 'edited', 107),
    )
  })

  it('without enough read messages to decide › is disjoint', () => {
    expect(decideWithEarlier([u2, a2, ok], [a1, ok])).toEqual(expectedChange(0, 'disjoint'))
    expect(decide([u2, a2, ok], [a1, ok])).toEqual(expectedChange(2, 'exact'))
    expect(decideWithEarlier([u1, u2], [u1, other])).toEqual(expectedChange(0, 'disjoint'))
    expect(decideWithEarlier([], [u1, a1, u2])).toEqual(expectedChange(0, 'disjoint'))
  })

  it('the first message kept and the middle omitted › continues', () => {
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a3, u4])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, u3, a3, u4])).toEqual(expectedChange(4, 'continued'))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a2, other])).toEqual(expectedChange(2, 'edited', 5))
  })

  it('a summary in place of omitted messages › continues after the common end', () => {
    expect(decideWithEarlier([u1, a1, u2, a2], [user('Summary: they greeted.'), u2, a2, u3])).toEqual(
      expectedChange(3, 'continued'),
    )
    expect(decideWithEarlier([u1, a1, u2, a2], [user('Summary: all of it.'), reply('Understood.'), u3])).toEqual(
      expectedChange(0, 'disjoint'),
    )
  })
})

describe('a client that leaves its history to memory', () => {
  it('a new message › is added', () => {
    expect(decide([u1, a1], [u2])).toEqual(expectedChange(0, 'newest-only'))
    expect(decideWithEarlier([u2, a2], [ok])).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, a1, ok, a2, u3, a3], [ok])).toEqual(expectedChange(0, 'newest-only'))
  })

  it('a repeated message › is added after a reply and is a retry without one', () => {
    expect(decide([u1, a1], [u1])).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, a1, ok, a2], [ok])).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, a1, ok], [ok])).toEqual(expectedChange(1, 'exact'))
  })

  it('never cuts messages that it does not send', () => {
    expect(decide([u1, a1, u2, a2], [other])).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, a1, u2, a2, u3, a3], [ok, other])).toEqual(expectedChange(0, 'disjoint'))
  })

  it('tool results › are added', () => {
    expect(decide([u1, assistantCall('a')], [result('a')])).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, assistantCall('a'), result('a')], [result('a')])).toEqual(expectedChange(1, 'exact'))
    expect(decide([u1, assistantCall('a'), result('a'), a1], [result('a')])).toEqual(
      expectedChange(1, 'regenerated', 4),
    )
    // Some servers reuse call ids in every reply; this is the second result.
    expect(
      decide([u1, assistantCall('call_0'), result('call_0'), assistantCall('call_0')], [result('call_0')]),
    ).toEqual(expectedChange(0, 'newest-only'))
    expect(decide([u1, assistantCall('a'), result('a'), a1, u2, a2], [result('a')])).toEqual(
      expectedChange(0, 'newest-only'),
    )
  })

  it('its own messages without replies › continue', () => {
    expect(decide([u1, a1], [u1, u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, u2, u3])).toEqual(expectedChange(2, 'continued'))
    expect(decideWithEarlier([u1, a1, u2, a2], [u2, u3])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, u2])).toEqual(expectedChange(2, 'regenerated', 4))
    expect(decide([u1, a1, u2, a2], [u1, u3])).toEqual(expectedChange(1, 'continued'))
    // Either the second turn or a repetition; a new message must not be lost.
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([u1, a1, u2], [u1, u2])).toEqual(expectedChange(2, 'exact'))
  })
})

describe('a message changed by the client', () => {
  const same = (kept: ComparableMessage, resent: ComparableMessage): void =>
    expect(decide([u1, kept], [u1, resent, u2])).toEqual(expectedChange(2, 'continued'))
  const differs = (kept: ComparableMessage, resent: ComparableMessage): void =>
    expect(decide([u1, kept], [u1, resent, u2])).toEqual(expectedChange(1, 'edited', 2))

  it('with the same content › is not an edit', () => {
    same(reply('\nHi there \n'), reply('Hi there'))
    same(reply('One.\n\nTwo.'), reply('One.\nTwo.'))
    same(reply('One.Two.'), reply('One.\nTwo.'))
    same(reply('<think>A greeting.</think>\n\nHi'), reply('Hi'))
    same(reply('<details type="reasoning" done="true">A greeting.</details>\nHi'), reply('Hi'))
    same(assistantCall('a', '{"for":"x","deep":[1,2]}'), assistantCall('a', '{ "deep": [1, 2], "for": "x" }'))
    same(assistantCall('a', ''), assistantCall('a', '{}'))
    same(assistantCall('a', 'no JSON'), assistantCall('a', 'no JSON '))
    same({ ...assistantCall('a'), toolCalls: [] }, { role: 'assistant', content: '' })
    expect(decide([user(' Hello\n')], [user('Hello'), a1, u2])).toEqual(expectedChange(1, 'continued'))
    expect(decide([user('Hello\r\nyou')], [user('Hello\nyou'), a1, u2])).toEqual(expectedChange(1, 'continued'))
  })

  it('with a truncated stream › is not an edit', () => {
    same(reply('A long answer that went on'), reply('A long ans'))
    same(reply('A long ans'), reply('A long answer that went on'))
    // The last message sent is the one to continue from.
    expect(decide([u1, reply('A long answer')], [u1, reply('A long')])).toEqual(expectedChange(1, 'edited', 2))
  })

  it('with other content in the newest reply › is an edit', () => {
    differs(reply('Hi'), reply('Go away'))
    differs(reply('<details>Hi</details> you'), reply('you!'))
    differs(assistantCall('a', '{"for":"x"}'), assistantCall('a', '{"for":"y"}'))
    differs(assistantCall('a'), assistantCall('b'))
    differs(reply('Hi'), reply(''))
    expect(decide([u1, a1, user('f(x)')], [u1, a1, user('f( x )')])).toEqual(expectedChange(2, 'edited', 3))
    expect(decide([u1, a1, user('How')], [u1, a1, user('How are you?'), ok])).toEqual(expectedChange(2, 'edited', 3))
  })

  it('between equal messages › is not an edit', () => {
    const cleared = { ...result('a'), content: '[old result cleared]' }
    expect(decide([u1, assistantCall('a'), result('a'), a1], [u1, assistantCall('a'), cleared, a1, u2])).toEqual(
      expectedChange(4, 'continued'),
    )
    expect(decide([u1, a1, u2, a2], [u1, reply('[a greeting]'), u2, a2, u3])).toEqual(expectedChange(4, 'continued'))
    expect(decide([u1, a1, u2, a2, u3], [u1, reply('[1]'), u2, reply('[2]'), u3])).toEqual(expectedChange(5, 'exact'))
    expect(decide([u1, assistantCall('a'), result('a'), a1, u2, a2], [u1, a1, u2, a2, u3])).toEqual(
      expectedChange(4, 'continued'),
    )
    expect(decide([u1, u2, a2], [u1, a1, u2, a2, u3])).toEqual(expectedChange(4, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, user('(an aside)'), a1, u3])).toEqual(expectedChange(3, 'edited', 3))
  })

  it('a question with an unchanged reply › is not an edit', () => {
    const augmented = user('How?\n<found>Page 7</found>')
    expect(decide([u1, a1, augmented, a2], [u1, a1, u2, a2, u3])).toEqual(expectedChange(4, 'continued'))
    expect(decide([augmented, a2], [u2, a2, u3])).toEqual(expectedChange(2, 'continued'))
    expect(decide([u1, a1, augmented, a2, u3, a3], [u1, a1, u2, a2, u3])).toEqual(expectedChange(5, 'regenerated', 6))
    expect(decide([u1, a1, augmented, a2, u3, a3], [u1, a1, u2, a2, other])).toEqual(expectedChange(4, 'edited', 5))
  })
})

describe('two clients of one session', () => {
  it('with their whole histories › each makes its own history the conversation', () => {
    const [mine, yours] = [user('Mine'), user('Yours')]
    expect(decide([u1, a1, mine], [u1, a1, yours])).toEqual(expectedChange(2, 'edited', 3))
    expect(decide([u1, a1, yours, a2], [u1, a1, mine, a3, u4])).toEqual(expectedChange(2, 'edited', 3))
  })

  it('that leave the history to memory › append side by side', () => {
    expect(decide([u1, a1, user('Mine')], [user('Yours')])).toEqual(expectedChange(0, 'newest-only'))
  })

  it('with disjoint histories › cut nothing', () => {
    expect(decide([u1, a1, u2, a2], [user('Another task'), reply('Another answer'), ok])).toEqual(
      expectedChange(0, 'disjoint'),
    )
  })
})

describe('any stored and sent histories', () => {
  const alphabet = [u1, a1, ok, reply('ok'), assistantCall('a'), result('a'), user('no')]
  const list = fc.array(fc.constantFrom(...alphabet), { maxLength: 9 })

  it('the newest question is or becomes stored, and a cut follows a common message', () => {
    fc.assert(
      fc.property(list, list, fc.boolean(), (old, sent, hasEarlier) => {
        const lines = stored(old, hasEarlier ? 101 : 1)
        const { newFrom, cutFrom, relation } = reconcile(lines, sent, { hasEarlier })
        const kept = lines.filter(({ sequence }) => cutFrom === undefined || sequence < cutFrom)
        expect(cutFrom === undefined).toBe(!['regenerated', 'edited', 'truncated'].includes(relation))
        const known = sent.slice(0, newFrom)
        const isKept = (message: ComparableMessage): boolean =>
          kept.some(({ role, content }) => role === message.role && content === message.content)
        if (cutFrom !== undefined) expect(known.some(isKept)).toBe(true)
        const asked = known.findLastIndex(({ role }) => role === 'user')
        // A reworded question is recognised by its reply.
        if (asked >= 0 && asked === sent.findLastIndex(({ role }) => role === 'user'))
          expect(sent.slice(asked, newFrom).some(isKept)).toBe(true)
      }),
      { numRuns: isCampaign ? 50_000 : 2_000, seed },
    )
  })

  it('with a literal common prefix or suffix › the fast path equals the full comparison', () => {
    const edited = fc.tuple(fc.nat(9), fc.constantFrom(...alphabet))
    const news = fc.array(fc.constantFrom(...alphabet), { maxLength: 2 })
    fc.assert(
      fc.property(
        list,
        fc.nat(9),
        news,
        fc.option(edited, { nil: undefined }),
        fc.boolean(),
        (old, from, more, edit, hasEarlier) => {
          const resent = [...old.slice(hasEarlier ? from : 0), ...more]
          if (edit !== undefined && edit[0] < resent.length) resent[edit[0]] = edit[1]
          expect(alignHistories(old, resent, hasEarlier)).toEqual(alignByComparison(old, resent, hasEarlier))
        },
      ),
      { numRuns: isCampaign ? 50_000 : 2_000, seed },
    )
  })

  it('100,000 repeated messages › are reconciled in linear time', () => {
    const same = (count: number, message = ok): ComparableMessage[] => Array.from({ length: count }, () => message)
    expect(decide([...same(100_000), a1], same(100_000))).toEqual(expectedChange(100_000, 'regenerated', 100_001))
    expect(decide(same(100_000), [...same(100_000), a1, u2])).toEqual(expectedChange(100_000, 'continued'))
    expect(decide(same(50_000, a1), [...same(50_000, a1), u2])).toEqual(expectedChange(50_000, 'continued'))
    const talk = (count: number, word: string) =>
      Array.from({ length: count }, (_, at) => (at % 2 === 0 ? ok : reply(`${word} ${at % 4}`)))
    expect(decide(talk(50_000, 'yes'), [...talk(50_000, 'no'), u2])).toEqual(expectedChange(49_999, 'edited', 50_000))
  })
})

describe('any client behaviour', () => {
  verifies(
    'T-15',
    "the session equals the client's conversation, and each message is stored once, there or in a branch",
    () => {
      const relations = new Set<string>()
      fc.assert(
        fc.property(clients, (client) => {
          const talk = new SimulatedClient(client).run()
          for (const how of talk.relations) relations.add(how)
          expect(talk.faults).toEqual([])
          expect(talk.duplicates()).toEqual([])
        }),
        {
          numRuns: isCampaign ? 50_000 : 1_000,
          seed,
          interruptAfterTimeLimit: propertyTimeoutMs,
          markInterruptAsFailure: true,
        },
      )
      expect([...relations].sort()).toEqual([
        'continued',
        'edited',
        'exact',
        'first',
        'newest-only',
        'regenerated',
        'truncated',
      ])
    },
    propertyTimeoutMs,
  )
})

verifies('R-03', 'a long tool result with other white space › is compared in steps, as the same one', async () => {
  const words = Array.from({ length: 200_000 }, (_, index) => `w${index % 7}`)
  const [old, sent] = [result('c1', words.join(' ')), result('c1', words.join('\r\n'))]
  const forms: NormalForms = new Map()
  let pauses = 0
  await runInSlices(normalizeInSteps([old, sent], forms), async () => void pauses++)
  expect(pauses).toBeGreaterThan(20)
  const history = [user('Look.'), assistantCall('c1')]
  const change = reconcile(stored([...history, old]), [...history, sent, user('Next?')], { hasEarlier: false, forms })
  expect(change).toEqual(expectedChange(3, 'continued'))
})

verifies('R-03', 'a long reply › in a short history, with other white space › is compared in steps', async () => {
  await using memory = await openMemory({ upkeep: false })
  const key = parseKey('acme:ann')
  const words = Array.from({ length: 50_000 }, (_, index) => `word${index}`)
  await memory.append('acme:ann', [user('Hello'), reply(words.join(' '))])
  const head = await internalsOf(memory).sessions.readHead(key, 20)
  const options = {
    ...{ memory, key, continuesAfter: undefined, isRetry: false, isSingleConversation: true, forcedHistory: undefined },
    ...{ refersToStored: false, digestSetup: () => '', hasResentBefore: async () => false },
    messages: [user('Hello'), reply(words.join('  ')), user('Next?')].map((each) => ({ ...each, index: 0 })),
  }
  using _ = useSlowClock()
  let isDone = false
  const reconciling = reconcileHistory(options as never, head).finally(() => (isDone = true))
  let turns = 0
  for (; !isDone; turns++) await new Promise((resolve) => setImmediate(resolve))
  expect([(await reconciling).relation, turns > 10]).toEqual(['continued', true])
})
