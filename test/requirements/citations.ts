import { Visitor } from 'vite'
import { lineAt, readSources, type Source } from '../shape/source.ts'

/** The row ids a test file cites with `verifies(…)`. */
export function citedIn(source: Source): readonly string[] {
  const found = new Set<string>()
  new Visitor({
    CallExpression(node) {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'verifies') return
      const cited = node.arguments[0]
      const ids = cited?.type === 'ArrayExpression' ? cited.elements : [cited]
      for (const id of ids) {
        // An id that is computed cannot be found by reading, and a proof nobody can find is none.
        if (id?.type !== 'Literal' || typeof id.value !== 'string')
          throw new Error(`${source.path}:${lineAt(source, node.start)} cites a row without writing its id`)
        found.add(id.value)
      }
    },
  }).visit(source.program)
  return [...found]
}

/** The test files that cite each row. */
export function citations(): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>()
  for (const source of readSources('test'))
    for (const id of citedIn(source)) files.set(id, [...(files.get(id) ?? []), source.path])
  return files
}
