import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AnchorKind, findAnchors, findAnchorsInSteps, isCompoundWord } from '../../src/text/anchors.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from './hostileTexts.ts'

const found = (text: string, kind: AnchorKind): string[] =>
  findAnchors(text)
    .filter((anchor) => anchor.kind === kind)
    .map((anchor) => anchor.text)

describe('findAnchors', () => {
  it.each([
    ['See https://a.io/b?c=1#d, or (http://x.org).', ['https://a.io/b?c=1#d', 'http://x.org']],
    ['ws://localhost:8080/s is no page', ['ws://localhost:8080/s']],
    ['http:// is nothing', []],
  ])('finds URLs in %j', (text, urls) => expect(found(text, 'url')).toEqual(urls))
  it.each([
    ['Edit src/app/key.ts:12:5, then ./run.sh and ../a/b.', ['src/app/key.ts', './run.sh', '../a/b']],
    [
      '~/notes/todo.md, /etc/hosts, C:\\Temp\\a.log and package.json',
      ['~/notes/todo.md', '/etc/hosts', 'C:\\Temp\\a.log', 'package.json'],
    ],
    ['import x from "@types/node"', ['@types/node']],
    ['<b>bold</b> and s.replace(/[a]/g, 1)', []],
  ])('finds paths in %j', (text, paths) => expect(found(text, 'path')).toEqual(paths))
  it.each([
    [
      'parseKey, HttpServer, MAX_SIZE, user_id and __init__',
      ['parseKey', 'HttpServer', 'MAX_SIZE', 'user_id', '__init__'],
    ],
    ['app.config.port, ABC-123, #4321, v1.2.3 and 2.3.1', ['app.config.port', 'ABC-123', '#4321', 'v1.2.3', '2.3.1']],
    ['commit 3f2a9bc in feature-login-2 with --dry-run', ['3f2a9bc', 'feature-login-2', '--dry-run']],
    ['ana@example.com at 10.0.0.1:8080', ['ana@example.com', '10.0.0.1:8080']],
    ['It ended.Then, e.g. in the U.S. at 5 p.m., we left on the 3rd', []],
  ])('finds identifiers in %j', (text, names) => expect(found(text, 'identifier')).toEqual(names))
  it.each([
    ['port 9100, 12,500 EUR, $5, $1,200.50 and 15%', ['9100', '12,500 EUR', '$5', '$1,200.50', '15%']],
    ['3 cats and 40 dogs', []],
  ])('finds amounts and numbers of at least four digits in %j', (text, numbers) =>
    expect(found(text, 'number')).toEqual(numbers),
  )
  it.each([
    ['on 2024-05-01 at 12:30 or 5pm', ['2024-05-01', '12:30', '5pm']],
    [
      '3 May 2023, May 3, June 12th, 2024 and 2024-05-01T10:00:00Z',
      ['3 May 2023', 'May 3', 'June 12th, 2024', '2024-05-01T10:00:00Z'],
    ],
    ['You may go in 3 days', []],
  ])('finds dates and times in %j', (text, dates) => expect(found(text, 'date')).toEqual(dates))
  it('finds capitalised names inside sentences', () =>
    expect(found('My sister Ana Lopez met Wu in Lisbon. Then they left on Friday. John Smith stayed.', 'name')).toEqual(
      ['Ana Lopez', 'Wu', 'Lisbon', 'John Smith'],
    ))
  it.each([
    ['Never deploy on Fridays.', ['Never deploy on Fridays']],
    ["Use 4 spaces, don't use tabs; thanks.", ["don't use tabs"]],
    ['We must not log passwords!', ['We must not log passwords']],
    ['- Please do not touch src/a.ts', ['Please do not touch src/a.ts']],
    ['Refactor it, and write it without any packages.', ['Refactor it, and write it without any packages']],
    [
      'Only admins may delete rows. You should never push to main.',
      ['Only admins may delete rows', 'You should never push to main'],
    ],
    ['Answer only in German.', ['Answer only in German']],
    ['The rule: no more than 3 retries.', ['no more than 3 retries']],
    ["I never went there. We don't know. No problem. Don't worry. Not sure. Never mind!", []],
    ['Should I never use tabs?', []],
  ])('finds clauses that forbid or restrict something in %j', (text, clauses) =>
    expect(found(text, 'constraint')).toEqual(clauses),
  )
  it('also finds anchors inside a constraint', () =>
    expect(findAnchors('Never touch src/a.ts.')).toEqual([
      { kind: 'constraint', text: 'Never touch src/a.ts', start: 0, end: 20 },
      { kind: 'path', text: 'src/a.ts', start: 12, end: 20 },
    ]))
  it('isCompoundWord recognises two joined words', () =>
    expect(findAnchors('A well-known and/or self-hosted3 src/a.ts').map((anchor) => isCompoundWord(anchor))).toEqual([
      true,
      true,
      false,
      false,
    ]))
  it('returns ordered spans of which only constraints contain others', () =>
    fc.assert(
      fc.property(
        fc.oneof(
          hostileText,
          fc
            .array(fc.constantFrom('never ', 'src/a.ts ', 'May 3 ', '12,500 ', 'a_b', '. ', 'Ana ', '"', '\n'))
            .map((bits) => bits.join('')),
        ),
        (text) => {
          let before = { start: 0, end: 0 }
          for (const anchor of findAnchors(text)) {
            expect(text.slice(anchor.start, anchor.end)).toBe(anchor.text)
            expect(anchor.text.trim()).toBe(anchor.text)
            expect(anchor.start).toBeGreaterThanOrEqual(before.start)
            if (anchor.kind === 'constraint') continue
            expect(anchor.end).toBeGreaterThan(before.end)
            before = anchor
          }
        },
      ),
      { numRuns: 500 },
    ))
  verifies('R-03', 'findAnchorsInSteps › with 40,000 joined names › takes hundreds of steps', () => {
    expect([...findAnchorsInSteps('a.b@'.repeat(40_000))].length).toBeGreaterThan(200)
  })
})
