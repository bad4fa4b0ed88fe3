import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alignByComparison, alignHistories } from '../../../src/server/turn/historyAlignment.ts'
import type { ComparableMessage } from '../../../src/server/turn/messageEquality.ts'
import {
  type HistoryChange,
  type HistoryRelation,
  reconcile,
  type StoredMessage,
} from '../../../src/server/turn/reconcile.ts'
import { campaign, patience, seed } from '../../context/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { clients, Talk } from './clients.ts'

const user = (content: string): ComparableMessage => ({ role: 'user', content })
const reply = (content: string): ComparableMessage => ({ role: 'assistant', content })
const calling = (id: string, args = '{}'): ComparableMessage => ({
  role: 'assistant',
  content: '',
  calls: [{ id, name: 'look', arguments: args }],
})
const result = (answers: string, content = 'found'): ComparableMessage => ({ role: 'tool', content, answers })

/** StoredMessage messages, numbered from 1, or from another number where there are earlier ones. */
const stored = (messages: readonly ComparableMessage[], first = 1): StoredMessage[] =>
  messages.map((message, place) => ({ ...message, sequence: first + place }))
const decide = (old: readonly ComparableMessage[], sent: readonly ComparableMessage[]): HistoryChange =>
  reconcile(stored(old), sent, { hasEarlier: false })
const decideLate = (old: readonly ComparableMessage[], sent: readonly ComparableMessage[]): HistoryChange =>
  reconcile(stored(old, 101), sent, { hasEarlier: true })
const on = (newFrom: number, relation: HistoryRelation, cutFrom?: number): HistoryChange => ({
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
  verifies('T-15', 'adds what is new, and nothing twice', () => {
    expect(decide([], [u1])).toEqual(on(0, 'first'))
    expect(decide([], [u1, a1, u2])).toEqual(on(0, 'first'))
    expect(decide([u1, a1], [u1, a1, u2])).toEqual(on(2, 'continued'))
    expect(decide([u1, a1], [u1, a1, u2, u3])).toEqual(on(2, 'continued'))
    expect(decide([u1], [u1, a1, u2])).toEqual(on(1, 'continued'))
    expect(decide([u1, calling('a')], [u1, calling('a'), result('a')])).toEqual(on(2, 'continued'))
  })

  it('adds nothing with a retry that has no reply yet', () => {
    expect(decide([u1], [u1])).toEqual(on(1, 'exact'))
    expect(decide([u1, a1, u2], [u1, a1, u2])).toEqual(on(3, 'exact'))
    expect(decide([u1, calling('a'), result('a')], [u1, calling('a'), result('a')])).toEqual(on(3, 'exact'))
  })

  it('wants another reply when it asks again what has one', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, u2])).toEqual(on(3, 'regenerated', 4))
    expect(decide([u1, calling('a'), result('a'), a1], [u1, calling('a'), result('a')])).toEqual(
      on(3, 'regenerated', 4),
    )
    expect(decide([u1, calling('a'), result('a'), a1], [u1, calling('b'), result('b')])).toEqual(on(1, 'edited', 2))
  })

  it('takes back what it has edited away', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, other])).toEqual(on(2, 'edited', 3))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, other, reply('Well'), u4])).toEqual(on(2, 'edited', 3))
    expect(decide([u1, u2], [u1, other])).toEqual(on(1, 'edited', 2))
    expect(decide([u1, a1, u2, a2], [u1, reply('Quite another greeting'), other])).toEqual(on(1, 'edited', 2))
  })

  it('goes back to an earlier place', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1])).toEqual(on(2, 'truncated', 3))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, u2])).toEqual(on(3, 'truncated', 4))
    expect(decide([u1, u2, a2, u3, a3], [u1, u2])).toEqual(on(2, 'truncated', 3))
    expect(decide([u1, calling('a'), result('a'), a1], [u1, calling('a')])).toEqual(on(2, 'truncated', 3))
  })

  it('takes back a reply that it never got, if it sends the others', () => {
    expect(decide([u1, a1, u2, a2], [u1, a1, u2, u3])).toEqual(on(3, 'edited', 4))
    expect(decide([u1, a1, u2, calling('a')], [u1, a1, u2, u3])).toEqual(on(3, 'edited', 4))
  })

  it('is believed where the session repeats itself', () => {
    const [hi, hello] = [user('hi'), reply('Hello!')]
    expect(decide([hi, hello, hi, hello], [hi, hello, hi, hello, hi])).toEqual(on(4, 'continued'))
    expect(decide([hi, hello, hi, hello], [hi, hello, hi])).toEqual(on(3, 'regenerated', 4))
    // This may be an edit of the second turn, or the end of the session with something new: nothing is cut on a guess.
    expect(decide([hi, hello, hi, hello], [hi, hello, other])).toEqual(on(2, 'continued'))
  })

  it('comes back to a branch: what it tells is stored again, for it is the conversation now', () => {
    expect(decide([u1, a1, other, a3], [u1, a1, u2, a2, u3])).toEqual(on(2, 'edited', 3))
  })
})

