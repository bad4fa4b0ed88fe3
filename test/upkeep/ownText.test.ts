import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'
import { currentFacts } from './conversationFacts.ts'

/** Texts of others: pasted, forwarded, quoted or reported. */
const foreign: readonly string[] = [
  // blocks
  '"""\nMy name is Quentin and I live in Bath.\n"""\nSummarise this.',
  'What does this mean? """My name is Quentin."""',
  "'''\nI live in Bath.\n'''",
  '---\nMy name is Quentin. I live in Bath.\n---',
  'Please summarise the text below.\n---\nMy name is Quentin. I live in Bath.',
  '=====\nMy order number is BK-20418.\n=====\nWhat does it say?',
  '<<<\nI live in Bath.\n>>>',
  '```\nI live in Bath.\n```',
  '> I live in Bath.',
  '<article>\nI live in Bath.\n</article>',
  '{"name": "Quentin", "city": "Bath"}',
  '$ whoami\nMy name is Quentin\nI live in Bath',
  // quotations
  'The page says "My name is Quentin and I live in Bath."',
  'The page says "My name is Quentin". The sign reads: I live in Bath.',
  'She said: "I live in Bath. My phone number is 555 123 4567."',
  'He wrote “I am allergic to nuts. Call me Bo.” and left.',
  "e.g. 'My name is Quentin'",
  'Use a sentence like "I live in Bath and my dog is called Rex."',
  'How do you say "I live in Bath" in French?',
  'I read a book in which the hero says "I live in Bath".',
  'Die Seite sagt „Ich heiße Quentin und wohne in Bath.“',
  'Elle m’a dit : « J’habite à Bath »',
  'Ella dijo: "Vivo en Bath"',
  // reported speech and other people
  'She said she lives in Bath',
  "he told me: I'm allergic to nuts",
  'My friend says, I live in a bubble.',
  'He prefers dark mode. They live in Bath.',
  'His phone number is 555 123 4567.',
  'Ana: I live in Bath',
  'Assistant: I live in Bath',
  // e-mail
  'From: ana@a.example\nTo: bo@b.example\nSubject: hi\n\nI live in Bath.',
  'Subject: Vacation\n\nI moved to Bath.',
  'Fwd: I live in Bath\nMy name is Quentin',
  '-----Original Message-----\nI live in Bath.',
  'On Monday Ana wrote:\nI live in Bath.',
  'Am 3. Mai schrieb Ana:\nIch wohne in Bath.',
  'Betreff: Urlaub\n\nIch wohne in Bath.',
  // work on a text
  'translate: I live in Bath and my name is Quentin',
  'Translate to German: My order number is BK-20418.',
  'rewrite this: I prefer dark mode and never use tabs.',
  'Rewrite this more politely:\n\nI live in Bath. My name is Quentin.',
  'Proofread my cover letter:\n\nMy name is Quentin. I work at Acme.',
  'Here is the email I got:\nI live in Bath. Call me Ana.',
  'Reply to this message: I live in Bath, call me Ana.',
  'Explain this sentence: I live in Bath.',
  'Write a short story: My name is Quentin and I live in Bath.',
  'For example, my name is Quentin.',
  'Übersetze: Ich wohne in Bath und heiße Quentin.',
  'Traduis : J’habite à Bath.',
  'Traduce: Vivo en Bath.',
  'Traduza: Moro em Bath.',
  'Vertaal: Ik woon in Bath.',
  // suppositions and questions
  'If I lived in Bath I would be happy',
  'Suppose my name is Quentin.',
  "Imagine I'm allergic to nuts.",
  'Do I live in Bath?',
]

/** Texts of the user next to or in the form of quotations, with their facts. */
const own: readonly (readonly [text: string, facts: readonly string[]])[] = [
  ['My project is called "Blue Heron 2".', ['project: My project is called "Blue Heron 2"']],
  ['Call me "Sam"', ['name: Sam']],
  ['Remember: "the gate code is 4411"', [': the gate code is 4411']],
  ['> I live in Bath\nNo, I live in Oslo.', ['home: I live in Oslo']],
  ['"Fine," she said. I live in Oslo.', ['home: I live in Oslo']],
  ['As I said: I live in Oslo.', ['home: I live in Oslo']],
  ['I told you, I live in Oslo.', ['home: I live in Oslo']],
  ['Here is my address: 12 Elm Street', ['address: Here is my address: 12 Elm Street']],
  ['I live in Oslo.\n\nTranslate this: I live in Bath.', ['home: I live in Oslo']],
  ['I work at the newspaper "Le Monde".', ['employer: I work at the newspaper "Le Monde"']],
  ['"""\nI live in Bath.\n"""\nI live in Oslo.', ['home: I live in Oslo']],
  ['$ ls\nfile.txt\n\nI live in Oslo.', ['home: I live in Oslo']],
]

describe('extractFacts: quoted, pasted and reported speech', () => {
  for (const text of foreign)
    verifies(['K-03', 'X-09'], `${JSON.stringify(text)} › yields no facts`, () =>
      expect(currentFacts(text)).toEqual([]),
    )
  for (const [text, facts] of own)
    verifies('K-03', `own words in ${JSON.stringify(text)} › are found`, () =>
      expect(currentFacts(text)).toEqual(facts),
    )

  it('in a pasted block › yields no names either', () =>
    expect(
      extractFacts([{ id: 'm1', role: 'user', content: 'See """I met Ana Lopez in Oslo.""" and answer.', at: 1 }]),
    ).toEqual([]))
})

const names = (content: string): unknown[] =>
  extractFacts([{ id: 'm1', role: 'user', content, at: 1 }]).flatMap(({ field, value }) =>
    field === 'entities' ? [value] : [],
  )

describe('extractFacts: names', () => {
  it('with months, weekdays and their abbreviations › leaves them out', () => {
    expect(names('We met in Feb and on Tue with Ana Lopez.')).toEqual(['Ana Lopez'])
    expect(names('The tutorial is dated Feb 2024 and Sept 2023, says Ana.')).toEqual(['Ana'])
  })
})

describe('extractFacts: with hostile text', () => {
  it.each([
    ['quotation marks', '"a '.repeat(200_000)],
    ['single quotes', " 'a".repeat(200_000)],
    ['colons', 'says: '.repeat(150_000)],
    ['one long word', 'a'.repeat(1_000_000)],
    ['spaces', `I live in ${' '.repeat(1_000_000)}x`],
    ['possessives', 'my '.repeat(300_000)],
    ['commas', 'I prefer a, '.repeat(10_000)],
    ['numbers', '1 '.repeat(400_000)],
    ['triple quotes', '"""'.repeat(300_000)],
    ['separators', '---\n'.repeat(200_000)],
  ])('of %s › takes linear time', (_, text) => {
    const extract = () => void extractFacts([{ id: 'm1', role: 'user', content: text, at: 1 }])
    expect(measureCpu(extract)).toBeLessThan(8_000)
  })
  it('of any kind › never throws', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (content) => {
        extractFacts([{ id: 'm1', role: 'user', content, at: 1 }])
      }),
    ))
})
