import type { Said } from '../domain/entry.ts'

const encoder = new TextEncoder()
/** Where texts are written only to see how long they become: that takes a fraction of the time in which their letters are looked at one by one. */
const slate = new Uint8Array(8_192)

/** How many bytes a text takes in UTF-8. */
export function utf8Length(text: string): number {
  if (text === '') return 0
  const { read, written } = encoder.encodeInto(text, slate)
  return read === text.length ? written : encoder.encode(text).length
}

/** How many bytes everything takes that is said in a message. */
export function bytesOf({
  content,
  name = '',
  answers = '',
  calls = [],
}: Pick<Said, 'content' | 'name' | 'answers' | 'calls'>): number {
  let bytes = utf8Length(content) + utf8Length(name) + utf8Length(answers)
  for (const call of calls) bytes += utf8Length(call.id) + utf8Length(call.name) + utf8Length(call.arguments)
  return bytes
}
