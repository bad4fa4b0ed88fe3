import { hash } from 'node:crypto'
import type { Incoming } from '../domain/chat.ts'
import { isObject } from '../domain/checks.ts'
import { barringSecrets } from '../text/secretMark.ts'
import { type Foreign, parseLines, Sieve } from './foreign.ts'

/**
 * Reads OpenAI-style JSON Lines: a line `{"messages":[…]}` is a session of its own, named by the hash of the line without its secrets;
 * lines that are messages themselves make one session together, named `name`, or by the hash of the first one.
 *
 * @example
 * parseOpenai('{"role":"user","content":"Hello"}\n', 'support').sessions[0]?.id // 'support'
 */
export function parseOpenai(text: string, name?: string): Foreign {
  const sieve = new Sieve()
  const single: (Incoming | string)[] = []
  let first: string | undefined
  for (const { line, value } of parseLines(text, sieve)) {
    const fingerprint = `chat-${hash('sha256', barringSecrets(JSON.stringify(value))).slice(0, 32)}`
    if (Array.isArray(value.messages)) sieve.keep({ id: fingerprint }, value.messages.map(candidate))
    else if (typeof value.role === 'string') {
      first ??= fingerprint
      single.push(candidate(value))
    } else sieve.skip(`line ${line}`, 'is neither a message nor a list of messages')
  }
  if (first !== undefined) sieve.keep({ id: name ?? first }, single)
  return sieve.result()
}

/** What it holds is checked where it is kept. */
const candidate = (value: unknown): Incoming | string => (isObject(value) ? (value as Incoming) : 'is not a message')
