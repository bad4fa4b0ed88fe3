import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { Visitor } from 'vite'
import { lineAt, type Source } from '../source.ts'

/** A regular expression of the sources; `at` is its file and line. */
export type Pattern = { readonly at: string; readonly source: string; readonly flags: string }

/** Lists the regular expressions that a file writes as literals, and the lines of its calls of `RegExp`. */
function listPatterns(file: Source): { readonly literals: readonly Pattern[]; readonly calls: readonly string[] } {
  const literals: Pattern[] = []
  const calls: string[] = []
  const placeOf = (start: number): string => `${file.path}:${lineAt(file, start)}`
  const addCall = ({ callee, start }: { callee: { type: string; name?: unknown }; start: number }) => {
    if (callee.type === 'Identifier' && callee.name === 'RegExp') calls.push(placeOf(start))
  }
  new Visitor({
    Literal(node) {
      if ('regex' in node)
        literals.push({ at: placeOf(node.start), source: node.regex.pattern, flags: node.regex.flags })
    },
    NewExpression: addCall,
    CallExpression: addCall,
  }).visit(file.program)
  return { literals, calls }
}

/** Regular expressions of the sources, and the calls of `RegExp` that created none of them. */
export type Collection = { readonly patterns: readonly Pattern[]; readonly unreached: readonly string[] }

const fileOf = (at: string): string => at.slice(0, at.lastIndexOf(':'))

/** Imports the files of these calls in a worker, and returns the patterns that they create. */
async function recordConstructed(calls: readonly string[]): Promise<readonly Pattern[]> {
  const worker = new Worker(new URL('./recordConstructed.ts', import.meta.url), {
    workerData: [...new Set(calls.map(fileOf))],
  })
  const [constructed] = (await once(worker, 'message')) as [readonly Pattern[]]
  return constructed
}

/**
 * Collects all regular expressions of the sources, each once per file. Those that code puts together are recorded in a
 * worker, which imports the files with calls of `RegExp` and calls the functions that create more.
 */
export async function collectPatterns(sources: readonly Source[]): Promise<Collection> {
  const listed = sources.map(listPatterns)
  const calls = listed.flatMap((file) => file.calls)
  const constructed = calls.length === 0 ? [] : await recordConstructed(calls)
  const reached = new Set(constructed.map(({ at }) => at))
  const all = [...listed.flatMap(({ literals }) => literals), ...constructed.filter(({ at }) => calls.includes(at))]
  return {
    patterns: [
      ...new Map(all.map((pattern) => [`${fileOf(pattern.at)} /${pattern.source}/${pattern.flags}`, pattern])).values(),
    ],
    unreached: calls.filter((call) => !reached.has(call)),
  }
}