describe('a client that sends the end of its history', () => {
  it('adds what is new, and takes nothing back', () => {
    expect(decide([u1, a1, u2, a2], [u2, a2, u3])).toEqual(on(2, 'continued'))
    expect(decide([u1, a1, u2, a2], [a2, u3])).toEqual(on(1, 'continued'))
    expect(decideLate([u2, a2, u3, a3], [u3, a3, ok])).toEqual(on(2, 'continued'))
    expect(decide([u1, calling('a'), result('a')], [result('a'), a1, u2])).toEqual(on(1, 'continued'))
    expect(decide([u1, a1, u2], [a1, u2])).toEqual(on(2, 'exact'))
  })

  it('says the same again', () => {
    expect(decide([u1, a1, ok, a2], [a2, ok])).toEqual(on(1, 'continued'))
    expect(decide([u1, a1, ok, a2, ok, a3], [ok, a2, ok, a3, ok])).toEqual(on(4, 'continued'))
    const done = reply('Done.')
    expect(decideLate([u1, a1, ok, done, ok, done], [ok, done, ok])).toEqual(on(2, 'continued'))
  })

  it('begins in the middle of a message', () => {
    const long = reply('The first half of it, and the second half of it.')
    expect(decide([u1, long], [reply('and the second half of it.'), u2])).toEqual(on(1, 'continued'))
    expect(decide([u1, long, u2, a2], [reply('and the second half of it.'), u2, a2, u3])).toEqual(on(3, 'continued'))
  })

  it('edits, goes back and asks again, as far as its messages show it', () => {
    expect(decideLate([u1, a1, u2, a2], [a1, u2])).toEqual(on(2, 'regenerated', 104))
    expect(decideLate([u1, a1, u2, a2], [a1, other])).toEqual(on(1, 'edited', 103))
    expect(decideLate([u1, a1, u2, a2, u3, a3], [a1, u2])).toEqual(on(2, 'truncated', 104))
    expect(decideLate([ok, a1, u2, a2, ok], [ok, a1, other])).toEqual(on(2, 'edited', 103))
    // Of two places that are alike, it is the later one: less is cut.
    expect(decideLate([ok, a1, u2, a2, ok, a1, u3, a3], [ok, a1, other])).toEqual(on(2, 'edited', 107))
  })

  it('is told apart from others by what was not read, if need be', () => {
    expect(decideLate([u2, a2, ok], [a1, ok])).toEqual(on(0, 'disjoint'))
    expect(decide([u2, a2, ok], [a1, ok])).toEqual(on(2, 'exact'))
    expect(decideLate([u1, u2], [u1, other])).toEqual(on(0, 'disjoint'))
    expect(decideLate([], [u1, a1, u2])).toEqual(on(0, 'disjoint'))
  })

  it('keeps the first message and leaves out the middle', () => {
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a3, u4])).toEqual(on(2, 'continued'))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a1, u3, a3, u4])).toEqual(on(4, 'continued'))
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, a2, other])).toEqual(on(2, 'edited', 5))
  })

  it('puts a summary in the place of what it leaves out', () => {
    expect(decideLate([u1, a1, u2, a2], [user('Summary: they greeted.'), u2, a2, u3])).toEqual(on(3, 'continued'))
    expect(decideLate([u1, a1, u2, a2], [user('Summary: all of it.'), reply('Understood.'), u3])).toEqual(
      on(0, 'disjoint'),
    )
  })
})

