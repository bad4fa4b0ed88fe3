import { describe, expect, it } from 'vitest'
import { type Dialogue, ExampleBuilder, type Examples } from '../../tools/recall-table/dialogueExamples.ts'
import { createPieceEncoder } from '../../tools/recall-table/sentencePieces.ts'
import { createTableRows, selectWords } from '../../tools/recall-table/tableRows.ts'

const dialogue: Dialogue = {
  turns: [
    ['A', 'My sister moved to Lisbon last spring. She opened a small bakery near the harbour.'],
    ['B', 'That sounds lovely. Do you visit your sister often?'],
    ['A', 'Twice a year, usually when the weather turns cold here.'],
    ['B', 'Ok.'],
  ],
}

/** Builds examples of the same dialogue many times, so that every kind of pair is drawn. */
function buildExamples(times: number): Examples {
  const builder = new ExampleBuilder()
  for (let at = 0; at < times; at++) builder.addDialogue(dialogue)
  return builder.build(['the', 'dog', 'h1n1'])
}

describe('ExampleBuilder', () => {
  const { texts, pairs, firstWordText } = buildExamples(40)
  const pairTexts = (kind: number): (readonly [string, string])[] =>
    pairs.filter((pair) => pair.kind === kind).map(({ query, turn }) => [texts[query] ?? '', texts[turn] ?? ''])

  it('with a question and a reply › pairs them, mostly with the name of the person asked', () => {
    const questions = pairTexts(0)
    expect(questions).toHaveLength(40)
    expect(new Set(questions.map(([, turn]) => turn))).toEqual(new Set([dialogue.turns[2]?.[1]]))
    const named = questions.filter(([query]) => /^does (\w+) visit \1's sister often\?$/.test(query))
    expect(named.length).toBeGreaterThan(20)
    expect(questions.length - named.length).toBe(
      questions.filter(([query]) => query === 'Do you visit your sister often?').length,
    )
  })
  it('with several sentences › pairs one, about its speaker, with the rest', () => {
    const [query, rest] = pairTexts(1).find(([text]) => text.includes('moved')) ?? []
    expect(query).toMatch(/^\w+'s sister moved to Lisbon last spring\.$/)
    expect(rest).toBe('She opened a small bakery near the harbour.')
  })
  it('with a statement › pairs some of its words with it', () => {
    const keywords = pairTexts(2)
    expect(keywords.length).toBeGreaterThan(0)
    for (const [query, turn] of keywords) {
      expect(query.endsWith('?')).toBe(true)
      expect(turn).toContain(query.slice(0, -1).split(' ').at(-1))
    }
  })
  it('with words › ends with each word alone and in a phrase, without stopwords and numbers', () =>
    expect(texts.slice(firstWordText)).toEqual(['dog', expect.stringMatching(/ dog$/)]))
  it('with the same input › creates the same examples', () => expect(buildExamples(3)).toEqual(buildExamples(3)))
})

describe('createTableRows', () => {
  const rows = createTableRows(selectWords(['the', 'dogs', 'Dog', 'walked', 'walking', 'of']))

  it('numbers stems, then stopwords, then hash buckets', () => {
    expect(rows.stems).toEqual(['dog', 'walk'])
    expect(rows.stopwords.slice(0, 3)).toEqual(['the', 'of', "don't"])
    expect(rows.rowsOf("The dog's walks of")).toEqual([2, 0, 1, 3])
  })
  it('with an unlisted word › uses the bucket of its hash', () =>
    expect(rows.rowsOf('zzyzx')).toEqual([rows.count - 2_048 + 1_126]))
  it('with an unlisted stopword › leaves it out', () => expect(rows.rowsOf('herself')).toEqual([]))
})

describe('createPieceEncoder', () => {
  const reserved = Array.from({ length: 6 }, (_, id): [string, number] => [`<${id}>`, 0])
  const encode = createPieceEncoder([
    ...reserved,
    ['\u2581do', -3],
    ['g', -5],
    ['\u2581dog', -4],
    ['s', -2],
    ['\u2581', -6],
    ['\u2581s', -9],
  ])

  it('with several splits › returns the most probable one', () => {
    expect(encode('dogs do')).toEqual([8, 9, 6])
    expect(encode('s')).toEqual([10, 9])
  })
  it('with unknown characters › returns one unknown piece for each run', () =>
    expect(encode('s😀😀s')).toEqual([10, 9, 0, 9]))
  it('with compatibility characters › normalizes them', () => expect(encode('ｄｏ')).toEqual([6]))
  it('with an empty text › returns no pieces', () => expect(encode('')).toEqual([]))
})
