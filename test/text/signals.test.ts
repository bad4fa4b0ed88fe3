import { describe, expect, it } from 'vitest'
import { isQuestion } from '../../src/text/sentences.ts'

describe('isQuestion', () => {
  it.each([
    'What is my cat called?',
    'when did Caroline go to the support group',
    'Can you list them in order? Mention only three.',
    'How many days were there between the two releases',
    'Wie heißt meine Katze?',
    '私の猫の名前は？',
    'ما اسم قطتي؟',
  ])('is true for %j', (text) => expect(isQuestion(text)).toBe(true))

  it.each([
    'make the commands take a session name',
    'Do it.',
    'do this for every file',
    'try again',
    'const a = b;',
    '',
    'Is done. Now write the tests.',
    `${'x '.repeat(500)}\nfix it`,
  ])('is false for %j', (text) => expect(isQuestion(text)).toBe(false))
})
