import { Visitor } from 'vite'
import { lineAt, readSources, type Source } from '../shape/source.ts'

/** Lists the row ids that a test file cites with `verifies(…)`. */
export function listCitedIds(source: Source): readonly string[] {
  const ids = new Set<string>()
  new Visitor({
    CallExpression(node) {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'verifies') return
      const cited = node.arguments[0]
      for (const id of cited?.type === 'ArrayExpression' ? cited.elements : [cited]) {
        // Computed ids cannot be found by parsing.
        if (id?.type !== 'Literal' || typeof id.value !== 'string')
          throw new Error(`${source.path}:${lineAt(source, node.start)}: pass the row id to verifies as a literal.`)
        ids.add(id.value)
      }
    },
  }).visit(source.program)
  return [...ids]
}

/** Maps each row id to the test files that cite it. */
export function findCitations(): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>()
  for (const source of readSources('test'))
    for (const id of listCitedIds(source)) files.set(id, [...(files.get(id) ?? []), source.path])
  return files
}
