import type { Derived, Message, Said } from '../../domain/entry.ts'
import type { Gap } from '../../domain/session.ts'
import { type Body, isQuestion, placed } from './session.ts'

/** Makes bytes fewer, and the same again. */
export type Pack = { pack(bytes: Uint8Array): Uint8Array; unpack(bytes: Uint8Array): Uint8Array }

/** What few messages have. */
type Others = Pick<Said, 'name' | 'calls' | 'answers'>

/** A message without the names of its fields, nor what its number tells. */
type Row = readonly [
  sequence: number,
  offset: number,
  at: number,
  role: Said['role'],
  content: string,
  tokens: number,
  lineTokens: number,
  tokenizer: string,
  weight: number,
  others?: Others,
]

type Written = readonly [
  messages: readonly Row[],
  gaps: readonly Gap[],
  derived: readonly Derived[],
  done: readonly (readonly [id: string, run: readonly [first: number, last: number]])[],
]

/** What is in a session, packed: a letter for each byte, because a text takes less beside its letters than a list of bytes does. */
export function folded({ messages, gaps, derived, done }: Body, { pack }: Pack): string {
  const written: Written = [messages.map(rowOf), gaps, [...(derived?.values() ?? [])], [...(done ?? [])]]
  return lettersOf(pack(new TextEncoder().encode(JSON.stringify(written))))
}

/** What was packed, as it was. */
export function unfolded(letters: string, { unpack }: Pack): Body {
  const [rows, gaps, derived, done] = JSON.parse(new TextDecoder().decode(unpack(bytesOf(letters)))) as Written
  const messages = rows.map(messageOf)
  return {
    messages,
    gaps,
    asked: messages.findLast(isQuestion),
    derived: derived.length === 0 ? undefined : new Map(derived.map((entry) => [entry.id, entry])),
    done: done.length === 0 ? undefined : new Map(done),
  }
}

function rowOf(message: Message): Row {
  const { sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight, name, calls, answers } = message
  const row = [sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight] as const
  // What is not there is not written.
  return (name ?? calls ?? answers) === undefined ? row : [...row, { name, calls, answers } as Others]
}

const messageOf = ([
  sequence,
  offset,
  at,
  role,
  content,
  tokens,
  lineTokens,
  tokenizer,
  weight,
  others,
]: Row): Message => placed({ at, role, content, tokens, lineTokens, tokenizer, weight, ...others }, sequence, offset)

/** So many letters are made at once: more would be more arguments than a call takes. */
const atOnce = 8_192

function lettersOf(bytes: Uint8Array): string {
  let letters = ''
  // Given as a list, they are not taken one by one.
  for (let from = 0; from < bytes.length; from += atOnce)
    letters += Reflect.apply(String.fromCharCode, null, bytes.subarray(from, from + atOnce))
  return letters
}

function bytesOf(letters: string): Uint8Array {
  const bytes = new Uint8Array(letters.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at)
  return bytes
}
