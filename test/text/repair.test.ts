import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { repairJson } from '../../src/text/json.ts'

describe('repairJson', () => {
  it.each([
    ['plain', '{"a": [1, -2.5e3, true, null, "x"]}', { a: [1, -2500, true, null, 'x'] }],
    ['in a code fence with prose around it', 'Sure! Here it is:\n```json\n{"a": 1}\n```\nAnything else?', { a: 1 }],
    [
      'after prose with brackets of its own',
      'As you {may} know [1], this is it: {"a": {"b": []}} (done)',
      { a: { b: [] } },
    ],
    ['after what the model was thinking', '<think>hm</think>{"a": 1}', { a: 1 }],
    ['with trailing commas', '{"a": [1, 2,], "b": 3,}', { a: [1, 2], b: 3 }],
    ['in single quotes', "{'a': 'it's', 'b': ['c']}", { a: "it's", b: ['c'] }],
    ['with names without quotes', '{a: 1, user_name: "b"}', { a: 1, user_name: 'b' }],
    ['with comments', '{// first\n"a": 1, /* second */ "b": 2 # third\n}', { a: 1, b: 2 }],
    ['in the words of Python', "{'a': None, 'b': True, 'c': False}", { a: null, b: true, c: false }],
    [
      'with numbers that are none',
      '{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999}',
      { a: null, b: null, c: null, d: null },
    ],
    ['with escapes', '{"a": "\\u00e9\\n\\"\\/\\\\", "b": "\\x\\u12"}', { a: 'é\n"/\\', b: 'xu12' }],
    ['empty', '{}', {}],
    ['a list', '[{"a": 1}, 2]', [{ a: 1 }, 2]],
  ])('parses JSON that is %s', (_, text, expected) => expect(repairJson(text)).toEqual(expected))

  it.each([
    ['inside a text', '{"a": ["b", "c', { a: ['b'] }],
    ['inside a number', '{"a": 1, "b": 12', { a: 1 }],
    ['inside a word', '{"a": [true, fal', { a: [true] }],
    ['after a colon', '{"a": 1, "b":', { a: 1 }],
    ['after a name', '{"a": {"b": 1, "c"', { a: { b: 1 } }],
    ['after a comma', '[1, [2, 3], ', [1, [2, 3]]],
    ['before a word that is no JSON', '{"a": 1, "b": what?', { a: 1 }],
  ])('keeps complete values of JSON truncated %s', (_, text, expected) => expect(repairJson(text)).toEqual(expected))

  it.each([
    '',
    'No data was found.',
    '42',
    '"text"',
    '<!doctype html><p>{"a": 1}</p>',
    '<html>[1]</html>',
    'see [the] docs',
    '{',
    '[',
    '{"a',
  ])('returns undefined for %j', (text) => expect(repairJson(text)).toBeUndefined())

  it('drops property names that could reach a prototype', () => {
    const value = repairJson(
      '{"__proto__": {"isAdmin": true}, "constructor": {"prototype": {"x": 1}}, "a": {"prototype": 1, "b": 2}}',
    ) as Record<string, unknown>
    expect(value).toEqual({ a: { b: 2 } })
    expect(Object.getPrototypeOf(value)).toBe(null)
    expect(value.isAdmin).toBeUndefined()
    expect(({} as Record<string, unknown>).isAdmin).toBeUndefined()
  })
  it('parses up to 64 levels', () => {
    const nested = (levels: number): string => `{"kept": 1, "deep": ${'['.repeat(levels)}2${']'.repeat(levels)}}`
    expect(JSON.stringify(repairJson(nested(63)))).toBe(JSON.stringify(JSON.parse(nested(63))))
    expect(JSON.stringify(repairJson(nested(64)))).not.toContain('2')
    expect(JSON.stringify(repairJson('['.repeat(100_000)))).toBe('['.repeat(64) + ']'.repeat(64))
  })
})

/** Tells whether a value is a prefix of another: lists may lack their end, objects some of their fields. */
function isBeginning(part: unknown, whole: unknown): boolean {
  if (Array.isArray(part))
    return (
      Array.isArray(whole) &&
      part.length <= whole.length &&
      part.every((item, place) => isBeginning(item, whole[place]))
    )
  if (typeof part !== 'object' || part === null) return Object.is(part, whole)
  if (typeof whole !== 'object' || whole === null) return false
  return Object.keys(part).every(
    (name) =>
      Object.hasOwn(whole, name) &&
      isBeginning((part as Record<string, unknown>)[name], (whole as Record<string, unknown>)[name]),
  )
}

const name = fc.string({ maxLength: 6 }).filter((text) => !['__proto__', 'constructor', 'prototype'].includes(text))
const { tree } = fc.letrec<{ tree: unknown; leaf: unknown }>((tie) => ({
  leaf: fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
    fc.boolean(),
    fc.constant(null),
  ),
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.array(fc.oneof({ maxDepth: 4 }, tie('leaf'), tie('tree')), { maxLength: 5 }),
    fc.dictionary(name, fc.oneof({ maxDepth: 4 }, tie('leaf'), tie('tree')), { maxKeys: 5, noNullPrototype: true }),
  ),
}))
/** Excludes -0, which JSON does not have. */
const plain = tree.map((value) => JSON.parse(JSON.stringify(value)) as unknown)

describe('repairJson with generated input', () => {
  it('returns valid JSON unchanged, compact or indented', () =>
    fc.assert(
      fc.property(plain, fc.constantFrom(0, 2), (value, indent) => {
        expect(repairJson(JSON.stringify(value, undefined, indent))).toEqual(value)
      }),
    ))
  it('returns a prefix of the value wherever the text is truncated', () =>
    fc.assert(
      fc.property(plain, fc.double({ min: 0, max: 1, noNaN: true }), (value, part) => {
        const text = JSON.stringify(value)
        const repaired = repairJson(text.slice(0, Math.floor(part * text.length)))
        expect(repaired === undefined || isBeginning(repaired, value)).toBe(true)
      }),
    ))
  it('never throws', () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...'{}[]:,"\'\\/*#\n u1.-eEn', 'true', 'None', '__proto__', '```', '<')),
        (bits) => {
          const value = repairJson(bits.join(''))
          expect(value === undefined || typeof value === 'object').toBe(true)
        },
      ),
    ))
})
