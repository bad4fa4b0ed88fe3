import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reconcile } from '../../src/server/reconcile.ts'

type Line = { readonly role: 'user' | 'assistant'; readonly content: string }
const user = (content: string): Line => ({ role: 'user', content })
const assistant = (content: string): Line => ({ role: 'assistant', content })
const [hello, hi, how, fine] = [user('Hello'), assistant('Hi'), user('How are you?'), assistant('Fine')]

describe('what is new in a request', () => {
  it('is everything, while nothing is stored', () => expect(reconcile([], [hello])).toEqual([hello]))
  it('is the end of a history that is sent whole', () => expect(reconcile([hello, hi], [hello, hi, how])).toEqual([how]))
  it('is the end of a history whose beginning the client has left out', () => expect(reconcile([hello, hi, how, fine], [how, fine, hello])).toEqual([hello]))
  it('is the message a client sends alone', () => expect(reconcile([hello, hi], [how])).toEqual([how]))
  it('is a message said before, if it is said again after a reply', () => expect(reconcile([hello, hi], [hello])).toEqual([hello]))
  it('is nothing, if a request is repeated that had no reply', () => {
    expect(reconcile([hello, hi, how], [hello, hi, how])).toEqual([])
    expect(reconcile([hello, hi, how], [how])).toEqual([])
  })
  it('is both the reply nobody has seen and what follows it', () => expect(reconcile([hello], [hello, hi, how])).toEqual([hi, how]))
  it('is everything, if the client has changed what was said before', () => expect(reconcile([hello, hi], [user('Hey'), hi, how])).toHaveLength(3))

  it('is told by calls and results too', () => {
    const calls = (id: string) => ({ role: 'assistant' as const, content: '', calls: [{ id, name: 'now', arguments: '{}' }] })
    const result = (answers: string) => ({ role: 'tool' as const, content: '12:00', answers })
    expect(reconcile([hello, calls('a')], [hello, calls('a'), result('a')])).toEqual([result('a')])
    expect(reconcile([hello, calls('a')], [hello, calls('b'), result('b')])).toHaveLength(3)
    expect(reconcile([calls('a'), result('a')], [calls('a'), result('b')])).toHaveLength(2)
  })

  const lines = (most: number) => fc.array(fc.constantFrom(hello, hi, how), { maxLength: most })

  it('is what is left after the longest overlap', () => {
    fc.assert(
      fc.property(lines(12), lines(12), (stored, sent) => {
        const overlaps = (many: number) => JSON.stringify(stored.slice(stored.length - many)) === JSON.stringify(sent.slice(0, many))
        const known = Array.from({ length: Math.min(stored.length, sent.length) + 1 }, (_, many) => many).filter(overlaps)
        expect(reconcile(stored, sent)).toEqual(sent.slice(Math.max(...known)))
      }),
    )
  })

  it('takes time that grows with what is sent, however much it repeats itself', () => {
    const same = (many: number): Line[] => Array.from({ length: many }, () => user('no'))
    expect(reconcile([...same(100_000), hi], same(100_000))).toHaveLength(100_000)
    expect(reconcile(same(100_000), [...same(100_000), hi])).toEqual([hi])
  })
})
