import { readFileSync } from 'node:fs'
import type { MessageInput } from '../../../src/index.ts'

const minuteMs = 60_000

/** A message of a fixture, whose text and time are always set. */
export type FixtureMessage = MessageInput & { readonly content: string; readonly at: number }

/**
 * Reads a conversation of this folder. A line `@ 2026-03-02 09:14` sets the time (UTC) of the next message, later ones
 * follow a minute apart. `[user]`, `[assistant]`, `[call] NAME ARGUMENTS` and `[tool]` begin a message; a call belongs
 * to the assistant's message before it, and a tool's result answers the last call. Other lines continue the message.
 */
export function readTranscript(name: string): readonly FixtureMessage[] {
  const text = readFileSync(new URL(`./conversations/${name}.txt`, import.meta.url), 'utf8')
  return parseTranscript(text)
}

type Draft = { role: 'user' | 'assistant' | 'tool'; at: number; lines: string[]; call?: [string, string]; id?: string }

export function parseTranscript(text: string): readonly FixtureMessage[] {
  const drafts: Draft[] = []
  let at = 0
  let calls = 0
  for (const line of text.trimEnd().split('\n')) {
    const time = /^@ (\d{4}-\d\d-\d\d) (\d\d:\d\d)$/.exec(line)
    const opening = /^\[(user|assistant|call|tool)\] ?(.*)$/.exec(line)
    const last = drafts.at(-1)
    if (time !== null) {
      at = Date.parse(`${time[1]}T${time[2]}:00Z`)
    } else if (opening === null) {
      if (last === undefined) throw new Error(`The transcript must begin with a time and a message, not "${line}".`)
      last.lines.push(line)
    } else if (opening[1] === 'call') {
      const [, tool = '', args = ''] = /^(\S+) (.*)$/.exec(opening[2] ?? '') ?? []
      if (last?.role !== 'assistant') throw new Error(`Put [call] ${tool} after a message of the assistant.`)
      calls += 1
      last.call = [tool, args]
      last.id = `call${calls}`
    } else {
      const role = opening[1] as Draft['role']
      drafts.push({ role, at, lines: [opening[2] ?? ''], ...(role === 'tool' && { id: `call${calls}` }) })
      at += minuteMs
    }
  }
  return drafts.map(toMessage)
}

function toMessage({ role, at, lines, call, id = '' }: Draft): FixtureMessage {
  const content = lines.join('\n').trim()
  if (role === 'tool') return { role, at, content, tool_call_id: id }
  if (call === undefined) return { role, at, content }
  return { role, at, content, tool_calls: [{ id, type: 'function', function: { name: call[0], arguments: call[1] } }] }
}

/** Splits a conversation into portions that each begin with a message of the user. */
export function splitTurns(messages: readonly FixtureMessage[]): readonly (readonly FixtureMessage[])[] {
  const turns: FixtureMessage[][] = []
  for (const message of messages) {
    const turn = turns.at(-1)
    if (turn === undefined || message.role === 'user') turns.push([message])
    else turn.push(message)
  }
  return turns
}
