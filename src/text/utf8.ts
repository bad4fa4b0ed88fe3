import type { Said } from '../domain/entry.ts'

const encoder = new TextEncoder()

/** How many bytes a text takes in UTF-8. */
export const utf8Length = (text: string): number => encoder.encode(text).length

/** How many bytes everything takes that is said in a message. */
export const bytesOf = ({ content, name = '', answers = '', calls = [] }: Pick<Said, 'content' | 'name' | 'answers' | 'calls'>): number =>
  utf8Length([content, name, answers, ...calls.flatMap((call) => [call.id, call.name, call.arguments])].join(''))