describe('a client that leaves its history to memory', () => {
  it('says something new each time', () => {
    expect(decide([u1, a1], [u2])).toEqual(on(0, 'newest-only'))
    expect(decideLate([u2, a2], [ok])).toEqual(on(0, 'newest-only'))
    expect(decide([u1, a1, ok, a2, u3, a3], [ok])).toEqual(on(0, 'newest-only'))
  })

  it('says the same again after a reply, and repeats a request that had none', () => {
    expect(decide([u1, a1], [u1])).toEqual(on(0, 'newest-only'))
    expect(decide([u1, a1, ok, a2], [ok])).toEqual(on(0, 'newest-only'))
    expect(decide([u1, a1, ok], [ok])).toEqual(on(1, 'exact'))
  })

  it('never takes back what it does not show', () => {
    expect(decide([u1, a1, u2, a2], [other])).toEqual(on(0, 'newest-only'))
    expect(decide([u1, a1, u2, a2, u3, a3], [ok, other])).toEqual(on(0, 'disjoint'))
  })

  it('sends the results of its tools', () => {
    expect(decide([u1, calling('a')], [result('a')])).toEqual(on(0, 'newest-only'))
    expect(decide([u1, calling('a'), result('a')], [result('a')])).toEqual(on(1, 'exact'))
    expect(decide([u1, calling('a'), result('a'), a1], [result('a')])).toEqual(on(1, 'regenerated', 4))
    // Some servers give the calls of every reply the same names: this is the second result.
    expect(decide([u1, calling('call_0'), result('call_0'), calling('call_0')], [result('call_0')])).toEqual(
      on(0, 'newest-only'),
    )
    expect(decide([u1, calling('a'), result('a'), a1, u2, a2], [result('a')])).toEqual(on(0, 'newest-only'))
  })

  it('sends its own messages, and leaves the replies to memory', () => {
    expect(decide([u1, a1], [u1, u2])).toEqual(on(1, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, u2, u3])).toEqual(on(2, 'continued'))
    expect(decideLate([u1, a1, u2, a2], [u2, u3])).toEqual(on(1, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, u2])).toEqual(on(2, 'regenerated', 4))
    expect(decide([u1, a1, u2, a2], [u1, u3])).toEqual(on(1, 'continued'))
    // It may mean the second turn, or say the same once more: what is said newly is not lost.
    expect(decide([u1, a1, u2, a2, u3, a3], [u1, u2])).toEqual(on(1, 'continued'))
    expect(decide([u1, a1, u2], [u1, u2])).toEqual(on(2, 'exact'))
  })
})

