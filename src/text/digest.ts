import { clip } from './clip.ts'
import { type FoundFact, findFacts, outermost } from './facts.ts'

/** Up to this many characters a text is its own digest, and so many of a line are shown. */
const short = 200

/**
 * What a digest keeps to the letter: URLs, e-mail addresses, error messages, CSS selectors, class names, element ids,
 * IP addresses and numbers of several digits, each once, in the order they come.
 *
 * @example
 * preservedFacts("Error: timeout. See https://example.com/login (port 9100).") // ['Error: timeout', 'https://example.com/login', '9100']
 */
export function preservedFacts(text: string): string[] {
  return [...new Set(findFacts(text).map((fact) => fact.text))]
}

/**
 * A long text as its first line, its last line and every preserved fact the two do not show; a short one, or one this
 * would not shorten, as it is.
 */
export function digest(text: string, role: string): string {
  if (text.length <= short) return text
  const first = lineFrom(text, 'start')
  const last = lineFrom(text, 'end')
  const shown = [`[${role}] ${clip(first.text, short, '')}`]
  if (last.start > first.start) shown.push(`... ${clip(last.text, short, '')}`)
  const facts = outermost(findFacts(text)).filter((fact) => !shown.some((line) => shows(line, fact.text)))
  if (facts.length > 0) shown.push(`[preserved: ${unique(facts).join(', ')}]`)
  const result = shown.join('\n')
  return result.length < text.length ? result : text
}

/** One summary of many messages: what was asked, what came of it, and every preserved fact. */
export function batchDigest(messages: readonly { readonly role: string; readonly content: string }[]): string {
  const lines = [`[Summary of ${messages.length} messages]`]
  const said = messages.filter((message) => /\S/.test(message.content))
  const asked = said.filter((message) => isRequest(message.role)).map(brief)
  const done = said.filter((message) => !isRequest(message.role)).map(brief)
  const facts = [...new Set(said.flatMap((message) => preservedFacts(message.content)))]
  if (asked.length > 0) lines.push(`Actions: ${asked.join(' | ')}`)
  if (done.length > 0) lines.push(`Results: ${done.join(' | ')}`)
  if (facts.length > 0) lines.push(`Key facts: ${facts.join(', ')}`)
  return lines.join('\n')
}

const isRequest = (role: string): boolean => role === 'user' || role === 'system'
const names: Readonly<Record<string, string>> = { user: 'User', assistant: 'Agent', tool: 'Tool', system: 'System' }

function brief(message: { readonly role: string; readonly content: string }): string {
  return `${names[message.role] ?? message.role}: ${clip(lineFrom(message.content, 'start').text, 100)}`
}

const unique = (facts: readonly FoundFact[]): string[] => [...new Set(facts.map((fact) => fact.text))]

/** The first or the last line that is not blank. */
function lineFrom(text: string, side: 'start' | 'end'): { readonly text: string; readonly start: number } {
  const trimmed = side === 'start' ? text.trimStart() : text.trimEnd()
  if (side === 'start') {
    const newline = trimmed.indexOf('\n')
    return { text: (newline < 0 ? trimmed : trimmed.slice(0, newline)).trimEnd(), start: text.length - trimmed.length }
  }
  const start = trimmed.lastIndexOf('\n') + 1
  const line = trimmed.slice(start)
  return { text: line.trim(), start: start + line.length - line.trimStart().length }
}

/** Whether a line shows the fact as such, and not as a part of a longer word or number. */
function shows(line: string, fact: string): boolean {
  for (let at = line.indexOf(fact); at >= 0; at = line.indexOf(fact, at + 1)) {
    const before = line.charAt(at - 1) + fact.charAt(0)
    const after = fact.charAt(fact.length - 1) + line.charAt(at + fact.length)
    if (!/^\w\w$/.test(before) && !/^\w\w$/.test(after)) return true
  }
  return false
}
