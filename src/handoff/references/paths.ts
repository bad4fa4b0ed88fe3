import { isObject } from '../../domain/checks.ts'
import type { Message } from '../../domain/entry.ts'
import { anchorsIn } from '../../text/anchors.ts'

/** How many paths are named at most, and how many characters are searched for them, the newest messages first. */
const most = { paths: 200, characters: 1_000_000, path: 1_024 }

/** A file has an extension, or is known by its whole name. */
const file =
  /(?:^|[/\\])(?:[^/\\]*[^./\\]\.[A-Za-z][A-Za-z0-9_-]{0,15}|Makefile|Dockerfile|Procfile|Gemfile|LICENSE|README|\.[A-Za-z][\w.-]{1,30})$/
/** Code and prose name members and hosts (`console.log`, `example.com`) as they name files, so without a folder only these are files. */
const alone =
  /^(?:[\w@.+-]+\.(?:[cm]?[jt]sx?|json|mdc?|txt|ya?ml|toml|ini|lock|py|rb|go|rs|java|kt|swift|cc|cpp|php|sh|sql|html?|s?css|vue|csv|xml)|Makefile|Dockerfile|Procfile|Gemfile)$/i
/** Fields of a tool's arguments that hold a path. */
const field = /^(?:(?:file|target|absolute|relative|notebook|old|new)_?)?(?:path|file|filename|uri)$/i

/**
 * The files a conversation names, in what was said and in what tools were called with, the last named first.
 *
 * @example
 * pathsIn([{ content: 'See src/app.ts:12 and https://example.com/a.ts.' }]) // ['src/app.ts']
 */
export function pathsIn(messages: readonly Pick<Message, 'content' | 'calls'>[]): string[] {
  const found = new Set<string>()
  let left = most.characters
  for (const { content, calls = [] } of messages.toReversed()) {
    if (left <= 0 || found.size >= most.paths) break
    const said = content.slice(0, left)
    left -= said.length
    const named = calls.flatMap(({ arguments: text }) => {
      const given = text.length > left ? '' : text
      left -= given.length
      return pathsGiven(given)
    })
    for (const path of [...named, ...pathsSaid(said).toReversed()]) found.add(path)
  }
  return [...found].slice(0, most.paths)
}

const pathsSaid = (text: string): string[] =>
  anchorsIn(text)
    .filter(({ kind }) => kind === 'path')
    .map((anchor) => anchor.text)
    .filter((path) => path.length <= most.path && (/[/\\]/.test(path) ? file : alone).test(path))

/** Tools are told paths as they are, with blanks and letters of any script. */
function pathsGiven(text: string): string[] {
  const given = parsed(text)
  return Object.entries(given).flatMap(([name, value]) => {
    if (!field.test(name) || typeof value !== 'string' || value.length > most.path) return []
    const path = value.replace(/^file:\/\/(?=\/)/, '').trim()
    return path !== '' && !path.includes('://') && file.test(path) ? [path] : []
  })
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    // arguments of a call that was cut off name no file for certain
    return {}
  }
}