describe('what a client makes of a message on the way', () => {
  const same = (kept: ComparableMessage, told: ComparableMessage): void =>
    expect(decide([u1, kept], [u1, told, u2])).toEqual(on(2, 'continued'))
  const differs = (kept: ComparableMessage, told: ComparableMessage): void =>
    expect(decide([u1, kept], [u1, told, u2])).toEqual(on(1, 'edited', 2))

  it('is no edit, while it says the same', () => {
    same(reply('\nHi there \n'), reply('Hi there'))
    same(reply('One.\n\nTwo.'), reply('One.\nTwo.'))
    same(reply('One.Two.'), reply('One.\nTwo.'))
    same(reply('<think>A greeting.</think>\n\nHi'), reply('Hi'))
    same(reply('<details type="reasoning" done="true">A greeting.</details>\nHi'), reply('Hi'))
    same(calling('a', '{"for":"x","deep":[1,2]}'), calling('a', '{ "deep": [1, 2], "for": "x" }'))
    same(calling('a', ''), calling('a', '{}'))
    same(calling('a', 'no JSON'), calling('a', 'no JSON '))
    same({ ...calling('a'), calls: [] }, { role: 'assistant', content: '' })
    expect(decide([user(' Hello\n')], [user('Hello'), a1, u2])).toEqual(on(1, 'continued'))
    expect(decide([user('Hello\r\nyou')], [user('Hello\nyou'), a1, u2])).toEqual(on(1, 'continued'))
  })

  it('is no edit, if a stream was stopped', () => {
    same(reply('A long answer that went on'), reply('A long ans'))
    same(reply('A long ans'), reply('A long answer that went on'))
    // But the last message sent is what the reply is to go on from.
    expect(decide([u1, reply('A long answer')], [u1, reply('A long')])).toEqual(on(1, 'edited', 2))
  })

  it('is an edit, if the newest reply says something else', () => {
    differs(reply('Hi'), reply('Go away'))
    differs(reply('<details>Hi</details> you'), reply('you!'))
    differs(calling('a', '{"for":"x"}'), calling('a', '{"for":"y"}'))
    differs(calling('a'), calling('b'))
    differs(reply('Hi'), reply(''))
    expect(decide([u1, a1, user('f(x)')], [u1, a1, user('f( x )')])).toEqual(on(2, 'edited', 3))
    expect(decide([u1, a1, user('How')], [u1, a1, user('How are you?'), ok])).toEqual(on(2, 'edited', 3))
  })

  it('is no edit between messages that are the same', () => {
    const cleared = { ...result('a'), content: '[old result cleared]' }
    expect(decide([u1, calling('a'), result('a'), a1], [u1, calling('a'), cleared, a1, u2])).toEqual(on(4, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, reply('[a greeting]'), u2, a2, u3])).toEqual(on(4, 'continued'))
    expect(decide([u1, a1, u2, a2, u3], [u1, reply('[1]'), u2, reply('[2]'), u3])).toEqual(on(5, 'exact'))
    expect(decide([u1, calling('a'), result('a'), a1, u2, a2], [u1, a1, u2, a2, u3])).toEqual(on(4, 'continued'))
    expect(decide([u1, u2, a2], [u1, a1, u2, a2, u3])).toEqual(on(4, 'continued'))
    expect(decide([u1, a1, u2, a2], [u1, user('(an aside)'), a1, u3])).toEqual(on(3, 'edited', 3))
  })

  it('is no edit of a question whose reply it still has', () => {
    const dressed = user('How?\n<found>Page 7</found>')
    expect(decide([u1, a1, dressed, a2], [u1, a1, u2, a2, u3])).toEqual(on(4, 'continued'))
    expect(decide([dressed, a2], [u2, a2, u3])).toEqual(on(2, 'continued'))
    expect(decide([u1, a1, dressed, a2, u3, a3], [u1, a1, u2, a2, u3])).toEqual(on(5, 'regenerated', 6))
    expect(decide([u1, a1, dressed, a2, u3, a3], [u1, a1, u2, a2, other])).toEqual(on(4, 'edited', 5))
  })
})

describe('two clients of one session', () => {
  it('each have the conversation as they tell it, one after the other', () => {
    const [mine, yours] = [user('Mine'), user('Yours')]
    expect(decide([u1, a1, mine], [u1, a1, yours])).toEqual(on(2, 'edited', 3))
    expect(decide([u1, a1, yours, a2], [u1, a1, mine, a3, u4])).toEqual(on(2, 'edited', 3))
  })

  it('add to it side by side, if they leave the history to memory', () => {
    expect(decide([u1, a1, user('Mine')], [user('Yours')])).toEqual(on(0, 'newest-only'))
  })

  it('do not cut each other off while they have nothing in common', () => {
    expect(decide([u1, a1, u2, a2], [user('Another task'), reply('Another answer'), ok])).toEqual(on(0, 'disjoint'))
  })
})

