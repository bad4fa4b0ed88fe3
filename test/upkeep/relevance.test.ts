import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import { hasKeyFacts, scoreRelevance } from '../../src/upkeep/optimizer/triage.ts'
import { verifies } from '../requirements/verifies.ts'

const hour = 3_600_000
const now = 1_000_000 * hour
/** Scores a text of the given age in hours. */
const scoreOf = (content: string, hours = 2, role: Role = 'user'): number =>
  scoreRelevance({ role, content, at: now - hours * hour, sequence: 1 }, now)

/** Scores 0.6: the base of 0.5, and 0.1 for the last day. */
const plain = 'We looked at the draft of the text together.'

describe('scoreRelevance', () => {
  verifies('A-06', 'adds for the last hour and day, and subtracts after a day', () => {
    expect([0, 1, 1.001, 24, 24.001, 10_000].map((hours) => scoreOf(plain, hours))).toEqual([
      0.7, 0.7, 0.6, 0.6, 0.4, 0.4,
    ])
    expect(scoreOf(plain, -5)).toBe(0.7)
  })

  it('measures age from the given time', () => {
    const entry = { role: 'user', content: plain, at: 0, sequence: 1 } as const
    expect([hour, 2 * hour, 48 * hour].map((at) => scoreRelevance(entry, at))).toEqual([0.7, 0.6, 0.4])
  })

  verifies('A-06', 'adds for errors, URLs, selectors, credentials, importance and role', () => {
    expect(scoreOf(`${plain} A TypeError came up.`)).toBe(0.75)
    expect(scoreOf(`${plain} The build failed.`)).toBe(0.75)
    expect(scoreOf(`${plain} The build FAILED with an error, an error!`)).toBe(0.75)
    expect(scoreOf(`${plain} See http://example.com for it.`)).toBe(0.7)
    expect(scoreOf(`${plain} See HTTPS://example.com for it.`)).toBe(0.7)
    expect(scoreOf(`${plain} Use document.querySelector there.`)).toBe(0.7)
    expect(scoreOf(`${plain} Use the XPath there.`)).toBe(0.7)
    expect(scoreOf(`${plain} The password was changed.`)).toBe(0.8)
    expect(scoreOf(`${plain} Credentials were changed.`)).toBe(0.8)
    expect(scoreOf(`${plain} This is important.`)).toBe(0.75)
    expect(scoreOf(`${plain} Critical, really.`)).toBe(0.75)
    expect(scoreOf(`${plain} All that is unimportant.`)).toBe(0.6)
    expect(scoreOf(plain, 2, 'assistant')).toBe(0.6)
    expect(scoreOf(plain, 2, 'system')).toBe(0.7)
    expect(scoreOf(plain, 2, 'tool')).toBe(0.75)
  })

  verifies('A-06', 'treats the placeholder of a secret as a credential', () => {
    expect(scoreOf(`${plain} Take ⟨secret:123456⟩ for it.`)).toBe(0.8)
    expect(scoreOf(`${plain} The password is ⟨secret:123456⟩.`)).toBe(0.8)
  })

  verifies('A-06', 'subtracts for fewer than 20 characters', () => {
    expect(scoreOf('1234567890123456789')).toBe(0.4)
    expect(scoreOf('12345678901234567890')).toBe(0.6)
    expect(scoreOf('  1234567890123456789\n\n')).toBe(0.4)
    expect(scoreOf('')).toBe(0.4)
  })

  verifies('A-06', 'subtracts for a leading word of agreement or greeting', () => {
    for (const word of ['ok', 'OK,', 'Okay.', 'yes', 'Yes!', 'no', 'No.', 'sure', 'thanks', 'hi', 'Hello', '\n ok'])
      expect([word, scoreOf(`${word} we looked at the draft together.`)]).toEqual([word, 0.3])
  })

  verifies('A-06', 'ignores words that only start like one, or come later', () => {
    for (const beginning of [
      'Nothing',
      'Note:',
      'no-op',
      'hi-res',
      'History',
      'Yesterday',
      'Okinawa',
      'thanksgiving',
      "no1's",
      'Surely',
      'Hí',
      '{"ok":true}',
      'well, ok',
    ])
      expect([beginning, scoreOf(`${beginning} we looked at the draft together.`)]).toEqual([beginning, 0.6])
  })

  verifies('A-06', 'stays between 0 and 1 and is exact to the hundredth', () => {
    expect(scoreOf('no', 48)).toBe(0)
    expect(scoreOf('Critical error at https://example.com: selector and password', 0, 'tool')).toBe(1)
    const parts = fc.constantFrom(
      'ok ',
      'error ',
      'https://a.b ',
      'xpath ',
      'password ',
      'critical ',
      'and so on and on ',
      '',
    )
    const roles = fc.constantFrom<Role[]>('user', 'assistant', 'system', 'tool')
    fc.assert(
      fc.property(fc.array(parts), fc.nat(60), roles, (texts, hours, role) => {
        const score = scoreOf(texts.join(''), hours, role)
        expect(score >= 0 && score <= 1).toBe(true)
        expect(score).toBe(Number(score.toFixed(2)))
      }),
    )
  })
})

describe('hasKeyFacts', () => {
  const facts = [
    'see https://example.com',
    'http://localhost',
    'a TypeError',
    'the build failed',
    'an Exception was thrown',
    'the selector is wrong',
    'by XPath',
    'it uses "#page-title" there',
    'click [data-testid="save"]',
    'at //div[@id]',
    'the API is slow',
    'two APIs',
    'set api_key first',
    'POST /orders answers 201',
    'the password was changed',
    'with credentials',
    'take ⟨secret:123456⟩',
    'Step 1 is done',
    'in phase 2',
    'steps 3-5',
  ]
  verifies('A-06', 'is true for URLs, errors, selectors, APIs, credentials and numbered steps', () =>
    expect(facts.filter((text) => !hasKeyFacts(text))).toEqual([]),
  )

  it('is false for other text', () => {
    const others = [
      '',
      'We looked at the draft.',
      'a rapid therapist in the capital',
      'step by step',
      'this phase',
      'get /me a drink',
      'issue #12',
      '# Heading',
      "'.env'",
      'a // b',
    ]
    expect(others.filter(hasKeyFacts)).toEqual([])
  })
})
