import { clip } from './clip.ts'
import { findFacts, outermost } from './facts.ts'

/** Shorter texts are their own digest; lines of a digest are cut to this length. */
const maxLineCharacters = 200

/**
 * Extracts the facts a digest preserves verbatim: URLs, e-mail addresses, error messages, CSS selectors, class names,
 * element ids, IP addresses and numbers of several digits, each once, in order.
 *
 * @example
 * extractFactTexts("Error: timeout. See https://example.com/login (port 9100).") // ['Error: timeout', 'https://example.com/login', '9100']
 */
export function extractFactTexts(text: string): string[] {
  return [...new Set(findFacts(text).map((fact) => fact.text))]
}

/** Characters of a long text that are searched. */
const maxReadCharacters = 65_536

/** Leaves the beginning and end of a very long text, so that searching it takes a few milliseconds. */
export const cutLongText = (text: string): string =>
  text.length <= maxReadCharacters
    ? text
    : `${text.slice(0, maxReadCharacters / 2)}\n${text.slice(-maxReadCharacters / 2)}`.toWellFormed()

/**
 * Shortens a text to its first line, its last line and every fact that the two do not show; of a text of more than
 * 65,536 characters, the facts at its beginning and end. Returns the text unchanged if it has at most 200 characters or
 * the digest would not be shorter.
 */
export function digest(text: string, role: string): string {
  if (text.length <= maxLineCharacters) return text
  const read = cutLongText(text)
  const first = findFirstLine(read)
  const last = findLastLine(read)
  const lines = [`[${role}] ${clip(first.text, maxLineCharacters, '')}`]
  if (last.start > first.start) lines.push(`... ${clip(last.text, maxLineCharacters, '')}`)
  const facts = outermost(findFacts(read)).filter((fact) => !lines.some((line) => showsFact(line, fact.text)))
  if (facts.length > 0) lines.push(`[preserved: ${[...new Set(facts.map((fact) => fact.text))].join(', ')}]`)
  const result = lines.join('\n')
  return result.length < text.length ? result : text
}

/** Summarises many messages in one text: requests, results and every preserved fact. */
export function batchDigest(messages: readonly { readonly role: string; readonly content: string }[]): string {
  const lines = [`[Summary of ${messages.length} messages]`]
  const nonBlank = messages.filter((message) => /\S/.test(message.content))
  const requests = nonBlank.filter((message) => isRequest(message.role)).map(formatBrief)
  const results = nonBlank.filter((message) => !isRequest(message.role)).map(formatBrief)
  const facts = [...new Set(nonBlank.flatMap((message) => extractFactTexts(message.content)))]
  if (requests.length > 0) lines.push(`Actions: ${requests.join(' | ')}`)
  if (results.length > 0) lines.push(`Results: ${results.join(' | ')}`)
  if (facts.length > 0) lines.push(`Key facts: ${facts.join(', ')}`)
  return lines.join('\n')
}

const isRequest = (role: string): boolean => role === 'user' || role === 'system'
const roleNames: Readonly<Record<string, string>> = { user: 'User', assistant: 'Agent', tool: 'Tool', system: 'System' }

function formatBrief(message: { readonly role: string; readonly content: string }): string {
  return `${roleNames[message.role] ?? message.role}: ${clip(findFirstLine(message.content).text, 100)}`
}

type Line = { readonly text: string; readonly start: number }

/** Finds the first line that is not blank. */
function findFirstLine(text: string): Line {
  const trimmed = text.trimStart()
  const newline = trimmed.indexOf('\n')
  return { text: (newline < 0 ? trimmed : trimmed.slice(0, newline)).trimEnd(), start: text.length - trimmed.length }
}

/** Finds the last line that is not blank. */
function findLastLine(text: string): Line {
  const trimmed = text.trimEnd()
  const start = trimmed.lastIndexOf('\n') + 1
  const line = trimmed.slice(start)
  return { text: line.trim(), start: start + line.length - line.trimStart().length }
}

/** Tells whether a line contains the fact as a whole, not as part of a longer word or number. */
function showsFact(line: string, fact: string): boolean {
  for (let index = line.indexOf(fact); index >= 0; index = line.indexOf(fact, index + 1)) {
    const before = line.charAt(index - 1) + fact.charAt(0)
    const after = fact.charAt(fact.length - 1) + line.charAt(index + fact.length)
    if (!/^\w\w$/.test(before) && !/^\w\w$/.test(after)) return true
  }
  return false
}