describe('whatever is stored and sent', () => {
  const letters = [u1, a1, ok, reply('ok'), calling('a'), result('a'), user('no')]
  const list = fc.array(fc.constantFrom(...letters), { maxLength: 9 })

  it('the newest question is stored, or was; and what is cut comes after something both sides have', () => {
    fc.assert(
      fc.property(list, list, fc.boolean(), (old, sent, hasEarlier) => {
        const lines = stored(old, hasEarlier ? 101 : 1)
        const { newFrom: fresh, cutFrom: cut, relation: how } = reconcile(lines, sent, { hasEarlier })
        const kept = lines.filter(({ sequence }) => cut === undefined || sequence < cut)
        expect(cut === undefined).toBe(!['regenerated', 'edited', 'truncated'].includes(how))
        const known = sent.slice(0, fresh)
        const isKept = (message: ComparableMessage): boolean =>
          kept.some(({ role, content }) => role === message.role && content === message.content)
        if (cut !== undefined) expect(known.some(isKept)).toBe(true)
        const asked = known.findLastIndex(({ role }) => role === 'user')
        // A question in other words is known by the reply to it.
        if (asked >= 0 && asked === sent.findLastIndex(({ role }) => role === 'user'))
          expect(sent.slice(asked, fresh).some(isKept)).toBe(true)
      }),
      { numRuns: campaign ? 50_000 : 2_000, seed },
    )
  })

  it('what begins with all that is stored to the letter, or with the end of it, is decided as if it were looked at closely', () => {
    const edited = fc.tuple(fc.nat(9), fc.constantFrom(...letters))
    const news = fc.array(fc.constantFrom(...letters), { maxLength: 2 })
    fc.assert(
      fc.property(
        list,
        fc.nat(9),
        news,
        fc.option(edited, { nil: undefined }),
        fc.boolean(),
        (old, from, more, edit, hasEarlier) => {
          const told = [...old.slice(hasEarlier ? from : 0), ...more]
          if (edit !== undefined && edit[0] < told.length) told[edit[0]] = edit[1]
          expect(alignHistories(old, told, hasEarlier)).toEqual(alignByComparison(old, told, hasEarlier))
        },
      ),
      { numRuns: campaign ? 50_000 : 2_000, seed },
    )
  })

  it('it takes time in proportion to it, however much it repeats itself', () => {
    const same = (many: number, message = ok): ComparableMessage[] => Array.from({ length: many }, () => message)
    expect(decide([...same(100_000), a1], same(100_000))).toEqual(on(100_000, 'regenerated', 100_001))
    expect(decide(same(100_000), [...same(100_000), a1, u2])).toEqual(on(100_000, 'continued'))
    expect(decide(same(50_000, a1), [...same(50_000, a1), u2])).toEqual(on(50_000, 'continued'))
    const talk = (many: number, word: string) =>
      Array.from({ length: many }, (_, at) => (at % 2 === 0 ? ok : reply(`${word} ${at % 4}`)))
    expect(decide(talk(50_000, 'yes'), [...talk(50_000, 'no'), u2])).toEqual(on(49_999, 'edited', 50_000))
  })
})

describe('whatever a client does', () => {
  verifies(
    'T-15',
    'the session is the conversation as the client has it, and each message is kept once, there or in a branch',
    () => {
      const hows = new Set<string>()
      fc.assert(
        fc.property(clients, (client) => {
          const talk = new Talk(client).run()
          for (const how of talk.hows) hows.add(how)
          expect(talk.faults).toEqual([])
          expect(talk.repeated()).toEqual([])
        }),
        { numRuns: campaign ? 50_000 : 1_000, seed, interruptAfterTimeLimit: patience, markInterruptAsFailure: true },
      )
      expect([...hows].sort()).toEqual([
        'continued',
        'edited',
        'exact',
        'first',
        'newest-only',
        'regenerated',
        'truncated',
      ])
    },
    patience,
  )
})
